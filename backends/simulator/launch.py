"""Runs a kernel function as one program, or as the two programs of an LNC pair."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from traceback import clear_frames
from typing import Any, NoReturn

from attrs import define, field, frozen

from backends.isa.targets import Target
from backends.simulator import location
from backends.simulator.arguments import ArgumentMaker, TensorArgument, bind
from backends.simulator.faults import Fault
from backends.simulator.jit import Edge
from backends.simulator.launch_memory import SharedMemory
from backends.simulator.liveness import over_capacity, pinned_overlap
from backends.simulator.machine import Machine, enter
from backends.simulator.memory import Role, Storage
from backends.simulator.options import SimOptions, activate
from backends.simulator.pair import OtherProgramFailed, Pair
from backends.simulator.shared_log import find_race
from backends.simulator.tensor import NkiTensor
from backends.simulator.tokens import MemoryRegion


@frozen
class Finished:
    """What a launch left behind: machines by program, returned views, tensor arguments."""

    machines: tuple[Machine, ...]
    returned: tuple[NkiTensor, ...]
    single: bool
    """Whether the kernel returned one tensor rather than a tuple."""
    arguments: tuple[TensorArgument, ...]


@define(eq=False)
class _Outcome:
    """What one program ended with."""

    value: Any = None
    error: BaseException | None = field(default=None)


def launch(
    function: Callable[..., Any],
    values: Sequence[Any] | Mapping[str, Any],
    *,
    target: Target,
    grid: int | None,
    options: SimOptions,
    schedule: Sequence[Edge] = (),
) -> Finished:
    """Run `function` with the caller's values. Raises Fault."""
    programs = grid or 1
    if programs > target.cores:
        raise Fault("S106", f"{target.name} runs {target.cores} program, not {programs}")
    region = MemoryRegion.private_hbm if programs == 1 else MemoryRegion.shared_hbm
    place = location.Location(function.__code__.co_filename, function.__code__.co_firstlineno, "")
    maker = ArgumentMaker(options, region, place, [])
    activate(options)
    bound = bind(function, values, place)
    for name, value in bound.arguments.items():
        bound.arguments[name] = maker.convert(name, value)
    shared = SharedMemory()
    pair = Pair() if programs == 2 else None
    machines = tuple(
        Machine(target, options, shared, i, programs, grid is not None, pair)
        for i in range(programs)
    )
    for machine in machines:
        for argument in maker.tensors:
            machine.recorder.use_of(argument.storage)
    with _collector_paused():
        outcomes = _run(machines, lambda: function(*bound.args, **bound.kwargs))
    returned = [_results(outcome.value, maker.tensors, place) for outcome in outcomes]
    _check(machines, returned, schedule)
    _assign_roles(machines, maker.tensors, returned[0])
    single = isinstance(outcomes[0].value, NkiTensor)
    return Finished(machines, returned[0], single, tuple(maker.tensors))


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Keep Python's cycle collector from walking the growing record again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if gc.get_freeze_count() == 0:
                # Everything new becomes old, or the collector would walk all of it right away.
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _run(machines: Sequence[Machine], call: Callable[[], Any]) -> list[_Outcome]:
    """Run every program to its end; raise the first one's fault."""
    outcomes = [_Outcome() for _ in machines]

    def program(machine: Machine) -> None:
        outcome = outcomes[machine.program_id]
        enter(machine)
        try:
            if machine.pair is not None:
                machine.pair.begin(machine.program_id)
            outcome.value = call()
            machine.shared_log.settle()
        except BaseException as error:
            outcome.error = error
        if machine.pair is not None:
            machine.pair.finish(machine.program_id, failed=outcome.error is not None)

    contexts = [copy_context() for _ in machines]
    if len(machines) == 1:
        contexts[0].run(program, machines[0])
    else:
        threads = [
            threading.Thread(target=context.run, args=(program, machine))
            for context, machine in zip(contexts, machines, strict=True)
        ]
        for thread in threads:
            thread.start()
        _join(threads, machines[0])
    if any(outcome.error is not None for outcome in outcomes):
        _raise_first(outcomes)
    return outcomes


def _raise_first(outcomes: list[_Outcome]) -> NoReturn:
    """Raise the error that ended a launch, and let go of all that the programs held.

    The frames of the kernel hold its tensors, and live as long as somebody keeps the error.
    """
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    outcomes.clear()
    for error in errors:
        _clear_frames(error)
    own = [error for error in errors if not isinstance(error, OtherProgramFailed)]
    first = (own or errors)[0]
    try:
        raise as_fault(first)
    finally:
        # An error that is reached from its own traceback waits for the cycle collector.
        del error, errors, own, first


