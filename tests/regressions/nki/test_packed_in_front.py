"""Packed weights and packed tokens before a rule in chunks: `qwen3next_block_prefill`."""

from __future__ import annotations

import pytest

import gdsl

SMALL = {"B": 1, "Hid": 128, "Hk": 2, "G": 2, "K": 32, "V": 32, "W": 4}


@pytest.mark.parametrize(
    ("axes", "regime", "precision", "cores"),
    [
        ({"T": 1}, "zero-state", "widened", (1,)),
        # W - 1 tokens, fewer than the window has columns; rows of other lengths, 0 among them.
        ({"B": 3, "T": 3}, "padding", "bf16", (1,)),
        ({"T": 130, "Hid": 256}, "lnc-bits", "bf16", (1, 2)),
        ({"B": 2, "T": 130}, "padding", "bf16", (1,)),
        # Gates of two key heads lie apart, and no row ends within a chunk: they travel together.
        ({"B": 2, "T": 128, "G": 3}, "gaussian", "bf16", (1,)),
        # A second block of 512 tokens sees the end of the first one's lines.
        ({"T": 515, "G": 1}, "gaussian", "widened", (1,)),
        # Blocks of channels, and the shares of cores, end within a head of 40, 24 or 72.
        ({"T": 5, "Hk": 3, "G": 3, "K": 40, "V": 24}, "lnc-bits", "widened", (1, 2)),
    ],
)
def test_prompts(axes: dict[str, int], regime: str, precision: str, cores: tuple[int, ...]) -> None:
    report = gdsl.verify(
        gdsl.load("qwen3next_block_prefill"),
        shape={**SMALL, **axes},
        targets=["trn2"],
        lnc=cores,
        regimes=[regime],
        settings={"inverse": "neumann"},
        precisions=[precision],
    )
    assert report.ok, report


MIXER = """
use delta_rule, gates, norms, conv
kernel packed_mixer:
    axes B, T, Hk, G, Hv = (Hk G), K, V, W, P = q:K | k:K | v:(G V) | z:(G V)
    input qkvz: bf16[LAID]
    input g: f32[B, T, Hv] in [-inf, 0]
    input beta: f32[B, T, Hv] in [0, 1]
    input conv_q, conv_k: f32[(Hk K), W]
    input conv_v: f32[(Hk G V), W]
    input valid_len: i32[B] in [0, inf) or T
    state win_q: bf16[B, (Hk K), W] = conv_state_q inplace or zeros
    state win_k: bf16[B, (Hk K), W] = conv_state_k inplace or zeros
    state win_v: bf16[B, (Hk G V), W] = conv_state_v inplace or zeros
    state S: f32[B, Hv, K, V] = recurrent_state inplace
    xq, xk, xv, z = unpack[P](qkvz)
    q, win_q = scan[T < valid_len] causal_conv(xq, conv_q, win_q)
    k, win_k = scan[T < valid_len] causal_conv(xk, conv_k, win_k)
    v, win_v = scan[T < valid_len] causal_conv(xv, conv_v, win_v)
    o, S = scan[T < valid_len] gated_delta(
        silu(q) * K ** -0.5, l2norm[K](silu(k)), silu(v), exp(g), beta, S
    )
    output out: bf16[B, T, Hv, V] = o * silu(z)
    output conv_state_q = win_q
    output conv_state_k = win_k
    output conv_state_v = win_v
    output recurrent_state = S
"""


@pytest.mark.parametrize("laid", ["B, T, (Hk P)", "B, (Hk P), T"])
@pytest.mark.parametrize(
    ("axes", "regime", "cores"),
    [
        ({"B": 2, "T": 21, "Hk": 2, "G": 2, "K": 24, "V": 40}, "padding", (1,)),
        ({"B": 1, "T": 131, "Hk": 3, "G": 1, "K": 48, "V": 32}, "gaussian", (2,)),
    ],
)
def test_tokens_that_the_caller_has_projected(
    laid: str, axes: dict[str, int], regime: str, cores: tuple[int, ...]
) -> None:
    """Rows of channels, and channels of tokens as convolutions take them."""
    report = gdsl.verify(
        gdsl.loads(MIXER.replace("LAID", laid)),
        shape={**axes, "W": 4},
        targets=["trn2"],
        lnc=cores,
        regimes=[regime],
        settings={"inverse": "neumann"},
        precisions=["bf16"],
    )
    assert report.ok, report


def test_some_fields_go_through_a_window_and_the_same_ones_to_the_rule() -> None:
    """The raw q of a packed projection stays in fp32 for the rule, and is bf16 for its window."""
    text = """
use delta_rule, gates, norms, conv
kernel twice:
    axes B, T, Hid % 128 == 0, H, K, V, W, P = q:K | k:K | v:V
    input hidden: bf16[B, T, Hid]
    input weight: bf16[Hid, (H P)]
    input g: f32[B, T, H] in [-inf, 0]
    input beta: f32[B, T, H] in [0, 1]
    input taps: f32[(H V), W]
    state win: bf16[B, (H V), W] = conv_state inplace
    state S: f32[B, H, K, V] = recurrent_state inplace
    q, k, x = unpack[P](sum[Hid](hidden * weight))
    v, win = scan[T] causal_conv(bf16(x), taps, win)
    o, S = scan[T] gated_delta(q * K ** -0.5, l2norm[K](k), silu(v), exp(g), beta, S)
    output out: bf16[B, T, H, V] = o * sigmoid(x)
    output conv_state = win
    output recurrent_state = S
"""
    report = gdsl.verify(
        gdsl.loads(text),
        shape={"B": 1, "T": 37, "Hid": 128, "H": 2, "K": 24, "V": 40, "W": 3},
        targets=["trn2"],
        lnc=(2,),
        regimes=["gaussian"],
        settings={"inverse": "neumann"},
    )
    assert report.ok, report
