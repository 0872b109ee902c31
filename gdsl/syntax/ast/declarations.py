"""What stands at the left margin, and the whole file."""

from __future__ import annotations

from attrs import frozen

from gdsl.syntax.ast.base import Doc, Name, Node
from gdsl.syntax.ast.expressions import Expr
from gdsl.syntax.ast.items import KernelItem, Literal, Statement


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
