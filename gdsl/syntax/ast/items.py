"""The lines of a kernel or rule."""

from __future__ import annotations

from attrs import frozen

from gdsl.syntax.ast.base import Doc, Name, Node
from gdsl.syntax.ast.expressions import Expr, Keyword
from gdsl.syntax.ast.tensors import Axis, Composite, Packed, Tensor


@frozen
class Axes(Node):
    """An `axes` line."""

    axes: tuple[Axis | Composite | Packed, ...]


@frozen
class Dtypes(Node):
    """`dtypes X in bf16, f32`."""

    name: Name
    choices: tuple[Name, ...]


@frozen
class Interval(Node):
    """`in (-inf, 0]`."""

    lo: float
    hi: float
    lo_open: bool
    hi_open: bool
    lo_text: str
    hi_text: str


@frozen
class Literal(Node):
    """A number or boolean with its sign, as written."""

    text: str
    value: float | int | bool


@frozen
class Default(Node):
    """`or 0.0`, `or T`."""

    value: Literal | Name


@frozen
class Input(Node):
    """`input q, k: X[B, Hk, K] in [0, 1] or 0.0 "doc"`; clauses in the order written."""

    names: tuple[Name, ...]
    tensor: Tensor
    clauses: tuple[Interval | Default, ...]
    doc: Doc | None


@frozen
class Param(Node):
    """`param scale: float = 1.0`, with a range behind it or not."""

    name: Name
    kind: str
    default: Literal | None
    limits: Interval | None
    doc: Doc | None


@frozen
class Assume(Node):
    """`assume sum[K](k * k) <= 1.01`."""

    condition: Expr


@frozen
class Argument(Node):
    """A state that starts from an argument."""

    name: Name


@frozen
class Slots(Node):
    """`pool[N at read -> write]`."""

    name: Name
    axis: Name
    read: Name
    write: Name


@frozen
class Accepted(Node):
    """`states[P at accepted]`."""

    name: Name
    axis: Name
    accepted: Name


@frozen
class Inplace(Node):
    """`inplace`."""


@frozen
class OrZeros(Node):
    """`or zeros`."""


@frozen
class Unless(Node):
    """`unless has_initial_state`."""

    flag: Name


@frozen
class State(Node):
    """`state S: f32[B, Hv, K, V] = recurrent_state inplace or zeros`."""

    name: Name
    tensor: Tensor
    initial: Argument | Slots | Accepted
    clauses: tuple[Inplace | OrZeros | Unless, ...]
    doc: Doc | None


@frozen
class Let(Node):
    """`a = expr`, or one target per field of an `unpack`."""

    targets: tuple[Name, ...]
    value: Expr


@frozen
class RuleCall(Node):
    """`gated_delta[Dk, Dv](q, k, ...)`; no axes means they bind by equal names."""

    rule: Name
    axes: tuple[Name, ...]
    arguments: tuple[Expr | Keyword, ...]


@frozen
class Every(Node):
    """`every N -> P`."""

    count: Literal | Name
    axis: Name | None


@frozen
class Step(Node):
    """`o, S = step rule(...)`."""

    targets: tuple[Name, ...]
    call: RuleCall


@frozen
class Scan(Node):
    """`o, S, Ss = scan[T < valid_len every 1] rule(...)`."""

    targets: tuple[Name, ...]
    axis: Name
    valid_len: Name | None
    every: Every | None
    call: RuleCall


@frozen
class Output(Node):
    """`output out: X[B, Hv, T, V] = o`; without a tensor it takes that of the state it returns."""

    name: Name
    tensor: Tensor | None
    value: Expr
    doc: Doc | None


@frozen
class CallArgument(Node):
    """`name`, or `name = key`; `ignored` for `name = ignored`."""

    name: Name
    key: Name | None
    ignored: bool


@frozen
class CallLine(Node):
    """`call (...) -> out, S`."""

    arguments: tuple[CallArgument, ...]
    returns: tuple[Name, ...]


Statement = Let | Step | Scan
KernelItem = Axes | Dtypes | Input | Param | Assume | State | Let | Step | Scan | Output | CallLine
