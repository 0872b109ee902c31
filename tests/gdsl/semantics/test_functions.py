"""Functions are expanded at the call, once per argument, with the call's span."""

from __future__ import annotations

from collections.abc import Callable

from gdsl.errors import CompileError
from gdsl.ir.expr import Apply, Const, Reduce
from gdsl.ir.kernel import Kernel, Let
from gdsl.ir.text import expression_text
from gdsl.ir.traverse import walk

Make = Callable[[str], Kernel]


def test_a_plain_argument_is_put_in_place(kernel: Make) -> None:
    made = kernel(
        "use norms\nkernel k:\n    axes B, K\n    input x: f32[B, K]\n"
        "    output y: f32[B, K] = l2norm[K](x, eps = 0.5)\n"
    )
    assert made.body == ()
    assert expression_text(made.outputs[0].value) == "x * rsqrt(sum[K](x * x) + 0.5)"


def test_a_computed_argument_is_computed_once(kernel: Make) -> None:
    made = kernel(
        "use norms\nkernel k:\n    axes B, K\n    input x: f32[B, K]\n"
        "    output y: f32[B, K] = l2norm[K](x + 1)\n"
    )
    (let,) = made.body
    assert isinstance(let, Let)
    assert let.target.name == "l2norm_x"
    assert expression_text(let.value) == "x + 1"
    adds = [n for n in walk(made.outputs[0].value) if isinstance(n, Apply) and n.operator == "add"]
    assert len(adds) == 1


def test_nodes_of_an_expansion_point_at_the_call(kernel: Make) -> None:
    made = kernel(
        "use norms\nfn twice[D](x) = l2norm[D](x) + l2norm[D](x)\n"
        "kernel k:\n    axes B, K\n    input x: f32[B, K]\n"
        "    output y: f32[B, K] = 2 * twice[K](x)\n"
    )
    inner = [node for node in walk(made.outputs[0].value) if isinstance(node, Reduce | Const)]
    texts = {node.span.text for node in inner if node.span is not None}
    assert texts == {"2", "twice[K](x)"}


def test_axes_bind_by_position(kernel: Make) -> None:
    made = kernel(
        "fn ratio[A, B](x) = sum[A](x) / sum[B](x)\n"
        "kernel k:\n    axes B, A\n    input x: f32[A, B]\n"
        "    output y: f32[B, A] = ratio[B, A](x)\n"
    )
    assert expression_text(made.outputs[0].value) == "sum[B](x) / sum[A](x)"


def test_errors_inside_show_the_chain(errors: Callable[[str], CompileError]) -> None:
    found = errors(
        "fn inner[D](x) = sum[D](x)\n"
        "fn outer[D](x) = 2 * inner[D](x)\n"
        "kernel k:\n    axes B, K, V\n    input x: f32[B, K]\n    input v: f32[V]\n"
        "    output y: f32[B, V] = v * outer[V](x)\n"
    ).diagnostics
    (only,) = found
    assert only.code == "E0303"
    assert only.span is not None
    assert only.span.text == "outer[V](x)"
    assert [(label.span.text, label.text) for label in only.labels] == [
        ("inner[D](x)", "called by `outer` here"),
        ("D", "the argument carries [B, K]"),
    ]


def test_a_broken_function_is_reported_once(errors: Callable[[str], CompileError]) -> None:
    found = errors(
        "fn broken(x) = x * y\n"
        "kernel k:\n    axes B\n    input x: f32[B]\n"
        "    a = broken(x)\n    output y: f32[B] = a + broken(x)\n"
    ).diagnostics
    assert [(d.code, d.span.text) for d in found if d.span] == [("E0201", "y")]


def test_a_library_sees_only_what_it_uses(errors: Callable[[str], CompileError]) -> None:
    found = errors(
        "use delta_rule\nkernel k:\n    axes B\n    input x: f32[B]\n"
        "    output y: f32[B] = silu(x)\n"
    ).diagnostics
    assert [d.message for d in found] == ["unknown function `silu`"]
    assert found[0].help is not None
    assert "use" in found[0].help
