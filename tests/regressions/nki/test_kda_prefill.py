"""Inverses, exponentials and gate forms of emitted KDA prefill kernels, against the recurrence."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gdsl
from gdsl.errors import CompileError

Array = NDArray[Any]
Launch = Callable[..., dict[str, Array]]
FINISHED = ("kda_cte", "kda_cte_bounded")
"""Kernels that take the log decay itself: without a bound, and from -5 on."""
C = 128
"""Tokens per chunk."""


def rows(T: int, *, strength: float = 0.0, K: int = 32, V: int = 16) -> dict[str, Array]:
    """Rows of two heads with unit keys, `strength` times a fixed vector in each."""
    rng = np.random.default_rng(T)
    keys = strength * rng.standard_normal(K) + rng.standard_normal((1, 2, T, K))
    return {
        "query": rng.standard_normal((1, 2, T, K)) * K**-0.5,
        "key": keys / np.linalg.norm(keys, axis=-1, keepdims=True),
        "value": rng.standard_normal((1, 2, T, V)),
        "g": -0.1 * rng.random((1, 2, T, K)),
        "beta": rng.random((1, 2, T)),
        "recurrent_state": rng.standard_normal((1, 2, K, V)),
    }


def raw(T: int, *, gate: float, K: int = 32, V: int = 16) -> dict[str, Array]:
    """Rows of one head for a kernel that computes its gates: f is `gate`, biases are 0."""
    rng = np.random.default_rng(T)
    return {
        "query": rng.standard_normal((1, 1, T, K)),
        "key": rng.standard_normal((1, 1, T, K)),
        "value": rng.standard_normal((1, 1, T, V)),
        "z": rng.standard_normal((1, 1, T, V)),
        "f": np.full((1, 1, T, K), gate),
        "b": rng.standard_normal((1, 1, T)),
        "A_log": np.zeros(1),
        "dt_bias": np.zeros((1, K)),
        "norm_weight": np.ones(V),
        "recurrent_state": rng.standard_normal((1, 1, K, V)),
    }


def close(launch: Launch, run: Launch, name: str, given: Mapping[str, Any], limit: float) -> None:
    """Per head: the largest error in units of the head's rms."""
    got, exact = launch(name, **given), run(name, **given)
    for output, right in exact.items():
        error = np.abs(got[output] - right).max(axis=(-1, -2))
        scale = np.sqrt(np.mean(np.asarray(right) ** 2, axis=(-1, -2)))
        assert (error <= limit * np.maximum(scale, 1e-3)).all(), (output, (error / scale).max())


def test_b01_equal_tokens_stay_finite(launch: Launch) -> None:
    """Slow decay from a raw gate of -12, beta 0.99966: the state is the value just written."""
    T, K, V = C + 16, 32, 4
    given = raw(T, gate=-12.0, K=K, V=V)
    given["key"][:] = given["query"][:] = np.eye(K)[0]
    given["b"][:] = 8.0
    given["recurrent_state"][:] = 0.0
    given["value"][:] = np.where(np.arange(T) % 2 == 0, 1.0, -1.0)[:, None]
    state = launch("kda_prefill_bounded", **given)["recurrent_state"]
    beta, decay = 1 / (1 + math.exp(-8.0)), math.exp(-5 / (1 + math.exp(12.0)))
    exact = 0.0
    for token in range(T):
        exact = (1 - beta) * decay * exact + beta * (1.0 if token % 2 == 0 else -1.0)
    assert exact == pytest.approx(-0.99932953, abs=1e-7)
    np.testing.assert_allclose(state[0, 0, 0], exact, rtol=3e-6)


@pytest.mark.parametrize("name", FINISHED)
@pytest.mark.parametrize(
    ("strength", "beta", "log"),
    [(3.0, (0.9, 1.0), -1e-3), (3.0, (0.9, 1.0), -3.0), (3.0, (0.9, 0.9), -1e-4), (1e4, (1, 1), 0)],
    ids=["b02 slow decay", "b02 fast decay", "b04 decay near 1", "identical keys"],
)
def test_b02_b04_correlated_keys(
    launch: Launch, run: Launch, name: str, strength: float, beta: tuple[float, float], log: float
) -> None:
    given = rows(C, strength=strength)
    given["g"][:] = log
    given["beta"] = np.random.default_rng(2).uniform(*beta, (1, 2, C))
    close(launch, run, name, given, 5e-5)


