"""Sums in PSUM of a run without data: which elements TensorE wrote before a matmul adds to them.

A run with data knows it from the flags of each element (`memory.MATMUL_WROTE`); here the storage
keeps the views that TensorE wrote. Both must come to the same answers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from backends.simulator.faults import Fault
from backends.simulator.layouts import Layout
from backends.simulator.memory import Form
from backends.simulator.record_template import Template

if TYPE_CHECKING:
    from backends.simulator.tensor import NkiTensor

_Place = tuple[Layout, int]
"""Layout and offset of a view."""


def settled(template: Template, dst: NkiTensor) -> Template:
    """Return the template of an instruction of TensorE that is about to write `dst`.

    It is another when a matmul was not told whether to add, and adds. Where in PSUM a run-time
    index leads is not known: such a matmul adds only if it was told.
    Raises Fault S431 for a sum onto an element that no matmul wrote.
    """
    if dst.dynamic is not None or not (template.adds or template.adding):
        return template
    places: dict[_Place, None] = dst.storage.sums
    place = (dst.layout, dst.offset)
    if place in places:
        return template.adding or template
    missing = _missing(dst.storage.form, place, tuple(places))
    if template.adding:
        return template if missing is not None and missing.all() else template.adding
    if missing is not None:
        raise refused_sum(missing)
    return template


@lru_cache(maxsize=128)
def _missing(form: Form, place: _Place, places: tuple[_Place, ...]) -> NDArray[np.bool_] | None:
    """Return which elements of a view lie in none of `places`; None when all do."""
    written = np.zeros(form.size * form.itemsize, np.bool_)
    for layout, offset in places:
        _elements(written, layout, offset)[...] = True
    layout, offset = place
    missing = ~_elements(written, layout, offset)[..., 0]
    return missing if missing.any() else None


def _elements(written: NDArray[np.bool_], layout: Layout, offset: int) -> NDArray[np.bool_]:
    """Return the bytes of a view's elements, the bytes of each last."""
    n = layout.dtype.bytes
    strides = (*[stride * n for stride in layout.strides], 1)
    return np.ndarray((*layout.shape, n), np.bool_, written, offset * n, strides)


def refused_sum(missing: NDArray[np.bool_]) -> Fault:
    """Return the fault of a sum onto the elements that are `missing`."""
    where = tuple(int(i) for i in np.argwhere(missing)[0])
    return Fault(
        "S431",
        f"`accumulate=True` adds to element {list(where)} of `dst`, which no matmul wrote",
        help="pass `accumulate=False` to the first matmul of the group",
    )
