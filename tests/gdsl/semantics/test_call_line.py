"""Argument order, names, and return order."""

from __future__ import annotations

from collections.abc import Callable

from gdsl.ir.kernel import Kernel

Make = Callable[[str], Kernel]

BODY = (
    "use conv\nkernel k:\n    axes B, W\n    param scale: float = 1.0\n    input x: f32[B]\n"
    "    input bias: f32[B] or 0.0\n    state S: f32[B, W] = window inplace\n"
    "    input w: f32[W]\n    param size: float\n"
    "    y, S = step causal_conv(x, w, S)\n"
    "    output out: f32[B] = scale * y + bias + size\n    output window = S\n"
)


def roles(kernel: Kernel) -> list[tuple[str, str, str | None]]:
    return [(a.name, a.role, a.key) for a in kernel.call.arguments]


def test_default_is_the_order_of_the_text_with_defaults_last(kernel: Make) -> None:
    made = kernel(BODY)
    assert [name for name, _, _ in roles(made)] == ["x", "window", "w", "size", "scale", "bias"]
    assert made.call.returns == ("out", "window")


def test_roles(kernel: Make) -> None:
    made = kernel(
        f"{BODY}    call (x, y_out = out, out, window, w, sm_scale = scale, size, "
        "chunk_len = chunk, mask = ignored) -> window, out\n"
    )
    assert roles(made) == [
        ("x", "input", None),
        ("y_out", "output", "out"),
        ("out", "output", None),
        ("window", "state", None),
        ("w", "input", None),
        ("sm_scale", "param", "scale"),
        ("size", "param", None),
        ("chunk_len", "schedule", "chunk"),
        ("mask", "ignored", None),
    ]
    assert made.call.returns == ("window", "out")


def test_a_caller_allocated_output_need_not_be_returned(kernel: Make) -> None:
    made = kernel(f"{BODY}    call (x, w, size, window, out) -> window\n")
    assert made.call.returns == ("window",)
