"""Which buffer takes the place of which: on-chip memory handed out in program order.

A tile that the kernel did not pin gets memory that was never used, as long as there is some, then
the memory of the tiles that died longest ago. So a tile waits for earlier tiles only when capacity
forces it. A tile lives from the first to the last instruction that touches it. PSUM is handed out
in whole banks. Over-full memory (which the simulator refuses) is not modelled: nothing waits then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from attrs import define, frozen

from backends.isa.targets import PSUM_BANK_BYTES, PSUM_BANKS, find_target
from backends.isa.trace import Buffer, Trace


@frozen
class Placement:
    """Results by buffer id."""

    replaces: Mapping[int, tuple[int, ...]]
    """The dead buffers whose memory a buffer took over."""
    banks: Mapping[int, tuple[int, ...]]
    """PSUM banks of a buffer, in order of its bytes."""
    lifetimes: Mapping[int, tuple[int, int]]
    """First and last instruction that touch a buffer."""


def place(trace: Trace) -> Placement:
    """Hand out SBUF and PSUM to the buffers of a trace."""
    lifetimes = _lifetimes(trace)
    order = sorted(
        (buffer for buffer in trace.buffers if buffer.id in lifetimes),
        key=lambda buffer: lifetimes[buffer.id][0],
    )
    sbuf = [b for b in order if b.memory == "sbuf" and b.address is None]
    capacity = find_target(trace.target).sbuf_usable_bytes
    pinned = [b for b in order if b.memory == "sbuf" and b.address is not None]
    capacity -= max((_end(b) for b in pinned), default=0)
    replaces = _reclaim(sbuf, [b.bytes_per_partition for b in sbuf], capacity, lifetimes)
    banks, bank_reuse = _banks([b for b in order if b.memory == "psum"], lifetimes)
    return Placement(replaces | bank_reuse, banks, lifetimes)


def _lifetimes(trace: Trace) -> dict[int, tuple[int, int]]:
    lifetimes: dict[int, tuple[int, int]] = {}
    for index, record in enumerate(trace.records):
        for access in (*record.reads, *record.writes):
            first, _ = lifetimes.get(access.buffer, (index, index))
            lifetimes[access.buffer] = (first, index)
    return lifetimes


def _end(buffer: Buffer) -> int:
    assert buffer.address is not None
    return buffer.address[1] + buffer.bytes_per_partition


@define
class _Dead:
    """Memory of a dead buffer that nobody took yet."""

    buffer: int
    size: int


def _reclaim(
    order: Sequence[Buffer],
    sizes: Sequence[int],
    capacity: int,
    lifetimes: Mapping[int, tuple[int, int]],
) -> dict[int, tuple[int, ...]]:
    """Hand out `capacity` bytes; memory of the dead in the order in which they died."""
    replaces: dict[int, tuple[int, ...]] = {}
    fresh = capacity
    by_death = sorted(
        zip(order, sizes, strict=True), key=lambda item: (lifetimes[item[0].id][1], item[0].id)
    )
    dead: deque[_Dead] = deque()
    next_death = 0
    for buffer, size in zip(order, sizes, strict=True):
        born = lifetimes[buffer.id][0]
        while next_death < len(by_death) and lifetimes[by_death[next_death][0].id][1] < born:
            corpse, corpse_size = by_death[next_death]
            dead.append(_Dead(corpse.id, corpse_size))
            next_death += 1
        taken = min(size, fresh)
        fresh -= taken
        missing = size - taken
        victims = []
        while missing > 0 and dead:
            victim = dead[0]
            victims.append(victim.buffer)
            used = min(missing, victim.size)
            victim.size -= used
            missing -= used
            if victim.size == 0:
                dead.popleft()
        if victims:
            replaces[buffer.id] = tuple(victims)
    return replaces


@define
class _Bank:
    """One PSUM bank: who had it last, and until when it is taken."""

    number: int
    last: int | None = None
    until: int = -1


def _banks(
    order: Sequence[Buffer], lifetimes: Mapping[int, tuple[int, int]]
) -> tuple[dict[int, tuple[int, ...]], dict[int, tuple[int, ...]]]:
    """Give each PSUM buffer banks: the pinned ones theirs, others those free for longest."""
    banks = [_Bank(number) for number in range(PSUM_BANKS)]
    pinned = {number for b in order if b.address is not None for number in _pinned_banks(b)}
    free_for_all = [bank for bank in banks if bank.number not in pinned] or banks
    numbers: dict[int, tuple[int, ...]] = {}
    replaces: dict[int, tuple[int, ...]] = {}
    for buffer in order:
        if buffer.address is not None:
            numbers[buffer.id] = _pinned_banks(buffer)
            continue
        born, dies = lifetimes[buffer.id]
        count = -(-buffer.bytes_per_partition // PSUM_BANK_BYTES)
        # Banks that are still taken sort last, so an over-full PSUM shares instead of failing.
        chosen = sorted(free_for_all, key=lambda bank: (bank.until >= born, bank.until))[:count]
        replaces[buffer.id] = tuple(
            bank.last for bank in chosen if bank.last is not None and bank.until < born
        )
        for bank in chosen:
            bank.last, bank.until = buffer.id, max(bank.until, dies)
        numbers[buffer.id] = tuple(bank.number for bank in chosen)
    return numbers, {buffer: dead for buffer, dead in replaces.items() if dead}


def _pinned_banks(buffer: Buffer) -> tuple[int, ...]:
    assert buffer.address is not None
    first = buffer.address[1] // PSUM_BANK_BYTES
    last = (_end(buffer) - 1) // PSUM_BANK_BYTES
    return tuple(range(first, last + 1))
