"""Constant tiles of a kernel, made on chip once, before the rows are processed."""

from __future__ import annotations

from attrs import define, field

from backends.nki.program.build import Block, part
from backends.nki.program.nodes import F32, Element, Integers, Token, View
from backends.nki.program.numbers import ONE, Literal, Number

PARTITIONS = 128


@define
class Constants:
    """Makes each constant tile the first time it is asked for."""

    block: Block
    """Made on chip, before anything else."""
    loads: Block
    """Brought in once, after the first rows and states are on their way."""
    _ones: View | None = None
    _identity: View | None = None
    _columns: dict[Number, View] = field(factory=dict)
    _zeros: dict[tuple[tuple[Number, ...], Element], View] = field(factory=dict)

    def ones(self) -> View:
        """All ones, [128, 128]: as a stationary it adds over partitions."""
        if self._ones is None:
            self._ones = self.block.tile("ones_sb", (PARTITIONS, PARTITIONS), F32)
            self.block.do("memset", dst=self._ones, value=Literal(1.0))
        return self._ones

    def identity(self) -> View:
        """The identity, [128, 128]; its column h, repeated, picks row h of a moving tile."""
        if self._identity is None:
            ones = self.ones()
            self._identity = self.block.tile("identity_sb", (PARTITIONS, PARTITIONS), F32)
            self.block.do(
                "affine_select",
                dst=self._identity,
                pattern=Integers(((Literal(-1), Literal(PARTITIONS)),)),
                channel_multiplier=ONE,
                on_true_tile=ones,
                on_false_value=Literal(0.0),
                cmp_op=Token("nl.equal"),
            )
        return self._identity

    def zeros(self, shape: tuple[Number, ...], element: Element) -> View:
        """Zeros, for tensors that get some."""
        if (shape, element) not in self._zeros:
            zeros = self._zeros[shape, element] = self.block.tile("zeros_sb", shape, element)
            self.block.do("memset", dst=zeros, value=Literal(0.0))
        return self._zeros[shape, element]

    def warm(self, function: Token) -> None:
        """Load ScalarE's table of a function while the first transfers are on their way."""
        warm = self.loads.tile("warm_sb", (PARTITIONS, 1), F32)
        self.loads.comment(
            "Loads ScalarE's function table while the first transfers are under way."
        )
        self.loads.do("activation", dst=warm, op=function, data=part(self.ones(), None, (0, 1)))

    def column(self, value: Number, at_least: Number) -> View:
        """A number as a column of `at_least` partitions."""
        if value not in self._columns:
            column = self.block.tile("constant_sb", (PARTITIONS, 1), F32)
            self.block.do("memset", dst=column, value=value)
            self._columns[value] = column
        return part(self._columns[value], (0, at_least), None)
