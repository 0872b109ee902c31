"""`nki.language` control: ranges, device loops, ordering blocks, programs, printing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import index as as_integer
from typing import Any

from backends.simulator.faults import Fault
from backends.simulator.machine import current
from backends.simulator.recorder import Recorder
from backends.simulator.registers import VirtualRegister
from backends.simulator.tensor import NkiTensor

Bound = int | VirtualRegister


def ds(start: int, size: int) -> slice:
    """Return the slice of `size` elements from `start`."""
    if isinstance(start, VirtualRegister):
        raise Fault(
            "S110",
            "`nl.ds` with a register",
            help="use `.ap(scalar_offset=register)` or `.select(dim, tensor)`",
        )
    return slice(start, start + size)


def program_id(axis: int = 0) -> int:
    """Return which core of the launch this program runs on."""
    _check_axis(axis)
    return current().program_id


def num_programs(axes: int | None = 0) -> int:
    """Return the number of cores of the launch."""
    _check_axis(axes or 0)
    return current().num_programs


def program_ndim() -> int:
    """Return the rank of the launch grid: 0 without one."""
    return 1 if current().grid else 0


def _check_axis(axis: int) -> None:
    if axis != 0:
        raise Fault("S106", f"launch grids have one axis; axis {axis} does not exist")


def _loop_recorder() -> Recorder:
    """Return the recorder, where a device loop may begin."""
    recorder = current().recorder
    if recorder.ordered:
        raise Fault(
            "S111",
            "a device loop inside `no_reorder`",
            help="put the `no_reorder` block inside the loop's body",
        )
    return recorder


def _trip_bound(bound: Bound) -> int:
    """Return a loop bound as an integer. Raises Fault S111 when nobody can know it."""
    if not isinstance(bound, VirtualRegister):
        try:
            return as_integer(bound)
        except TypeError:
            raise Fault("S111", f"a device loop counts to integers, not to {bound!r}") from None
    if bound.value is None:
        raise Fault(
            "S111",
            "the loop's bound is in a register that was never loaded, or was loaded from data in "
            "shape-only mode",
        )
    return bound.value


def _trips(lower: Bound, upper: Bound, step: int) -> range:
    if isinstance(step, VirtualRegister) or step < 1:
        raise Fault("S111", f"a device loop's step is a positive integer, not {step!r}")
    return range(_trip_bound(lower), _trip_bound(upper), step)


def fori_loop(
    lower: Bound, upper: Bound, body_fun: Callable[[VirtualRegister], None], step: int = 1
) -> None:
    """Run `body_fun(i)` on the device for i = lower, lower + step, ... below upper."""
    trips = _trips(lower, upper, step)
    recorder = _loop_recorder()
    for i in trips:
        with recorder.iteration():
            if body_fun(VirtualRegister(i)) is not None:  # type: ignore[func-returns-value]
                raise Fault("S111", "the body of `nl.fori_loop` returns nothing")


def while_loop(
    init: VirtualRegister, body_fun: Callable[[VirtualRegister], VirtualRegister]
) -> None:
    """Run `register = body_fun(register)` on the device while the register is not 0."""
    if not isinstance(init, VirtualRegister):
        raise Fault("S111", "`nl.while_loop` starts from a register")
    register = init
    recorder = _loop_recorder()
    while _trip_bound(register) != 0:
        with recorder.iteration():
            register = body_fun(register)
            if not isinstance(register, VirtualRegister):
                raise Fault("S111", "the body of `nl.while_loop` returns the next register")


def dynamic_range(
    start: Bound, stop: Bound | None = None, step: int = 1
) -> Iterator[VirtualRegister]:
    """Iterate on the device (deprecated form of `fori_loop`)."""
    trips = _trips(0, start, step) if stop is None else _trips(start, stop, step)
    recorder = _loop_recorder()
    for i in trips:
        with recorder.iteration():
            yield VirtualRegister(i)


@contextmanager
def no_reorder() -> Iterator[None]:
    """Keep the instructions of the block in program order."""
    recorder = current().recorder
    recorder.open_ordered()
    try:
        yield
    finally:
        recorder.close_ordered()


def device_print(prefix: str, x: Any) -> None:
    """Print a tensor's contents to standard error as the run reaches this line."""
    if not isinstance(prefix, str):
        raise Fault("S104", "`nl.device_print` takes a constant string first")
    if not isinstance(x, NkiTensor) or x.memory == "psum":
        raise Fault("S104", "`nl.device_print` shows tensors in SBUF or HBM")
    machine = current()
    shown = x.load() if machine.data else f"{list(x.shape)} {x.dtype}"
    print(f"[core {machine.program_id}] {prefix}\n{shown}", file=sys.stderr)
