"""`nki.isa` functions as callables: each hands its call to the instruction layer.

Shape-only runs remember checked calls by call site (`instructions/call_sites.py`). All else, and
every call that is not known, goes the whole way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from sys import _getframe
from types import FrameType
from typing import Any

from backends.simulator.instructions.call_sites import CallSite, known_call
from backends.simulator.instructions.issue import SPECIAL, issue
from backends.simulator.instructions.plans import key_of
from backends.simulator.location import at_frame
from backends.simulator.machine import Machine, current


def instruction(name: str) -> Callable[..., Any]:
    """Return the function `nki.isa.<name>`."""
    sites: dict[tuple[int, int], CallSite] = {}

    def call(*args: Any, **kwargs: Any) -> Any:
        machine = current()
        if args or not machine.short or machine.recorder.ordered:
            return issue(machine, name, args, kwargs)
        frame = _getframe(1)
        code = frame.f_code
        site = sites.get((id(code), frame.f_lasti))
        if site is None or site.code is not code or site.count != len(kwargs):
            return first_call(machine, frame, kwargs)
        try:
            tiles = site.tiles(kwargs)
            key = site.key(tiles, kwargs)
            known = machine.known.get(key)
        except (AttributeError, KeyError, TypeError):  # other arguments than the last time
            return issue(machine, name, (), kwargs)
        if known is None:
            return remember(machine, site, key, kwargs)
        recorder = machine.recorder
        ends = recorder.touch(tiles)
        if ends is None:
            return issue(machine, name, (), kwargs)
        template = known.template if known.adding is None else known.chosen(tiles)
        return recorder.add_short(template, ends)

    def first_call(machine: Machine, frame: FrameType, kwargs: Mapping[str, Any]) -> Any:
        """Execute a call of a new site."""
        place = at_frame(frame)
        if place is not None and name not in SPECIAL:
            code = frame.f_code
            sites[id(code), frame.f_lasti] = CallSite(code, place, kwargs)
        return issue(machine, name, (), kwargs)

    def remember(machine: Machine, site: CallSite, key: Any, kwargs: Mapping[str, Any]) -> Any:
        """Execute a call whose key is new."""
        handle = issue(machine, name, (), kwargs)
        if site.says_all(kwargs):
            plan = machine.plans[key_of(name, (), kwargs)]
            layouts = tuple(tile.layout for tile in site.tiles(kwargs))
            machine.known[key] = known_call(site, plan, layouts)
        return handle

    call.__name__ = call.__qualname__ = name
    return call
