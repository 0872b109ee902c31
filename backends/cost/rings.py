"""Which ring carries a transfer, and which queue triggers it.

A kernel may name the issuing engine; software descriptors come from GpSimdE. Otherwise the compiler
chooses (A): loads go to a ring that SyncE feeds, stores to another one whose trigger holds up no
engine, so that a store that waits for its data does not block the loads behind it. More rings split
loads and stores further; one ring carries everything.
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


_LOADS = (Ring("sync", "sync"), Ring("loads", "loads"))
_STORES = (Ring("stores", "stores"), Ring("stores 2", "stores 2"))
_SOFTWARE = Ring("gpsimd", "gpsimd", software=True)


class Rings:
    """Deals transfers to rings in the order in which they are asked for."""

    def __init__(self, count: int, software: bool) -> None:
        """`count` (at least one) rings carry the transfers for which the kernel names no engine.

        `software`: GpSimdE builds the descriptors of those for which it names no mode either.
        """
        self._software = software
        loads = min(max(count - 1, 1), len(_LOADS))
        self._loads = _LOADS[:loads]
        self._stores = _STORES[: min(count - loads, len(_STORES))] or self._loads
        self._dealt = [0, 0]

    def ring(self, work: Transfer) -> Ring:
        """Return the ring of the next transfer in program order."""
        if work.mode == "swdge" or (work.mode == "unknown" and self._software):
            return _SOFTWARE
        if work.kind == "gpsimd":
            return Ring("gpsimd", "gpsimd")
        if work.queue is not None:
            return Ring(work.queue, work.queue)
        among = self._stores if work.is_store else self._loads
        self._dealt[work.is_store] += 1
        return among[self._dealt[work.is_store] % len(among)]
