"""The drop-in for the chunked prefill of nki-library: names, calls, mask pack, aliases, results."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from backends.isa.targets import find_target
from backends.nki import EMITTER
from backends.nki.adapters import ADAPTERS
from backends.simulator.options import SimOptions
from backends.simulator.run import load_module
from gdsl import api
from gdsl.emitter import EmitOptions
from gdsl.errors import GdslError, UsageError
from gdsl.regimes.typed import random_arguments
from gdsl.shapes import resolve_sizes

SIGNATURE = (
    "(query, key, value, g_log, beta, scale=1.0, algorithm='schur', mask_pack=None, "
    "group_size=8, recurrent_state=None)"
)
"""What callers of nki-library's chunked prefill rely on, from its published contract."""
EXPORTS: dict[str, object] = {
    "ALGORITHMS": ("schur", "neumann"),
    "DEFAULT_ALGORITHM": "schur",
    "DEFAULT_GROUP_SIZE": 8,
    "MAX_HEAD_DIM": 128,
    "CHUNK": 128,
    "N_MASKS": 10,
}
SIZES = {"B": 1, "Hk": 2, "G": 2, "T": 130, "K": 16, "V": 8}
SCALE = 0.25

CALLER = '''

@nki.jit
def calls_cte(query, key, value, g_log, beta, mask_pack, recurrent_state):
    """A caller inside another kernel, which sees the very tensors."""
    out, state = gdn_cte(
        query, key, value, g_log, beta, 0.25, "schur", mask_pack, 8, recurrent_state
    )
    assert state is recurrent_state, "the state is not the caller's"
    return out, state
'''


@pytest.fixture(scope="module")
def drop_in() -> ModuleType:
    plans = [api.compile(api.load(name)).compilation.plan for name in ("gdn_tkg", "gdn_cte")]
    programs = EMITTER.adapt("nki_library", plans, EmitOptions())
    return load_module(programs[1].text + CALLER, find_target("trn2"), SimOptions())


@pytest.fixture
def arrays() -> dict[str, NDArray[Any]]:
    definition = api.load("gdn_cte").kernel
    sizes = resolve_sizes(definition, (), SIZES)
    return {name: np.asarray(x) for name, x in random_arguments(definition, sizes, 3).items()}


def vectors(arrays: dict[str, NDArray[Any]]) -> list[NDArray[Any]]:
    return [arrays[name].copy() for name in ("query", "key", "value", "g_log", "beta")]


def exact(arrays: dict[str, NDArray[Any]], **changed: Any) -> list[NDArray[Any]]:
    given = {**arrays, "scale": SCALE, **changed}
    found = api.run(api.load("gdn_cte"), given, precision="float64")
    return [found["out"], found["recurrent_state"]]


def assert_close(outputs: Any, expected: list[NDArray[Any]]) -> None:
    """Root mean square over an output, the bound of bf16 operands."""
    for got, wanted in zip(outputs, expected, strict=True):
        error = np.sqrt(np.mean((np.asarray(got, np.float64) - wanted) ** 2))
        assert error <= 2.5e-2 * np.sqrt(np.mean(wanted**2))


def test_signature_is_the_committed_one(drop_in: ModuleType) -> None:
    assert str(inspect.signature(drop_in.gdn_cte)) == SIGNATURE


def test_what_callers_import_is_there(drop_in: ModuleType) -> None:
    assert {name: getattr(drop_in, name) for name in EXPORTS} == EXPORTS
    assert callable(drop_in.build_mask_pack)


@pytest.mark.parametrize("algorithm", ["schur", "neumann"])
@pytest.mark.parametrize("grid", [None, 1, 2])
def test_called_by_position_it_computes_the_recurrence(
    drop_in: ModuleType, arrays: dict[str, NDArray[Any]], grid: int | None, algorithm: str
) -> None:
    entry = drop_in.gdn_cte if grid is None else drop_in.gdn_cte[grid]
    pack, state = drop_in.build_mask_pack(), arrays["recurrent_state"].copy()
    outputs = entry(*vectors(arrays), SCALE, algorithm, pack, 8, state)
    assert [x.dtype for x in outputs] == [ml_dtypes.bfloat16, np.float32]
    assert_close(outputs, exact(arrays))


