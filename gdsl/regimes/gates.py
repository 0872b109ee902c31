"""Regimes about decay and beta: where exponentials overflow and prefixes cancel."""

from __future__ import annotations

import math

import numpy as np

from gdsl.ir.expr import Apply, Expr
from gdsl.ir.traverse import symbols, walk
from gdsl.regimes.base import Sizes, base_values, hidden_axes, mapped_axes, to_arguments
from gdsl.regimes.drive import Unreachable, Values, drive
from gdsl.regimes.parts import Part, elementwise_parts, input_parts
from gdsl.regimes.roles import Role, Roles
from gdsl.regimes.trial import Outcome, Setting, Skip, Trial, few_heads, single
from gdsl.runner import Array

WEAK_STEPS = 1000
_WEAK_HEADS = 2
_STRONG_THEN_WEAK_CHUNK = 32
"""Pattern length for a kernel without a chunk length of its own."""


def beta_zero(setting: Setting) -> Outcome:
    """Nothing is written: the state only decays."""
    return _uniform(setting, "beta", 0.0)


def beta_one(setting: Setting) -> Outcome:
    """The old value of a key is replaced completely."""
    return _uniform(setting, "beta", 1.0)


def decay_one(setting: Setting) -> Outcome:
    """No decay at all, exactly: the gated rule is the plain delta rule."""
    return _uniform(setting, "decay", 1.0)


def strong_decay(setting: Setting) -> Outcome:
    """Log decay -0.7 per token: exp of a chunk's prefix sum leaves the range of fp32."""
    return _uniform(setting, "decay", math.exp(-0.7))


def strongest_decay(setting: Setting) -> Outcome:
    """Log decay -21 per token: A = 16 with a strong gate."""
    return _uniform(setting, "decay", math.exp(-21.0))


def weak_decay(setting: Setting) -> Outcome:
    """Log decay -1e-4 over 1,000 steps: rounding errors of the state add up."""
    few = Setting(setting.kernel, few_heads(setting, _WEAK_HEADS), setting.seed, setting.chunk)
    axis = setting.scan_axis
    # Each call has weights of its own: tokens from one input, which the gates are set by, differ.
    sizes = {**few.sizes, **hidden_axes(setting.kernel)}
    if axis is not None:
        sizes[axis] = setting.tokens(WEAK_STEPS)
    calls = WEAK_STEPS // sizes[axis] if axis else WEAK_STEPS
    rng = few.rng()
    first = _set(setting, "decay", math.exp(-1e-4), base_values(setting.kernel, sizes, rng), sizes)
    if isinstance(first, Skip):
        return first
    gates = {part: first[part] for part in _gate_parts(setting)}
    arguments = [to_arguments(setting.kernel, first, sizes)]
    for _ in range(calls - 1):
        values = base_values(setting.kernel, sizes, rng) | gates
        arguments.append(to_arguments(setting.kernel, values, sizes))
    return (Trial(sizes, tuple(arguments)),)


def _gate_parts(setting: Setting) -> set[Part]:
    """The parts of every input that the decay is computed from."""
    used = {
        symbol
        for roles in setting.roles
        for expr in roles.expressions["decay"]
        for symbol in symbols(expr)
    }
    return {
        part for item in setting.kernel.inputs if item.symbol in used for part in input_parts(item)
    }


