"""Refusing an algorithm: why it would be unsafe, the limit, and what would make it safe."""

from __future__ import annotations

from attrs import frozen

from gdsl.diagnostics.diagnostic import Diagnostic
from gdsl.errors import CompileError
from gdsl.source import Span

FORM = "E0511"
DECAY = "E0512"
NORMS = "E0513"
INVERSE = "E0514"
SUBBLOCK = "E0515"
NO_CHUNKED_FORM = "E0516"


@frozen
class Unsafe:
    """A reason not to use the chunked form of a run."""

    code: str
    message: str
    span: Span | None
    label: str
    notes: tuple[str, ...]
    remedy: str | None
    """What would make it safe; None when nothing in the text would."""

    @property
    def diagnostic(self) -> Diagnostic:
        """The reason as an error."""
        return Diagnostic(
            self.code, self.message, self.span, self.label, notes=self.notes, help=self._help
        )

    @property
    def _help(self) -> str | None:
        if self.code not in (DECAY, NORMS, NO_CHUNKED_FORM):
            return self.remedy
        return f"{self.remedy}, or use `form=recurrent`" if self.remedy else "use `form=recurrent`"


def fail(*reasons: Unsafe) -> CompileError:
    """Return the error that reports the reasons."""
    message = "; ".join(reason.message for reason in reasons)
    return CompileError(message, (reason.diagnostic for reason in reasons))
