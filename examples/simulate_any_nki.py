"""The simulator runs NKI that gdsl did not write, and refuses what the hardware would refuse."""

import tempfile
from pathlib import Path

import numpy as np

import gdsl

SOURCE = '''
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def scale_rows(x, factor):
    """Multiply every row of x by its factor."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    x_sb = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    factor_sb = nl.ndarray(factor.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x_sb, src=x)
    nisa.dma_copy(dst=factor_sb, src=factor)
    nisa.tensor_scalar(dst=x_sb, data=x_sb, op0=nl.multiply, operand0=factor_sb)
    nisa.dma_copy(dst=out, src=x_sb)
    return out
'''

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "scale_rows.py"
    path.write_text(SOURCE)
    scale_rows = gdsl.simulate(f"{path}:scale_rows", target="trn2")

    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    factor = np.array([[1], [10], [100], [1000]], np.float32)
    print(scale_rows(x, factor))

    try:
        scale_rows(np.zeros((129, 3), np.float32), np.zeros((129, 1), np.float32))
    except gdsl.GdslError as error:
        print("refused:", error.diagnostics[0].message)
