"""NKI kernels written for this table, one per published instruction stream.

The published kernels behind them are in an older front end, or exist as a profile only. Each kernel
here issues the instructions that the source describes, in its order and sizes; what it computes
does not matter and is not checked. Run by the simulator in shape-only mode.
"""

from typing import Any

import nki.isa as nisa
import nki.language as nl

P = 128


def _load(source: nl.NkiTensor, shape: tuple[int, ...], dtype: Any) -> nl.NkiTensor:
    tile = nl.ndarray(shape, dtype=dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=source)
    return tile


def _tile(shape: tuple[int, ...], dtype: Any = nl.float32) -> nl.NkiTensor:
    return nl.ndarray(shape, dtype=dtype, buffer=nl.sbuf)


def silu_stream(x: nl.NkiTensor) -> nl.NkiTensor:
    """x [128, T, W]: load a tile, one ScalarE function, store it; T times."""
    _, tiles, width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for t in range(tiles):
        data = _load(x[:, t, :], (P, width), x.dtype)
        result = _tile((P, width))
        nisa.activation(dst=result, op=nl.silu, data=data)
        nisa.dma_copy(dst=out[:, t, :], src=result)
    return out


def adamw_stream(
    theta: nl.NkiTensor, grad: nl.NkiTensor, mean: nl.NkiTensor, var: nl.NkiTensor
) -> nl.NkiTensor:
    """All [128, T, W]: four loads, two ScalarE and four VectorE instructions, one store a tile."""
    _, tiles, width = theta.shape
    out = nl.ndarray(theta.shape, dtype=theta.dtype, buffer=nl.shared_hbm)
    for t in range(tiles):
        th = _load(theta[:, t, :], (P, width), theta.dtype)
        g = _load(grad[:, t, :], (P, width), theta.dtype)
        m = _load(mean[:, t, :], (P, width), theta.dtype)
        v = _load(var[:, t, :], (P, width), theta.dtype)
        square, root = _tile((P, width)), _tile((P, width))
        first, second, step, new = (
            _tile((P, width)),
            _tile((P, width)),
            _tile((P, width)),
            _tile((P, width)),
        )
        nisa.activation(dst=square, op=nl.square, data=g)
        _fused(first, m, 9.0, g)
        _fused(second, v, 999.0, square)
        nisa.activation(dst=root, op=nl.rsqrt, data=second)
        _fused(step, first, -0.001, root)
        _fused(new, th, 0.99999, step)
        nisa.dma_copy(dst=out[:, t, :], src=new)
    return out


def _fused(dst: nl.NkiTensor, data: nl.NkiTensor, number: float, other: nl.NkiTensor) -> None:
    nisa.scalar_tensor_tensor(
        dst=dst, data=data, op0=nl.multiply, operand0=number, op1=nl.add, operand1=other
    )


def rope_six(x: nl.NkiTensor, cos: nl.NkiTensor, sin: nl.NkiTensor) -> nl.NkiTensor:
    """x [128, S], cos, sin [64, S]: halves on 64 partitions each, six VectorE products a tile."""
    half, width = 64, 2048
    seq = x.shape[1]
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for s in range(0, seq, width):
        low = _load(x[0:half, s : s + width], (half, width), x.dtype)
        high = _load(x[half:P, s : s + width], (half, width), x.dtype)
        c = _load(cos[:, s : s + width], (half, width), x.dtype)
        d = _load(sin[:, s : s + width], (half, width), x.dtype)
        lc, hs, ls, hc = (
            _tile((half, width)),
            _tile((half, width)),
            _tile((half, width)),
            _tile((half, width)),
        )
        top, bottom = _tile((half, width)), _tile((half, width))
        nisa.tensor_tensor(dst=lc, data1=low, data2=c, op=nl.multiply)
        nisa.tensor_tensor(dst=hs, data1=high, data2=d, op=nl.multiply)
        nisa.tensor_tensor(dst=top, data1=lc, data2=hs, op=nl.subtract)
        nisa.tensor_tensor(dst=ls, data1=low, data2=d, op=nl.multiply)
        nisa.tensor_tensor(dst=hc, data1=high, data2=c, op=nl.multiply)
        nisa.tensor_tensor(dst=bottom, data1=ls, data2=hc, op=nl.add)
        nisa.dma_copy(dst=out[0:half, s : s + width], src=top)
        nisa.dma_copy(dst=out[half:P, s : s + width], src=bottom)
    return out


