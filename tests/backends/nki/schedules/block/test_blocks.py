"""Kernels of several sections agree with the interpreter: shapes, cores, ways to hold a window."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import resources
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

BLOCK = {"B": 2, "Hid": 128, "Hk": 2, "G": 2, "K": 16, "V": 16, "W": 4}
Agree = Callable[..., tuple[dict[str, Any], dict[str, Any]]]


@pytest.mark.parametrize("lnc", [1, 2])
@pytest.mark.parametrize(
    "changed",
    [
        {"B": 1, "Hk": 1, "G": 3},
        {"B": 1, "Hk": 3, "K": 32, "V": 24},
        {"B": 5, "Hk": 3, "G": 1, "W": 2},
        {"B": 3, "Hk": 16, "G": 3, "K": 8, "V": 8, "Hid": 256},
    ],
    ids=str,
)
def test_block_shapes(agree: Agree, changed: dict[str, int], lnc: int) -> None:
    """Odd head counts, other value widths, more rows than partitions."""
    agree("gdn_block_tkg", {**BLOCK, **changed}, lnc=lnc)


@pytest.mark.parametrize("entries", [128, 129, 512])
def test_block_of_many_entries(agree: Agree, entries: int) -> None:
    """As many as partitions, one more, and as many as a bank of PSUM holds."""
    agree("gdn_block_tkg", {**BLOCK, "B": entries, "Hk": 1, "G": 1, "K": 8, "V": 8}, lnc=2)


def test_cores_give_equal_bits(agree: Agree) -> None:
    sizes = {**BLOCK, "Hk": 3}
    _, one = agree("gdn_block_tkg", sizes)
    _, two = agree("gdn_block_tkg", sizes, lnc=2)
    for name, array in one.items():
        assert array.tobytes() == two[name].tobytes(), name


@pytest.mark.parametrize("target", ["trn2", "trn3"])
@pytest.mark.parametrize(
    "changed", [{"B": 1, "Hk": 3, "K": 32, "V": 24}, {"B": 3, "Hk": 16, "G": 3, "K": 8, "V": 8}]
)
def test_weights_in_eight_bits(agree: Agree, changed: dict[str, int], target: str) -> None:
    """One tile of rows, and several; both cores give the bits of one."""
    sizes = {**BLOCK, **changed}
    _, one = agree("gdn_block_tkg_fp8", sizes, target=target)
    _, two = agree("gdn_block_tkg_fp8", sizes, target=target, lnc=2)
    for name, array in one.items():
        assert array.tobytes() == two[name].tobytes(), name


@pytest.mark.parametrize("target", ["trn2", "trn3"])
@pytest.mark.parametrize("kernel", ["gdn_block_tkg_inplace", "qwen3next_block_tkg"])
def test_other_texts_of_the_block(agree: Agree, kernel: str, target: str) -> None:
    agree(kernel, BLOCK, target=target, lnc=2)


def test_kda_block(agree: Agree) -> None:
    sizes = {"B": 2, "Hid": 128, "H": 3, "K": 16, "V": 16, "W": 4, "R": 24}
    agree("kda_block_tkg", sizes, lnc=2)


def test_low_rank_gates_in_eight_bits(agree: Agree) -> None:
    """What moves through the second weight stays in 16 bits, as the text rounds it."""
    text = (resources.files("kernels_dsl") / "kda_block_tkg.gdn").read_text(encoding="utf-8")
    narrow = re.sub(r"input (W_f_up.*): bf16", r"input \1: f8e4m3", text)
    assert narrow != text
    sizes = {"B": 2, "Hid": 128, "H": 3, "K": 16, "V": 16, "W": 4, "R": 24}
    agree(narrow, sizes, lnc=2)


@pytest.mark.parametrize("lnc", [1, 2])
def test_pool_of_windows_and_states(agree: Agree, lnc: int) -> None:
    """Rows that only read, only write, start anew, or are skipped with NaN for hidden values."""

    def change(arrays: dict[str, Any]) -> None:
        arrays["read"] = np.array([3, -1, 2, -1, 6], np.int32)
        arrays["write"] = np.array([5, 1, 9, 9, 6], np.int32)
        arrays["has_initial_state"] = np.array([True, True, True, True, False])
        arrays["hidden"][3] = np.nan
        arrays["conv_pool"][6], arrays["state_pool"][6] = np.nan, np.nan

    sizes = {**BLOCK, "B": 5, "N": 7}
    wanted, found = agree("gdn_block_tkg_pool", sizes, lnc=lnc, change=change)
    np.testing.assert_array_equal(found["core_out"][3].astype(np.float32), 0.0)
    for name in ("conv_pool", "state_pool"):
        kept = [0, 2, 3, 4]
        assert found[name][kept].tobytes() == wanted[name][kept].tobytes()


CONVOLVED = """
use delta_rule, gates, norms, conv
kernel convolved:
    axes B, Hk, G, Hv = (Hk G), K, V, {window}, C = q:(Hk K) | k:(Hk K) | v:(Hk G V)
    input x: {dtype}[B, C]
    input w: f32[C, W]
    input beta: f32[B, Hv] in [0, 1]
    state win: bf16[B, C, {held}] = window{optional}
    state S: f32[B, Hv, K, V] = s0
{run}
    q, k, v = unpack[C](silu(y))
    o, S = step gated_delta(l2norm[K](q), l2norm[K](k), v, 0.5, beta, S)
    output out: f32[B, Hv, V] = o
    output window_out: bf16[B, C, {held}] = win
    output s1: f32[B, Hv, K, V] = S
