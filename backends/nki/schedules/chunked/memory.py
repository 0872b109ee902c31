"""The on-chip memory of an emitted text, found by tracing it with instructions that only look.

Tiles live from their creation to the last instruction that touches them, as in
`program.evaluate`; this one reads the text itself, because a hand-written schedule has no nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from attrs import define, field

from backends.nki.program.evaluate import Peak, Traced, peak_of
from backends.nki.program.nodes import Space

_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "int32": 4, "uint8": 1}
_SPACES = {"sbuf": Space.SBUF, "psum": Space.PSUM}


@define(eq=False)
class _View:
    """A tensor, or part of one: its shape, its dtype, and the tile whose life it prolongs."""

    tile: Traced
    dtype: str
    shape: tuple[int, ...]

    def __getitem__(self, index: Any) -> _View:
        entries = index if isinstance(index, tuple) else (index,)
        shape = [
            len(range(size)[entry]) if isinstance(entry, slice) else 1
            for entry, size in zip(entries, self.shape, strict=False)
        ]
        return _View(self.tile, self.dtype, (*shape, *self.shape[len(entries) :]))

    def ap(self, pattern: list[list[int]], offset: int) -> _View:
        """An access pattern of the same tile."""
        return _View(self.tile, self.dtype, tuple(count for _, count in pattern))


@define
class _Machine:
    tiles: list[Traced] = field(factory=list)
    clock: int = 0

    def ndarray(self, shape: tuple[int, ...], dtype: str, buffer: str) -> _View:
        tile = Traced(_SPACES.get(buffer, Space.SHARED_HBM), shape, _BYTES[dtype], self.clock)
        self.tiles.append(tile)
        return _View(tile, dtype, shape)

    def instruction(self, **operands: Any) -> None:
        for operand in operands.values():
            if isinstance(operand, _View):
                operand.tile.last = self.clock
        self.clock += 1


class _Instructions:
    """`nki.isa`: every name is an instruction, except the engines."""

    def __init__(self, machine: _Machine) -> None:
        self._machine = machine
        self.engine = SimpleNamespace(
            vector="vector", scalar="scalar", gpsimd="gpsimd", tensor="tensor"
        )

    def __getattr__(self, name: str) -> Any:
        return self._machine.instruction


class _Language:
    """`nki.language`: dtypes, buffers and operators are their own names."""

    def __init__(self, machine: _Machine, core: int, cores: int) -> None:
        self.ndarray = machine.ndarray
        self.program_id = lambda axis: core
        self.num_programs = lambda axis: cores

    def __getattr__(self, name: str) -> str:
        return name


def traced_peak(
    text: str,
    entry: str,
    tensors: Mapping[str, tuple[tuple[int, ...], str]],
    core: int,
    cores: int,
) -> Peak:
    """Return the peak of one core; `tensors` are (shape, dtype name) by argument.

    Numbers take their defaults.
    """
    machine = _Machine()
    modules = {
        "nki": SimpleNamespace(jit=lambda function: function),
        "nisa": _Instructions(machine),
        "nl": _Language(machine, core, cores),
    }
    code = "\n".join(line for line in text.split("\n") if not line.startswith("import "))
    names: dict[str, Any] = dict(modules)
    exec(compile(code, f"<{entry}>", "exec"), names)
    arguments = {
        name: _View(Traced(Space.ARGUMENT, shape, _BYTES[dtype], 0), dtype, shape)
        for name, (shape, dtype) in tensors.items()
    }
    names[entry](**arguments)
    return peak_of(machine.tiles)
