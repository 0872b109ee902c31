"""Transfers of states between HBM and SBUF: their access patterns, and who addresses them."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, frozen

from backends.nki.program.build import Block, columns_of, part
from backends.nki.program.nodes import Operand, Pattern, Tile, Token, View
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


@frozen
class Across:
    """What of a state lies on partitions: indices first, first + 1, ... of one of its axes."""

    axis: str
    first: Number
    count: Number


def move_states(
    block: Block,
    tile: Tile,
    dims: tuple[Dim, ...],
    window: RowWindow,
    rows: tuple[Number, Number],
    delta: Delta,
    chip: View,
    across: Across,
    *,
    store: bool,
    index: Index | None = None,
    ring: Mapping[str, Operand] = {},
) -> None:
    """Add the transfers of the states of rows (first, count), or of a part of each.

    `across` says what is meant: keys, where `chip` is [keys, count * V], or values,
    [values, count * K]. `index` addresses the states on the device. `ring` names the queue.
    """
    tensor, (first, count) = strides(dims), rows
    apart, step = row_step(tensor, window, tile.name, dims[0].span)
    width = Name(_along(delta, across))
    slot = index is not None and index.slot
    # A slot stands in place of the entry.
    shares = {a: share for a, share in window.shares.items() if not (slot and a == window.axes[0])}
    base = base_of(tensor, evolve(window, shares=shares))
    options = {**ring, "oob_mode": SKIP} if slot else dict(ring)

    def transfer(body: Block, entry: Number, start: Number, many: Number, part_: View) -> None:
        steps, within = state_steps(tensor, delta, (step, many), across)
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
    tensor: Strides, delta: Delta, rows: tuple[Number, Number], across: Across
) -> tuple[tuple[tuple[Number, Number], ...], Number]:
    """The access pattern of the states of rows (step, count) as they lie on chip, and its start.

    Partitions first: keys, or the values of states that are stored [V, K].
    """
    step, along = tensor.of(across.axis), _along(delta, across)
    return ((step, across.count), rows, (tensor.of(along), Name(along))), across.first * step


def _along(delta: Delta, across: Across) -> str:
    """The axis of a state that lies along the free axis."""
    return delta.value_axis if across.axis == delta.key_axis else delta.key_axis
