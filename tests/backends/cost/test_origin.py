"""Origin comments of emitted texts."""

from __future__ import annotations

import pytest

from backends.cost.origin import origins

TEXT = '''\
"""Docstring."""
def kernel(x):
    # gdn_tkg.gdn:12
    a = load(x)

    b = f(a)
    for h in range(4):
        # delta_rule.gdn:7: S = g * S
        c = g(b)
        d = h(c)  # norms.gdn:3
        e = i(d)
    # plain comment
    j = k(e)


def other():
    l = m()
'''


@pytest.mark.parametrize(
    ("code", "origin"),
    [
        ("a = load(x)", "gdn_tkg.gdn:12"),
        ("b = f(a)", "gdn_tkg.gdn:12"),
        ("c = g(b)", "delta_rule.gdn:7"),
        ("d = h(c)", "norms.gdn:3"),
        ("e = i(d)", "delta_rule.gdn:7"),
        ("j = k(e)", None),
        ("l = m()", None),
    ],
)
def test_comments_hold_until_the_next_or_the_end_of_the_block(
    code: str, origin: str | None
) -> None:
    line = next(n for n, text in enumerate(TEXT.split("\n"), 1) if code in text)
    assert origins(TEXT).get(line) == origin


def test_a_text_without_origins() -> None:
    assert origins("x = 1\n# see f.py:3\n") == {}
