"""A straight piece cut where engines wait for one another."""

from __future__ import annotations

from backends.nki.program.build import Block, Names
from backends.nki.program.nodes import F32, Allocate, Instruction, Statement, Token, View
from backends.nki.schedules.chunked.cut import cut, divided
from backends.nki.select.layouts import GPSIMD, VECTOR

ADD = Token("nl.add")


def chain() -> tuple[Block, dict[str, View]]:
    """a -> b on VectorE, b -> c on GpSimdE, c -> d on VectorE; a -> e on VectorE."""
    block = Block(Names())
    tiles = {name: block.tile(name, (128, 4), F32) for name in "abcde"}
    for dst, src, engine in (
        ("b", "a", VECTOR),
        ("c", "b", GPSIMD),
        ("d", "c", VECTOR),
        ("e", "a", VECTOR),
    ):
        one = tiles[src]
        block.do("tensor_tensor", dst=tiles[dst], data1=one, data2=one, op=ADD, engine=engine)
    return block, tiles


def results(statements: list[Statement]) -> list[str]:
    made = (dict(s.operands)["dst"] for s in statements if isinstance(s, Instruction))
    return [view.tile.name for view in made if isinstance(view, View)]


def test_a_cut_for_each_change_of_engine() -> None:
    block, _ = chain()
    assert [results(piece) for piece in cut(block.statements)] == [["b", "e"], ["c"], ["d"]]


def test_tiles_are_created_where_they_are_first_used() -> None:
    block, _ = chain()
    created = [
        [s.tile.name for s in piece if isinstance(s, Allocate)] for piece in cut(block.statements)
    ]
    assert created == [["a", "b", "e"], ["c"], ["d"]]


def test_an_overwritten_operand_waits_for_its_readers() -> None:
    block, tiles = chain()
    block.do(
        "tensor_tensor", dst=tiles["a"], data1=tiles["e"], data2=tiles["e"], op=ADD, engine=GPSIMD
    )
    assert [results(piece) for piece in cut(block.statements)] == [["b", "e"], ["c", "a"], ["d"]]


def test_what_a_result_needs_and_the_rest() -> None:
    block, _ = chain()
    first, rest = divided(block.statements, ("c",))
    assert results(first) == ["b", "c"]
    assert results(rest) == ["d", "e"]
    assert [s.tile.name for s in first if isinstance(s, Allocate)] == ["a", "b", "c"]
