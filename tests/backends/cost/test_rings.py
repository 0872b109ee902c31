"""Which ring carries what."""

from __future__ import annotations

from attrs import evolve

from backends.cost.rings import Rings
from backends.cost.workload import Transfer

PLAIN = Transfer(
    kind="copy",
    bytes=4096,
    hbm_bytes=4096,
    run_bytes=512,
    partitions=8,
    queue=None,
    mode="unknown",
)


def names(rings: Rings, *works: Transfer) -> list[str]:
    return [rings.ring(work).name for work in works]


def test_unnamed_transfers_are_dealt_in_turn() -> None:
    assert names(Rings(1, software=False), PLAIN, PLAIN) == ["sync", "sync"]
    assert names(Rings(3, software=False), *[PLAIN] * 4) == ["sync", "ring 2", "ring 3", "sync"]


def test_named_engines_do_not_count() -> None:
    on_scalar = evolve(PLAIN, queue="scalar", mode="hwdge")
    found = names(Rings(2, software=False), PLAIN, on_scalar, PLAIN)
    assert found == ["sync", "scalar", "ring 2"]


def test_descriptors_by_gpsimd() -> None:
    software = evolve(PLAIN, mode="swdge")
    rings = Rings(2, software=False)
    assert rings.ring(software).software
    assert rings.ring(software).queue == "gpsimd"
    assert not rings.ring(PLAIN).software
    assert Rings(2, software=True).ring(PLAIN).software
    assert not Rings(2, software=True).ring(evolve(PLAIN, mode="none")).software


def test_gpsimds_own_engine_needs_no_descriptors() -> None:
    ring = Rings(2, software=False).ring(evolve(PLAIN, kind="gpsimd"))
    assert (ring.queue, ring.software) == ("gpsimd", False)
