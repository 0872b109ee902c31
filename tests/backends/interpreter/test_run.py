"""Running kernels: what a hook sees, what is never changed, splits, sub-steps, empty calls."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from backends.interpreter import RUNNER
from gdsl.errors import RunError
from gdsl.ir.kernel import Kernel
from gdsl.runner import Event, RunOptions

SCAN = """
use delta_rule
kernel recurrence:
    axes T, K, V
    input q, k: f32[T, K]
    input v: f32[T, V]
    input g: f32[T] in (-inf, 0]
    state S: f32[K, V] = s0 or zeros
    decay = exp(g)
    o, S = scan[T] gated_delta(q, k, v, decay, 0.5, S)
    output out: f32[T, V] = o
    output s1: f32[K, V] = S
"""


def arguments(T: int, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "q": rng.standard_normal((T, 3)),
        "k": rng.standard_normal((T, 3)) / 3,
        "v": rng.standard_normal((T, 2)),
        "g": -rng.random(T),
        "s0": rng.standard_normal((3, 2)),
    }


def test_a_hook_sees_every_name_in_order(kernel_of: Callable[[str], Kernel]) -> None:
    events: list[Event] = []
    args = arguments(2)
    outputs = RUNNER.run(kernel_of(SCAN), args, RunOptions("float64", hook=events.append))
    token = ["S", "r", "S", "o"]
    assert [event.name for event in events] == [
        *("q", "k", "v", "g", "S", "decay"),
        *token,
        *token,
        *("o", "S", "out", "s1"),
    ]
    assert [event.where for event in events[6:14]] == [(("T", 0),)] * 4 + [(("T", 1),)] * 4
    by_token = [event for event in events if event.name == "o" and event.where]
    assert by_token[1].axes == ("V",)
    np.testing.assert_array_equal(by_token[1].values, outputs["out"][1])
    whole = next(event for event in events if event.name == "o" and not event.where)
    assert whole.axes == ("T", "V")
    assert whole.symbol is not None
    decay = events[5]
    assert decay.span is not None
    assert decay.span.text == "exp(g)"


def test_a_hook_may_stop_the_run(kernel_of: Callable[[str], Kernel]) -> None:
    class StopError(Exception):
        pass

    def hook(event: Event) -> None:
        if event.name == "r" and event.where == (("T", 1),):
            raise StopError

    with pytest.raises(StopError):
        RUNNER.run(kernel_of(SCAN), arguments(5), RunOptions("float64", hook=hook))


def test_watching_changes_no_bit(kernel_of: Callable[[str], Kernel]) -> None:
    args = arguments(9)
    plain = RUNNER.run(kernel_of(SCAN), args, RunOptions("float32"))
    watched = RUNNER.run(kernel_of(SCAN), args, RunOptions("float32", hook=lambda event: None))
    assert all(plain[name].tobytes() == watched[name].tobytes() for name in plain)


def test_progress_counts_tokens(kernel_of: Callable[[str], Kernel]) -> None:
    seen: list[tuple[int, int]] = []
    options = RunOptions("float32", progress=lambda done, total: seen.append((done, total)))
    RUNNER.run(kernel_of(SCAN), arguments(3), options)
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_arguments_are_never_changed(kernel_of: Callable[[str], Kernel]) -> None:
    args = arguments(4)
    before = {name: array.copy() for name, array in args.items()}
    outputs = RUNNER.run(kernel_of(SCAN), args, RunOptions("float64"))
    for name, array in args.items():
        np.testing.assert_array_equal(array, before[name])
        assert not any(np.shares_memory(array, out) for out in outputs.values())


@pytest.mark.parametrize("cut", range(8))
def test_every_cut_equals_one_run(kernel_of: Callable[[str], Kernel], cut: int) -> None:
    args = arguments(7)
    whole = RUNNER.run(kernel_of(SCAN), args, RunOptions("float64"))
    left_args = {n: a if n == "s0" else a[:cut] for n, a in args.items()}
    left = RUNNER.run(kernel_of(SCAN), left_args, RunOptions("float64"))
    right_args = {n: left["s1"] if n == "s0" else a[cut:] for n, a in args.items()}
    right = RUNNER.run(kernel_of(SCAN), right_args, RunOptions("float64"))
    np.testing.assert_array_equal(np.concatenate([left["out"], right["out"]]), whole["out"])
    np.testing.assert_array_equal(right["s1"], whole["s1"])


def test_a_step_is_a_scan_of_one_token(kernel_of: Callable[[str], Kernel]) -> None:
    step = SCAN.replace("T, ", "").replace("[T]", "").replace("scan ", "step ")
    args = arguments(1)
    scanned = RUNNER.run(kernel_of(SCAN), args, RunOptions("float64"))
    single = {name: array if name == "s0" else array[0] for name, array in args.items()}
    stepped = RUNNER.run(kernel_of(step), single, RunOptions("float64"))
    np.testing.assert_array_equal(stepped["out"], scanned["out"][0])
    np.testing.assert_array_equal(stepped["s1"], scanned["s1"])


def test_what_lacks_the_scan_axis_is_the_same_for_all_tokens(
    kernel_of: Callable[[str], Kernel],
) -> None:
    constant = SCAN.replace("input g: f32[T] in (-inf, 0]", "param g: float = -0.25")
    args = arguments(6)
    args["g"] = np.full(6, -0.25)
    right = RUNNER.run(kernel_of(SCAN), args, RunOptions("float64"))
    del args["g"]
    got = RUNNER.run(kernel_of(constant), args, RunOptions("float64"))
    np.testing.assert_array_equal(got["out"], right["out"])


NESTED = """
use delta_rule
kernel nested:
    axes T, N, K, V
    input q: f32[T, K]
    input k: f32[T, N, K]
    input v: f32[T, N, V]
    input g: f32[T]
    input beta: f32[T, N]
    state S: f32[K, V] = s0 or zeros
    o, S = scan[T] delta_product(q, k, v, exp(g), beta, S)
    output out: f32[T, V] = o
