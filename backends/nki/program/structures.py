"""Trace-time values that are no numbers: texts, lists, tuples, records, their parts, and calls.

A schedule that keeps several pieces of work in flight holds what belongs to each of them in a
record (a dict of the emitted kernel); loops go over lists of them. They are nodes like numbers, so
that a tile program that uses them can be traced for its memory as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from backends.nki.program.nodes import Element
from backends.nki.program.numbers import Name, Number, Numeric, Structure, evaluate, number


@frozen(str=False)
class Text(Structure):
    """A string."""

    value: str

    def written(self) -> str:
        return f'"{self.value}"'

    def valued(self, names: Mapping[str, Any]) -> Any:
        return self.value

    def parts(self) -> tuple[Number, ...]:
        return ()


@frozen(str=False)
class DtypeOf(Structure):
    """`tensor.dtype`, to be compared with a `DtypeName`; its value is the size of an element."""

    tensor: str

    def written(self) -> str:
        return f"{self.tensor}.dtype"

    def valued(self, names: Mapping[str, Any]) -> Any:
        return names[self.tensor].element_bytes

    def parts(self) -> tuple[Number, ...]:
        return (Name(self.tensor),)


@frozen(str=False)
class DtypeName(Structure):
    """A dtype of `nki.language`; its value is the size of an element."""

    element: Element

    def written(self) -> str:
        return self.element.text

    def valued(self, names: Mapping[str, Any]) -> Any:
        return self.element.bytes

    def parts(self) -> tuple[Number, ...]:
        return ()


@frozen(str=False)
class Words(Structure):
    """`tile.view(nl.uint32)`: the same bits four bytes at a time."""

    tile: str

    def written(self) -> str:
        return f"{self.tile}.view(nl.uint32)"

    def valued(self, names: Mapping[str, Any]) -> Any:
        return names[self.tile].words()

    def parts(self) -> tuple[Number, ...]:
        return (Name(self.tile),)


@frozen(str=False)
class Item(Structure):
    """`holder[index]` of a list, a tuple or a record."""

    holder: Number
    index: Number

    def written(self) -> str:
        return f"{self.holder}[{self.index}]"

    def valued(self, names: Mapping[str, Any]) -> Any:
        return evaluate(self.holder, names)[evaluate(self.index, names)]

    def parts(self) -> tuple[Number, ...]:
        return (self.holder, self.index)


@frozen(str=False)
class Length(Structure):
    """`len(values)`."""

    values: Number

    def written(self) -> str:
        return f"len({self.values})"

    def valued(self, names: Mapping[str, Any]) -> Any:
        return len(evaluate(self.values, names))

    def parts(self) -> tuple[Number, ...]:
        return (self.values,)


@frozen(str=False)
class Slice(Structure):
    """`values[start:stop]`."""

    values: Number
    start: Number
    stop: Number

    def written(self) -> str:
        return f"{self.values}[{self.start}:{self.stop}]"

    def valued(self, names: Mapping[str, Any]) -> Any:
        return evaluate(self.values, names)[
            evaluate(self.start, names) : evaluate(self.stop, names)
        ]

    def parts(self) -> tuple[Number, ...]:
        return (self.values, self.start, self.stop)


@frozen(str=False)
class IsF32(Structure):
    """Whether a tensor argument holds fp32; a condition, not an operand of anything tighter."""

    tensor: str

    def written(self) -> str:
        return f"{self.tensor}.dtype == nl.float32"

    def valued(self, names: Mapping[str, Any]) -> Any:
        return names[self.tensor].element_bytes == 4

    def parts(self) -> tuple[Number, ...]:
        return ()


@frozen(str=False)
class Call(Structure):
    """A call of a function of the program that returns a value and does nothing else."""

    function: str
    arguments: tuple[Number, ...]

    def written(self) -> str:
        return f"{self.function}({', '.join(str(value) for value in self.arguments)})"

    def valued(self, names: Mapping[str, Any]) -> Any:
        return names[self.function](*(evaluate(value, names) for value in self.arguments))

    def parts(self) -> tuple[Number, ...]:
        return self.arguments


@frozen(str=False)
class Values(Structure):
    """Values side by side: a tuple, or a list that more may be appended to."""

    values: tuple[Number, ...]
    grows: bool = False

    def written(self) -> str:
        inside = ", ".join(str(value) for value in self.values)
        if self.grows:
            return f"[{inside}]"
        return f"({inside},)" if len(self.values) == 1 else f"({inside})"

    def valued(self, names: Mapping[str, Any]) -> Any:
        values = [evaluate(value, names) for value in self.values]
        return values if self.grows else tuple(values)

    def parts(self) -> tuple[Number, ...]:
        return self.values


@frozen(str=False)
class Record(Structure):
    """A dict with the names of its fields as keys."""

    fields: tuple[tuple[str, Number], ...]

    def written(self) -> str:
        return "{" + ", ".join(f'"{name}": {value}' for name, value in self.fields) + "}"

    def valued(self, names: Mapping[str, Any]) -> Any:
        return {name: evaluate(value, names) for name, value in self.fields}

    def parts(self) -> tuple[Number, ...]:
        return tuple(value for _, value in self.fields)


EMPTY = Values((), grows=True)
"""`[]`."""


def tupled(*values: Numeric) -> Values:
    """Return a tuple of values."""
    return Values(tuple(number(value) for value in values))
