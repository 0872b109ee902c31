"""Which ring carries a transfer, and which in-order queue triggers it.

A kernel may name the issuing engine; software descriptors come from GpSimdE. All other transfers
are dealt in turn to the rings the compiler has (A): the first is triggered by SyncE, each further
one by a queue of its own that holds up no engine. A trigger that waits for its data holds up the
later ones of its queue.
"""

from __future__ import annotations

from attrs import frozen

from backends.cost.workload import Transfer


@frozen
class Ring:
    """A ring, and the in-order queue whose trigger starts a transfer on it."""

    name: str
    queue: str
    software: bool = False
    """Whether GpSimdE builds the descriptors."""


_SOFTWARE = Ring("gpsimd", "gpsimd", software=True)
_OWN_ENGINE = Ring("gpsimd", "gpsimd")


class Rings:
    """Deals transfers to rings in the order in which they are asked for."""

    def __init__(self, count: int, software: bool) -> None:
        """`count` (at least one) rings carry the transfers for which the kernel names no engine.

        `software`: GpSimdE builds the descriptors of those for which it names no mode either.
        """
        further = (f"ring {number}" for number in range(2, count + 1))
        self._rings = (Ring("sync", "sync"), *(Ring(name, name) for name in further))
        self._software = software
        self._dealt = 0

    def ring(self, work: Transfer) -> Ring:
        """Return the ring of the next transfer in program order."""
        if work.kind == "gpsimd":
            return _OWN_ENGINE
        if work.mode == "swdge" or (work.mode == "unknown" and self._software):
            return _SOFTWARE
        if work.queue is not None:
            return Ring(work.queue, work.queue)
        self._dealt += 1
        return self._rings[(self._dealt - 1) % len(self._rings)]
