"""What the stream of weights leaves of SBUF is enough for the rest, at sizes far apart."""

from __future__ import annotations

import pytest

from backends.isa.targets import TARGETS
from backends.nki import EMITTER
from gdsl import api
from gdsl.algorithm.plan import Plan
from gdsl.emitter import EmitOptions
from gdsl.errors import CompileError
from gdsl.estimate import estimate

LAYER = {"Hid": 2048, "Hk": 16, "G": 2, "K": 128, "V": 128, "W": 4}


@pytest.fixture(scope="module")
def plan() -> Plan:
    return api.compile(api.load("gdn_block_tkg"), target="trn2").compilation.plan


@pytest.mark.parametrize(
    "sizes",
    [
        {"B": 1},
        {"B": 4},
        {"B": 33},
        {"B": 1, "Hid": 8192, "Hk": 8, "G": 8},
        {"B": 2, "Hid": 16384, "Hk": 4},
        {"B": 128, "Hk": 4},
        {"B": 128, "Hk": 1, "Hid": 128, "K": 32, "V": 32},
        {"B": 1, "Hk": 3, "G": 1, "Hid": 128, "K": 16, "V": 128},
    ],
)
@pytest.mark.parametrize("lnc", [1, 2])
def test_it_fits(plan: Plan, sizes: dict[str, int], lnc: int) -> None:
    found = EMITTER.footprint(plan, EmitOptions("trn2"), {**LAYER, **sizes}, lnc)
    assert found.sbuf_bytes_per_partition <= TARGETS["trn2"].sbuf_usable_bytes
    assert found.psum_banks <= 8


@pytest.mark.parametrize(("axis", "size", "code"), [("B", 600, "E0531"), ("Hid", 131072, "E0532")])
def test_what_does_not_fit_is_said_with_the_axis(axis: str, size: int, code: str) -> None:
    sizes = {**LAYER, "Hk": 1, "G": 1, "B": 1, axis: size}
    with pytest.raises(CompileError) as raised:
        estimate(api.load("gdn_block_tkg"), sizes, target="trn2")
    found = raised.value.diagnostics[0]
    assert found.code == code
    assert f"`{axis}=" in (found.help or "")
