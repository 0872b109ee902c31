"""What the compiler chooses or refuses for the cases where a chunk form is not safe."""

from __future__ import annotations

from typing import Any

import pytest

import gdsl
from gdsl.algorithm.plan import Plan
from gdsl.emitter import EmitOptions
from gdsl.errors import CompileError
from gdsl.pipeline import Compilation

TEXT = """
use delta_rule
kernel plain:
    axes B, H, T, K, V
    input q, k: f32[B, H, T, K]
    input v: f32[B, H, T, V]
    input g: f32[B, H, T{channel}] in {gate}
    input beta: f32[B, H, T] in [0, {beta}]
    {assume}
    state S: f32[B, H, K, V] = s0 or zeros
    o, S = scan[T] gated_delta(q, k, v, exp(g), beta, S)
    output out: f32[B, H, T, V] = o
    output s1: f32[B, H, K, V] = S
"""
UNIT_KEYS = "assume sum[K](k * k) <= 1.01"


def plan(
    *,
    gate: str = "(-inf, 0]",
    channel: str = "",
    beta: str = "1",
    assume: str = UNIT_KEYS,
    **settings: Any,
) -> Plan:
    text = TEXT.replace("{gate}", gate).replace("{channel}", channel).replace("{beta}", beta)
    definition = gdsl.loads(text.replace("{assume}", assume))
    return Compilation(definition, EmitOptions("trn2"), settings).plan


def refused(code: str, **options: Any) -> str:
    """Return the message of the one refusal, which must have this code and say what to do."""
    with pytest.raises(CompileError) as error:
        plan(form="chunked", **options)
    (found,) = error.value.diagnostics
    assert found.code == code
    assert found.help is not None
    return found.message


def test_b05_keys_of_unknown_norm_have_no_chunk_form() -> None:
    assert "keys are not known to be normalised" in refused("E0513", assume="")
    assert plan(assume="").form == "recurrent"
    assert plan().form == "chunked"


@pytest.mark.parametrize("leaf", [16, 32])
def test_b01_b02_b04_a_doubling_leaf_needs_its_correction(leaf: int) -> None:
    """16 equal or correlated tokens break it; merging is the default and needs none."""
    refused("E0514", inverse="neumann", leaf=leaf, corrections=0, operands="f32")
    assert plan().settings["inverse"] == "schur"


def test_b12_an_unbounded_gate_gets_no_factored_sub_block() -> None:
    refused("E0515", channel=", K", subblock=16)
    assert plan(channel=", K").settings["subblock"] == 1
    assert plan(channel=", K", gate="[-5, 0]").settings["subblock"] == 16


def test_b08_b42_a_gate_that_may_grow_has_no_chunk_form() -> None:
    refused("E0512", gate="[-1, 1]")
    assert plan(gate="[-1, 1]").form == "recurrent"
