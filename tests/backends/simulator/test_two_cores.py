"""Two programs: races, barriers, exchanges, deadlocks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from backends.simulator.faults import Fault
from backends.simulator.run import SimResult

Run = Callable[..., SimResult]
X = np.ones((4, 8), np.float32)

KERNEL = """
@nki.jit
def kernel(x):
    me = nl.program_id(0)
    other = 1 - me
    y = nl.ndarray((2, 4, 8), dtype=nl.float32, buffer=nl.shared_hbm, name="y")
    t = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=t, value=float(me + 1))
{body}
    return y
"""


def program(*lines: str) -> str:
    return KERNEL.format(body="\n".join("    " + line for line in lines))


BARRIER = "nisa.core_barrier(data=y, cores=(0, 1))"
READ = "nisa.dma_copy(dst=t, src=y[other])"


def test_disjoint_writes_are_no_race(run: Run) -> None:
    y = run(program("nisa.dma_copy(dst=y[me], src=t)"), X, lnc=2).outputs[0]
    assert y[:, 0, 0].tolist() == [1, 2]


def test_interleaved_writes_are_no_race(run: Run) -> None:
    text = program("nisa.dma_copy(dst=y[0, :, me::2], src=t[:, 0:4])")
    assert run(text, X, lnc=2).outputs[0][0, 0].tolist() == [1, 2] * 4


@pytest.mark.parametrize(
    "lines",
    [
        ("nisa.dma_copy(dst=y[0], src=t)",),
        ("nisa.dma_copy(dst=y[0, me : me + 2], src=t[0:2])",),
        ("nisa.dma_copy(dst=y[me], src=t)", READ),
        ("nisa.dma_copy(dst=y[me], src=t)", READ, BARRIER),
        (BARRIER, "nisa.dma_copy(dst=y[me], src=t)", READ),
        ("nisa.dma_copy(dst=x, src=t)",),
    ],
)
def test_unordered_conflicts_are_races(run: Run, lines: tuple[str, ...]) -> None:
    with pytest.raises(Fault) as caught:
        run(program(*lines), X, lnc=2)
    assert caught.value.code == "S501"
    assert caught.value.location.line > 10
    assert run(program(*lines), X, lnc=2, races="warn").warnings[0].code == "S501"


def test_barrier_on_the_tensor_orders(run: Run) -> None:
    lines = (
        "nisa.dma_copy(dst=y[me], src=t)",
        BARRIER,
        READ,
        BARRIER,
        "nisa.dma_copy(dst=y[me], src=t)",
    )
    result = run(program(*lines), X, lnc=2)
    assert result.outputs[0][:, 0, 0].tolist() == [2, 1]
    barriers = [[r.barrier for r in t.records if r.barrier is not None] for t in result.traces]
    assert barriers[0] == barriers[1]
    assert len(set(barriers[0])) == 2


def test_barrier_on_another_tensor_orders_only_by_option(run: Run) -> None:
    lines = (
        "z = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.shared_hbm)",
        "nisa.dma_copy(dst=y[me], src=t)",
        "nisa.core_barrier(data=z, cores=(0, 1))",
        READ,
    )
    with pytest.raises(Fault, match="S501"):
        run(program(*lines), X, lnc=2)
    run(program(*lines), X, lnc=2, barrier_scope="all")


def test_equal_writes_of_an_unsplit_kernel_are_a_warning(run: Run) -> None:
    lines = ("nisa.memset(dst=t, value=7.0)", "nisa.dma_copy(dst=y[0], src=t)")
    result = run(program(*lines), X, lnc=2)
    assert [warning.code for warning in result.warnings] == ["S501"]
    assert (result.outputs[0][0] == 7).all()


def test_unsplit_update_in_place_is_a_race(run: Run) -> None:
    lines = (
        "nisa.dma_copy(dst=t, src=x)",
        "nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)",
        "nisa.dma_copy(dst=x, src=t)",
    )
    with pytest.raises(Fault, match="S501"):
        run(program(*lines), X, lnc=2)


def test_races_are_found_without_data(run: Run) -> None:
    with pytest.raises(Fault, match="S501"):
        run(program("nisa.dma_copy(dst=y[me], src=t)", READ), X, lnc=2, shape_only=True)


def test_run_time_rows_race_by_their_values(run: Run) -> None:
    lines = (
        "row = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)",
        "nisa.memset(dst=row, value={row})",
        "nisa.dma_copy(dst=y.select(0, row), src=t)",
    )
    assert run(program(*lines).replace("{row}", "me"), X, lnc=2).outputs[0][1, 0, 0] == 2
    with pytest.raises(Fault, match="S501"):
        run(program(*lines).replace("{row}", "0"), X, lnc=2)


SENDRECV = (
    "u = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.sbuf)",
    "nisa.sendrecv(src=t, dst=u, send_to_rank=other, recv_from_rank=other, pipe_id=0)",
    "nisa.dma_copy(dst=y[me], src=u)",
)


def test_sendrecv_swaps_tiles(run: Run) -> None:
    result = run(program(*SENDRECV), X, lnc=2)
    assert result.outputs[0][:, 0, 0].tolist() == [2, 1]


@pytest.mark.parametrize(
    "lines",
    [
        (f"if me == 0: {BARRIER}",),
        (f"if me == 1: {BARRIER}",),
        (f"{BARRIER} if me == 0 else nisa.sendrecv(src=t, dst=t, send_to_rank=other, "
         "recv_from_rank=other, pipe_id=0)",),
    ],
)  # fmt: skip
def test_waiting_for_a_peer_that_never_comes_is_a_deadlock(
    run: Run, lines: tuple[str, ...]
) -> None:
    with pytest.raises(Fault, match="S502"):
        run(program(*lines), X, lnc=2)


def test_barrier_in_one_program_waits_for_ever(run: Run) -> None:
    with pytest.raises(Fault, match="S325"):
        run(program(BARRIER), X)


@pytest.mark.parametrize(
    "lines",
    [
        ("z = nl.ndarray((1, me + 1), dtype=nl.float32, buffer=nl.shared_hbm)",),
        ("y = y if me == 0 else x",),
        ("y = y[me]",),
    ],
)
def test_programs_must_allocate_and_return_the_same(run: Run, lines: tuple[str, ...]) -> None:
    with pytest.raises(Fault, match="S503"):
        run(program(*lines), X, lnc=2)


def test_fault_of_one_program_ends_the_other(run: Run) -> None:
    lines = ("if me == 1: nisa.memset(dst=t[:, 8:9], value=0.0)", BARRIER)
    with pytest.raises(Fault, match="S210"):
        run(program(*lines), X, lnc=2)
