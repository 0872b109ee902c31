"""Scales of the columns of a weight, one per channel: brought in like taps, one to a channel."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field, frozen

from backends.nki.contract import Contract
from backends.nki.program.build import Block
from backends.nki.program.nodes import F32, Function, Operand, View
from backends.nki.program.numbers import ONE, ZERO, Name, Number
from backends.nki.refusal import refuse
from backends.nki.schedules.block.channels import lying
from backends.nki.schedules.block.projection_stream import bytes_of
from backends.nki.schedules.block.sections import Port
from backends.nki.schedules.block.taps import LOAD_TAPS, TURN_TAPS, Taps
from backends.nki.select.inputs import RowWindow
from gdsl.ir.kernel import Input


@frozen
class _Scale:
    """Of one port."""

    item: Input
    name: str
    """Its weight's name in the emitted text."""
    taps: Taps


@define
class Scales:
    """The scales of all ports that have some."""

    contract: Contract
    window: RowWindow
    """The rows of the delta rule."""
    rows: dict[Port, View] = field(init=False, factory=dict)
    """As they come in: a head per partition."""
    turned: dict[Port, View] = field(init=False, factory=dict)
    """[channels of a head, heads], as channels come out of the projection."""
    _ports: dict[Port, _Scale] = field(init=False, factory=dict)

    def plan(self, port: Port, name: str, item: Input) -> None:
        """Note that `item` scales a port. Raises CompileError where it has no channels."""
        part = port.field
        if part.wide is None:
            raise refuse(f"`{item.name}` scales `{part.name}`, which has no channels", item.span)
        where = lying(item.dims, part, self.window, ONE, item.span)
        heads = self.window.size(part.heads)
        taps = Taps(self.contract.tensors[item.name], where, heads, Name(part.wide), ONE)
        self._ports[port] = _Scale(item, name, taps)

    def load(self, block: Block) -> None:
        """Bring them in, head by head."""
        for port, scale in self._ports.items():
            taps, name = scale.taps, f"{scale.name}_scales_rows_sb"
            rows = self.rows[port] = block.tile(name, taps.rows_shape, taps.tensor.element)
            block.origin = scale.item.span
            _call(block, LOAD_TAPS, taps.loading(rows))

    def turn(self, block: Block) -> None:
        """Turn them: channels of a head on partitions."""
        for port, scale in self._ports.items():
            taps, rows = scale.taps, self.rows[port]
            turned = block.tile(f"{scale.name}_scales_sb", taps.turned_shape, F32)
            _call(block, TURN_TAPS, taps.turning(rows, turned))
            self.turned[port] = turned

    @property
    def functions(self) -> tuple[Function, ...]:
        """The functions of the module that they need."""
        return (LOAD_TAPS, TURN_TAPS) if self._ports else ()

    def bytes_held(self) -> Number:
        """Bytes of a partition that they take, as they come in and turned."""
        total: Number = ZERO
        for port, scale in self._ports.items():
            total = total + bytes_of([self.rows[port]]) + F32.bytes * scale.taps.heads
        return total


def _call(block: Block, function: Function, known: Mapping[str, Operand]) -> None:
    block.call(function.name, *(known[name] for name in function.parameters))
