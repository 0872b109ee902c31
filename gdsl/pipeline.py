"""READ THIS FIRST: the whole compiler, in order.

    text -> parse -> ast -> elaborate -> kernel -> canonicalize -> canonical -> choose -> plan
         -> emit -> program (NKI text)

Each level is computed when it is first asked for, and kept; `--emit` prints any of them. The
levels up to `kernel` are a `Definition`: what a text means. The rest is a `Compilation`: one way to
compute it on one target. A stage is imported when it runs, so that running a kernel loads nothing
of the compiler behind `kernel`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from attrs import field, frozen

from gdsl import registry
from gdsl.diagnostics.diagnostic import Diagnostic
from gdsl.emitter import EmitOptions, NkiProgram
from gdsl.errors import UsageError
from gdsl.ir.kernel import Kernel, Module, Schedule, Shape
from gdsl.library import Located, loader
from gdsl.suggest import did_you_mean

if TYPE_CHECKING:
    from gdsl.algorithm.plan import Plan
    from gdsl.algorithm.schedule_keys import Value
    from gdsl.canonical.form import CanonicalKernel
    from gdsl.syntax.ast import File


@frozen
class Definition:
    """One kernel as its text defines it. Levels raise CompileError when first asked for."""

    located: Located

    @cached_property
    def ast(self) -> File:
        """Text -> syntax tree."""
        from gdsl.syntax.parse import parse

        return parse(self.located.source)

    @cached_property
    def elaborated(self) -> tuple[Module, tuple[Diagnostic, ...]]:
        """Syntax tree -> typed recurrences of the file, and warnings."""
        from gdsl.semantics.elaborate import elaborate

        return elaborate(self.ast, loader(self.located.folder))

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel that was named, or the only one of the file. Raises UsageError."""
        kernels = {kernel.name: kernel for kernel in self.elaborated[0].kernels}
        wanted = self.located.kernel
        name = self.located.source.name
        if wanted is None and len(kernels) == 1:
            return next(iter(kernels.values()))
        if wanted is None:
            held = ", ".join(f"`{known}`" for known in kernels) or "none"
            example = next(iter(kernels), "KERNEL")
            raise UsageError(
                f"`{name}` does not hold exactly one kernel (it holds {held}); "
                f"name one, for example `{name}:{example}`"
            )
        if wanted not in kernels:
            raise UsageError(
                f"`{name}` holds no kernel `{wanted}`{did_you_mean(wanted, kernels)}; "
                f"it holds {', '.join(f'`{known}`' for known in kernels) or 'none'}"
            )
        return kernels[wanted]

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """The named sizes that the file gives for the kernel."""
        tables = dict(self.elaborated[0].shapes)
        return tables.get(self.kernel.name, ())

    def schedule(self, target: str) -> Schedule | None:
        """The file's `schedule` block for the kernel on a target."""
        for schedule in self.elaborated[0].schedules:
            if schedule.kernel == self.kernel.name and target in schedule.targets:
                return schedule
        return None


@frozen
class Compilation:
    """One kernel on its way to one target. Levels raise CompileError when first asked for."""

    definition: Definition
    options: EmitOptions = field(factory=EmitOptions)
    settings: Mapping[str, Value] = field(factory=dict)
    """Schedule keys set from outside; they win over the file's `schedule` block."""

    @cached_property
    def canonical(self) -> CanonicalKernel:
        """Typed recurrence -> canonical recurrence: decay, read, write, emit."""
        from gdsl.canonical.canonicalize import canonicalize

        return canonicalize(self.definition.kernel)

    @cached_property
    def plan(self) -> Plan:
        """Canonical recurrence -> how to compute it: recurrent or chunked, what is safe."""
        from gdsl.algorithm.choose import choose

        schedule = self.definition.schedule(self.options.target)
        return choose(self.canonical, self.settings, schedule)

    @cached_property
    def program(self) -> NkiProgram:
        """Plan -> tile program -> NKI text."""
        return registry.emitter().emit(self.plan, self.options)


# ---- every level as text


def _ast(compilation: Compilation) -> str:
    from gdsl.tree import tree_text

    return tree_text(compilation.definition.ast)


def _ir(compilation: Compilation) -> str:
    from gdsl.ir.text import kernel_text

    return kernel_text(compilation.definition.kernel)


def _canonical(compilation: Compilation) -> str:
    from gdsl.canonical.text import canonical_text

    return canonical_text(compilation.canonical)


def _plan(compilation: Compilation) -> str:
    from gdsl.algorithm.text import plan_text

    return plan_text(compilation.plan)


def _program(compilation: Compilation) -> str:
    return "\n".join(registry.emitter().stages(compilation.plan, compilation.options).values())


def _nki(compilation: Compilation) -> str:
    return compilation.program.text


STAGES: dict[str, Callable[[Compilation], str]] = {
    "ast": _ast,
    "ir": _ir,
    "canonical": _canonical,
    "plan": _plan,
    "program": _program,
    "nki": _nki,
}
