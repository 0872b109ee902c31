"""Whole kernels by name. Imports nothing of ours.

`REFERENCES[name](arguments)` takes the arrays of one call by name and returns its outputs by name,
in float64 without any rounding. Head maps are written out as index arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from numpy.typing import NDArray

from tests.references import blocks, decode, family, prefill
from tests.references.pools import pooled

Reference = Callable[[Mapping[str, Any]], dict[str, NDArray[Any]]]

LAYER_POOLS = {"conv_pool": "conv_state", "state_pool": "recurrent_state"}

REFERENCES: dict[str, Reference] = {
    "gdn_tkg": partial(decode.gdn_rows, given="state_in", returned="state_out"),
    "gdn_tkg_bf16_state": partial(
        decode.gdn_rows, given="recurrent_state", returned="recurrent_state"
    ),
    "gdn_tkg_vk": partial(
        decode.gdn_rows, given="recurrent_state", returned="recurrent_state", transposed=True
    ),
    "gdn_tkg_grouped": decode.gdn_tkg_grouped,
    "gdn_tkg_pool": decode.gdn_tkg_pool,
    "kda_tkg": decode.kda_columns,
    "kda_tkg_softplus": decode.kda_columns,
    "kda_tkg_kimi_linear": partial(decode.kda_layer, bounded=False),
    "kda_tkg_glm": partial(decode.kda_layer, bounded=True),
    "qwen3next_step": decode.qwen3next_step,
    "gdn_cte": prefill.gdn_cte,
    "gdn_cte_wide_beta": prefill.gdn_cte,
    "gdn_cte_varlen": partial(prefill.gdn_cte, every=3),
    "gdn_prefill": prefill.gdn_prefill,
    "gdn_prefill_wide_beta": partial(prefill.gdn_prefill, beta_range=2.0, eps=1e-5),
    "gdn_prefill_pool": pooled(prefill.gdn_prefill, {"pool": "recurrent_state"}, "out"),
    "kda_prefill_pool": pooled(
        partial(prefill.kda_prefill, bounded=False), {"pool": "recurrent_state"}, "out"
    ),
    "kda_cte": prefill.kda_cte,
    "kda_cte_bounded": prefill.kda_cte,
    "kda_cte_checkpoints": partial(prefill.kda_cte, every=3),
    "kda_prefill": partial(prefill.kda_prefill, bounded=False),
    "kda_prefill_bounded": partial(prefill.kda_prefill, bounded=True),
    "gdn_tkg_tokens": prefill.gdn_tkg_tokens,
    "kda_verify": prefill.kda_verify,
    "gdn_verify": prefill.gdn_verify,
    "gdn_block_tkg": blocks.gdn_block_tkg,
    "gdn_block_tkg_inplace": partial(
        blocks.gdn_block_tkg, window="conv_state", state="recurrent_state"
    ),
    "gdn_block_tkg_fp8": blocks.gdn_block_tkg_fp8,
    "gdn_block_tkg_pool": blocks.gdn_block_tkg_pool,
    "gdn_block_verify": blocks.gdn_block_verify,
    "gdn_block_prefill": blocks.gdn_block_prefill,
    "gdn_mixer_prefill": blocks.gdn_mixer_prefill,
    "gdn_block_prefill_pool": pooled(blocks.gdn_block_prefill, LAYER_POOLS, "core_out"),
    "gdn_mixer_prefill_pool": pooled(blocks.gdn_mixer_prefill, LAYER_POOLS, "core_out"),
    "qwen3next_block_tkg": blocks.qwen3next_block_tkg,
    "qwen3next_block_prefill": blocks.qwen3next_block_prefill,
    "kda_block_tkg": blocks.kda_block_tkg,
    "kda_block_prefill": blocks.kda_block_prefill,
    "gdn_conv1d_decode": partial(blocks.conv1d, activated=True),
    "gdn_conv1d_prefill": partial(blocks.conv1d, activated=True),
    "causal_conv1d_prefill": partial(blocks.conv1d, activated=False),
    "gdn_conv1d_decode_w1": partial(blocks.conv1d, activated=True, narrow=True),
    "gdn_conv1d_prefill_w1": partial(blocks.conv1d, activated=True, narrow=True),
    "deltanet_fwd": family.deltanet_fwd,
    "comba_fwd": family.comba_fwd,
    "gdn2_fwd": family.gdn2_fwd,
    "delta_product_fwd": family.delta_product_fwd,
    "rwkv7_fwd": family.rwkv7_fwd,
    "mamba2_fwd": family.mamba2_fwd,
    "retnet_fwd": family.retnet_fwd,
    "lightning_fwd": family.lightning_fwd,
    "gla_fwd": family.gla_fwd,
    "simple_gla_fwd": family.simple_gla_fwd,
    "hgrn2_fwd": family.hgrn2_fwd,
    "dplr_fwd": family.dplr_fwd,
}
