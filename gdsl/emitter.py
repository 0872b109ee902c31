"""What turns a plan into NKI text. A protocol and its values; `backends.nki` implements it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from attrs import field, frozen

if TYPE_CHECKING:
    from gdsl.algorithm.plan import Plan
    from gdsl.diagnostics.diagnostic import Diagnostic


@frozen
class EmitOptions:
    """What the text is for, apart from what the plan already says."""

    target: str = "trn2"
    """The machine: "trn2" or "trn3"."""
    nki_version: str | None = None
    """An NKI release such as "0.5"; None keeps to what 0.3 to 0.7 have in common."""
    origin: bool = True
    """Whether comments name the `.gdn` line each part came from."""


@frozen
class NkiProgram:
    """One importable NKI module. It needs nothing of gdsl."""

    text: str = field(repr=False)
    entry: str
    """Name of the `@nki.jit` function to launch."""
    target: str
    arguments: tuple[str, ...]
    """The entry's parameters, in order: the kernel's call line."""
    returns: tuple[str, ...]
    """Names of the tensors the entry returns, in order."""


@frozen
class Footprint:
    """On-chip memory a kernel needs at given sizes, from the tile program's own accounting."""

    sbuf_bytes_per_partition: int
    psum_banks: int


class Emitter(Protocol):
    """Maps plans to NKI. Raises CompileError where the target's limits do not admit the plan."""

    name: str
    versions: tuple[str, ...]
    """NKI releases that a text can be written for, oldest first."""

    def emit(self, plan: Plan, options: EmitOptions) -> NkiProgram:
        """Return the source text; the same plan and options give the same text on any machine."""

    def adapters(self) -> Mapping[str, str]:
        """Return what each adapter stands in for, by its name."""

    def adapt(
        self, adapter: str, plans: Sequence[Plan], options: EmitOptions
    ) -> tuple[NkiProgram, ...]:
        """Return one drop-in module: a program per plan, all with the module's text.

        Raises UsageError for an unknown adapter or a kernel it does not export, and CompileError
        where a kernel's call is not the one it stands in for.
        """

    def stages(self, plan: Plan, options: EmitOptions) -> dict[str, str]:
        """Return what lies between plan and text as printable text, by stage name ("program")."""

    def footprint(
        self, plan: Plan, options: EmitOptions, sizes: Mapping[str, int], lnc: int
    ) -> Footprint:
        """Return the memory one program needs when the axes have these sizes on `lnc` cores."""

    def misfits(
        self, plan: Plan, options: EmitOptions, sizes: Mapping[str, int], lnc: int
    ) -> tuple[Diagnostic, ...]:
        """Return why the plan cannot run on the target at these sizes; empty when it fits."""
