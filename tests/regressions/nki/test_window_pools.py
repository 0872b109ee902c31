"""Windows and states in pools of slots, over prompts: `gdn_mixer_prefill_pool` and its like."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gdsl
from gdsl.errors import CompileError

Launch = Callable[..., dict[str, NDArray[Any]]]
Run = Callable[..., dict[str, NDArray[Any]]]
POOLS = ("conv_pool", "state_pool")
LIBRARY = files("kernels_dsl").joinpath("gdn_block_prefill.gdn").read_text(encoding="utf-8")


def mixer(*changes: tuple[str, str]) -> str:
    """The text of `gdn_mixer_prefill_pool` alone, changed."""
    text = LIBRARY[LIBRARY.index("kernel gdn_mixer_prefill_pool") :]
    text = text[: text.index("\nshapes")]
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return f"use delta_rule, gates, norms, conv\n{text}"


def call(text: str, seed: int = 3, **sizes: int) -> dict[str, Any]:
    """Arguments of a kernel in fp32 where it leaves the choice."""
    definition = gdsl.loads(text) if "\n" in text else gdsl.load(text)
    given = {"N": 9, "Hk": 1, "G": 2, "K": 16, "V": 8, "W": 4} | sizes
    drawn = gdsl.random_inputs(definition, given, seed)
    wide = {item.name for item in definition.kernel.inputs if not hasattr(item.dtype, "value")}
    wide |= {s.argument for s in definition.kernel.states if not hasattr(s.dtype, "value")}
    return {n: a.astype(np.float32) if n in wide else a.copy() for n, a in drawn.items()}


def close(got: NDArray[Any], right: NDArray[Any], limit: float = 3e-5) -> None:
    """In units of the rms of the whole."""
    difference = np.abs(got.astype(np.float64) - right)
    assert difference.max(initial=0.0) <= limit * np.sqrt(np.mean(right.astype(float) ** 2))


def near(got: NDArray[Any], right: NDArray[Any]) -> None:
    """As bf16 operands allow."""
    assert np.isfinite(got.astype(np.float64)).all()
    error = np.sqrt(np.mean((got.astype(np.float64) - right) ** 2))
    assert error <= 2.5e-2 * np.sqrt(np.mean(right.astype(np.float64) ** 2))


READ, WRITE = [7, -1, 3, 8, -1, 2, 9], [6, 9, 3, -1, 5, 2, -7]
"""Of nine slots: another one, none, the same, read only, written only, the same, none."""
SKIPPED, WRITTEN, KEPT = [1, 6], [6, 3, 5, 2], [0, 1, 4, 7, 8]


@pytest.mark.parametrize("lnc", [1, 2])
@pytest.mark.parametrize("lengths", [None, [37, 9, 0, 2, 1, 37, 5]])
@pytest.mark.parametrize("kernel", ["gdn_mixer_prefill_pool", "gdn_block_prefill_pool"])
def test_b22_rows_with_any_slots(
    launch: Launch, run: Run, kernel: str, lengths: list[int] | None, lnc: int
) -> None:
    """NaN in rows without a slot, behind lengths, in slots of rows that start anew."""
    hidden = {"Hid": 128} if "block" in kernel else {}
    given = call(kernel, B=7, T=37, **hidden)
    given |= {"read": np.array(READ, np.int32), "write": np.array(WRITE, np.int32)}
    given["has_initial_state"] = np.array([False, True, True, True, True, False, True])
    given["valid_len"] = np.array(lengths or [37] * 7, np.int32)
    tokens = [n for n in ("hidden", "x", "z", "a", "b") if n in given]
    for name in tokens:
        given[name][SKIPPED] = np.nan
        for row, length in enumerate(given["valid_len"]):
            given[name][row, length:] = np.nan
    if lengths is None:
        del given["valid_len"]
    for pool in POOLS:
        given[pool][[0, 1, 4, 7]] = np.nan
        given[pool][2] = np.inf
    exact, got = run(kernel, **given), launch(kernel, lnc=lnc, **given)
    assert (got["core_out"][SKIPPED] == 0).all()
    agree = near if hidden else close
    agree(got["core_out"], exact["core_out"])
    for pool in POOLS:
        agree(got[pool][WRITTEN], exact[pool][WRITTEN])
        assert got[pool][KEPT].tobytes() == given[pool][KEPT].tobytes()


@pytest.mark.parametrize("lnc", [1, 2])
def test_prompts_of_several_blocks_of_tokens(launch: Launch, run: Run, lnc: int) -> None:
    """Windows of later blocks of 512 tokens come from the tokens before, not from the pool."""
    given = call("gdn_mixer_prefill_pool", B=3, T=515)
    given |= {"read": np.array([8, -1, 0], np.int32), "write": np.array([3, -1, 0], np.int32)}
    given |= {
        "valid_len": np.array([515, 515, 513], np.int32),
        "has_initial_state": np.ones(3, bool),
    }
    name = "gdn_mixer_prefill_pool"
    exact, got = run(name, **given), launch(name, lnc=lnc, **given)
    for output, right in exact.items():
        close(got[output], right, 1e-4)


def test_a_prompt_in_parts_is_the_whole_prompt(launch: Launch) -> None:
    """37 tokens as 16, 2 and 19; window and state wait in their slots, which began with NaN."""
    name = "gdn_mixer_prefill_pool"
    given = call(name, B=1, T=37) | {
        "read": np.array([4], np.int32),
        "write": np.array([4], np.int32),
    }
    del given["valid_len"]
    for pool in POOLS:
        given[pool][4] = np.nan
    whole = launch(name, **{**given, "has_initial_state": np.array([False])})
    pools, parts = {pool: given[pool] for pool in POOLS}, []
    for first, last in ((0, 16), (16, 18), (18, 37)):
        tokens = {n: given[n][:, first:last] for n in ("x", "z", "a", "b")}
        flag = {"has_initial_state": np.array([first > 0])}
        part = launch(name, **{**given, **pools, **tokens, **flag})
        pools = {pool: part[pool] for pool in POOLS}
        parts.append(part["core_out"])
    close(np.concatenate(parts, axis=1), whole["core_out"], 1e-4)
    for pool in POOLS:
        close(pools[pool][4], whole[pool][4])
        others = [n for n in range(9) if n != 4]
        assert pools[pool][others].tobytes() == given[pool][others].tobytes()


WINDOW = "X[N, C, W] = conv_pool[N at read -> write] inplace or zeros unless has_initial_state"


@pytest.mark.parametrize("lengths", [True, False])
def test_a_skipped_row_keeps_a_window_in_no_pool(launch: Launch, run: Run, lengths: bool) -> None:
    text = mixer((WINDOW, "X[B, C, W] = conv_pool inplace"))
    given = call(text, B=3, T=9)
    given |= {"read": np.array([8, -1, 0], np.int32), "write": np.array([3, -1, 0], np.int32)}
    given["x"][1] = np.nan
    if lengths:
        given["valid_len"] = np.array([3, 9, 9], np.int32)
    else:
        del given["valid_len"]
    exact, got = run(text, **given), launch(text, **given)
    for name, right in exact.items():
        close(got[name], right, 1e-4)
    assert got["conv_pool"][1].tobytes() == given["conv_pool"][1].tobytes()


@pytest.mark.parametrize("name", ["kda_block_prefill", "qwen3next_block_prefill"])
def test_three_windows_and_a_state_in_pools(name: str) -> None:
    """Other layers of the library, their rows in slots."""
    file = name if name.startswith("kda") else "qwen3next"
    text = files("kernels_dsl").joinpath(f"{file}.gdn").read_text(encoding="utf-8")
    text = text[text.index(f"kernel {name}:") :]
    text = text[: text.index("\nshapes")].replace("axes B,", "axes B, N,", 1)
    clause = r"state \1[N, \2 = \3[N at read -> write] inplace or zeros unless keep"
    text = re.sub(r"state (\w+: \w+)\[B, (.*\]) = (\w+) inplace( or zeros)?", clause, text)
    more = "    input read, write: i32[B]\n    input keep: bool[B]\n    input valid_len"
    text = text.replace("    input valid_len", more, 1)
    heads = {"H": 2, "R": 16} if file == name else {"Hk": 2, "G": 2}
    report = gdsl.verify(
        gdsl.loads(f"use delta_rule, gates, norms, conv\n{text}\n"),
        shape={"B": 4, "N": 8, "T": 20, "Hid": 128, "K": 16, "V": 16, "W": 4, **heads},
        targets=["trn2"],
        lnc=(1,),
        regimes=["slots", "reset"],
        settings={"inverse": "schur"},
        precisions=["widened"],
    )
    assert report.ok, report


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            [(WINDOW, WINDOW.replace("at read", "at write"))],
            "a window in a pool whose slots are not those of the rule's state",
        ),
        (
            [("scan[T < valid_len] causal", "scan[T] causal")],
            "a window whose rows have other lengths than those of a rule with a pool",
        ),
    ],
)
def test_rows_that_are_not_those_of_the_rule(changes: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(CompileError, match=message) as caught:
        _ = gdsl.compile(gdsl.loads(mixer(*changes))).text
    assert caught.value.diagnostics[0].span is not None
