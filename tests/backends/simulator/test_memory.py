"""What a run keeps alive: nothing of a program that has ended, whatever way it ended."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from backends.isa.dtypes import DTYPES
from backends.simulator.faults import Fault
from backends.simulator.memory import Allocation, Storage, form_of
from backends.simulator.run import SimResult
from backends.simulator.tokens import MemoryRegion

Run = Callable[..., SimResult]

KERNEL = """
@nki.jit
def kernel(x, end):
    y = nl.ndarray((8, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tiles = []

    for i in range(4):
        t = nl.ndarray((8, 64), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x)
        nisa.tensor_tensor(dst=t, data1=t, data2=t, op=nl.add)
        tiles.append(t)
    nisa.dma_copy(dst=y, src=tiles[0])
    assert end != "assertion"
    if end == "fault":
        nisa.tensor_copy(dst=t, src=x)
    if end == "error":
        end.no_such_thing
    return y
"""


@pytest.fixture
def arrays(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[weakref.ref[Any]]]:
    """The bytes of all storages made, as weak references, without help of the collector."""
    made: list[weakref.ref[Any]] = []
    make = Storage._make

    def remember(storage: Storage) -> None:
        make(storage)
        data = storage._data
        assert data is not None
        made.append(weakref.ref(data if data.base is None else data.base))

    monkeypatch.setattr(Storage, "_make", remember)
    gc.collect()
    gc.disable()
    yield made
    gc.enable()


@pytest.mark.parametrize("lnc", [1, 2])
def test_a_run_that_ended_well_frees_its_tiles(
    run: Run, arrays: list[weakref.ref[Any]], lnc: int
) -> None:
    result = run(KERNEL, np.ones((8, 64), np.float32), "", lnc=lnc, races="warn")
    assert len(arrays) == 1 + 4 * lnc
    assert sum(array() is not None for array in arrays) == 1  # the result
    del result
    assert not any(array() is not None for array in arrays)


@pytest.mark.parametrize("end", ["fault", "error", "assertion"])
@pytest.mark.parametrize("lnc", [1, 2])
def test_a_run_that_failed_frees_its_tiles_while_the_fault_is_kept(
    run: Run, arrays: list[weakref.ref[Any]], end: str, lnc: int
) -> None:
    with pytest.raises(Fault) as fault:
        run(KERNEL, np.ones((8, 64), np.float32), end, lnc=lnc)
    assert len(arrays) >= 5
    # Memory that programs share belongs to the launch, whose frames the fault has passed as well.
    assert sum(array() is not None for array in arrays) <= 1
    assert fault.value.location.line > 0


def test_unwritten_bytes_are_made_when_they_are_touched() -> None:
    storage = Storage(Allocation(form_of((2, 4), DTYPES["float32"], MemoryRegion.psum)))
    assert storage.data is None
    storage.fill()
    assert storage._data is None
    assert storage.data is not None
    assert np.isnan(storage.values()).all()
    assert storage.flags is not None
    assert not storage.flags.any()
