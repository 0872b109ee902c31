"""What the names of a kernel stand for while it is cut: inputs, and the results of sections.

Only looked up and recorded here; the text is rewritten in `cut`.
"""

from __future__ import annotations

from attrs import define, field

from backends.nki.refusal import refuse
from backends.nki.schedules.block.sections import (
    Convolution,
    Field,
    Given,
    Port,
    Projection,
    Section,
)
from backends.nki.select.addressing import axes_of
from gdsl.ir.dims import Packed
from gdsl.ir.expr import Expr, Reduce, Ref
from gdsl.ir.kernel import Input, Kernel
from gdsl.ir.node import Symbol

_Part = tuple[str, tuple[tuple[str, str], ...], tuple[str, ...]]
"""A field on the way: its name, (packed axis, field) of each packed axis, its axes."""


@define(eq=False)
class Sources:
    """The sections of a kernel by the symbols of their results; inputs are there from the start."""

    kernel: Kernel
    rows: tuple[str, ...]
    """The axes the delta rule maps over: the entry, then its heads."""
    token: str | None
    """The axis of tokens; None in a kernel of one token."""
    by_symbol: dict[Symbol, Section] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.by_symbol = {item.symbol: Given(item) for item in self.kernel.inputs}

    @property
    def entry(self) -> str:
        """The batch axis."""
        return self.rows[0]

    def of(self, expr: Expr) -> Section | None:
        """What an expression is the result of; None where it is more than a name of one."""
        return self.by_symbol.get(expr.symbol) if isinstance(expr, Ref) else None

    def is_convolved(self, expr: Expr) -> bool:
        """Whether an expression is the sums over a window."""
        return isinstance(self.of(expr), Convolution)

    def is_taps(self, ref: Ref, packed: str) -> bool:
        """Whether a packed axis is that of a weight's taps, whose fields only windows use."""
        beside = {*ref.type.axes} - {packed, *self.rows}
        return isinstance(self.of(ref), Given) and self.entry not in ref.type.axes and bool(beside)

    def is_packed(self, expr: Expr) -> bool:
        """Whether a value has a packed axis."""
        return any(dim.name in expr.type.axes for dim in self.kernel.packed)

    # ---- the operands of a projection

    def weight(self, expr: Expr, axis: str) -> Input | None:
        """The tensor that is the weight of a contraction over `axis`: it has no entry axis."""
        section = self.of(expr)
        if not isinstance(section, Given) or self.entry in section.input.type.axes:
            return None
        return section.input if axis in section.input.type.axes else None

    def scale(self, total: Reduce, factor: Expr) -> Input | None:
        """The tensor with a number for each column of a projection, if `factor` is one.

        Columns that are heads alone have no place on partitions where it would apply: there the
        product stays in the text.
        """
        section = self.of(factor)
        columns = {*total.type.axes} - {self.entry, self.token}
        if not isinstance(section, Given) or {*section.input.type.axes} != columns:
            return None
        return section.input if columns - {*self.rows} else None

    def moving(self, expr: Expr) -> Input | Port | None:
        """What a weight can be multiplied with: an input, or what a projection gave."""
        section = self.of(expr)
        if isinstance(section, Given):
            return section.input
        if isinstance(expr, Ref) and isinstance(section, Projection):
            return self.port(expr, ())
        return None

    # ---- fields

    def port(self, ref: Ref, packed: tuple[tuple[str, str], ...], *, silu: bool = False) -> Port:
        """Return one field of what a name stands for. Raises CompileError where there is none."""
        section = self.by_symbol[ref.symbol]
        match section:
            case Given(input=item):
                fields = self.fields(item, (self.entry, self.token), ref.symbol.name)
            case Projection(weight=item, axis=axis):
                fields = self.fields(item, (axis,), ref.symbol.name)
            case Convolution(fields=fields):
                pass
        for part in fields:
            if part.packed == packed:
                return Port(section, part, silu)
        raise refuse(f"`{ref.symbol.name}` has no such field", ref.span)

    def axes(self, port: Port) -> set[str]:
        """Return the axes of the value of a port."""
        part, section = port.field, port.section
        around = {self.entry, self.token} - {None}
        if isinstance(section, Given):
            around &= set(section.input.type.axes)
        return {axis for axis in (*around, *part.heads, part.wide) if axis is not None}

    def fields(self, tensor: Input, around: tuple[str | None, ...], name: str) -> tuple[Field, ...]:
        """Return the fields of a tensor's channels: of all its axes but those `around` them.

        Raises CompileError where a field has two axes beside heads.
        """
        packed = {dim.name: dim for dim in self.kernel.packed}
        parts: list[_Part] = [(name, (), ())]
        for axis in (axis for axis in tensor.type.axes if axis not in around):
            dim = packed.get(axis)
            if dim is None:
                parts = [(n, p, (*axes, axis)) for n, p, axes in parts]
            else:
                parts = _split(parts, dim)
        return tuple(self._field(part, tensor) for part in parts)

    def _field(self, part: _Part, tensor: Input) -> Field:
        name, packed, axes = part
        heads = tuple(axis for axis in self.rows if axis in axes)
        wide = [axis for axis in axes if axis not in heads]
        if len(wide) > 1:
            raise refuse(
                f"`{tensor.name}` has the axes `{wide[0]}` and `{wide[1]}` beside heads; a section "
                "has room for one",
                tensor.span,
            )
        return Field(name, heads, wide[0] if wide else None, packed)


def _split(parts: list[_Part], dim: Packed) -> list[_Part]:
    """Each part, for each field of a packed axis."""
    return [
        (name, (*packed, (dim.name, name)), (*axes, *axes_of((inner,))))
        for _, packed, axes in parts
        for name, inner in dim.fields
    ]
