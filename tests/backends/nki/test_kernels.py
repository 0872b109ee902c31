"""Kernels of the library, emitted and simulated, against the interpreter."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gdsl import api

Agrees = Callable[..., None]
SMALL = {"K": 16, "V": 8}
CASES = {
    "gdn_tkg": {"B": 2, "Hv": 33, "K": 16, "V": 144},
    "gdn_tkg_grouped": {"B": 2, "Hk": 5, "G": 3, **SMALL},
    "gdn_tkg_bf16_state": {"B": 2, "Hv": 18, **SMALL},
    "gdn_tkg_vk": {"B": 2, "Hv": 5, **SMALL},
    "gdn_tkg_pool": {"B": 4, "N": 7, "Hk": 3, "G": 3, **SMALL},
    "gdn_tkg_tokens": {"B": 2, "T": 3, "Hk": 5, "G": 7, **SMALL},
    "kda_tkg": {"B": 3, "H": 13, **SMALL},
    "kda_tkg_softplus": {"B": 1, "H": 5, **SMALL},
    "kda_tkg_kimi_linear": {"B": 1, "H": 5, **SMALL},
    "kda_tkg_glm": {"B": 1, "H": 5, **SMALL},
    "kda_verify": {"B": 3, "T": 3, "P": 4, "H": 5, **SMALL},
}
REGIMES = {"gdn_tkg_pool": ("slots", "reset"), "kda_verify": ("padding",)}


@pytest.mark.parametrize("kernel", CASES)
def test_agrees_with_the_interpreter(kernel: str, agrees: Agrees) -> None:
    agrees(api.load(kernel), CASES[kernel], regimes=REGIMES.get(kernel, ("gaussian",)))


RECURRENT = (
    "gdn_cte",
    "comba_fwd",
    "delta_product_fwd",
    "gla_fwd",
    "mamba2_fwd",
    "retnet_fwd",
    "rwkv7_fwd",
)
SIZES = {
    "B": 2,
    "T": 4,
    "Hk": 1,
    "G": 2,
    "Hv": 2,
    "H": 3,
    "N": 2,
    "R": 3,
    "P": 16,
    "K": 16,
    "V": 16,
}


@pytest.mark.parametrize("kernel", RECURRENT)
def test_prefill_kernels_token_by_token(kernel: str, agrees: Agrees) -> None:
    """What the chunked schedule lacks is emitted in recurrent form."""
    agrees(api.load(kernel), SIZES, settings={"form": "recurrent"})


CHUNKED = (
    "comba_fwd",
    "gdn2_fwd",
    "gla_fwd",
    "hgrn2_fwd",
    "lightning_fwd",
    "mamba2_fwd",
    "retnet_fwd",
    "simple_gla_fwd",
)


@pytest.mark.parametrize("kernel", CHUNKED)
def test_the_rest_of_the_family_in_chunks(kernel: str, agrees: Agrees) -> None:
    agrees(api.load(kernel), {**SIZES, "B": 1, "T": 133}, settings={"form": "chunked"})