"""
WHOLE = "    y, win = step causal_conv(bf16(x), w, win)"
PAST = "    past, now = unpack[W](w)\n    y, win = step causal_conv_past(bf16(x), past, now, win)"


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize(
    ("window", "held", "run", "optional"),
    [
        ("W", "W", WHOLE, ""),
        ("M, W = past:M | now:1", "M", PAST, ""),
        ("W", "W", WHOLE, " or zeros"),
    ],
    ids=["all columns", "one column less", "no window at first"],
)
def test_one_token_from_hbm(
    agree: Agree, dtype: str, window: str, held: str, run: str, optional: str
) -> None:
    """The convolution and the delta rule without projections; tokens are rounded where told."""
    text = CONVOLVED.format(dtype=dtype, window=window, held=held, run=run, optional=optional)
    sizes = {"B": 3, "Hk": 3, "G": 2, "K": 16, "V": 8}
    sizes |= {"M": 3} if held == "M" else {"W": 4}
    agree(text, sizes, lnc=2)
    if optional:
        agree(text, sizes, change=lambda arrays: arrays.pop("window"))


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    B=st.integers(1, 4),
    T=st.integers(1, 6),
    Hk=st.integers(1, 4),
    G=st.integers(1, 3),
    K=st.sampled_from((4, 16)),
    V=st.sampled_from((8, 20)),
    W=st.integers(1, 5),
    lnc=st.sampled_from((1, 2)),
    data=st.data(),
)
def test_tokens_of_any_shape(
    agree: Agree, B: int, T: int, Hk: int, G: int, K: int, V: int, W: int, lnc: int, data: Any
) -> None:
    """Any number of tokens against any window; lengths and kept tokens from none to all."""
    numbers = st.lists(st.integers(0, T), min_size=B, max_size=B)

    def change(arrays: dict[str, Any]) -> None:
        arrays["accepted"] = np.array(data.draw(numbers), np.int32)
        arrays["valid_len"] = np.array(data.draw(numbers), np.int32)

    sizes = {"B": B, "T": T, "P": T + 1, "Hk": Hk, "G": G, "K": K, "V": V, "W": W}
    agree("gdn_verify", sizes, lnc=lnc, change=change)


@pytest.mark.parametrize(
    "sizes",
    [
        {"B": 90, "T": 3, "Hk": 2, "G": 2, "K": 4, "V": 4},
        {"B": 1, "T": 2, "Hk": 130, "G": 1, "K": 4, "V": 4},
        {"B": 2, "T": 2, "Hk": 50, "G": 3, "K": 4, "V": 4},
    ],
    ids=["two teams of entries", "more heads than partitions", "more rows than partitions"],
)
def test_tokens_of_many_rows(agree: Agree, sizes: dict[str, int]) -> None:
    agree("gdn_verify", {**sizes, "P": sizes["T"] + 1, "W": 4}, lnc=2)


POOLED = """
use delta_rule, conv
kernel pooled:
    axes B, N, T <= 16, H, K, V, W
    input x: bf16[B, T, (H V)]
    input w: f32[(H V), W]
    input k: f32[B, T, H, K]
    input beta: f32[B, T, H] in [0, 1]
    input n: i32[B] in [0, 16]
    input read, write: i32[B]
    input keep: bool[B]
    state win: bf16[N, (H V), W] = windows[N at read -> write] inplace or zeros unless keep
    state S: f32[N, H, K, V] = pool[N at read -> write] inplace or zeros unless keep
    v, win = scan[T < n] causal_conv(x, w, win)
    o, S = scan[T < n] gated_delta(k / K, k / K, v, 0.5, beta, S)
    output out: f32[B, T, H, V] = o
    output windows = win
    output pool = S
"""


@pytest.mark.parametrize("lnc", [1, 2])
def test_tokens_in_a_pool(agree: Agree, lnc: int) -> None:
    """Several tokens from slots: fresh, read-only and skipped rows, sequences that end early."""

    def change(arrays: dict[str, Any]) -> None:
        arrays["read"] = np.array([3, -1, 2, -1, 6], np.int32)
        arrays["write"] = np.array([5, 1, 9, 9, 6], np.int32)
        arrays["keep"] = np.array([True, True, True, True, False])
        arrays["n"] = np.array([3, 2, 1, 3, 0], np.int32)

    sizes = {"B": 5, "N": 7, "T": 3, "H": 3, "K": 8, "V": 16, "W": 4}
    wanted, found = agree(POOLED, sizes, lnc=lnc, change=change)
    kept = [0, 2, 3, 4]
    for name in ("windows", "pool"):
        assert found[name][kept].tobytes() == wanted[name][kept].tobytes()
