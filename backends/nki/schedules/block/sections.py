"""The sections of a kernel around its one delta rule, and the values that pass between them.

    Projection    a contraction over a hidden axis: weights streamed from HBM
    Convolution   a sliding window per channel, its taps, and silu
    (the rest)    one delta rule with everything before and after it: the decode schedule

What passes is *channel-major*: for each field of a packed channel axis (`q:(Hk K)`) one tile with
the field's wide axis (K or V) on partitions and (entry, head) along the free axis, entries
outermost. A field without a wide axis (a gate per head) is one number per (entry, head).
"""

from __future__ import annotations

from attrs import field, frozen

from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Input, Kernel, Output, Run, State, Statement
from gdsl.ir.node import Symbol
from gdsl.ir.types import Type


@frozen
class Field:
    """Channels of a section's result that are used together."""

    name: str
    heads: tuple[str, ...]
    """The axes of the delta rule's rows that it has beside the entry, outermost first."""
    wide: str | None
    """The axis that lies on partitions."""
    packed: tuple[tuple[str, str], ...] = ()
    """(packed axis, field): which part of the tensors' packed axis it is."""


@frozen
class Given:
    """A tensor the caller passed: entries, perhaps tokens, channels."""

    input: Input


@frozen
class Projection:
    """sum[axis](moving * weight) * scale per entry and column of the weight.

    Known by its symbol.
    """

    symbol: Symbol
    axis: str = field(eq=False)
    moving: Input | Port = field(eq=False)
    weight: Input = field(eq=False)
    rounded: Dtype | None = field(default=None, eq=False)
    """The dtype `moving` is rounded to first; None where the text rounds nothing."""
    scale: Input | None = field(default=None, eq=False)
    """A number per column of the weight."""


@frozen
class Convolution:
    """One causal filter per channel over a window, and the window slid by each token.

    Known by its symbol.
    """

    symbol: Symbol
    """The sums over the window."""
    run: Run = field(eq=False)
    state: State = field(eq=False)
    axis: str = field(eq=False)
    """The columns of the window."""
    newest_inside: bool = field(eq=False)
    """Whether the taps see a window that includes the new token (W columns), or not (W - 1)."""
    weight: Input = field(eq=False)
    token: tuple[Port, ...] = field(eq=False)
    """The raw tokens, for each field in the order of `fields`."""
    fields: tuple[Field, ...] = field(eq=False)
    rounded: Dtype | None = field(eq=False)
    """The dtype tokens are rounded to; None where they come in the dtype they are used in."""
    windows: tuple[Output, ...] = field(eq=False)
    """The tensors that are the new window."""
    token_windows: tuple[Output, ...] = field(eq=False)
    """The tensors that hold the window after each token."""


Section = Given | Projection | Convolution


@frozen
class Port:
    """One field of a section's result."""

    section: Section
    field: Field
    silu: bool = False
    """Whether the value is x * sigmoid(x) of it."""


@frozen
class Value:
    """A port that the delta rule's part of the text uses, and the name that stands for it."""

    symbol: Symbol
    name: str
    type: Type
    port: Port
    late: bool = False
    """Whether the delta rule does not need it: only outputs do."""


@frozen
class Sections:
    """A kernel, cut."""

    kernel: Kernel
    entry: str
    """The batch axis: the outermost axis of the delta rule's rows."""
    key_axis: str
    """The axis that the delta rule's reads contract."""
    projections: tuple[Projection, ...]
    """In the order of the text; one that uses another comes later."""
    convolutions: tuple[Convolution, ...]
    values: tuple[Value, ...]
    body: tuple[Statement, ...]
    """The definitions and the run that are left for the decode schedule."""
    outputs: tuple[Output, ...]
    """The outputs that are no windows, over what is left."""
    mentioned: frozenset[Symbol]
    """Every name that what is left mentions, the addresses of its state included."""
    ports: tuple[Port, ...] = field(init=False)
    """Every port that anything asks for, each once, in order of first use."""

    @ports.default
    def _all_ports(self) -> tuple[Port, ...]:
        found: dict[Port, None] = {}
        for projection in self.projections:
            if isinstance(projection.moving, Port):
                found[projection.moving] = None
        for convolution in self.convolutions:
            found |= dict.fromkeys(convolution.token)
        found |= dict.fromkeys(value.port for value in self.values)
        return tuple(found)
