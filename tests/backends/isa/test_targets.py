"""Capacities and names of the targets; start partitions."""

from __future__ import annotations

import pytest

from backends.isa.targets import PSUM_BYTES, TARGETS, find_target, start_partitions


@pytest.mark.parametrize(
    ("alias", "name", "generation", "usable"),
    [
        ("inf2", "trn1", 2, 180224),
        ("gen2", "trn1", 2, 180224),
        ("gen3", "trn2", 3, 212984),
        ("trn2", "trn2", 3, 212984),
        ("gen4", "trn3", 4, 245752),
    ],
)
def test_aliases_and_usable_sbuf(alias: str, name: str, generation: int, usable: int) -> None:
    target = find_target(alias)
    assert (target.name, target.generation, target.sbuf_usable_bytes) == (name, generation, usable)


def test_unknown_target() -> None:
    with pytest.raises(ValueError, match="unknown target `trn9`; known are `trn1`"):
        find_target("trn9")


def test_sizes() -> None:
    assert PSUM_BYTES == 16 * 1024
    for target in TARGETS.values():
        assert target.sbuf_usable_bytes < target.sbuf_bytes


@pytest.mark.parametrize(
    ("partitions", "starts"),
    [
        (1, (0, 32, 64, 96)),
        (32, (0, 32, 64, 96)),
        (33, (0, 64)),
        (64, (0, 64)),
        (65, (0,)),
        (128, (0,)),
    ],
)
def test_start_partitions(partitions: int, starts: tuple[int, ...]) -> None:
    assert start_partitions(partitions) == starts
