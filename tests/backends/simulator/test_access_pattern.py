"""`.ap`, run-time selection, row tables and trn3 indirection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from backends.isa.dtypes import DTYPES
from backends.simulator.faults import Fault
from backends.simulator.machine import Machine
from backends.simulator.registers import VirtualRegister
from backends.simulator.tensor import NkiTensor
from backends.simulator.tokens import MemoryRegion

HBM, SBUF = MemoryRegion.private_hbm, MemoryRegion.sbuf


@pytest.fixture
def make(machine: Callable[..., Machine]) -> Callable[..., NkiTensor]:
    """A tensor that holds given values."""
    program = machine()

    def tensor(values: Any, memory: MemoryRegion, dtype: str = "float32") -> NkiTensor:
        array = np.asarray(values).astype(DTYPES[dtype].numpy)
        made = program.allocate(array.shape, DTYPES[dtype], memory)
        made.store(array)
        return made

    return tensor


def counting(*shape: int) -> NDArray[np.float32]:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


Make = Callable[..., NkiTensor]


def test_pattern_addresses_storage_and_adds_the_views_offset(make: Make) -> None:
    values = counting(4, 6, 8)
    h = make(values, HBM)
    assert (h[2].ap([[8, 3], [1, 4]], offset=16).load() == values[2, 2:5, 0:4]).all()
    assert (h[2].ap([[8, 3], [1, 4]]).load() == values[2, 0:3, 0:4]).all()
    assert (h.ap([[0, 5], [1, 8]], offset=8).load() == np.tile(values[0, 1], (5, 1))).all()
    t = make(counting(8, 24), SBUF)
    assert (t.ap([[24, 8], [6, 4], [1, 3]], offset=2).load()
            == counting(8, 24).reshape(8, 4, 6)[:, :, 2:5]).all()  # fmt: skip
    assert t.ap([[24, 2], [1, 1]], offset=24 * 3).partition_start == 3
    assert (t[0:1].ap([[1, 1], [2, 4]]).load() == [[0, 2, 4, 6]]).all()


def test_pattern_of_another_dtype(make: Make) -> None:
    values = counting(4, 4)
    t = make(values, SBUF)
    assert (t.ap([[8, 4], [1, 8]], dtype="uint16").load() == values.view(np.uint16)).all()


@pytest.mark.parametrize(
    ("memory", "pattern", "offset"),
    [
        (HBM, [[8, 4], [1, 8]], 1),
        (HBM, [[8, 5], [1, 8]], 0),
        (HBM, [[8, 4], [1, 8]], -1),
        (HBM, [[8, 4], [-1, 8]], 8),
        (HBM, [[8, 0], [1, 8]], 0),
        (HBM, [[8, 4, 1]], 0),
        (SBUF, [[4, 4], [1, 4]], 0),
        (SBUF, [[8, 4], [1, 9]], 0),
        (SBUF, [[8, 4], [1, 8]], 8),
        (SBUF, [[8, 4]], 0),
    ],
)
def test_pattern_refuses(make: Make, memory: MemoryRegion, pattern: Any, offset: int) -> None:
    with pytest.raises(Fault, match="S217"):
        make(counting(4, 8), memory).ap(pattern, offset=offset).load()


@pytest.mark.parametrize("memory", [HBM, SBUF])
def test_a_pattern_beyond_the_end_may_be_written_down_but_not_used(
    make: Make, memory: MemoryRegion
) -> None:
    beyond = make(counting(4, 8), memory).ap([[8, 4], [1, 9]], offset=0)
    with pytest.raises(Fault, match="S217"):
        beyond[:, 0:8]
    with pytest.raises(Fault, match="S217"):
        len(beyond.shape)


def test_register_moves_a_pattern_by_base_rows(make: Make) -> None:
    values = counting(5, 4, 8)
    h = make(values, HBM)
    for row in range(5):
        view = h.ap([[8, 4], [1, 8]], scalar_offset=VirtualRegister(row), indirect_dim=0)
        assert view.is_indirect()
        assert (view.load() == values[row]).all()
    view = h.ap([[8, 2], [1, 8]], scalar_offset=VirtualRegister(2), indirect_dim=1)
    assert (view.load() == values[0, 2:4]).all()
    with pytest.raises(Fault, match="S402"):
        h.ap([[8, 4], [1, 8]], scalar_offset=VirtualRegister(5), indirect_dim=0).load()
    with pytest.raises(Fault, match="S402"):
        h.ap([[8, 4], [1, 8]], scalar_offset=VirtualRegister()).load()


def test_select_by_a_tile(make: Make) -> None:
    values = counting(5, 4, 8)
    h, slot = make(values, HBM), make([[3]], SBUF, "int32")
    view = h.select(0, slot)
    assert (view.load() == values[3]).all()
    assert (view[1:3].load() == values[3, 1:3]).all()
    view.store(np.zeros((4, 8), np.float32))
    assert (h.load()[3] == 0).all()
    t = make(counting(4, 6, 8), SBUF)
    assert (t.select(1, make([[5]], SBUF, "uint32")).load() == counting(4, 6, 8)[:, 5]).all()


def test_row_tables_gather_and_scatter(make: Make) -> None:
    values = counting(6, 8)
    h, rows = make(values, HBM), make([[4], [0], [5]], SBUF, "uint32")
    pattern = [[8, 3], [1, 4]]
    assert (h.ap(pattern, vector_offset=rows).load() == values[[4, 0, 5], 0:4]).all()
    assert (h.vector_select(0, rows).load() == values[[4, 0, 5]]).all()
    h.vector_select(0, rows).store(np.zeros((3, 8), np.float32))
    assert (h.load()[[4, 0, 5]] == 0).all()
    assert (h.load()[[1, 2, 3]] == values[[1, 2, 3]]).all()


def test_rows_out_of_range_are_a_fault_or_skipped(make: Make) -> None:
    values = counting(6, 8)
    h, rows = make(values, HBM), make([[4], [9], [5]], SBUF, "int32")
    view = h.vector_select(0, rows)
    with pytest.raises(Fault, match="S402"):
        view.load()
    found, legal = view.gather(skip=True)
    assert legal is not None
    assert legal.tolist() == [True, False, True]
    assert (found[legal] == values[[4, 5]]).all()
    view.store(np.zeros((3, 8), np.float32), skip=True)
    assert (h.load()[[4, 5]] == 0).all()
    assert (h.load()[0:4] == values[0:4]).all()


def test_columns_are_listed_per_partition_group(make: Make) -> None:
    values = counting(32, 10)
    t = make(values, SBUF)
    index = np.zeros((32, 2), np.int32)
    index[:16] = np.arange(32).reshape(2, 16).T % 10
    index[16:] = 9 - index[:16]
    view = t.indirect(make(index, SBUF, "int32"), num_elem=20)
    order = np.arange(20) % 10
    assert (view.load()[:16] == values[:16][:, order]).all()
    assert (view.load()[16:] == values[16:][:, 9 - order]).all()


@pytest.mark.parametrize(
    "use",
    [
        lambda h, t, i: t.vector_select(0, i),
        lambda h, t, i: h.vector_select(1, i),
        lambda h, t, i: h.vector_select(0, h),
        lambda h, t, i: h.vector_select(0, i)[0:1],
        lambda h, t, i: h.select(0, i[0]).select(0, i[0]),
        lambda h, t, i: h.select(0, i),
        lambda h, t, i: h.select(0, i[0]).ap([[1, 4]]),
        lambda h, t, i: h.ap([[8, 3], [1, 8]], scalar_offset=i[0], vector_offset=i),
        lambda h, t, i: h.ap([[8, 4], [1, 8]], vector_offset=i),
        lambda h, t, i: h.ap([[8, 3], [1, 8]], scalar_offset=i[0], indirect_dim=2),
        lambda h, t, i: h.indirect(i),
        lambda h, t, i: h.select(0, t[0, 0]).load(),
    ],
)
def test_run_time_indices_refuse(make: Make, use: Callable[..., object]) -> None:
    h, t = make(counting(6, 8), HBM), make(counting(6, 8), SBUF)
    with pytest.raises(Fault, match="S218"):
        use(h, t, make([[1], [2], [3]], SBUF, "int32"))
