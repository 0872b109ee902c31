"""The Python API as a user calls it."""

import importlib.util
import pkgutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gdsl
from gdsl.errors import CompileError, RunError, UsageError

SHAPE = {"B": 1, "Hv": 2, "K": 16, "V": 8}
BF16 = np.dtype(ml_dtypes.bfloat16)


@pytest.fixture(scope="module")
def kernel() -> gdsl.Definition:
    return gdsl.load("gdn_tkg")


@pytest.fixture(scope="module")
def inputs(kernel: gdsl.Definition) -> dict[str, np.ndarray]:
    return gdsl.random_inputs(kernel, SHAPE, seed=3)


def test_every_public_name_exists_and_stays_what_it_is() -> None:
    for name in gdsl.__all__:
        assert getattr(gdsl, name) is not None
    # Importing a module of the package must not hide a function of the same name.
    for module in pkgutil.iter_modules(gdsl.__path__):
        if not module.name.startswith("__"):
            import_module(f"gdsl.{module.name}")
    functions = ("load", "loads", "check", "compile", "run", "verify", "simulate")
    assert all(callable(getattr(gdsl, name)) for name in functions)
    with pytest.raises(AttributeError, match="no attribute `nothing`"):
        _ = gdsl.nothing


def test_load_raises_at_once(tmp_path: Path) -> None:
    bad = tmp_path / "bad.gdn"
    bad.write_text("kernel bad:\n    axes K\n    output y: f32[K] = x\n")
    with pytest.raises(CompileError) as caught:
        gdsl.load(bad)
    first = caught.value.diagnostics[0]
    assert first.code == "E0201"
    assert first.span is not None
    assert first.span.text == "x"
    assert "`x`" in first.message


def test_check_returns_what_load_raises(tmp_path: Path) -> None:
    text = "kernel bad:\n    axes K\n    output y: f32[K] = x\n"
    (tmp_path / "bad.gdn").write_text(text)
    for argument in (text, tmp_path / "bad.gdn", str(tmp_path / "bad.gdn")):
        assert [d.code for d in gdsl.check(argument)] == ["E0201"]
    assert gdsl.check("gdn_tkg") == ()
    assert gdsl.check(gdsl.load("gdn_tkg")) == ()


def test_check_looks_behind_the_front_end() -> None:
    text = (
        "rule square[K, V](k[K], v[V], state S[K, V]) -> o[V]:\n"
        "    S = S * S + k * v\n"
        "    o = sum[K](k * S)\n"
        "kernel bad:\n"
        "    axes B, K, V\n"
        "    input k: f32[B, K]\n"
        "    input v: f32[B, V]\n"
        "    state S: f32[B, K, V] = s0\n"
        "    o, S = step square(k, v, S)\n"
        "    output out: f32[B, V] = o\n"
        "    output s1: f32[B, K, V] = S\n"
    )
    assert [d.code for d in gdsl.check(text)] == ["E0401"]


def test_run_returns_outputs_by_name_in_declared_dtypes(
    kernel: gdsl.Definition, inputs: dict[str, np.ndarray]
) -> None:
    before = {name: array.copy() for name, array in inputs.items()}
    outputs = gdsl.run(kernel, inputs)
    assert list(outputs) == ["out", "state_out"]
    assert outputs["out"].dtype == BF16
    assert outputs["out"].shape == (2, 8)
    assert outputs["state_out"].dtype == np.float32
    for name, array in before.items():
        assert array.tobytes() == inputs[name].tobytes(), f"`{name}` was written to"