def _clear_frames(error: BaseException | None) -> None:
    """Empty the frames that an error and what led to it have passed."""
    while error is not None:
        clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def _join(threads: Sequence[threading.Thread], machine: Machine) -> None:
    """Wait for the programs; an interrupt of the waiting thread ends them first."""
    try:
        for thread in threads:
            thread.join()
    except BaseException:
        assert machine.pair is not None
        machine.pair.abort()
        for thread in threads:
            thread.join()
        raise


def as_fault(error: BaseException) -> BaseException:
    """Return a kernel's own exception as a fault at the kernel line that raised it."""
    if isinstance(error, Fault) or not isinstance(error, Exception):
        return error
    place = location.of_traceback(error.__traceback__)
    if isinstance(error, AssertionError):
        text = f"assertion failed: {error}" if str(error) else "assertion failed"
    else:
        text = f"{type(error).__name__}: {error}"
    fault = Fault("S102", text, location=place)
    fault.__cause__ = error
    return fault


def _results(
    value: Any, arguments: Sequence[TensorArgument], place: location.Location
) -> tuple[NkiTensor, ...]:
    """Return the returned tensors. Raises Fault S105."""
    # Shipped kernels also return lists, which the documents do not mention.
    values = tuple(value) if isinstance(value, (tuple, list)) else () if value is None else (value,)
    own = {argument.storage.id for argument in arguments}
    for number, item in enumerate(values):
        if not isinstance(item, NkiTensor):
            raise Fault(
                "S105",
                f"result {number} is a `{type(item).__name__}`",
                help="return a tensor or a tuple of tensors",
                location=place,
            )
        if item.buffer is not MemoryRegion.shared_hbm and item.storage.id not in own:
            raise Fault(
                "S105",
                f"result {number} (`{item.name or 'unnamed'}`) is in `nl.{item.buffer.name}`",
                help="allocate results with `buffer=nl.shared_hbm`",
                location=item.storage.allocation.location,
            )
    return values


def _check(
    machines: Sequence[Machine], returned: Sequence[tuple[NkiTensor, ...]], schedule: Sequence[Edge]
) -> None:
    """Apply the rules that need the whole run: capacity, pins, schedule, races, equal results."""
    for machine in machines:
        uses, target = machine.recorder.buffers, machine.target
        overlap = pinned_overlap(uses)
        if overlap is not None:
            raise overlap
        fault = over_capacity(uses, target.sbuf_usable_bytes, target.name)
        _raise_or_warn(machine, fault, machine.options.capacity)
        _apply_schedule(machine, schedule)
    if len(machines) == 2:
        layouts = [[(t.storage.id, t.shape, t.offset) for t in tensors] for tensors in returned]
        if layouts[0] != layouts[1]:
            raise Fault("S503", "the two programs return different tensors")
        race = find_race(machines[0].shared_log, machines[1].shared_log)
        if race is not None:
            severity = "warn" if race.benign else machines[1].options.races
            _raise_or_warn(machines[1], race.fault(), severity)


def _raise_or_warn(machine: Machine, fault: Fault | None, severity: str) -> None:
    if fault is None:
        return
    if severity == "fault":
        raise fault
    machine.warn(fault.code, fault.message)


def _apply_schedule(machine: Machine, schedule: Sequence[Edge]) -> None:
    """Add the edges of `with_schedule`. Raises Fault S112."""
    if not schedule:
        return
    records = machine.recorder.records
    by_name: dict[str, list[int]] = {}
    for index, record in enumerate(records):
        if record.name is not None:
            by_name.setdefault(record.name, []).append(index)
    for consumer, producers in schedule:
        names = (producers,) if isinstance(producers, str) else tuple(producers)
        for name in (consumer, *names):
            if len(by_name.get(name, ())) != 1:
                raise Fault(
                    "S112", f"{len(by_name.get(name, ()))} instructions are named `{name}`, not one"
                )
        for name in names:
            machine.recorder.edges.setdefault(by_name[consumer][0], []).append(by_name[name][0])


def _assign_roles(
    machines: Sequence[Machine],
    arguments: Sequence[TensorArgument],
    returned: Sequence[NkiTensor],
) -> None:
    """Say in the record which HBM buffers are results and which arguments were written."""
    roles: dict[int, tuple[Storage, Role]] = {}
    for argument in arguments:
        if argument.storage.written:
            roles[argument.storage.id] = (argument.storage, "inout")
    for view in returned:
        if view.storage.allocation.role == "scratch":
            roles[view.storage.id] = (view.storage, "output")
    for machine in machines:
        for storage, role in roles.values():
            machine.recorder.use_of(storage).role = role
