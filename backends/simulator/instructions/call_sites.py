"""Instruction calls known by where they stand: the short way of shape-only runs.

A kernel's line issues the same instruction with the same layouts and constants again and again. The
first time takes the whole way of `issue.py`, which checks every rule; what it found is kept by call
site, layouts and constants, and the next call with all of these equal has only to be recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from types import CodeType
from typing import Any

from attrs import frozen

from backends.isa.trace import Attribute
from backends.simulator.instructions.enums import ENUMS
from backends.simulator.instructions.plans import Key, Plan
from backends.simulator.layouts import Layout
from backends.simulator.location import Location
from backends.simulator.record_template import Slot, Template
from backends.simulator.tensor import NkiTensor
from backends.simulator.tokens import OpToken

_Getter = Callable[[Mapping[str, Any]], tuple[Any, ...]]
_PLAIN = frozenset({OpToken, type(None), str, int, float, bool, *ENUMS.values()})
_NUMBERS = frozenset({int, float, bool})


class CallSite:
    """A call in a kernel's text whose arguments all have keywords, and which of them are tiles."""

    __slots__ = ("code", "constants", "count", "groups", "names", "place", "take_groups", "tiles")

    def __init__(self, code: CodeType, place: Location, kwargs: Mapping[str, Any]) -> None:
        self.code = code
        self.place = place
        self.count = len(kwargs)
        self.names = tuple(k for k, value in kwargs.items() if type(value) is NkiTensor)
        """Keywords of the tiles."""
        others = tuple(k for k in kwargs if k not in self.names)
        self.groups = tuple(k for k in others if type(kwargs[k]) is tuple)
        """Constants that are tuples: their members' types count too."""
        self.tiles = _getter(self.names)
        self.constants = _getter(others)
        self.take_groups = _getter(self.groups)

    def key(self, tiles: tuple[NkiTensor, ...], kwargs: Mapping[str, Any]) -> Key:
        """Return what decides the fate of a call.

        Types stand next to values: 1, 1.0 and True are equal but not the same constant to a rule.
        """
        constants = self.constants(kwargs)
        types = tuple(map(type, constants))
        layouts = tuple([tile._layout or tile.layout for tile in tiles])
        if self.groups:
            groups = tuple([tuple(map(type, group)) for group in self.take_groups(kwargs)])
            return (self, constants, types, layouts, groups)
        return (self, constants, types, layouts)

    def says_all(self, kwargs: Mapping[str, Any]) -> bool:
        """Whether the key of this call holds everything that a rule may look at."""
        return all(
            name in self.names and value.dynamic is None
            if type(value) is NkiTensor
            else name in self.groups and all(type(item) in _NUMBERS for item in value)
            if type(value) is tuple
            else type(value) in _PLAIN
            for name, value in kwargs.items()
        )


@frozen(eq=False)
class Known:
    """A checked call: its record, and for a matmul that which accumulates."""

    template: Template
    adding: Template | None = None
    """Of a matmul only."""
    accumulate: bool | None = None
    destination: int = 0
    """Which tile a matmul writes."""

    def chosen(self, tiles: tuple[NkiTensor, ...]) -> Template:
        """Return a matmul's template; one that was not told looks whether there is a sum."""
        assert self.adding is not None
        storage = tiles[self.destination].storage
        adds = storage.written if self.accumulate is None else self.accumulate
        storage.written = True
        return self.adding if adds else self.template


def known_call(site: CallSite, plan: Plan, layouts: tuple[Layout, ...]) -> Known:
    """Return what is left of a plan at its call site."""
    reads = tuple((operand, site.names.index(str(place))) for operand, place in plan.reads)
    writes = tuple((operand, site.names.index(str(place))) for operand, place in plan.writes)

    def template(reads: tuple[Slot, ...], attributes: Mapping[str, Attribute]) -> Template:
        name = plan.row.name
        return Template(
            plan.engine, name, reads, writes, layouts, site.place, plan.name, attributes
        )

    if plan.row.name != "nc_matmul":
        return Known(template(reads, plan.attributes))
    return Known(
        template(reads, {**plan.attributes, "accumulate": False}),
        template(reads + writes, {**plan.attributes, "accumulate": True}),
        plan.values["accumulate"],
        writes[0][1],
    )


def _getter(names: tuple[str, ...]) -> _Getter:
    """Return a function that takes the values of `names` from a mapping; KeyError for a missing."""
    if not names:
        return lambda _: ()
    if len(names) == 1:
        (name,) = names
        return lambda given: (given[name],)
    return itemgetter(*names)