def test_both_backends_agree(kernel: gdsl.Definition, inputs: dict[str, np.ndarray]) -> None:
    reference = gdsl.run(kernel, inputs, precision="float64")
    simulated = gdsl.run(kernel, inputs, backend="simulator", target="trn3", lnc=2)
    for name, expected in reference.items():
        error = np.abs(simulated[name].astype(float) - expected).max()
        assert error < 0.05 * np.abs(expected).max()


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs `oracle`")
@pytest.mark.parametrize("backend", ["interpreter", "simulator"])
def test_torch_in_torch_out(
    kernel: gdsl.Definition, inputs: dict[str, np.ndarray], backend: str
) -> None:
    import torch

    from gdsl.arrays import to_caller

    tensors = {name: to_caller(array, torch=True) for name, array in inputs.items()}
    assert tensors["q"].dtype == torch.bfloat16
    outputs = gdsl.run(kernel, tensors, backend=backend)
    expected = gdsl.run(kernel, inputs, backend=backend)
    for name, array in expected.items():
        assert isinstance(outputs[name], torch.Tensor)
        assert torch.equal(outputs[name], to_caller(array, torch=True))


def test_compile_returns_text_stages_and_settings(kernel: gdsl.Definition) -> None:
    program = gdsl.compile(kernel, "trn2", settings={"reads": "bf16"})
    assert program.text.count("@nki.jit") == 1
    assert list(program.stages) == ["ast", "ir", "canonical", "plan", "program", "nki"]
    assert program.stages["nki"] == program.text
    assert program.settings["reads"] == "bf16"
    assert len(repr(program)) < 400


def test_a_program_runs(kernel: gdsl.Definition, inputs: dict[str, np.ndarray]) -> None:
    outputs = gdsl.compile(kernel).run(inputs)
    assert set(outputs) == {"out", "state_out"}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda k, a: gdsl.compile(k, "trn4"), "no target `trn4`"),
        (lambda k, a: gdsl.run(k, a, backend="gpu"), "no backend `gpu`"),
        (lambda k, a: gdsl.verify(k, regimes=["gausian"]), "did you mean `gaussian`"),
        (lambda k, a: gdsl.verify(k, precisions=["fp8"]), "no precision `fp8`"),
        (lambda k, a: gdsl.load("gdn_tkq"), "did you mean `gdn_tkg`"),
        (lambda k, a: gdsl.simulate("x.py"), "expected FILE.py:KERNEL"),
    ],
)
def test_wrong_names_are_usage_errors(
    kernel: gdsl.Definition, inputs: dict[str, np.ndarray], call: object, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        call(kernel, inputs)  # type: ignore[operator]


@pytest.mark.parametrize("backend", ["interpreter", "simulator"])
@pytest.mark.parametrize(
    "change",
    [
        {"qq": np.zeros(3, np.float32)},
        {"q": np.zeros((2, 15), BF16)},
        {"q": "text"},
    ],
)
def test_arguments_that_do_not_fit_are_run_errors(
    kernel: gdsl.Definition, inputs: dict[str, np.ndarray], backend: str, change: dict[str, object]
) -> None:
    with pytest.raises(gdsl.GdslError):
        gdsl.run(kernel, {**inputs, **change}, backend=backend)


def test_a_missing_argument_is_named(
    kernel: gdsl.Definition, inputs: dict[str, np.ndarray]
) -> None:
    given = {name: array for name, array in inputs.items() if name != "A_log"}
    with pytest.raises(RunError, match="`A_log`"):
        gdsl.run(kernel, given)


def test_simulate_runs_somebody_elses_kernel(tmp_path: Path, foreign_kernel: str) -> None:
    (tmp_path / "mine.py").write_text(foreign_kernel)
    add = gdsl.simulate(f"{tmp_path}/mine.py:add", target="trn2")
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.testing.assert_array_equal(add(x, 2 * x), 3 * x)
    np.testing.assert_array_equal(add(x=x, y=2 * x), 3 * x)
    with pytest.raises(UsageError, match="all by position or all by name"):
        add(x, y=x)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda x: x.pop("q"), "E0702"),
        (lambda x: x.update(nonsense=x["q"]), "E0703"),
        (lambda x: x.update(q=x["q"][:1]), "E0704"),
        (lambda x: x.update(q=x["q"].astype(np.int64)), "E0705"),
    ],
)
def test_a_call_that_does_not_fit_is_refused_alike_by_both_backends(
    change: Callable[[dict[str, Any]], Any], code: str
) -> None:
    kernel = gdsl.load("gdn_tkg")
    inputs = dict(gdsl.random_inputs(kernel, {"B": 1, "Hv": 2, "K": 8, "V": 8}))
    change(inputs)
    for backend in ("interpreter", "simulator"):
        with pytest.raises(gdsl.GdslError) as error:
            gdsl.run(kernel, inputs, backend=backend)
        assert error.value.diagnostics[0].code == code