def strong_then_weak(setting: Setting) -> Outcome:
    """Log decay -21 for half a chunk, then -1e-3: differences of prefix sums lose all digits."""
    length = setting.chunk or _STRONG_THEN_WEAK_CHUNK
    return _pattern(setting, length, [-21.0] * (length // 2) + [-1e-3] * (length - length // 2))


def one_reset(setting: Setting) -> Outcome:
    """One token of log decay -336 among weak ones: the state is forgotten at once."""
    length = setting.chunk or _STRONG_THEN_WEAK_CHUNK
    pattern = [-1e-3] * length
    pattern[length // 3] = -336.0
    return _pattern(setting, length, pattern)


def real_parameters(setting: Setting) -> Outcome:
    """A from 0.001 to 16 and dt from 1e-3 to 0.1, both log-uniform, as models start from."""
    values = setting.values()
    rng = setting.rng()
    unreachable = Skip("the recurrence has no decay")
    touched = False
    for roles in setting.roles:
        for expr in roles.expressions["decay"]:
            if _real_gate(setting, expr, values, rng):
                touched = True
                continue
            found = _real_decay(setting, roles, expr, values, rng)
            if isinstance(found, Skip):
                unreachable = found
            else:
                values, touched = found, True
    return single(setting, values) if touched else unreachable


def _real_decay(
    setting: Setting, roles: Roles, expr: Expr, values: Values, rng: np.random.Generator
) -> Values | Skip:
    """Set a decay that comes ready-made to exp(-A dt): A of each head, dt of each element."""
    shape = tuple(setting.sizes[axis] for axis in expr.type.axes)
    heads = mapped_axes(roles.run)
    of_heads = tuple(n if a in heads else 1 for n, a in zip(shape, expr.type.axes, strict=True))
    rate = np.exp(rng.uniform(math.log(1e-3), math.log(16), of_heads))
    target = np.exp(-rate * np.exp(rng.uniform(math.log(1e-3), math.log(0.1), shape)))
    found = drive(setting.kernel, expr, target, values, setting.sizes)
    return Skip(f"the decay: {found.reason}") if isinstance(found, Unreachable) else found


def _real_gate(setting: Setting, expr: Expr, values: Values, rng: np.random.Generator) -> bool:
    """Set the parameters inside exp(...) to log A, those inside softplus or sigmoid to dt."""
    touched = False
    for node in walk(expr):
        if not (isinstance(node, Apply) and node is not expr):
            continue
        for part in elementwise_parts(setting.kernel, node):
            is_parameter = part.axes != () and len(part.axes) < len(expr.type.axes)
            shape = values[part].shape
            if not is_parameter:
                continue
            if node.operator == "exp":
                values[part] = rng.uniform(math.log(1e-3), math.log(16), shape)
                touched = True
            elif node.operator in ("softplus", "sigmoid") and not _under_exp(setting, node, part):
                dt = np.exp(rng.uniform(math.log(1e-3), math.log(0.1), shape))
                values[part] = dt + np.log(-np.expm1(-dt))
                touched = True
    return touched


def _under_exp(setting: Setting, expr: Expr, part: object) -> bool:
    return any(
        isinstance(node, Apply)
        and node.operator == "exp"
        and part in elementwise_parts(setting.kernel, node)
        for node in walk(expr)
    )


def _pattern(setting: Setting, length: int, pattern: list[float]) -> Outcome:
    axis = setting.scan_axis
    if axis is None:
        return Skip("one token per call: there is no pattern over tokens")
    tokens = setting.tokens(2 * length)
    sizes = {**setting.sizes, axis: tokens}
    logs = np.resize(np.array(pattern), tokens)
    values = setting.values(sizes)
    return _trial(setting, "decay", np.exp(logs), values, sizes)


def _uniform(setting: Setting, role: Role, target: float) -> Outcome:
    return _trial(setting, role, target, setting.values(), setting.sizes)


def _trial(
    setting: Setting, role: Role, target: Array | float, values: Values, sizes: Sizes
) -> Outcome:
    found = _set(setting, role, target, values, sizes)
    return found if isinstance(found, Skip) else single(setting, found, sizes)


def _set(
    setting: Setting, role: Role, target: Array | float, values: Values, sizes: Sizes
) -> Values | Skip:
    """Return values in which everything of a role is `target`: a number, or one per token."""
    expressions = [expr for roles in setting.roles for expr in roles.expressions[role]]
    if not expressions:
        return Skip(f"the recurrence has no {_NAMES[role]}")
    for expr in expressions:
        wanted = target
        if isinstance(target, np.ndarray):
            if setting.scan_axis not in expr.type.axes:
                return Skip(f"the {_NAMES[role]} is the same for all tokens")
            at = expr.type.axes.index(setting.scan_axis)
            wanted = target.reshape([-1 if i == at else 1 for i in range(len(expr.type.axes))])
        found = drive(setting.kernel, expr, wanted, values, sizes)
        if isinstance(found, Unreachable):
            return Skip(f"the {_NAMES[role]}: {found.reason}")
        values = found
    return values


_NAMES: dict[Role, str] = {"decay": "decay", "beta": "scalar beta"}
