"""Values moved between the layouts ROWS and KEYS by TensorE."""

from __future__ import annotations

from backends.nki.program.build import Block, part
from backends.nki.program.nodes import F32, Access, Space, Token, View, dtype_of
from backends.nki.program.numbers import Number
from backends.nki.select.constants import Constants
from backends.nki.select.layouts import MULTIPLY, SCALAR, TENSOR, VECTOR


def turn(block: Block, name: str, data: View, dst: View) -> None:
    """Write the transpose of `data`, [a, b], into `dst`, [b, a]."""
    turned = block.tile(
        f"{name}_turned_psum",
        (data.shape[1], data.shape[0]),
        dtype_of(data.tile.name, data.tile.element.bytes),
        Space.PSUM,
    )
    block.do("nc_transpose", dst=turned, data=data, engine=TENSOR)
    block.do("tensor_copy", dst=dst, src=turned, engine=SCALAR)


def repeat(
    block: Block,
    constants: Constants,
    name: str,
    column: Access | Number,
    shape: tuple[Number, Number],
) -> View:
    """Return a column of rows laid along the free axis, on every partition: `shape` [keys, rows].

    A diagonal matrix of the column, summed over its partitions by ones.
    """
    keys, rows = shape
    diagonal = block.tile(f"{name}_diagonal_sb", (rows, rows), F32)
    block.do(
        "tensor_scalar",
        dst=diagonal,
        data=part(constants.identity(), (0, rows), (0, rows)),
        op0=Token(MULTIPLY),
        operand0=column,
    )
    spread = block.tile(f"{name}_T_psum", (keys, rows), F32, Space.PSUM)
    block.do(
        "nc_matmul",
        dst=spread,
        stationary=part(constants.ones(), (0, rows), (0, keys)),
        moving=diagonal,
        is_stationary_onezero=True,
        accumulate=False,
    )
    view = block.tile(f"{name}_T_sb", (keys, rows), F32)
    block.do("tensor_copy", dst=view, src=spread, engine=VECTOR)
    return view
