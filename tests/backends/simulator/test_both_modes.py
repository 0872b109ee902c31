"""A run without data must leave the trace of one with data, and refuse what that one refuses.

Runs without data take a short way for calls they know, so lines run again with other arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.isa.dtypes import find_dtype
from backends.simulator.arguments import TensorSpec
from backends.simulator.faults import Fault
from backends.simulator.options import SimOptions
from backends.simulator.run import SimResult, simulate
from gdsl import api
from gdsl.launch import launch, trace
from gdsl.pipeline import Compilation

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


def assert_same_traces(data: Any, shapes: Any) -> None:
    """Compare what two runs left behind, in parts so that a difference is small to read."""
    for full, short in zip(data.traces, shapes.traces, strict=True):
        for mine, theirs in zip(short.records, full.records, strict=True):
            assert mine == theirs
        assert short == full


@pytest.mark.parametrize(
    ("name", "shape", "lnc"),
    [
        ("gdn_cte", {"B": 1, "Hk": 1, "G": 1, "T": 128, "K": 128, "V": 128}, 1),
        ("gdn_cte", {"B": 1, "Hk": 2, "G": 1, "T": 300, "K": 128, "V": 128}, 1),
        ("gdn_cte", {"B": 1, "Hk": 2, "G": 1, "T": 128, "K": 64, "V": 64}, 2),
        ("gdn_tkg", None, 1),
        ("gdn_tkg", None, 2),
        ("gdn_tkg_pool", None, 1),
        ("gdn_conv1d_decode", None, 1),
    ],
)
def test_an_emitted_kernel_leaves_the_same_trace(
    name: str, shape: dict[str, int] | None, lnc: int
) -> None:
    definition = api.load(name)
    arguments = api.random_inputs(definition, shape)
    program = Compilation(definition).program
    _, data = launch(program, definition.kernel, arguments, lnc=lnc)
    shapes = trace(program, definition.kernel, arguments, lnc=lnc)
    assert_same_traces(data, shapes)
    assert len(shapes.traces[0].records) > 0


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


WRITES = """
import nki.isa as nisa
import nki.language as nl

def write(x, y, z):
    t = nl.ndarray((8, 16), dtype=nl.float32, buffer=nl.sbuf)
    for _ in range(3):
        nisa.dma_copy(dst=t, src=x)
        nisa.dma_copy(dst=y, src=t)
    return y
"""


def test_arguments_that_are_written_are_marked() -> None:
    values = {name: np.ones((8, 16), F) for name in "xyz"}
    data, shapes = both(WRITES, "write", values)
    assert_same_traces(data, shapes)
    roles = {buffer.name: buffer.role for buffer in shapes.traces[0].buffers if buffer.name}
    assert roles == {"x": "input", "y": "inout", "z": "input"}
    assert list(data.mutated) == ["y"]


SUMS = """
import nki.isa as nisa
import nki.language as nl

