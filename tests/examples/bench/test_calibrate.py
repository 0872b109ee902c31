"""The calibration table: complete, and good where the source is a single instruction."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.isa.machine import MACHINES
from examples.bench.calibrate.measures import measure
from examples.bench.calibrate.row import UNITS, Row
from examples.bench.calibrate.rows import ROWS, SOURCES
from examples.bench.calibrate.runs import OWN, Run, SourceMissing, program

SHORT = [
    row for row in ROWS if row.source in ("dma", "rmsnorm") or row.what.startswith("PSUM copy")
]


def test_every_source_is_explained_and_used() -> None:
    assert {row.source for row in ROWS} == set(SOURCES)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.source}: {row.what}")
def test_rows_are_well_formed(row: Row) -> None:
    assert row.published > 0
    assert row.unit in UNITS
    assert 0 < row.within <= 0.2
    assert (row.unit == "x") == bool(row.over)
    machine = MACHINES[row.run.target]
    assert all(key in machine for key, _ in row.run.numbers)


@pytest.mark.parametrize("row", SHORT, ids=lambda row: f"{row.source}: {row.what}")
def test_single_instructions_are_timed_as_published(row: Row) -> None:
    found = measure(row.measure, program(row.run, None), MACHINES[row.run.target])
    ratio = found / UNITS[row.unit] / row.published
    if row.why:
        assert abs(ratio - 1) > row.within, "a miss that is none any more needs no reason"
    else:
        assert ratio == pytest.approx(1, abs=row.within)


def test_a_missing_checkout_leaves_the_row_out(tmp_path: Path) -> None:
    run = Run("kernel", (), file="nowhere/kernel.py")
    for folder in (None, tmp_path):
        with pytest.raises(SourceMissing):
            program(run, folder)


def test_listings_of_a_page_are_found_by_the_function_they_define(tmp_path: Path) -> None:
    (tmp_path / "page.rst").write_text(
        "Title\n\n.. code-block:: python\n   :linenos:\n\n"
        "   import nki.isa as nisa\n   import nki.language as nl\n\n"
        "   def first(x):\n       return x\n\n"
        "Text.\n\n.. code-block:: python\n\n"
        "   import nki.isa as nisa\n   import nki.language as nl\n\n"
        "   def second():\n"
        "       out = nl.ndarray((1, 4), dtype=nl.float32, buffer=nl.hbm)\n"
        "       tile = nl.ndarray((1, 4), dtype=nl.float32, buffer=nl.sbuf)\n"
        "       nisa.memset(dst=tile, value=0.0)\n"
        "       nisa.dma_copy(dst=out, src=tile)\n"
        "       return out\n"
    )
    found = program(Run("second", (), file="page.rst", block=0), tmp_path)
    assert [record.opcode for record in found.trace.records] == ["memset", "dma_copy"]


def test_our_kernels_hold_every_entry_that_rows_name() -> None:
    text = OWN.read_text()
    for row in ROWS:
        for run in (row.run, *row.over):
            assert run.file or f"def {run.entry}(" in text
