"""Functions that issue an instruction without checking it again: one per row, written from the row.

A kernel's line issues the same instruction with the same layouts and constants again and again. The
first time takes the whole way of `issue.py`, which checks every rule; what it found is kept under a
key of all that a rule may look at, and the next call with an equal key has only to be recorded.

A function that takes its arguments by their names costs a fraction of one that looks for them in a
mapping, so these are written out as Python text from the row, as class libraries write `__init__`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from marshal import dumps
from sys import _getframe
from types import FrameType
from typing import Any

from backends.isa.instructions import INSTRUCTIONS
from backends.isa.schema import TILE_KINDS, WRITTEN_KINDS, Instruction, Kind, Param
from backends.simulator.accumulation import settled
from backends.simulator.instructions.enums import ENUMS
from backends.simulator.machine import running
from backends.simulator.recorder import Issued
from backends.simulator.tensor import NkiTensor
from backends.simulator.tokens import OpToken

Key = tuple[Hashable, ...]
Later = Callable[[FrameType, tuple[Any, ...], Mapping[str, Any]], Any]
"""What executes a call that is not known: the caller's frame and all arguments."""


class _Missing:
    """The value of an argument that a call leaves out."""

    def __repr__(self) -> str:
        return "..."


MISSING = _Missing()
_PLAIN = {
    NkiTensor,
    int,
    float,
    bool,
    list,
    tuple,
    OpToken,
    _Missing,
    type(None),
    str,
    *ENUMS.values(),
}
_LIST_KINDS = frozenset({Kind.PATTERN, Kind.INTEGERS, Kind.NUMBERS})
_NUMBER_OR_TILE = frozenset({Kind.OPERAND, Kind.IN_OR_NUMBER})
_EXACT_KINDS = frozenset({Kind.OPERATOR, Kind.FUNCTION, Kind.FLAG})
"""Kinds whose values mean the same when they are equal."""

_TOUCH = """
{indent}{use} = {tile}.storage.allocation
{indent}if {use}.last < 0:
{indent}    {use}.born = now
{indent}{use}.last = now"""
_CHECK = """
{indent}if recorder.looped:
{indent}    recorder.check_loops({uses})"""
_CELLS = """
{indent}recorder.cells += ({cells})"""
_WRITE = """
{indent}{tile}.storage.written = True"""
_SETTLE = """
    if template.engine == "tensor":
        if template.adds or template.adding:
            template = settled(template, dst)
        dst.storage.sums[dst.layout, dst.offset] = None"""
_TEXT = """
def {name}(*args, {parameters}, **others):
    frame = _getframe(1)
    try:
        machine = running()
        template = machine.templates[id(frame.f_code), frame.f_lasti, {key}]
    except (AttributeError, KeyError, TypeError, ValueError):
        template = None
    if template is None or args or others{named}:
        given = {{{given}}}
        return later(frame, args, {{k: v for k, v in given.items() if v is not MISSING}} | others)
    recorder = machine.recorder
    log = recorder.log
    now = len(log){touches}
    issued = new(Issued)
    issued.recorder = recorder
    issued.index = now
    issued.template = template
    log.append(issued)
    return issued

def key(frame, {parameters}):
    return (id(frame.f_code), frame.f_lasti, {key})
"""


class ShortCall:
    """The function of one instruction, and what it knows calls by."""

    def __init__(self, row: Instruction, later: Later) -> None:
        names = {
            "_getframe": _getframe,
            "dumps": dumps,
            "running": running,
            "later": later,
            "new": object.__new__,
            "Issued": Issued,
            "NkiTensor": NkiTensor,
            "MISSING": MISSING,
            "settled": settled,
        }
        parameters = [param.name for param in row.params]
        values: dict[str, Any] = {}
        text = _TEXT.format(
            name=row.name,
            parameters=", ".join(f"{name}=MISSING" for name in parameters),
            key=", ".join((repr(row.name), *map(_key_text, row.params))),
            given=", ".join(f"{name!r}: {name}" for name in parameters),
            named=" or name is not MISSING" if "name" in parameters else "",
            touches=_touches(row),
        )
        exec(compile(text, f"<call of {row.name}>", "exec"), names, values)
        self.function: Callable[..., Any] = values[row.name]
        self._key: Callable[..., Key] = values["key"]

    def key(self, frame: FrameType, given: Mapping[str, Any]) -> Key | None:
        """Return what decides the fate of a call from `frame`; None when no key says it all.

        Types stand next to numbers: 1, 1.0 and True are equal but not the same to a rule.
        """
        if not all(type(value) in _PLAIN for value in given.values()):
            return None
        try:
            return self._key(frame, **given)
        except (AttributeError, TypeError, ValueError):
            return None


def _always_a_tile(param: Param) -> bool:
    return param.required and param.kind in TILE_KINDS and param.kind not in _NUMBER_OR_TILE


TILES: Mapping[str, tuple[str, ...]] = {
    row.name: tuple(
        [param.name for param in row.params if _always_a_tile(param)]
        + [p.name for p in row.params if p.kind in TILE_KINDS and not _always_a_tile(p)]
    )
    for row in INSTRUCTIONS.values()
}
"""The arguments of an instruction that may be tiles, in the order in which records number them."""


def _key_text(param: Param) -> str:
    """Return what an argument puts into the key, as Python text."""
    name = param.name
    if _always_a_tile(param):
        return f"{name}.layout.rules"
    if param.kind in TILE_KINDS:
        return f"{name}.layout.rules if type({name}) is NkiTensor else {name}, type({name})"
    if param.kind in _LIST_KINDS:
        return f"{name} if {name} is MISSING else dumps({name}, 2)"
    if param.kind in _EXACT_KINDS:
        return name
    if param.kind is Kind.NAME:
        return "None"  # a name is no rule's business
    return f"{name}, type({name})"


def _touches(row: Instruction) -> str:
    """Return what is noted of the tiles of a call, as Python text."""
    always = [name for name in TILES[row.name] if _always_a_tile(row.by_name[name])]
    text = _touch(row, always, "    ")
    for name in TILES[row.name][len(always) :]:
        text += f"\n    if type({name}) is NkiTensor:" + _touch(row, [name], "        ")
    return text + (_SETTLE if any(use.engine == "tensor" for use in row.engines) else "")


def _touch(row: Instruction, tiles: Sequence[str], indent: str) -> str:
    """Return what is noted of some tiles together, as Python text."""
    uses = [f"use_{name}" for name in tiles]
    text = ""
    for name, use in zip(tiles, uses, strict=True):
        text += _TOUCH.format(indent=indent, use=use, tile=name)
    text += _CHECK.format(indent=indent, uses=", ".join(uses))
    cells = [f"{use}.number, {name}.offset" for name, use in zip(tiles, uses, strict=True)]
    text += _CELLS.format(indent=indent, cells=", ".join(cells))
    for name in tiles:
        param = row.by_name[name]
        if param.kind in WRITTEN_KINDS and "hbm" in param.spaces:
            text += _WRITE.format(indent=indent, tile=name)
    return text
