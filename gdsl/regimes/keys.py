"""Regimes about keys: where triangular inverses and cancellation go wrong."""

from __future__ import annotations

import numpy as np

from gdsl.regimes.base import unit
from gdsl.regimes.drive import Values
from gdsl.regimes.parts import Part, elementwise_parts, state_parts
from gdsl.regimes.trial import Outcome, Setting, Skip, single
from gdsl.runner import Array


def identical_keys(setting: Setting) -> Outcome:
    """The same key for every token; the state holds that key too."""
    return _correlated(setting, 1.0)


def correlated_keys(setting: Setting) -> Outcome:
    """Keys with pairwise cosine 0.9; the state holds their common direction."""
    return _correlated(setting, 0.9)


def zero_key(setting: Setting) -> Outcome:
    """An all-zero key: a norm without its eps divides by zero."""
    parts = _key_parts(setting)
    if isinstance(parts, Skip):
        return parts
    values = setting.values()
    for part, axis in parts.items():
        rows = np.moveaxis(values[part], axis, -1)
        rows[(0,) * (rows.ndim - 1)] = 0.0
        rows[(-1,) * (rows.ndim - 1)] = 0.0
    return single(setting, values)


def _correlated(setting: Setting, cosine: float) -> Outcome:
    parts = _key_parts(setting)
    if isinstance(parts, Skip):
        return parts
    values = setting.values()
    for part, axis in parts.items():
        raw = values[part]
        length = np.sqrt(np.sum(raw * raw, axis=axis, keepdims=True))
        noise = unit(raw, axis)
        common = _common(setting, part, noise, axis)
        mixed = np.sqrt(cosine) * common + np.sqrt(1 - cosine) * noise
        values[part] = unit(mixed, axis) * length
        _fill_states(setting, values, part, common)
    return single(setting, values)


def _key_parts(setting: Setting) -> dict[Part, int] | Skip:
    """The input parts that are keys, with the position of their key axis."""
    found: dict[Part, int] = {}
    for roles in setting.roles:
        for expr in roles.expressions["key"]:
            for part in elementwise_parts(setting.kernel, expr):
                if roles.key_axis in part.axes:
                    found[part] = part.axes.index(roles.key_axis)
    if not setting.roles:
        return Skip("the kernel has no delta-rule recurrence")
    return found or Skip("no input sets the keys element by element; they are contractions")


def _common(setting: Setting, part: Part, noise: Array, axis: int) -> Array:
    """One direction for all tokens (and sub-steps) of a head; for all heads of a one-token call."""
    state_axes = {a for roles in setting.roles for a in roles.run.rule.state_type.axes}
    over = [i for i, name in enumerate(part.axes) if name not in state_axes and i != axis]
    if not over:
        over = [i for i in range(noise.ndim) if i != axis]
    first = noise
    for i in over:
        first = np.take(first, [0], axis=i)
    return np.broadcast_to(first, noise.shape)


def _fill_states(setting: Setting, values: Values, key: Part, common: Array) -> None:
    """Let each state be the outer product of the keys' direction and Gaussian values."""
    for state in setting.kernel.states:
        for part in state_parts(state):
            for roles in setting.roles:
                if not {roles.key_axis, roles.value_axis} <= set(part.axes):
                    continue
                if not set(key.axes) - {setting.scan_axis} <= set(part.axes):
                    continue
                direction = _as_axes(common, key.axes, part.axes, setting)
                along = part.axes.index(roles.key_axis)
                values[part] = direction * np.take(values[part], [0], axis=along)


def _as_axes(x: Array, axes: tuple[str, ...], wanted: tuple[str, ...], setting: Setting) -> Array:
    """Return the first token of `x` with its axes in the order of `wanted`, 1 where absent."""
    if setting.scan_axis in axes:
        x = np.take(x, 0, axis=axes.index(setting.scan_axis))
        axes = tuple(axis for axis in axes if axis != setting.scan_axis)
    ordered = x.transpose([axes.index(axis) for axis in wanted if axis in axes])
    shape = iter(ordered.shape)
    return ordered.reshape([next(shape) if axis in axes else 1 for axis in wanted])
