"""Programs that break one rule of an instruction each, beside the same program that obeys it.

They are in `programs/*.toml`. A `body` goes into the kernel below; its holes (`{}`, `{0}`) are
filled with `legal` or with `illegal`. The illegal program must be refused on `target` with `code`,
and the legal one must run on `legal_target`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from textwrap import indent
from typing import Any

import numpy as np
import pytest
from attrs import field, frozen

from backends.simulator.faults import Fault
from backends.simulator.instruction_faults import INSTRUCTION_FAULTS
from backends.simulator.options import SimOptions
from backends.simulator.run import simulate

KERNEL = """\
import nki
import nki.isa as nisa
import nki.language as nl


def sb(p, f, dtype=nl.float32):
    tile = nl.ndarray((p, f), dtype=dtype, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=1)
    return tile


def ps(p, f, dtype=nl.float32):
    return nl.ndarray((p, f), dtype=dtype, buffer=nl.psum)


def hbm(p, f, dtype=nl.float32):
    return nl.ndarray((p, f), dtype=dtype, buffer=nl.private_hbm)


@nki.jit
def kernel(x):
{body}
    return x
"""
BODY_STARTS = KERNEL.split("{body}")[0].count("\n") + 1


@frozen(kw_only=True)
class Program:
    """One entry of a `.toml` file."""

    name: str
    code: str
    body: str
    legal: str = ""
    illegal: str = ""
    target: str = "trn2"
    legal_target: str | None = None
    options: Mapping[str, Any] = field(factory=dict)

    def run(self, filling: str, target: str, *, shape_only: bool = False) -> None:
        """Simulate the kernel with the hole filled."""
        body = indent(self.body.format(filling), "    ")
        simulate(
            KERNEL.format(body=body),
            "kernel",
            (np.zeros((4, 4), dtype=np.float32),),
            target=target,
            options=SimOptions(shape_only=shape_only, **self.options),
        )


PROGRAMS = tuple(
    Program(**entry)
    for file in sorted((Path(__file__).parent / "programs").glob("*.toml"))
    for entry in tomllib.loads(file.read_text())["program"]
)


def _id(program: Program) -> str:
    return program.name.replace(" ", "_")


def test_names_are_unique_and_there_are_enough_of_them() -> None:
    names = [program.name for program in PROGRAMS]
    assert len(set(names)) == len(names) >= 60


def test_every_fault_of_instructions_has_a_program() -> None:
    assert set(INSTRUCTION_FAULTS) <= {program.code for program in PROGRAMS}


@pytest.mark.parametrize("program", PROGRAMS, ids=_id)
def test_the_legal_program_runs(program: Program) -> None:
    program.run(program.legal, program.legal_target or program.target)


@pytest.mark.parametrize("program", PROGRAMS, ids=_id)
def test_the_illegal_program_is_refused(program: Program) -> None:
    """Also after the legal one, whose checked calls are known by then."""
    program.run(program.legal, program.legal_target or program.target)
    with pytest.raises(Fault) as fault:
        program.run(program.illegal, program.target)
    assert fault.value.code == program.code, str(fault.value)
    assert fault.value.location.function == "kernel"
    assert fault.value.location.line >= BODY_STARTS


NEED_DATA = frozenset({"S432", "S433", "S434"})
"""Faults that only a run with data can find."""


@pytest.mark.parametrize("program", PROGRAMS, ids=_id)
def test_a_run_without_data_refuses_the_same(program: Program) -> None:
    program.run(program.legal, program.legal_target or program.target, shape_only=True)
    if program.code in NEED_DATA or "accumulate_preset" in program.options:
        return
    with pytest.raises(Fault) as full:
        program.run(program.illegal, program.target)
    with pytest.raises(Fault) as short:
        program.run(program.illegal, program.target, shape_only=True)
    assert str(short.value) == str(full.value)
