"""Registers, and the exchange and the barrier of a launch on two cores."""

from __future__ import annotations

from typing import Any

import pytest

from backends.simulator.faults import Fault
from backends.simulator.registers import VirtualRegister


def test_allocation_with_and_without_a_value(bench: Any) -> None:
    empty, full = bench.run("register_alloc"), bench.run("register_alloc", 7)
    assert isinstance(empty, VirtualRegister)
    assert (empty.value, full.value) == (None, 7)


def test_move_from_a_number_and_from_a_register(bench: Any) -> None:
    a, b = bench.run("register_alloc"), bench.run("register_alloc", 3)
    bench.run("register_move", a, b)
    assert a.value == 3
    bench.run("register_move", a, 11)
    assert (a.value, b.value) == (11, 3)


@pytest.mark.parametrize("memory", ["sbuf", "hbm"])
def test_load_and_store(bench: Any, memory: str) -> None:
    register = bench.run("register_alloc")
    bench.run("register_load", register, bench.tile([[42]], "int32", memory))
    assert register.value == 42
    dst = bench.empty((1, 1), "int32", memory)
    bench.run("register_store", dst, register)
    assert bench.read(dst).tolist() == [[42]]


def test_shape_only_registers_hold_what_is_known(make_bench: Any) -> None:
    bench = make_bench(shape_only=True)
    register = bench.run("register_alloc", 5)
    assert register.value == 5
    bench.run("register_load", register, bench.empty((1, 1), "int32"))
    assert register.value is None


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("sendrecv", {"send_to_rank": 1, "recv_from_rank": 1, "pipe_id": 0}),
        ("core_barrier", {"cores": (0, 1)}),
    ],
)
def test_one_core_cannot_meet_another(bench: Any, name: str, arguments: dict[str, Any]) -> None:
    tiles: dict[str, Any] = {"data": bench.empty((1, 1), memory="shared_hbm")}
    if name == "sendrecv":
        tiles = {"src": bench.tile([[1.0]]), "dst": bench.empty((1, 1))}
    with pytest.raises(Fault) as fault:
        bench.run(name, **tiles, **arguments)
    assert fault.value.code == "S325"
