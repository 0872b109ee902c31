"""One mistake, one error: what follows from a mistake is not reported as well."""

from __future__ import annotations

import pytest

import gdsl

KERNEL = """
use delta_rule, norms
kernel k:
    axes B, H, K, V
    input q, k: f32[B, H, K]
    input v: f32[B, H, V]
    input decay, beta: f32[B, H] in [0, 1]
    state S: f32[B, H, K, V] = s0
    o, S = step gated_delta(l2norm[K](q), l2norm[K](k), v, decay, beta, S)
    output out: f32[B, H, V] = o
    output s1: f32[B, H, K, V] = S
"""


@pytest.mark.parametrize(
    ("old", "new", "code", "places"),
    [
        ("axes B, H, K, V", "axes B, H, K", "E0201", 4),
        ("use delta_rule, norms", "use delta_rule", "E0201", 2),
        ("use delta_rule, norms", "use delta_rul, norms", "E0203", 1),
        (", beta, S)", ", S)", "E0209", 2),
        ("kernel k:", "fn f(x) = g(x)\nfn g(x) = f(x)\nkernel k:", "E0206", 1),
        ("beta, S)", "bete, S)", "E0201", 1),
    ],
)
def test_one_mistake(old: str, new: str, code: str, places: int) -> None:
    """`places` counts the span and its labels: every place of an unknown name is shown."""
    (found,) = gdsl.check(KERNEL.replace(old, new))
    assert found.code == code
    assert 1 + len(found.labels) == places


def test_a_schedule_for_an_unknown_machine_is_not_silently_without_effect() -> None:
    (found,) = gdsl.check(KERNEL + "schedule k on trn9:\n    reads = bf16\n")
    assert found.code == "E0201"
    assert "unknown target `trn9`" in found.message
    assert found.span is not None
    assert found.span.text == "trn9"
    for target in ("trn2", "trn3"):
        assert gdsl.check(KERNEL + f"schedule k on {target}:\n    reads = f32\n") == ()
