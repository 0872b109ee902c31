"""Rows of elementwise instructions: arithmetic on tiles, copies, constants."""

from __future__ import annotations

from backends.isa.dtypes import INT32S, PACKED, UNPACKED
from backends.isa.operators import ARITHMETIC, BINARY, BITVEC, engine_operators
from backends.isa.rows.arguments import (
    ARITHMETIC_BINARY,
    ENGINE,
    FP32,
    NAME,
    SBUF_OUT,
    flag,
    operand,
    operator,
    out,
    tile,
)
from backends.isa.schema import (
    ON_CHIP,
    SBUF,
    EngineUse,
    Instruction,
    Kind,
    Param,
    Shape,
)

_NATIVE_INT32 = frozenset({"add", "subtract", "multiply"})
"""Operators of the exact 32-bit integer path of GpSimdE (third-party observation)."""
_PREDICATES = frozenset({"uint8", "uint16", "uint32"})
_BITVEC_BINARY = BITVEC & BINARY
# Reverse flags and a unary first operator: the documentation lists unary operators for op0 only.
_TENSOR_SCALAR_OP0 = ARITHMETIC | BITVEC
_TENSOR_SCALAR_OP1 = ARITHMETIC_BINARY | _BITVEC_BINARY
_SCALAR_OPERAND = FP32 | frozenset({"int32", "uint32", "int16", "uint16", "int8", "uint8"})
"""Tiles of `operand0`, `operand1`; a rule of `tensor_scalar` asks for fp32 with arithmetic."""

ROWS: tuple[Instruction, ...] = (
    Instruction(
        name="tensor_tensor",
        family="elementwise",
        params=(
            out(),
            tile("data1"),
            tile("data2"),
            operator("op", BINARY),
            ENGINE,
            NAME,
        ),
        engines=(
            EngineUse("gpsimd", spaces=SBUF, dtypes=INT32S, operators=_NATIVE_INT32),
            EngineUse("vector", operators=engine_operators("vector")),
            EngineUse("gpsimd", spaces=SBUF, operators=frozenset({"power"})),
            EngineUse("gpsimd", spaces=SBUF, operators=ARITHMETIC, on_request=True),
        ),
        shape=Shape.ELEMENTWISE,
        one_psum=(("data1", "data2"),),
    ),
    Instruction(
        name="tensor_scalar",
        family="elementwise",
        params=(
            out(),
            tile("data"),
            operator("op0", _TENSOR_SCALAR_OP0),
            operand("operand0", dtypes=_SCALAR_OPERAND),
            flag("reverse0"),
            operator("op1", _TENSOR_SCALAR_OP1, None),
            operand("operand1", None, dtypes=_SCALAR_OPERAND),
            flag("reverse1"),
            ENGINE,
            NAME,
        ),
        engines=(
            EngineUse("vector", operators=engine_operators("vector")),
            EngineUse("gpsimd", spaces=SBUF, forms=(("rsqrt", None),)),
            EngineUse(
                "scalar",
                generations=(3,),
                forms=(("multiply", "add"), ("multiply", None), ("add", None)),
                on_request=True,
            ),
            EngineUse("scalar", generations=(4,), on_request=True),
        ),
        shape=Shape.ELEMENTWISE,
    ),
    Instruction(
        name="scalar_tensor_tensor",
        family="elementwise",
        params=(
            out(),
            tile("data"),
            operator("op0", ARITHMETIC_BINARY),
            # The reference says "any type" here and fp32 for the same operand of `tensor_scalar`.
            operand("operand0", dtypes=UNPACKED),
            operator("op1", ARITHMETIC_BINARY),
            tile("operand1"),
            flag("reverse0"),
            flag("reverse1"),
            NAME,
        ),
        engines=(EngineUse("vector", operators=engine_operators("vector")),),
        shape=Shape.ELEMENTWISE,
        one_psum=(("data", "operand1"),),
    ),
    Instruction(
        name="tensor_copy",
        family="copy",
        params=(out(), tile("src"), ENGINE, NAME),
        engines=(
            EngineUse("vector"),
            EngineUse("scalar", generations=(3, 4), on_request=True),
            EngineUse("gpsimd", spaces=SBUF, on_request=True),
        ),
        shape=Shape.ELEMENTWISE,
    ),
    Instruction(
        name="tensor_copy_predicated",
        family="copy",
        params=(
            out(keeps="always"),
            Param("src", Kind.IN_OR_NUMBER, spaces=ON_CHIP),
            tile("predicate", dtypes=_PREDICATES),
            flag("reverse_pred"),
            NAME,
        ),
        engines=(EngineUse("vector"),),
        shape=Shape.ELEMENTWISE,
        one_psum=(("src", "predicate"),),
        same_dtype=(("dst", "src"),),
    ),
    Instruction(
        name="memset",
        family="generate",
        params=(out(dtypes=UNPACKED | PACKED), Param("value", Kind.NUMBER), ENGINE, NAME),
        engines=(EngineUse("vector"), EngineUse("gpsimd", spaces=SBUF, on_request=True)),
        shape=Shape.GENERATE,
    ),
    Instruction(
        name="reciprocal",
        family="elementwise",
        params=(out(), tile("data"), NAME),
        engines=(EngineUse("vector"),),
        shape=Shape.ELEMENTWISE,
    ),
    Instruction(
        name="iota",
        family="generate",
        params=(
            SBUF_OUT,
            Param("pattern", Kind.PATTERN),
            Param("offset", Kind.INTEGER, default=0),
            Param("channel_multiplier", Kind.INTEGER, default=0),
            NAME,
        ),
        engines=(EngineUse("gpsimd", spaces=SBUF),),
        shape=Shape.GENERATE,
    ),
    Instruction(
        name="affine_select",
        family="select",
        params=(
            SBUF_OUT,
            Param("pattern", Kind.PATTERN),
            Param("channel_multiplier", Kind.INTEGER),
            tile("on_true_tile", SBUF),
            Param("on_false_value", Kind.NUMBER),
            operator(
                "cmp_op",
                frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}),
                "equal",
            ),
            Param("offset", Kind.INTEGER, default=0),
            NAME,
        ),
        engines=(EngineUse("gpsimd", spaces=SBUF),),
        shape=Shape.ELEMENTWISE,
    ),
    Instruction(
        name="dropout",
        family="select",
        params=(out(), tile("data"), operand("prob"), NAME),
        engines=(EngineUse("vector"),),
        shape=Shape.ELEMENTWISE,
        same_dtype=(("dst", "data"),),
    ),
)
