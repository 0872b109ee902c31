"""Terms of many tokens at once: what stays a function, and what leaves a sum."""

from __future__ import annotations

import pytest

from backends.nki.program.numbers import Name
from backends.nki.select.batched import BatchAlgebra
from backends.nki.select.terms import Fold, Op, Product, Stage, Term


@pytest.fixture
def algebra() -> BatchAlgebra:
    return BatchAlgebra()


@pytest.fixture
def z(algebra: BatchAlgebra) -> Term:
    return algebra.leaf("z", "V", True, Stage.INPUTS)


@pytest.mark.parametrize("name", ["sigmoid", "softplus"])
def test_functions_with_a_table_stay_whole(algebra: BatchAlgebra, z: Term, name: str) -> None:
    term = algebra.op(name, z)
    assert isinstance(term, Op)
    assert (term.name, term.args) == (name, (z,))


def test_a_value_times_its_sigmoid_is_one_function(algebra: BatchAlgebra, z: Term) -> None:
    o = algebra.leaf("o", "V", True, Stage.OUTPUTS)
    term = algebra.op("mul", o, algebra.op("mul", z, algebra.op("sigmoid", z)))
    assert isinstance(term, Product)
    names = [f.name for f in term.factors if isinstance(f, Op)]
    assert names == ["silu"]
    assert o in term.factors


def test_a_sigmoid_of_something_else_stays(algebra: BatchAlgebra, z: Term) -> None:
    o = algebra.leaf("o", "V", True, Stage.OUTPUTS)
    term = algebra.op("mul", o, algebra.op("sigmoid", z))
    assert isinstance(term, Product)
    assert {f.name for f in term.factors if isinstance(f, Op)} == {"sigmoid"}


def test_factors_without_the_axis_leave_a_sum(algebra: BatchAlgebra, z: Term) -> None:
    r = algebra.leaf("r", None, True, Stage.INPUTS)
    scaled = algebra.product(r, z)
    term = algebra.fold("sum", algebra.product(scaled, scaled), Name("V"))
    assert isinstance(term, Product)
    (fold,) = (f for f in term.factors if isinstance(f, Fold))
    assert [f for f in term.factors if f is not fold] == [r, r]
    assert fold.arg is algebra.product(z, z)


def test_a_maximum_keeps_its_factors(algebra: BatchAlgebra, z: Term) -> None:
    r = algebra.leaf("r", None, True, Stage.INPUTS)
    term = algebra.fold("max", algebra.product(r, z), Name("V"))
    assert isinstance(term, Fold)
