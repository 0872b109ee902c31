"""The memory a tile program needs at given sizes, found by tracing it without running anything.

Loops are unrolled and decisions taken as the NKI trace does; a tile is alive from the first
instruction that touches it to the last. SBUF is counted in bytes per partition, PSUM in whole
banks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any, assert_never

from attrs import define, field, frozen

from backends.nki.program.nodes import (
    Allocate,
    Append,
    Assign,
    Banner,
    Comment,
    For,
    ForEach,
    Function,
    If,
    Instruction,
    Invoke,
    Operand,
    Pattern,
    Program,
    Put,
    Rebind,
    Require,
    RequireShape,
    Space,
    Statement,
    Take,
    Tile,
    Unpack,
    Verbatim,
    View,
    tiles_in,
)
from backends.nki.program.numbers import Number, evaluate

PSUM_BANK_BYTES = 2048
WORD_BYTES = 4


@define(eq=False)
class Traced:
    """A tile that exists: its shape, and the instructions between which it is alive."""

    space: Space
    shape: tuple[int, ...]
    element_bytes: int
    born: int = -1
    last: int = -1

    def touch(self, clock: int) -> None:
        """Note that an instruction uses the tile."""
        self.born = clock if self.born < 0 else self.born
        self.last = clock

    def words(self) -> _Seen:
        """Return the tile seen four bytes at a time."""
        *outer, last = self.shape
        return _Seen(self, (*outer, last * self.element_bytes // WORD_BYTES), WORD_BYTES)

    @property
    def bytes_per_partition(self) -> int:
        """Bytes of its free dimensions."""
        return prod(self.shape[1:]) * self.element_bytes


@frozen
class Peak:
    """Most memory alive at once."""

    sbuf_bytes_per_partition: int
    psum_banks: int


def footprint(
    program: Program, shapes: Mapping[str, tuple[int, ...]], numbers: Mapping[str, Any]
) -> Peak:
    """Return the peak of one core. `numbers` holds parameters and the answers to queries."""
    module: dict[str, Any] = {c.name: evaluate(c.value, {}) for c in program.constants}
    module["None"] = None
    module |= {name: value for name, value in numbers.items() if name.startswith("nl.")}
    trace = _Trace({function.name: function for function in program.functions}, module)
    module |= {name: partial(trace.called, f) for name, f in trace.functions.items()}
    names: dict[str, Any] = {**module, **numbers}
    for parameter in program.parameters:
        if parameter.tile is not None:
            size = parameter.tile.element.bytes
            names[parameter.name] = Traced(Space.ARGUMENT, shapes[parameter.name], size)
    trace.run(program.body, names)
    return peak_of(trace.tiles)


def peak_of(tiles: Sequence[Traced]) -> Peak:
    """Return the most memory that tiles occupied at once."""
    return Peak(
        _peak(t for t in tiles if t.space is Space.SBUF),
        _peak((t for t in tiles if t.space is Space.PSUM), PSUM_BANK_BYTES),
    )


@define
class _Trace:
    functions: Mapping[str, Function]
    module: Mapping[str, Any]
    """What every function sees: constants and functions of the module, answers to queries."""
    tiles: list[Traced] = field(factory=list)
    clock: int = 0
    _mentioned: dict[int, tuple[str, ...]] = field(init=False, factory=dict)
    """By the identity of an instruction of the program."""

    def run(self, statements: tuple[Statement, ...], names: dict[str, Any]) -> None:
        for statement in statements:
            self._statement(statement, names)

    def _statement(self, statement: Statement, names: dict[str, Any]) -> None:
        match statement:
            case Allocate(tile=tile):
                names[tile.name] = self._create(tile, names)
            case Instruction():
                for name in self._tiles(statement):
                    names[name].touch(self.clock)
                self.clock += 1
            case Assign(name=name, value=value):
                names[name] = evaluate(value, names)
            case Invoke():
                self._invoke(statement, names)
            case For(variable=variable, body=body):
                bounds = (statement.start, statement.stop, statement.step)
                for index in range(*(evaluate(bound, names) for bound in bounds)):
                    names[variable] = index
                    self.run(body, names)
            case If(condition=condition, then=then, otherwise=otherwise):
                self.run(then if evaluate(condition, names) else otherwise, names)
            case Rebind(targets=targets, sources=sources):
                values = [names[source] for source in sources]
                names.update(zip(targets, values, strict=True))
            case Unpack(names=targets, tuple_name=source):
                names.update(zip(targets, names[source], strict=True))
            case Take(names=targets, record=record):
                names.update((target, names[record][target]) for target in targets)
            case Put(record=record, field=key, value=value):
                names[record][key] = evaluate(value, names)
            case Append(values=values_name, value=value):
                names[values_name].append(evaluate(value, names))
            case ForEach(variables=(variable,), values=over, body=body):
                for held in evaluate(over, names):
                    names[variable] = held
                    self.run(body, names)
            case ForEach(variables=variables, values=over, body=body):
                for held in evaluate(over, names):
                    names.update(zip(variables, held, strict=True))
                    self.run(body, names)
            case Require() | RequireShape() | Banner() | Comment() | Verbatim():
                pass
            case _:
                assert_never(statement)

    def _create(self, tile: Tile, names: Mapping[str, Any]) -> Traced:
        shape = tuple(int(evaluate(size, names)) for size in tile.shape)
        like = names.get(tile.element.of or "")
        size = tile.element.bytes if like is None else like.element_bytes
        traced = Traced(tile.space, shape, size)
        self.tiles.append(traced)
        return traced

    def _tiles(self, instruction: Instruction) -> tuple[str, ...]:
        """The tiles of an instruction's operands, found once: loops come back to it."""
        found = self._mentioned.get(id(instruction))
        if found is None:
            tiles = [tile for _, operand in instruction.operands for tile in tiles_in(operand)]
            found = tuple(dict.fromkeys(tile.name for tile in tiles))
            self._mentioned[id(instruction)] = found
        return found

    def _invoke(self, call: Invoke, names: dict[str, Any]) -> None:
        arguments = [_argument(argument, names) for argument in call.arguments]
        returned = self.called(self.functions[call.function], *arguments)
        if call.result is not None:
            names[call.result] = returned

    def called(self, function: Function, *arguments: Any) -> Any:
        """Run a function and return what it returns."""
        inner = {**self.module, **dict(zip(function.parameters, arguments, strict=True))}
        self.run(function.body, inner)
        returned = tuple(inner[name] for name in function.returns)
        return returned[0] if len(returned) == 1 else returned