def mamba_scan(
    delta: nl.NkiTensor,
    u: nl.NkiTensor,
    a: nl.NkiTensor,
    b: nl.NkiTensor,
    c: nl.NkiTensor,
    tile: int,
    hoisted: bool,
    shared_rows: bool,
) -> nl.NkiTensor:
    """Selective scan: delta, u [C, S], a [C, N], b, c [N, S]; fp32.

    Per state and tile of `tile` tokens: exp on ScalarE, two products and a scan on VectorE, an
    accumulation; b and c rows are spread over partitions by TensorE and read from PSUM. `hoisted`:
    delta * u once per channel tile, not per state. `shared_rows`: b and c rows are spread once for
    all channel tiles.
    """
    channels, seq = delta.shape
    states = a.shape[1]
    out = nl.ndarray(delta.shape, dtype=delta.dtype, buffer=nl.shared_hbm)
    ones = _tile((1, P))
    nisa.memset(dst=ones, value=1.0)
    steps = range(0, seq, tile)
    groups = range(0, channels, P)
    carries: dict[str, list[Any]] = {}
    for ch in groups:
        carries[f"{ch}"] = [None] * states
    order = [(s, ch) for s in steps for ch in groups]
    if not shared_rows:
        order = [(s, ch) for ch in groups for s in steps]
    rows: dict[str, Any] = {}
    for s, ch in order:
        if not shared_rows or ch == 0:
            rows = {}
        x = _load(u[ch : ch + P, s : s + tile], (P, tile), u.dtype)
        d = _load(delta[ch : ch + P, s : s + tile], (P, tile), u.dtype)
        total = _tile((P, tile))
        nisa.memset(dst=total, value=0.0)
        du = _tile((P, tile))
        if hoisted:
            nisa.tensor_tensor(dst=du, data1=d, data2=x, op=nl.multiply)
        for n in range(states):
            rate = _load(a[ch : ch + P, n : n + 1], (P, 1), a.dtype)
            decay = _tile((P, tile))
            nisa.activation(dst=decay, op=nl.exp, data=d, scale=rate)
            if not hoisted:
                du = _tile((P, tile))
                nisa.tensor_tensor(dst=du, data1=d, data2=x, op=nl.multiply)
            dbu, scan, part = _tile((P, tile)), _tile((P, tile)), _tile((P, tile))
            brow = _spread(rows, f"b{n}", b[n : n + 1, s : s + tile], ones, tile, shared_rows)
            nisa.tensor_tensor(dst=dbu, data1=du, data2=brow, op=nl.multiply)
            carry = carries[f"{ch}"][n]
            nisa.tensor_tensor_scan(
                dst=scan,
                data0=decay,
                data1=dbu,
                initial=0.0 if carry is None else carry,
                op0=nl.multiply,
                op1=nl.add,
            )
            if seq > tile:
                last = _tile((P, 1))
                nisa.tensor_copy(dst=last, src=scan[:, tile - 1 : tile])
                carries[f"{ch}"][n] = last
            crow = _spread(rows, f"c{n}", c[n : n + 1, s : s + tile], ones, tile, shared_rows)
            nisa.tensor_tensor(dst=part, data1=scan, data2=crow, op=nl.multiply)
            nisa.tensor_tensor(dst=total, data1=total, data2=part, op=nl.add)
        nisa.dma_copy(dst=out[ch : ch + P, s : s + tile], src=total)
    return out


