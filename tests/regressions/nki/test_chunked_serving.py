"""Lengths, order, layouts, head maps and repeats of the emitted chunked kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gdsl
from backends.simulator.run import simulate
from gdsl.errors import CompileError

Launch = Callable[..., dict[str, NDArray[Any]]]
Run = Callable[..., dict[str, NDArray[Any]]]
C = 128

TEXT = """
use delta_rule
kernel prefill:
    axes B, Hk, G, T, K, V, Hv = {map}
    input q, k: f32[B, Hk, T, K]
    input v: f32[B, Hv, T, V]
    input g: f32[B, Hv, T] in (-inf, 0]
    input beta: f32[B, Hv, T] in [0, 1]
    input valid_len: i32[B] in [0, inf) or T
    assume sum[K](k * k) <= 1.01
    state S: f32[{state}] = s0 or zeros
    o, S = scan[T < valid_len] gated_delta(q, k, v, {decay}, beta, S)
    output out: f32[B, Hv, T, V] = o
    output s1: f32[{state}] = S
"""
KV, VK = "B, Hv, K, V", "B, Hv, V, K"


def text(map: str = "(Hk G)", state: str = KV, decay: str = "exp(g)") -> str:
    found = TEXT
    for name, value in (("map", map), ("state", state), ("decay", decay)):
        found = found.replace(f"{{{name}}}", value)
    return found if "g" in decay else found.replace("    input g: f32[B, Hv, T] in (-inf, 0]\n", "")


def rows(
    seed: int, T: int, B: int = 1, Hk: int = 1, G: int = 1, K: int = 16, V: int = 8
) -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(seed)
    keys = rng.standard_normal((B, Hk, T, K))
    return {
        "q": rng.standard_normal((B, Hk, T, K)) * K**-0.5,
        "k": keys / np.linalg.norm(keys, axis=-1, keepdims=True),
        "v": rng.standard_normal((B, Hk * G, T, V)),
        "g": -0.1 * rng.random((B, Hk * G, T)),
        "beta": rng.random((B, Hk * G, T)),
        "s0": rng.standard_normal((B, Hk * G, K, V)),
    }


def close(got: NDArray[Any], right: NDArray[Any], limit: float = 3e-5) -> None:
    """In units of the rms of the whole."""
    assert got.shape == right.shape
    assert np.isfinite(got).all()
    assert np.abs(got - right).max(initial=0.0) <= limit * np.sqrt(np.mean(right**2))


def refused(text: str) -> bool:
    """Whether the text is refused as not emitted, which is never a wrong result."""
    try:
        gdsl.compile(gdsl.loads(text))
    except CompileError as error:
        return error.diagnostics[0].code == "E0521"
    return False


@pytest.mark.parametrize("lengths", [[128, 0, 128], [0, 3, 0], [130, 129, 1], [0, 0, 0]])
def test_b38_b40_b41_rows_of_any_length_know_nothing_of_each_other(
    launch: Launch, lengths: list[int]
) -> None:
    """An empty row returns its state; a row is what it is alone; NaN behind it is not read."""
    given = rows(41, 131, B=3)
    alone = {}
    for row, length in enumerate(lengths):
        for name in ("q", "k", "v", "g", "beta"):
            given[name][row, :, length:] = np.nan
        part = {n: x[row : row + 1] for n, x in given.items()}
        part |= {n: part[n][:, :, : max(length, 1)] for n in part if n != "s0"}
        alone[row] = launch(text(), **part) if length else {"s1": part["s0"]}
    got = launch(text(), **given, valid_len=np.array(lengths, np.int32))
    for row, length in enumerate(lengths):
        assert (got["out"][row, :, length:] == 0).all()
        if length:
            close(got["out"][row, :, :length], alone[row]["out"][0])
        close(got["s1"][row], np.asarray(alone[row]["s1"][0], np.float32))
        if not length:
            assert got["s1"][row].tobytes() == given["s0"][row].astype(np.float32).tobytes()


@pytest.mark.parametrize("pads", [1, 63, 64])
def test_b39_pads_behind_a_prompt_change_nothing(launch: Launch, pads: int) -> None:
    given = rows(39, 70)
    plain = launch(text(), **given)
    behind = {
        n: x if n == "s0" else np.concatenate([x, np.full_like(x[:, :, :pads], np.nan)], 2)
        for n, x in given.items()
    }
    padded = launch(text(), **behind, valid_len=np.array([70], np.int32))
    close(padded["out"][:, :, :70], plain["out"])
    close(padded["s1"], plain["s1"])
    assert (padded["out"][:, :, 70:] == 0).all()


def test_b49_decay_is_applied_and_the_state_is_stored(launch: Launch) -> None:
    """Two calls of one token, g = -1, beta = 0.5, v = 1: 0.5, then 0.5919699."""
    one = np.ones((1, 1, 1, 1))
    call = {
        "q": one, "k": one, "v": one, "g": np.full((1, 1, 1), -1.0),
        "beta": np.full((1, 1, 1), 0.5),
    }  # fmt: skip
    first = launch(text(), **call)
    second = launch(text(), **call, s0=first["s1"])
    assert first["s1"].item() == pytest.approx(0.5)
    assert second["s1"].item() == pytest.approx(0.5919699, rel=1e-6)
    assert second["out"].item() == pytest.approx(0.5919699, rel=1e-6)


def test_b54_no_gate_is_a_gate_of_zero_or_says_that_it_is_not_emitted(launch: Launch) -> None:
    given = rows(54, 140)
    given["g"][:] = 0.0
    gated = launch(text(), **given)
    del given["g"]
    if refused(text(decay="1")):
        return
    ungated = launch(text(decay="1"), **given)
    close(ungated["out"], gated["out"])
    close(ungated["s1"], gated["s1"])


@pytest.mark.parametrize(("K", "V"), [(16, 8), (8, 24)])
def test_b19_a_state_laid_out_value_first_is_the_transposed_one(
    launch: Launch, K: int, V: int
) -> None:
    """K != V, so that neither can be taken for the other."""
    given = rows(19, 133, K=K, V=V)
    key_first = launch(text(), **given)
    turned = {**given, "s0": np.swapaxes(given["s0"], 2, 3).copy()}
    value_first = launch(text(state=VK), **turned)
    assert value_first["s1"].shape == (1, 1, V, K)
    close(np.swapaxes(value_first["s1"], 2, 3), key_first["s1"], 1e-6)
    close(value_first["out"], key_first["out"], 1e-6)


def test_b15_value_heads_read_the_key_head_of_their_map(launch: Launch, run: Run) -> None:
    """Two key heads, three value heads each: j // 3 as it stands in the text; the tiled map j % 2
    is another meaning, got right or refused."""
    given = rows(15, 20, Hk=2, G=3)
    exact = run(text(), **given)
    got = launch(text(), **given)
    close(got["out"], exact["out"])
    tiled = run(text("(G Hk)"), **given)
    assert np.abs(exact["out"] - tiled["out"]).max() > 0.1
    if not refused(text("(G Hk)")):
        close(launch(text("(G Hk)"), **given)["out"], tiled["out"])


@pytest.mark.parametrize("target", ["trn2", "trn3"])
def test_b62_b70_repeats_cores_and_a_state_left_out_give_the_same_bits(
    launch: Launch, target: str
) -> None:
    given = rows(62, 150, Hk=1, G=3)
    given["s0"][:] = 0.0
    first = launch(text(), target=target, **given)
    again = launch(text(), target=target, **given)
    cores = launch(text(), target=target, lnc=2, **given)
    del given["s0"]
    without = launch(text(), target=target, **given)
    for other in (again, cores, without):
        assert {n: x.tobytes() for n, x in other.items()} == {
            n: x.tobytes() for n, x in first.items()
        }


@pytest.mark.parametrize("K", [60, 100])
def test_b32_odd_head_dimensions_with_three_heads(launch: Launch, run: Run, K: int) -> None:
    """What lies behind a head's last channel is another head's, or unwritten (NaN)."""
    given = rows(32, 130, Hk=3, K=K, V=20)
    exact = run(text(), **given)
    got = launch(text(), **given)
    close(got["out"], exact["out"])
    close(got["s1"], exact["s1"])


def test_b05_keys_that_nothing_normalises_are_refused_with_what_to_write() -> None:
    """beta |k|^2 beyond 2 is an unstable system; a chunk's inverse says nothing there."""
    raw = text().replace("    assume sum[K](k * k) <= 1.01\n", "")
    with pytest.raises(CompileError) as error:
        gdsl.compile(gdsl.loads(raw), settings={"form": "chunked"})
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.code == "E0513"
    assert "assume" in f"{diagnostic.help} {diagnostic.notes}"


