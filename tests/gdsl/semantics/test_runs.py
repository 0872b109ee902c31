"""Runs: what a rule becomes at one call."""

from __future__ import annotations

from collections.abc import Callable

from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Kernel, Let, Run
from gdsl.ir.node import Symbol

Make = Callable[[str], Kernel]

GROUPED = (
    "use delta_rule\nkernel k:\n    axes B, Hk, G, T, K, V\n"
    "    input q, k: bf16[B, Hk, T, K];  input v: bf16[B, (Hk G), T, V]\n"
    "    input g: f32[B, (Hk G), T] in (-inf, 0];  input beta: f32[B, (Hk G), T] in [0, 1]\n"
    "    input n: i32[B] or T\n"
    "    state S: bf16[B, (Hk G), K, V] = s0 or zeros\n"
    "    o, S{states} = scan[T < n{every}] gated_delta(q, k, v, exp(g), beta, S)\n"
    "    output out: bf16[B, (Hk G), T, V] = o\n"
    "    output s1 = S\n"
)


def run_of(kernel: Kernel) -> Run:
    (run,) = [statement for statement in kernel.body if isinstance(statement, Run)]
    return run


def test_parameters_carry_the_axes_of_the_call_without_the_tokens(kernel: Make) -> None:
    rule = run_of(kernel(GROUPED.format(states="", every=""))).rule
    axes = [type_.axes for type_ in rule.param_types]
    assert axes == [
        ("B", "Hk", "K"),
        ("B", "Hk", "K"),
        ("B", "Hk", "G", "V"),
        ("B", "Hk", "G"),
        ("B", "Hk", "G"),
    ]
    assert rule.axes == ("K", "V")
    assert rule.state_type.axes == ("B", "Hk", "G", "K", "V")
    assert rule.state_type.dtype is Dtype.F32
    assert rule.param_types[3].range.lo == 0
    assert rule.param_types[3].range.hi == 1
    assert [type_.axes for type_ in rule.result_types] == [("B", "Hk", "G", "V")]


def test_results_carry_the_tokens_and_the_state_is_new(kernel: Make) -> None:
    made = kernel(GROUPED.format(states="", every=""))
    run = run_of(made)
    assert run.axis == "T"
    assert run.valid_len == made.inputs[5].symbol
    assert run.state == made.states[0].symbol
    assert run.state_out.name == "S"
    assert run.state_out != run.state
    assert made.outputs[0].value.type.axes == ("B", "Hk", "G", "T", "V")
    assert made.outputs[1].value.type.axes == ("B", "Hk", "G", "K", "V")
    assert len(run.args) == len(run.rule.params) == 5


def test_body_is_in_ssa_form(kernel: Make) -> None:
    rule = run_of(kernel(GROUPED.format(states="", every=""))).rule
    defined = [statement.target for statement in rule.body if isinstance(statement, Let)]
    assert [symbol.name for symbol in defined] == ["S", "r", "S", "o"]
    assert len(set(defined)) == 4
    assert rule.state_out == defined[2]
    assert rule.results == (defined[3],)


def test_states_after_each_token(kernel: Make) -> None:
    made = kernel(
        GROUPED.format(states=", all", every=" every 1")
        + "    output states: f32[B, T, (Hk G), K, V] = all\n"
    )
    run = run_of(made)
    assert (run.every, run.states_axis) == (1, "T")
    assert made.outputs[2].value.type.axes == ("B", "Hk", "G", "T", "K", "V")


def test_states_after_blocks(kernel: Make) -> None:
    made = kernel(
        GROUPED.format(states=", all", every=" every size -> P")
        .replace("axes B", "axes P, B")
        .replace("    state S", "    param size: int = 2\n    state S")
        + "    output states: f32[B, P, (Hk G), K, V] = all\n"
    )
    run = run_of(made)
    assert run.every == made.params[0].symbol
    assert run.states_axis == "P"
    assert made.outputs[2].value.type.axes == ("P", "B", "Hk", "G", "K", "V")


def test_axes_in_brackets(kernel: Make) -> None:
    made = kernel(
        "use delta_rule\nkernel k:\n    axes B, Dk, Dv, K\n"
        "    input q, k: f32[B, Dk, K];  input v: f32[B, Dv, K];  input beta: f32[B, K]\n"
        "    state S: f32[B, Dk, Dv, K] = s0\n"
        "    o, S = step delta[Dk, Dv](q, k, v, beta, S)\n"
        "    output out: f32[B, Dv, K] = o\n    output s1 = S\n"
    )
    rule = run_of(made).rule
    assert rule.axes == ("Dk", "Dv")
    assert rule.param_types[0].axes == ("B", "Dk", "K")
    assert run_of(made).axis is None


def test_substeps(kernel: Make) -> None:
    made = kernel(
        "use delta_rule\nkernel k:\n    axes B, T, N, K, V\n"
        "    input q: f32[B, T, K];  input k: f32[B, T, N, K];  input v: f32[B, T, N, V]\n"
        "    input decay: f32[B, T];  input beta: f32[B, T, N]\n"
        "    state S: f32[B, K, V] = s0\n"
        "    o, S = scan[T] delta_product(q, k, v, decay, beta, S)\n"
        "    output out: f32[B, T, V] = o\n    output s1 = S\n"
    )
    outer = run_of(made).rule
    (inner,) = [statement for statement in outer.body if isinstance(statement, Run)]
    assert inner.axis == "N"
    assert outer.axes == ("K", "V", "N")
    assert inner.rule.axes == ("K", "V")
    assert inner.rule.results == ()
    assert [type_.axes for type_ in inner.rule.param_types] == [("B", "K"), ("B", "V"), ("B",)]


def test_two_calls_share_nothing(kernel: Make) -> None:
    made = kernel(
        "use conv\nkernel k:\n    axes B, W\n    input x: f32[B]\n    input w: f32[W]\n"
        "    state a: f32[B, W] = a0;  state b: f32[B, W] = b0\n"
        "    y, a = step causal_conv(x, w, a)\n    z, b = step causal_conv(y, w, b)\n"
        "    output out: f32[B] = z\n    output a1 = a\n    output b1 = b\n"
    )
    first, second = [s for s in made.body if isinstance(s, Run)]

    def inside(run: Run) -> set[Symbol]:
        return {s.target for s in run.rule.body if isinstance(s, Let)} | set(run.rule.params)

    assert not inside(first) & inside(second)


def test_a_new_name_for_the_new_state(kernel: Make) -> None:
    made = kernel(
        "use conv\nkernel k:\n    axes B, W\n    input x: f32[B]\n    input w: f32[W]\n"
        "    state a: f32[B, W] = a0 inplace\n    y, a1 = step causal_conv(x, w, a)\n"
        "    output out: f32[B] = y\n    output a0 = a1\n"
    )
    assert made.outputs[1].state == "a"
    assert made.outputs[1].dims == made.states[0].dims
