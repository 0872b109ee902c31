"""Rows of the function evaluators: ScalarE tables and the exponential of VectorE."""

from __future__ import annotations

from backends.isa.activations import ACTIVATIONS, PRELU
from backends.isa.dtypes import FLOATS, FP8, INTEGERS, UNPACKED
from backends.isa.rows.arguments import (
    NAME,
    REDUCE_RESULT,
    flag,
    operand,
    operator,
    out,
    reduce_command,
    tile,
)
from backends.isa.schema import ON_CHIP, EngineUse, Instruction, Kind, Param, Shape

_SCALAR = (EngineUse("scalar"),)
_FUNCTIONS = frozenset(ACTIVATIONS)
_OP = Param("op", Kind.FUNCTION, operators=_FUNCTIONS)
# A number as bias needs trn2; on trn1 it must be a tile.
_BIAS = Param(
    "bias",
    Kind.OPERAND,
    default=None,
    spaces=ON_CHIP,
    dtypes=UNPACKED - frozenset({"tfloat32"}),
    number_from=3,
)
_STAGE0 = frozenset({"multiply", "add", "subtract", "bypass"})
_STAGE1 = frozenset({"add", "subtract", "bypass"})
ACTIVATE2_PAIRS = frozenset(
    {
        ("multiply", "add"),
        ("multiply", "subtract"),
        ("multiply", "bypass"),
        ("add", "bypass"),
        ("subtract", "bypass"),
        ("bypass", "bypass"),
    }
)
"""The pairs of operators that `activate2` takes."""
_EXPONENTIAL_OUT = (
    FP8
    | frozenset({"float16", "bfloat16", "float32", "tfloat32"})
    | frozenset({"int8", "int16", "int32", "uint8", "uint16"})
)
_EXPONENTIAL_IN = (
    FP8 | frozenset({"float16", "bfloat16", "float32"}) | (INTEGERS - frozenset({"bool_"}))
)

ROWS: tuple[Instruction, ...] = (
    Instruction(
        name="activation",
        family="activation",
        params=(
            out(),
            _OP,
            tile("data"),
            _BIAS,
            operand("scale", 1.0),
            operator("reduce_op", frozenset({"add"}), None),
            REDUCE_RESULT,
            reduce_command("idle"),
            NAME,
        ),
        engines=_SCALAR,
        shape=Shape.ELEMENTWISE,
        accumulator="scalar",
    ),
    Instruction(
        name="activation_reduce",
        family="activation",
        params=(
            out(),
            _OP,
            tile("data"),
            operator("reduce_op", frozenset({"add"})),
            Param("reduce_res", Kind.VECTOR_OUT, spaces=ON_CHIP),
            _BIAS,
            operand("scale", 1.0),
            NAME,
        ),
        engines=_SCALAR,
        shape=Shape.ELEMENTWISE,
        accumulator="scalar",
    ),
    Instruction(
        name="activate2",
        family="activation",
        params=(
            out(),
            Param("op", Kind.FUNCTION, operators=_FUNCTIONS | {PRELU}),
            tile("data"),
            operand("imm0", dtypes=UNPACKED),
            operand("imm1", dtypes=UNPACKED),
            operator("op0", _STAGE0),
            operator("op1", _STAGE1),
            Param("relu_param", Kind.NUMBER, default=0.0),
            flag("reverse0"),
            flag("reverse1"),
            operator(
                "reduce_op",
                frozenset({"add", "maximum", "minimum", "abs_max", "abs_min"}),
                None,
            ),
            REDUCE_RESULT,
            reduce_command("idle"),
            NAME,
        ),
        engines=_SCALAR,
        shape=Shape.ELEMENTWISE,
        same_dtype=(("imm0", "imm1"),),
        generations=(4,),
        since="0.4",
        accumulator="scalar",
    ),
    Instruction(
        name="exponential",
        family="activation",
        params=(
            out(dtypes=_EXPONENTIAL_OUT),
            tile("src", dtypes=_EXPONENTIAL_IN),
            operand("max_value", 0.0),
            Param("reduce_res", Kind.VECTOR_OUT, default=None, spaces=ON_CHIP, dtypes=FLOATS),
            reduce_command("idle"),
            operand("reduce_init", 0.0),
            NAME,
        ),
        engines=(EngineUse("vector"),),
        shape=Shape.ELEMENTWISE,
        generations=(4,),
        accumulator="vector",
    ),
)
