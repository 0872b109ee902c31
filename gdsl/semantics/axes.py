"""The axes of a kernel: atomic, composite and packed, and the dimensions of its tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from attrs import define, field

from gdsl.diagnostics.diagnostic import Label
from gdsl.ir.dims import Atom, Axis, Dim, Packed, Product, Unit
from gdsl.semantics.measure import I32_MAX
from gdsl.semantics.report import Reporter
from gdsl.source import Span
from gdsl.suggest import did_you_mean
from gdsl.syntax import ast


@define
class AxisTable:
    """Axes by name. `rank` orders the axes that values carry as the text declares them."""

    atomic: dict[str, Axis] = field(factory=dict)
    composites: dict[str, Product] = field(factory=dict)
    packed: dict[str, Packed] = field(factory=dict)
    spans: dict[str, Span] = field(factory=dict)
    rank: dict[str, int] = field(factory=dict)
    used: set[str] = field(factory=set)

    def ordered(self, axes: Iterable[str]) -> tuple[str, ...]:
        """Return distinct axes in declaration order."""
        return tuple(sorted(set(axes), key=lambda axis: self.rank[axis]))

    def names(self) -> Iterator[str]:
        """Yield every axis name."""
        return iter(self.spans)


def declare(items: Iterable[ast.KernelItem], reporter: Reporter) -> AxisTable:
    """Return the axes of a kernel; parts may be declared before or after what they are part of."""
    table = AxisTable()
    nodes: dict[str, ast.Axis | ast.Composite | ast.Packed] = {}
    for item in items:
        if not isinstance(item, ast.Axes):
            continue
        for node in item.axes:
            name = node.name.text
            message = f"axis `{name}` is declared twice"
            if not reporter.is_first(table.spans, name, node.name.span, message):
                continue
            nodes[name] = node
            table.rank[name] = len(table.rank)
            if isinstance(node, ast.Axis):
                table.atomic[name] = _atomic(node, reporter)
    resolver = _Resolver(table, nodes, reporter)
    for name, node in nodes.items():
        if not isinstance(node, ast.Axis):
            resolver.resolve(name, node.name.span)
    return table


def _atomic(node: ast.Axis, reporter: Reporter) -> Axis:
    at_most: int | None = None
    multiple_of = 1
    for fact in node.facts:
        largest = max(fact.value, fact.remainder)
        if largest > I32_MAX:
            reporter.error("E0108", f"the size {largest} does not fit an axis", fact.span)
        elif fact.value == 0:
            reporter.error(
                "E0210",
                f"no size of axis `{node.name.text}` meets this",
                fact.span,
                help="sizes are 1 or more",
            )
        elif fact.remainder:
            reporter.error(
                "E0210",
                "only divisibility can be stated",
                fact.span,
                help=f"write `% {fact.value} == 0`",
            )
        elif fact.kind == "at_most":
            at_most = fact.value
        else:
            multiple_of = fact.value
    return Axis(node.name.text, at_most, multiple_of, span=node.span)


@define
class _Resolver:
    """Composite and packed axes, which may be made of one another but not of themselves."""

    table: AxisTable
    nodes: dict[str, ast.Axis | ast.Composite | ast.Packed]
    reporter: Reporter
    open: list[str] = field(factory=list)
    failed: set[str] = field(factory=set)

    def resolve(self, name: str, span: Span) -> None:
        """Enter a composite or packed axis into the table."""
        if name in self.table.composites or name in self.table.packed or name in self.failed:
            return
        if name in self.open:
            self.reporter.error("E0210", f"axis `{name}` is part of itself", span)
            self.failed.update(self.open)
            return
        self.open.append(name)
        node = self.nodes[name]
        match node:
            case ast.Composite():
                dim = self._dim(node.product)
                if isinstance(dim, Product):
                    self.table.composites[name] = dim
            case ast.Packed():
                self._packed(node)
            case ast.Axis():
                pass
            case _:
                assert_never(node)
        if name not in self.table.composites and name not in self.table.packed:
            self.failed.add(name)
        self.open.pop()

    def _packed(self, node: ast.Packed) -> None:
        names: dict[str, Span] = {}
        fields: list[tuple[str, Dim]] = []
        complete = True
        for item in node.fields:
            name = item.name
            message = f"axis `{node.name.text}` has two fields `{name.text}`"
            complete &= self.reporter.is_first(names, name.text, name.span, message)
            dim = self._dim(item.dim)
            if dim is None:
                complete = False
            else:
                fields.append((item.name.text, dim))
        if complete:
            self.table.packed[node.name.text] = Packed(
                node.name.text, tuple(fields), span=node.span
            )

    def _dim(self, node: ast.Dim) -> Dim | None:
        for name, span in _axis_names(node):
            if name in self.nodes and not isinstance(self.nodes[name], ast.Axis):
                self.resolve(name, span)
                if name in self.failed:
                    return None
        return dimension(node, self.table, self.reporter)


def _axis_names(node: ast.Dim) -> Iterator[tuple[str, Span]]:
    match node:
        case ast.AxisDim():
            yield node.name, node.span
        case ast.ProductDim():
            for part in node.parts:
                yield from _axis_names(part)
        case ast.NumberDim():
            pass
        case _:
            assert_never(node)


def dimension(node: ast.Dim, table: AxisTable, reporter: Reporter) -> Dim | None:
    """Return a dimension, products flattened; None when it was reported."""
    match node:
        case ast.NumberDim(value=1):
            return Unit(span=node.span)
        case ast.NumberDim():
            reporter.error(
                "E0311",
                f"a dimension cannot be the number {node.value}",
                node.span,
                help="name it: declare an axis in `axes` and write its name; only `1` is a number",
            )
            return None
        case ast.AxisDim():
            return _axis_dimension(node, table, reporter)
        case ast.ProductDim():
            parts: list[Dim] = []
            for part in node.parts:
                dim = dimension(part, table, reporter)
                if dim is None:
                    return None
                parts.extend(dim.parts if isinstance(dim, Product) else (dim,))
            kept = tuple(part for part in parts if not isinstance(part, Unit))
            return Product(kept, span=node.span) if len(kept) > 1 else (*kept, parts[0])[0]
        case _:
            assert_never(node)


def _axis_dimension(node: ast.AxisDim, table: AxisTable, reporter: Reporter) -> Dim | None:
    name = node.name
    table.used.add(name)
    if name in table.atomic:
        return Atom(name, span=node.span)
    if name in table.composites:
        table.used.update(value_axes(table.composites[name]))
        return table.composites[name]
    if name in table.packed:
        return table.packed[name]
    if name not in table.spans:
        unknown_axis(name, node.span, table.names(), reporter)
    return None


def unknown_axis(name: str, span: Span, known: Iterable[str], reporter: Reporter) -> None:
    """Report an axis that is not declared."""
    names = sorted(known)
    reporter.error(
        "E0201",
        f"unknown axis `{name}`{did_you_mean(name, names)}",
        span,
        label="not declared",
        notes=(f"axes known here: {', '.join(names)}",) if names else (),
        help=None if names else f"declare it: `axes {name}`",
    )


def dimensions(node: ast.Tensor, table: AxisTable, reporter: Reporter) -> tuple[Dim, ...] | None:
    """Return the dimensions of a tensor; None when something in them was reported."""
    dims = [dimension(dim, table, reporter) for dim in node.dims]
    known = [dim for dim in dims if dim is not None]
    if len(known) < len(dims):
        return None
    seen: dict[str, Span] = {}
    for dim, written in zip(known, node.dims, strict=True):
        for axis in value_axes(dim):
            if axis in seen:
                reporter.error(
                    "E0305",
                    f"axis `{axis}` stands twice in this tensor",
                    written.span,
                    label="again here",
                    labels=(Label(seen[axis], "first here"),),
                    help="a second axis of the same size needs a name of its own",
                )
                return None
            seen[axis] = written.span
    return tuple(known)


def value_axes(dim: Dim) -> tuple[str, ...]:
    """Return the axes a value with this dimension carries; a packed axis is one of them."""
    match dim:
        case Unit():
            return ()
        case Atom(axis=axis):
            return (axis,)
        case Packed(name=name):
            return (name,)
        case Product(parts=parts):
            return tuple(axis for part in parts for axis in value_axes(part))
        case _:
            assert_never(dim)


def show(axes: Iterable[str]) -> str:
    """Return axes as messages show them: `[K, V]`."""
    return f"[{', '.join(axes)}]"
