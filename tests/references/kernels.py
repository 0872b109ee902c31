"""Whole kernels by name. Imports nothing of ours.

`REFERENCES[name](arguments)` takes the arrays of one call by name and returns its outputs by name,
in float64 without any rounding. Head maps are written out as index arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from tests.references import decode, family, prefill

REFERENCES: dict[str, Callable[[Mapping[str, Any]], dict[str, NDArray[Any]]]] = {
    function.__name__: function
    for function in (
        decode.gdn_tkg,
        decode.kda_tkg,
        decode.gdn_tkg_pool,
        decode.qwen3next_step,
        decode.gdn_block_tkg,
        prefill.gdn_cte,
        prefill.kda_cte,
        prefill.gdn_verify,
        family.comba_fwd,
        family.gdn2_fwd,
        family.delta_product_fwd,
        family.rwkv7_fwd,
        family.mamba2_fwd,
        family.retnet_fwd,
    )
}