def _spread(
    rows: dict[str, Any],
    name: str,
    source: nl.NkiTensor,
    ones: nl.NkiTensor,
    tile: int,
    keep: bool,
) -> nl.NkiTensor:
    """A row over all partitions: by a matmul, left in PSUM, or kept in SBUF when shared."""
    if name in rows:
        return rows[name]
    row = _load(source, (1, tile), nl.float32)
    spread = nl.ndarray((P, tile), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=spread, stationary=ones, moving=row, is_stationary_onezero=True)
    if not keep:
        return spread
    kept = _tile((P, tile))
    nisa.activation(dst=kept, op=nl.copy, data=spread)
    rows[name] = kept
    return kept


def matmul_stream(
    x: nl.NkiTensor, weights: nl.NkiTensor, count: int, evacuate: int
) -> nl.NkiTensor:
    """`count` matmuls of x [128, M] and weights [128, N]; a copy of every `evacuate`-th to SBUF."""
    m, n = x.shape[1], weights.shape[1]
    out = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.shared_hbm)
    stationary = _load(x, x.shape, x.dtype)
    moving = _load(weights, weights.shape, weights.dtype)
    result = _tile((m, n))
    for _ in range(0, count, evacuate):
        bank = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.psum)
        for k in range(evacuate):
            nisa.nc_matmul(dst=bank, stationary=stationary, moving=moving, accumulate=k > 0)
        nisa.activation(dst=result, op=nl.copy, data=bank)
    nisa.dma_copy(dst=out, src=result)
    return out


def copy_stream(x: nl.NkiTensor, count: int, engine: str) -> nl.NkiTensor:
    """`count` copies of a [128, 512] fp32 PSUM tile to SBUF on one engine; bf16 matmuls feed it."""
    n = x.shape[1]
    out = nl.ndarray((P, n), dtype=nl.float32, buffer=nl.shared_hbm)
    data = _load(x, x.shape, x.dtype)
    for _ in range(count):
        bank = nl.ndarray((P, n), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=bank, stationary=data[:, 0:P], moving=data)
        result = _tile((P, n))
        if engine == "scalar":
            nisa.activation(dst=result, op=nl.copy, data=bank)
        else:
            nisa.tensor_copy(dst=result, src=bank)
    nisa.dma_copy(dst=out, src=result)
    return out


def load_exp_store(x: nl.NkiTensor) -> nl.NkiTensor:
    """x [p, N]: a load, exp, a store: the two examples of the DMA overview."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    data = _load(x, x.shape, x.dtype)
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.activation(dst=result, op=nl.exp, data=data)
    nisa.dma_copy(dst=out, src=result)
    return out


def vector_add(x: nl.NkiTensor, y: nl.NkiTensor) -> nl.NkiTensor:
    """x, y [T, p, N]: two loads, an addition, a store; T times."""
    tiles, p, n = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for t in range(tiles):
        left = _load(x[t], (p, n), x.dtype)
        right = _load(y[t], (p, n), x.dtype)
        total = _tile((p, n))
        nisa.tensor_tensor(dst=total, data1=left, data2=right, op=nl.add)
        nisa.dma_copy(dst=out[t], src=total)
    return out


def one_vector(x: nl.NkiTensor, y: nl.NkiTensor, kind: str) -> nl.NkiTensor:
    """Eight independent VectorE instructions of one kind on x [128, N]; y [128, N] is fp32."""
    n = x.shape[1]
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    data = _load(x, x.shape, x.dtype)
    other = _load(y, y.shape, y.dtype)
    for _ in range(8):
        if kind == "abs_max":
            result = _tile((P, 1))
            nisa.tensor_reduce(dst=result, op=nl.maximum, data=data, axis=1)
        elif kind == "to_fp8":
            result = _tile((P, n), nl.float8_e4m3)
            nisa.tensor_scalar(dst=result, data=data, op0=nl.multiply, operand0=2.0)
        else:
            bank = nl.ndarray((P, n), dtype=nl.float32, buffer=nl.psum)
            nisa.tensor_copy(dst=bank, src=other)
            result = _tile((P, n), nl.bfloat16)
            nisa.scalar_tensor_tensor(
                dst=result, data=data, op0=nl.multiply, operand0=2.0, op1=nl.multiply, operand1=bank
            )
    nisa.dma_copy(dst=out, src=data)
    return out
