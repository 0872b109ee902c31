"""What to verify, and in which combinations; what runs when nothing is said."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from attrs import field, frozen

from gdsl.emitter import EmitOptions
from gdsl.errors import CompileError, UsageError
from gdsl.ir.kernel import Kernel
from gdsl.options import TARGETS
from gdsl.pipeline import Definition
from gdsl.regimes.base import hidden_axes
from gdsl.regimes.catalogue import REGIMES
from gdsl.regimes.trial import Setting, few_heads
from gdsl.shapes import checkpoint_axes, resolve_sizes
from gdsl.verification.precisions import Precision, precisions

if TYPE_CHECKING:
    from gdsl.algorithm.plan import Plan
    from gdsl.algorithm.schedule_keys import Value

LNC_BITS = "lnc-bits"
"""The check that two cores give the bits of one; it compares two simulations."""
ALL_REGIMES: tuple[str, ...] = (*REGIMES, LNC_BITS)

_HEADS = 4
_HIDDEN = 4
"""The smallest sizes of an axis of hidden channels that a layer has."""
_TOKENS, _TAIL = 16, 5
"""Tokens of a call that has no chunks, and behind those of one chunk."""


@frozen
class Request:
    """What to verify, and in which combinations.

    Without a `shape`: the first named one. A prompt is cut to few tokens, since the regimes bring
    the lengths they need, and in chunked form to few heads; a whole layer to few heads and hidden
    channels.
    """

    definition: Definition
    shape: str | Mapping[str, int] | None = None
    targets: Sequence[str] = TARGETS
    lnc: Sequence[int] = (1, 2)
    regimes: Sequence[str] = ALL_REGIMES
    precisions: Sequence[str] | None = None
    seed: int = 0
    settings: Mapping[str, Value] = field(factory=dict)
    file: str | None = None
    """What a user types for FILE, for the commands that repeat a case."""

    @cached_property
    def kernel(self) -> Kernel:
        """The object that semantics returned; the interpreter is given this and nothing later."""
        return self.definition.kernel

    @cached_property
    def chunk(self) -> int | None:
        """Tokens per chunk; None for a kernel without chunked runs."""
        plan = self._plan({})
        return int(plan.settings["chunk"]) if plan.form == "chunked" else None

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The size of every axis."""
        sizes = resolve_sizes(self.kernel, self.definition.shapes, self.shape)
        setting = Setting(self.kernel, sizes, self.seed, self.chunk)
        hidden, axis = hidden_axes(self.kernel), setting.scan_axis
        if self.shape is not None or (axis is None and not hidden):
            return sizes
        whole = self.chunk is None and not hidden
        small = sizes if whole else few_heads(setting, _HEADS)
        for name, unit in hidden.items():
            small[name] = min(sizes[name], _HIDDEN * unit)
        if axis is not None:
            tokens = (self.chunk or _TOKENS) + _TAIL
            small[axis] = setting.tokens(min(sizes[axis], tokens))
        counted = checkpoint_axes(self.kernel, sizes)
        kept = {axis: size for axis, size in small.items() if axis not in counted}
        return resolve_sizes(self.kernel, (), kept)

    @cached_property
    def chosen(self) -> tuple[Precision, ...]:
        """The precisions that apply and are asked for. Raises UsageError when none is both."""
        schedule = self.definition.schedule(self.targets[0])
        written = {s.key: s.value for s in schedule.settings} if schedule else {}
        settings = {**written, **self.settings}
        known = precisions(self.kernel, settings, chunked=self.chunk is not None)
        chosen = tuple(p for name, p in known.items() if name in (self.precisions or known))
        if not chosen:
            asked = ", ".join(f"`{name}`" for name in self.precisions or ())
            raise UsageError(
                f"`{self.kernel.name}` has no variant in {asked}; it has {', '.join(known)}"
            )
        return chosen

    @cached_property
    def variants(self) -> tuple[Mapping[str, Value], ...]:
        """The settings to run: each way to invert a chunk that is safe and nobody has chosen."""
        from gdsl.algorithm.plan import ChunkedRun
        from gdsl.algorithm.schedule_keys import SCHEDULE_KEYS

        solves = any(isinstance(run, ChunkedRun) and run.chunk.solve for run in self._plan({}).runs)
        if not solves or "inverse" in self.settings:
            return ({},)
        found: list[Mapping[str, Value]] = []
        for way in SCHEDULE_KEYS["inverse"].choices or ():
            with suppress(CompileError):
                if way != "auto":
                    self._plan({"inverse": way})
                    found.append({"inverse": way})
        return tuple(found)

    def _plan(self, settings: Mapping[str, Value]) -> Plan:
        return self.definition.compilation(EmitOptions(), {**self.settings, **settings}).plan

    def repeat(
        self, regime: str, target: str, lnc: int, precision: str, settings: Mapping[str, Value]
    ) -> str:
        """Return the command that runs one regime in one combination again."""
        shape = ",".join(f"{axis}={size}" for axis, size in self.sizes.items())
        words = ["gdsl", "verify", self.file or self.kernel.name, "--regimes", regime]
        words += ["--shape", shape, "-t", target, "--precision", precision]
        words += [] if regime == LNC_BITS else ["--lnc", str(lnc)]
        words += ["--seed", str(self.seed)]
        for key, value in {**self.settings, **settings}.items():
            words += ["--set", f"{key}={value}"]
        return shlex.join(words)
