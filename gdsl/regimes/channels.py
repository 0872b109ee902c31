"""Regimes about a decay per key channel, and about the raw gates that decays are computed from.

Where channels decay at different speeds, one reference for all of them overflows or loses the slow
ones; where a gate is computed, softplus and sigmoid must be right at both ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gdsl.ir.expr import Apply, Expr
from gdsl.ir.traverse import walk
from gdsl.regimes.drive import Unreachable, Values, drive
from gdsl.regimes.parts import Part, elementwise_parts
from gdsl.regimes.roles import Roles
from gdsl.regimes.trial import Outcome, Setting, Skip, single
from gdsl.runner import Array

STRONG = -25.8
"""Log decay of the one strong channel, or the lower bound of a gate that has one."""
NORMAL = (0.5, 0.99)
"""Decays of the other channels."""
RAW_GATES = (-8.0, 0.0, 8.0)
LARGEST_RATE = 16.0


def strong_channel(setting: Setting) -> Outcome:
    """One channel with log decay -25.8 among normal ones (at its bound, where a gate has one)."""

    def decay(normal: Array, expr: Expr, axis: int) -> Array:
        channel = np.arange(normal.shape[axis]) == normal.shape[axis] // 3
        strong = max(math.exp(STRONG), expr.type.range.lo)
        return np.where(_along(channel, axis, normal.ndim), strong, normal)

    return _per_channel(setting, decay)


def half_decay_one(setting: Setting) -> Outcome:
    """No decay at all, exactly, in every second channel."""

    def decay(normal: Array, expr: Expr, axis: int) -> Array:
        channel = np.arange(normal.shape[axis]) % 2 == 0
        return np.where(_along(channel, axis, normal.ndim), 1.0, normal)

    return _per_channel(setting, decay)


def raw_gates(setting: Setting) -> Outcome:
    """Raw gates -8, 0 and +8 by turns: both ends of softplus and sigmoid, and their middle."""
    return _raw(setting, RAW_GATES)


def largest_rate(setting: Setting) -> Outcome:
    """A_log = log 16 with raw gate 1: the fastest decay that models start from."""
    values = setting.values()
    rates = {
        part
        for roles in setting.roles
        for expr in roles.expressions["decay"]
        for part in _rates(setting, expr)
    }
    if not rates:
        return Skip("no parameter inside exp(...) sets how fast the decay is")
    for part in rates:
        values[part] = np.full_like(values[part], math.log(LARGEST_RATE))
    return _raw(setting, (1.0,), values)


def _per_channel(setting: Setting, change: Callable[[Array, Expr, int], Array]) -> Outcome:
    """Change the decays of some channels; `change` takes normal ones and the channel's axis."""
    values: Values = setting.values()
    touched = False
    for roles in setting.roles:
        for expr in roles.expressions["decay"]:
            if roles.key_axis not in expr.type.axes:
                continue
            shape = tuple(setting.sizes[axis] for axis in expr.type.axes)
            normal = setting.rng().uniform(*NORMAL, shape)
            target = change(normal, expr, expr.type.axes.index(roles.key_axis))
            found = drive(setting.kernel, expr, target, values, setting.sizes)
            if isinstance(found, Unreachable):
                return Skip(f"the decay: {found.reason}")
            values, touched = found, True
    return single(setting, values) if touched else Skip("no decay per channel")


def _along(channel: Array, axis: int, rank: int) -> Array:
    return channel.reshape([-1 if i == axis else 1 for i in range(rank)])


def _raw(setting: Setting, pattern: tuple[float, ...], values: Values | None = None) -> Outcome:
    """Set the raw gate of every computed decay, biases to 0."""
    values = setting.values() if values is None else values
    touched = False
    for roles in setting.roles:
        for expr in roles.expressions["decay"]:
            gate = _gate(setting, roles, expr)
            if gate is None:
                continue
            touched = True
            for part in _activated(setting, expr):
                zeros = np.zeros_like(values[part])
                values[part] = np.resize(pattern, zeros.shape) if part == gate else zeros
    return single(setting, values) if touched else Skip("no decay is computed from a raw gate")


def _gate(setting: Setting, roles: Roles, expr: Expr) -> Part | None:
    """The part with a value for every token that softplus or sigmoid is taken of."""
    parts = _activated(setting, expr)
    most = max(parts, key=lambda part: len(part.axes), default=None)
    scanned = roles.run.axis
    return most if most and (scanned is None or scanned in most.axes) else None


def _activated(setting: Setting, expr: Expr) -> tuple[Part, ...]:
    """The parts that softplus or sigmoid is taken of, rates left out."""
    found = [
        part
        for node in walk(expr)
        if isinstance(node, Apply) and node.operator in ("softplus", "sigmoid")
        for part in elementwise_parts(setting.kernel, node)
    ]
    rates = _rates(setting, expr)
    return tuple(part for part in dict.fromkeys(found) if part not in rates)


def _rates(setting: Setting, expr: Expr) -> set[Part]:
    """The parameters inside exp(...) below the decay itself, which is an exp too."""
    return {
        part
        for node in walk(expr)
        if isinstance(node, Apply) and node is not expr and node.operator == "exp"
        for part in elementwise_parts(setting.kernel, node)
        if 0 < len(part.axes) < len(expr.type.axes)
    }
