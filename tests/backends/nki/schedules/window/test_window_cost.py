"""Estimated time of the emitted convolutions.

Estimates of the cost model for trn2, one core, program order; nothing here is measured.
"""

from __future__ import annotations

from gdsl import api
from gdsl.estimate import estimate
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
