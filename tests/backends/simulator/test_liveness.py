"""Live memory, pins and faults as values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from attrs import fields_dict
from hypothesis import given
from hypothesis import strategies as st

from backends.isa.dtypes import DTYPES
from backends.simulator.faults import Fault
from backends.simulator.liveness import over_capacity, peak, pinned_overlap
from backends.simulator.memory import Allocation, form_of
from backends.simulator.options import SimOptions, make_options
from backends.simulator.tokens import MemoryRegion
from gdsl.errors import UsageError


def use(
    born: int,
    last: int,
    size: int,
    memory: MemoryRegion = MemoryRegion.sbuf,
    address: tuple[int, int] | None = None,
) -> Allocation:
    """A tensor of `size` bytes on one partition."""
    made = Allocation(form_of((1, size), DTYPES["uint8"], memory), address=address)
    made.born, made.last = born, last
    return made


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 50)), max_size=12))
def test_peak_is_the_largest_sum_over_records(spans: list[tuple[int, int, int]]) -> None:
    uses = [use(min(a, b), max(a, b), size) for a, b, size in spans]
    at = [sum(size for a, b, size in spans if min(a, b) <= t <= max(a, b)) for t in range(10)]
    assert peak(uses, 1).amount == max(at)


def test_tensors_never_used_do_not_count() -> None:
    assert peak([use(0, -1, 100), use(0, 3, 5)], 1).amount == 5


def test_sizes_round_up_to_units() -> None:
    assert peak([use(0, 3, 2048), use(0, 3, 2049)], 2048).amount == 3


def test_pinned_tensors_count_where_they_are() -> None:
    uses = [use(0, 9, 100, address=(0, 0)), use(0, 9, 100, address=(0, 50)), use(0, 9, 10)]
    assert peak(uses, 1).amount == 160


def test_psum_tensors_may_share_a_bank_before_it_is_a_fault() -> None:
    small = [use(0, 9, 1024, MemoryRegion.psum) for _ in range(16)]
    assert over_capacity(small, 1000, "trn2") is None
    fault = over_capacity([*small, use(0, 9, 1, MemoryRegion.psum)], 1000, "trn2")
    assert fault is not None
    assert fault.code == "S204"


def test_pins_that_follow_one_another_may_share_bytes() -> None:
    first, second = use(0, 3, 8, address=(0, 0)), use(4, 9, 8, address=(0, 0))
    assert pinned_overlap([first, second]) is None
    fault = pinned_overlap([first, use(3, 9, 8, address=(0, 4))])
    assert fault is not None
    assert fault.code == "S206"


ROTATING = """
@nki.jit
def kernel(x):
    tiles = []
    for i in range(4):
        tiles.append(nl.ndarray((4, 8), nl.float32, nl.sbuf, address=(0, 32 * (i % 2))))
    for i in range(4):
        nisa.dma_copy(dst=tiles[i], src=x)
        nisa.tensor_copy(dst=tiles[i], src=tiles[i])
    {late}
    return x
"""


def test_a_tile_declared_early_lives_from_its_first_access(run: Callable[..., object]) -> None:
    x = np.zeros((4, 8), np.float32)
    run(ROTATING.format(late=""), x)
    with pytest.raises(Fault, match="still alive") as fault:
        run(ROTATING.format(late="nisa.dma_copy(dst=x, src=tiles[0])"), x)
    assert fault.value.code == "S206"


def test_settings_by_name() -> None:
    chosen = make_options({"uninitialized": "fault", "shape_only": True})
    assert (chosen.uninitialized, chosen.shape_only) == ("fault", True)
    assert make_options({"widen_to_fp32": "true"}).widen_to_fp32 is True
    with pytest.raises(UsageError, match="no setting `speed`"):
        make_options({"speed": 1})
    with pytest.raises(UsageError, match="`nan` or `fault`"):
        make_options({"uninitialized": "zero"})


def test_every_setting_has_a_row_in_the_readme() -> None:
    from pathlib import Path

    import backends.simulator

    readme = (Path(backends.simulator.__file__).parent / "README.md").read_text(encoding="utf-8")
    rows = {line.split("`")[1] for line in readme.splitlines() if line.startswith("| `")}
    assert set(fields_dict(SimOptions)) <= rows
    defaults = {name: field.default for name, field in fields_dict(SimOptions).items()}
    for name, default in defaults.items():
        assert f"| `{name}` | `{default}` |" in readme
