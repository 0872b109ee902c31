"""Programs that break one rule of Python, launch, memory or views, beside one that obeys it.

Instruction rules are in `test_instruction_programs.py`, races in `../test_two_cores.py`, loading
in `../test_loader.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from backends.simulator.fault_table import FAULTS
from backends.simulator.faults import Fault
from backends.simulator.instruction_faults import INSTRUCTION_FAULTS
from backends.simulator.run import SimResult

Run = Callable[..., SimResult]
X = np.ones((4, 8), np.float32)

KERNEL = """
@nki.jit
def kernel(x, y=None):
    t = nl.load(x)
{body}
    return x
"""

# (code, what is wrong, the legal body, the illegal body)
PROGRAMS: tuple[tuple[str, str, str, str], ...] = (
    ("S102", "assertion", "assert x.shape[0] == 4, 'rows'", "assert x.shape[0] == 5, 'rows'"),
    ("S102", "python error", "i = [0][0]", "i = [0][1]"),
    ("S102", "tensor arithmetic", "u = nl.add(t, t)", "u = t + t"),
    ("S107", "unknown function", "nl.zeros((1, 1), nl.float32)", "nl.zeroes((1, 1), nl.float32)"),
    ("S107", "unknown instruction", "nisa.memset(t, 0.0)", "nisa.memclear(t)"),
    ("S108", "value in a loop bound", "i = range(t.shape[0])", "i = range(t[0, 0])"),
    ("S108", "value as a number", "i = int(t.size)", "i = int(t[0, 0])"),
    ("S109", "what no document defines", "u = nl.reciprocal(t)", "u = nl.divide(t, t)"),
    ("S110", "register arithmetic", "r = nisa.register_alloc(1)", "r = nisa.register_alloc(1) + 1"),
    (
        "S110",
        "register compared",
        "r = nisa.register_alloc(1) == None",
        "r = nisa.register_alloc(1) == 1",
    ),
    ("S110", "register as an index", "u = t[:, 1:2]", "u = t[:, nl.ds(nisa.register_alloc(1), 1)]"),
    (
        "S111",
        "loop bound never loaded",
        "nl.fori_loop(0, nisa.register_alloc(2), body)",
        "nl.fori_loop(0, nisa.register_alloc(), body)",
    ),
    (
        "S111",
        "loop that counts down",
        "nl.fori_loop(0, 3, body)",
        "nl.fori_loop(3, 0, body, step=-1)",
    ),
    ("S111", "fractional bound", "nl.fori_loop(0, 3, body)", "nl.fori_loop(0, 2.5, body)"),
    ("S111", "loop body with a result", "nl.fori_loop(0, 3, body)", "nl.fori_loop(0, 3, give)"),
    (
        "S111",
        "while body without a register",
        "nl.while_loop(nisa.register_alloc(0), body)",
        "nl.while_loop(nisa.register_alloc(1), body)",
    ),
    (
        "S111",
        "while without a register",
        "nl.while_loop(nisa.register_alloc(0), body)",
        "nl.while_loop(1, body)",
    ),
    (
        "S111",
        "device loop in no_reorder",
        "with nl.no_reorder(): nisa.memset(t, 0.0)",
        "with nl.no_reorder(): nl.fori_loop(0, 3, body)",
    ),
    (
        "S111",
        "tensor of a loop body used outside",
        "nl.fori_loop(0, 2, keep)",
        "nl.fori_loop(0, 2, keep); nisa.memset(KEPT[0], 0.0)",
    ),
    (
        "S112",
        "edge out of a loop",
        "after_loop(nisa.memset(t, 0.0))",
        "after_loop(None)",
    ),
    (
        "S112",
        "edge to no instruction",
        "m = nisa.memset(t, 0.0); nisa.memset(t, 1.0).depends_on(m)",
        "nisa.memset(t, 0.0).depends_on(t)",
    ),
    ("S201", "129 partitions", "sb((128, 2))", "sb((129, 2))"),
    ("S201", "129 partitions in psum", "ps((128, 2))", "ps((129, 2))"),
    ("S201", "rank 1 on chip", "sb((4, 1))", "sb((4,))"),
    ("S201", "six dimensions on chip", "sb((1, 1, 1, 1, 1))", "sb((1, 1, 1, 1, 1, 1))"),
    ("S201", "empty tensor", "sb((4, 1))", "sb((4, 0))"),
    ("S201", "shape that is no tuple", "sb((4, 1))", "sb(4)"),
    ("S202", "buffer by name", "sb((4, 1))", "nl.ndarray((4, 1), nl.float32, buffer='sbuf')"),
    ("S202", "64-bit dtype", "sb((4, 1))", "nl.ndarray((4, 1), 'int64', buffer=nl.sbuf)"),
    (
        "S203",
        "one byte too many in one tensor",
        "bytes_of(212984)",
        "bytes_of(212985)",
    ),
    ("S203", "one byte too many in two live tensors", "two(106492, 106492)", "two(106492, 106493)"),
    ("S204", "one element too many in psum", "ps((1, 4096))", "ps((1, 4097))"),
    ("S204", "nine live banks", "banks(8)", "banks(9)"),
    ("S205", "psum address inside a bank", "pin(nl.psum, (0, 2048))", "pin(nl.psum, (0, 1024))"),
    (
        "S205",
        "address beyond the partition",
        "pin(nl.sbuf, (0, 212968))",
        "pin(nl.sbuf, (0, 212969))",
    ),
    ("S205", "address beyond the partitions", "pin(nl.sbuf, (124, 0))", "pin(nl.sbuf, (125, 0))"),
    ("S205", "pinned in HBM", "pin(nl.sbuf, (0, 0))", "pin(nl.hbm, (0, 0))"),
    ("S206", "overlapping pins", "pins((0, 0), (0, 16))", "pins((0, 0), (0, 12))"),
    ("S206", "overlapping pins on partitions", "pins((0, 0), (64, 0))", "pins((0, 0), (32, 0))"),
    ("S210", "index at the size", "u = t[:, 7]", "u = t[:, 8]"),
    ("S210", "partition at the size", "u = t[3]", "u = t[4]"),
    ("S210", "slice beyond the size", "u = t[:, 4:8]", "u = t[:, 4:9]"),
    ("S210", "empty slice", "u = t[:, 4:5]", "u = t[:, 4:4]"),
    ("S210", "reversed slice", "u = t[:, 0:8:1]", "u = t[:, ::-1]"),
    ("S210", "hbm row at the size", "u = x[3]", "u = x[4]"),
    ("S211", "too many indices", "u = t[0, 0]", "u = t[0, 0, 0]"),
    ("S211", "float index", "u = t[:, 1]", "u = t[:, 1.0]"),
    ("S211", "tensor index", "u = t[:, 1]", "u = t[:, t]"),
    ("S212", "step over partitions", "u = t[0:4]", "u = t[0:4:2]"),
    ("S213", "permuted partitions", "u = x.permute((1, 0))", "u = t.permute((1, 0))"),
    ("S213", "reshaped partitions", "u = t.reshape((4, 2, 4))", "u = t.reshape((2, 16))"),
    ("S213", "broadcast partitions", "u = t[:, 0:1].broadcast(1, 4)", "u = t[0:1].broadcast(0, 4)"),
    ("S210", "slice method that is empty", "t.slice(1, 3, 4)", "t.slice(1, 3, 3)"),
    ("S210", "slice method from the end", "t.slice(1, 6, 8)", "t.slice(1, -2, 8)"),
    ("S214", "six dimensions", "t.reshape((4, 2, 2, 2, 1))", "t.reshape((4, 2, 2, 2, 1, 1))"),
    ("S214", "one dimension on chip", "t[:, 0:1]", "t[:, 0:1].squeeze_dim(1)"),
    ("S214", "broadcast to nothing", "t[:, 0:1].broadcast(1, 2)", "t[:, 0:1].broadcast(1, 0)"),
    ("S214", "broadcast by a fraction", "t[:, 0:1].broadcast(1, 2)", "t[:, 0:1].broadcast(1, 2.0)"),
    ("S214", "negative sizes", "t.reshape((4, 2, 4))", "t.reshape((4, -2, -4))"),
    ("S214", "fractional size", "t.reshape((4, 8))", "t.reshape((4, 8.0))"),
    ("S214", "reshape to another count", "u = t.reshape((4, 8, 1))", "u = t.reshape((4, 9))"),
    (
        "S215",
        "reshape of a gappy view",
        "u = t[:, 0:4].reshape((4, 2, 2))",
        "u = t.reshape((4, 2, 4))[:, :, 0:3].reshape((4, 6))",
    ),
    (
        "S216",
        "view that does not divide",
        "u = t.view(nl.uint8)",
        "u = t.view(nl.uint8)[:, 0:3].view(nl.int32)",
    ),
    (
        "S217",
        "partition step of a pattern",
        "u = t.ap([[8, 4], [1, 8]])",
        "u = t.ap([[4, 4], [1, 4]])",
    ),
    (
        "S217",
        "pattern beyond the partition",
        "u = t.ap([[8, 4], [1, 9]])",
        "u = t.ap([[8, 4], [1, 9]]); nisa.memset(u, 0.0)",
    ),
    (
        "S217",
        "pattern beyond the tensor",
        "u = x.ap([[8, 5], [1, 8]])",
        "u = x.ap([[8, 5], [1, 8]])[:, 0:4]",
    ),
    ("S217", "fractional pattern", "t.ap([[8, 4], [1, 8]])", "t.ap([[8, 4], [1, 8.0]])"),
    ("S217", "fractional offset", "t.ap([[8, 4], [1, 4]], 4)", "t.ap([[8, 4], [1, 4]], 4.0)"),
    (
        "S217",
        "pattern of six pairs",
        "t.ap([[8, 4], [4, 2], [2, 2], [1, 2], [1, 1]])",
        "t.ap([[8, 4], [4, 2], [2, 2], [1, 2], [1, 1], [1, 1]])",
    ),
    (
        "S217",
        "dtype wider than a partition",
        "t[:, 0:1].ap([[8, 4], [1, 1]])",
        "sb((4, 1), nl.uint8).ap([[1, 4], [1, 1]], dtype=nl.float32)",
    ),
    (
        "S218",
        "index of 16 bits",
        "x.select(0, i(1))",
        "x.select(0, nl.full((1, 1), 1, nl.int16))",
    ),
    (
        "S218",
        "no columns",
        "t.indirect(nl.full((4, 1), 0, nl.uint16), 4)",
        "t.indirect(nl.full((4, 1), 0, nl.uint16), 0)",
    ),
    (
        "S218",
        "row numbers in two columns",
        "x.vector_select(0, i(1))",
        "x.vector_select(0, i(2))",
    ),
    (
        "S218",
        "two run-time indices",
        "u = x.select(0, i(1))",
        "u = x.select(0, i(1)).select(0, i(1))",
    ),
    (
        "S218",
        "wide scalar offset",
        "u = x.ap([[8, 1], [1, 8]], scalar_offset=i(1))",
        "u = x.ap([[8, 1], [1, 8]], scalar_offset=i(2))",
    ),
    ("S218", "row table on chip", "u = x.vector_select(0, i(1))", "u = t.vector_select(0, i(1))"),
    (
        "S402",
        "run-time row at the size",
        "nl.copy(nl.load(x.vector_select(0, i(1, 3))))",
        "nl.copy(nl.load(x.vector_select(0, i(1, 4))))",
    ),
    ("S105", "result in SBUF", "return x", "return t"),
    (
        "S105",
        "result in private HBM",
        "return nl.ndarray((1,), nl.float32, buffer=nl.shared_hbm)",
        "return nl.ndarray((1,), nl.float32, buffer=nl.hbm)",
    ),
    ("S105", "result that is a number", "return x", "return 1"),
)

HELPERS = """
KEPT = []

