"""The mask pack that callers of nki-library's chunked prefill build, as a function of our module.

Our kernels make their constants on chip and ignore the pack; the function exists so that a caller's
line that builds one keeps working, with equal planes. Two tokens of a chunk first lie in the same
block of 2w when the highest bit in which their positions differ is w; the earlier one is then in
its first half. So the blocks that a merge of width w joins are `row > column` where
`w <= row ^ column < 2w`.
"""

from __future__ import annotations

from backends.nki.program.nodes import Function, Verbatim

PLANES = 10
"""Masked triangle, strict triangle, identity, and one plane for each merge of 1, 2, ... 64 rows."""

BUILD_MASK_PACK = Function(
    "build_mask_pack",
    ("chunk_len=CHUNK",),
    """Return the constant masks [planes, chunk_len, chunk_len] that the replaced kernel needs.

`gdn_cte` of this module accepts them and does without. On the host, in fp32: -1e9 above the
diagonal, 1 below it, the identity, 1 where a merge of single rows joins them, and -1 where
merges of 2, 4, ... rows do.
""",
    (
        Verbatim(
            """\
import numpy as np

row, column = np.indices((chunk_len, chunk_len))
below, apart = row > column, row ^ column
planes = [np.where(row < column, -1e9, 0.0), below, row == column]
width, sign = 1, 1.0
while width < chunk_len:
    joined = below & (width <= apart) & (apart < 2 * width)
    planes.append(np.where(joined, sign, 0.0))
    width, sign = 2 * width, -1.0
return np.stack([plane.astype(np.float32) for plane in planes])"""
        ),
    ),
)
