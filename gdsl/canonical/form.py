"""The canonical recurrence: the closed union `Delta | Window` behind every rule.

Per token and per mapped index (batch, head, ...), with S carrying key axis K and value axis V:

    S' = decay . S                         decay: none, scalar, K-vector, V-vector or constant
    r  = sum[K](read * (S' or S))          post- or pre-decay read
    S  = S' + write_key (x) write_value - erase (x) r
    o  = sum[K](query * S) + skip

Expressions refer to the rule's parameters (`Rule.params` of the `Run` they stand for); a consumer
puts the run's arguments in their place with `gdsl.canonical.substitute.bind_arguments`.
"""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from gdsl.ir.expr import Expr
from gdsl.ir.kernel import Kernel, Run
from gdsl.ir.node import Node, Symbol


class DecayKind(Enum):
    """Along which axis of the state the decay varies."""

    NONE = "none"
    SCALAR = "scalar"
    KEY_VECTOR = "key vector"
    VALUE_VECTOR = "value vector"


class ReadWhen(Enum):
    """Whether the delta read sees the decayed state."""

    POST = "post"
    PRE = "pre"


@frozen
class Decay(Node):
    """`factor` multiplies S. `log` is its logarithm where the text shows it, as in exp(log).

    `factor` refers to the rule's parameters like everything else; `log` is found through the
    definitions of the kernel, so it refers to the kernel's own names.
    """

    kind: DecayKind
    factor: Expr | None
    log: Expr | None
    constant: bool
    """The same for every token: it varies neither with the scan axis nor, in a step, with any
    input."""


@frozen
class Read(Node):
    """r = sum[K](vector * S)."""

    vector: Expr
    when: ReadWhen


@frozen
class RankOne(Node):
    """An outer product key (x) value added to S."""

    key: Expr
    value: Expr


@frozen
class Emit(Node):
    """o = sum[axis](query * S) + skip, with `axis` the key axis of every rule but a few.

    `after` False: S is the state at the start of the token, before its decay (RWKV-6). `axis` is
    the value axis for a rule whose delta read contracts the other axis (gated Oja). `query` None:
    the output does not read the state.
    """

    result: Symbol
    query: Expr | None
    skip: Expr | None
    after: bool
    axis: str


@frozen
class Delta(Node):
    """A delta-rule recurrence with one read. `write` is None for pure erase, `erase` for none.

    `substeps` names the axis of ordered sub-steps per token (DeltaProduct); the decay applies on
    sub-step 0, the emit after the last.
    """

    key_axis: str
    value_axis: str
    decay: Decay
    read: Read | None
    write: RankOne | None
    erase: Expr | None
    emits: tuple[Emit, ...]
    substeps: str | None = None


@frozen
class WindowEmit(Node):
    """y = sum[axis](window * taps) + skip; `after` False: the window before the new column.

    `taps` None: the output does not read the window.
    """

    result: Symbol
    taps: Expr | None
    skip: Expr | None
    after: bool


@frozen
class Window(Node):
    """A sliding window along `axis`: drop the oldest column, append `value`."""

    axis: str
    value: Expr
    emits: tuple[WindowEmit, ...]


Canonical = Delta | Window


@frozen
class CanonicalKernel(Node):
    """A kernel with the canonical form of each of its runs, in body order."""

    kernel: Kernel
    runs: tuple[tuple[Run, Canonical], ...]