def keep(register):
    KEPT.append(nl.zeros((1, 1), nl.float32))

def mark(register):
    KEPT.append(nisa.memset(nl.zeros((1, 1), nl.float32), 0.0))

def after_loop(first):
    nl.fori_loop(0, 2, mark)
    nisa.memset(nl.zeros((1, 1), nl.float32), 0.0).depends_on(first or KEPT[0])

def sb(shape, dtype=nl.float32):
    return nl.zeros(shape, dtype, nl.sbuf)

def bytes_of(n):
    tile = nl.ndarray((1, n), nl.uint8, buffer=nl.sbuf)
    nisa.memset(tile[:, 0:1], 0)
    return tile

def ps(shape):
    return nl.zeros(shape, nl.float32, nl.psum)

def two(a, b):
    first, second = bytes_of(a), bytes_of(b)
    nisa.tensor_copy(dst=first[:, 0:1], src=second[:, 0:1])

def banks(n):
    tiles = []
    for i in range(n):
        tiles.append(nl.zeros((1, 512), nl.float32, nl.psum))
    for tile in tiles:
        nisa.memset(dst=tile, value=1.0)

def pin(buffer, address):
    return nl.ndarray((4, 4), nl.float32, buffer=buffer, address=address)

def pins(a, b):
    first = nl.ndarray((64, 4), nl.float32, buffer=nl.sbuf, address=a)
    second = nl.ndarray((32, 4), nl.float32, buffer=nl.sbuf, address=b)
    nisa.memset(dst=first, value=0.0)
    nisa.memset(dst=second, value=0.0)
    nisa.memset(dst=first, value=0.0)

