"""Transfers of states between HBM and SBUF: their access patterns, and who addresses them."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, frozen

from backends.nki.program.build import Block, part
from backends.nki.program.nodes import Operand, Pattern, Range, Tile, Token, View
from backends.nki.program.numbers import ONE, ZERO, Name, Number
from backends.nki.select.addressing import Strides, strides
from backends.nki.select.inputs import RowWindow, base_of, entries_of, row_step
from gdsl.canonical.form import Delta
from gdsl.ir.dims import Dim

SKIP = Token("nisa.oob_mode.skip")


@frozen
class Index:
    """Numbers known on the device only, one per entry of the batch: [1, batch].

    They are the place in dimension `dim` of a tensor of states: in place of the entry (a slot), or
    beside it (how many tokens were kept). A slot outside the tensor skips the transfer.
    """

    numbers: View
    dim: int = 0
    slot: bool = True


def move_states(
    block: Block,
    tile: Tile,
    dims: tuple[Dim, ...],
    window: RowWindow,
    rows: tuple[Number, Number],
    delta: Delta,
    chip: View,
    *,
    store: bool,
    values: tuple[Number, Number] | None = None,
    index: Index | None = None,
    ring: Mapping[str, Operand] = {},
) -> None:
    """Add the transfers of the states of rows (first, count): [K, count, V] in HBM.

    `chip` is [K, count * V]; with `values` (first, count) those alone, [values, count * K]. `index`
    addresses them on the device. `ring` names the queue.
    """
    tensor, (first, count) = strides(dims), rows
    apart, step = row_step(tensor, window, tile.name, dims[0].span)
    width = Name(delta.key_axis if values else delta.value_axis)
    slot = index is not None and index.slot
    # A slot stands in place of the entry.
    shares = {a: share for a, share in window.shares.items() if not (slot and a == window.axes[0])}
    base = base_of(tensor, evolve(window, shares=shares))
    options = {**ring, "oob_mode": SKIP} if slot else dict(ring)

    def transfer(body: Block, entry: Number, start: Number, many: Number, part_: View) -> None:
        steps, within = state_steps(tensor, delta, (step, many), values)
        hbm = Pattern(tile, steps, start + within)
        if index is not None:
            number = part(index.numbers, None, (window.number(entry), ONE))
            hbm = evolve(hbm, index=number, indexed_dim=index.dim)
        dst, src = (hbm, part_) if store else (part_, hbm)
        body.do("dma_copy", dst=dst, src=src, **options)

    if not apart and index is None:
        transfer(block, ZERO, base + first * step, count, chip)
    else:
        with entries_of(block, window, rows) as (body, entry, begin, many, place):
            of_entry = base if slot else base + entry * tensor.of(window.axes[0])
            held = columns_of(chip, place * width, many * width)
            transfer(body, entry, of_entry + begin * step, many, held)


def state_steps(
    tensor: Strides,
    delta: Delta,
    rows: tuple[Number, Number],
    values: tuple[Number, Number] | None,
) -> tuple[tuple[tuple[Number, Number], ...], Number]:
    """The access pattern of the states of rows (step, count) as they lie on chip, and its start.

    Partitions first: K, or the `values` (first, count) of states that are stored [V, K].
    """
    K, V = Name(delta.key_axis), Name(delta.value_axis)
    of_key, of_value = tensor.of(K.name), tensor.of(V.name)
    if values is None:
        return ((of_key, K), rows, (of_value, V)), ZERO
    first, count = values
    return ((of_value, count), rows, (of_key, K)), first * of_value


def columns_of(view: View, first: Number, count: Number) -> View:
    """Columns of a tile, or of a slice of it."""
    if view.index is None:
        return part(view, None, (first, count))
    partitions, columns = view.index
    assert columns is not None
    start = columns.start + first
    return View(view.tile, (view.shape[0], count), (partitions, Range(start, start + count)))