def checkpointed(seed: int, T: int, lengths: list[int], every: int = C) -> dict[str, Any]:
    """Arguments of `gdn_cte_varlen` in float32, one key head and two value heads."""
    sizes = {"B": len(lengths), "Hk": 1, "G": 2, "T": T, "K": 16, "V": 8}
    found = gdsl.random_inputs(gdsl.load("gdn_cte_varlen"), sizes, seed=seed)
    given = {name: np.asarray(x, np.float32) for name, x in found.items()}
    return {**given, "valid_len": np.array(lengths, np.int32), "checkpoint_every": every}


def test_b72_checkpoints_are_the_states_after_n_and_2n_tokens(launch: Launch) -> None:
    """Two of them in 260 tokens, each the state of a call that ends there; none at the start."""
    given = checkpointed(72, 2 * C + 4, [2 * C + 4])
    got = launch("gdn_cte_varlen", **given)
    assert got["checkpoints"].shape == (1, 2, 2, 16, 8)
    for number in (1, 2):
        upto = {"valid_len": np.array([number * C], np.int32)}
        short = launch("gdn_cte_varlen", **{**given, **upto})
        assert got["checkpoints"][0, number - 1].tobytes() == short["recurrent_state"][0].tobytes()


def test_b65_no_checkpoint_before_its_block_is_complete(launch: Launch) -> None:
    """127 of 128 tokens leave none (exactly 0), the next token makes it."""
    got = launch("gdn_cte_varlen", **checkpointed(65, C + 3, [C - 1, C, 0]))
    assert (got["checkpoints"][[0, 2]] == 0).all()
    assert got["checkpoints"][1, 0].tobytes() == got["recurrent_state"][1].tobytes()
    assert (got["checkpoints"][1] != 0).any()


