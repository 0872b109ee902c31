"""Names, arguments and methods of NKI that not every release has."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence, Set
from difflib import get_close_matches

from backends.isa.instructions import ENGINE_ALIASES, ENUMERATIONS, INSTRUCTIONS
from backends.isa.schema import Instruction
from backends.isa.targets import find_target
from backends.isa.versions import CHANGES, NEWEST, VERSIONS, Change
from backends.simulator.language import language
from backends.simulator.lint_finding import Finding, at
from backends.simulator.lint_scope import Aliases, KernelParts

_CHANGES = {change.name: change for change in CHANGES}
_METHODS = {
    change.name.removeprefix("tensor."): change for change in CHANGES if change.where == "method"
}
_ISA_NAMES = {
    *INSTRUCTIONS,
    *ENUMERATIONS,
    *ENGINE_ALIASES,
    "NkiInstruction",
    "NkiValidationError",
    "VirtualRegister",
    "constants",
    "get_nc_version",
    "get_nc_sub_version",
}


def api_findings(
    tree: ast.Module, aliases: Aliases, parts: KernelParts, versions: Sequence[str]
) -> Iterator[Finding]:
    """Yield findings about NKI names in the whole file and methods in its kernel code."""
    known = vars(language(find_target("trn2")))
    for node in ast.walk(tree):
        dotted = aliases.dotted(node) if isinstance(node, ast.Attribute | ast.Name) else None
        if dotted is not None:
            yield from _name(node, dotted, known.keys(), versions)
        if isinstance(node, ast.Call):
            yield from _arguments(node, aliases, versions)
    for function in parts.functions:
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                change = _METHODS.get(node.func.attr)
                if change is not None and aliases.dotted(node.func) is None:
                    yield from _change(
                        node.func,
                        f"tensor method `{node.func.attr}`",
                        change,
                        versions,
                        error=False,
                    )


def _name(
    node: ast.AST, dotted: str, language_names: Set[str], versions: Sequence[str]
) -> Iterator[Finding]:
    change = _CHANGES.get(dotted)
    if change is not None:
        yield from _change(node, f"`{dotted}`", change, versions)
        return
    space, _, name = dotted.partition(".")
    if "." in name or not name:
        return
    if space == "nisa" and name not in _ISA_NAMES:
        yield _unknown(node, dotted, _ISA_NAMES)
    elif space == "nisa" and name in INSTRUCTIONS:
        since = INSTRUCTIONS[name].since
        if since != VERSIONS[0]:
            added = Change("call", dotted, "see the release notes", added=since)
            yield from _change(node, f"`{dotted}`", added, versions)
    elif space == "nl" and name not in language_names:
        yield _unknown(node, dotted, language_names)


def _unknown(node: ast.AST, dotted: str, names: Set[str]) -> Finding:
    space, _, name = dotted.partition(".")
    close = get_close_matches(name, sorted(names), 1)
    hint = f"did you mean `{space}.{close[0]}`?" if close else None
    return at(node, "S603", f"NKI has no `{dotted}`", hint)


def _arguments(node: ast.Call, aliases: Aliases, versions: Sequence[str]) -> Iterator[Finding]:
    dotted = aliases.dotted(node.func)
    if dotted is None:
        return
    row = INSTRUCTIONS.get(dotted.removeprefix("nisa.")) if dotted.startswith("nisa.") else None
    for keyword in node.keywords:
        if keyword.arg is None:
            continue
        change = _CHANGES.get(f"{dotted}({keyword.arg})")
        value = keyword.value
        if change is None and isinstance(value, ast.Constant) and value.value is None:
            change = _CHANGES.get(f"{dotted}({keyword.arg}=None)")
        if change is not None:
            yield from _change(keyword, f"`{keyword.arg}` of `{dotted}`", change, versions)
        elif row is not None:
            yield from _parameter(keyword, row, versions)


def _parameter(
    keyword: ast.keyword, row: Instruction, versions: Sequence[str]
) -> Iterator[Finding]:
    name = keyword.arg or ""
    param = row.by_name.get(name)
    if param is None:
        names = [param.name for param in row.params]
        close = get_close_matches(name, names, 1)
        hint = f"did you mean `{close[0]}`?" if close else f"its arguments: {', '.join(names)}"
        yield at(keyword, "S603", f"`nisa.{row.name}` has no argument `{name}`", hint)
    elif param.since != VERSIONS[0]:
        added = Change("argument", name, "leave it out", added=param.since)
        yield from _change(keyword, f"`{name}` of `nisa.{row.name}`", added, versions)


def _change(
    node: ast.AST, what: str, change: Change, versions: Sequence[str], *, error: bool = True
) -> Iterator[Finding]:
    """Yield what the asked releases say about a name that came, went or is going."""
    missing = [version for version in versions if not change.exists(version)]
    if missing:
        span = missing[0] if len(missing) == 1 else f"{missing[0]} to {missing[-1]}"
        yield at(node, "S603", f"{what} is not in NKI {span}", change.rule, error=error)
    elif change.deprecated is not None and versions[-1] == NEWEST:
        yield at(
            node,
            "S603",
            f"{what} is deprecated since NKI {change.deprecated}",
            change.rule,
            error=False,
        )
