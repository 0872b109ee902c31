"""Interpreter and chunked plans in fp32 against the naive references of flash-linear-attention.

Known faults of those references, met here: `naive_recurrent_comba` decays before it reads, where
the paper and the layer's kernels read the state before decay; `naive_retention` multiplies by its
mask after the exponential, which is NaN beyond about 2,800 tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gdsl
from backends.interpreter import RUNNER
from gdsl.algorithm.evaluate_plan import evaluate
from gdsl.pipeline import Compilation
from gdsl.runner import RunOptions

pytestmark = pytest.mark.oracle
BOUND = 3e-6
Case = dict[str, Any]

# Texts over tensors [B, T, H, .]; `{call}` is the recurrence.
PLAIN = """
use delta_rule
kernel plain:
    axes B, Hk, G, Hv = (Hk G), T, K, V
    input q, k: f32[B, T, Hk, K]
    input v: f32[B, T, Hv, V]
    input g: f32[B, T, Hv{channel}] in (-inf, 0]
    {beta}
    state S: f32[B, Hv, K, V] = s0
    {facts}
    o, S = scan[T] {call}
    output out: f32[B, T, Hv, V] = o
    output s1: f32[B, Hv, K, V] = S
"""
BETA = "input beta: f32[B, T, Hv] in [0, 1]"
UNIT = "assume sum[K](k * k) <= 1.01"
DELTA = "gated_delta(q * K ** -0.5, k, v, exp(g), beta, S)"
LINEAR = "linear_attention(q * K ** -0.5, k, v, exp(g), S)"


def plain(call: str, beta: str = BETA, channel: str = "", text: str = PLAIN) -> gdsl.Definition:
    facts = UNIT if beta else ""
    parts = {"call": call, "beta": beta, "channel": channel, "facts": facts}
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", part)
    return gdsl.loads(text)


def tokens_first(case: Case) -> Case:
    """[B, H, T, ...] -> [B, T, H, ...] for everything but states."""
    return {n: x if n in ("s0", "state") else np.swapaxes(x, 1, 2) for n, x in case.items()}


def compare(
    definition: gdsl.Definition, case: Case, e_rms: Callable[..., float], state: bool = True
) -> None:
    """Compare the interpreter, and the kernel's chunked plan on numpy, with the reference."""
    arguments = {name: x for name, x in case.items() if name not in ("out", "state")}
    plan = Compilation(definition).plan
    assert plan.form == "chunked"
    for outputs in (
        RUNNER.run(definition.kernel, arguments, RunOptions("float32")),
        evaluate(plan, arguments, precision="float32"),
    ):
        assert e_rms(outputs["out"], case["out"], (0, 2)) <= BOUND
        if state:
            assert e_rms(outputs["s1"], case["state"], (0, 1)) <= BOUND


@pytest.mark.parametrize(
    ("name", "call", "beta", "channel"),
    [
        ("gated_delta_rule", DELTA, BETA, ""),
        ("kda", DELTA, BETA, ", K"),
        ("gla", LINEAR, "", ", K"),
        ("simple_gla", LINEAR, "", ""),
    ],
)
def test_gated_recurrences(
    fla_cases: dict[str, Case],
    e_rms: Callable[..., float],
    name: str,
    call: str,
    beta: str,
    channel: str,
) -> None:
    compare(plain(call, beta, channel), fla_cases[name], e_rms)


def test_delta_rule(fla_cases: dict[str, Case], e_rms: Callable[..., float]) -> None:
    case = tokens_first(fla_cases["delta_rule"])
    case["g"] = np.zeros_like(case["beta"])
    compare(plain(DELTA), case, e_rms)


def test_gdn2(fla_cases: dict[str, Case], e_rms: Callable[..., float]) -> None:
    case = dict(fla_cases["gdn2"])
    case["q"] = case["q"] / np.sqrt(case["q"].shape[-1])
    compare(gdsl.load("gdn2_fwd"), case, e_rms)


def test_gated_delta_product(fla_cases: dict[str, Case], e_rms: Callable[..., float]) -> None:
    case = dict(fla_cases["gated_delta_product"])
    case["q"] = case["q"] / np.sqrt(case["q"].shape[-1])
    compare(gdsl.load("delta_product_fwd"), case, e_rms)


COMBA = PLAIN.replace("input q, k:", "input q, k, p:").replace(
    "{facts}", "{facts}\n    assume sum[K](p * p) <= 1.01"
)


@pytest.mark.parametrize("corrected", [True, False])
def test_comba_of_the_peer_reads_after_decay(
    fla_cases: dict[str, Case], e_rms: Callable[..., float], corrected: bool
) -> None:
    """Its read key p acts as e^g p of the published rule; taken as p, it must not agree."""
    definition = plain("comba(q * K ** -0.5, p, k, v, exp(g), beta, S)", text=COMBA)
    case = dict(fla_cases["comba"])
    if corrected:
        case["p"] = case["p"] * np.exp(case["g"])[..., None]
        compare(definition, case, e_rms)
        return
    arguments = {name: x for name, x in case.items() if name not in ("out", "state")}
    outputs = RUNNER.run(definition.kernel, arguments, RunOptions("float32"))
    assert e_rms(outputs["out"], case["out"], (0, 2)) > 1e-2


def test_retention(fla_cases: dict[str, Case], e_rms: Callable[..., float]) -> None:
    case = tokens_first(fla_cases["retention"])
    compare(gdsl.load("retnet_fwd"), case, e_rms, state=False)
