"""Chains of binary operators, packed two to an instruction; what an activation takes along.

A chain is the operand it starts from and the operators applied to it. `tensor_scalar` does two with
scalars, `scalar_tensor_tensor` one with a scalar and one with a tile, `tensor_tensor` one with a
tile. A term that only one instruction needs vanishes inside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.nki.program.build import Block
from backends.nki.program.nodes import F32, Access, Operand, Space, Token
from backends.nki.program.numbers import ONE, Number
from backends.nki.select.layouts import BINARY, MULTIPLY, SCALAR, Layout
from backends.nki.select.terms import Known, Op, Product, Stage, Term, depth

if TYPE_CHECKING:
    from backends.nki.select.selector import Selector

Step = tuple[str, Term, bool]
"""(operator token, other operand, whether the other operand stands on the left)."""


def activation(
    s: Selector, arg: Term, layout: Layout, at: Stage
) -> tuple[Access, dict[str, Operand]]:
    """data, and scale and bias where `arg` is data * scale + bias."""
    extra: dict[str, Operand] = {}
    rest = arg
    if absorbs(s, rest, at) and isinstance(rest, Op) and rest.name in ("add", "sub"):
        a, b = rest.args
        if rest.name == "add" and s.is_tile(b, layout) > s.is_tile(a, layout):
            a, b = b, a
        if rest.name == "add" and not s.is_tile(b, layout):
            rest, extra["bias"] = a, s.column(b, layout, at)
        elif isinstance(b, Known):
            rest, extra["bias"] = a, -b.value
    if absorbs(s, rest, at) and isinstance(rest, Product):
        tiles = [f for f in rest.factors if s.is_tile(f, layout)]
        columns = [f for f in rest.factors if not s.is_tile(f, layout)]
        if len(tiles) <= 1:
            # Of columns, the one that is there last: what scales it is then off the longest way.
            data = tiles[0] if tiles else max(columns, key=depth)
            if not tiles:
                columns.remove(data)
            scale = s.algebra.product(s.algebra.known(rest.coefficient), *columns)
            extra = {"scale": s.column(scale, layout, at), **extra}
            rest = data
    return s.access(rest, layout, at), extra


def absorbs(s: Selector, term: Term, at: Stage) -> bool:
    """Whether a term may vanish inside the instruction of its only user."""
    return s.uses[term] <= 1 and term.stage is at and not _is_held(s, term)


def _is_held(s: Selector, term: Term) -> bool:
    return any((term, layout) in s.held for layout in Layout)


def _chain(
    s: Selector, term: Term, layout: Layout, at: Stage, root: bool
) -> tuple[Term, list[Step]]:
    """The operand a chain starts from, and the binary operators applied to it."""
    if not root and not absorbs(s, term, at):
        return term, []
    if isinstance(term, Product):
        return _product_chain(s, term, layout, at)
    if isinstance(term, Op) and term.name in BINARY:
        a, b = term.args
        if _spine_rank(s, b, layout, at) > _spine_rank(s, a, layout, at):
            data, steps = _chain(s, b, layout, at, False)
            return data, [*steps, (BINARY[term.name], a, True)]
        data, steps = _chain(s, a, layout, at, False)
        return data, [*steps, (BINARY[term.name], b, False)]
    return term, []


def _spine_rank(s: Selector, term: Term, layout: Layout, at: Stage) -> tuple[bool, bool, bool]:
    """What to build a chain on: a tensor, then a tile, then something that has steps its."""
    binary = isinstance(term, Product) or (isinstance(term, Op) and term.name in BINARY)
    return (
        not isinstance(term, Known),
        s.is_tile(term, layout),
        binary and absorbs(s, term, at),
    )


def _product_chain(
    s: Selector, term: Product, layout: Layout, at: Stage
) -> tuple[Term, list[Step]]:
    factors = _staged(s, term, at)
    tiles = [f for f in factors if s.is_tile(f, layout)]
    scalars = [f for f in factors if not s.is_tile(f, layout)]
    tensors = tiles or [f for f in scalars if not isinstance(f, Known)]
    start = max(tensors, key=lambda f: _spine_rank(s, f, layout, at))
    (tiles if tiles else scalars).remove(start)
    data, steps = _chain(s, start, layout, at, False)
    others = tiles if s.is_tile(start, layout) else []
    if s.is_tile(start, layout) and len(scalars) > max(1, len(others)) + (not others):
        scalars = [s.algebra.product(*scalars)]
    for other in others:
        if scalars:
            steps = [*steps, (MULTIPLY, scalars.pop(0), False)]
        steps = [*steps, (MULTIPLY, other, False)]
    return data, [*steps, *((MULTIPLY, scalar, False) for scalar in scalars)]


def _staged(s: Selector, term: Product, at: Stage) -> list[Term]:
    """Factors, with those of earlier stages multiplied there (once per tile of rows)."""
    coefficient = s.algebra.known(term.coefficient)
    early = [f for f in term.factors if f.stage < at]
    late = [f for f in term.factors if f.stage is at]
    if not early or (len(early) == 1 and term.coefficient == ONE):
        return [*_known(coefficient), *early, *late]
    merged = s.algebra.product(coefficient, *early)
    return [merged, *late]


def pack(s: Selector, term: Term, dst: Access, layout: Layout) -> None:
    at, block = term.stage, s.blocks[term.stage]
    data, steps = _chain(s, term, layout, at, True)
    current = s.alike(data, layout, at, dst)
    if not steps:
        block.do("tensor_copy", dst=dst, src=current)
        return
    pending = list(steps)
    while pending:
        taken = _take(s, pending, layout)
        del pending[: len(taken)]
        target = dst if not pending else _scratch(s, term, dst, layout)
        current = _emit(s, block, target, current, taken, layout, at)


def _scratch(s: Selector, term: Term, dst: Access, layout: Layout) -> Access:
    """Where an intermediate result of a chain goes: the destination itself if it is fp32."""
    if dst.tile.element == F32 and dst.tile.space is not Space.SHARED_HBM:
        return dst
    view = s.new(term, layout, F32)
    return s.at_stage(view, term.stage, layout)


def _take(s: Selector, steps: list[Step], layout: Layout) -> list[Step]:
    """The next one or two steps that one instruction can do."""
    first_is_tile = s.is_tile(steps[0][1], layout)
    return steps[:1] if first_is_tile else steps[:2]


def _emit(
    s: Selector,
    block: Block,
    dst: Access,
    data: Access,
    steps: list[Step],
    layout: Layout,
    at: Stage,
) -> Access:
    operands = [_operand(s, data, term, layout, at, dst) for _, term, _ in steps]
    tiles = [s.is_tile(term, layout) for _, term, _ in steps]
    if tiles == [True]:
        op, _, reverse = steps[0]
        first, second = (operands[0], data) if reverse else (data, operands[0])
        assert not isinstance(first, Number)
        assert not isinstance(second, Number)
        engine = s.engine(op, at, first, second)
        chosen: dict[str, Operand] = {} if engine is None else {"engine": engine}
        block.do("tensor_tensor", dst=dst, data1=first, data2=second, op=Token(op), **chosen)
        return dst
    if at is Stage.READS and len(steps) == 1 and steps[0][0] == MULTIPLY:
        # ScalarE has time while VectorE updates the states.
        scale = operands[0]
        block.do("activation", dst=dst, op=Token("nl.copy"), data=data, scale=scale)
        return dst
    fields: dict[str, Operand] = {}
    for i, ((op, _, reverse), operand) in enumerate(zip(steps, operands, strict=True)):
        fields[f"op{i}"] = Token(op)
        fields[f"operand{i}"] = operand
        if reverse and op not in _COMMUTES:
            fields[f"reverse{i}"] = True
    opcode = "scalar_tensor_tensor" if any(tiles) else "tensor_scalar"
    block.do(opcode, dst=dst, data=data, **fields)
    return dst


def _operand(
    s: Selector, data: Access, term: Term, layout: Layout, at: Stage, dst: Access
) -> Access | Number:
    if not s.is_tile(term, layout):
        return s.column(term, layout, at)
    view = s.alike(term, layout, at, dst)
    if view.tile.space is Space.PSUM and data.tile.space is Space.PSUM:
        # Two PSUM operands are illegal: bring one over.
        block = s.blocks[at]
        copy = s.at_stage(s.new(term, layout, F32), at, layout)
        block.do("tensor_copy", dst=copy, src=view, engine=SCALAR)
        return copy
    return view


_COMMUTES = frozenset({MULTIPLY, "nl.add", "nl.maximum", "nl.minimum"})


def _known(term: Term) -> list[Term]:
    return [] if isinstance(term, Known) and term.value == ONE else [term]
