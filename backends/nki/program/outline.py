"""Turning blocks of statements into functions: what they need becomes parameters, what others
need of them is returned.

Names are unique over a program, so a tile is called the same in the function that makes it and in
those that use it. Several tiles travel as one tuple (a `Pack`), unpacked where they are used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from attrs import frozen

from backends.nki.program.mentions import bound, mentions, numbers_in
from backends.nki.program.nodes import (
    Function,
    Statement,
    Unpack,
)


@frozen
class Pack:
    """Tiles that one function returns together, under one name."""

    name: str
    members: tuple[str, ...]


def outline(
    name: str,
    doc: str,
    statements: Sequence[Statement],
    *,
    returns: Sequence[str] = (),
    packs: Iterable[Pack] = (),
    known: Collection[str] = (),
) -> Function:
    """Return a function of the statements. `known` are names of the module, never parameters."""
    own = set(bound(statements))
    needed = [n for n in dict.fromkeys(mentions(statements)) if n not in own and n not in known]
    parameters: list[str] = []
    unpacked: list[Statement] = []
    packed = {member: pack for pack in packs for member in pack.members}
    for need in needed:
        pack = packed.get(need)
        if pack is None or len(pack.members) == 1:
            parameters.append(need)
        elif pack.name not in parameters:
            parameters.append(pack.name)
            unpacked.append(Unpack(pack.members, pack.name))
    as_numbers = numbers_in(statements)
    tiles = [p for p in parameters if not p.isidentifier() or p not in as_numbers]
    numbers = [p for p in parameters if p not in tiles]
    return Function(name, (*tiles, *numbers), doc, (*unpacked, *statements), tuple(returns))
