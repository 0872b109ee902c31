"""One call of an instruction, with its arguments bound: what rules check and functions compute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from backends.isa.dtypes import INT32S
from backends.isa.schema import TILE_KINDS, WRITTEN_KINDS, Engine, Instruction, Kind, Space
from backends.isa.targets import Target
from backends.simulator.faults import Fault
from backends.simulator.tensor import NkiTensor

if TYPE_CHECKING:
    from backends.simulator.machine import Machine
    from backends.simulator.options import SimOptions

Array32 = NDArray[np.float32]

SPACES: dict[str, Space] = {"sbuf": "sbuf", "psum": "psum", "hbm": "hbm", "shared_hbm": "hbm"}
"""Memory of a tensor to the space that instruction rows speak of."""


def space(tensor: NkiTensor) -> Space:
    """Where a tensor lives, private and shared HBM alike."""
    return SPACES[tensor.layout.memory]


class BoundCall:
    """Arguments by name, defaults filled in: tiles are `NkiTensor`s; operators, functions and
    enumeration members are their names; everything else is plain Python.

    `engine` is the engine that executes it, decided by `engines.choose`.
    """

    __slots__ = ("_read", "_tiles", "_written", "engine", "machine", "row", "values")

    def __init__(self, row: Instruction, values: dict[str, Any], machine: Machine) -> None:
        self.row = row
        self.values = values
        self.machine = machine
        self.engine: Engine = row.engines[0].engine
        # Rules ask for these again and again; the tiles of a call do not change.
        self._tiles: dict[str, NkiTensor] | None = None
        self._written: dict[str, NkiTensor] | None = None
        self._read: dict[str, NkiTensor] | None = None

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def target(self) -> Target:
        """The machine that the kernel is for."""
        return self.machine.target

    @property
    def options(self) -> SimOptions:
        """The choices of this run."""
        return self.machine.options

    def report(self, severity: str, code: str, message: str) -> None:
        """Warn of what an option calls a warning. Raises Fault `code` where it says `fault`."""
        if severity == "fault":
            raise Fault(code, message)
        self.machine.warn(code, message)

    def tiles(self) -> Mapping[str, NkiTensor]:
        """Every tile of the call by argument name, list arguments as `name[i]`."""
        if self._tiles is None:
            found: dict[str, NkiTensor] = {}
            for param in self.row.params:
                value = self.values[param.name]
                if param.kind is Kind.TILES:
                    found |= {f"{param.name}[{i}]": tile for i, tile in enumerate(value)}
                elif param.kind in TILE_KINDS and isinstance(value, NkiTensor):
                    found[param.name] = value
            self._tiles = found
        return self._tiles

    def written(self) -> Mapping[str, NkiTensor]:
        """The tiles that are written."""
        if self._written is None:
            self._written = {
                param.name: self.values[param.name]
                for param in self.row.params
                if param.kind in WRITTEN_KINDS and self.values[param.name] is not None
            }
        return self._written

    def read(self) -> Mapping[str, NkiTensor]:
        """The tiles that are read, but not a destination whose old content can survive."""
        if self._read is None:
            written = self.written()
            self._read = {name: tile for name, tile in self.tiles().items() if name not in written}
        return self._read

    def operators(self) -> tuple[str | None, ...]:
        """The operator of each operator slot, in call order."""
        return tuple(self.values[param.name] for param in self.row.operator_slots)

    def runs_on_integers(self) -> bool:
        """Whether every tile is a 32-bit integer, which GpSimdE computes exactly."""
        return all(tile.dtype.name in INT32S for tile in self.tiles().values())

    # What compute functions use.

    def f32(self, name: str) -> Array32:
        """A tile as fp32 `[partitions, elements per partition]`."""
        tile: NkiTensor = self.values[name]
        return tile.load_f32()

    def raw(self, name: str) -> NDArray[Any]:
        """A tile in its storage type, `[partitions, elements per partition]`."""
        tile: NkiTensor = self.values[name]
        return tile.load().reshape(tile.partitions, -1)

    def operand(self, name: str) -> Any:
        """A number as fp32, or a (P, 1) tile as fp32 `[P, 1]`."""
        value = self.values[name]
        if isinstance(value, NkiTensor):
            return value.load_f32().reshape(-1, 1)
        return np.float32(value)

    def store(self, name: str, values: NDArray[Any]) -> None:
        """Round fp32 values to the tile's type and write them."""
        tile: NkiTensor = self.values[name]
        tile.store_f32(values)
