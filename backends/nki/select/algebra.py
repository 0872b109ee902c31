"""Building terms: flat products, and operators rewritten into ones that have an instruction.

Rewrites, and why each is exact enough (NUMERICS.md rules 1 and 5):

    sigmoid(x)          1 / (1 + exp(-x))           exp overflows to inf, whose reciprocal is 0
    softplus(x)         max(x, 0) + log1p(exp(-|x|)), see `_softplus`. exp(c softplus(x)), the decay
                        of most gates, is then one exp of one argument: near 1 it is rounded once,
                        as in the definition, and errors do not add up over many tokens.
    a / b               a * reciprocal(b)
    mean                sum / size

Neither needs a ScalarE function besides exp, so one table load serves a whole kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from attrs import define, field

from backends.nki.program.numbers import ONE, Literal, Number, binary, number
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
            return self.known(_known(name, tuple(arg.value for arg in args)))  # type: ignore[union-attr]
        rewrite = _REWRITES.get(name)
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


# ---- rewrites


def _add(algebra: Algebra, a: Term, b: Term) -> Term:
    if Literal(0) in (_literal(a), _literal(b)):
        return b if _literal(a) == Literal(0) else a
    return algebra.primitive("add", a, b)


def _sub(algebra: Algebra, a: Term, b: Term) -> Term:
    return a if _literal(b) == Literal(0) else algebra.primitive("sub", a, b)


def _neg(algebra: Algebra, x: Term) -> Term:
    return algebra.product(algebra.known(-1), x)


def _div(algebra: Algebra, a: Term, b: Term) -> Term:
    inverse = algebra.known(1.0 / b.value) if isinstance(b, Known) else _reciprocal(algebra, b)
    return algebra.product(a, inverse)


def _reciprocal(algebra: Algebra, x: Term) -> Term:
    return algebra.primitive("reciprocal", x)


def _sigmoid(algebra: Algebra, x: Term) -> Term:
    e = algebra.op("exp", _neg(algebra, x))
    result = _reciprocal(algebra, algebra.primitive("add", e, algebra.known(1.0)))
    algebra.hint(result, "sigmoid", x)
    return result


def _softplus(algebra: Algebra, x: Term) -> Term:
    """max(x, 0) + log1p(e) with e = exp(-|x|), to 3 units in the last place at both ends.

    log1p(e) = 2 artanh(s / 2), s = 2 e / (2 + e) = e - e^2 / (2 + e) <= 2 / 3, as s times a
    polynomial of z = s^2. The second form of s is off by little more than e. No function but exp.
    """
    minus_magnitude = algebra.primitive("min", _neg(algebra, x), x)
    e = algebra.primitive("exp", minus_magnitude)
    inverse = _reciprocal(algebra, algebra.primitive("add", e, algebra.known(2.0)))
    s = algebra.primitive("sub", e, algebra.product(e, inverse, e))
    z = algebra.product(s, s)
    algebra.whole.add(z)
    polynomial = algebra.known(_ARTANH[0])
    for coefficient in _ARTANH[1:]:
        scaled = algebra.product(polynomial, z)
        polynomial = algebra.primitive("add", scaled, algebra.known(coefficient))
    log1p = algebra.product(polynomial, s)
    result = algebra.primitive("add", log1p, algebra.primitive("max", x, algebra.known(0.0)))
    algebra.hint(minus_magnitude, "minus_abs", x)
    algebra.hint(inverse, "inverse", x)
    algebra.hint(s, "ratio", x)
    algebra.hint(z, "ratio_squared", x)
    algebra.hint(result, "softplus", x)
    return result


_ARTANH = (0.00054496719, 0.0021889079, 0.012506571, 0.083333016, 1.0)
"""2 artanh(s / 2) / s as a polynomial of z = s^2 <= 4/9, highest power first: 1e-8 off."""


def _pow(algebra: Algebra, base: Term, exponent: Term) -> Term:
    if isinstance(exponent, Known):
        special = _POWERS.get(_literal_value(exponent))
        if special is not None:
            return special(algebra, base)
    if isinstance(base, Known):
        log = math.log(_literal_value(base)) if _literal_value(base) > 0 else math.nan
        return algebra.op("exp", algebra.product(algebra.known(log), exponent))
    return algebra.primitive("power", base, exponent)


def _square(algebra: Algebra, x: Term) -> Term:
    return algebra.product(x, x)


def _sqrt(algebra: Algebra, x: Term) -> Term:
    # GpSimdE's power is exact at 0, where ScalarE's sqrt table ends.
    return algebra.primitive("power", x, algebra.known(0.5))


def _literal(term: Term) -> Number | None:
    return term.value if isinstance(term, Known) else None


def _literal_value(term: Term) -> float:
    value = _literal(term)
    return float(value.value) if isinstance(value, Literal) else math.nan


_POWERS: dict[float, Callable[[Algebra, Term], Term]] = {
    1.0: lambda _, x: x,
    2.0: _square,
    0.5: _sqrt,
    -0.5: lambda algebra, x: algebra.primitive("rsqrt", x),
    -1.0: _reciprocal,
}

_REWRITES: dict[str, Callable[..., Term]] = {
    "add": _add,
    "sub": _sub,
    "mul": Algebra.product,
    "div": _div,
    "neg": _neg,
    "sigmoid": _sigmoid,
    "softplus": _softplus,
    "pow": _pow,
    "sqrt": _sqrt,
}


def _known(name: str, values: tuple[Number, ...]) -> Number:
    if name in _ARITHMETIC:
        return binary(_ARITHMETIC[name], *values)
    if name == "neg":
        return -values[0]
    floats = [value.value for value in values if isinstance(value, Literal)]
    if len(floats) == len(values) and name in _FUNCTIONS:
        return Literal(float(_FUNCTIONS[name](*floats)))
    raise NotTraceTime(name)


class NotTraceTime(Exception):
    """A function of trace-time numbers that the emitted kernel would have to evaluate in Python."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.operator = name


_SUFFIX = {"add": "shifted", "sub": "difference", "reciprocal": "inverse"}

_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**"}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1.0 / math.sqrt(x),
    "abs": abs,
    "min": min,
    "max": max,
    "tanh": math.tanh,
    "sigmoid": lambda x: 1.0 / (1.0 + math.exp(-x)),
    "softplus": lambda x: max(x, 0.0) + math.log1p(math.exp(-abs(x))),
}