class _Seen:
    """A view of a tile inside a function: its own shape, the tile's lifetime."""

    def __init__(self, tile: Traced, shape: tuple[int, ...], element_bytes: int) -> None:
        self._tile = tile
        self.shape = shape
        self.element_bytes = element_bytes

    def touch(self, clock: int) -> None:
        self._tile.touch(clock)


def _seen(held: Any, shape: tuple[Number, ...], names: Mapping[str, Any]) -> _Seen:
    return _Seen(held, tuple(int(evaluate(size, names)) for size in shape), held.element_bytes)


def _argument(operand: Operand, names: Mapping[str, Any]) -> Any:
    match operand:
        case View(tile=tile, shape=shape, index=index):
            held = names[tile.name]
            if index is None:
                return held
            return _seen(held, shape, names)
        case Pattern(tile=tile, shape=shape):
            return _seen(names[tile.name], shape, names)
        case Number():
            return evaluate(operand, names)
        case _:
            return operand


def _peak(tiles: Iterable[Traced], unit: int = 1) -> int:
    """Most units alive at once; a birth counts before the death of the same moment."""
    events: list[tuple[int, int, int]] = []
    for tile in tiles:
        if tile.last >= 0:
            units = -(-tile.bytes_per_partition // unit)
            events += [(tile.born, 0, units), (tile.last, 1, -units)]
    alive = best = 0
    for _, _, change in sorted(events, key=lambda event: event[:2]):
        alive += change
        best = max(best, alive)
    return best
