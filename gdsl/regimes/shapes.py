"""Regimes about sizes: chunk boundaries, head maps, splits, layouts that a square state hides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from gdsl.ir.dims import Product
from gdsl.regimes.base import Sizes, mapped_axes, to_arguments
from gdsl.regimes.parts import Part, state_parts, symbol_part
from gdsl.regimes.trial import (
    Arguments,
    Outcome,
    Setting,
    Skip,
    Trial,
    carried_states,
    few_heads,
    single,
)
from gdsl.runner import Array
from gdsl.shapes import checkpoint_distance, dim_axes

_RECURRENT_LENGTHS = (1, 2, 7, 16)
_EVERY_CUT = 12
"""Tokens of the run that is cut at every place."""
_LONG_HEADS = 2
"""Heads of a run over several chunks."""


def gaussian(setting: Setting) -> Outcome:
    """Independent Gaussian values and a non-zero initial state."""
    return single(setting, setting.values())


def zero_state(setting: Setting) -> Outcome:
    """A zero initial state; states that may be left out are left out, pools are not."""
    parts = [part for state in setting.kernel.states for part in state_parts(state)]
    if not parts:
        return Skip("the kernel has no state argument")
    values = setting.values()
    values |= {part: np.zeros_like(values[part]) for part in parts}
    arguments = to_arguments(setting.kernel, values, setting.sizes)
    for state in setting.kernel.states:
        if state.optional and state.slots is None:
            del arguments[state.argument]
    return (Trial(setting.sizes, (arguments,)),)


def lengths(setting: Setting) -> Outcome:
    """One token, and lengths around half a chunk, one, two and eight (with few heads)."""
    axis = setting.scan_axis
    if axis is None:
        return Skip("one token per call")
    if setting.chunk is None:
        return _resized(setting, ({axis: setting.tokens(n)} for n in _RECURRENT_LENGTHS))
    wanted = dict.fromkeys(setting.tokens(length) for length in _around(setting.chunk))
    few = few_heads(setting, _LONG_HEADS)
    return _resized(setting, ({**(few if n > 2 * setting.chunk else {}), axis: n} for n in wanted))


def _around(chunk: int) -> tuple[int, ...]:
    """Lengths at which a chunked kernel changes: half chunks, chunks, tails, groups of chunks."""
    half = chunk // 2
    inside = (1, half - 1, half, half + 1, chunk - 1, chunk, chunk + 1, chunk + 5)
    return (*inside, 2 * chunk + 15, 2 * chunk + 44, 8 * chunk)


def rectangular(setting: Setting) -> Outcome:
    """K != V, both ways: a square state hides a transposed layout."""
    if not setting.roles:
        return Skip("the kernel has no delta-rule recurrence")
    roles = setting.roles[0]
    key, value = roles.key_axis, roles.value_axis
    large = setting.sizes[key]
    small = max(1, large // 2)
    return _resized(setting, ({key: large, value: small}, {key: small, value: large}))


def head_ratios(setting: Setting) -> Outcome:
    """One, two and three value heads per key head; three in all, which two cores share 1 to 2."""
    group = _group_axis(setting)
    if group is None:
        return Skip("keys and values have the same heads")
    alone = dict.fromkeys(_mapped(setting), 1)
    return _resized(setting, (*({group: n} for n in (1, 2, 3)), {**alone, group: 3}))


def one_head(setting: Setting) -> Outcome:
    """One batch row with one head."""
    axes = _mapped(setting)
    if not axes:
        return Skip("the kernel has no delta-rule recurrence")
    return _resized(setting, (dict.fromkeys(axes, 1),))


def _mapped(setting: Setting) -> set[str]:
    return {axis for roles in setting.roles for axis in mapped_axes(roles.run)}


def split(setting: Setting) -> Outcome:
    """One run cut in two calls, at every token of a short one and around a chunk's end."""
    axis = setting.scan_axis
    if axis is None:
        return Skip("one token per call: every run is cut at every token")
    carried = carried_states(setting.kernel)
    if len(carried) < len(setting.kernel.states):
        return Skip("a state is not returned in the layout in which it is taken")
    if checkpoint_distance(setting.kernel) > 1:
        return Skip("a piece has its checkpoints after N tokens of its own")
    short = setting.tokens(_EVERY_CUT)
    plans = [(short, cut) for cut in range(1, short)]
    if setting.chunk and setting.tokens(setting.chunk + 2) > setting.chunk:
        chunk = setting.chunk
        plans += [(chunk + 2, cut) for cut in (1, chunk - 1, chunk, chunk + 1)]
    return _splits(setting, axis, plans)


def _splits(setting: Setting, axis: str, plans: list[tuple[int, int]]) -> Iterator[Trial]:
    for tokens, cut in plans:
        sizes = {**setting.sizes, axis: tokens}
        values = setting.values(sizes)
        whole = to_arguments(setting.kernel, values, sizes)
        calls = (
            _tokens(setting, values, sizes, axis, slice(0, cut)),
            _tokens(setting, _continued(setting, values), sizes, axis, slice(cut, tokens)),
        )
        # Cuts of a short run are many and alike; those around a chunk run everywhere.
        yield Trial(sizes, calls, whole, axis, once=bool(setting.chunk) and tokens <= _EVERY_CUT)


def _continued(setting: Setting, values: dict[Part, Array]) -> dict[Part, Array]:
    """Return the values with which a call goes on where one with these has ended.

    No row starts anew, and a row reads the slot that it wrote.
    """
    kernel, found = setting.kernel, dict(values)
    for state in kernel.states:
        if state.unless is not None:
            flag = symbol_part(kernel, state.unless)
            found[flag] = np.ones_like(values[flag])
        if state.slots is not None and state.slots.write is not None:
            written = values[symbol_part(kernel, state.slots.write)]
            found[symbol_part(kernel, state.slots.read)] = written
    return found


def _tokens(
    setting: Setting, values: dict[Part, Array], sizes: Sizes, axis: str, part: slice
) -> Arguments:
    """Return the arguments of a call that takes only some of the tokens."""
    taken = {
        key: array[tuple(part if name == axis else slice(None) for name in key.axes)]
        for key, array in values.items()
    }
    length = part.stop - part.start
    for run in setting.runs:
        if run.axis == axis and run.valid_len is not None:
            lengths = symbol_part(setting.kernel, run.valid_len)
            taken[lengths] = np.clip(values[lengths] - part.start, 0, length)
    return to_arguments(setting.kernel, taken, {**sizes, axis: length})


def _resized(setting: Setting, changes: Iterable[dict[str, int]]) -> tuple[Trial, ...]:
    """Return a Gaussian trial for each distinct set of sizes."""
    distinct = {tuple(sorted({**setting.sizes, **change}.items())) for change in changes}
    trials: list[Trial] = []
    for items in sorted(distinct):
        sizes = {axis: dict(items)[axis] for axis in setting.sizes}
        trials += single(setting, setting.values(sizes), sizes)
    return tuple(trials)


def _group_axis(setting: Setting) -> str | None:
    """The axis that counts value heads per key head: in the state, not in the keys."""
    composites = [dim for _, dim in setting.kernel.composites if isinstance(dim, Product)]
    for roles in setting.roles:
        carried = {axis for expr in roles.expressions["key"] for axis in expr.type.axes}
        for axis in mapped_axes(roles.run):
            if axis not in carried and any(axis in dim_axes(dim) for dim in composites):
                return axis
    return None
