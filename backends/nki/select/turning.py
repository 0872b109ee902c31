"""Values moved between the layouts ROWS and KEYS by TensorE."""

from __future__ import annotations

from backends.nki.program.build import Block, part
from backends.nki.program.nodes import F32, Access, Space, Token, View, dtype_of
from backends.nki.program.numbers import Number
from backends.nki.select.constants import Constants
from backends.nki.select.key_tiles import KeyTiles
from backends.nki.select.layouts import MULTIPLY, SCALAR, TENSOR, VECTOR


def turn_to_keys(
    block: Block, name: str, data: View, dst: View, keys: KeyTiles, rows: Number
) -> None:
    """Write `data`, [rows, keys], into `dst` with keys on partitions."""
    turned = _turned(block, name, data, (keys.partitions, keys.count * rows))
    for tile in keys:
        at = tile.of(turned, rows)
        block.do("nc_transpose", dst=at, data=tile.keys(data), engine=TENSOR)
    keys.clear(block, dst, rows)
    for tile in keys:
        src, into = tile.of(turned, rows), tile.of(dst, rows)
        block.do("tensor_copy", dst=into, src=src, engine=SCALAR)


def turn_to_rows(
    block: Block, name: str, data: View, dst: View, keys: KeyTiles, rows: Number
) -> None:
    """Write `data`, which has keys on partitions, into `dst`, [rows, keys]."""
    turned = _turned(block, name, data, (dst.shape[0], dst.shape[1]))
    for tile in keys:
        at = tile.keys(turned)
        block.do("nc_transpose", dst=at, data=tile.of(data, rows), engine=TENSOR)
    block.do("tensor_copy", dst=dst, src=turned, engine=SCALAR)


def _turned(block: Block, name: str, data: View, shape: tuple[Number, Number]) -> View:
    """A tile in PSUM for the transpose of `data`, which must have its dtype."""
    element = dtype_of(data.tile.name, data.tile.element.bytes)
    return block.tile(f"{name}_turned_psum", shape, element, Space.PSUM)


def repeat(
    block: Block,
    constants: Constants,
    name: str,
    column: Access | Number,
    keys: KeyTiles,
    rows: Number,
) -> View:
    """Return a column of rows laid along the free axis, on every partition of every tile of keys.

    A diagonal matrix of the column, summed over its partitions by ones.
    """
    diagonal = block.tile(f"{name}_diagonal_sb", (rows, rows), F32)
    block.do(
        "tensor_scalar",
        dst=diagonal,
        data=part(constants.identity(), (0, rows), (0, rows)),
        op0=Token(MULTIPLY),
        operand0=column,
    )
    partitions = keys.partitions
    spread = block.tile(f"{name}_T_psum", (partitions, rows), F32, Space.PSUM)
    block.do(
        "nc_matmul",
        dst=spread,
        stationary=part(constants.ones(), (0, rows), (0, partitions)),
        moving=diagonal,
        is_stationary_onezero=True,
        accumulate=False,
    )
    view = block.tile(f"{name}_T_sb", (partitions, keys.count * rows), F32)
    for tile in keys:
        into = part(view, None, (tile.place * rows, rows))
        block.do("tensor_copy", dst=into, src=spread, engine=VECTOR)
    return view
