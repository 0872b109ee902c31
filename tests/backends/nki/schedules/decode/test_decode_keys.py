"""More than 128 keys a head, token by token: `key_tiles`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from backends.simulator import RUNNER
from gdsl import api
from gdsl.errors import CompileError
from gdsl.estimate import estimate
from gdsl.ir.dtypes import Dtype
from gdsl.regimes.typed import random_arguments
from gdsl.shapes import resolve_sizes

Agrees = Callable[..., None]
SIZES = {"B": 2, "N": 5, "H": 5, "Hv": 5, "Hk": 2, "G": 2, "T": 3, "P": 4, "V": 24}
EXPONENTS = """
use delta_rule, norms
kernel decays:
    axes B, H, keys, V
    input q, k: f32[B, H, keys]
    input v: f32[B, H, V]
    input g: f32[keys] in (-8, 0]
    input beta: f32[B, H] in [0, 1]
    state S: f32[B, H, keys, V] = s0
    o, S = step gated_delta[keys, V](q, l2norm[keys](k), v, exp(g), beta, S)
    output out: f32[B, H, V] = o
    output s1: f32[B, H, keys, V] = S
"""


@pytest.mark.parametrize(
    ("kernel", "K", "tiles"),
    [
        ("gdn_tkg", 129, 2),
        ("gdn_tkg_vk", 160, 2),
        ("gdn_tkg_bf16_state", 256, 2),
        ("gdn_tkg_pool", 130, 2),
        ("gdn_tkg_tokens", 192, 2),
        ("kda_tkg", 192, 2),
        ("kda_tkg_glm", 300, 3),
        ("kda_verify", 130, 2),
        ("dplr_fwd", 400, 4),
    ],
)
def test_agrees_with_the_interpreter(kernel: str, K: int, tiles: int, agrees: Agrees) -> None:
    """Keys on rows and on partitions, states [K, V], [V, K], of two bytes, in a pool, kept."""
    regimes = ("gaussian", "padding", "slots")
    agrees(api.load(kernel), {**SIZES, "K": K}, regimes=regimes, settings={"key_tiles": tiles})


@pytest.mark.parametrize("tiles", [1, 2])
def test_a_decay_that_is_the_same_for_all_rows(tiles: int, agrees: Agrees) -> None:
    """One column a tile of keys is not one column; and `keys` is a name of the text's own."""
    sizes = {**SIZES, "keys": 100 * tiles}
    agrees(api.loads(EXPONENTS), sizes, settings={"key_tiles": tiles})


POOL = """
use delta_rule, norms
kernel pooled:
    axes B, N, T <= 16, H, K, V
    input q, k: f32[K, B, H, T]
    input v: f32[B, H, T, V]
    input rd, wr: i32[B]
    state S: f32[N, H, K, V] = pool[N at rd -> wr] inplace
    o, S = scan[T] gated_delta(q, l2norm[K](k), v, 0.9, 0.5, S)
    output out: f32[B, H, T, V] = o
    output pool = S
"""


def test_whole_numbers_of_rows_on_partitions_of_keys(agrees: Agrees) -> None:
    """Which rows have a slot is asked where keys lie on partitions: integers, in all tiles."""
    regimes, settings = ("gaussian", "slots"), {"key_tiles": 2}
    agrees(api.loads(POOL), {**SIZES, "K": 131}, regimes=regimes, settings=settings)


def test_few_keys_lie_on_two_tiles_as_well(agrees: Agrees) -> None:
    """One text for every K up to 256."""
    sizes = {**SIZES, "K": 6}
    agrees(api.load("gdn_tkg"), sizes, regimes=("rectangular",), settings={"key_tiles": 2})


@pytest.mark.parametrize("kernel", ["gdn_tkg", "kda_tkg_softplus", "gdn_tkg_bf16_state"])
def test_what_is_left_over_in_the_last_tile_is_never_read_unwritten(kernel: str) -> None:
    definition = api.load(kernel)
    axes = {axis.name for axis in definition.kernel.axes}
    given = {axis: size for axis, size in {**SIZES, "K": 131}.items() if axis in axes}
    sizes = resolve_sizes(definition.kernel, (), given)
    arguments = random_arguments(definition.kernel, sizes, 0, Dtype.F32)
    if kernel == "kda_tkg_softplus":
        arguments["out"] = np.zeros_like(arguments["v"])
    program = api.compile(definition, target="trn2", settings={"key_tiles": 2})
    strict = {"uninitialized": "fault"}
    RUNNER.simulate(program.text, kernel, arguments, settings=strict)


def test_twice_the_keys_take_less_than_twice_the_time() -> None:
    """A delta is formed and spread once for all tiles."""
    definition = api.load("gdn_tkg")

    def micros(K: int, tiles: int) -> float:
        sizes = resolve_sizes(definition.kernel, (), f"B=1,Hv=32,K={K},V=128")
        settings = {"key_tiles": tiles}
        report = estimate(definition, sizes, target="trn2", settings=settings).report
        return report.estimate.program_order

    assert micros(256, 2) < 1.8 * micros(128, 1)


def test_channels_of_a_convolution_are_refused() -> None:
    with pytest.raises(CompileError, match="`key_tiles=2` is not possible: channels of a head"):
        _ = api.compile(api.load("gdn_block_tkg"), target="trn2", settings={"key_tiles": 2}).text
