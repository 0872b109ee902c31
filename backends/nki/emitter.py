"""`backends.nki.EMITTER`: the emitter protocol over this backend's stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from attrs import frozen

from backends.isa.versions import VERSIONS
from backends.nki.capacity import misfits
from backends.nki.emit.docstring import docstring
from backends.nki.emit.module import Entry, module_text
from backends.nki.names import Settled, settled
from backends.nki.narrow import refuse_narrow
from backends.nki.program.evaluate import footprint
from backends.nki.program.nodes import Program
from backends.nki.program.numbers import evaluate
from backends.nki.program.reached import reached
from backends.nki.program.show import program_text
from backends.nki.schedules.block.describe import dataflow
from backends.nki.schedules.block.program import front_of
from backends.nki.schedules.block.projection_program import projection_program
from backends.nki.schedules.decode import decode_program
from backends.nki.schedules.sharing import refuse_columns
from backends.nki.schedules.window import has_window, window_program
from backends.nki.states import refuse_states_in_expressions, refuse_without_rows
from gdsl.algorithm.plan import Plan
from gdsl.diagnostics.diagnostic import Diagnostic
from gdsl.emitter import EmitOptions, Footprint, NkiProgram
from gdsl.errors import UsageError
from gdsl.suggest import did_you_mean


@frozen
class NkiEmitter:
    """Maps plans to NKI source text."""

    name: str = "nki"
    versions: tuple[str, ...] = VERSIONS

    def emit(self, plan: Plan, options: EmitOptions) -> NkiProgram:
        """Return the source text; the same plan and options give the same text on any machine."""
        program = _settled(plan, options.target).called()
        entry = Entry(program, docstring(plan, (*dataflow(plan), *_notes(options))))
        text = module_text((entry,), _header(plan), options.origin)
        return _product(text, plan, program, options)

    def adapters(self) -> Mapping[str, str]:
        """Return what each adapter stands in for, by its name."""
        from backends.nki.adapters import ADAPTERS

        return {name: adapter.doc for name, adapter in ADAPTERS.items()}

    def adapt(
        self, adapter: str, plans: Sequence[Plan], options: EmitOptions
    ) -> tuple[NkiProgram, ...]:
        """Return the exports of one module, one per plan; they share its text."""
        from backends.nki.adapters import ADAPTERS, adapted_exports

        if adapter not in ADAPTERS:
            raise UsageError(
                f"there is no adapter `{adapter}`{did_you_mean(adapter, ADAPTERS)}; "
                f"known: {', '.join(ADAPTERS)}"
            )
        row = ADAPTERS[adapter]
        programs = [_settled(plan, options.target).called() for plan in plans]
        exports = adapted_exports(row, list(zip(plans, programs, strict=True)))
        notes = (f"A drop-in for {row.doc}: same arguments, returns and aliases.", *_notes(options))
        entries = [
            Entry(program, docstring(plan, (*dataflow(plan), *notes)))
            for plan, program in zip(plans, exports, strict=True)
        ]
        header = tuple(line for plan in plans for line in _header(plan))
        text = module_text(entries, header, options.origin)
        return tuple(
            _product(text, plan, program, options)
            for plan, program in zip(plans, exports, strict=True)
        )

    def stages(self, plan: Plan, options: EmitOptions) -> dict[str, str]:
        """Return the tile program as text."""
        return {"program": program_text(_settled(plan, options.target).called())}

    def footprint(
        self, plan: Plan, options: EmitOptions, sizes: Mapping[str, int], lnc: int
    ) -> Footprint:
        """Return the on-chip memory of the core that needs most, at the widest dtypes."""
        return _footprint(_settled(plan, options.target), sizes, lnc)

    def misfits(
        self, plan: Plan, options: EmitOptions, sizes: Mapping[str, int], lnc: int
    ) -> tuple[Diagnostic, ...]:
        """Return why the kernel cannot run at given sizes: limits of axes, on-chip memory."""
        settled_ = _settled(plan, options.target)
        return misfits(
            settled_.plan.kernel.kernel,
            settled_.program,
            options.target,
            settled_.sizes(sizes),
            lnc,
            lambda changed: _footprint(settled_, changed, lnc),
        )


@frozen(eq=False)
class _Held:
    """A plan, told from others by what object it is: comparing two would walk all of both."""

    plan: Plan

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and self.plan is other.plan

    def __hash__(self) -> int:
        return id(self.plan)


def _settled(plan: Plan, target: str) -> Settled:
    return _settled_once(_Held(plan), target)


@lru_cache(maxsize=8)
def _settled_once(held: _Held, target: str) -> Settled:
    """The text, its memory and whether it fits are asked for one after the other."""
    return settled(held.plan, lambda named: _program(named, target))


def _footprint(of: Settled, sizes: Mapping[str, int], lnc: int) -> Footprint:
    return _footprint_once(of, tuple(of.sizes(sizes).items()), lnc)


@lru_cache(maxsize=32)
def _footprint_once(of: Settled, named: tuple[tuple[str, int], ...], lnc: int) -> Footprint:
    """Whether it fits is asked first, then what it takes."""
    plan, program, sizes = of.plan, of.program, dict(named)
    shapes = {
        p.name: tuple(int(evaluate(size, sizes)) for size in p.tile.shape)
        for p in program.parameters
        if p.tile is not None
    }
    numbers: dict[str, Any] = {p.name: p.default for p in plan.kernel.kernel.params}
    numbers |= {exposed.argument: exposed.default for exposed in plan.exposed}
    peaks = [
        footprint(
            program,
            shapes,
            {
                **numbers,
                "None": None,
                "nl.num_programs(0)": lnc,
                "nl.program_id(0)": core,
            },
        )
        for core in range(lnc)
    ]
    return Footprint(
        max(peak.sbuf_bytes_per_partition for peak in peaks),
        max(peak.psum_banks for peak in peaks),
    )


def _product(text: str, plan: Plan, program: Program, options: EmitOptions) -> NkiProgram:
    return NkiProgram(
        text=text,
        entry=program.entry,
        target=options.target,
        arguments=tuple(p.name for p in program.parameters),
        returns=plan.kernel.kernel.call.returns,
    )


def _program(plan: Plan, target: str) -> Program:
    """What the entry of a plan's tile program reaches. Raises CompileError where there is none."""
    return reached(_scheduled(plan, target))


def _scheduled(plan: Plan, target: str) -> Program:
    """The tile program of a plan, by its form."""
    if plan.form != "chunked":
        refuse_columns(plan)
    refuse_narrow(plan)
    refuse_without_rows(plan)
    refuse_states_in_expressions(plan)
    if not plan.runs:
        return projection_program(plan, target)
    if has_window(plan):
        return window_program(plan)
    if plan.form == "chunked":
        # The largest schedule by far: kernels of one token are compiled without importing it.
        from backends.nki.schedules.chunked import chunked_program

        return chunked_program(plan)
    return decode_program(plan, target, lambda sections: front_of(plan, sections, target))


def _header(plan: Plan) -> tuple[str, ...]:
    span = plan.kernel.kernel.span
    if span is None:
        return ()
    file = span.source.name.rsplit("/", 1)[-1]
    return (f"Generated by gdsl from {file}; edit that file, not this one.",)


def _notes(options: EmitOptions) -> tuple[str, ...]:
    release = options.nki_version or "0.3 to 0.7"
    return (f"Emitted for {options.target}, NKI {release}.",)
