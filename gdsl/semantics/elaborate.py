"""Syntax tree -> typed recurrences. The order of work of one file."""

from __future__ import annotations

from gdsl.diagnostics.diagnostic import Diagnostic
from gdsl.errors import CompileError
from gdsl.ir.kernel import Kernel, Module, Schedule, Shape
from gdsl.semantics import definitions, kernel, settings
from gdsl.semantics.report import Reporter
from gdsl.semantics.scope import Linker, Load, Near
from gdsl.source import Span
from gdsl.syntax import ast


def elaborate(
    file: ast.File, load: Load, near: Near = lambda name: ()
) -> tuple[Module, tuple[Diagnostic, ...]]:
    """Return what a file defines, and warnings.

    `load` finds the text of a used library (None: there is none), `near` lists what else there is.
    Raises CompileError with every independent error of the file and of the libraries it uses.
    """
    reporter = Reporter()
    scope = Linker(load, reporter, near).link(file)
    for definition in scope.own.values():
        definitions.is_sound(definition, reporter)
    declared = _kernels(file, reporter)
    kernels = {name: kernel.elaborate(node, scope, reporter) for name, node in declared.items()}
    schedules = _schedules(file, declared, reporter)
    shapes = _shapes(file, declared, kernels, reporter)
    found = reporter.sorted()
    if reporter.has_errors():
        raise CompileError(_summary(found), found)
    whole = tuple(made for made in kernels.values() if made is not None)
    return Module(whole, schedules, shapes, span=file.span), found


def _summary(found: tuple[Diagnostic, ...]) -> str:
    first = next(d for d in found if d.severity.value == "error")
    return first.message


def _kernels(file: ast.File, reporter: Reporter) -> dict[str, ast.Kernel]:
    declared: dict[str, ast.Kernel] = {}
    seen: dict[str, Span] = {}
    for node in file.declarations:
        if isinstance(node, ast.Kernel):
            name = node.name
            declared.setdefault(name.text, node)
            reporter.is_first(seen, name.text, name.span, f"there are two kernels `{name.text}`")
    return declared


def _schedules(
    file: ast.File, declared: dict[str, ast.Kernel], reporter: Reporter
) -> tuple[Schedule, ...]:
    made: list[tuple[ast.Schedule, Schedule]] = []
    for node in file.declarations:
        if isinstance(node, ast.Schedule) and settings.known_kernel(
            node.kernel, declared, reporter
        ):
            made.append((node, settings.schedule(node, reporter)))
    settings.overlapping(made, reporter)
    return tuple(schedule for _, schedule in made)


def _shapes(
    file: ast.File,
    declared: dict[str, ast.Kernel],
    kernels: dict[str, Kernel | None],
    reporter: Reporter,
) -> tuple[tuple[str, tuple[Shape, ...]], ...]:
    found: dict[str, tuple[Shape, ...]] = {}
    for node in file.declarations:
        if isinstance(node, ast.Shapes) and settings.known_kernel(node.kernel, declared, reporter):
            name = node.kernel.text
            if name in found:
                reporter.error("E0202", f"`{name}` has two blocks of shapes", node.kernel.span)
            else:
                found[name] = settings.shapes(node, kernels[name], reporter)
    return tuple(found.items())
