"""Rows that move data across partitions or by index, registers, and random numbers."""

from __future__ import annotations

from backends.isa.dtypes import INTEGERS
from backends.isa.rows.arguments import NAME, SBUF_OUT, operand, out, tile
from backends.isa.schema import (
    DMA_SPACES,
    ON_CHIP,
    SBUF,
    EngineUse,
    Instruction,
    Kind,
    Limit,
    Param,
    Shape,
)

_GPSIMD = (EngineUse("gpsimd", spaces=SBUF),)
_SYNC = (EngineUse("sync"),)
_UINT32 = frozenset({"uint32"})
_NO_STREAM = "the generator's output stream is not documented, so no simulator can reproduce it"
_RANDOM_ENGINE = Param("engine", Kind.CHOICE, default="gpsimd", choices="engine")

ROWS: tuple[Instruction, ...] = (
    Instruction(
        name="nc_stream_shuffle",
        family="shuffle",
        params=(out(keeps="sometimes"), tile("src"), Param("shuffle_mask", Kind.INTEGERS), NAME),
        engines=(EngineUse("vector"),),
        shape=Shape.SHUFFLE,
        same_dtype=(("dst", "src"),),
    ),
    Instruction(
        name="local_gather",
        family="gather",
        params=(
            SBUF_OUT,
            tile("src_buffer", SBUF),
            tile("index", SBUF, frozenset({"uint16"})),
            Param("num_elem_per_idx", Kind.INTEGER, default=1),
            Param("num_valid_indices", Kind.INTEGER, default=None),
            NAME,
        ),
        engines=_GPSIMD,
        shape=Shape.GATHER,
        same_dtype=(("dst", "src_buffer"),),
        limits=(
            Limit("src_buffer", "partitions", multiple=16, minimum=16),
            Limit("index", "partitions", multiple=16, minimum=16),
        ),
    ),
    Instruction(
        name="nc_n_gather",
        family="gather",
        params=(SBUF_OUT, tile("data", SBUF), tile("indices", SBUF, _UINT32), NAME),
        engines=_GPSIMD,
        shape=Shape.GATHER,
        same_dtype=(("dst", "data"),),
    ),
    Instruction(
        name="register_alloc",
        family="register",
        params=(Param("x", Kind.REGISTER_OR_INTEGER, default=None),),
        engines=_SYNC,
        shape=Shape.REGISTER,
    ),
    Instruction(
        name="register_move",
        family="register",
        params=(Param("dst", Kind.REGISTER), Param("src", Kind.REGISTER_OR_INTEGER)),
        engines=_SYNC,
        shape=Shape.REGISTER,
    ),
    Instruction(
        name="register_load",
        family="register",
        params=(Param("dst", Kind.REGISTER), tile("src", DMA_SPACES)),
        engines=_SYNC,
        shape=Shape.REGISTER,
    ),
    Instruction(
        name="register_store",
        family="register",
        params=(out(spaces=DMA_SPACES), Param("src", Kind.REGISTER)),
        engines=_SYNC,
        shape=Shape.REGISTER,
    ),
    Instruction(
        name="rng",
        family="random",
        params=(
            out(dtypes=INTEGERS),
            Param("engine", Kind.CHOICE, default="vector", choices="engine"),
            NAME,
        ),
        engines=(
            EngineUse("vector"),
            EngineUse("gpsimd", generations=(3, 4), spaces=SBUF, on_request=True),
        ),
        shape=Shape.GENERATE,
        not_simulated=_NO_STREAM,
    ),
    Instruction(
        name="set_rng_seed",
        family="random",
        params=(Param("src_seeds", Kind.SEED, spaces=ON_CHIP), NAME),
        engines=(EngineUse("vector"),),
        shape=Shape.GENERATE,
        not_simulated=_NO_STREAM,
    ),
    Instruction(
        name="rand_set_state",
        family="random",
        params=(
            Param("src_seeds", Kind.SEED, spaces=ON_CHIP, dtypes=_UINT32),
            _RANDOM_ENGINE,
            NAME,
        ),
        engines=(
            EngineUse("gpsimd", generations=(3, 4)),
            EngineUse("vector", generations=(4,), on_request=True),
        ),
        shape=Shape.GENERATE,
        generations=(3, 4),
        not_simulated=_NO_STREAM,
    ),
    Instruction(
        name="rand_get_state",
        family="random",
        params=(out(dtypes=_UINT32), _RANDOM_ENGINE, NAME),
        engines=(
            EngineUse("gpsimd", generations=(3, 4)),
            EngineUse("vector", generations=(4,), on_request=True),
        ),
        shape=Shape.GENERATE,
        generations=(3, 4),
        not_simulated=_NO_STREAM,
    ),
    Instruction(
        name="rand2",
        family="random",
        params=(out(), operand("min"), operand("max"), NAME),
        engines=(EngineUse("vector"),),
        shape=Shape.GENERATE,
        generations=(4,),
        not_simulated=_NO_STREAM,
    ),
)
