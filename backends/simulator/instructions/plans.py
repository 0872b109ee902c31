"""Checked calls that can be used again: same instruction, same layouts, same constants.

Kernels issue the same few calls many thousand times. What the rules look at is part of the key, so
a call whose key is known needs no checking, only its tiles put in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from backends.isa.schema import Engine, Instruction
from backends.isa.trace import Attribute
from backends.simulator.instructions.attributes import attributes
from backends.simulator.instructions.call import BoundCall
from backends.simulator.instructions.movement_rules import KEEP
from backends.simulator.instructions.short_calls import TILES
from backends.simulator.layouts import Layout
from backends.simulator.location import Location
from backends.simulator.record_template import Slot, Template
from backends.simulator.tensor import NkiTensor

if TYPE_CHECKING:
    from backends.simulator.machine import Machine


@frozen(eq=False)
class Plan:
    """A call that passed every rule."""

    row: Instruction
    engine: Engine
    values: Mapping[str, Any]
    """Converted arguments but the tiles."""
    tiles: tuple[str, ...]
    """Arguments that are tiles, in the order of `short_calls.TILES`."""
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    attributes: Mapping[str, Attribute]
    name: str | None
    warnings: Sequence[tuple[str, str]] = ()
    """Codes and messages of what the rules warned about."""

    def views(self, given: Mapping[str, Any]) -> list[NkiTensor]:
        """The tiles of another call with the same key."""
        return [given[name] for name in self.tiles]

    def call(self, machine: Machine, given: Mapping[str, Any]) -> BoundCall:
        """Another call with the same key, bound."""
        values = dict(self.values)
        for name in self.tiles:
            values[name] = given[name]
        call = BoundCall(self.row, values, machine)
        call.engine = self.engine
        return call

    def template(self, place: Location, layouts: Sequence[Layout], *, strict: bool) -> Template:
        """Return what the records of such calls on one kernel line share.

        `layouts` are those of `tiles`. With `strict` a matmul that is told to accumulate needs the
        sum that an earlier one wrote.
        """
        known = Template(
            self.engine,
            self.row.name,
            self._slots(self.reads),
            self._slots(self.writes),
            tuple(layouts),
            place,
            self.name,
            self.attributes,
        )
        if self.row.name != "nc_matmul":
            return known
        # A matmul reads its destination when it accumulates, which `None` leaves to the moment.
        asked = self.values["accumulate"]
        adding = evolve(
            known,
            reads=known.reads + known.writes,
            attributes={**self.attributes, "accumulate": True},
        )
        if asked:
            return evolve(adding, adds=strict)
        alone = evolve(known, attributes={**self.attributes, "accumulate": False})
        return alone if asked is False else evolve(alone, adding=adding)

    def _slots(self, names: Sequence[str]) -> tuple[Slot, ...]:
        return tuple([(name, self.tiles.index(name)) for name in names])


def plan_of(
    call: BoundCall, given: Mapping[str, Any], warnings: Sequence[tuple[str, str]] = ()
) -> Plan:
    """Return the plan of a call that was checked."""
    sometimes = KEEP in call.values.get("shuffle_mask", ())
    kept = [
        param.name
        for param in call.row.params
        if param.keeps == "always" or (param.keeps == "sometimes" and sometimes)
    ]
    return Plan(
        row=call.row,
        engine=call.engine,
        # Not the tiles, which would keep the bytes of the first call alive.
        values={name: v for name, v in call.values.items() if not isinstance(v, NkiTensor)},
        tiles=tuple([name for name in TILES[call.row.name] if type(given.get(name)) is NkiTensor]),
        reads=(*call.read(), *kept),
        writes=tuple(call.written()),
        attributes=attributes(call),
        name=call["name"],
        warnings=warnings,
    )
