"""`--emit canonical` reads as mathematics."""

from __future__ import annotations

from collections.abc import Callable

from gdsl.canonical.canonicalize import canonicalize
from gdsl.canonical.text import canonical_text
from gdsl.ir.kernel import Kernel

RULE = """
rule comba[K, V](q[K], p[K], k[K], v[V], decay, beta, state S[K, V]) -> o[V]:
    r = sum[K](p * S)
    S = decay * S + k * (beta * (v - r))
    o = sum[K](q * S)
"""


def test_a_rule_with_a_read_before_the_decay(scan_of: Callable[..., Kernel]) -> None:
    axes = {"q": "K", "p": "K", "k": "K", "v": "V", "decay": "", "beta": ""}
    text = canonical_text(canonicalize(scan_of(RULE, axes, {"decay": "exp(decay)"})))
    assert (
        text
        == """\
kernel scan_comba

  o, S = scan[T] comba
    q := q
    p := p
    k := k
    v := v
    decay := exp(decay)
    beta := beta

    delta rule on S[K, V]
    S' = decay * S    # one factor per head
      log decay: decay
    r = sum[K](p * S)    # pre-decay read
    S_new = S' + k (x) beta * v - k * beta (x) r
    o = sum[K](q * S_new)
"""
    )
