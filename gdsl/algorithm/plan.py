"""A plan: which algorithm computes each run of a kernel, with every setting resolved.

It is a value and knows no device. Expressions in it refer to the parameters of the run's rule;
`gdsl.canonical.substitute` puts the run's arguments in their place.
"""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from gdsl.algorithm.chunk_plan import ChunkPlan
from gdsl.algorithm.schedule_keys import SCHEDULE_KEYS, WINDOW, Value
from gdsl.canonical.form import Canonical, CanonicalKernel, Delta, Window
from gdsl.ir.kernel import Run
from gdsl.ir.node import Node

Form = Literal["decode", "recurrent", "chunked"]
Origin = Literal["default", "derived", "file", "override"]


@frozen
class Resolved(Node):
    """A schedule key with its final value and who decided it; the span is where it was written."""

    key: str
    value: Value
    origin: Origin


@frozen
class Exposed:
    """A schedule key that the emitted kernel takes as the trace-time argument `argument`."""

    argument: str
    key: str
    default: Value


@frozen
class TokenRun(Node):
    """A run computed token by token (a `step` is one token); every window rule is one."""

    run: Run
    canonical: Canonical


@frozen
class ChunkedRun(Node):
    """A run computed chunk by chunk."""

    run: Run
    canonical: Delta
    chunk: ChunkPlan


RunPlan = TokenRun | ChunkedRun


def effective_forms(form: Form, kernel: CanonicalKernel) -> frozenset[str]:
    """Return the forms whose keys count for a kernel: its own, `window` for a sliding window."""
    windows = [isinstance(canonical, Window) for _, canonical in kernel.runs]
    forms: set[str] = {WINDOW} if any(windows) else set()
    return frozenset(forms if windows and all(windows) else forms | {form})


@frozen
class Plan(Node):
    """A kernel with an algorithm for each run, in body order.

    `why` holds one sentence per decision, as `gdsl check` prints them.
    """

    kernel: CanonicalKernel
    form: Form
    resolved: tuple[Resolved, ...]
    runs: tuple[RunPlan, ...]
    exposed: tuple[Exposed, ...] = ()
    why: tuple[str, ...] = ()

    @property
    def settings(self) -> dict[str, Value]:
        """Every schedule key with its final value, for reports and for the emitter."""
        return {setting.key: setting.value for setting in self.resolved}

    def takes(self, key: str) -> bool:
        """Whether a schedule key has an effect here."""
        return bool(effective_forms(self.form, self.kernel) & set(SCHEDULE_KEYS[key].forms))
