"""Launching: arguments, results, grids, nested kernels, capacity, trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from backends.isa.dtypes import DTYPES
from backends.simulator.arguments import TensorSpec
from backends.simulator.faults import Fault
from backends.simulator.run import SimResult

Run = Callable[..., SimResult]
F = np.float32

DOUBLE = """
@nki.jit
def kernel(x):
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm, name="y")
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0, name="twice")
    nisa.dma_copy(dst=y, src=t)
    return y
"""


@pytest.mark.parametrize("dtype", [F, np.float16, ml_dtypes.bfloat16])
def test_result_is_a_new_array_of_the_callers_dtype(run: Run, dtype: type) -> None:
    x: NDArray[Any] = np.arange(6).reshape(2, 3).astype(dtype)
    result = run(DOUBLE, x)
    assert result.outputs[0].dtype == dtype
    assert (result.outputs[0] == 2 * x).all()
    assert (x == np.arange(6).reshape(2, 3)).all()
    assert result.single
    assert not result.mutated


def test_torch_tensors_are_taken(run: Run) -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(6, dtype=torch.bfloat16).reshape(2, 3)
    assert (run(DOUBLE, x).outputs[0].astype(F) == 2 * x.float().numpy()).all()


def test_arguments_by_name_tuples_defaults_and_constants(run: Run) -> None:
    text = """
@nki.jit
def kernel(pair, scale: float, dtype=None, label="s", flag: bool = True, extra=None):
    a, b = pair
    assert label == "s" and flag and extra == None, "constants"
    out = nl.ndarray(a.shape, dtype=dtype or a.dtype, buffer=nl.shared_hbm)
    t = nl.load(a)
    u = nl.load(b)
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=scale)
    nisa.tensor_tensor(dst=t, data1=t, data2=u, op=nl.add)
    nl.store(out, t)
    return out
"""
    from backends.simulator.run import simulate

    a, b = np.ones((2, 2), F), np.full((2, 2), 3, F)
    result = simulate(
        "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n" + text,
        "kernel",
        {"pair": (a, b), "scale": 0.5, "dtype": DTYPES["bfloat16"]},
    )
    assert result.outputs[0].dtype == ml_dtypes.bfloat16
    assert (result.outputs[0] == 3.5).all()


def test_written_arguments_come_back_by_name(run: Run) -> None:
    text = """
@nki.jit
def kernel(x, state):
    t = nl.load(x)
    nisa.dma_copy(dst=state[1], src=t)
    return x.reshape((4, 1)), state
"""
    state = np.zeros((3, 2, 2), F)
    result = run(text, np.ones((2, 2), F), state)
    assert set(result.mutated) == {"state"}
    assert result.mutated["state"].tolist() == [[[0, 0]] * 2, [[1, 1]] * 2, [[0, 0]] * 2]
    assert (result.outputs[1] == result.mutated["state"]).all()
    assert result.outputs[0].shape == (4, 1)
    assert (state == 0).all()
    roles = {b.name: b.role for b in result.traces[0].buffers if b.memory == "hbm"}
    assert roles == {"x": "input", "state": "inout"}


def test_nki_objects_carry_tensors(run: Run) -> None:
    text = """
class Config(nl.NKIObject):
    x: nl.NkiTensor
    scale: float = 2.0
    unset: int

@nki.jit
def inner(config):
    t = nl.load(config.x)
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=config.scale)
    return t

@nki.jit
def kernel(x):
    config = Config(x, scale=3.0)
    assert config.unset == None, "no default"
    assert config == Config(x=x, scale=3.0), "structural equality"
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, inner(config))
    return out
"""
    assert (run(text, np.ones((2, 2), F)).outputs[0] == 3).all()


def test_kernel_called_directly_in_the_file_returns_arrays(run: Run) -> None:
    text = DOUBLE + "\nimport numpy\nDIRECT = kernel(numpy.ones((1, 2), numpy.float32))\n"
    text += "SIMULATED = nki.simulate(kernel[1])(numpy.ones((1, 2), numpy.float32))\n"
    text += "assert (DIRECT == 2).all() and (SIMULATED == 2).all()\n"
    assert (run(text, np.ones((1, 2), F)).outputs[0] == 2).all()


SPLIT = """
@nki.jit
def kernel(x):
    n, i = nl.num_programs(axes=0), nl.program_id(axis=0)
    rows = x.shape[0] // n
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((rows, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x[nl.ds(i * rows, rows)])
    nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=float(i) + 1.0)
    nisa.dma_copy(dst=y[nl.ds(i * rows, rows)], src=t)
    return y
"""


def test_two_programs_share_outputs(run: Run) -> None:
    x = np.zeros((4, 3), F)
    one, two = run(SPLIT, x), run(SPLIT, x, lnc=2)
    assert (one.outputs[0] == 1).all()
    assert two.outputs[0][:, 0].tolist() == [1, 1, 2, 2]
    assert [trace.program for trace in two.traces] == [0, 1]
    assert not two.warnings


def test_program_ndim_tells_a_grid(run: Run) -> None:
    text = """
@nki.jit
def kernel(x):
    assert nl.program_ndim() == 0, "no grid"
    assert nl.num_programs(0) == 1 and nl.program_id(0) == 0, "defaults"
    return x
