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
        {"B": 300, "Hid": 128, "H": 2, "K": 16, "V": 8},
    ],
)
def test_agrees_with_the_interpreter(shape: dict[str, int]) -> None:
    report = api.verify(
        api.loads(TEXT.format(H=shape["H"])), shape=shape, lnc=(1, 2), targets=("trn2",)
    )
    assert report.run
    assert [case.regime for case in report.cases if not all(o.ok for o in case.outputs)] == []


def in_eight_bits(text: str) -> str:
    """One weight in 8 bits with a scale per column, the other as it was."""
    text = text.replace("input W: bf16[Hid, (H K)]", "input W: f8e4m3[Hid, (H K)]")
    text = text.replace("    input U:", "    input scale: f32[(H K)]\n    input U:")
    text = text.replace("sum[Hid](hidden * W)", "scale * sum[Hid](hidden * W)")
    return text.replace("(hidden, W, U, H)", "(hidden, W, scale, U, H)")


@pytest.mark.parametrize(
    "shape",
    [
        {"B": 1, "Hid": 256, "H": 5, "K": 32, "V": 16},
        {"B": 3, "Hid": 640, "H": 130, "K": 16, "V": 8},
        {"B": 128, "Hid": 128, "H": 1, "K": 16, "V": 128},
    ],
)
def test_weights_of_two_dtypes_and_scales(shape: dict[str, int]) -> None:
    """On both targets; more heads than partitions, and a bank full of entries."""
    definition = api.loads(in_eight_bits(TEXT.format(H=shape["H"])))
    report = api.verify(definition, shape=shape, lnc=(1, 2), regimes=("gaussian",))
    assert report.run
    assert {case.target for case in report.cases} == {"trn2", "trn3"}
    assert [case.regime for case in report.cases if not all(o.ok for o in case.outputs)] == []


def test_eight_bits_halve_the_time() -> None:
    """Estimated, program order: one weight of two takes half its bytes."""
    sizes = {"B": 1, "Hid": 2048, "H": 32, "K": 128, "V": 128}
    text = TEXT.format(H=32)
    wide, narrow = (
        estimate(api.loads(t), sizes, target="trn2").report for t in (text, in_eight_bits(text))
    )
    assert narrow.contract.hbm_bytes <= 0.751 * wide.contract.hbm_bytes
    assert narrow.estimate.program_order <= 0.78 * wide.estimate.program_order


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("hidden: bf16", "hidden: f32", r"`hidden` may be f32, but TensorE multiplies `W`"),
        ("scale: f32[(H K)]", "scale: f32[H]", "is not a projection"),
        ("scale * sum", "f8e4m3(scale) * sum", "is not a projection"),
    ],
)
def test_what_eight_bits_cannot_be_is_refused(old: str, new: str, message: str) -> None:
    text = in_eight_bits(TEXT.format(H=2)).replace(old, new)
    with pytest.raises(CompileError, match=message):
        api.compile(api.loads(text), target="trn2")


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