def i(n, value=1):
    return nl.full((1, n), value, nl.int32)

def body(register):
    nl.zeros((1, 1), nl.float32)

def give(register):
    return register
"""


def program(body: str) -> str:
    return HELPERS + KERNEL.format(body=f"    {body}")


@pytest.mark.parametrize(("code", "what", "legal", "illegal"), PROGRAMS, ids=lambda p: str(p)[:40])
def test_legal_runs_and_illegal_is_refused(
    run: Run, code: str, what: str, legal: str, illegal: str
) -> None:
    run(program(legal), X)
    with pytest.raises(Fault) as caught:
        run(program(illegal), X)
    assert caught.value.code == code, what
    assert caught.value.location.line > 0


@pytest.mark.parametrize(("code", "what", "legal", "illegal"), PROGRAMS, ids=lambda p: str(p)[:40])
def test_a_run_without_data_refuses_the_same(
    run: Run, code: str, what: str, legal: str, illegal: str
) -> None:
    run(program(legal), X, shape_only=True)
    if code == "S402":  # found in data only
        return
    with pytest.raises(Fault) as full:
        run(program(illegal), X)
    with pytest.raises(Fault) as short:
        run(program(illegal), X, shape_only=True)
    assert str(short.value) == str(full.value), what


@pytest.mark.parametrize(
    "value",
    [
        [X],
        {1: X},
        {1, 2},
        1j,
        np.ones(2, np.int64),
        np.ones(2),
        np.array(1.0, np.float32),
        object(),
    ],
)
def test_arguments_that_kernels_cannot_take(run: Run, value: Any) -> None:
    with pytest.raises(Fault, match="S104"):
        run(program("pass"), X, value)


def test_wrong_number_of_arguments(run: Run) -> None:
    with pytest.raises(Fault, match="S104"):
        run(program("pass"))
    with pytest.raises(Fault, match="S104"):
        run(program("pass"), X, X, X)


@pytest.mark.parametrize("grid", ["3", "0", "1, 2", "True"])
def test_grids_that_do_not_exist(run: Run, grid: str) -> None:
    text = program("pass") + f"kernel = kernel[{grid}]\n"
    with pytest.raises(Fault, match="S106"):
        run(text, X)


def test_two_programs_need_two_cores(run: Run) -> None:
    with pytest.raises(Fault, match="S106"):
        run(program("pass"), X, target="trn1", lnc=2)


def test_schedule_names_exist_once(run: Run) -> None:
    body = "nisa.memset(t, 0.0, name='a'); nisa.memset(t, 0.0, name='b')"
    good = program(body) + "kernel = kernel.with_schedule([('b', 'a')])\n"
    run(good, X)
    with pytest.raises(Fault, match="S112"):
        run(good.replace("[('b', 'a')]", "[('b', 'c')]"), X)
    with pytest.raises(Fault, match="S112"):
        run(good.replace("name='b'", "name='a'"), X)


def test_unwritten_reads_are_faults_by_option(run: Run) -> None:
    body = "u = nl.copy(nl.ndarray((4, 8), nl.float32, buffer=nl.sbuf))"
    run(program(body), X)
    with pytest.raises(Fault, match="S401"):
        run(program(body), X, uninitialized="fault")


def test_capacity_and_races_can_be_warnings(run: Run) -> None:
    result = run(program("banks(9)"), X, capacity="warn")
    assert [warning.code for warning in result.warnings] == ["S204"]


def test_every_fault_of_the_core_is_provoked_somewhere() -> None:
    here = {code for code, *_ in PROGRAMS}
    elsewhere = {"S101", "S103", "S104", "S106", "S401"}  # above, and in test_loader.py
    two_cores = {"S501", "S502", "S503"}
    lint = {"S601", "S602", "S603"}
    assert set(FAULTS) - set(INSTRUCTION_FAULTS) == here | elsewhere | two_cores | lint
