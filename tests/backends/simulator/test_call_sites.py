"""Shape-only runs take a short way for calls they know: the trace must be that of a data run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from attrs import evolve

from backends.isa.dtypes import find_dtype
from backends.nki import EMITTER
from backends.simulator.arguments import TensorSpec
from backends.simulator.faults import Fault
from backends.simulator.options import SimOptions
from backends.simulator.run import SimResult, simulate
from gdsl import api
from gdsl.algorithm.choose import choose
from gdsl.canonical.canonicalize import canonicalize
from gdsl.emitter import EmitOptions

Run = Callable[..., SimResult]
F = np.float32

LOOP = """
import nki.isa as nisa
import nki.language as nl

def copies(x):
    y = nl.ndarray((8, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    for value in VALUES:
        for start in STARTS:
            t = nl.ndarray((8, 16), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=t, src=x[:, 0:16])
            nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=value)
            nisa.dma_copy(dst=y[0:8, start : start + 16], src=t)
    return y
"""


def copies(values: list[Any], starts: list[Any]) -> str:
    """Return the kernel with its loops written out."""
    return LOOP.replace("VALUES", repr(values)).replace("STARTS", repr(starts))


def of_shapes(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: TensorSpec(value.shape, find_dtype(value.dtype.name))
        if isinstance(value, np.ndarray)
        else value
        for name, value in values.items()
    }


def both(text: str, entry: str, values: dict[str, Any]) -> tuple[SimResult, SimResult]:
    shapes = simulate(text, entry, of_shapes(values), options=SimOptions(shape_only=True))
    return simulate(text, entry, values), shapes


def assert_same_traces(data: SimResult, shapes: SimResult) -> None:
    for full, short in zip(data.traces, shapes.traces, strict=True):
        assert short.records == full.records
        # Only a run with data sees which arguments were written.
        assert [evolve(b, role="input") for b in short.buffers if b.role != "output"] == [
            evolve(b, role="input") for b in full.buffers if b.role != "output"
        ]
        assert short.sbuf_bytes_per_partition == full.sbuf_bytes_per_partition
        assert short.psum_banks == full.psum_banks


@pytest.mark.parametrize(("heads", "tokens"), [(1, 128), (2, 700)])
def test_an_emitted_kernel_leaves_the_same_trace(heads: int, tokens: int) -> None:
    text = EMITTER.emit(choose(canonicalize(api.load("gdn_cte").kernel), {}), EmitOptions()).text
    rng = np.random.default_rng(0)
    key = rng.standard_normal((1, heads, tokens, 128))
    values = {
        "query": rng.standard_normal(key.shape).astype(ml_dtypes.bfloat16),
        "key": (key / np.linalg.norm(key, axis=-1, keepdims=True)).astype(ml_dtypes.bfloat16),
        "value": rng.standard_normal(key.shape).astype(ml_dtypes.bfloat16),
        "g_log": np.full((1, heads, tokens), -0.1, F),
        "beta": np.full((1, heads, tokens), 0.5, F),
        "scale": 0.1,
    }
    data, shapes = both(text, "gdn_cte", values)
    assert_same_traces(data, shapes)
    assert len(shapes.traces[0].records) == shapes.instructions


def test_lines_that_run_again_with_other_layouts_and_constants() -> None:
    text = copies([1.0, 2.0, 1.0], [0, 16, 16, 48])
    data, shapes = both(text, "copies", {"x": np.ones((8, 64), F)})
    assert_same_traces(data, shapes)
    places = [r.writes[0].b0 for r in shapes.traces[0].records if r.writes[0].operand == "dst"]
    assert {0, 64, 192} <= set(places)


@pytest.mark.parametrize(
    ("values", "starts", "code"),
    [
        ([1.0], [0, 16, 50], "S210"),
        ([1.0], [0, 16, 16.0], "S211"),
        ([1.0, 1.0, "one"], [0], "S302"),
    ],
)
def test_a_bad_call_after_good_ones_of_the_same_line_is_refused(
    values: list[Any], starts: list[Any], code: str
) -> None:
    text, given = copies(values, starts), {"x": np.ones((8, 64), F)}
    with pytest.raises(Fault) as full:
        simulate(text, "copies", given)
    with pytest.raises(Fault) as short:
        simulate(text, "copies", of_shapes(given), options=SimOptions(shape_only=True))
    assert (short.value.code, full.value.code) == (code, code)
    assert short.value.message == full.value.message


def test_a_handle_orders_records_that_took_the_short_way() -> None:
    text = """
import nki.isa as nisa
import nki.language as nl

def ordered():
    y = nl.ndarray((8, 16), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray((8, 16), dtype=nl.float32, buffer=nl.sbuf)
    before = None
    for _ in range(4):
        handle = nisa.memset(dst=t, value=1.0)
        if before != None:
            handle.depends_on(before)
        before = handle
    nisa.dma_copy(dst=y, src=t)
    return y
"""
    data, shapes = both(text, "ordered", {})
    assert_same_traces(data, shapes)
    assert [r.depends_on for r in shapes.traces[0].records] == [(), (0,), (1,), (2,), ()]
