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
from backends.nki.schedules.block.sections import Given, Port, Projection, Sections
from backends.nki.schedules.chunked.before import Before
from backends.nki.schedules.chunked.front import Front, Projected, names_of, projected_of
from gdsl.algorithm.plan import Plan


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
    made = {s.symbol: projected_of(s, sections, names) for s in sections.projections}

    def over(port: Port) -> Port:
        if not isinstance(port.section, Projection):
            return port
        return evolve(port, section=Given(made[port.section.symbol].item))

    left = evolve(
        sections,
        projections=(),
        convolutions=tuple(
            evolve(c, token=tuple(over(port) for port in c.token)) for c in sections.convolutions
        ),
        values=tuple(evolve(value, port=over(value.port)) for value in sections.values),
    )
    read = {port.section.input.name for port in left.ports if isinstance(port.section, Given)}
    projected = tuple(p for p in made.values() if p.item.name in read)
    return left, ProjectedTokens(plan, sections.entry, token, projected)
