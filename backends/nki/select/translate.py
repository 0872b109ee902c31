"""Typed expressions to terms: names resolved, row axes dropped, wide axes kept.

`Translator` walks the body of a kernel up to and after its runs; what it binds in `terms` is what
instruction selection starts from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from attrs import define, field

from backends.nki.program.numbers import Literal, Name
from backends.nki.refusal import not_rounded, refuse
from backends.nki.select.algebra import Algebra, TwoWideAxes
from backends.nki.select.terms import Leaf, Stage, Term
from backends.nki.select.trace_time import NotTraceTime
from gdsl.ir.expr import (
    Apply,
    Cast,
    Const,
    Expr,
    Index,
    Reduce,
    Ref,
    Rename,
    Shift,
    Size,
    Unpack,
)
from gdsl.ir.node import Symbol
from gdsl.source import Span


@define
class Translator:
    """Turns expressions into terms. `rows` are the axes the state maps over, in its order."""

    algebra: Algebra
    rows: tuple[str, ...]
    outer: tuple[str, ...] = ()
    """Axes of which a tile of rows has one index: the batch entry and the token at hand."""
    terms: dict[Symbol, Term] = field(factory=dict)
    """The value of every name met so far."""
    form: str = "a decode step"
    """What the terms belong to, for messages."""
    index: Callable[[str], Term] | None = None
    """Return 0, 1, 2, ... along an axis, where that can be had."""

    def leaf(
        self,
        symbol: Symbol,
        axes: tuple[str, ...],
        stage: Stage,
        name: str,
        span: Span | None = None,
    ) -> Leaf:
        """Bind a name to a value that is there, and return it."""
        around = (*self.rows, *self.outer)
        wide = [axis for axis in axes if axis not in around]
        if len(wide) > 1:
            raise refuse(
                f"`{name}` has the axes `{wide[0]}` and `{wide[1]}` beside the rows; {self.form} "
                "has room for one",
                span,
            )
        on_rows = any(axis in around for axis in axes)
        term = self.algebra.leaf(name, wide[0] if wide else None, on_rows, stage)
        assert isinstance(term, Leaf)
        self.terms[symbol] = term
        return term

    def term(self, expr: Expr) -> Term:
        """Return an expression as a term. Raises CompileError for what has no instruction."""
        try:
            return self._at(expr)
        except TwoWideAxes as error:
            first, second = error.axes
            raise refuse(
                f"a value along both `{first}` and `{second}` does not fit {self.form}",
                expr.span,
                label="only the state may have both axes",
                help=f"sum over `{first}` or `{second}` before",
            ) from error
        except NotTraceTime as error:
            raise refuse(
                f"`{error.operator}` of numbers that are known only when the kernel is traced",
                expr.span,
                help="pass the result as the parameter instead",
            ) from error

    def define(self, symbol: Symbol, expr: Expr) -> Term:
        """Bind a name to an expression, and call the term by that name."""
        term = self.term(expr)
        self.terms[symbol] = term
        self.algebra.name(term, symbol.name)
        return term

    def _at(self, expr: Expr) -> Term:
        term = self._term(expr)
        if expr.span is not None and not isinstance(expr, Ref):
            self.algebra.spans.setdefault(term, expr.span)
        return term

    def _term(self, expr: Expr) -> Term:
        match expr:
            case Ref(symbol=symbol):
                return self.terms[symbol]
            case Const(value=value):
                return self.algebra.known(int(value) if value.is_integer() else value)
            case Size(axis=axis):
                return self.algebra.known(Name(axis))
            case Apply(operator=operator, args=args):
                return self.algebra.op(operator, *(self._at(arg) for arg in args))
            case Reduce(operator=operator, axes=axes, arg=arg):
                return self._reduce(operator, axes, arg)
            case Cast(dtype=dtype) if dtype.only_read:
                raise not_rounded(dtype, expr.span)
            case Cast(dtype=dtype, arg=arg):
                inner = self._at(arg)
                return inner if dtype.value == "f32" else self.algebra.rounded(dtype.value, inner)
            case Index(axis=axis) if self.index is not None:
                return self.index(axis)
            case Rename(source=source, target=target, arg=arg) if not (
                {source, target} & {*self.rows, *self.outer}
            ):
                inner = self._at(arg)
                return self.algebra.renamed(target, inner) if inner.wide == source else inner
            case Rename() | Index() | Shift() | Unpack():
                raise refuse(
                    f"`{_WRITTEN[type(expr)]}` in {self.form} is not emitted yet",
                    expr.span,
                    help="compute it before the kernel and pass it as an input",
                )
            case _:
                assert_never(expr)

    def _reduce(self, operator: str, axes: tuple[str, ...], arg: Expr) -> Term:
        over_rows = [axis for axis in axes if axis in (*self.rows, *self.outer)]
        if over_rows:
            raise refuse(
                f"`{operator}[{over_rows[0]}]` crosses rows of the state",
                arg.span,
                label=f"`{over_rows[0]}` is an axis the state maps over",
                notes=("each row is computed by itself",),
            )
        try:
            inner = self._at(arg)
        except TwoWideAxes:
            if operator != "sum" or len(axes) > 1:
                raise
            return self._sum_of_product(axes[0], (arg,))
        if inner.wide != axes[0] or len(axes) > 1:
            # Constant along the axis: the sum is a multiple, the rest the value itself.
            size = self.algebra.known(Name(axes[0])) if operator == "sum" else Literal(1)
            return inner if isinstance(size, Literal) else self.algebra.product(size, inner)
        return self.algebra.fold(operator, inner, Name(axes[0]))

    def _sum_of_product(self, axis: str, factors: tuple[Expr, ...]) -> Term:
        """A sum of what has two wide axes: q (k v) over K is (q k over K) v.

        Factors without the axis come out of the sum; sums among the factors are taken apart.
        """
        inside: list[Term] = []
        outside: list[Term] = []
        for i, factor in enumerate(factors):
            rest = (*factors[:i], *factors[i + 1 :])
            try:
                term = self._at(factor)
            except TwoWideAxes:
                match factor:
                    case Apply(operator="mul", args=args):
                        return self._sum_of_product(axis, (*rest, *args))
                    case Apply(operator="add" | "sub" as name, args=args):
                        parts = (self._sum_of_product(axis, (*rest, arg)) for arg in args)
                        return self.algebra.op(name, *parts)
                    case Apply(operator="neg", args=(arg,)):
                        return self.algebra.op("neg", self._sum_of_product(axis, (*rest, arg)))
                    case _:
                        raise
            (inside if term.wide == axis else outside).append(term)
        if not inside:
            return self.algebra.product(self.algebra.known(Name(axis)), *outside)
        total = self.algebra.fold("sum", self.algebra.product(*inside), Name(axis))
        return self.algebra.product(*outside, total)


_WRITTEN: dict[type, str] = {Rename: "rename", Index: "index", Shift: "shift", Unpack: "unpack"}
