"""Kernels from text for the tests of plans."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gdsl.canonical.canonicalize import canonicalize
from gdsl.canonical.form import CanonicalKernel
from gdsl.ir.kernel import Schedule
from gdsl.semantics.elaborate import elaborate
from gdsl.source import Source
from gdsl.syntax.parse import parse

GATED = """
rule gated[K, V](q[K], k[K], v[V], decay[K?], beta, state S[K, V]) -> o[V]:
    S = decay * S
    r = sum[K](k * S)
    S = S + k * (beta * (v - r))
    o = sum[K](q * S)
kernel gated_scan:
    axes B, T, H, K, V
    dtypes X in {dtypes}
    input q, k: X[B, T, H, K];  input v: X[B, T, H, V]
    input g: f32[B, T, H{channel}]{gate};  input beta: f32[B, T, H]{beta}
    {assume}
    state S: f32[B, H, K, V] = s0 or zeros
    o, S = scan[T] gated(q, {key}, v, {decay}, beta, S)
    output out: f32[B, T, H, V] = o
    output s1: f32[B, H, K, V] = S
"""


@pytest.fixture
def compiled() -> Callable[[str], tuple[CanonicalKernel, Schedule | None]]:
    """Compile a text of one kernel; its schedule, if it has one."""

    def build(text: str) -> tuple[CanonicalKernel, Schedule | None]:
        module, _ = elaborate(parse(Source("test.gdn", text)), lambda name: None)
        (kernel,) = module.kernels
        return canonicalize(kernel), next(iter(module.schedules), None)

    return build


@pytest.fixture
def gated(
    compiled: Callable[[str], tuple[CanonicalKernel, Schedule | None]],
) -> Callable[..., CanonicalKernel]:
    """A gated delta rule over tokens; what is declared about its inputs can be changed."""

    def build(
        *,
        gate: str = " in (-inf, 0]",
        beta: str = " in [0, 1]",
        assume: str = "assume sum[K](k * k) <= 1.01",
        key: str = "k",
        decay: str = "exp(g)",
        channels: bool = False,
        dtypes: str = "bf16, f32",
    ) -> CanonicalKernel:
        text = GATED.format(
            gate=gate,
            beta=beta,
            assume=assume,
            key=key,
            decay=decay,
            channel=", K" if channels else "",
            dtypes=dtypes,
        )
        return compiled(text)[0]

    return build