@pytest.mark.parametrize("lnc", [1, 2])
@pytest.mark.parametrize(("T", "every"), [(C - 1, C), (1, 2 * C), (C + 3, 0)])
def test_b65_a_call_that_is_too_short_for_a_checkpoint_has_none(
    launch: Launch, run: Run, T: int, every: int, lnc: int
) -> None:
    given = checkpointed(65, T, [T, 1], every)
    exact, got = run("gdn_cte_varlen", **given), launch("gdn_cte_varlen", lnc=lnc, **given)
    assert got["checkpoints"].shape == exact["checkpoints"].shape == (2, 0, 2, 16, 8)
    close(got["out"], exact["out"])
    close(got["recurrent_state"], exact["recurrent_state"])


@pytest.mark.parametrize("form", ["chunked", "recurrent"])
def test_b65_the_text_itself_returns_zeros_then(form: str) -> None:
    """No tensor of NKI is empty."""
    given = checkpointed(66, 3, [3, 1])
    program = gdsl.compile(gdsl.load("gdn_cte_varlen"), settings={"form": form}).nki
    result = simulate(program.text, program.entry, given)
    checkpoints = result.outputs[program.returns.index("checkpoints")]
    assert checkpoints.shape == (2, 1, 2, 16, 8)
    assert (checkpoints == 0).all()


def test_b72_a_distance_that_is_not_emitted_is_refused_with_its_number(launch: Launch) -> None:
    with pytest.raises(gdsl.GdslError, match="must be a multiple of the chunk, 128, got 64"):
        launch("gdn_cte_varlen", **checkpointed(64, 130, [130], every=64))


@pytest.mark.parametrize("lengths", [None, [37, 16]])
def test_b72_states_on_the_way_with_and_without_lengths(lengths: list[int] | None) -> None:
    """After every N tokens, whether or not the text knows lengths; every one is written."""
    source = text().replace("T, K, V, Hv", "T, P, K, V, Hv").replace("o, S =", "o, S, Ss =")
    source = source.replace("valid_len] gated", "valid_len every 16 -> P] gated")
    source += "    output after: f32[B, P, Hv, K, V] = Ss\n"
    given = {name: a.astype(np.float32) for name, a in rows(seed=9, T=37, B=2).items()}
    if lengths is None:
        source = source.replace(" < valid_len", "")
        source = source.replace("    input valid_len: i32[B] in [0, inf) or T\n", "")
    else:
        given["valid_len"] = np.array(lengths, np.int32)
    definition = gdsl.loads(source)
    right = gdsl.run(definition, given, precision="float64")
    got = gdsl.run(definition, given, backend="simulator", settings={"chunk": 16})
    assert got["after"].shape == (2, 2, 1, 16, 8)
    for name, array in right.items():
        close(got[name], array)
