"""Dtypes of tensors: `dtypes` lines, and what the dtype of a declaration stands for."""

from __future__ import annotations

from gdsl.ir import interval as iv
from gdsl.ir.dims import Dim
from gdsl.ir.dtypes import Dtype
from gdsl.ir.types import ANY, DtypeVar, Interval, Type
from gdsl.semantics.axes import value_axes
from gdsl.semantics.frame import Binding, Frame, Kind
from gdsl.suggest import did_you_mean
from gdsl.syntax import ast


def read_dtypes(items: tuple[ast.KernelItem, ...], frame: Frame) -> dict[str, DtypeVar]:
    """Return the dtype variables by name."""
    found: dict[str, DtypeVar] = {}
    for item in items:
        if not isinstance(item, ast.Dtypes):
            continue
        choices = tuple(dict.fromkeys(Dtype(choice.text) for choice in item.choices))
        if len(choices) < len(item.choices):
            frame.error("E0210", "a dtype stands twice in this list", item.choices[-1].span)
        for choice in item.choices:
            dtype = Dtype(choice.text)
            if not dtype.is_float or dtype.only_read:
                frame.error(
                    "E0308",
                    f"a dtype variable stands for f32, bf16 or f16, not {choice.text}",
                    choice.span,
                    help=f"write `{choice.text}` at the tensors that have it",
                )
        if frame.define(Binding(item.name.text, Kind.DTYPE, item.name.span, None)):
            found[item.name.text] = DtypeVar(item.name.text, choices)
    return found


def element_type(
    node: ast.Tensor, variables: dict[str, DtypeVar], frame: Frame, *, written: bool = False
) -> Dtype | DtypeVar | None:
    """Return a tensor's dtype or dtype variable; `written`: of a tensor the kernel writes."""
    name = node.dtype.text
    dtypes = {dtype.value: dtype for dtype in Dtype}
    if written and name in dtypes and dtypes[name].only_read:
        frame.error(
            "E0308",
            f"{name} is a dtype of inputs only",
            node.dtype.span,
            label="expected f32, bf16 or f16",
            help=f"a value is rounded to it by `{name}(...)`",
        )
        return None
    if name in dtypes:
        return dtypes[name]
    if name in variables:
        frame.bindings[name].used = True
        return variables[name]
    known = (*dtypes, *variables)
    frame.error(
        "E0201",
        f"unknown dtype `{name}`{did_you_mean(name, known)}",
        node.dtype.span,
        label="not a dtype",
        notes=(f"known here: {', '.join(known)}",),
        help=f"to let the caller choose, declare `dtypes {name} in bf16, f16, f32`",
    )
    return None


def tensor_type(
    dims: tuple[Dim, ...], dtype: Dtype | DtypeVar, known: Interval | None, frame: Frame
) -> Type:
    """Return the type of a value read from a tensor."""
    axes = frame.context.axes.ordered(axis for dim in dims for axis in value_axes(dim))
    anything = iv.BOOLEAN if dtype is Dtype.BOOL else ANY
    return Type(axes, dtype, anything if known is None else known)
