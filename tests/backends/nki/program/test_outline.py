"""Statements as functions: what they need becomes parameters."""

from __future__ import annotations

from backends.nki.program.build import Block, Names
from backends.nki.program.mentions import defined, mentions
from backends.nki.program.nodes import F32, Space, Tile, Unpack, View
from backends.nki.program.numbers import Literal, Name
from backends.nki.program.outline import Pack, outline


def _view(name: str) -> View:
    shape = (Literal(128), Name("width"))
    return View(Tile(name, shape, F32, Space.SBUF), shape)


def _block() -> Block:
    block = Block(Names())
    dst = block.tile("sum_sb", (Literal(128), Name("width")), F32)
    block.do("tensor_tensor", dst=dst, data1=_view("a_sb"), data2=_view("b_sb"))
    return block


def test_tiles_come_before_numbers_and_own_names_are_no_parameters() -> None:
    function = outline("add", "Add.", _block().statements, returns=("sum_sb",))
    assert function.parameters == ("a_sb", "b_sb", "width")
    assert function.returns == ("sum_sb",)


def test_names_of_the_module_are_no_parameters() -> None:
    function = outline("add", "Add.", _block().statements, known=("width",))
    assert function.parameters == ("a_sb", "b_sb")


def test_tiles_that_travel_together_are_one_parameter() -> None:
    pack = Pack("vectors", ("a_sb", "b_sb", "c_sb"))
    function = outline("add", "Add.", _block().statements, packs=(pack,))
    assert function.parameters == ("vectors", "width")
    assert function.body[0] == Unpack(("a_sb", "b_sb", "c_sb"), "vectors")


def test_what_statements_define_and_mention() -> None:
    statements = _block().statements
    assert defined(statements) == ("sum_sb",)
    assert {"a_sb", "b_sb", "sum_sb", "width"} <= set(mentions(statements))