"""
    run(text, np.ones((1, 1), F))


def test_shape_only_needs_no_data_and_checks_the_rules(run: Run) -> None:
    spec = TensorSpec((128, 4), DTYPES["bfloat16"])
    result = run(DOUBLE, spec, shape_only=True)
    assert result.returned == (spec,)
    assert result.outputs == ()
    full = run(DOUBLE, np.ones((128, 4), ml_dtypes.bfloat16))
    assert result.traces[0].records == full.traces[0].records
    with pytest.raises(Fault, match="S201"):
        run(DOUBLE, TensorSpec((129, 4), DTYPES["bfloat16"]), shape_only=True)


def test_trace_says_what_ran_where(run: Run) -> None:
    trace = run(DOUBLE, np.ones((4, 8), F)).traces[0]
    assert [record.opcode for record in trace.records] == ["dma_copy", "tensor_scalar", "dma_copy"]
    record = trace.records[1]
    assert (record.function, record.name) == ("kernel", "twice")
    assert record.line == 10
    access = record.writes[0]
    assert (access.p0, access.p1, access.b0, access.b1) == (0, 4, 0, 32)
    assert (access.elements, access.run_bytes, access.descriptors) == (8, 32, 4)
    buffer = trace.buffers[access.buffer]
    assert (buffer.memory, buffer.partitions, buffer.bytes_per_partition) == ("sbuf", 4, 32)
    assert {b.name: b.role for b in trace.buffers if b.role != "scratch"} == {
        "x": "input",
        "y": "output",
    }
    assert trace.sbuf_bytes_per_partition == 32


def test_high_water_mark_counts_what_is_alive(run: Run) -> None:
    text = """
@nki.jit
def kernel(x):
    a = nl.load(x)
    for i in range(5):
        b = nl.copy(a)
        a = nl.copy(b)
    p = nl.ndarray((4, 512), dtype=nl.float32, buffer=nl.psum)
    q = nl.ndarray((4, 513), dtype=nl.float32, buffer=nl.psum)
    nisa.tensor_copy(dst=p[:, 0:8], src=a)
    nisa.tensor_copy(dst=q[:, 0:8], src=a)
    nisa.tensor_copy(dst=a, src=p[:, 0:8])
    nl.store(x, a)
    return x
"""
    trace = run(text, np.ones((4, 8), F)).traces[0]
    assert trace.sbuf_bytes_per_partition == 2 * 32
    assert trace.psum_banks == 3


def test_names_and_handles_order_instructions(run: Run) -> None:
    text = """
@nki.jit
def kernel(x):
    t = nl.ndarray((1, 4), dtype=nl.float32, buffer=nl.sbuf)
    u = nl.ndarray((1, 4), dtype=nl.float32, buffer=nl.sbuf)
    first = nisa.memset(dst=t, value=0.0, name="first")
    second = nisa.memset(dst=u, value=0.0, name="second")
    assert second.depends_on(first) == second, "returns itself"
    with nl.no_reorder():
        nisa.memset(dst=t, value=1.0)
        nisa.memset(dst=u, value=1.0)
        nisa.memset(dst=t, value=2.0)
    nisa.memset(dst=u, value=2.0, name="last")
    return x

kernel = kernel.with_schedule([("last", ["first", "second"])])
"""
    records = run(text, np.ones((1, 1), F)).traces[0].records
    assert [record.depends_on for record in records] == [(), (0,), (), (2,), (3,), (0, 1)]


def test_device_loops_run_their_body(run: Run) -> None:
    text = """
@nki.jit
def kernel(x, n):
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    count = nl.load(n)
    trips = nisa.register_alloc()
    nisa.register_load(trips, count)

    def copy_row(i):
        row = nl.ndarray((1, 4), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=row, src=x.ap([[4, 1], [1, 4]], scalar_offset=i, indirect_dim=0))
        nisa.dma_copy(dst=y.ap([[4, 1], [1, 4]], scalar_offset=i, indirect_dim=0), src=row)

    nl.fori_loop(0, trips, copy_row)

    def countdown(register):
        nisa.tensor_scalar(dst=count, data=count, op0=nl.add, operand0=-1)
        nisa.register_load(register, count)
        return register

    nl.while_loop(trips, countdown)
    done = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.shared_hbm)
    nl.store(done, count)
    return y, done
"""
    x = np.arange(20, dtype=F).reshape(5, 4)
    y, done = run(text, x, np.array([[3]], np.int32)).outputs
    assert (y[:3] == x[:3]).all()
    assert np.isnan(y[3:]).all()
    assert done[0, 0] == 0


def test_faults_name_the_line_the_rule_and_the_origin(run: Run) -> None:
    text = """
@nki.jit
def kernel(x):
    # gdn_tkg.gdn:12: state = ...
    t = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=t[:, 0:5], value=0.0)
    return x
"""
    with pytest.raises(Fault) as caught:
        run(text, np.ones((1, 1), F))
    fault = caught.value
    assert (fault.code, fault.location.line, fault.origin) == ("S210", 9, "gdn_tkg.gdn:12")
    diagnostic = fault.diagnostics[0]
    assert diagnostic.span is not None
    assert diagnostic.span.text == "nisa.memset(dst=t[:, 0:5], value=0.0)"
    assert any("gdn_tkg.gdn:12" in note for note in diagnostic.notes)
    assert "rule: " in str(fault)


def test_bool_results_come_back_as_bool(run: Run) -> None:
    text = """
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=nl.bool_, buffer=nl.shared_hbm)
    t = nl.load(x)
    nl.store(out, nl.greater(t, 0.5, dtype=nl.bool_))
    return out
"""
    result = run(text, np.array([[0, 1]], F)).outputs[0]
    assert result.dtype == np.bool_
    assert result.tolist() == [[False, True]]
