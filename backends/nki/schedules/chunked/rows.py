"""The row side of scores: the read vector and the query of every slot, or the query alone.

Scores have keys on partitions and tokens that see them along the free axis, A^T and P^T of a slot
side by side. Where nothing is erased there is no A, and only the second half of a slot is used.
"""

from __future__ import annotations

from backends.nki.program.build import part
from backends.nki.program.nodes import Pattern, View
from backends.nki.program.numbers import ONE, ZERO, Number, Numeric, number
from backends.nki.schedules.chunked.records import CHUNK, PAIR, SLOTS, slot_of
from backends.nki.schedules.chunked.schedule import Schedule


def first_row(schedule: Schedule) -> Number:
    """Return where the rows of a slot begin."""
    return ZERO if schedule.solves else CHUNK


def row_count(schedule: Schedule) -> int:
    """Return how many vectors of a slot are rows."""
    return 2 if schedule.solves else 1


def rows_of(schedule: Schedule, view: View, slot: Numeric) -> View:
    """Return the rows of one slot."""
    if schedule.solves:
        return slot_of(view, slot, PAIR)
    return part(view, None, (number(slot) * PAIR + CHUNK, CHUNK))


def all_rows(schedule: Schedule, view: View) -> View | Pattern:
    """Return the rows of every slot."""
    return view if schedule.solves else queries(view)


def first_half(view: View) -> Pattern:
    """Return the first half of every slot."""
    return Pattern(view.tile, ((SLOTS * PAIR, view.shape[0]), (PAIR, SLOTS), (ONE, CHUNK)), ZERO)


def queries(view: View) -> Pattern:
    """Return the second half of every slot."""
    return Pattern(view.tile, ((SLOTS * PAIR, view.shape[0]), (PAIR, SLOTS), (ONE, CHUNK)), CHUNK)
