"""Rows of TensorE: products and transposes."""

from __future__ import annotations

from backends.isa.dtypes import FP8, MATMUL_INPUTS, PACKED
from backends.isa.rows.arguments import ENGINE, NAME, flag, integers, out, tile
from backends.isa.schema import (
    PSUM,
    SBUF,
    EngineUse,
    Instruction,
    Kind,
    Limit,
    Param,
    Shape,
)
from backends.isa.targets import PARTITIONS, QUADRANT, STATIONARY_FREE

_FP32 = frozenset({"float32"})
_BF16 = frozenset({"bfloat16"})
# A transpose leaves the input's type in PSUM; fp8 leaves 16-bit elements.
_MATMUL_OUT = _FP32 | _BF16 | frozenset({"float16"}) | FP8
_SCALES = frozenset({"float8_e8m0fnu", "uint8"})
_ACCUMULATE = Param("accumulate", Kind.FLAG, default=None)

_NO_MX = "microscaling formats (packed fp8 and fp4 with block scales) are not modelled"

ROWS: tuple[Instruction, ...] = (
    Instruction(
        name="nc_matmul",
        family="matmul",
        params=(
            out(spaces=PSUM, dtypes=_MATMUL_OUT, keeps="sometimes"),
            tile("stationary", SBUF, MATMUL_INPUTS),
            tile("moving", SBUF, MATMUL_INPUTS),
            flag("is_stationary_onezero"),
            flag("is_moving_onezero"),
            flag("is_transpose"),
            _ACCUMULATE,
            integers("tile_position", ()),
            integers("tile_size", ()),
            Param("perf_mode", Kind.CHOICE, default="none", choices="matmul_perf_mode"),
            NAME,
        ),
        engines=(EngineUse("tensor"),),
        shape=Shape.MATMUL,
        limits=(
            Limit("dst", "partitions", maximum=STATIONARY_FREE),
            Limit("dst", "free", maximum=512, generations=(2, 3)),
            Limit("dst", "free", maximum=4096, generations=(4,), dst_dtypes=_FP32),
            Limit("dst", "free", maximum=8192, generations=(4,), dst_dtypes=_BF16),
        ),
    ),
    Instruction(
        name="nc_transpose",
        family="matmul",
        params=(out(), tile("data"), ENGINE, NAME),
        engines=(
            EngineUse("tensor", out_spaces=PSUM, in_spaces=SBUF),
            EngineUse("vector"),
        ),
        shape=Shape.TRANSPOSE,
        same_dtype=(("dst", "data"),),
        limits=(
            Limit("data", "free", maximum=PARTITIONS, engine="tensor"),
            Limit("data", "free", maximum=QUADRANT, engine="vector"),
            Limit("data", "partitions", maximum=QUADRANT, engine="vector"),
        ),
    ),
    Instruction(
        name="nc_matmul_mx",
        family="matmul",
        params=(
            out(spaces=PSUM, dtypes=_FP32 | _BF16, keeps="sometimes"),
            tile("stationary", SBUF, PACKED),
            tile("moving", SBUF, PACKED),
            tile("stationary_scale", SBUF, _SCALES),
            tile("moving_scale", SBUF, _SCALES),
            integers("tile_position", None),
            integers("tile_size", None),
            _ACCUMULATE,
            NAME,
        ),
        engines=(EngineUse("tensor"),),
        shape=Shape.MATMUL_MX,
        generations=(4,),
        not_simulated=_NO_MX,
    ),
    Instruction(
        name="quantize_mx",
        family="matmul",
        params=(
            out(spaces=SBUF, dtypes=frozenset({"float8_e5m2_x4", "float8_e4m3fn_x4"})),
            tile("src", SBUF, frozenset({"float16", "bfloat16"})),
            out("dst_scale", SBUF, _SCALES),
            NAME,
        ),
        engines=(EngineUse("vector"),),
        shape=Shape.QUANTIZE_MX,
        limits=(Limit("src", "partitions", maximum=PARTITIONS, multiple=QUADRANT),),
        generations=(4,),
        not_simulated=_NO_MX,
    ),
)
