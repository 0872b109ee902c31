"""The layouts, the tables of operators, and where inputs come from."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from attrs import frozen

from backends.nki.program.build import Block
from backends.nki.program.nodes import BF16, F16, F32, Element, Token, View
from backends.nki.program.numbers import ZERO, Number


class Layout(Enum):
    """What lies on partitions; the value is the suffix of tile names."""

    ROWS = "sb"
    KEYS = "T_sb"
    TOKENS = "tile"
    """The tokens of a chunk; several chunks or heads side by side along the free axis."""


class Source(Protocol):
    """Where a leaf of the inputs comes from."""

    @property
    def key_major(self) -> bool:
        """Whether the key axis belongs on partitions."""

    @property
    def element(self) -> Element:
        """The tensor's element type."""

    def load(self, block: Block, dst: View, layout: Layout, first_key: Number = ZERO) -> None:
        """Bring the leaf's values for the rows of the tile into `dst`, keys from `first_key` on."""


@frozen
class Placed:
    """A leaf that lies on chip already, where another section left it."""

    view: View
    """The rows of the tile of rows at hand."""
    layout: Layout
    """KEYS: its wide axis, whichever it is, lies on partitions."""
    key_major: bool


BINARY = {
    "add": "nl.add",
    "sub": "nl.subtract",
    "max": "nl.maximum",
    "min": "nl.minimum",
    "lt": "nl.less",
    "le": "nl.less_equal",
    "gt": "nl.greater",
    "ge": "nl.greater_equal",
    "eq": "nl.equal",
    "ne": "nl.not_equal",
}
"""Operators of VectorE's two-operator instructions."""
ACTIVATIONS = {
    "exp": "nl.exp",
    "log": "nl.log",
    "tanh": "nl.tanh",
    "softplus": "nl.softplus",
    "sigmoid": "nl.sigmoid",
    "silu": "nl.silu",
}
"""Operators of ScalarE: func(data * scale + bias)."""
FOLDS = {"sum": "nl.add", "max": "nl.maximum", "min": "nl.minimum"}
ROUNDED = {"bf16": BF16, "f16": F16, "f32": F32}
MULTIPLY = "nl.multiply"
VECTOR, SCALAR = Token("nisa.engine.vector"), Token("nisa.engine.scalar")
GPSIMD, TENSOR = Token("nisa.engine.gpsimd"), Token("nisa.engine.tensor")
