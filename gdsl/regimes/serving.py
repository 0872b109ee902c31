"""Regimes about serving: padding, slots, resets; what must not be read is poisoned with NaN."""

from __future__ import annotations

import numpy as np
from attrs import evolve
from numpy.typing import NDArray

from gdsl.ir.kernel import Run
from gdsl.regimes.base import mapped_axes
from gdsl.regimes.parts import Part, input_parts, state_parts, symbol_part
from gdsl.regimes.trial import Outcome, Setting, Skip, single
from gdsl.runner import Array


def padding(setting: Setting) -> Outcome:
    """Rows of different lengths, one of them empty; NaN past the end of each."""
    run = next((run for run in setting.runs if run.valid_len), None)
    if run is None or run.valid_len is None or run.axis is None:
        return Skip("the kernel takes no lengths")
    lengths = symbol_part(setting.kernel, run.valid_len)
    setting = _with_rows(setting, lengths, 4)
    tokens = setting.sizes[run.axis]
    values = setting.values()
    rows = values[lengths].size
    values[lengths] = np.resize([tokens, 0, max(tokens - 1, 0), tokens // 2], rows).astype(float)
    for item in setting.kernel.inputs:
        for part in input_parts(item):
            shared = [axis for axis in lengths.axes if axis in part.axes]
            if run.axis in part.axes and shared:
                past = _past(setting, values[lengths], lengths, part, run)
                values[part] = np.where(past, np.nan, values[part])
    return single(setting, values)


def _with_rows(setting: Setting, owner: Part, rows: int) -> Setting:
    """Return the setting with at least so many rows: of one head each where there were too few."""
    axis = owner.axes[0]
    if setting.sizes[axis] >= rows:
        return setting
    heads = {name for roles in setting.roles for name in mapped_axes(roles.run)}
    return evolve(setting, sizes={**setting.sizes, **dict.fromkeys(heads, 1), axis: rows})


def _past(setting: Setting, lengths: Array, owner: Part, part: Part, run: Run) -> NDArray[np.bool_]:
    """Return where the tokens of a part lie past their row's length."""
    assert run.axis is not None
    tokens = np.arange(setting.sizes[run.axis])
    shape = [setting.sizes[axis] if axis in owner.axes else 1 for axis in part.axes]
    ends = lengths.reshape(shape)
    along = [-1 if axis == run.axis else 1 for axis in part.axes]
    return np.asarray(tokens.reshape(along) >= ends)


def slots(setting: Setting) -> Outcome:
    """Rows that read and write, only read, only write, do neither; NaN in slots nobody reads."""
    state = next((s for s in setting.kernel.states if s.slots), None)
    if state is None or state.slots is None:
        return Skip("the kernel takes its states from no pool")
    read = symbol_part(setting.kernel, state.slots.read)
    setting = _with_rows(setting, read, 4)
    values = setting.values()
    rows, pool = values[read].size, setting.sizes[state.slots.axis]
    own = np.where(np.arange(rows) < pool, np.arange(rows), -1).astype(float)
    values[read] = np.where(np.arange(rows) % 4 == 2, -1.0, own)
    if state.slots.write is not None:
        write = symbol_part(setting.kernel, state.slots.write)
        values[write] = np.where(np.arange(rows) % 4 == 1, float(pool), own)
        both_off = np.arange(rows) % 4 == 3
        values[read] = np.where(both_off, -1.0, values[read])
        values[write] = np.where(both_off, -1.0, values[write])
    unread = [slot for slot in range(pool) if slot not in values[read]]
    for part in state_parts(state):
        at = part.axes.index(state.slots.axis)
        np.moveaxis(values[part], at, 0)[unread] = np.nan
    return single(setting, values)


def reset(setting: Setting) -> Outcome:
    """Rows that start from zeros although their state holds NaN."""
    state = next((s for s in setting.kernel.states if s.unless), None)
    if state is None or state.unless is None:
        return Skip("the kernel has no reset flag")
    flag = symbol_part(setting.kernel, state.unless)
    setting = _with_rows(setting, flag, 2)
    values = setting.values()
    keep = np.arange(values[flag].size) % 2 == 1
    values[flag] = keep.astype(float)
    for other in setting.kernel.states:
        if other.unless != state.unless:
            continue
        for part in state_parts(other):
            if other.slots is not None:
                read = values[symbol_part(setting.kernel, other.slots.read)].astype(int)
                at = part.axes.index(other.slots.axis)
                np.moveaxis(values[part], at, 0)[read[(~keep) & (read >= 0)]] = np.nan
            else:
                np.moveaxis(values[part], part.axes.index(flag.axes[0]), 0)[~keep] = np.nan
    return single(setting, values)
