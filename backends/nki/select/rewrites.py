"""Operators of the language rewritten into ones that have an instruction.

Why each is exact enough:

    sigmoid(x)          1 / (1 + exp(-x))           exp overflows to inf, whose reciprocal is 0
    softplus(x)         max(x, 0) + log1p(exp(-|x|)), see `_softplus`. exp(c softplus(x)), the decay
                        of most gates, is then one exp of one argument: near 1 it is rounded once,
                        as in the definition, and errors do not add up over many tokens.
    a / b               a * reciprocal(b)
    rsqrt(|x|^2)        rsqrt(max(|x|^2, 2^-126)), and 1 / |x| alike: tokens that are none are
                        zeros, and stay so in x * rsqrt(|x|^2) where the text adds no epsilon

None needs a ScalarE function besides exp, so one table load serves a whole kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from backends.nki.program.numbers import Literal, Number
from backends.nki.select.terms import Fold, Known, Op, Product, Term

if TYPE_CHECKING:
    from backends.nki.select.algebra import Algebra


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
    square = x
    if isinstance(x, Op) and (x.name, x.args[1:]) == ("power", (algebra.known(0.5),)):
        square = x.args[0]
    return algebra.primitive("reciprocal", _at_least(algebra, x, _LENGTH, square))


def _rsqrt(algebra: Algebra, x: Term) -> Term:
    return algebra.primitive("rsqrt", _at_least(algebra, x, _LENGTH**2, x))


def _at_least(algebra: Algebra, x: Term, least: float, square: Term) -> Term:
    """A value, at least `least` where it comes from nothing but squares."""
    return algebra.primitive("max", x, algebra.known(least)) if _is_square(square) else x


def _is_square(x: Term) -> bool:
    """Whether a term is squares, or sums of squares, multiplied."""
    match x:
        case Product(coefficient=Literal(value=value)) if value < 0:
            return False
        case Product(factors=factors):
            return all(factors.count(f) % 2 == 0 or _is_square(f) for f in factors)
        case Fold(name="sum", arg=arg):
            return _is_square(arg)
        case _:
            return False


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


_LENGTH = 2.0**-63
"""A length whose square and inverse square are normal numbers."""
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
    -0.5: _rsqrt,
    -1.0: _reciprocal,
}


REWRITES: dict[str, Callable[..., Term]] = {
    "add": _add,
    "sub": _sub,
    "mul": lambda algebra, *factors: algebra.product(*factors),
    "div": _div,
    "neg": _neg,
    "sigmoid": _sigmoid,
    "softplus": _softplus,
    "pow": _pow,
    "sqrt": _sqrt,
    "rsqrt": _rsqrt,
}
