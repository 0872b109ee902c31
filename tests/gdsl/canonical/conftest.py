"""Kernels from text for the tests of the canonical form."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gdsl.ir.kernel import Kernel
from gdsl.semantics.elaborate import elaborate
from gdsl.source import Source
from gdsl.syntax.parse import parse

KernelOf = Callable[[str], Kernel]

_SCAN = """
kernel scan_{name}:
    axes B, T, H, K, V
    {inputs}
    state S: f32[B, H, K, V] = s0 or zeros
    o, S = scan[T] {call}
    output out: f32[B, T, H, {result}] = o
    output s1: f32[B, H, K, V] = S
"""


@pytest.fixture
def kernel_of() -> KernelOf:
    """Compile a text of one kernel (rules before it) to typed IR."""

    def build(text: str) -> Kernel:
        module, _ = elaborate(parse(Source("test.gdn", text)), lambda name: None)
        (kernel,) = module.kernels
        return kernel

    return build


@pytest.fixture
def scan_of(kernel_of: KernelOf) -> Callable[..., Kernel]:
    """Compile a rule, run over tokens: `axes` gives each argument's own axes, `args` its value."""

    def build(
        rule: str, axes: dict[str, str], args: dict[str, str] | None = None, result: str = "V"
    ) -> Kernel:
        name = rule.strip().split("[")[0].removeprefix("rule ")
        inputs = "; ".join(
            f"input {x}: f32[{', '.join(['B', 'T', 'H', *own])}]" for x, own in axes.items()
        )
        values = ", ".join((args or {}).get(x, x) for x in axes)
        call = f"{name}({values}, S)"
        return kernel_of(rule + _SCAN.format(name=name, inputs=inputs, call=call, result=result))

    return build
