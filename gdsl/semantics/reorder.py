"""`shift`, `rename` and `unpack`: built-ins that move values along axes."""

from __future__ import annotations

from gdsl.ir.expr import Expr, Unpack
from gdsl.semantics import expressions, typed
from gdsl.semantics.axes import show, value_axes
from gdsl.semantics.frame import Frame
from gdsl.semantics.names import axis_of
from gdsl.syntax import ast


def elaborate_shift(node: ast.Shift, frame: Frame) -> Expr | None:
    """`shift[W](window, x)`: the window carries W, x carries the window's other axes at most."""
    window = expressions.elaborate(node.window, frame)
    value = expressions.elaborate(node.value, frame)
    axis = _one_axis("shift", node.axes, node, frame)
    if window is None or value is None or axis is None:
        return None
    if axis not in window.type.axes:
        frame.error(
            "E0313",
            f"the window does not carry the axis `{axis}` it is shifted along",
            node.window.span,
            label=f"carries {show(window.type.axes)}",
            help=f"write `shift[W](window, x)` with a window over `{axis}`",
        )
        return None
    extra = [name for name in value.type.axes if name == axis or name not in window.type.axes]
    if extra:
        frame.error(
            "E0313",
            f"the appended value carries {show(extra)}, which a column of the window does not have",
            node.value.span,
            label=f"carries {show(value.type.axes)}",
            notes=(f"a column carries {show(a for a in window.type.axes if a != axis)}",),
        )
        return None
    return typed.shift(axis, window, value, frame.place(node.span))


def elaborate_rename(node: ast.Rename, frame: Frame) -> Expr | None:
    """`rename[K -> J](x)`: x carries K and not J."""
    value = expressions.elaborate(node.operand, frame)
    source = axis_of(node.source, frame)
    target = axis_of(node.target, frame)
    if value is None or source is None or target is None:
        return None
    table = frame.context.axes
    if source not in value.type.axes or target in value.type.axes:
        problem = (
            f"does not carry `{source}`"
            if source not in value.type.axes
            else f"carries `{target}` already"
        )
        frame.error(
            "E0313",
            f"`rename` cannot turn `{source}` into `{target}`: its argument {problem}",
            node.operand.span,
            label=f"carries {show(value.type.axes)}",
        )
        return None
    if source in table.packed or target in table.packed:
        frame.error("E0313", "`rename` works on atomic axes only", node.span)
        return None
    return typed.rename(source, target, value, table, frame.place(node.span))


def elaborate_unpack(node: ast.Unpack, frame: Frame) -> list[Unpack] | None:
    """The fields of `unpack[C](x)`, over one common value."""
    value = expressions.elaborate_whole(node.operand, frame)
    axis = _one_axis("unpack", node.axes, node, frame)
    if value is None or axis is None:
        return None
    packed = frame.context.axes.packed.get(axis)
    if packed is None:
        frame.error(
            "E0313",
            f"axis `{axis}` is not packed and has no fields",
            node.axes[0].span,
            help="declare the fields: `axes C = q:(Hk K) | k:(Hk K)`",
        )
        return None
    if axis not in value.type.axes:
        frame.error(
            "E0313",
            f"the argument of `unpack` does not carry `{axis}`",
            node.operand.span,
            label=f"carries {show(value.type.axes)}",
        )
        return None
    others = set(value.type.axes) - {axis}
    for name, dim in packed.fields:
        clash = sorted(others.intersection(value_axes(dim)))
        if clash:
            frame.error(
                "E0313",
                f"field `{name}` of `{axis}` brings {show(clash)}, which is there already",
                node.operand.span,
                label=f"carries {show(value.type.axes)}",
            )
            return None
    return typed.unpack(packed, value, frame.context.axes, frame.place(node.span))


def _one_axis(word: str, names: tuple[ast.Name, ...], node: ast.Expr, frame: Frame) -> str | None:
    axes = [axis_of(name, frame) for name in names]
    if len(axes) == 1:
        return axes[0]
    frame.error("E0209", f"`{word}` takes one axis, got {len(axes)}", node.span)
    return None