def sums(x, first, second, told):
    t = nl.ndarray((32, 32), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    for _ in range(2):
        p = nl.ndarray((32, 96), dtype=nl.float32, buffer=nl.psum)
        for a in first:
            nisa.nc_matmul(dst=p[:, a : a + 32], stationary=t, moving=t, accumulate=False)
        for a in second:
            nisa.nc_matmul(dst=p[:, a : a + 32], stationary=t, moving=t, accumulate=told)
    return x
"""
COLUMNS = st.lists(st.sampled_from([0, 16, 32, 48, 64]), max_size=3)


@settings(max_examples=40, deadline=None)
@given(first=COLUMNS, second=COLUMNS, told=st.sampled_from([None, True, False]))
def test_matmuls_add_to_what_matmuls_wrote(
    first: list[int], second: list[int], told: bool | None
) -> None:
    same_in_both_modes(
        SUMS,
        "sums",
        {"x": np.ones((32, 32), F), "first": tuple(first), "second": tuple(second), "told": told},
    )


def same_in_both_modes(text: str, entry: str, values: dict[str, Any]) -> str | None:
    """Require one trace or one fault; return the fault's code."""
    results: list[SimResult | Fault] = []
    for given_values, without in ((values, False), (of_shapes(values), True)):
        try:
            options = SimOptions(shape_only=without)
            results.append(simulate(text, entry, given_values, options=options))
        except Fault as fault:
            results.append(fault)
    data, shapes = results
    if isinstance(data, Fault) or isinstance(shapes, Fault):
        assert isinstance(data, Fault), shapes
        assert isinstance(shapes, Fault), data
        assert str(shapes) == str(data)
        return data.code
    assert_same_traces(data, shapes)
    return None


STEPS = """
import nki.isa as nisa
import nki.language as nl

def steps(x, rounds):
    big = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.sbuf)
    sums = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.psum)
    nisa.dma_copy(dst=big, src=x)
    nisa.nc_matmul(dst=sums, stationary=big, moving=big)
    for kind, p, q, a, b, number in rounds:
        tile = nl.ndarray((q, b), dtype=nl.bfloat16 if p else nl.float32, buffer=nl.sbuf)
        view = big[p : p + q, a : a + b]
        if kind == 0:
            nisa.tensor_copy(dst=tile, src=view)
        elif kind == 1:
            nisa.tensor_tensor(dst=tile, data1=view, data2=view, op=nl.multiply)
        elif kind == 2:
            nisa.tensor_scalar(dst=tile, data=view, op0=nl.add, operand0=number)
        elif kind == 3:
            nisa.tensor_scalar(tile, view, nl.multiply, big[0:q, 0:1])
        elif kind == 4:
            nisa.memset(dst=tile, value=number)
        elif kind == 5:
            pattern = [[64, q], [0, 2], [1, b]]
            wide = nl.ndarray((q, 2 * b), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_copy(dst=wide, src=big.ap(pattern=pattern, offset=a), name=None)
        elif kind == 6:
            nisa.nc_matmul(dst=sums[0:b, 0:b], stationary=view, moving=view)
        elif kind == 7:
            nisa.activation(dst=tile, op=nl.exp, data=sums[0:q, a : a + b], scale=number)
        elif kind == 8:
            bits = tile.view(nl.int32)
            nisa.iota(dst=bits, pattern=[[1, b]], offset=number, channel_multiplier=a)
        else:
            nisa.dma_copy(dst=x[p : p + q, a : a + b], src=view)
    return x
"""
SIZES = st.sampled_from([0, 1, 2, 16, 32, 33, 64])
ROUND = st.tuples(
    st.integers(0, 9),
    st.sampled_from([0, 0, 0, 16, 32, 40]),
    SIZES,
    st.sampled_from([0, 0, 8, 32, 62]),
    SIZES,
    st.sampled_from([0, 1, 1.0, 2, 2.0, True, "one", None]),
)


@settings(max_examples=150, deadline=None)
@given(rounds=st.lists(ROUND, min_size=1, max_size=12))
def test_any_program_leaves_one_trace_or_one_fault(rounds: list[tuple[Any, ...]]) -> None:
    values = {"x": np.ones((64, 64), F), "rounds": tuple(rounds)}
    same_in_both_modes(STEPS, "steps", values)


CHANGES = """
import nki.isa as nisa
import nki.language as nl

def changes(x):
    for kind in KINDS:
        t = nl.ndarray((16, 16), dtype=DTYPES[kind], buffer=BUFFERS[kind])
        nisa.memset(dst=t, value=VALUES[kind])
    return x
"""


@pytest.mark.parametrize(
    ("dtypes", "buffers", "values", "code"),
    [
        (("nl.float32", "nl.float32"), ("nl.sbuf", "nl.sbuf"), ("1", "1.0"), None),
        (("nl.int32", "nl.int32"), ("nl.sbuf", "nl.sbuf"), ("1", "1.0"), "S326"),
        (("nl.float32", "nl.int32"), ("nl.sbuf", "nl.sbuf"), ("1.0", "1.0"), "S326"),
        (("nl.float32", "nl.float32"), ("nl.sbuf", "nl.psum"), ("1", "1"), None),
        (("nl.float32", "nl.float32"), ("nl.sbuf", "nl.hbm"), ("1", "1"), "S304"),
        (("nl.uint8", "nl.int8"), ("nl.sbuf", "nl.sbuf"), ("200", "200"), "S326"),
    ],
)
def test_nothing_is_known_by_less_than_all_that_rules_look_at(
    dtypes: tuple[str, ...], buffers: tuple[str, ...], values: tuple[str, ...], code: str | None
) -> None:
    lists = {"DTYPES": dtypes, "BUFFERS": buffers, "VALUES": values}
    constants = "".join(f"{name} = ({', '.join(items)},)\n" for name, items in lists.items())
    text = CHANGES.replace("\ndef", f"{constants}KINDS = (0, 0, 1, 0, 1)\n\ndef")
    assert same_in_both_modes(text, "changes", {"x": np.ones((1, 1), F)}) == code
