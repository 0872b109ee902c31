"""What exists in which NKI release."""

from __future__ import annotations

import pytest

from backends.isa.versions import CHANGES, VERSIONS, at_least

BY_NAME = {change.name: change for change in CHANGES}


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("nl.fori_loop", "0.6", "0.7"),
        ("nl.dynamic_range", "0.3", "0.6"),
        ("nisa.tensor_copy_dynamic_src", "0.3", "0.3"),
        ("tensor.permute", "0.5", "0.7"),
        ("nl.affine_range", "0.3", "0.7"),
    ],
)
def test_lifetime(name: str, first: str, last: str) -> None:
    alive = [version for version in VERSIONS if BY_NAME[name].exists(version)]
    assert (alive[0], alive[-1]) == (first, last)


@pytest.mark.parametrize("name", ["nl.mgrid", "nisa.dma_copy(dst_rmw_op)", "list argument"])
def test_gone_before_the_oldest_release(name: str) -> None:
    assert not any(BY_NAME[name].exists(version) for version in VERSIONS)


def test_every_change_says_when_and_what_instead() -> None:
    assert len(BY_NAME) == len(CHANGES)
    for change in CHANGES:
        assert change.rule
        assert {change.added, change.deprecated, change.removed} - {None} <= set(VERSIONS)
        assert change.added or change.deprecated or change.removed


def test_order_of_versions() -> None:
    assert at_least("0.6", "0.5")
    assert not at_least("0.3", "0.4")
