"""A kernel: inputs, states, statements in order, outputs, and the line it is called with.

All names are `Symbol`s; a state that is rebound gets a new symbol each time (SSA), so a statement
never changes a value that an earlier one defined.
"""

from __future__ import annotations

from attrs import frozen

from gdsl.ir.dims import Axis, Dim, Packed
from gdsl.ir.dtypes import Dtype
from gdsl.ir.expr import Expr
from gdsl.ir.node import Node, Symbol
from gdsl.ir.types import DtypeVar, Interval, Type


@frozen
class Input(Node):
    """A tensor argument. `default` fills a missing one: a number, or the size of an axis."""

    symbol: Symbol
    name: str
    dtype: Dtype | DtypeVar
    dims: tuple[Dim, ...]
    type: Type
    range: Interval | None = None
    default: float | str | None = None
    doc: str = ""


@frozen
class Param(Node):
    """A trace-time constant: `param scale: float = 1.0`. `kind` is float, int or bool.

    A param with the name of an axis gives that axis its size, where shapes leave it open.
    """

    symbol: Symbol
    name: str
    kind: str
    default: float | int | bool | None
    type: Type
    doc: str = ""


@frozen
class Assume(Node):
    """A stated fact, a comparison; the interpreter checks it at run time."""

    condition: Expr


@frozen
class Slots(Node):
    """`pool[N at read -> write]`: axis N of the tensor stands where the batch axis stood."""

    axis: str
    batch: str
    read: Symbol
    write: Symbol | None


@frozen
class Accepted(Node):
    """`states[P at accepted]`: the state after `accepted` tokens, along axis P, per batch row."""

    axis: str
    symbol: Symbol


@frozen
class State(Node):
    """A state and where its initial value comes from. `symbol` is the initial value.

    `dims` are the dimensions of the argument tensor (with the pool or P axis, if any); `type.axes`
    the atomic axes of the value. `optional`: zeros when the argument is missing. `unless`: rows
    where this flag is false start from zeros (selected, never multiplied).
    """

    symbol: Symbol
    name: str
    argument: str
    dtype: Dtype | DtypeVar
    dims: tuple[Dim, ...]
    type: Type
    inplace: bool = False
    optional: bool = False
    slots: Slots | None = None
    accepted: Accepted | None = None
    unless: Symbol | None = None
    doc: str = ""


@frozen
class Let(Node):
    """Define a value."""

    target: Symbol
    value: Expr


@frozen
class Rule(Node):
    """A rule with its axes bound to the axes of one call.

    `params` take the arguments of the call in order, `state` the incoming state. `body` holds
    `Let`s and, for sub-steps, `Run`s. `results` are what follows `->`, `state_out` is the state at
    the end. `axes` are the rule's own axes in the order it lists them, under their names in this
    call; every further axis of the state is mapped.
    """

    name: str
    params: tuple[Symbol, ...]
    param_types: tuple[Type, ...]
    state: Symbol
    state_type: Type
    body: tuple[Statement, ...]
    results: tuple[Symbol, ...]
    result_types: tuple[Type, ...]
    state_out: Symbol
    axes: tuple[str, ...] = ()


@frozen
class Run(Node):
    """`o, S = step rule(...)` (axis None) or `scan[T < valid_len every N -> P] rule(...)`.

    Arguments that carry the scan axis are taken token by token, others are the same for all.
    Results carry the scan axis. `states` receives the state after every `every` tokens along
    `states_axis` (the scan axis itself for `every 1` without `-> P`; None when the text names no
    axis, then nothing uses `states`); `every` is an int, or the symbol of a param (0 means none).
    """

    rule: Rule
    args: tuple[Expr, ...]
    state: Symbol
    axis: str | None
    results: tuple[Symbol, ...]
    state_out: Symbol
    valid_len: Symbol | None = None
    every: int | Symbol | None = None
    states: Symbol | None = None
    states_axis: str | None = None


Statement = Let | Run


@frozen
class Output(Node):
    """A returned tensor. `state` names the in-place state it returns, if it is one."""

    name: str
    dtype: Dtype | DtypeVar
    dims: tuple[Dim, ...]
    value: Expr
    state: str | None = None
    doc: str = ""


@frozen
class CallArgument(Node):
    """One name of the call line; `role` is input, state, param, output, schedule or ignored.

    `key` is the schedule key a `schedule` argument sets, or the parameter it renames.
    """

    name: str
    role: str
    key: str | None = None


@frozen
class Call(Node):
    """Argument order and return order of the emitted kernel."""

    arguments: tuple[CallArgument, ...]
    returns: tuple[str, ...]


@frozen(cache_hash=True)
class Kernel(Node):
    """One kernel, complete. `composites` are the named products (`Hv = (Hk G)`)."""

    name: str
    doc: str
    axes: tuple[Axis, ...]
    composites: tuple[tuple[str, Dim], ...]
    packed: tuple[Packed, ...]
    dtype_vars: tuple[DtypeVar, ...]
    inputs: tuple[Input, ...]
    params: tuple[Param, ...]
    assumes: tuple[Assume, ...]
    states: tuple[State, ...]
    body: tuple[Statement, ...]
    outputs: tuple[Output, ...]
    call: Call


@frozen
class Setting(Node):
    """`chunk = 64`: one line of a schedule, as written; the span points at it."""

    key: str
    value: str | int | float | bool


@frozen
class Schedule(Node):
    """A `schedule` block. No targets means every target."""

    kernel: str
    targets: tuple[str, ...]
    settings: tuple[Setting, ...]


@frozen
class Shape(Node):
    """A named size of a kernel: (axis, size)."""

    name: str
    sizes: tuple[tuple[str, int], ...]


@frozen
class Module(Node):
    """What one file defines: its kernels, and the schedules and shapes that belong to them."""

    kernels: tuple[Kernel, ...]
    schedules: tuple[Schedule, ...]
    shapes: tuple[tuple[str, tuple[Shape, ...]], ...]
