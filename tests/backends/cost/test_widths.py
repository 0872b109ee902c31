"""Streaming cycles per element against the table of published rates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from backends.cost.widths import WIDTHS, streaming_cycles
from backends.cost.workload import Stream, workload
from backends.isa.instructions import INSTRUCTIONS
from backends.isa.machine import MACHINES

N = 512
Builder = Callable[..., Any]


def test_every_instruction_has_a_rule_on_every_engine_that_runs_it() -> None:
    timed_elsewhere = {"nc_matmul", "nc_matmul_mx", "core_barrier"}
    expected = {
        (use.engine, name)
        for name, instruction in INSTRUCTIONS.items()
        for use in instruction.engines
        if use.engine in ("vector", "scalar", "gpsimd") and name not in timed_elsewhere
    }
    assert expected == set(WIDTHS)


def stream(builder: Any) -> Stream:
    trace = builder.build()
    found = workload(trace.records[-1], {buffer.id: buffer for buffer in trace.buffers})
    assert isinstance(found, Stream)
    return found


@pytest.mark.parametrize(
    ("opcode", "inputs", "dtype", "memory", "trn1", "trn2", "trn3"),
    [
        ("tensor_tensor", 2, "float32", "sbuf", 2, 1, 1),
        ("tensor_tensor", 2, "float32", "psum", 1, 1, 1),
        ("tensor_tensor", 2, "bfloat16", "sbuf", 1, 0.5, 0.5),
        ("scalar_tensor_tensor", 2, "float32", "sbuf", 2, 1, 1),
        ("tensor_scalar", 1, "float32", "sbuf", 1, 0.5, 0.5),
        ("tensor_scalar", 1, "float32", "psum", 1, 1, 1),
        ("tensor_copy", 1, "bfloat16", "sbuf", 1, 0.25, 0.25),
        ("tensor_copy", 1, "bfloat16", "psum", 1, 0.5, 0.5),
        ("tensor_copy", 1, "float8_e4m3", "sbuf", 1, 0.5, 0.25),
        ("tensor_tensor_scan", 2, "float32", "sbuf", 2, 2, 2),
        ("tensor_reduce", 1, "float32", "sbuf", 1, 1, 1),
        ("tensor_reduce", 1, "bfloat16", "sbuf", 0.5, 0.5, 0.5),
        ("reciprocal", 1, "float32", "sbuf", 8, 8, 8),
    ],
)
def test_vector_rates(
    builder: Builder,
    opcode: str,
    inputs: int,
    dtype: str,
    memory: str,
    trn1: float,
    trn2: float,
    trn3: float,
) -> None:
    trace = builder()
    dst = trace.tile("sbuf", (128, N), dtype)
    first = trace.tile(memory, (128, N), dtype)
    second = trace.tile("sbuf", (128, N), dtype)
    reads = {"data1": first, "data2": second} if inputs == 2 else {"data": first}
    trace.vector(opcode, dst, reads, op="add")
    expected = {"trn1": trn1, "trn2": trn2, "trn3": trn3}
    found = {name: streaming_cycles(stream(trace), machine) for name, machine in MACHINES.items()}
    assert found == {name: per * N for name, per in expected.items()}


def test_a_column_operand_changes_neither_type_nor_rate(builder: Builder) -> None:
    trace = builder()
    data, dst = (trace.tile("sbuf", (128, N), "bfloat16") for _ in range(2))
    column = trace.tile("sbuf", (128, 1))
    trace.vector("tensor_scalar", dst, {"data": data, "operand0": column}, op0="multiply")
    assert streaming_cycles(stream(trace), MACHINES["trn2"]) == N / 4


@pytest.mark.parametrize(("op", "per"), [("multiply", 0.5), ("maximum", 1.0)])
def test_the_16_bit_mode_is_for_add_subtract_multiply(
    builder: Builder, op: str, per: float
) -> None:
    trace = builder()
    tiles = [trace.tile("sbuf", (128, N), "bfloat16") for _ in range(3)]
    trace.vector("tensor_tensor", tiles[0], {"data1": tiles[1], "data2": tiles[2]}, op=op)
    assert streaming_cycles(stream(trace), MACHINES["trn2"]) == per * N


def test_strides_slow_down(builder: Builder) -> None:
    trace = builder()
    dst = trace.tile("sbuf", (128, N), "bfloat16")
    wide = trace.tile("sbuf", (128, 64 * N), "bfloat16")
    trace.vector("tensor_copy", dst, {"src": wide.cut(0, 2 * N, stride=2)})
    assert streaming_cycles(stream(trace), MACHINES["trn2"]) == N / 2  # strided, still narrow
    trace.vector("tensor_copy", dst, {"src": wide.cut(0, 64 * N, stride=64)})
    assert streaming_cycles(stream(trace), MACHINES["trn2"]) == N  # beyond 16 bytes: half again


def test_an_address_from_a_register_costs_a_floor(builder: Builder) -> None:
    trace = builder()
    dst, src = (trace.tile("sbuf", (128, N)) for _ in range(2))
    trace.vector("tensor_copy", dst, {"src": src}, dynamic=True)
    assert streaming_cycles(stream(trace), MACHINES["trn2"]) == 600


@pytest.mark.parametrize(
    ("opcode", "attributes", "inputs", "per"),
    [
        ("iota", {}, 0, 1),
        ("memset", {"value": 0.0}, 0, 1),
        ("tensor_tensor", {"op": "add"}, 2, 2),
        ("tensor_tensor", {"op": "power"}, 2, 4),
        ("tensor_scalar", {"op0": "rsqrt"}, 1, 4),
    ],
)
def test_gpsimd_rates(
    builder: Builder, opcode: str, attributes: dict[str, Any], inputs: int, per: float
) -> None:
    trace = builder()
    dst = trace.tile("sbuf", (128, N))
    reads = {f"data{n}": trace.tile("sbuf", (128, N)) for n in range(inputs)}
    trace.add("gpsimd", opcode, {"dst": dst}, reads, attributes=attributes)
    assert streaming_cycles(stream(trace), MACHINES["trn2"]) == per * N