def test_cores_split_heads_bit_for_bit(
    drop_in: ModuleType, arrays: dict[str, NDArray[Any]]
) -> None:
    one, two = drop_in.gdn_cte[1](*vectors(arrays)), drop_in.gdn_cte[2](*vectors(arrays))
    assert [x.tobytes() for x in one] == [x.tobytes() for x in two]


def test_what_is_left_out_takes_its_default(
    drop_in: ModuleType, arrays: dict[str, NDArray[Any]]
) -> None:
    """Scale 1, no mask pack, and a state that begins at zero in a tensor of the kernel's."""
    outputs = drop_in.gdn_cte(*vectors(arrays))
    zeros = np.zeros_like(arrays["recurrent_state"])
    assert_close(outputs, exact(arrays, scale=1.0, recurrent_state=zeros))


def test_a_state_is_updated_in_place_and_returned(
    drop_in: ModuleType, arrays: dict[str, NDArray[Any]]
) -> None:
    pack, state = drop_in.build_mask_pack(), arrays["recurrent_state"].copy()
    outputs = drop_in.calls_cte(*vectors(arrays), pack, state)
    assert_close(outputs, exact(arrays))
    without = drop_in.gdn_cte(
        *vectors(arrays), scale=SCALE, recurrent_state=arrays["recurrent_state"].copy()
    )
    assert [x.tobytes() for x in outputs] == [x.tobytes() for x in without]


def test_another_algorithm_is_refused_when_the_kernel_is_traced(
    drop_in: ModuleType, arrays: dict[str, NDArray[Any]]
) -> None:
    with pytest.raises(GdslError, match="schur or neumann, got lu"):
        drop_in.gdn_cte(*vectors(arrays), SCALE, "lu")


def test_planes_of_the_mask_pack(drop_in: ModuleType) -> None:
    """Each plane by the sentence that defines it, element by element."""
    pack = drop_in.build_mask_pack()
    assert (pack.shape, pack.dtype, pack.flags.c_contiguous) == ((10, 128, 128), np.float32, True)
    at = range(128)
    wanted = [
        [[-1e9 if column > row else 0.0 for column in at] for row in at],
        [[float(column < row) for column in at] for row in at],
        [[float(column == row) for column in at] for row in at],
    ]
    for level in range(7):
        width, sign = 2**level, 1.0 if level == 0 else -1.0
        plane = np.zeros((128, 128))
        for start in range(0, 128, 2 * width):
            plane[start + width : start + 2 * width, start : start + width] = sign
        wanted.append(plane.tolist())
    for plane, expected in zip(pack, wanted, strict=True):
        np.testing.assert_array_equal(plane, np.asarray(expected, np.float32))


def test_the_pack_of_another_chunk(drop_in: ModuleType) -> None:
    pack = drop_in.build_mask_pack(16)
    assert pack.shape == (7, 16, 16)
    np.testing.assert_array_equal(pack[2], np.eye(16))
    assert np.count_nonzero(pack[6]) == 64


def test_a_schedule_that_changes_a_default_of_the_callers_is_refused() -> None:
    compiled = api.compile(api.load("gdn_cte"), settings={"group": 4})
    with pytest.raises(UsageError, match="has group_size=8 for its callers, not 4"):
        EMITTER.adapt("nki_library", [compiled.compilation.plan], EmitOptions())


def test_beside_all_other_exports_it_is_what_it_is_alone(arrays: dict[str, NDArray[Any]]) -> None:
    """Functions that exports define differently must not call each other's."""
    names = [export.kernel for export in ADAPTERS["nki_library"].exports]
    results = []
    for kernels in (names, ["gdn_cte"]):
        plans = [api.compile(api.load(name)).compilation.plan for name in kernels]
        text = EMITTER.adapt("nki_library", plans, EmitOptions())[0].text
        entry = load_module(text, find_target("trn2"), SimOptions()).gdn_cte
        results.append([x.tobytes() for x in entry(*vectors(arrays))])
    assert results[0] == results[1]
