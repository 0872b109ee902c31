"""Where the channels of a field lie among those of a tensor."""

from __future__ import annotations

import numpy as np
import pytest

from backends.nki.program.numbers import Name, evaluate
from backends.nki.schedules.chunked.runs import Part, part_of, runs_of
from gdsl.errors import CompileError
from gdsl.ir.dims import Atom, Dim, Packed, Product

HK, G, K, V = Atom("Hk"), Atom("G"), Atom("K"), Atom("V")
SIZES = {"Hk": 3, "G": 2, "K": 5, "V": 4, "columns": 3 * (2 * 5 + 2 * 2 * 4)}
VALUES = Product((G, V))
WITHIN = Product((HK, Packed("P", (("q", K), ("k", K), ("v", VALUES), ("z", VALUES)))))
"""Fields side by side within each key head."""
ALONE = Packed("C", tuple((name, Product((HK, K))) for name in "qk"))
"""Fields of all heads side by side."""


def channels(dims: tuple[Dim, ...], part: Part) -> list[int]:
    """The places of a field's channels, in their order."""
    runs = runs_of(dims, part, Name("columns"), None)
    first, run, step = (evaluate(n, SIZES) for n in (runs.first, runs.run, runs.step))
    (own,) = part_of(dims, part)
    atoms = own.parts if isinstance(own, Product) else (own,)
    count = int(np.prod([SIZES[atom.axis] for atom in atoms if isinstance(atom, Atom)]))
    return [first + c // run * step + c % run for c in range(count)]


@pytest.mark.parametrize(("field", "first", "last"), [("q", 0, 5), ("v", 10, 18), ("z", 18, 26)])
def test_fields_within_each_head(field: str, first: int, last: int) -> None:
    expected = np.arange(SIZES["columns"]).reshape(3, 26)[:, first:last].reshape(-1)
    assert channels((WITHIN,), (("P", field),)) == expected.tolist()


def test_fields_of_all_heads_are_one_run() -> None:
    assert channels((ALONE,), (("C", "k"),)) == list(range(15, 30))


def test_a_field_alone_has_its_axes_in_one_dimension() -> None:
    assert part_of((WITHIN,), (("P", "v"),)) == (Product((HK, G, V)),)
    assert part_of((WITHIN,), ()) == (WITHIN,)


def test_channels_that_no_run_or_step_describes_are_refused() -> None:
    inner = Packed("R", (("a", V), ("b", V)))
    outer = Packed("P", (("q", K), ("k", K)))
    with pytest.raises(CompileError, match="neither side by side nor in runs"):
        runs_of((Product((HK, outer, G, inner)),), (("P", "q"), ("R", "b")), Name("columns"), None)
