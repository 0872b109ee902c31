"""The tile program's own accounting of memory against what the simulator saw."""

from __future__ import annotations

import pytest

from backends.nki import EMITTER
from backends.simulator import RUNNER
from gdsl import api
from gdsl.emitter import EmitOptions
from gdsl.pipeline import Compilation
from gdsl.regimes.typed import random_arguments
from gdsl.shapes import resolve_sizes


@pytest.mark.parametrize(
    ("kernel", "shape", "lnc"),
    [
        ("gdn_tkg", {"B": 1, "Hv": 8, "K": 128, "V": 128}, 1),
        ("gdn_tkg", {"B": 9, "Hv": 32, "K": 96, "V": 64}, 2),
        ("gdn_cte", {"B": 1, "Hk": 3, "G": 2, "T": 700, "K": 128, "V": 128}, 1),
        ("gdn_cte", {"B": 1, "Hk": 3, "G": 1, "T": 300, "K": 64, "V": 192}, 2),
        ("gdn_tkg_grouped", {"B": 3, "Hk": 16, "G": 3, "K": 128, "V": 128}, 1),
        ("gdn_conv1d_decode", {"B": 8, "C": 1030, "W": 4}, 1),
        ("gdn_conv1d_decode_w1", {"B": 3, "C": 300, "M": 3}, 2),
        ("gdn_conv1d_prefill", {"B": 2, "C": 900, "T": 300, "W": 4}, 1),
        ("gdn_conv1d_prefill", {"B": 1, "C": 130, "T": 2100, "W": 4}, 2),
    ],
)
def test_footprint_is_the_high_water_mark_of_the_simulator(
    kernel: str, shape: dict[str, int], lnc: int
) -> None:
    definition = api.load(kernel)
    sizes = resolve_sizes(definition.kernel, (), shape)
    compilation = Compilation(definition, EmitOptions("trn2"))
    # The accounting takes the widest dtype a variable admits.
    given = {
        name: value.astype("float32") if value.dtype.itemsize == 2 else value
        for name, value in random_arguments(definition.kernel, sizes, 0).items()
    }
    program = compilation.program
    result = RUNNER.simulate(program.text, program.entry, given, lnc=lnc, shape_only=True)
    footprint = EMITTER.footprint(compilation.plan, EmitOptions("trn2"), sizes, lnc)
    assert footprint.sbuf_bytes_per_partition == max(
        trace.sbuf_bytes_per_partition for trace in result.traces
    )
    assert footprint.psum_banks == max(trace.psum_banks for trace in result.traces)
