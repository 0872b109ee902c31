"""The machine tables: complete, graded, consistent."""

from __future__ import annotations

import pytest

from backends.isa.activations import ACTIVATIONS
from backends.isa.evidence import SOURCES, Fact, Row
from backends.isa.machine import MACHINES, ROWS
from backends.isa.machine_engines import TABLE_GROUPS
from backends.isa.targets import TARGETS

PER_ROW = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)


def facts(row: Row) -> list[Fact]:
    return [fact for target in MACHINES if (fact := row.fact(target)) is not None]


def test_keys_are_unique() -> None:
    assert len({row.key for row in ROWS}) == len(ROWS)


def test_every_target_has_a_machine() -> None:
    assert set(MACHINES) == set(TARGETS)


@PER_ROW
def test_every_number_says_where_it_is_from(row: Row) -> None:
    assert row.unit
    assert row.meaning
    for fact in facts(row):
        assert fact.source
        # Arithmetic and assumptions give their reason; the others name a document.
        if fact.grade in "DMT":
            assert any(key in fact.source for key in SOURCES)


@PER_ROW
def test_assumptions_and_only_they_have_a_range(row: Row) -> None:
    for fact in facts(row):
        assert (fact.low is not None) == (fact.grade == "A")
        if fact.low is not None and fact.high is not None:
            assert fact.low <= fact.value <= fact.high
            assert fact.low < fact.high


def test_the_newest_machine_has_everything() -> None:
    assert all(row.trn3 is not None for row in ROWS)


def test_trn2_has_what_trn1_has() -> None:
    assert set(MACHINES["trn1"].facts) <= set(MACHINES["trn2"].facts)


def test_replaced_changes_the_value_only() -> None:
    machine = MACHINES["trn2"].replaced({"hop": 45.0})
    assert machine["hop"] == 45.0
    assert machine.facts["hop"].source == MACHINES["trn2"].facts["hop"].source
    assert MACHINES["trn2"]["hop"] == 30.0


def test_replaced_refuses_what_is_no_number_of_the_machine() -> None:
    with pytest.raises(KeyError):
        MACHINES["trn2"].replaced({"hopp": 1.0})


def test_peaks_follow_from_the_clock() -> None:
    machine = MACHINES["trn2"]
    assert machine["peak_bf16"] == pytest.approx(128 * 128 * 2 * machine["pe_clock"] / 1e3, 1e-3)
    ratio = machine["pe_passes_fp32"] / machine["pe_passes"]
    assert machine["peak_fp32"] == pytest.approx(machine["peak_bf16"] / ratio, 1e-3)


def test_a_core_moves_less_than_its_share_of_hbm_can_deliver() -> None:
    """Two cores together nearly reach the stack on trn2: 736 of 725 bytes per ns."""
    machine = MACHINES["trn2"]
    core = machine["dma_engines"] * machine["dma_rate"]
    assert core == 368
    assert 2 * core > machine["hbm_rate"] > core


def test_table_groups_name_functions_that_exist() -> None:
    assert set(TABLE_GROUPS) <= set(ACTIVATIONS) | {"prelu"}
    assert {"copy", "square", "relu", "abs"}.isdisjoint(TABLE_GROUPS)
