"""A straight piece of a tile program cut where engines wait for one another.

Engines take their instructions in program order. Of a piece whose instructions follow from one
another, each cut holds what needs only earlier cuts, or the same engine: a pipeline that does other
work between the cuts never stands still for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from backends.nki.program.build import Block, Names
from backends.nki.program.mentions import defined, used
from backends.nki.program.nodes import (
    Allocate,
    Comment,
    For,
    Function,
    Instruction,
    Invoke,
    Statement,
    tiles_in,
)
from backends.nki.program.numbers import Name
from backends.nki.schedules.ordering import engine_of

Fields = Mapping[str, Collection[str]]
"""What each record holds, by its name."""


def divided(
    statements: Sequence[Statement], results: Collection[str]
) -> tuple[list[Statement], list[Statement]]:
    """Return what tiles of these names need, and the rest; each creates its tiles."""
    needed, early = set(results), []
    for statement in reversed(statements):
        if not isinstance(statement, Allocate) and _results(statement) & needed:
            needed |= used([statement])
            early.append(statement)
    urgent = early[::-1]
    mine = {s.tile.name for s in statements if isinstance(s, Allocate)} & used(urgent)
    first = [s for s in statements if isinstance(s, Allocate) and s.tile.name in mine]
    rest = [s for s in statements if s not in first and not any(s is u for u in urgent)]
    return [*first, *urgent], rest


def cut(statements: Sequence[Statement]) -> list[list[Statement]]:
    """Return the statements in cuts; tiles are created where they are first used."""
    tiles = {s.tile.name: s for s in statements if isinstance(s, Allocate)}
    written: dict[str, tuple[int, str]] = {}
    touched: dict[str, list[tuple[int, str]]] = {}
    cuts: list[list[Statement]] = []
    comments: list[Statement] = []
    for statement in statements:
        if isinstance(statement, Allocate):
            continue
        if isinstance(statement, Comment):
            comments.append(statement)
            continue
        names, results, engine = used([statement]), _results(statement), _engine(statement)
        before = [written[name] for name in names if name in written]
        before += [place for name in results for place in touched.get(name, ())]
        place = max((level + (other != engine) for level, other in before), default=0)
        cuts += [[] for _ in range(place + 1 - len(cuts))]
        for name in sorted(names & tiles.keys()):
            cuts[place].append(tiles.pop(name))
        cuts[place] += [*comments, statement]
        comments = []
        written |= dict.fromkeys(results, (place, engine))
        for name in names:
            touched.setdefault(name, []).append((place, engine))
    return cuts


def _results(statement: Statement) -> set[str]:
    """The tiles a statement writes."""
    match statement:
        case Instruction(operands=operands):
            dst = dict(operands).get("dst")
            return {tile.name for tile in tiles_in(dst)}
        case For(body=body):
            return {name for inner in body for name in _results(inner)}
        case Invoke(result=str() as name):
            return {name}
        case _:
            return set()


def _engine(statement: Statement) -> str:
    match statement:
        case Instruction(opcode=opcode, operands=operands):
            transfer = opcode.startswith("dma_")
            return "dma" if transfer else engine_of(opcode, dict(operands).get("engine"))
        case For(body=body):
            return next(_engine(s) for s in body if isinstance(s, Instruction))
        case Invoke(function=function):
            return function
        case _:
            raise TypeError(f"not a straight piece of a program: {statement}")


def function_of(
    name: str,
    parameters: tuple[str, ...],
    doc: str,
    statements: Sequence[Statement],
    fields: Fields,
    kept: Mapping[str, Collection[str]],
) -> Function:
    """Return a function of statements: what they need is taken from records.

    `kept` says which of the tiles it makes go into which record, for others.
    """
    own = set(defined(statements)) | {s.variable for s in statements if isinstance(s, For)}
    needed = {n for n in used(statements) if n not in own and n not in parameters}
    needed |= {r for r, members in fields.items() if needed & set(members)} - set(parameters)
    block = Block(Names(set(parameters)))
    for record, members in fields.items():
        taken = sorted(needed & set(members))
        needed -= set(members)
        if taken:
            block.take(record, *taken)
    block.statements += statements
    results = (s.result for s in statements if isinstance(s, Invoke) and s.result)
    made = dict.fromkeys((*defined(statements), *results))
    for record, names in kept.items():
        block.put(record, **{tile: Name(tile) for tile in made if tile in names})
    return Function(name, parameters, doc, tuple(block.statements))
