"""HBM that the programs of a launch share: arguments, and tensors both allocate in step."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from backends.simulator.faults import Fault
from backends.simulator.memory import Storage


@define(eq=False)
class SharedMemory:
    """The `shared_hbm` tensors of a launch in allocation order.

    Each program runs the same allocations; the n-th of one is the n-th of the other.
    """

    storages: list[Storage] = field(factory=list)
    _next: dict[int, int] = field(factory=dict)

    def exists(self, program: int) -> bool:
        """Whether the program's next shared tensor was already allocated by the other one."""
        return self._next.get(program, 0) < len(self.storages)

    def claim(self, program: int, wanted: Storage, values: NDArray[Any] | None = None) -> Storage:
        """Return the storage of the program's next shared tensor; `values` are a constant's.

        Raises Fault S503.
        """
        place = self._next.get(program, 0)
        self._next[program] = place + 1
        if place == len(self.storages):
            self.storages.append(wanted)
            return wanted
        known = self.storages[place]
        mine, theirs = wanted.form, known.form
        if (theirs.shape, theirs.dtype) != (mine.shape, mine.dtype):
            raise Fault(
                "S503",
                f"shared tensor number {place + 1} is {list(mine.shape)} {mine.dtype} here and "
                f"{list(theirs.shape)} {theirs.dtype} in the other program",
                help="allocate shared tensors unconditionally and in the same order",
            )
        if values is not None and known.data is not None:
            same = np.array_equal(
                known.data, np.array(values, known.form.cell).reshape(-1).view(np.uint8)
            )
            if not same:
                raise Fault("S503", "a shared constant holds other values in the other program")
        return known
