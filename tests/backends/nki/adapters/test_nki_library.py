"""The drop-in for nki-library: signatures, launches by position, aliases, results."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from backends.isa.targets import find_target
from backends.nki import EMITTER
from backends.simulator.options import SimOptions
from backends.simulator.run import load_module
from gdsl import api
from gdsl.emitter import EmitOptions, NkiProgram
from gdsl.errors import CompileError, UsageError
from gdsl.regimes.typed import random_arguments
from gdsl.shapes import resolve_sizes

Arrays = Mapping[str, NDArray[Any]]

SIGNATURES = {
    "gdn_tkg": "(q, k, v, b, a, A_log, dt_bias, z, norm_weight, state_in)",
    "kda_tkg": "(q, k, v, g, beta, a_log, dt_bias, out, S, scale, lower_bound)",
}
"""What callers of nki-library's decode kernels rely on, from its published contracts."""
RETURNS = {"gdn_tkg": ("out", "state_out"), "kda_tkg": ("out", "S")}
OUT_DTYPES = {"gdn_tkg": ml_dtypes.bfloat16, "kda_tkg": np.float32}
SIZES = {
    "gdn_tkg": {"B": 3, "Hv": 11, "K": 16, "V": 8},
    "kda_tkg": {"B": 3, "H": 11, "K": 16, "V": 8},
}

CALLER = '''

@nki.jit
def calls_kda(q, k, v, g, beta, a_log, dt_bias, out, S, scale, lower_bound):
    """A caller inside another kernel, which sees the very tensors."""
    returned = kda_tkg(q, k, v, g, beta, a_log, dt_bias, out, S, scale, lower_bound)
    assert returned[0] is out, "out is not the caller's"
    assert returned[1] is S, "S is not the caller's"
    return returned
'''


def adapt(*kernels: str, target: str = "trn2") -> tuple[NkiProgram, ...]:
    plans = [api.compile(api.load(name)).compilation.plan for name in kernels]
    return EMITTER.adapt("nki_library", plans, EmitOptions(target))


@pytest.fixture(scope="module")
def drop_in() -> ModuleType:
    first, second = adapt("gdn_tkg", "kda_tkg")
    assert first.text == second.text
    return load_module(first.text + CALLER, find_target("trn2"), SimOptions())


def given(kernel: str) -> dict[str, NDArray[Any]]:
    definition = api.load(kernel).kernel
    sizes = resolve_sizes(definition, (), SIZES[kernel])
    found = {name: np.asarray(x) for name, x in random_arguments(definition, sizes, 3).items()}
    if kernel == "kda_tkg":
        found["out"] = np.full(found["v"].shape, np.nan, np.float32)
    return found


def positional(kernel: str, arrays: Arrays) -> tuple[NDArray[Any], ...]:
    names = SIGNATURES[kernel].strip("()").split(", ")
    return tuple(arrays[name].copy() for name in names)


@pytest.mark.parametrize("kernel", SIGNATURES)
def test_signature_is_the_committed_one(drop_in: ModuleType, kernel: str) -> None:
    assert str(inspect.signature(getattr(drop_in, kernel))) == SIGNATURES[kernel]


@pytest.mark.parametrize("grid", [None, 1, 2])
@pytest.mark.parametrize("kernel", SIGNATURES)
def test_called_by_position_it_computes_the_recurrence(
    drop_in: ModuleType, kernel: str, grid: int | None
) -> None:
    arrays = given(kernel)
    entry = getattr(drop_in, kernel)
    outputs = (entry if grid is None else entry[grid])(*positional(kernel, arrays))
    inputs = {name: x for name, x in arrays.items() if name != "out"}
    exact = api.run(api.load(kernel), inputs, precision="float64")
    out, state = (np.asarray(x, np.float64) for x in outputs)
    state_name = RETURNS[kernel][1]
    half_ulp = 2.0**-8 if kernel == "gdn_tkg" else 1e-5
    np.testing.assert_allclose(out, exact["out"], rtol=half_ulp, atol=1e-4)
    np.testing.assert_allclose(state, exact[state_name], rtol=1e-5, atol=1e-5)
    assert [x.dtype for x in outputs] == [OUT_DTYPES[kernel], np.float32]


@pytest.mark.parametrize("kernel", SIGNATURES)
def test_cores_split_heads_bit_for_bit(drop_in: ModuleType, kernel: str) -> None:
    arrays = given(kernel)
    entry = getattr(drop_in, kernel)
    one, two = entry[1](*positional(kernel, arrays)), entry[2](*positional(kernel, arrays))
    assert [x.tobytes() for x in one] == [x.tobytes() for x in two]


def test_kda_returns_the_tensors_it_was_given(drop_in: ModuleType) -> None:
    arguments = positional("kda_tkg", given("kda_tkg"))
    outputs = drop_in.calls_kda(*arguments)
    expected = drop_in.kda_tkg(*arguments)
    assert [x.tobytes() for x in outputs] == [x.tobytes() for x in expected]


def test_gdn_leaves_its_state_alone(drop_in: ModuleType) -> None:
    arguments = positional("gdn_tkg", given("gdn_tkg"))
    before = arguments[-1].copy()
    _, state = drop_in.gdn_tkg(*arguments)
    assert arguments[-1].tobytes() == before.tobytes()
    assert state.tobytes() != before.tobytes()


def test_exports_of_one_module_are_those_of_modules_of_their_own() -> None:
    """Functions that two kernels define differently must not call each other's."""
    both = adapt("gdn_tkg", "kda_tkg")
    modules = {program.entry: both[0].text for program in both}
    for kernel, text in modules.items():
        arrays = given(kernel)
        alone = adapt(kernel)[0].text
        results = [
            getattr(load_module(source, find_target("trn2"), SimOptions()), kernel)(
                *positional(kernel, arrays)
            )
            for source in (text, alone)
        ]
        assert [x.tobytes() for x in results[0]] == [x.tobytes() for x in results[1]]


def test_a_kernel_alone_keeps_its_short_names() -> None:
    assert "\ndef load_states(" in adapt("kda_tkg")[0].text


def test_what_an_adapter_does_not_export_is_refused() -> None:
    with pytest.raises(UsageError, match="exports no kernel `gdn_tkg_pool`"):
        adapt("gdn_tkg_pool")
    with pytest.raises(UsageError, match="named more than once"):
        adapt("gdn_tkg", "gdn_tkg")
    with pytest.raises(UsageError, match="did you mean `nki_library`"):
        EMITTER.adapt("nki_libary", (), EmitOptions())


def test_another_call_is_refused_with_the_line_to_write() -> None:
    text = api.load("gdn_tkg").file.source.text
    wrong = text.replace("call (q, k, v, b, a, A_log", "call (k, q, v, b, a, A_log", 1)
    plan = api.compile(api.loads(wrong, "gdn_tkg")).compilation.plan
    with pytest.raises(CompileError) as error:
        EMITTER.adapt("nki_library", (plan,), EmitOptions())
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.help is not None
    assert diagnostic.help.startswith("write `call (q, k, v, b, a, A_log, dt_bias, z")
