"""Processor time per simulated instruction, with data and with shapes only.

    python -m examples.bench.simulator_speed [TOKENS] [HEADS]

The kernel is the library's chunked prefill, 8 heads of 4,096 tokens unless the command line says
otherwise, K = V = 128 in bf16 on trn2. numpy gets one thread, so that processor time is comparable.
The rows time our Python on this machine, not a kernel.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from time import process_time
from typing import Any

# Before numpy is loaded, which reads them once.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import ml_dtypes
import numpy as np

from backends.isa.dtypes import find_dtype
from backends.nki import EMITTER
from backends.simulator.arguments import TensorSpec
from backends.simulator.options import SimOptions
from backends.simulator.run import simulate
from gdsl import api
from gdsl.algorithm.choose import choose
from gdsl.canonical.canonicalize import canonicalize
from gdsl.emitter import EmitOptions

_KERNEL = "gdn_cte"
_WIDTH = 128
_ROUNDS = 3
"""Runs in turn; of either kind the least one counts, as the least disturbed."""
_SHORT_RUNS = 3
"""Runs without data in one round: they are over soon."""


def main() -> int:
    """Print processor time per instruction in both modes, and the ratio."""
    given = [int(text) for text in sys.argv[1:]]
    tokens, heads = (*given, *(4096, 8)[len(given) :])
    values = _values(heads, tokens)
    text = EMITTER.emit(choose(canonicalize(api.load(_KERNEL).kernel), {}), EmitOptions()).text
    of_shapes, of_data = [], []
    for _ in range(_ROUNDS):
        for _ in range(_SHORT_RUNS):
            of_shapes.append(_microseconds(text, _shapes(values), shape_only=True))
        of_data.append(_microseconds(text, values, shape_only=False))
    shapes, data = min(of_shapes), min(of_data)
    print(f"shapes only {shapes:8.2f} us per instruction")
    print(f"data        {data:8.2f} us per instruction")
    print(f"ratio       {data / shapes:8.1f}")
    return 0


def _microseconds(text: str, values: Mapping[str, Any], *, shape_only: bool) -> float:
    """Return the processor time of one launch over its instructions."""
    start = process_time()
    result = simulate(text, _KERNEL, values, options=SimOptions(shape_only=shape_only))
    return (process_time() - start) / result.instructions * 1e6


def _values(heads: int, tokens: int) -> dict[str, Any]:
    """Return arguments with unit keys and decays below 1."""
    rng = np.random.default_rng(0)
    bf16 = ml_dtypes.bfloat16
    query, key, value = rng.standard_normal((3, 1, heads, tokens, _WIDTH))
    gates = (1, heads, tokens)
    return {
        "query": (query / np.sqrt(_WIDTH)).astype(bf16),
        "key": (key / np.linalg.norm(key, axis=-1, keepdims=True)).astype(bf16),
        "value": value.astype(bf16),
        "g_log": -rng.exponential(0.1, gates).astype(np.float32),
        "beta": rng.uniform(size=gates).astype(np.float32),
        "scale": _WIDTH**-0.5,
    }


def _shapes(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same arguments without their contents."""
    return {
        name: TensorSpec(value.shape, find_dtype(value.dtype.name))
        if isinstance(value, np.ndarray)
        else value
        for name, value in values.items()
    }


if __name__ == "__main__":
    sys.exit(main())