def test_sizes_beyond_the_machine_are_explained_at_the_axis() -> None:
    kernel = gdsl.load("gdn_tkg")
    inputs = gdsl.random_inputs(kernel, {"B": 1, "Hv": 1, "K": 200, "V": 8})
    with pytest.raises(gdsl.GdslError) as error:
        gdsl.run(kernel, inputs, backend="simulator")
    assert error.value.diagnostics[0].code == "E0531"


def test_no_token_launches_nothing_and_returns_the_state() -> None:
    kernel = gdsl.load("gdn_cte")
    inputs = gdsl.random_inputs(kernel, {"B": 1, "Hk": 1, "G": 2, "T": 0, "K": 8, "V": 8})
    outputs = gdsl.compile(kernel).run({**inputs, "algorithm": "neumann"})
    assert outputs["out"].shape == (1, 2, 0, 8)
    np.testing.assert_array_equal(outputs["recurrent_state"], inputs["recurrent_state"])


WRITES = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def write(x, pair, scale=None):
    t = nl.ndarray((4, 3), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=pair[0])
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=scale or 2.0)
    nisa.dma_copy(dst=x, src=t)
    return x
"""


def test_what_a_kernel_writes_is_in_the_callers_array(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(WRITES)
    write = gdsl.simulate(f"{tmp_path}/mine.py:write")
    x, y = np.zeros((4, 3), np.float32), np.ones((4, 3), np.float32)
    assert (write(x, (y, y), None) == 2).all()
    assert (x == 2).all()
    assert (y == 1).all()
    x.flags.writeable = False
    assert (write(x, (y, y), 3.0) == 3).all()
    assert (x == 2).all()


def _pool_call(**changed: Any) -> dict[str, Any]:
    pool = gdsl.load("gdn_tkg_pool")
    given = gdsl.random_inputs(pool, "B=2,N=3,Hk=1,G=1,K=8,V=8", seed=1)
    given["read"], given["write"] = np.array([0, 1], np.int32), np.array([0, 1], np.int32)
    return given | changed


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("write", np.array([1, 1], np.int32), "slot 1 of `pool` is written by row 0 and"),
        ("write", np.array([1, 0], np.int32), "slot 0 of `pool` is written by row 1 and read"),
        ("read", np.array([0, 1], np.int64), "`read` is int64, but i32 is declared"),
        ("pool", np.zeros((3, 1, 8, 8), BF16), "`pool` is bf16, but f32 is declared"),
        ("k", np.zeros((2, 1, 8), np.float32), "`k` is f32, but `q` fixes `X` to bf16"),
    ],
)
@pytest.mark.parametrize("backend", ["interpreter", "simulator"])
def test_a_call_outside_the_contract_runs_nowhere(
    backend: str, name: str, value: np.ndarray, said: str
) -> None:
    """The emitted text cannot see these; a user must not get numbers for them either."""
    with pytest.raises(RunError, match=said):
        gdsl.run(gdsl.load("gdn_tkg_pool"), _pool_call(**{name: value}), backend=backend)


@pytest.mark.parametrize("backend", ["interpreter", "simulator"])
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("valid_len", -1, "`valid_len` is -1"),
        ("valid_len", 6, "`valid_len` is 6"),
        ("beta", 1.5, "`beta` is 1.5 .* outside its declared range"),
        ("key", 1.0, "the stated fact"),
    ],
)
def test_values_outside_the_contract_run_nowhere(
    backend: str, name: str, value: float, said: str
) -> None:
    varlen = gdsl.load("kda_cte")
    given = gdsl.random_inputs(varlen, "B=1,Hk=1,G=1,T=5,K=8,V=8", seed=1)
    given[name] = np.full_like(given[name], value)
    with pytest.raises(RunError, match=said):
        gdsl.run(varlen, given, backend=backend)
