"""Refusing a rule: one diagnostic that underlines the term that does not fit."""

from __future__ import annotations

from typing import NoReturn

from gdsl.diagnostics.diagnostic import Diagnostic, Label
from gdsl.errors import CompileError
from gdsl.source import Span

NOT_AFFINE = "E0401"
DOES_NOT_FIT = "E0402"
DECAY = "E0403"
READ = "E0404"
EMIT = "E0405"
SUBSTEPS = "E0406"
NEVER_WRITTEN = "E0407"

FORM = (
    "a rule is compiled when its update is `decay * S + write_key * write_value - erase * r` "
    "with one read `r = sum[K](read * S)`"
)


def refuse(
    code: str,
    message: str,
    span: Span | None,
    label: str,
    help: str,
    second: tuple[Span | None, str] | None = None,
) -> NoReturn:
    """Raise CompileError with one diagnostic; `second` is another place that matters."""
    labels = (Label(second[0], second[1]),) if second and second[0] else ()
    diagnostic = Diagnostic(
        code, message, span, label=label, labels=labels, notes=(FORM,), help=help
    )
    raise CompileError(message, (diagnostic,))
