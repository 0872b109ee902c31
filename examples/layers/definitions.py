"""Layers of transformers, their sizes, and how their weights are called by our kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from attrs import frozen

from gdsl.runner import Array

Arrays = dict[str, Array]


@frozen
class Layer:
    """A layer of transformers, and the kernels that stand for it."""

    label: str
    model: str
    """Module of transformers.models."""
    classes: tuple[str, str, str]
    """Configuration, base model (for its initialisation), mixer."""
    prefill: str
    """The kernel of a prompt."""
    decode: str
    small: Mapping[str, int]
    """Configuration of a layer that is quick to simulate."""
    output: str
    """The projection behind what we compute."""
    weights: Callable[[Any], Arrays]
    """The weights, as both kernels call them."""


def _columns(linear: Any) -> Array:
    """The weight of a torch projection as [hidden, channels]."""
    return np.ascontiguousarray(linear.weight.numpy().T)


def _taps(mixer: Any) -> Array:
    """The weight of its convolution as [channels, W]."""
    return np.ascontiguousarray(mixer.conv1d.weight.numpy()[:, 0])


def _gates(mixer: Any) -> Arrays:
    return {
        "A_log": mixer.A_log.numpy(),
        "dt_bias": mixer.dt_bias.numpy(),
        "norm_weight": mixer.norm.weight.numpy(),
    }


def _qwen3_5(mixer: Any) -> Arrays:
    return {
        "W_in_qkv": _columns(mixer.in_proj_qkv),
        "W_in_z": _columns(mixer.in_proj_z),
        "W_in_a": _columns(mixer.in_proj_a),
        "W_in_b": _columns(mixer.in_proj_b),
        "conv_weight": _taps(mixer),
        **_gates(mixer),
    }


def _qwen3_next(mixer: Any) -> Arrays:
    """The projections as the checkpoint packs them; taps cut at the borders of q, k and v."""
    parts = np.split(_taps(mixer), np.cumsum([mixer.key_dim, mixer.key_dim]))
    return {
        "W_qkvz": _columns(mixer.in_proj_qkvz),
        "W_ba": _columns(mixer.in_proj_ba),
        **dict(zip(("conv_q", "conv_k", "conv_v"), parts, strict=True)),
        **_gates(mixer),
    }


def _kimi_linear(mixer: Any) -> Arrays:
    gate = mixer.forget_gate
    taps = dict(zip(("conv_q", "conv_k", "conv_v"), np.split(_taps(mixer), 3), strict=True))
    return {
        "W_q": _columns(mixer.q_proj),
        "W_k": _columns(mixer.k_proj),
        "W_v": _columns(mixer.v_proj),
        "W_f_down": _columns(gate.f_a_proj),
        "W_f_up": _columns(gate.f_b_proj),
        "W_g_down": _columns(mixer.g_a_proj),
        "W_g_up": _columns(mixer.g_b_proj),
        "W_b": _columns(mixer.b_proj),
        **taps,
        "A_log": gate.A_log.numpy().reshape(-1),
        "dt_bias": gate.dt_bias.numpy(),
        "norm_weight": mixer.o_norm.weight.numpy(),
    }


TAPS = {
    "conv_state": "conv_weight",
    "conv_state_q": "conv_q",
    "conv_state_k": "conv_k",
    "conv_state_v": "conv_v",
}
"""The taps over each window, [channels, W]; together the windows are transformers' own."""

_SMALL = {
    "hidden_size": 128,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
}
LAYERS = {
    "qwen3_next": Layer(
        "Qwen3-Next",
        "qwen3_next",
        ("Qwen3NextConfig", "Qwen3NextPreTrainedModel", "Qwen3NextGatedDeltaNet"),
        "qwen3next_block_prefill",
        "qwen3next_block_tkg",
        _SMALL,
        "out_proj",
        _qwen3_next,
    ),
    "qwen3_5": Layer(
        "Qwen3.5",
        "qwen3_5",
        ("Qwen3_5TextConfig", "Qwen3_5PreTrainedModel", "Qwen3_5GatedDeltaNet"),
        "gdn_block_prefill",
        "gdn_block_tkg",
        _SMALL,
        "out_proj",
        _qwen3_5,
    ),
    "kimi_linear": Layer(
        "Kimi-Linear",
        "kimi_linear",
        ("KimiLinearConfig", "KimiLinearPreTrainedModel", "KimiLinearDeltaAttention"),
        "kda_block_prefill",
        "kda_block_tkg",
        {"hidden_size": 128, "linear_num_heads": 2, "linear_head_dim": 32},
        "o_proj",
        _kimi_linear,
    ),
}
