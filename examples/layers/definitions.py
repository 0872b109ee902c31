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
    weights: Callable[[Any], tuple[Arrays, Arrays]]
    """The weights of the prefill kernel and of the decode kernel."""
    handed_on: Callable[[Arrays], Arrays]
    """The states of the prefill kernel as the decode kernel calls them."""


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


def _qwen3_5(mixer: Any) -> tuple[Arrays, Arrays]:
    weights = {
        "W_in_qkv": _columns(mixer.in_proj_qkv),
        "W_in_z": _columns(mixer.in_proj_z),
        "W_in_a": _columns(mixer.in_proj_a),
        "W_in_b": _columns(mixer.in_proj_b),
        "conv_weight": _taps(mixer),
        **_gates(mixer),
    }
    return weights, weights


def _qwen3_next(mixer: Any) -> tuple[Arrays, Arrays]:
    """The prefill kernel takes the weights sorted, the decode kernel as the checkpoint has them."""
    qkvz, ba = _columns(mixer.in_proj_qkvz), _columns(mixer.in_proj_ba)
    hidden, heads = qkvz.shape[0], mixer.num_k_heads
    grouped = mixer.value_dim // heads
    borders = np.cumsum([mixer.head_k_dim, mixer.head_k_dim, grouped])
    fields = np.split(qkvz.reshape(hidden, heads, -1), borders, axis=2)
    q, k, v, z = (field.reshape(hidden, -1) for field in fields)
    b, a = (part.reshape(hidden, -1) for part in np.split(ba.reshape(hidden, heads, -1), 2, axis=2))
    taps = _taps(mixer)
    sorted_weights = {
        "W_in_qkv": np.concatenate([q, k, v], 1),
        "W_in_z": z,
        "W_in_a": a,
        "W_in_b": b,
        "conv_weight": taps,
        **_gates(mixer),
    }
    parts = np.split(taps, np.cumsum([mixer.key_dim, mixer.key_dim]))
    own = dict(zip(("conv_q", "conv_k", "conv_v"), parts, strict=True))
    return sorted_weights, {"W_qkvz": qkvz, "W_ba": ba, **own, **_gates(mixer)}


def _kimi_linear(mixer: Any) -> tuple[Arrays, Arrays]:
    gate = mixer.forget_gate
    taps = dict(zip(("conv_q", "conv_k", "conv_v"), np.split(_taps(mixer), 3), strict=True))
    weights = {
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
    return weights, weights


def _cut(states: Arrays) -> Arrays:
    """One window as those of q, k and v in Qwen3-Next: value channels are half of all."""
    window = states["conv_state"]
    parts = np.split(window, (window.shape[1] // 4, window.shape[1] // 2), axis=1)
    windows = dict(zip(("conv_state_q", "conv_state_k", "conv_state_v"), parts, strict=True))
    return {**windows, "recurrent_state": states["recurrent_state"]}


def _as_they_are(states: Arrays) -> Arrays:
    return states


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
        "gdn_block_prefill",
        "qwen3next_block_tkg",
        _SMALL,
        "out_proj",
        _qwen3_next,
        _cut,
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
        _as_they_are,
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
        _as_they_are,
    ),
}
