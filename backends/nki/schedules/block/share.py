"""Which heads a core has, where every rule of a kernel has heads of its own.

Cores split the first axis of heads, the key heads: then no weight, window or state is needed by
two cores, and grouped heads stay with their key head. The last core takes the remainder.
"""

from __future__ import annotations

from backends.nki.program.build import Block, compare
from backends.nki.program.numbers import Choice, Name, Number, Query
from backends.nki.select.addressing import Share


def share_of(block: Block, axis: str) -> Share:
    """Bind the first head of this core and how many it has."""
    cores = block.let_named("cores", Query("nl.num_programs(0)"))
    core = block.let_named("core", Query("nl.program_id(0)"))
    total: Number = Name(axis)
    first = block.let_named("first_head", core * (total // cores))
    last = compare("==", core, cores - 1)
    count = block.let_named("own_heads", Choice(last, total - first, total // cores))
    return Share(first, count)
