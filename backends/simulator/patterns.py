"""The patterns of `.ap`: `[[step, count], ...]`, each known once, and what storages they fit.

A kernel writes the same few patterns many thousand times, as new lists each time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from marshal import dumps
from operator import index as as_integer

from backends.isa.dtypes import Dtype
from backends.simulator import geometry
from backends.simulator.dynamic import Dynamic
from backends.simulator.faults import Fault
from backends.simulator.geometry import Ints
from backends.simulator.layouts import Layout, layout_of
from backends.simulator.memory import Form, Storage

STEP_LIMIT = 2**15
"""Access-pattern steps are int16."""
COUNT_LIMIT = 2**16
"""Access-pattern counts are uint16."""
_MOST_PAIRS = 5
"""The partitions and the four dimensions that the hardware steps over."""
_MOST = 4096
"""Patterns kept, and layouts kept by form; a dropped one costs a check more."""


class Pattern:
    """Counts and steps that are legal by themselves; compared by identity."""

    __slots__ = ("counts", "extent", "inner_extent", "steps")

    def __init__(self, counts: Ints, steps: Ints) -> None:
        self.counts = counts
        self.steps = steps
        self.extent = geometry.box(counts, steps).extent
        """Elements from the first to one past the last."""
        self.inner_extent = geometry.box(counts[1:], steps[1:]).extent
        """The same without the first pair."""


_KNOWN: dict[bytes, Pattern] = {}
"""Patterns by their lists as bytes, which differ whenever a value or a type does."""


def pattern_of(pairs: Sequence[Sequence[int]]) -> Pattern:
    """Return the pattern of `[[step, count], ...]`. Raises Fault S217."""
    try:
        key = dumps(pairs, 2)  # type: ignore[arg-type]
    except ValueError:  # numbers of another library, or nothing like a pattern
        return _checked(pairs)
    known = _KNOWN.get(key)
    if known is None:
        if len(_KNOWN) >= _MOST:
            _KNOWN.clear()
        known = _KNOWN[key] = _checked(pairs)
    return known


def _checked(pairs: Sequence[Sequence[int]]) -> Pattern:
    try:
        plain = tuple([(as_integer(step), as_integer(count)) for step, count in pairs])
    except (TypeError, ValueError):
        raise _no_pattern(pairs) from None
    if not plain:
        raise _no_pattern(pairs)
    for step, count in plain:
        if not 0 < count < COUNT_LIMIT:
            raise Fault("S217", f"count {count} in a pattern is outside 1..{COUNT_LIMIT - 1}")
        if step < 0:
            raise Fault("S217", f"step {step} in a pattern is negative")
    return _of_integers(plain)


@lru_cache(maxsize=_MOST)
def _of_integers(pairs: tuple[tuple[int, int], ...]) -> Pattern:
    """Return the one pattern of these numbers, also where they came as other integer types."""
    return Pattern(tuple([count for _, count in pairs]), tuple([step for step, _ in pairs]))


class LeavesTensor(Fault):
    """A well-formed pattern that reaches beyond its tensor: S217 for whoever uses it."""

    def __init__(self, message: str, values: Mapping[str, object] | None = None) -> None:
        super().__init__("S217", message, values=values)


def _no_pattern(pairs: object) -> Fault:
    return Fault("S217", f"a pattern is `[[step, count], ...]` in integers, got `{pairs}`")


def static_layout(storage: Storage, dtype: Dtype, pattern: Pattern, start: int) -> Layout:
    """Return the layout of a pattern that begins at element `start`. Raises Fault S217."""
    form = storage.form
    place = start if form.region.on_chip else 0
    key = (pattern, dtype.name, place, storage.start_partition)
    known: Layout | None = form.patterns.get(key)
    if known is not None:
        if not form.region.on_chip:
            check_bounds(form, dtype, pattern, start)
        return known
    if form.region.on_chip:
        check_partitions(form, dtype, pattern, start)
    check_bounds(form, dtype, pattern, start)
    found = layout_of(storage, dtype, pattern.counts, pattern.steps, start)
    if len(form.patterns) >= _MOST:
        form.patterns.clear()
    form.patterns[key] = found
    return found


def check_partitions(
    form: Form, dtype: Dtype, pattern: Pattern, start: int, dynamic: Dynamic | None = None
) -> None:
    """Refuse on-chip patterns that step over partitions or leave the partition they start in.

    Where in a partition a run-time address leads is checked when it is known. Raises Fault S217.
    """
    free = form.bytes_per_partition // dtype.bytes
    counts, steps = pattern.counts, pattern.steps
    if not 2 <= len(counts) <= _MOST_PAIRS:
        raise Fault(
            "S217",
            f"an on-chip pattern has a partition pair and one to {_MOST_PAIRS - 1} free pairs, "
            f"got {len(counts)} pairs",
        )
    if counts[0] > 1 and steps[0] != free:
        raise Fault(
            "S217",
            f"the first pair of an on-chip pattern is [{free}, partitions], got "
            f"[{steps[0]}, {counts[0]}]",
            values={"elements per partition": free},
        )
    if any(step >= STEP_LIMIT for step in steps[1:]):
        raise Fault("S217", f"a step of {max(steps[1:])} does not fit into int16")
    partition, inside = divmod(start, free) if free else (0, 0)
    last = pattern.inner_extent + (inside if dynamic is None else 0)
    if last > free:
        raise LeavesTensor(f"the pattern reaches element {last - 1} of a partition of {free}")
    if partition + counts[0] > form.partitions:
        raise LeavesTensor(
            f"the pattern reaches partition {partition + counts[0] - 1} of a tensor of "
            f"{form.partitions}"
        )


def check_bounds(
    form: Form, dtype: Dtype, pattern: Pattern, start: int, dynamic: Dynamic | None = None
) -> None:
    """Refuse patterns that leave the storage; rows found at run time are checked when known.

    Raises Fault S217.
    """
    rows = dynamic is not None and dynamic.kind == "rows"
    end = start + (pattern.inner_extent if rows else pattern.extent)
    size = form.size * form.itemsize // dtype.bytes
    if start < 0 or end > size:
        pairs = [[step, n] for step, n in zip(pattern.steps, pattern.counts, strict=True)]
        raise LeavesTensor(
            f"the pattern reaches element {end - 1 if start >= 0 else start} of a storage of "
            f"{size}",
            values={"offset": start, "pattern": pairs},
        )
