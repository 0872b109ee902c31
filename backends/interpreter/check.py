"""Do the values keep the kernel's promises? Ranges, stated facts, lengths and indices.

Only live elements are looked at. Every refusal names the first element that breaks the promise.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from backends.interpreter.axes import Array, Sizes, Value, aligned
from backends.interpreter.evaluate import Setting, evaluate
from backends.interpreter.faults import fault
from backends.interpreter.live import Live
from gdsl.ir.expr import Apply
from gdsl.ir.interval import show
from gdsl.ir.kernel import Assume, Input, Kernel, Run
from gdsl.ir.node import Symbol
from gdsl.ir.text import expression_text
from gdsl.ir.types import Interval


def check_ranges(kernel: Kernel, names: Mapping[Symbol, Value], live: Live) -> None:
    """Raise RunError if a live element of an input leaves its declared range."""
    for item in kernel.inputs:
        if item.range is not None:
            _check_range(item, item.range, names[item.symbol], live)


def _check_range(item: Input, range_: Interval, value: Value, live: Live) -> None:
    array = value.array
    with np.errstate(invalid="ignore"):
        above = array > range_.lo if range_.lo_open else array >= range_.lo
        below = array < range_.hi if range_.hi_open else array <= range_.hi
    place = _first(~(above & below), value.axes, live)
    if place is not None:
        raise fault(
            "E0706",
            f"`{item.name}` is {array[place]:g} at {_where(value.axes, place)}, outside its "
            f"declared range {show(range_)}",
            item.span,
        )


def check_assumes(
    kernel: Kernel, names: Mapping[Symbol, Value], setting: Setting, live: Live
) -> None:
    """Raise RunError if a stated fact does not hold for live elements."""
    for assume in kernel.assumes:
        holds = evaluate(assume.condition, names, setting)
        place = _first(holds.array == 0, holds.axes, live)
        if place is not None:
            raise fault(
                "E0707",
                f"the stated fact `{expression_text(assume.condition)}` does not hold at "
                f"{_where(holds.axes, place)}{_sides(assume, names, setting, holds.axes, place)}",
                assume.span,
            )


def _sides(
    assume: Assume,
    names: Mapping[Symbol, Value],
    setting: Setting,
    axes: tuple[str, ...],
    place: tuple[int, ...],
) -> str:
    """Both sides of the comparison at the failing place, as `: 1.2 against 1.01`."""
    if not isinstance(assume.condition, Apply) or len(assume.condition.args) != 2:
        return ""
    sides = [evaluate(arg, names, setting) for arg in assume.condition.args]
    shape = np.broadcast_shapes(*(aligned(side, axes).shape for side in sides))
    numbers = [np.broadcast_to(aligned(side, axes), shape)[place] for side in sides]
    return f": {numbers[0]:g} against {numbers[1]:g}"


def check_lengths(kernel: Kernel, names: Mapping[Symbol, Value], sizes: Sizes) -> None:
    """Raise RunError if a `valid_len` is not between 0 and the number of tokens."""
    inputs = {item.symbol: item for item in kernel.inputs}
    for run in kernel.body:
        if isinstance(run, Run) and run.valid_len is not None and run.axis is not None:
            item = inputs[run.valid_len]
            check_index(item, names[run.valid_len], sizes[run.axis], f"{run.axis} = ")


def check_index(item: Input, value: Value, most: int, what: str) -> None:
    """Raise RunError if an integer input is not in 0..most; no index ever wraps around."""
    place = _first((value.array < 0) | (value.array > most), value.axes, Live(()))
    if place is not None:
        raise fault(
            "E0708",
            f"`{item.name}` is {value.array[place]} at {_where(value.axes, place)}, but it must be "
            f"in 0..{what}{most}",
            item.span,
        )


def _first(wrong: Array, axes: tuple[str, ...], live: Live) -> tuple[int, ...] | None:
    """Return the first index where a live element is wrong."""
    alive = live.on(axes)
    if alive is not None:
        wrong = wrong & aligned(alive, axes)
    if not wrong.any():
        return None
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))


def _where(axes: tuple[str, ...], place: tuple[int, ...]) -> str:
    return ", ".join(f"{a}={i}" for a, i in zip(axes, place, strict=True)) or "its only element"
