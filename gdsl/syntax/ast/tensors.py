"""Axes, dimensions and tensors of the syntax tree."""

from __future__ import annotations

from attrs import frozen

from gdsl.syntax.ast.base import Name, Node


@frozen
class AxisDim(Node):
    """A dimension that is an axis: atomic, composite or packed."""

    name: str


@frozen
class NumberDim(Node):
    """A dimension written as a number; only `1` has a meaning."""

    value: int


@frozen
class ProductDim(Node):
    """`(Hk G V)`: several dimensions as one, the last cycling fastest."""

    parts: tuple[Dim, ...]


Dim = AxisDim | NumberDim | ProductDim


@frozen
class Fact(Node):
    """A fact about an axis: `kind` is "at_most" or "multiple_of"."""

    kind: str
    value: int
    remainder: int = 0


@frozen
class Axis(Node):
    """An atomic axis."""

    name: Name
    facts: tuple[Fact, ...]


@frozen
class Composite(Node):
    """`Hv = (Hk G)`."""

    name: Name
    product: ProductDim


@frozen
class PackedField(Node):
    """`q:(Hk K)`."""

    name: Name
    dim: Dim


@frozen
class Packed(Node):
    """`C = q:(Hk K) | k:(Hk K)`."""

    name: Name
    fields: tuple[PackedField, ...]


@frozen
class Tensor(Node):
    """`f32[B, Hv, T]`: element type (a dtype or a dtype variable) and dimensions."""

    dtype: Name
    dims: tuple[Dim, ...]
