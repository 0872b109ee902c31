"""The syntax tree of a `.gdn` file: what the text says, before any of it has a meaning.

Every node knows its span; spans never take part in equality, so two trees are equal when their
texts differ in layout and comments only.
"""

from __future__ import annotations

from attrs import field, frozen

from gdsl.source import Span


@frozen
class Node:
    """A piece of syntax and where it stands."""

    span: Span = field(eq=False, repr=False, kw_only=True)


@frozen
class Name(Node):
    """An identifier."""

    text: str


@frozen
class Doc(Node):
    """A doc string without its quotes; `quotes` is the delimiter it was written with."""

    text: str
    quotes: str


# ---------------------------------------------------------------- expressions


@frozen
class Number(Node):
    """A number as written (`text`) and its value; an integer keeps exact digits."""

    text: str
    value: float | int


@frozen
class NameUse(Node):
    """A value, a param, or an axis standing for its size."""

    name: str


@frozen
class Binary(Node):
    """`operator` is one of + - * / ** < <= > >= == !=."""

    operator: str
    left: Expr
    right: Expr


@frozen
class Negate(Node):
    """`-x`."""

    operand: Expr


@frozen
class Group(Node):
    """An expression in parentheses; kept so that the formatter returns what was written."""

    inner: Expr


@frozen
class Keyword(Node):
    """`name = value` in an argument list."""

    name: Name
    value: Expr


@frozen
class Call(Node):
    """A call of a `fn`."""

    function: Name
    axes: tuple[Name, ...]
    arguments: tuple[Expr | Keyword, ...]


@frozen
class Builtin(Node):
    """An elementwise built-in: `exp(x)`, `where(c, a, b)`."""

    function: Name
    arguments: tuple[Expr | Keyword, ...]


@frozen
class Reduction(Node):
    """`sum[K](x)`."""

    function: Name
    axes: tuple[Name, ...]
    operand: Expr


@frozen
class Index(Node):
    """`index[H]()`."""

    axes: tuple[Name, ...]


@frozen
class Shift(Node):
    """`shift[W](window, x)`."""

    axes: tuple[Name, ...]
    window: Expr
    value: Expr


@frozen
class Unpack(Node):
    """`unpack[C](x)`."""

    axes: tuple[Name, ...]
    operand: Expr


@frozen
class Rename(Node):
    """`rename[K -> J](x)`."""

    source: Name
    target: Name
    operand: Expr


@frozen
class Cast(Node):
    """`bf16(x)`."""

    dtype: Name
    operand: Expr


Expr = (
    Number
    | NameUse
    | Binary
    | Negate
    | Group
    | Call
    | Builtin
    | Reduction
    | Index
    | Shift
    | Unpack
    | Rename
    | Cast
)


# ---------------------------------------------------------------- axes and tensors


@frozen
class AxisDim(Node):
    """A dimension that is an axis: atomic, composite or packed."""

    name: str


@frozen
class NumberDim(Node):
    """A dimension written as a number; only `1` has a meaning."""

    value: int


@frozen
class ProductDim(Node):
    """`(Hk G V)`: several dimensions as one, the last cycling fastest."""

    parts: tuple[Dim, ...]


Dim = AxisDim | NumberDim | ProductDim


@frozen
class Fact(Node):
    """A fact about an axis: `kind` is "at_most" or "multiple_of"."""

    kind: str
    value: int
    remainder: int = 0


@frozen
class Axis(Node):
    """An atomic axis."""

    name: Name
    facts: tuple[Fact, ...]


@frozen
class Composite(Node):
    """`Hv = (Hk G)`."""

    name: Name
    product: ProductDim


@frozen
class PackedField(Node):
    """`q:(Hk K)`."""

    name: Name
    dim: Dim


@frozen
class Packed(Node):
    """`C = q:(Hk K) | k:(Hk K)`."""

    name: Name
    fields: tuple[PackedField, ...]


@frozen
class Tensor(Node):
    """`f32[B, Hv, T]`: element type (a dtype or a dtype variable) and dimensions."""

    dtype: Name
    dims: tuple[Dim, ...]


# ---------------------------------------------------------------- kernel items


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


# ---------------------------------------------------------------- declarations


@frozen
class Library(Node):
    """A used file: a name of `kernels_dsl`, or a path in quotes."""

    name: str
    quoted: bool


@frozen
class Use(Node):
    """`use delta_rule, gates`."""

    libraries: tuple[Library, ...]


@frozen
class FnParam(Node):
    """A parameter of a `fn`, with its default."""

    name: Name
    default: Expr | None


@frozen
class Fn(Node):
    """`fn l2norm[D](x, eps = 1e-6) = ...`."""

    name: Name
    axes: tuple[Name, ...]
    params: tuple[FnParam, ...]
    body: Expr


@frozen
class RuleAxis(Node):
    """An axis a rule argument carries, or may carry (`optional`)."""

    name: str
    optional: bool


@frozen
class RuleParam(Node):
    """`q[K]`, `decay[K?]`, `state S[K, V]`."""

    name: Name
    axes: tuple[RuleAxis, ...]
    is_state: bool


@frozen
class RuleResult(Node):
    """`o[V]` behind the arrow."""

    name: Name
    axes: tuple[Name, ...]


@frozen
class Rule(Node):
    """A rule: what one token does to a state."""

    name: Name
    axes: tuple[Name, ...]
    params: tuple[RuleParam, ...]
    results: tuple[RuleResult, ...]
    doc: Doc | None
    body: tuple[Statement, ...]


@frozen
class Kernel(Node):
    """A kernel: declarations and statements in the order written."""

    name: Name
    doc: Doc | None
    items: tuple[KernelItem, ...]


@frozen
class Setting(Node):
    """`chunk = 64`. A word is a str, anything else a literal."""

    key: Name
    value: Literal | Name


@frozen
class Schedule(Node):
    """`schedule gdn_cte on trn2:`."""

    kernel: Name
    targets: tuple[Name, ...]
    settings: tuple[Setting, ...]


@frozen
class Size(Node):
    """`Hv: 32`."""

    axis: Name
    value: int


@frozen
class Shape(Node):
    """`qwen3_next_80b = {B: 1, Hv: 32}`."""

    name: Name
    sizes: tuple[Size, ...]


@frozen
class Shapes(Node):
    """`shapes gdn_tkg:`."""

    kernel: Name
    shapes: tuple[Shape, ...]


Declaration = Use | Fn | Rule | Kernel | Schedule | Shapes


@frozen
class File(Node):
    """A whole file."""

    doc: Doc | None
    declarations: tuple[Declaration, ...]
