"""Memory and estimated time of the emitted convolutions.

Estimates of the cost model for trn2, one core, program order; nothing here is measured.
"""

from __future__ import annotations

import numpy as np
import pytest

from backends.nki import EMITTER
from backends.simulator import RUNNER
from gdsl import api
from gdsl.emitter import EmitOptions
from gdsl.estimate import estimate
from gdsl.pipeline import Compilation
from gdsl.regimes.typed import random_arguments
from gdsl.shapes import resolve_sizes


def test_step_of_8192_channels_and_8_rows() -> None:
    definition = api.load("gdn_conv1d_decode")
    sizes = resolve_sizes(definition.kernel, (), "B=8,C=8192,W=4")
    report = estimate(definition, sizes, target="trn2").report
    assert report.estimate.program_order <= 12.0


def test_scan_of_8192_channels_and_2048_tokens() -> None:
    definition = api.load("gdn_conv1d_prefill")
    sizes = resolve_sizes(definition.kernel, (), "B=1,C=8192,T=2048,W=4")
    report = estimate(definition, sizes, target="trn2").report
    assert report.estimate.program_order <= 1.3 * report.hbm


@pytest.mark.parametrize(
    ("kernel", "shape", "lnc"),
    [
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
    given = {
        name: value.astype(np.float32) if value.dtype.itemsize == 2 else value
        for name, value in random_arguments(definition.kernel, sizes, 0).items()
    }
    program = compilation.program
    result = RUNNER.simulate(program.text, program.entry, given, lnc=lnc, shape_only=True)
    footprint = EMITTER.footprint(compilation.plan, EmitOptions("trn2"), sizes, lnc)
    assert footprint.sbuf_bytes_per_partition == max(
        trace.sbuf_bytes_per_partition for trace in result.traces
    )
    assert footprint.psum_banks == max(trace.psum_banks for trace in result.traces)
