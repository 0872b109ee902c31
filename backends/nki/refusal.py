"""Refusing a kernel: what this backend cannot emit, said with the place in the text."""

from __future__ import annotations

from gdsl.diagnostics.diagnostic import Diagnostic
from gdsl.errors import CompileError
from gdsl.ir.dtypes import Dtype
from gdsl.source import Span

UNSUPPORTED = "E0521"


def refuse(
    message: str,
    span: Span | None,
    *,
    label: str = "",
    notes: tuple[str, ...] = (),
    help: str | None = None,
) -> CompileError:
    """Return the error to raise."""
    found = Diagnostic(UNSUPPORTED, message, span, label=label, notes=notes, help=help)
    return CompileError(message, (found,))


def not_rounded(dtype: Dtype, span: Span | None) -> CompileError:
    """Return the refusal of a value that is rounded to eight bits."""
    return refuse(f"rounding to {dtype.value} is not emitted", span, help="round to bf16 instead")
