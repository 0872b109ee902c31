"""READ THIS FIRST: the whole compiler, in order.

    text -> parse -> ast -> elaborate -> kernel -> canonicalize -> canonical -> choose -> plan
         -> emit -> program (NKI text)

Each level is computed when it is first asked for, and kept; `--emit` prints any of them. A
`KernelFile` and a `Definition` hold the levels up to `kernel`: what a text means. The rest is a
`Compilation`: one way to compute it on one target. A stage is imported when it runs, so that
running a kernel loads nothing of the compiler behind `kernel`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import field, frozen

from gdsl import registry
from gdsl.diagnostics.diagnostic import Diagnostic
from gdsl.emitter import EmitOptions, NkiProgram
from gdsl.errors import UsageError
from gdsl.ir.kernel import Kernel, Module, Schedule, Shape
from gdsl.library import loader, usable
from gdsl.source import Source
from gdsl.suggest import did_you_mean

if TYPE_CHECKING:
    from gdsl.algorithm.plan import Plan
    from gdsl.algorithm.schedule_keys import Value
    from gdsl.canonical.form import CanonicalKernel
    from gdsl.syntax.ast import File

MOST_COMPILATIONS = 8
"""Compilations that a definition keeps, those asked for last."""


@frozen
class KernelFile:
    """One `.gdn` text. Levels raise CompileError when first asked for."""

    source: Source
    folder: Path | None = None
    """What quoted `use` paths are relative to."""

    @cached_property
    def ast(self) -> File:
        """Text -> syntax tree."""
        from gdsl.syntax.parse import parse

        return parse(self.source)

    @cached_property
    def elaborated(self) -> tuple[Module, tuple[Diagnostic, ...]]:
        """Syntax tree -> typed recurrences of the file, and warnings."""
        from gdsl.semantics.elaborate import elaborate

        return elaborate(self.ast, loader(self.folder), usable(self.folder))

    @property
    def module(self) -> Module:
        """The typed recurrences of the file."""
        return self.elaborated[0]


@frozen
class Definition:
    """One kernel as its text defines it: the one that was named, or the only one of the file."""

    file: KernelFile
    name: str | None = None
    _compilations: dict[tuple[EmitOptions, str], Compilation] = field(
        init=False, factory=dict, eq=False, repr=False
    )

    @cached_property
    def kernel(self) -> Kernel:
        """The typed recurrence. Raises CompileError, and UsageError for a name not in the file."""
        kernels = {kernel.name: kernel for kernel in self.file.module.kernels}
        where = self.file.source.name
        if self.name is None and len(kernels) == 1:
            return next(iter(kernels.values()))
        held = ", ".join(f"`{known}`" for known in kernels) or "none"
        if self.name is None:
            raise UsageError(
                f"`{where}` does not hold exactly one kernel (it holds {held}); "
                f"name one, for example `{where}:{next(iter(kernels), 'KERNEL')}`"
            )
        if self.name not in kernels:
            raise UsageError(
                f"`{where}` holds no kernel `{self.name}`{did_you_mean(self.name, kernels)}; "
                f"it holds {held}"
            )
        return kernels[self.name]

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """The named sizes that the file gives for the kernel."""
        tables = dict(self.file.module.shapes)
        return tables.get(self.kernel.name, ())

    def schedule(self, target: str) -> Schedule | None:
        """The file's `schedule` block for the kernel on a target (one without targets: all)."""
        for schedule in self.file.module.schedules:
            fits = not schedule.targets or target in schedule.targets
            if schedule.kernel == self.kernel.name and fits:
                return schedule
        return None

    def compilation(self, options: EmitOptions, settings: Mapping[str, Value]) -> Compilation:
        """The kernel on its way to one target; levels that were computed before are there."""
        key = (options, repr(list(settings.items())))
        found = self._compilations.pop(key, None) or Compilation(self, options, dict(settings))
        if len(self._compilations) >= MOST_COMPILATIONS:
            del self._compilations[next(iter(self._compilations))]
        self._compilations[key] = found
        return found


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
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What is legal and most likely not meant: idle schedule keys, decays that do not decay."""
        from gdsl.algorithm.decays import suspect_decays
        from gdsl.algorithm.plan import effective_forms
        from gdsl.algorithm.settings import idle_keys

        plan = self.plan
        forms = effective_forms(plan.form, plan.kernel)
        idle = idle_keys(plan.resolved, forms, plan.kernel.kernel.name)
        return (*idle, *suspect_decays(plan))

    @cached_property
    def program(self) -> NkiProgram:
        """Plan -> tile program -> NKI text."""
        return registry.emitter().emit(self.plan, self.options)


# ---- every level as text


def _ast(compilation: Compilation) -> str:
    from gdsl.tree import tree_text

    return tree_text(compilation.definition.file.ast)


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
