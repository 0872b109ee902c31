"""From traces to a report: the one place where the parts of the cost model meet."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from backends.cost.bounds import instruction_bounds
from backends.cost.events import events, memory, path
from backends.cost.lines import line_times, nki_place, origin_place
from backends.cost.list_schedule import list_scheduled
from backends.cost.origin import origins
from backends.cost.program import QUEUES, Program, prepare
from backends.cost.roofline import contract_of_arguments, roofline
from backends.cost.sensitivity import bounds_over_assumptions, sweep
from backends.cost.timeline import MICROSECOND, Timeline, program_order
from backends.isa.machine import MACHINES, Machine
from backends.isa.trace import Trace
from gdsl.errors import UsageError
from gdsl.ir.work import Contract
from gdsl.profiler import (
    CoreReport,
    CostOptions,
    CostReport,
    EngineUse,
    Estimate,
)

_LATENCY_SHARE = 0.8
"""A kernel is called bound by something that alone needs this share of its time; less: latency."""


def profile(
    traces: Sequence[Trace], target: str, contract: Contract | None, options: CostOptions
) -> CostReport:
    """Estimate one launch, one trace per core. Raises UsageError for what cannot be timed."""
    machine = _machine(target, options)
    if not traces or not any(trace.records for trace in traces):
        raise UsageError("there is nothing to time: the trace holds no instruction")
    programs = [prepare(trace) for trace in traces]
    in_order = program_order(programs, machine)
    listed = list_scheduled(programs, machine)
    throttled = program_order(programs, machine, throttle=True)
    low, high = bounds_over_assumptions(programs, machine)
    contract = contract or contract_of_arguments(traces)
    roof = roofline(contract, machine, len(traces))
    places = {
        (file, line): origin
        for file, text in options.sources.items()
        for line, origin in origins(text).items()
    }
    cores = tuple(
        _core(program, number, (in_order, listed, throttled), places)
        for number, program in enumerate(programs)
    )
    estimate = _estimate(in_order.end, listed.end, throttled.end)
    return CostReport(
        model=model_name(machine),
        kernel=traces[0].kernel,
        target=target,
        lnc=len(traces),
        shape=options.shape,
        schedule=options.schedule,
        estimate=estimate,
        contract=contract,
        hbm=roof.hbm / MICROSECOND,
        pe=roof.pe / MICROSECOND,
        bound_by=_bound_by(
            estimate.program_order, roof.hbm / MICROSECOND, roof.pe / MICROSECOND, cores
        ),
        low=low / MICROSECOND,
        high=high / MICROSECOND,
        cores=cores,
        lines=line_times(cores, nki_place),
        origin_lines=line_times(cores, origin_place),
        cases=sweep(programs, machine) if options.sweep else (),
    )


def model_name(machine: Machine) -> str:
    """Return the model's name: equal names mean equal numbers."""
    facts = "\n".join(f"{key} {machine[key]!r}" for key in machine.facts)
    return f"timeline-1/{hashlib.sha256(facts.encode()).hexdigest()[:8]}"


def _machine(target: str, options: CostOptions) -> Machine:
    if target not in MACHINES:
        raise UsageError(f"no machine data for `{target}`; there are {_listed(MACHINES)}")
    machine = MACHINES[target]
    unknown = [key for key in options.machine if key not in machine]
    if unknown:
        raise UsageError(
            f"`{unknown[0]}` is no number of the machine; there are {_listed(machine.facts)}"
        )
    return machine.replaced(options.machine)


def _listed(names: object) -> str:
    assert isinstance(names, dict)
    return ", ".join(f"`{name}`" for name in names)


def _estimate(in_order: float, listed: float, throttled: float) -> Estimate:
    return Estimate(
        program_order=in_order / MICROSECOND,
        # A compiler that finds no better order leaves program order.
        list_scheduled=min(listed, in_order) / MICROSECOND,
        throttled=throttled / MICROSECOND,
    )


def _core(
    program: Program,
    number: int,
    timelines: tuple[Timeline, Timeline, Timeline],
    places: dict[tuple[str, int], str],
) -> CoreReport:
    in_order = timelines[0]
    placed = in_order.cores[number]
    ends = [
        max((max(item.visible, item.release) for item in timeline.cores[number]), default=0.0)
        for timeline in timelines
    ]
    busy: dict[str, float] = dict.fromkeys(QUEUES, 0.0)
    for item in placed:
        if item.queue in busy and item.reason != "barrier":
            busy[item.queue] += item.busy
    counts = Counter(record.engine for record in program.trace.records)
    transfers = program.transfers()
    bounds = instruction_bounds(program, in_order.costs[number])
    return CoreReport(
        program=program.trace.program,
        estimate=_estimate(*ends),
        engines={name: EngineUse(busy[name] / MICROSECOND, counts[name]) for name in QUEUES},
        bounds={name: bound / MICROSECOND for name, bound in bounds.items()},
        dma_count=len(transfers),
        dma_bytes=sum(transfer.bytes for transfer in transfers),
        table_loads=in_order.table_loads[number],
        sbuf_bytes_per_partition=program.trace.sbuf_bytes_per_partition,
        psum_banks=program.trace.psum_banks,
        instructions=len(program.trace.records),
        events=events(program, in_order, number, places),
        critical_path=path(placed),
        memory=memory(program, placed),
    )


def _bound_by(time: float, hbm: float, pe: float, cores: Sequence[CoreReport]) -> str:
    """Name the largest bound, or latency when none comes near the time."""
    bounds = {"hbm": hbm, "pe": pe}
    for name in cores[0].bounds:
        bounds[name] = max(core.bounds[name] for core in cores)
    largest = max(bounds, key=lambda name: bounds[name])
    return largest if bounds[largest] >= _LATENCY_SHARE * time else "latency"
