"""Prompts in chunks whose states lie in a pool of slots, or start anew where a flag says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gdsl
from gdsl.errors import CompileError

Launch = Callable[..., dict[str, NDArray[Any]]]
Run = Callable[..., dict[str, NDArray[Any]]]

TEXT = """
use delta_rule
kernel pooled:
    axes B, N, Hk, G, T, P, K, V, Hv = (Hk G)
    input q, k: f32[B, Hk, T, K]
    input v: f32[B, Hv, T, V]
    input g: f32[B, Hv, T] in (-inf, 0]
    input beta: f32[B, Hv, T] in [0, 1]
    input read, write: i32[B]
    input keep: bool[B]
    input valid_len: i32[B] in [0, inf) or T
    assume sum[K](k * k) <= 1.01
    state S: f32[N, Hv, K, V] = pool[N at read -> write] inplace or zeros unless keep
    o, S, Ss = scan[T < valid_len every 16 -> P] gated_delta(q, k, v, exp(g), beta, S)
    output out: f32[B, Hv, T, V] = o
    output pool = S
    output after: f32[B, P, Hv, K, V] = Ss

schedule pooled:
    form = chunked
    chunk = 16
"""
VALUE_FIRST = TEXT.replace("f32[N, Hv, K, V]", "f32[N, Hv, V, K]")
NO_LENGTHS = TEXT.replace(" < valid_len", "").replace(
    "    input valid_len: i32[B] in [0, inf) or T\n", ""
)
"""Rows without a slot are the only ones without tokens."""
PER_CHANNEL = TEXT.replace("g: f32[B, Hv, T]", "g: f32[B, Hv, T, K]")


def short(text: str) -> str:
    """Without the states on the way, which a few tokens have none of."""
    text = text.replace("T, P, K", "T, K").replace("S, Ss =", "S =").replace(" every 16 -> P", "")
    return text.replace("    output after: f32[B, P, Hv, K, V] = Ss\n", "")


FLAGGED = short(TEXT).replace("f32[N, Hv, K, V]", "f32[B, Hv, K, V]")
FLAGGED = FLAGGED.replace("pool[N at read -> write]", "pool").replace("B, N,", "B,")
FLAGGED = FLAGGED.replace("    input read, write: i32[B]\n", "")


def prompts(
    B: int, N: int, T: int, *, Hk: int = 1, G: int = 2, K: int = 16, V: int = 8, seed: int = 3
) -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(seed)
    keys = rng.standard_normal((B, Hk, T, K))
    found = {
        "q": rng.standard_normal((B, Hk, T, K)) * K**-0.5,
        "k": keys / np.linalg.norm(keys, axis=-1, keepdims=True),
        "v": rng.standard_normal((B, Hk * G, T, V)),
        "g": -0.1 * rng.random((B, Hk * G, T)),
        "beta": rng.random((B, Hk * G, T)),
        "pool": rng.standard_normal((N, Hk * G, K, V)),
    }
    arrays = {name: array.astype(np.float32) for name, array in found.items()}
    return {**arrays, "keep": np.ones(B, bool)}


def rows(slots: list[int]) -> NDArray[np.int32]:
    return np.array(slots, np.int32)


def close(got: NDArray[Any], right: NDArray[Any]) -> None:
    """In units of the rms of the whole."""
    assert np.abs(got - right).max(initial=0.0) <= 3e-5 * np.sqrt(np.mean(right**2))


READ, WRITE = [7, -1, 3, 8, -1, 2, 9], [6, 9, 3, -1, 5, 2, -7]
"""Of nine slots: another one, none, the same, read only, written only, the same, none."""


@pytest.mark.parametrize("lnc", [1, 2])
@pytest.mark.parametrize("lengths", [None, [37, 30, 16, 0, 15, 33, 1]])
@pytest.mark.parametrize("text", [TEXT, VALUE_FIRST, PER_CHANNEL], ids=["KV", "VK", "over K"])
def test_b22_rows_with_any_slots(
    launch: Launch, run: Run, text: str, lengths: list[int] | None, lnc: int
) -> None:
    """A row without a slot holds NaN and gets zeros; slots that nobody writes keep their bits."""
    given = prompts(7, 9, 37)
    given |= {"read": rows(READ), "write": rows(WRITE)}
    given["keep"][[2, 4]] = False
    given["pool"][[0, 1, 3, 4]] = np.nan
    if text == VALUE_FIRST:
        given["pool"] = np.swapaxes(given["pool"], 2, 3).copy()
    if text == PER_CHANNEL:
        given["g"] = np.repeat(given["g"][..., None], 16, axis=-1)
    for name in ("q", "k", "v", "g", "beta"):
        given[name][[1, 6]] = np.nan
    if lengths is not None:
        given["valid_len"] = rows(lengths)
    exact, got = run(text, **given), launch(text, lnc=lnc, **given)
    assert (got["out"][[1, 6]] == 0).all()
    assert (got["after"][[1, 6]] == 0).all()
    written = [6, 3, 5, 2]
    for name, chosen in (("out", slice(None)), ("after", slice(None)), ("pool", written)):
        close(got[name][chosen], exact[name][chosen])
    kept = [0, 1, 4, 7, 8]
    assert got["pool"][kept].tobytes() == given["pool"][kept].tobytes()


@pytest.mark.parametrize("kernel", ["gdn_prefill_pool", "kda_prefill_pool"])
def test_pools_of_the_library(launch: Launch, run: Run, kernel: str) -> None:
    sizes = {"B": 7, "N": 9, "Hk": 1, "G": 2, "T": 37, "K": 16, "V": 8}
    drawn = gdsl.random_inputs(gdsl.load(kernel), sizes, seed=22)
    given = {
        name: array.astype(np.float32) if array.dtype.itemsize == 2 else array.copy()
        for name, array in drawn.items()
    }
    given |= {"read": rows(READ), "write": rows(WRITE), "valid_len": rows([37, 9, 0, 20, 1, 37, 5])}
    given["has_initial_state"] = np.arange(7) % 3 > 0
    given["pool"][[1, 7]] = np.nan
    exact, got = run(kernel, **given), launch(kernel, **given)
    close(got["out"], exact["out"])
    close(got["pool"][[6, 3, 5, 2]], exact["pool"][[6, 3, 5, 2]])
    kept = [0, 1, 4, 7, 8]
    assert got["pool"][kept].tobytes() == given["pool"][kept].tobytes()


@pytest.mark.parametrize("slot", [4, 2**31 - 1, -(2**31)])
def test_b29_a_slot_beyond_the_pool_is_no_address(launch: Launch, slot: int) -> None:
    given = prompts(1, 4, 5)
    got = launch(short(NO_LENGTHS), read=rows([slot]), write=rows([slot]), **given)
    assert (got["out"] == 0).all()
    assert got["pool"].tobytes() == given["pool"].tobytes()


def test_rows_across_teams_of_lanes(launch: Launch, run: Run) -> None:
    """Sixteen heads are on chip together; eight rows of five heads begin and end anywhere."""
    given = prompts(8, 9, 20, G=5)
    given |= {"read": rows([8, 1, 2, -1, 4, 5, -1, 7]), "write": rows([0, 1, -1, 3, 4, 5, -1, 6])}
    exact, got = run(TEXT, **given), launch(TEXT, **given)
    close(got["out"], exact["out"])
    close(got["pool"], exact["pool"])


@pytest.mark.parametrize("lnc", [1, 2])
def test_columns_of_one_head(launch: Launch, run: Run, lnc: int) -> None:
    """Value columns above 128 are lanes of their own, and two cores share those of one head."""
    given = prompts(1, 3, 16, G=1, V=192)
    given |= {"read": rows([2]), "write": rows([0])}
    exact, got = run(TEXT, **given), launch(TEXT, lnc=lnc, **given)
    close(got["out"], exact["out"])
    close(got["pool"], exact["pool"])
    assert got["pool"][1:].tobytes() == given["pool"][1:].tobytes()


def test_a_prompt_in_parts_is_the_whole_prompt(launch: Launch) -> None:
    """37 tokens as 16, 20 and 1, the state waiting in its slot, which began with NaN."""
    given = prompts(1, 3, 37)
    given["pool"][1] = np.nan
    slots = {"read": rows([1]), "write": rows([1])}
    whole = launch(short(TEXT), **slots, **{**given, "keep": np.array([False])})
    pool, parts = given["pool"], []
    for first, last in ((0, 16), (16, 36), (36, 37)):
        tokens = {n: given[n][:, :, first:last] for n in ("q", "k", "v", "g", "beta")}
        part = launch(short(TEXT), **slots, **tokens, pool=pool, keep=np.array([first > 0]))
        pool = part["pool"]
        parts.append(part["out"])
    close(np.concatenate(parts, axis=2), whole["out"])
    close(pool[1], whole["pool"][1])
    assert pool[[0, 2]].tobytes() == given["pool"][[0, 2]].tobytes()


@pytest.mark.parametrize("lnc", [1, 2])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("inplace", [True, False])
def test_b28_a_flag_starts_rows_of_a_plain_state_anew(
    launch: Launch, run: Run, lnc: int, missing: bool, inplace: bool
) -> None:
    """Rows 0 and 3 find NaN; rows of five heads lie across teams."""
    text = FLAGGED
    if not inplace:
        text = text.replace(" inplace", "").replace("output pool", "output new: f32[B, Hv, K, V]")
    given = prompts(4, 4, 20, G=5)
    given["keep"][[0, 3]] = False
    given["pool"][[0, 3]] = np.nan
    if missing:
        del given["pool"]
    exact, got = run(text, **given), launch(text, lnc=lnc, **given)
    for name, right in exact.items():
        close(got[name], right)


def test_the_batch_may_be_any_dimension_of_the_state(launch: Launch, run: Run) -> None:
    given = prompts(3, 3, 20)
    given["keep"][1] = False
    given["pool"][1] = np.nan
    given["pool"] = np.swapaxes(given["pool"], 0, 1).copy()
    text = FLAGGED.replace("f32[B, Hv, K", "f32[Hv, B, K")
    exact, got = run(text, **given), launch(text, **given)
    for name, right in exact.items():
        close(got[name], right)


@pytest.mark.parametrize("pooled", [True, False])
def test_the_batch_may_be_declared_anywhere(launch: Launch, run: Run, pooled: bool) -> None:
    text = short(TEXT) if pooled else FLAGGED
    text = text.replace("axes B, ", "axes ").replace("(Hk G)\n", "(Hk G), B\n", 1)
    given = prompts(3, 4 if pooled else 3, 20, Hk=2)
    given["keep"][1] = False
    if pooled:
        given |= {"read": rows([3, 2, -1]), "write": rows([3, 0, 1])}
    exact, got = run(text, **given), launch(text, **given)
    for name, right in exact.items():
        close(got[name], right)


def test_a_flag_that_is_not_over_rows_is_refused() -> None:
    text = FLAGGED.replace("keep: bool[B]", "keep: bool[Hk]")
    with pytest.raises(CompileError, match=r"the flag `keep` is over \[Hk\], which is no"):
        _ = gdsl.compile(gdsl.loads(text)).text
