"""Offsets of slots that one transfer brings in, as the emitted function finds them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from itertools import product

import pytest

from gdsl import api

Spacings = Callable[[list[int]], tuple[int, int, int] | None]


@pytest.fixture(scope="module")
def spacings_of() -> Spacings:
    """The function of the emitted text, which is plain Python."""
    tree = ast.parse(api.compile(api.load("gdn_cte"), target="trn2").text)
    found = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "spacings_of"]
    names: dict[str, Spacings] = {}
    exec(compile(ast.Module([*found], []), "emitted", "exec"), names)
    return names["spacings_of"]


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        ([7], (1, 0, 0)),
        ([3, 3, 3], (3, 0, 0)),
        ([0, 5, 10, 15], (4, 5, 0)),
        ([0, 1, 4, 5, 8, 9], (2, 1, 4)),
        ([4, 4, 6, 6], (2, 0, 2)),
        # A team of lanes that begins within a key head, or ends within one.
        ([1, 4, 5, 8], (2, 3, 4)),
        ([1, 4, 5, 8, 9], None),
        ([0, 1, 4, 5, 8], None),
        ([0, 1, 4, 6], None),
        # No access pattern leads back: value heads go round the key heads.
        ([4, 0], None),
        ([3, 4, 0, 1], None),
    ],
)
def test_what_one_transfer_describes(
    spacings_of: Spacings, offsets: list[int], expected: tuple[int, int, int] | None
) -> None:
    assert spacings_of(offsets) == expected


@pytest.mark.parametrize(("outer", "inner"), [*product((1, 2, 5), (1, 2, 3))])
def test_every_two_levels_are_found(spacings_of: Spacings, outer: int, inner: int) -> None:
    offsets = [11 + 100 * i + 7 * j for i in range(outer) for j in range(inner)]
    found = spacings_of(offsets)
    assert found is not None
    many, near, far = found
    again = [11 + far * i + near * j for i in range(len(offsets) // many) for j in range(many)]
    assert again == offsets
