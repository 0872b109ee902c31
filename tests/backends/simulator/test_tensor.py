"""Views of tensors: NKI's indexing rules, view methods, data through every view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from backends.isa.dtypes import DTYPES
from backends.simulator.faults import Fault
from backends.simulator.layouts import whole_layout
from backends.simulator.machine import Machine
from backends.simulator.memory import Allocation, Storage, form_of
from backends.simulator.tensor import NkiTensor
from backends.simulator.tokens import MemoryRegion

F32 = DTYPES["float32"]
Start = Callable[..., Machine]


def tensor(
    values: NDArray[Any], memory: MemoryRegion = MemoryRegion.sbuf, dtype: str = "float32"
) -> NkiTensor:
    """A tensor that holds `values`."""
    storage = Storage(Allocation(form_of(values.shape, DTYPES[dtype], memory), "t"))
    storage.fill(values)
    return NkiTensor(storage, whole_layout(storage), 0)


def counting(*shape: int) -> NDArray[np.float32]:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


CUBE = counting(64, 64, 64)
HBM = MemoryRegion.private_hbm


@pytest.mark.parametrize(
    ("key", "shape"),
    [
        ((0, 0, 10), (1, 1)),
        ((slice(None), 0), (64, 64)),
        ((slice(None), 0, 10), (64, 1)),
        ((slice(0, 64), 0, slice(0, 64)), (64, 64)),
        ((slice(None), slice(None), slice(None, None, 2)), (64, 64, 32)),
        ((0, ..., slice(None)), (1, 64, 64)),
        (..., (64, 64, 64)),
        ((-1, -1), (1, 64)),
        (3, (1, 64, 64)),
    ],
)
def test_on_chip_integers_keep_the_partition_and_rank_two(key: Any, shape: tuple[int, ...]) -> None:
    view = tensor(CUBE)[key]
    assert view.shape == shape
    assert (view.load().reshape(-1) == CUBE[key].reshape(-1)).all()


@pytest.mark.parametrize(
    ("key", "shape"),
    [((0,), (128, 32)), ((0, 1), (32,)), ((0, 1, 2), (1,)), ((slice(1, 3), 0), (2, 32))],
)
def test_hbm_integers_drop_dimensions(key: Any, shape: tuple[int, ...]) -> None:
    values = counting(4, 128, 32)
    view = tensor(values, HBM)[key]
    assert view.shape == shape
    assert (view.load().reshape(-1) == values[key].reshape(-1)).all()


@st.composite
def slices(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[slice, ...]:
    keys = []
    for axis, n in enumerate(shape):
        start = draw(st.integers(0, n - 1))
        stop = draw(st.integers(start + 1, n))
        keys.append(slice(start, stop, 1 if axis == 0 else draw(st.integers(1, 3))))
    return tuple(keys)


@given(st.data())
def test_nested_slices_compose_and_share_storage(data: st.DataObject) -> None:
    values = counting(6, 5, 7)
    base = tensor(values)
    outer = data.draw(slices((6, 5, 7)))
    view, expected = base[outer], values[outer]
    inner = data.draw(slices(expected.shape))
    view, expected = view[inner], expected[inner]
    assert (view.load() == expected).all()
    view.store(-np.ones(view.shape, np.float32))
    assert (base.load() == np.where(np.isin(values, expected), -1, values)).all()


def test_views_agree_with_numpy() -> None:
    values = counting(8, 6, 4)
    t = tensor(values)
    assert (t.permute((0, 2, 1)).load() == values.transpose(0, 2, 1)).all()
    assert (t.reshape((8, 3, 8)).load() == values.reshape(8, 3, 8)).all()
    assert (t.reshape((8, -1)).load() == values.reshape(8, 24)).all()
    assert (t.reshape_dim(1, (2, 3)).load() == values.reshape(8, 2, 3, 4)).all()
    assert (t.flatten_dims(1, 2).load() == values.reshape(8, 24)).all()
    assert (t.slice(2, 1, 4, 2).load() == values[:, :, 1:4:2]).all()
    assert (t.select(1, 3).load() == values[:, 3]).all()
    assert t.expand_dim(1).shape == (8, 1, 6, 4)
    assert t.expand_dim(3).squeeze_dim(3).shape == t.shape
    wide = t[:, 0].expand_dim(2).broadcast(2, 5)
    assert (wide.load() == np.repeat(values[:, 0, :, None], 5, axis=2)).all()
    split = t.rearrange(("p", ("a", "b"), "f"), ("p", "b", "f", "a"), {"a": 2})
    assert (split.load() == values.reshape(8, 2, 3, 4).transpose(0, 2, 3, 1)).all()
    merged = t.rearrange(("p", ("a", "b"), "f"), ("p", "a", ("b", "f")), {"b": 3})
    assert (merged.load() == values.reshape(8, 2, 12)).all()


def test_hbm_views_may_move_every_dimension() -> None:
    values = counting(3, 4, 5)
    t = tensor(values, HBM)
    assert (t.permute((2, 0, 1)).load() == values.transpose(2, 0, 1)).all()
    assert (t.reshape((12, 5)).load() == values.reshape(12, 5)).all()
    assert (t.expand_dim(0).broadcast(0, 2).load() == np.stack([values, values])).all()


def test_view_reinterprets_bits() -> None:
    values = counting(4, 8)
    t = tensor(values)
    assert (t.view("int32").load() == values.view(np.int32)).all()
    halves = t.view("uint16")
    assert halves.shape == (4, 16)
    assert (halves.load() == values.view(np.uint16)).all()
    assert (halves[2:4, 4:8].view("float32").load() == values[2:4, 2:4]).all()


@pytest.mark.parametrize(
    ("code", "use"),
    [
        ("S210", lambda t: t[:, 6]),
        ("S210", lambda t: t[0:9]),
        ("S210", lambda t: t[:, 3:3]),
        ("S210", lambda t: t[:, ::-1]),
        ("S210", lambda t: t.select(1, 6)),
        ("S211", lambda t: t[0, 0, 0, 0]),
        ("S211", lambda t: t[None]),
        ("S211", lambda t: t[..., ...]),
        ("S211", lambda t: t[1.0]),
        ("S212", lambda t: t[::2]),
        ("S213", lambda t: t.permute((1, 0, 2))),
        ("S213", lambda t: t.reshape((4, 2, 24))),
        ("S213", lambda t: t[0:1].broadcast(0, 4)),
        ("S213", lambda t: t.expand_dim(0)),
        ("S213", lambda t: t[0:1].squeeze_dim(0)),
        ("S213", lambda t: t.reshape_dim(0, (2, 4))),
        ("S213", lambda t: t.flatten_dims(0, 1)),
        ("S214", lambda t: t.permute((0, 1))),
        ("S214", lambda t: t.broadcast(1, 2)),
        ("S214", lambda t: t.reshape((8, 25))),
        ("S214", lambda t: t.squeeze_dim(1)),
        ("S214", lambda t: t.flatten_dims(2, 1)),
        ("S214", lambda t: t.rearrange(("p", ("a", "b"), "f"), ("p", "a", "f"), {"a": 2})),
        ("S215", lambda t: t[:, :, 0:2].flatten_dims(1, 2)),
        ("S215", lambda t: t.permute((0, 2, 1)).reshape((8, 24))),
        ("S216", lambda t: t[:, :, ::2].view("uint16")),
        ("S216", lambda t: t.view("bfloat16")[:, :, 1:4].view("float32")),
        ("S108", lambda t: float(t)),
        ("S108", lambda t: int(t)),
    ],
)
def test_views_refuse(code: str, use: Callable[[NkiTensor], object]) -> None:
    with pytest.raises(Fault) as caught:
        use(tensor(counting(8, 6, 4)))
    assert caught.value.code == code


def test_a_tensor_is_true_with_a_warning_or_a_fault(machine: Start) -> None:
    program = machine()
    assert bool(tensor(counting(2, 2)))
    assert [warning.code for warning in program.warnings.values()] == ["S108"]
    machine(tensor_truth="fault")
    with pytest.raises(Fault, match="S108"):
        bool(tensor(counting(2, 2)))


def test_partition_steps_are_an_option(machine: Start) -> None:
    machine(partition_step="allow")
    values = counting(8, 4)
    assert (tensor(values)[::2].load() == values[::2]).all()


def test_stride_zero_destination_keeps_the_last_value() -> None:
    t = tensor(counting(4, 1))
    t.broadcast(1, 3).store(counting(4, 3))
    assert (t.load()[:, 0] == [2, 5, 8, 11]).all()


def test_overlapping_destination_keeps_the_last_value() -> None:
    t = tensor(np.zeros((2, 6), np.float32))
    t.ap([[6, 2], [2, 2], [1, 4]]).store(counting(2, 2, 4))
    assert (t.load() == [[0, 1, 4, 5, 6, 7], [8, 9, 12, 13, 14, 15]]).all()


def test_narrow_floats_round_on_store_and_not_when_widened(machine: Start) -> None:
    machine()
    value = np.full((1, 1), 1 + 2.0**-10, np.float32)
    narrow = tensor(np.zeros((1, 1)), dtype="bfloat16")
    narrow.store_f32(value)
    assert float(narrow.load()[0, 0]) == 1.0
    program = machine(widen_to_fp32=True)
    wide = program.allocate((1, 1), DTYPES["bfloat16"], MemoryRegion.sbuf)
    wide.store_f32(value)
    assert float(wide.load()[0, 0]) == value
    with pytest.raises(Fault, match="S109"):
        wide.view("uint16")


def test_unwritten_memory_reads_nan_and_four_or_is_a_fault(machine: Start) -> None:
    program = machine()
    assert np.isnan(program.allocate((2, 3), F32, MemoryRegion.sbuf).load()).all()
    assert (program.allocate((2, 3), DTYPES["int16"], MemoryRegion.sbuf).load() == 4).all()
    program = machine(uninitialized="fault")
    t = program.allocate((2, 3), F32, MemoryRegion.sbuf)
    t[:, 0:2].store(counting(2, 2))
    assert (t[:, 0:2].load() == counting(2, 2)).all()
    with pytest.raises(Fault, match="S401"):
        t.load()
    assert (t.view("uint8")[:, 4:8].load() >= 0).all()


def test_accumulation_state_tells_who_wrote(machine: Start) -> None:
    program = machine()
    t = program.allocate((2, 4), F32, MemoryRegion.psum)
    t[:, 0:2].store(np.zeros((2, 2), np.float32), matmul=True)
    t[:, 1:3].store(np.zeros((2, 2), np.float32))
    assert t.accumulation_state().tolist() == [[5, 7, 6, 0]] * 2


def test_get_pattern_and_contiguity() -> None:
    t = tensor(counting(8, 6, 4))
    assert t.get_pattern() == [[24, 8], [4, 6], [1, 4]]
    assert t.is_contiguous()
    assert t[:, 0:2].is_contiguous()
    assert not t[:, :, 0:2].is_contiguous()
    assert not tensor(counting(8, 6), HBM)[:, 0:2].is_contiguous()


def test_partition_and_bank_positions(machine: Start) -> None:
    program = machine()
    t = program.allocate((128, 1024), F32, MemoryRegion.psum)
    view = t[32:64, 500:520]
    assert (view.partition_start, view.partitions, view.free_size) == (32, 32, 20)
    assert view.banks() == (0, 1)
    assert t[:, 512:1024].banks() == (1, 1)
