"""Files: schedules, shapes, axes, and what one run reports."""

from __future__ import annotations

from collections.abc import Callable

from gdsl.errors import CompileError
from gdsl.ir.dims import Atom, Axis, Packed, Product
from gdsl.ir.kernel import Kernel, Module


def test_schedules_and_shapes(module: Callable[[str], Module]) -> None:
    made = module(
        "kernel k:\n    axes B, G\n    input x: f32[B, G]\n    output y: f32[B, G] = x\n"
        "schedule k on trn2, trn3:\n    chunk = 64\n    inverse = schur\n    fast = true\n"
        "shapes k:\n    small = {B: 1, G: 2}\n    large = {B: 8, G: 2}\n"
    )
    (schedule,) = made.schedules
    assert (schedule.kernel, schedule.targets) == ("k", ("trn2", "trn3"))
    values = [(setting.key, setting.value) for setting in schedule.settings]
    assert values == [("chunk", 64), ("inverse", "schur"), ("fast", True)]
    assert schedule.settings[0].span is not None
    assert schedule.settings[0].span.text == "chunk = 64"
    ((name, shapes),) = made.shapes
    assert name == "k"
    assert [(shape.name, dict(shape.sizes)["B"]) for shape in shapes] == [
        ("small", 1),
        ("large", 8),
    ]


def test_axes_of_a_kernel(kernel: Callable[[str], Kernel]) -> None:
    made = kernel(
        "kernel k:\n    axes P = q:(Hv K) | z:(G V) | one:1, B <= 16, Hk, G, Hv = (Hk G)\n"
        "    axes K, V % 8 == 0\n    input x: f32[B, P]\n    input h: f32[(B Hk), G, (1 K), V]\n"
        "    q, z, one = unpack[P](x)\n"
        "    output y: f32[B] = sum[Hk, G, K](q) + sum[G, V](z) + one + sum[Hk, G, K, V](h)\n"
    )
    assert made.axes == (
        Axis("B", at_most=16),
        Axis("Hk"),
        Axis("G"),
        Axis("K"),
        Axis("V", multiple_of=8),
    )
    assert made.composites == (("Hv", Product((Atom("Hk"), Atom("G")))),)
    assert isinstance(made.packed[0], Packed)
    x, h = made.inputs
    assert x.dims == (Atom("B"), made.packed[0])
    assert x.type.axes == ("P", "B")
    assert h.dims == (Product((Atom("B"), Atom("Hk"))), Atom("G"), Atom("K"), Atom("V"))


def test_one_mistake_one_error(errors: Callable[[str], CompileError]) -> None:
    found = errors(
        "use delta_rule, norms\nkernel k:\n    axes B, H, K, V\n"
        "    input q, k: f32[B, H, K];  input v: f32[B, H, V];  input beta: f32[B, H]\n"
        "    state S: f32[B, H, K, V] = s0 inplace\n"
        "    a = l2norm[K](qq)\n    b = a * 2\n    c = sum[K](b)\n"
        "    o, S = step delta(b, k, v, beta, S)\n"
        "    output out: f32[B, H, V] = o\n    output s = c\n    output s0 = S\n"
    ).diagnostics
    assert [d.message for d in found] == ["unknown name `qq`; did you mean `q`?"]


def test_the_error_of_one_kernel_leaves_the_others(errors: Callable[[str], CompileError]) -> None:
    text = "kernel {}:\n    axes B\n    input x: f32[B]\n    output y: f32[B] = {}\n"
    found = errors(text.format("a", "x + z") + text.format("b", "x") + text.format("c", "x + w"))
    assert [d.span.text for d in found.diagnostics if d.span] == ["z", "w"]


def test_str_of_an_error_is_its_first_message(errors: Callable[[str], CompileError]) -> None:
    error = errors("kernel k:\n    axes B\n    input x: f32[B]\n    output y: f32[B] = x + z\n")
    assert str(error).startswith("unknown name `z`")


def test_the_argument_of_a_state_is_no_value(errors: Callable[[str], CompileError]) -> None:
    (found,) = errors(
        "use conv\nkernel k:\n    axes B, W\n    input x: f32[B]\n    input w: f32[W]\n"
        "    state S: f32[B, W] = window\n    y, S = step causal_conv(x, w, S)\n"
        "    output out: f32[B] = y + sum[W](window)\n    output s1 = S\n"
    ).diagnostics
    assert found.message == "unknown name `window`"
    assert found.help == "it is the argument that state `S` starts from; write `S`"


def test_a_built_in_can_be_meant(errors: Callable[[str], CompileError]) -> None:
    (found,) = errors(
        "kernel k:\n    axes B\n    input x: f32[B]\n    output y: f32[B] = sigmiod(x)\n"
    ).diagnostics
    assert found.message == "unknown function `sigmiod`; did you mean `sigmoid`?"
