"""Projections of several tokens in front of a rule that goes token by token.

All tokens are projected into HBM first, as in front of a rule in chunks; windows and rule then read
them like tensors of the caller's. Weights come once for up to 512 tokens of the whole batch, and a
token of a layer is some kilobytes.
"""

from __future__ import annotations

from attrs import evolve, frozen

from backends.nki.contract import Contract
from backends.nki.program.build import Block
from backends.nki.program.nodes import Constant, Function
from backends.nki.schedules.block.sections import Convolution, Given, Port, Projection, Sections
from backends.nki.schedules.chunked.before import Before
from backends.nki.schedules.chunked.front import Front, names_of
from backends.nki.schedules.chunked.projected import (
    Projected,
    projected_of,
    read_by_rule,
    taken,
)
from backends.nki.schedules.chunked.runs import Part
from gdsl.algorithm.plan import Plan
from gdsl.ir.dtypes import Dtype
from gdsl.ir.node import Symbol


@frozen
class ProjectedTokens:
    """What is written to HBM before everything else."""

    plan: Plan
    entry: str
    """The batch axis."""
    token: str
    """The axis of tokens."""
    projected: tuple[Projected, ...]

    def write(
        self, main: Block, contract: Contract
    ) -> tuple[tuple[Function, ...], tuple[Constant, ...]]:
        """Add the statements; returns the functions and constants they need."""
        front = Front(self.plan, {}, {}, projected=self.projected)
        before = Before(contract, front, self.entry, self.token)
        main.names.taken |= {constant.name for constant in before.constants}
        before.write(main)
        return before.functions, before.constants


def through_hbm(plan: Plan, sections: Sections, token: str) -> tuple[Sections, ProjectedTokens]:
    """Return sections without projections, and what makes the tensors that stand for them.

    Raises CompileError for projections that are not of all tokens at once.
    """
    names = names_of(plan)
    read = read_by_rule(sections, names)
    seen: dict[tuple[Symbol, Part, Dtype], Projected] = {}

    def over(port: Port, projected: Projected) -> Port:
        own = evolve(port.field, packed=()) if projected.part else port.field
        return evolve(port, section=Given(projected.item), field=own)

    def windowed(convolution: Convolution) -> Convolution:
        source = convolution.token[0].section
        if not isinstance(source, Projection):
            return convolution
        part, dtype = taken(convolution), convolution.rounded or Dtype.F32
        key = source.symbol, part, dtype
        if key not in seen:
            seen[key] = projected_of(source, sections, names, dtype, part)
        return evolve(convolution, token=tuple(over(p, seen[key]) for p in convolution.token))

    left = evolve(
        sections,
        projections=(),
        convolutions=tuple(windowed(convolution) for convolution in sections.convolutions),
        values=tuple(
            evolve(value, port=over(value.port, read.ports[value.port]))
            if value.port in read.ports
            else value
            for value in sections.values
        ),
    )
    order = {section.symbol: place for place, section in enumerate(sections.projections)}
    made = sorted((*seen.values(), *read.tensors), key=lambda p: order[p.section.symbol])
    return left, ProjectedTokens(plan, sections.entry, token, tuple(made))
