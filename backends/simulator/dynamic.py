"""Run-time indices of a view: registers, one-element tensors, row tables and trn3 indirection.

A `Dynamic` says how the value found when an instruction executes moves the elements of a view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from backends.simulator.faults import Fault
from backends.simulator.geometry import element_indices
from backends.simulator.layouts import Moves
from backends.simulator.registers import VirtualRegister

if TYPE_CHECKING:
    from backends.simulator.stored_view import StoredView
    from backends.simulator.tensor import NkiTensor

Indices = NDArray[np.int64]


@frozen(eq=False)
class Dynamic:
    """How a run-time value addresses a view.

    scalar: the whole view moves by `value * unit` elements.
    rows: row `w` of dimension 0 starts at `values[w] * unit`.
    columns: element `i` of every partition is column `values[i]` of its partition group (trn3).
    """

    kind: Literal["scalar", "rows", "columns"]
    index: NkiTensor | VirtualRegister
    unit: int
    """Elements that one step of the index moves."""
    extent: int
    """Number of legal index values: 0 <= value < extent."""

    @property
    def moves(self) -> Moves:
        """What a rule may ask of it."""
        index = self.index
        rules = None if isinstance(index, VirtualRegister) else index.layout.rules
        return self.kind, self.unit, rules


def index_values(dynamic: Dynamic) -> NDArray[np.int64]:
    """Return the index as integers: one for scalar, a vector for rows, `[P, K]` for columns."""
    index = dynamic.index
    if isinstance(index, VirtualRegister):
        if index.value is None:
            raise Fault("S402", "the register that addresses this view was never loaded")
        return np.array([index.value], dtype=np.int64)
    values = index.load()
    if not np.issubdtype(values.dtype, np.integer):
        raise Fault(
            "S218",
            f"an index tensor holds integers, not `{index.dtype}`",
            help="use int32 or uint32",
        )
    # Rows are read down the partitions first, as dma_transpose documents for several columns.
    table = values.reshape(values.shape[0], -1).astype(np.int64)
    return table if dynamic.kind == "columns" else table.T.reshape(-1)


def flat_indices(
    view: StoredView, *, skip: bool = False, group: int = 16
) -> tuple[Indices, NDArray[np.bool_] | None]:
    """Return the flat element index of every position of a dynamic view, and which rows are legal.

    The second result is None when all are; illegal rows (only with `skip`) point at element 0.
    `group` is the number of partitions that share one list of columns (16, TensorE 32).
    Raises Fault S402 for an index out of range unless `skip`.
    """
    dynamic: Dynamic = view.dynamic  # type: ignore[assignment]
    values = index_values(dynamic)
    if dynamic.kind == "columns":
        return _columns(view, dynamic, values, group), None
    if dynamic.kind == "rows":
        values = values[: view.shape[0]]
    legal = (values >= 0) & (values < dynamic.extent)
    if not legal.all() and not skip:
        bad = int(np.flatnonzero(~legal)[0])
        raise Fault(
            "S402",
            f"run-time index {int(values[bad])} (number {bad}) is outside 0..{dynamic.extent - 1}",
            values={"tensor": view.storage.name or "unnamed"},
            help="pass `oob_mode=nisa.oob_mode.skip` if rows may be skipped",
        )
    values = np.where(legal, values, 0)
    if dynamic.kind == "scalar":
        indices = element_indices(
            view.shape, view.strides, view.offset + int(values[0]) * dynamic.unit
        )
        _check_inside(view, indices)
        rows = None if legal.all() else np.zeros(view.shape[0], dtype=np.bool_)
        return indices, rows
    inner = element_indices(view.shape[1:], view.strides[1:], view.offset)
    starts = (values * dynamic.unit).reshape(-1, *[1] * inner.ndim)
    indices = starts + inner
    _check_inside(view, indices)
    return indices, None if legal.all() else legal


def _columns(view: StoredView, dynamic: Dynamic, table: Indices, group: int) -> Indices:
    """Return indices of a view whose columns are listed per partition group, row by row."""
    partitions, count = view.shape
    position = np.arange(count)
    indices = np.empty((partitions, count), dtype=np.int64)
    for first in range(0, partitions, group):
        rows = table[first : first + group]
        columns = rows[position % len(rows), position // len(rows)]
        if ((columns < 0) | (columns >= dynamic.extent)).any():
            raise Fault("S402", f"a column index is outside 0..{dynamic.extent - 1}")
        for p in range(first, min(first + group, partitions)):
            indices[p] = view.offset + p * view.strides[0] + columns * dynamic.unit
    return indices


def _check_inside(view: StoredView, indices: Any) -> None:
    """Refuse elements outside the storage."""
    if indices.size and (indices.min() < 0 or indices.max() >= view.storage_size):
        raise Fault(
            "S402",
            "a run-time index leads outside the tensor's storage",
            values={"elements": view.storage_size, "highest": int(indices.max())},
        )
