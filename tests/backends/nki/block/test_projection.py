"""Kernels that are projections only: the stream of weights without anything around it."""

from __future__ import annotations

import pytest

from gdsl import api
from gdsl.errors import CompileError
from gdsl.estimate import estimate

TEXT = '''
kernel projections:
    """Two weights, one after the other."""
    axes B, Hid % 128 == 0, H, K, V
    param H: int = {H}
    input hidden: bf16[B, 1, Hid]
    input W: bf16[Hid, (H K)]
    input U: bf16[Hid, (H V)]
    output x: f32[B, H, K] = sum[Hid](hidden * W)
    output y: bf16[B, 1, (H V)] = sum[Hid](U * hidden)
    call (hidden, W, U, H) -> x, y
'''


@pytest.mark.parametrize(
    "shape",
    [
        {"B": 1, "Hid": 256, "H": 5, "K": 32, "V": 16},
        {"B": 3, "Hid": 640, "H": 5, "K": 128, "V": 48},
        {"B": 128, "Hid": 128, "H": 1, "K": 16, "V": 128},
    ],
)
def test_agrees_with_the_interpreter(shape: dict[str, int]) -> None:
    report = api.verify(
        api.loads(TEXT.format(H=shape["H"])), shape=shape, lnc=(1, 2), targets=("trn2",)
    )
    assert report.run
    assert [case.regime for case in report.cases if not all(o.ok for o in case.outputs)] == []


def test_weights_stream_at_the_rate_of_hbm() -> None:
    """33.6 MB through fewer slots than there are tiles; estimated, program order."""
    sizes = {"B": 1, "Hid": 2048, "H": 32, "K": 128, "V": 128}
    report = estimate(api.loads(TEXT.format(H=32)), sizes, target="trn2").report
    assert report.estimate.program_order <= 1.06 * report.hbm


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sum[Hid](U * hidden)", "sum[Hid](U * hidden) * 2.0"),
        ("input U: bf16[Hid, (H V)]", "input U: bf16[(H V), Hid]"),
    ],
)
def test_what_is_no_projection_is_refused(old: str, new: str) -> None:
    with pytest.raises(CompileError, match=r"projection|innermost"):
        api.compile(api.loads(TEXT.format(H=2).replace(old, new)), target="trn2")
