"""What the functions that filter a field take: where windows and tokens lie, in which dtype."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import define, field

from backends.nki.contract import Contract
from backends.nki.program.build import Block
from backends.nki.program.nodes import (
    BF16,
    F16,
    F32,
    Element,
    Function,
    Operand,
    Tile,
    View,
    dtype_of,
)
from backends.nki.program.numbers import NONE, ONE, Name, Number, binary
from backends.nki.refusal import refuse
from backends.nki.schedules.addresses import Addresses
from backends.nki.schedules.block.channels import Lying, Rows, lying
from backends.nki.schedules.block.sections import Convolution, Field, Given, Port
from backends.nki.select.inputs import RowWindow
from gdsl.ir.dims import Dim
from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Input, Output
from gdsl.ir.types import DtypeVar

ROUNDED = {Dtype.BF16: BF16, Dtype.F16: F16}


@define(eq=False)
class Arguments:
    """The arguments of each function, by the names of its parameters."""

    contract: Contract
    window: RowWindow
    rows: Rows
    addresses: Addresses
    entry: str
    """The batch axis."""
    functions: dict[str, Function] = field(factory=dict)

    def _taps(self, section: Convolution) -> Number:
        return self.contract.sizes(section.weight.dims)[-1]

    def _wide(self, part: Field) -> Number:
        return Name(str(part.wide))

    def _function(self, stem: str, write: Callable[[str], Function]) -> Function:
        """The function of the module; forms of one kernel differ seldom."""
        number = 1
        while True:
            name = stem if number == 1 else f"{stem}_{number}"
            function = write(name)
            if self.functions.setdefault(name, function) == function:
                return function
            number += 1

    def _known(
        self, section: Convolution, part: Field, sums: View, window: Tile, new: Tile | None
    ) -> dict[str, Operand]:
        state = section.state
        lies = self._window_lies(state.dims, part, section)
        entry = self.entry
        known: dict[str, Operand] = {
            "sum_sb": sums,
            "window": View(window, window.shape),
            "first": lies.first,
            "step": lies.step,
            "apart": lies.strides.of(entry),
            "heads": self.window.size(part.heads),
            "columns": Name(section.axis),
            "taps": self._taps(section),
        }
        missing = self._missing(section)
        if missing is not None:
            known["missing"] = missing
        if new is not None and section.windows:
            there = self._columns(section.windows[0], part, section)
            known |= {
                "new_window": View(new, new.shape),
                "new_first": there.first,
                "new_step": there.step,
                "new_apart": there.strides.of(entry),
            }
        return known

    def _given(self, port: Port) -> dict[str, Operand]:
        """Tokens in HBM."""
        item = self._token_tensor(port)
        tile = self.contract.tensors[item.name]
        lies = lying(item.dims, port.field, self.window, ONE, item.span)
        return {
            "token": View(tile, tile.shape),
            "token_first": lies.first,
            "token_step": lies.step,
            "token_apart": lies.strides.of(self.entry),
            "token_next": lies.strides.of(self.rows.token or ""),
        }

    def _token_tensor(self, port: Port) -> Input:
        if not isinstance(port.section, Given):
            raise refuse("several tokens of a projection through a window are not emitted", None)
        return port.section.input

    def _columns(self, output: Output, part: Field, section: Convolution) -> Lying:
        return self._window_lies(output.dims, part, section)

    def _window_lies(self, dims: tuple[Dim, ...], part: Field, section: Convolution) -> Lying:
        """Where windows lie: the columns of neighbouring channels behind each other."""
        lies = lying(dims, part, self.window, Name(section.axis), section.state.span)
        if lies.strides.of(section.axis) != ONE:
            raise refuse("the columns of a window must be its innermost axis", section.state.span)
        return lies

    def _tensors(self, section: Convolution) -> tuple[Tile, Tile | None]:
        window = self.contract.tensors[section.state.argument]
        if len(section.windows) > 1:
            raise refuse("one window in two outputs is not emitted", section.run.span)
        if not section.windows:
            return window, None
        return window, self.contract.outputs[section.windows[0].name]

    def _element(self, section: Convolution, new: Tile | None) -> Element:
        """The element type of a window, as the function's parameters name it."""
        tile = self.contract.tensors[section.state.argument]
        if new is not None and self._missing(section) is not None:
            return dtype_of("new_window", new.element.bytes)
        return dtype_of("window", tile.element.bytes)

    def _line(self, section: Convolution) -> Element:
        """The element type of windows that leave: they are selected from the line as they are."""
        for name, outputs in (
            ("shown_windows", section.token_windows),
            ("new_window", section.windows),
        ):
            for output in outputs:
                return dtype_of(name, self.contract.outputs[output.name].element.bytes)
        return dtype_of("window", self.contract.tensors[section.state.argument].element.bytes)

    def _rounded(self, section: Convolution, port: Port) -> Element | None:
        """What tokens from HBM are rounded to; None where they are in that dtype already."""
        if section.rounded is None or self._token_tensor(port).dtype == section.rounded:
            return None
        return ROUNDED[section.rounded]

    def _missing(self, section: Convolution) -> Number | None:
        """The condition that the caller brought no window; None where there must be one."""
        state = section.state
        if state.argument not in self.contract.optional:
            return None
        if state.inplace:
            return Name(f"{state.argument}_missing")
        return binary("==", Name(state.argument), NONE)

    def _call(self, block: Block, function: Function, known: Mapping[str, Operand]) -> None:
        names = function.parameters
        block.call(function.name, *(known[name] for name in names), keywords=names)


def element_of(dtype: Dtype | DtypeVar | None) -> Element:
    """What tokens are rounded to on chip; fp32 where the text rounds nothing."""
    return ROUNDED.get(dtype, F32) if isinstance(dtype, Dtype) else F32
