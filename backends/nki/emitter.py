"""`backends.nki.EMITTER`: the emitter protocol over this backend's stages."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from backends.nki.emit.module import module_text
from backends.nki.schedules.decode import decode_program
from gdsl.algorithm.plan import Plan
from gdsl.emitter import EmitOptions, Footprint, NkiProgram


@frozen
class NkiEmitter:
    """Maps plans to NKI source text."""

    name: str = "nki"

    def emit(self, plan: Plan, options: EmitOptions) -> NkiProgram:
        """Return the source text; the same plan and options give the same text on any machine."""
        program = decode_program(plan)
        kernel = plan.kernel.kernel
        text = module_text(program, kernel.doc, (), options.origin)
        return NkiProgram(
            text=text,
            entry=program.entry,
            target=options.target,
            arguments=tuple(p.name for p in program.parameters),
            returns=program.returns,
        )

    def stages(self, plan: Plan, options: EmitOptions) -> dict[str, str]:
        """Return the tile program as text."""
        return {"program": ""}

    def footprint(
        self, plan: Plan, options: EmitOptions, sizes: Mapping[str, int], lnc: int
    ) -> Footprint:
        """Return the on-chip memory one core needs."""
        raise NotImplementedError