@pytest.mark.parametrize("T", [1, 20, 65, 79, C + 1])
def test_b07_tails_of_a_chunk_under_strong_decay(launch: Launch, run: Launch, T: int) -> None:
    given = rows(T)
    given["g"][:] = -10.0
    close(launch, run, "kda_cte", given, 3e-5)


@pytest.mark.parametrize("name", FINISHED)
@pytest.mark.parametrize("log", [-0.7, -1.5, -5.0])
def test_b08_uniform_decay_that_overflows_a_chunk(
    launch: Launch, run: Launch, name: str, log: float
) -> None:
    """-5 everywhere: factors of e^40 and e^-40 in every sub-block, sums of -640 in the chunk."""
    given = rows(C + 5)
    given["g"][:] = log
    close(launch, run, name, given, 3e-5)


@pytest.mark.parametrize("name", FINISHED)
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_b09_decay_of_one_is_the_plain_delta_rule(launch: Launch, name: str, zero: float) -> None:
    """S_T = 1 - 2^-T for beta 0.5, value 1 and one key; a channel that decays changes nothing."""
    T, K = 50, 32
    given = rows(T, K=K, V=4)
    given["key"][:] = given["query"][:] = np.eye(K)[0]
    given["value"][:], given["beta"][:] = 1.0, 0.5
    given["recurrent_state"][:] = 0.0
    given["g"][:] = np.where(np.arange(K) % 2 == 0, zero, -5.0)
    out = launch(name, **given)["out"]
    np.testing.assert_allclose(
        out[0, 0, :, 0], 1 - 0.5 ** np.arange(1.0, T + 1), rtol=1e-6, atol=1e-7
    )


def test_b12_the_unbounded_gate_is_exact(launch: Launch, run: Launch) -> None:
    """A_log = log 16 and raw gate 1: -21 per token, -336 over sixteen."""
    given = raw(C + 5, gate=1.0)
    given["A_log"][:] = math.log(16.0)
    close(launch, run, "kda_prefill", given, 3e-5)


def test_b12_a_factor_that_needs_a_bound_is_refused_without_one() -> None:
    text = gdsl.load("kda_cte").file.source.text
    asked = f"{text}\nschedule kda_cte:\n    subblock = 16\n"
    with pytest.raises(CompileError) as caught:
        gdsl.compile(gdsl.loads(asked, kernel="kda_cte"))
    (found,) = caught.value.diagnostics
    assert found.code == "E0515"
    assert "no lower bound" in " ".join(found.notes)


@pytest.mark.parametrize(
    ("f", "A_log", "log"), [(0.5, 0.5, -3.4758060), (0.5, None, -3.1122967), (8.0, 0.0, -4.9983232)]
)
def test_b50_the_bound_is_a_sigmoid_and_no_clamp(
    launch: Launch, f: float, A_log: float | None, log: float
) -> None:
    """One token that writes nothing leaves the state times its decay."""
    given = raw(1, gate=f - 0.2)
    given["dt_bias"][:] = 0.2
    given["b"][:] = -1e4
    given["recurrent_state"][:] = 1.0
    if A_log is None:
        del given["A_log"]
    else:
        given["A_log"][:] = A_log
    state = launch("kda_prefill_bounded", **given)["recurrent_state"]
    np.testing.assert_allclose(np.log(state), log, rtol=1e-5)


@pytest.mark.parametrize("name", ["kda_prefill", "kda_prefill_bounded"])
def test_raw_gates_at_both_ends(launch: Launch, run: Launch, name: str) -> None:
    given = raw(C + 5, gate=0.0)
    given["f"] = np.resize(np.array([-8.0, 0.0, 8.0]), given["f"].shape)
    close(launch, run, name, given, 3e-5)


def test_operands_in_bf16_are_not_held_to_less_than_the_definition_in_fp32() -> None:
    """Nothing is written and the state decays by e^-64: the error is that of a sum of 133 gates."""
    report = gdsl.verify(
        gdsl.load("kda_prefill_bounded"),
        shape={"B": 1, "Hk": 4, "G": 1, "T": 133, "K": 128, "V": 128},
        targets=["trn2"],
        lnc=[1],
        regimes=["beta-0"],
        precisions=["bf16"],
        settings={"inverse": "schur"},
    )
    report.assert_ok()
