"""Projections of several tokens in front of a rule that goes token by token."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from typing import Any

import numpy as np
import pytest

import gdsl
from gdsl.shapes import resolve_sizes

Agree = Callable[..., tuple[dict[str, Any], dict[str, Any]]]
SIZES = {"B": 2, "T": 5, "P": 6, "Hid": 256, "Hk": 3, "G": 2, "K": 16, "V": 24, "W": 4}


@pytest.mark.parametrize("target", ["trn2", "trn3"])
def test_a_layer_that_restarts_after_the_accepted_tokens(agree: Agree, target: str) -> None:
    """Both cores give the bits of one."""
    _, one = agree("gdn_block_verify", SIZES, target=target)
    _, two = agree("gdn_block_verify", SIZES, target=target, lnc=2)
    for name, array in one.items():
        assert array.tobytes() == two[name].tobytes(), name


def test_what_lies_behind_the_end_may_be_anything(agree: Agree) -> None:
    def shorten(arrays: dict[str, Any]) -> None:
        arrays["valid_len"] = np.array([0, 3], np.int32)
        arrays["hidden"][0] = np.nan
        arrays["hidden"][1, 3:] = np.nan

    _, found = agree("gdn_block_verify", SIZES, lnc=2, change=shorten)
    assert not np.any(found["core_out"][0])
    assert not np.any(found["core_out"][1, 3:])


def test_more_tokens_than_a_bank_of_psum_holds(agree: Agree) -> None:
    few = {**SIZES, "B": 60, "T": 9, "P": 9, "Hid": 128, "Hk": 1, "G": 1, "K": 8, "V": 8}
    agree("gdn_block_verify", few)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("gdn_block_prefill", "gdn_block_prefill"),
        ("kda_block_prefill", "kda_block_prefill"),
        ("qwen3next", "qwen3next_block_prefill"),
    ],
)
def test_layers_of_the_library_token_by_token(agree: Agree, file: str, name: str) -> None:
    """Low-rank gates, three windows, packed weights: prompts, but not in chunks."""
    text = (resources.files("kernels_dsl") / f"{file}.gdn").read_text(encoding="utf-8")
    head, *kernels = text.split("\nkernel ")
    (own,) = (kernel for kernel in kernels if kernel.startswith(f"{name}:"))
    one = f"{head}\nkernel {own}"
    sizes = resolve_sizes(gdsl.load(name).kernel, gdsl.load(name).shapes, "small")
    one += f"\nschedule {name} on trn2:\n    form = recurrent\n"
    agree(one, {**sizes, "B": 2, "T": 6}, lnc=2)
