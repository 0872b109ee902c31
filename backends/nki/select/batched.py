"""Terms of many tokens at once: what pays there and not in a decode step.

    sigmoid(x), x sigmoid(x),    stay ScalarE functions: one table load serves a batch of chunks,
    softplus(x)                  and no reciprocal of a whole tile is left for VectorE
    sum[K](c x)                  c sum[K](x) for a c without the axis: one value per token

Everything else is `Algebra`.
"""

from __future__ import annotations

from attrs import define

from backends.nki.program.numbers import Number
from backends.nki.select.algebra import Algebra, split
from backends.nki.select.terms import Known, Op, Product, Term


@define
class BatchAlgebra(Algebra):
    """An `Algebra` for the layout TOKENS."""

    def op(self, name: str, *args: Term) -> Term:
        """Return an operator of the language applied to terms."""
        if name == "mul":
            return self.product(*args)
        if name in _FUNCTIONS and not isinstance(args[0], Known):
            return self.primitive(name, *args)
        return Algebra.op(self, name, *args)

    def product(self, *factors: Term) -> Term:
        """Return a flat product; x sigmoid(x) is one factor, silu(x)."""
        whole = Algebra.product(self, *factors)
        if not isinstance(whole, Product):
            return whole
        for gate in whole.factors:
            if isinstance(gate, Op) and gate.name == "sigmoid" and gate.args[0] in whole.factors:
                rest = list(whole.factors)
                rest.remove(gate)
                rest.remove(gate.args[0])
                silu = self.primitive("silu", gate.args[0])
                return Algebra.product(self, self.known(whole.coefficient), *rest, silu)
        return whole

    def fold(self, name: str, arg: Term, size: Number) -> Term:
        """Return a reduction over the wide axis of `arg`, which has `size` elements."""
        if name in ("sum", "mean"):
            base, factor = split(self, arg)
            return self.product(factor, Algebra.fold(self, name, base, size))
        return Algebra.fold(self, name, arg, size)


_FUNCTIONS = frozenset({"sigmoid", "softplus"})
