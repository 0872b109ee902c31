"""One term into a destination: the instruction of each operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.nki.program.build import part
from backends.nki.program.nodes import F32, Access, Space, Token, View
from backends.nki.program.numbers import ONE, Literal, number
from backends.nki.select.chains import absorbs, activation, pack
from backends.nki.select.layouts import ACTIVATIONS, FOLDS, GPSIMD, SCALAR, VECTOR, Layout
from backends.nki.select.terms import Fold, Leaf, Op, Product, Rounded, Stage, Term

if TYPE_CHECKING:
    from backends.nki.select.selector import Selector


def write(s: Selector, term: Term, dst: Access, layout: Layout) -> None:
    at, block = term.stage, s.blocks[term.stage]
    if (term, layout) in s.held:
        block.do("tensor_copy", dst=dst, src=s.access(term, layout, at))
        return
    match term:
        case Op(name=name, args=(arg,)) if name in ACTIVATIONS:
            s.functions.setdefault(name, Token(ACTIVATIONS[name]))
            data, extra = activation(s, arg, layout, at)
            block.do("activation", dst=dst, op=Token(ACTIVATIONS[name]), data=data, **extra)
        case Product(factors=(a, b), coefficient=c) if a is b and c == ONE and s.is_tile(a, layout):
            data = s.access(a, layout, at)
            block.do("activation", dst=dst, op=Token("nl.square"), data=data)
        case Op(name="reciprocal", args=(arg,)) if _leisurely(s, term, layout):
            # A division of GpSimdE, which is idle, instead of 8 cycles per element of VectorE.
            _power(s, arg, s.algebra.known(-1.0), dst, layout, at)
        case Op(name="reciprocal", args=(arg,)):
            block.do("reciprocal", dst=dst, data=s.access(arg, layout, at))
        case Op(name="rsqrt", args=(arg,)):
            # GpSimdE's is the accurate one, and it leaves ScalarE's table alone.
            block.do(
                "tensor_scalar",
                dst=dst,
                data=s.in_sbuf(arg, layout, at),
                op0=Token("nl.rsqrt"),
                operand0=Literal(0.0),
                engine=GPSIMD,
            )
        case Op(name="renamed", args=(arg,)):
            # Both axes lie along the free axis there.
            home = layout if layout is Layout.TOKENS else Layout.ROWS
            block.do("tensor_copy", dst=dst, src=s.access(arg, home, at))
        case Op(name="power", args=(base, exponent)):
            _power(s, base, exponent, dst, layout, at)
        case Op(name="abs", args=(arg,)):
            block.do(
                "tensor_scalar",
                dst=dst,
                data=s.access(arg, layout, at),
                op0=Token("nl.abs"),
                operand0=Literal(0.0),
            )
        case Op(name="where", args=(condition, then, otherwise)):
            _where(s, condition, then, otherwise, dst, layout, at)
        case Fold(name=name, arg=arg):
            s.fold(name, arg, dst, at)
        case Leaf() | Rounded():
            block.do("tensor_copy", dst=dst, src=s.access(term, layout, at))
        case _:
            pack(s, term, dst, layout)


def _power(s: Selector, base: Term, exponent: Term, dst: Access, layout: Layout, at: Stage) -> None:
    """base ** exponent, which only GpSimdE has, and that reaches no PSUM."""
    raised = s.spread(base, layout, at, dst.shape[1])
    if raised.tile.space is Space.PSUM:
        raised = s.in_sbuf(base, layout, at)
    s.blocks[at].do(
        "tensor_tensor",
        dst=dst,
        data1=raised,
        data2=s.spread(exponent, layout, at, dst.shape[1]),
        op=Token("nl.power"),
        engine=GPSIMD,
    )


def _leisurely(s: Selector, term: Term, layout: Layout) -> bool:
    """Whether nobody waits for a tile of the inputs, so that an idle engine may make it."""
    return s.leisure and term.stage is Stage.INPUTS and s.is_tile(term, layout)


def fold_rows(s: Selector, name: str, arg: Term, dst: Access, at: Stage) -> None:
    """Reduce over the wide axis, rows on partitions."""
    block = s.blocks[at]
    if name == "sum" and arg.wide == s.key_axis and s.key_major(arg):
        # The key axis lies on partitions: TensorE adds over them.
        total = block.tile(f"sum_{s.algebra.stem(arg)}_psum", (s.rows, ONE), F32, Space.PSUM)
        summands = s.access(arg, Layout.KEYS, at)
        assert isinstance(summands, View)
        for tile in s.keys:
            block.do(
                "nc_matmul",
                dst=total,
                stationary=tile.of(summands, s.rows),
                moving=part(s.constants.ones(), (0, tile.width), (0, 1)),
                is_moving_onezero=True,
                accumulate=tile.place > 0,
            )
        block.do("tensor_copy", dst=dst, src=total, engine=VECTOR)
        return
    if name == "sum" and (square := _square_of(s, arg, at)) is not None:
        # One pass of ScalarE squares and adds.
        squares = s.at_stage(s.new(arg, Layout.ROWS, F32), at, Layout.ROWS)
        block.do(
            "activation_reduce",
            dst=squares,
            op=Token("nl.square"),
            data=s.access(square, Layout.ROWS, at),
            reduce_op=Token("nl.add"),
            reduce_res=dst,
        )
        return
    data = s.access(arg, Layout.ROWS, at)
    block.do("tensor_reduce", dst=dst, op=Token(FOLDS[name]), data=data, axis=number(1))


def _square_of(s: Selector, term: Term, at: Stage) -> Term | None:
    """x, for an x * x that only one instruction needs."""
    match term:
        case Product(factors=(a, b), coefficient=c) if a is b and c == ONE and absorbs(s, term, at):
            return a
        case _:
            return None


def _where(
    s: Selector,
    condition: Term,
    then: Term,
    otherwise: Term,
    dst: Access,
    layout: Layout,
    at: Stage,
) -> None:
    block, width = s.blocks[at], dst.shape[1]
    if dst.tile.element != F32:
        # Both sides of the selection have one dtype; round afterwards.
        fp32 = block.tile(f"{dst.tile.name.removesuffix('_sb')}_f32_sb", dst.tile.shape, F32)
        target = s.at_stage(fp32, at, layout)
        _where(s, condition, then, otherwise, target, layout, at)
        block.do("tensor_copy", dst=dst, src=target, engine=SCALAR)
        return
    predicate = s.predicate(condition, layout, at, width)
    block.do("tensor_copy", dst=dst, src=s.spread(otherwise, layout, at, width))
    source = s.spread(then, layout, at, width)
    if source.tile.element != F32:
        shape = (s.partitions(layout), width)
        converted = block.tile(f"{s.algebra.stem(then)}_f32_sb", shape, F32)
        into = s.at_stage(converted, at, layout)
        block.do("tensor_copy", dst=into, src=source)
        source = into
    block.do("tensor_copy_predicated", dst=dst, src=source, predicate=predicate)
