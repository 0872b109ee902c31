"""Building terms: flat products, reductions, and operators as instructions have them.

What the language has and no instruction does is rewritten (`rewrites`); numbers that are known when
the kernel is traced stay numbers (`trace_time`).
"""

from __future__ import annotations

from attrs import define, field

from backends.nki.program.numbers import ONE, Number, number
from backends.nki.select.rewrites import REWRITES
from backends.nki.select.terms import (
    Fold,
    Known,
    Leaf,
    Op,
    Product,
    Rounded,
    Stage,
    Term,
    children,
)
from backends.nki.select.trace_time import applied
from gdsl.source import Span


@define
class Algebra:
    """Makes terms; equal terms are the same object."""

    interned: dict[Term, Term] = field(factory=dict)
    names: dict[Term, str] = field(factory=dict)
    """What the text calls a term. A named row value stays one factor: it is computed once."""
    spans: dict[Term, Span] = field(factory=dict)
    """Where the text defines a term."""
    whole: set[Term] = field(factory=set)
    """Products that stay one factor of others, for the sake of the instructions they take."""
    hints: dict[Term, tuple[str, Term]] = field(factory=dict)

    def leaf(self, name: str, wide: str | None, rows: bool, stage: Stage) -> Term:
        """Return a value that is there."""
        return self._one(Leaf(name, wide, rows, stage))

    def known(self, value: Number | int | float) -> Term:
        """Return a trace-time number."""
        return self._one(Known(number(value)))

    def product(self, *factors: Term) -> Term:
        """Return a flat product; numbers go into its coefficient."""
        coefficient: Number = ONE
        flat: list[Term] = []
        for factor in factors:
            match factor:
                case Known(value=value):
                    coefficient = coefficient * value
                case Product(coefficient=inner, factors=more) if not self._one_value(factor):
                    coefficient = coefficient * inner
                    flat += more
                case _:
                    flat.append(factor)
        if not flat:
            return self.known(coefficient)
        if len(flat) == 1 and coefficient == ONE:
            return flat[0]
        return self._one(Product(coefficient, tuple(flat), *_shape(*flat)))

    def op(self, name: str, *args: Term) -> Term:
        """Return an operator of the language applied to terms, rewritten where the table says."""
        if all(isinstance(arg, Known) for arg in args):
            return self.known(applied(name, tuple(arg.value for arg in args)))  # type: ignore[union-attr]
        rewrite = REWRITES.get(name)
        if rewrite is not None:
            return rewrite(self, *args)
        return self.primitive(name, *args)

    def primitive(self, name: str, *args: Term) -> Term:
        """Return an operator that has an instruction."""
        return self._one(Op(name, args, *_shape(*args)))

    def fold(self, name: str, arg: Term, size: Number) -> Term:
        """Return a reduction over the wide axis of `arg`, which has `size` elements."""
        if arg.wide is None:
            raise ValueError("a reduction needs a wide axis")
        if name == "mean":
            return self.product(self.known(1.0 / size), self.fold("sum", arg, size))
        return self._one(Fold(name, arg, arg.rows, arg.stage))

    def rounded(self, dtype: str, arg: Term) -> Term:
        """Return `arg` rounded to a dtype."""
        return self._one(Rounded(dtype, arg, arg.wide, arg.rows, arg.stage))

    def renamed(self, axis: str, arg: Term) -> Term:
        """Return the same values along another axis."""
        return self._one(Op("renamed", (arg,), axis, arg.rows, arg.stage))

    def name(self, term: Term, name: str) -> None:
        """Note what the text calls a term, unless it has a name."""
        if not isinstance(term, Leaf | Known):
            self.names.setdefault(term, name)

    def hint(self, term: Term, name: str, about: Term) -> None:
        """Suggest a name `<input>_<name>` for a term a rewrite made."""
        self.hints.setdefault(term, (name, about))

    def stem(self, term: Term) -> str:
        """Return a readable name for a tile that holds the term.

        The name the text gave it, else its first input and what was done last.
        """
        if term in self.names:
            return self.names[term]
        if term in self.hints:
            suffix, about = self.hints[term]
            return f"{self.principal(about)}_{suffix}"
        match term:
            case Leaf(name=name):
                return name
            case Known():
                return "number"
            case Product(factors=factors) if len(factors) == 2 and factors[0] == factors[1]:
                return f"{self.stem(factors[0])}_squared"
            case Product(factors=factors) if len(factors) > 1:
                wide_first = sorted(factors, key=lambda f: f.wide is None)
                return "_".join(dict.fromkeys(self.principal(f) for f in wide_first))
            case Product():
                return f"{self.principal(term)}_scaled"
            case Op(name=name) | Fold(name=name):
                return f"{self.principal(term)}_{_SUFFIX.get(name, name)}"
            case Rounded(dtype=dtype):
                return f"{self.principal(term)}_{dtype}"

    def principal(self, term: Term) -> str:
        """Return the name of the first named thing a term is made of."""
        if term in self.names:
            return self.names[term]
        if isinstance(term, Leaf):
            return term.name
        if term in self.hints:
            return self.principal(self.hints[term][1])
        return next((self.principal(c) for c in children(term) if not isinstance(c, Known)), "one")

    def _one_value(self, term: Term) -> bool:
        return term in self.whole or (term.wide is None and term in self.names)

    def _one(self, term: Term) -> Term:
        return self.interned.setdefault(term, term)


def split(algebra: Algebra, term: Term) -> tuple[Term, Term]:
    """Return (base, factor) with base * factor = term and no wide axis in `factor`."""
    if term.wide is None or not isinstance(term, Product):
        return term, algebra.known(1)
    wide = [f for f in term.factors if f.wide is not None]
    narrow = [f for f in term.factors if f.wide is None]
    return algebra.product(*wide), algebra.product(algebra.known(term.coefficient), *narrow)


def _shape(*args: Term) -> tuple[str | None, bool, Stage]:
    wides = {arg.wide for arg in args if arg.wide is not None}
    if len(wides) > 1:
        raise TwoWideAxes(*sorted(wides))
    return (
        next(iter(wides), None),
        any(arg.rows for arg in args),
        max(arg.stage for arg in args),
    )


class TwoWideAxes(Exception):
    """A value other than the state has two axes beside the rows."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"a value along both `{first}` and `{second}`")
        self.axes = (first, second)


_SUFFIX = {"add": "shifted", "sub": "difference", "reciprocal": "inverse"}
