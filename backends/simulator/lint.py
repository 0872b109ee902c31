"""Static check of an NKI source file: what the compiler's Python subset and its releases refuse.

The simulator runs all of Python; NKI does not. This reads the text only. What the language guide
documents is an error; what the documents leave open, or only third parties report, is a warning.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from pathlib import Path

from backends.isa.versions import VERSIONS
from backends.simulator.fault_table import FAULTS
from backends.simulator.lint_api import api_findings
from backends.simulator.lint_finding import Finding
from backends.simulator.lint_python import class_findings, function_findings, module_findings
from backends.simulator.lint_scope import Aliases, kernel_parts
from gdsl.diagnostics.diagnostic import Diagnostic, Severity
from gdsl.errors import UsageError
from gdsl.source import Source, Span


def lint_file(path: Path, nki_version: str | None = None) -> tuple[Diagnostic, ...]:
    """Return the findings of a file, for one release or for all known ones.

    Raises UsageError when the file cannot be read or the release is not known.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"`{path}`: {getattr(error, 'strerror', None) or error}") from None
    return lint_text(Source(str(path), text), nki_version)


def lint_text(source: Source, nki_version: str | None = None) -> tuple[Diagnostic, ...]:
    """Return the findings of a module's text in the order of its lines."""
    versions = _versions(nki_version)
    try:
        tree = ast.parse(source.text)
    except SyntaxError as error:
        message = f"the file is not Python: {error.msg}"
        return (_diagnostic(source, Finding("S601", error.lineno or 1, 0, 0, message)),)
    aliases = Aliases.of(tree)
    parts = kernel_parts(tree, aliases)
    findings = [
        *module_findings(tree, aliases),
        *(found for node in parts.functions for found in function_findings(node, aliases, parts)),
        *(found for node in parts.classes for found in class_findings(node, aliases)),
        *api_findings(tree, aliases, parts, versions),
    ]
    return tuple(_diagnostic(source, found) for found in _in_order(findings))


def _versions(nki_version: str | None) -> Sequence[str]:
    if nki_version is None:
        return VERSIONS
    if nki_version not in VERSIONS:
        known = ", ".join(f"`{version}`" for version in VERSIONS)
        raise UsageError(f"NKI release `{nki_version}` is not known; known are {known}")
    return (nki_version,)


def _in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings by place, each once."""
    return sorted(set(findings), key=lambda found: (found.line, found.column, found.message))


def _diagnostic(source: Source, found: Finding) -> Diagnostic:
    lines = source.text.split("\n")
    row = min(max(found.line, 1), len(lines)) - 1
    begin = sum(len(line) + 1 for line in lines[:row])
    end = begin + (found.end or len(lines[row]))
    info = FAULTS[found.code]
    return Diagnostic(
        code=found.code,
        message=found.message,
        span=Span(source, begin + found.column, end),
        label=info.title,
        notes=(f"rule: {info.rule}",),
        help=found.help,
        severity=Severity.ERROR if found.error else Severity.WARNING,
    )
