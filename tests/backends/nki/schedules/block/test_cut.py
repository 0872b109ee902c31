"""A kernel is cut into projections, convolutions and one delta rule by its text alone."""

from __future__ import annotations

from importlib import resources

import pytest

import gdsl
from backends.nki.schedules.block.cut import cut
from backends.nki.schedules.block.sections import (
    Convolution,
    Given,
    Port,
    Projection,
    Sections,
)
from gdsl.errors import CompileError
from gdsl.ir.dtypes import Dtype
from gdsl.pipeline import Compilation


def sections_of(text: str) -> Sections:
    definition = gdsl.loads(text) if "\n" in text else gdsl.load(text)
    return cut(Compilation(definition).plan)


def test_a_kernel_that_is_one_delta_rule_is_not_cut() -> None:
    sections = sections_of("gdn_tkg")
    assert not sections.projections
    assert not sections.convolutions
    assert not sections.values
    assert sections.outputs == gdsl.load("gdn_tkg").kernel.outputs


def test_block_of_one_packed_projection() -> None:
    sections = sections_of("gdn_block_tkg")
    weights = [projection.weight.name for projection in sections.projections]
    assert weights == ["W_in_qkv", "W_in_z", "W_in_a", "W_in_b"]
    (convolution,) = sections.convolutions
    assert convolution.rounded is Dtype.BF16
    assert [(f.name, f.heads, f.wide) for f in convolution.fields] == [
        ("q", ("Hk",), "K"),
        ("k", ("Hk",), "K"),
        ("v", ("Hk", "G"), "V"),
    ]
    assert [output.name for output in convolution.windows] == ["conv_out"]
    values = {value.name: value for value in sections.values}
    assert {name for name, value in values.items() if value.port.silu} == {"q", "k", "v"}
    assert {name for name, value in values.items() if value.late} == {"z"}
    assert [output.name for output in sections.outputs] == ["core_out", "state_out"]


def test_a_scale_per_channel_belongs_to_its_projection() -> None:
    """A scale per head is no scale of channels: it stays in the text."""
    text = (resources.files("kernels_dsl") / "gdn_block_tkg.gdn").read_text(encoding="utf-8")
    head, kernel = text[: text.index("kernel ")], text[text.index("kernel gdn_block_tkg_fp8:") :]
    kernel = kernel[: kernel.index("shapes ")]
    kernel = kernel.replace("input W_in_a, W_in_b: bf16", "input W_in_a, W_in_b: f8e4m3")
    kernel = kernel.replace("    input conv_w", "    input scale_b: f32[Hv]\n    input conv_w")
    kernel = kernel.replace("hidden * W_in_b)", "hidden * W_in_b) * scale_b")
    kernel = kernel.replace("W_in_b, conv_w", "W_in_b, scale_b, conv_w")
    sections = sections_of(head + kernel)
    scales = {p.weight.name: p.scale.name if p.scale else None for p in sections.projections}
    assert scales == {
        "W_in_qkv": "W_scale_qkv",
        "W_in_z": "W_scale_z",
        "W_in_a": None,
        "W_in_b": None,
    }
    assert "scale_b" in {symbol.name for symbol in sections.mentioned}
    assert "def gdn_block_tkg_fp8(" in gdsl.compile(gdsl.loads(head + kernel), target="trn2").text


def test_fields_packed_within_each_key_head() -> None:
    sections = sections_of("qwen3next_block_tkg")
    assert [p.weight.name for p in sections.projections] == ["W_qkvz", "W_ba"]
    tokens = {c.symbol.name: c.token[0] for c in sections.convolutions}
    assert {name: port.field.packed for name, port in tokens.items()} == {
        name: (("P", name),) for name in "qkv"
    }
    assert all(isinstance(port.section, Projection) for port in tokens.values())


def test_a_projection_of_a_projection() -> None:
    """KDA's low-rank gates: rounded between the two contractions, one name for both."""
    sections = sections_of("kda_block_tkg")
    up = next(p for p in sections.projections if p.weight.name == "W_f_up")
    assert isinstance(up.moving, Port)
    assert up.moving.field.heads == ()
    assert isinstance(up.moving.section, Projection)
    assert up.moving.section.weight.name == "W_f_down"
    assert up.rounded is Dtype.BF16


def test_tokens_and_fields_may_be_inputs() -> None:
    (convolution,) = sections_of("gdn_verify").convolutions
    assert [type(port.section) for port in convolution.token] == [Given] * 3
    assert [output.name for output in convolution.token_windows] == ["conv_states_out"]
    fields = sections_of("qwen3next_step").values
    assert [(v.name, type(v.port.section)) for v in fields] == [(n, Given) for n in "qkvzba"]


def test_what_both_use_is_one_port() -> None:
    """The silu of a convolution and the convolution itself are two values of one section."""
    sections = sections_of(TWICE)
    ports = [value.port for value in sections.values]
    assert {port.silu for port in ports if isinstance(port.section, Convolution)} == {True, False}
    assert len({port.section for port in ports if isinstance(port.section, Convolution)}) == 1


TWICE = """
use delta_rule, gates, conv
kernel twice:
    axes B, H, K, V, W
    input x: f32[B, (H K)]
    input v: f32[B, H, V]
    input w: f32[(H K), W]
    state win: f32[B, (H K), W] = window
    state S: f32[B, H, K, V] = s0
    y, win = step causal_conv(x, w, win)
    o, S = step gated_delta(silu(y), y, v, 1, 1, S)
    output out: f32[B, H, V] = o
    output window_out: f32[B, (H K), W] = win
    output s1: f32[B, H, K, V] = S
"""
BLOCK = """
use delta_rule, conv
kernel refused:
    axes B, Hid, H, K, V, W
    input hidden: bf16[B, Hid]
    input weight: bf16[Hid, (H K)]
    input taps: f32[(H K), W]
    input v: f32[B, H, V]
    state win: f32[B, (H K), W] = window
    state S: f32[B, H, K, V] = s0
    x = {projection}
    y, win = step causal_conv({token}, taps, win)
    o, S = step gated_delta(y, y, v, 1, 1, S)
    output out: f32[B, H, V] = o
    output window_out: f32[B, (H K), W] = win
    output s1: f32[B, H, K, V] = S
"""


@pytest.mark.parametrize(
    ("projection", "token", "message"),
    [
        ("sum[Hid](exp(hidden) * weight)", "x", "must be the product of one value per entry"),
        ("sum[Hid](hidden * weight)", "2 * x", "new column of a window must be"),
    ],
)
def test_what_no_section_is(projection: str, token: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        sections_of(BLOCK.format(projection=projection, token=token))
    (found,) = caught.value.diagnostics
    assert found.code == "E0521"
    assert message in found.message
    assert found.span is not None
