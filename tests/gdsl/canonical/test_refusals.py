"""What does not fit the canonical form: the code, and the term that is underlined."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from gdsl.canonical.canonicalize import canonicalize
from gdsl.diagnostics.codes import CODES
from gdsl.errors import CompileError
from gdsl.ir.kernel import Kernel

AXES = {"q": "K", "k": "K", "p": "K", "v": "V", "decay": "", "beta": ""}
OUT = "    o = sum[K](q * S)\n"
UPDATE = "    S = decay * S + k * v\n"

CASES = {
    "square": ("    S = S * S\n" + OUT, "E0401", "S * S"),
    "exponential": ("    S = decay * exp(S)\n" + OUT, "E0401", "exp(S)"),
    "maximum": ("    S = S + k * v * max[K](S)\n" + OUT, "E0401", "max[K](S)"),
    "rounded state": ("    S = bf16(S) + k * v\n" + OUT, "E0401", "bf16(S)"),
    "read times read": (
        "    S = S + k * (sum[K](k * S) * sum[K](p * S))\n" + OUT,
        "E0401",
        "sum[K](k * S) * sum[K](p * S)",
    ),
    "matrix": ("    S = decay * S + exp(k * v)\n" + OUT, "E0402", "exp(k * v)"),
    "two writes": ("    S = decay * S + k * v + p * (v * v)\n" + OUT, "E0402", "p * (v * v)"),
    "forgets": ("    S = k * v + 0 * k * v\n    S = S + k * v\n" + OUT, "E0402", None),
    "value gate on the read": (
        "    S = S + k * (v * (beta - sum[K](k * S)))\n" + OUT,
        "E0402",
        "v",
    ),
    "decay along both axes": ("    S = (k * v) * S + k * v\n" + OUT, "E0403", "(k * v) * S"),
    "two reads": (
        "    S = decay * S - k * sum[K](k * S) - p * sum[K](p * S)\n" + OUT,
        "E0404",
        "p * sum[K](p * S)",
    ),
    "both axes": (
        "    S = S + k * v * sum[K](k * sum[V](v * S))\n" + OUT,
        "E0404",
        "sum[K](k * sum[V](v * S))",
    ),
    "scaled output": (UPDATE + "    o = v * sum[K](q * S)\n", "E0405", "v"),
}


def rule_with(body: str) -> tuple[str, dict[str, str]]:
    """A rule that takes the arguments its body mentions, and their axes."""
    used = {name: own for name, own in AXES.items() if re.search(rf"\b{name}\b", body)}
    params = ", ".join(f"{name}[{own}]" if own else name for name, own in used.items())
    return f"rule bad[K, V]({params}, state S[K, V]) -> o[V]:\n{body}", used


@pytest.mark.parametrize("name", CASES)
def test_refused(name: str, scan_of: Callable[..., Kernel]) -> None:
    body, code, underlined = CASES[name]
    kernel = scan_of(*rule_with(body))
    with pytest.raises(CompileError) as caught:
        canonicalize(kernel)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == code
    assert code in CODES
    assert diagnostic.help
    assert diagnostic.label
    assert diagnostic.span is not None
    if underlined is not None:
        assert diagnostic.span.text == underlined


def test_every_run_that_does_not_fit_is_named(kernel_of: Callable[[str], Kernel]) -> None:
    kernel = kernel_of(
        """
rule first[K, V](k[K], v[V], state S[K, V]):
    S = S * S + k * v
rule second[K, V](k[K], v[V], state S[K, V]):
    S = exp(S) + k * v
kernel two:
    axes B, T, K, V
    input k: f32[B, T, K];  input v: f32[B, T, V]
    state S: f32[B, K, V] = s0
    state R: f32[B, K, V] = r0
    S = scan[T] first(k, v, S)
    R = scan[T] second(k, v, R)
    output s1: f32[B, K, V] = S
    output r1: f32[B, K, V] = R
"""
    )
    with pytest.raises(CompileError) as caught:
        canonicalize(kernel)
    assert [d.code for d in caught.value.diagnostics] == ["E0401", "E0401"]


SUBSTEPS = {
    "written before": ("    S = decay * S + q * sum[N](v)\n", "E0406"),
    "decayed inside": ("", "E0406"),
}


@pytest.mark.parametrize("name", SUBSTEPS)
def test_sub_steps_refused(name: str, kernel_of: Callable[[str], Kernel]) -> None:
    before, code = SUBSTEPS[name]
    inner = "S = S + k * (beta * (v - sum[K](k * S)))"
    if name == "decayed inside":
        inner = "S = beta * S + k * v"
    kernel = kernel_of(f"""
rule write[K, V](k[K], v[V], beta, state S[K, V]):
    {inner}
rule product[K, V, N](q[K], k[N, K], v[N, V], decay, beta[N], state S[K, V]) -> o[V]:
{before}    S = scan[N] write(k, v, beta * decay, S)
    o = sum[K](q * S)
kernel delta_product:
    axes B, T, N, K, V
    input q: f32[B, T, K];  input k: f32[B, T, N, K];  input v: f32[B, T, N, V]
    input g: f32[B, T];  input beta: f32[B, T, N]
    state S: f32[B, K, V] = s0
    o, S = scan[T] product(q, k, v, exp(g), beta, S)
    output out: f32[B, T, V] = o
    output s1: f32[B, K, V] = S
""")
    with pytest.raises(CompileError) as caught:
        canonicalize(kernel)
    assert [d.code for d in caught.value.diagnostics] == [code]
