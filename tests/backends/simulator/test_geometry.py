"""Layout arithmetic against numpy, which knows strides better than anyone."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.simulator import geometry
from backends.simulator.geometry import Ints

SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


def strided(shape: Ints, order: Ints, steps: Ints) -> np.ndarray:
    """A permuted, stepped view of a dense array of the elements' numbers."""
    base = np.arange(prod(n * s for n, s in zip(shape, steps, strict=True)))
    dense = base.reshape([n * s for n, s in zip(shape, steps, strict=True)])
    return dense[tuple(slice(None, None, s) for s in steps)].transpose(order)


@st.composite
def views(draw: st.DrawFn) -> np.ndarray:
    shape = draw(SIZES)
    order = tuple(draw(st.permutations(range(len(shape)))))
    steps = tuple(draw(st.lists(st.integers(1, 2), min_size=len(shape), max_size=len(shape))))
    return strided(shape, order, steps)


def elements(view: np.ndarray) -> tuple[Ints, Ints]:
    return view.shape, tuple(s // view.itemsize for s in view.strides)


@given(views(), st.data())
def test_reshape_strides_finds_a_view_exactly_when_numpy_does(
    view: np.ndarray, data: st.DataObject
) -> None:
    left, sizes = view.size, []
    for _ in range(data.draw(st.integers(0, 3))):
        divisors = [n for n in range(1, left + 1) if left % n == 0]
        sizes.append(data.draw(st.sampled_from(divisors)))
        left //= sizes[-1]
    new = (*sizes, left)
    shape, strides = elements(view)
    found = geometry.reshape_strides(shape, strides, new)
    expected = view.copy().reshape(new)
    copied = view.view()
    try:
        copied.shape = new
        possible = True
    except AttributeError:
        possible = False
    assert (found is not None) == possible
    if found is not None:
        first = int(view.reshape(-1)[0])
        assert (geometry.element_indices(new, found, first) == expected).all()


@given(views())
def test_element_indices_are_the_numbers_of_the_elements(view: np.ndarray) -> None:
    shape, strides = elements(view)
    assert (geometry.element_indices(shape, strides, int(view.reshape(-1)[0])) == view).all()


@given(views())
def test_box_bounds_the_elements_and_counts_contiguous_runs(view: np.ndarray) -> None:
    shape, strides = elements(view)
    box = geometry.box(shape, strides)
    flat = view.reshape(-1)
    first = int(flat[0])
    assert (first + box.first, first + box.first + box.extent - 1) == (flat.min(), flat.max())
    assert box.elements == flat.size
    runs = 1 + int((np.diff(flat) != 1).sum())
    assert box.elements // box.run >= runs
    assert box.elements % box.run == 0


@pytest.mark.parametrize(
    ("shape", "strides", "run", "inner"),
    [
        ((4, 8), (8, 1), 32, 1),
        ((4, 8), (16, 1), 8, 1),
        ((4, 8), (16, 2), 1, 2),
        ((4, 1), (16, 1), 1, 16),
        ((1, 1), (16, 1), 1, 1),
        ((4, 8), (8, 0), 1, 0),
        ((3, 4, 8), (0, 8, 1), 32, 1),
    ],
)
def test_box_runs_and_inner_stride(shape: Ints, strides: Ints, run: int, inner: int) -> None:
    box = geometry.box(shape, strides)
    assert (box.run, box.inner_stride) == (run, inner)


@given(views())
def test_is_dense_agrees_with_numpy(view: np.ndarray) -> None:
    assert geometry.is_dense(*elements(view)) == view.flags.c_contiguous


@given(SIZES, st.data())
def test_is_injective_never_calls_a_clashing_layout_injective(
    shape: Ints, data: st.DataObject
) -> None:
    strides = tuple(data.draw(st.integers(0, 7)) for _ in shape)
    indices = geometry.element_indices(shape, strides, 0).reshape(-1)
    if geometry.is_injective(shape, strides):
        assert len(np.unique(indices)) == indices.size
