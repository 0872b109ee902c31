"""Where states start, and which outputs return them."""

from __future__ import annotations

from collections.abc import Callable

from gdsl.ir.dims import Atom
from gdsl.ir.kernel import Kernel

Make = Callable[[str], Kernel]


def step(axes: str, state: str, output: str) -> str:
    return (
        f"use conv\nkernel k:\n    axes {axes}, W\n"
        "    input x: f32[B]\n    input w: f32[W]\n    input read, write: i32[B]\n"
        "    input fresh: bool[B]\n"
        f"    state S: {state}\n"
        "    y, S = step causal_conv(x * (read + write), w, S)\n"
        "    output out: f32[B] = y + where(fresh, 0, 1)\n"
        f"    output {output}\n"
    )


def test_slots_put_the_rows_in_place_of_the_pool_axis(kernel: Make) -> None:
    state = "f32[N, W] = pool[N at read -> write] inplace or zeros unless fresh"
    made = kernel(step("B, N", state, "pool = S"))
    (only,) = made.states
    assert only.type.axes == ("B", "W")
    assert only.dims == (Atom("N"), Atom("W"))
    assert only.slots is not None
    assert (only.slots.axis, only.slots.batch) == ("N", "B")
    assert only.slots.write == made.inputs[3].symbol
    assert only.unless == made.inputs[4].symbol
    assert only.optional
    assert only.inplace
    output = made.outputs[1]
    assert (output.state, output.dims) == ("S", only.dims)


def test_accepted_takes_its_axis_away(kernel: Make) -> None:
    made = kernel(step("B, P", "f32[B, P, W] = states[P at read]", "s1 = S"))
    (only,) = made.states
    assert only.type.axes == ("B", "W")
    assert only.accepted is not None
    assert only.accepted.axis == "P"
    output = made.outputs[1]
    assert (output.state, output.dims) == (None, (Atom("B"), Atom("W")))


def test_a_functional_state_returns_a_new_tensor(kernel: Make) -> None:
    made = kernel(step("B", "f32[B, W] = s0", "s1: f32[W, B] = S"))
    assert made.outputs[1].state is None
    assert made.outputs[1].dims == (Atom("W"), Atom("B"))


def test_an_output_of_the_same_tensor_returns_the_state_in_place(kernel: Make) -> None:
    made = kernel(step("B", "f32[B, W] = s0 inplace", "anything: f32[B, W] = S"))
    assert made.outputs[1].state == "S"
