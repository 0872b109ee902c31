"""`--trace F.npz`: all values of a run, and `gdsl diff`: where two such records first differ.

A record is an `.npz` with one entry per name, the tokens of a scan stacked along its axis, in the
order the names got their values; `__axes__` holds the axes of each entry as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
from attrs import frozen

from gdsl.errors import UsageError
from gdsl.runner import Array, Event

AXES = "__axes__"


class Record:
    """A hook that keeps every value. Names that are rebound get a number: `S`, `S.1`."""

    def __init__(self) -> None:
        self._entries: dict[tuple[object, ...], list[Event]] = {}

    def __call__(self, event: Event) -> None:
        scans = tuple(axis for axis, _ in event.where)
        key = (event.symbol or event.name, event.name, scans)
        self._entries.setdefault(key, []).append(event)

    def arrays(self) -> dict[str, Array]:
        """Return the recorded values by name, with their axes, ready for an `.npz` file."""
        found: dict[str, Array] = {}
        axes: dict[str, list[str]] = {}
        for events in self._entries.values():
            name = _free_name(events[0].name, found)
            scans = [axis for axis, _ in events[0].where]
            found[name] = _stacked(events)
            axes[name] = [*scans, *events[0].axes]
        found[AXES] = np.array(json.dumps(axes))
        return found


def _free_name(name: str, taken: Mapping[str, Array]) -> str:
    if name not in taken:
        return name
    count = 1
    while f"{name}.{count}" in taken:
        count += 1
    return f"{name}.{count}"


def _stacked(events: Sequence[Event]) -> Array:
    """Put the tokens of a run side by side along the scan axes."""
    if not events[0].where:
        return np.array(events[-1].values)
    lengths = [1 + max(event.where[i][1] for event in events) for i in range(len(events[0].where))]
    first = events[0].values
    stacked = np.zeros((*lengths, *first.shape), first.dtype)
    for event in events:
        stacked[tuple(index for _, index in event.where)] = event.values
    return stacked


@frozen
class Difference:
    """The first entry of two records that differs, and its first differing element."""

    name: str
    at: Mapping[str, int]
    left: float
    right: float
    count: int
    size: int


def first_difference(
    left: Mapping[str, Array], right: Mapping[str, Array], tolerance: float = 0.0
) -> Difference | None:
    """Return the first difference in the order of the left record; None when they agree.

    Two values agree when |a - b| <= tolerance * max|b| of the entry, or when both are NaN. Raises
    UsageError when the records share no entry, or an entry has two shapes.
    """
    table = left.get(AXES)
    axes: dict[str, list[str]] = json.loads(str(table)) if table is not None else {}
    shared = [name for name in left if name in right and name != AXES]
    if not shared:
        raise UsageError("the two files have no entry in common")
    for name in shared:
        found = _difference(name, left[name], right[name], axes.get(name), tolerance)
        if found is not None:
            return found
    return None


def _difference(
    name: str, left: Array, right: Array, axes: Sequence[str] | None, tolerance: float
) -> Difference | None:
    if left.shape != right.shape:
        raise UsageError(f"`{name}` has shape {left.shape} in one file, {right.shape} in the other")
    a, b = left.astype(np.float64), right.astype(np.float64)
    with np.errstate(invalid="ignore"):
        scale = np.max(np.abs(b[np.isfinite(b)]), initial=0.0)
        near = (a == b) | (np.abs(a - b) <= tolerance * scale) | (np.isnan(a) & np.isnan(b))
    bad = np.argwhere(~near)
    if not len(bad):
        return None
    index = tuple(int(i) for i in bad[0])
    names = axes or [f"axis {i}" for i in range(a.ndim)]
    at = dict(zip(names, index, strict=True))
    return Difference(name, at, float(a[index]), float(b[index]), len(bad), a.size)