"""


def test_a_hook_sees_sub_steps_nested(kernel_of: Callable[[str], Kernel]) -> None:
    events: list[Event] = []
    args = {
        "q": np.ones((2, 2)),
        "k": np.ones((2, 3, 2)),
        "v": np.ones((2, 3, 1)),
        "g": np.zeros(2),
        "beta": np.ones((2, 3)),
    }
    RUNNER.run(kernel_of(NESTED), args, RunOptions("float64", hook=events.append))
    places = [event.where for event in events if event.name == "r"]
    assert places == [(("T", t), ("N", n)) for t in range(2) for n in range(3)]


@pytest.mark.parametrize(
    ("change", "code", "shown"),
    [
        ({"q": None}, "E0702", "argument `q` of `recurrence` is missing"),
        ({"x": np.ones(1)}, "E0703", "has no argument `x`"),
        ({"k": np.ones((4, 7))}, "E0704", "dimension 1 of `k` is 7, but `K` is 3: K = 3 from `q`"),
        ({"v": np.ones(4)}, "E0704", "`v` has 1 dimensions, (4,), but [T, V] is declared"),
        ({"g": np.array([-1, -1, 0.5, -1])}, "E0706", "`g` is 0.5 at T=2, outside"),
        ({"g": np.array([-1, np.nan, 0, 0])}, "E0706", "`g` is nan at T=1, outside"),
    ],
)
def test_a_wrong_argument_is_named_with_its_declaration(
    kernel_of: Callable[[str], Kernel], change: dict[str, Any], code: str, shown: str
) -> None:
    with pytest.raises(RunError) as error:
        RUNNER.run(kernel_of(SCAN), {**arguments(4), **change}, RunOptions("float64"))
    (found,) = error.value.diagnostics
    assert found.code == code
    assert shown in found.message
    assert found.span is not None


def test_missing_parameter_and_parameter_out_of_range(
    kernel_of: Callable[[str], Kernel],
) -> None:
    text = """
kernel scaled:
    axes N
    input x: f32[N]
    param factor: float in (0, 1]
    output out: f32[N] = x * factor
    """
    with pytest.raises(RunError, match="`factor` has no value and no default"):
        RUNNER.run(kernel_of(text), {"x": np.ones(1)}, RunOptions())
    with pytest.raises(RunError, match=r"`factor` is 2, outside its declared range \(0, 1\]"):
        RUNNER.run(kernel_of(text), {"x": np.ones(1), "factor": 2.0}, RunOptions())


def test_a_call_line_renames_accepts_and_ignores(kernel_of: Callable[[str], Kernel]) -> None:
    text = """
kernel scaled:
    axes N
    input x: f32[N]
    param factor: float = 1.0
    output out: f32[N] = x * factor
    call (x, out, softmax_scale = factor, mask_pack = ignored, algorithm = inverse) -> out
    """
    allocated = np.full(2, np.nan)
    extra = {"mask_pack": True, "algorithm": "schur", "out": allocated}
    arguments = {"x": np.ones(2), "softmax_scale": 3.0, **extra}
    outputs = RUNNER.run(kernel_of(text), arguments, RunOptions("float64"))
    assert outputs["out"].tolist() == [3.0, 3.0]
    assert np.isnan(allocated).all()


def test_importing_the_interpreter_loads_nothing_behind_the_typed_kernel() -> None:
    program = (
        "import sys, backends.interpreter; "
        "print([m for m in sys.modules if m.startswith(('gdsl.canonical', 'gdsl.algorithm', "
        "'gdsl.syntax', 'gdsl.semantics', 'backends.isa', 'backends.nki', 'backends.simulator', "
        "'backends.cost', 'torch', 'lark'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
