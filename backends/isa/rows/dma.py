"""Rows of the DMA engines, and of transfers between the two cores of a logical core."""

from __future__ import annotations

from backends.isa.dtypes import DTYPES
from backends.isa.rows.arguments import ENGINE, NAME, integers, operator, out, tile
from backends.isa.schema import (
    DMA_SPACES,
    SBUF,
    EngineUse,
    Instruction,
    Kind,
    Param,
    Shape,
)

_ANY = frozenset(DTYPES)
_PRIORITY = Param("priority", Kind.INTEGER, default=None)
_OOB = Param("oob_mode", Kind.CHOICE, default="error", choices="oob_mode")
_DGE = Param("dge_mode", Kind.CHOICE, default="unknown", choices="dge_mode")
_DMA = (EngineUse("dma", spaces=DMA_SPACES),)

ROWS: tuple[Instruction, ...] = (
    Instruction(
        name="dma_copy",
        family="dma",
        params=(
            out(spaces=DMA_SPACES, dtypes=_ANY),
            tile("src", DMA_SPACES, _ANY),
            _PRIORITY,
            _OOB,
            _DGE,
            ENGINE,
            NAME,
        ),
        engines=_DMA,
        shape=Shape.DMA,
    ),
    Instruction(
        name="dma_transpose",
        family="dma",
        params=(
            out(spaces=SBUF, dtypes=_ANY),
            tile("src", DMA_SPACES, _ANY),
            integers("axes", None),
            _PRIORITY,
            _DGE,
            _OOB,
            NAME,
        ),
        engines=_DMA,
        shape=Shape.DMA_TRANSPOSE,
        same_dtype=(("dst", "src"),),
    ),
    Instruction(
        name="dma_compute",
        family="dma",
        params=(
            out(spaces=DMA_SPACES),
            Param("srcs", Kind.TILES, spaces=DMA_SPACES),
            operator("reduce_op", frozenset({"add"})),
            Param("scales", Kind.NUMBERS, default=None),
            Param("unique_indices", Kind.FLAG, default=True),
            _OOB,
            NAME,
        ),
        engines=_DMA,
        shape=Shape.DMA_COMPUTE,
    ),
    Instruction(
        name="sendrecv",
        family="cross_core",
        params=(
            tile("src", SBUF, _ANY),
            out(spaces=SBUF, dtypes=_ANY),
            Param("send_to_rank", Kind.INTEGER),
            Param("recv_from_rank", Kind.INTEGER),
            Param("pipe_id", Kind.INTEGER),
            Param("dma_engine", Kind.CHOICE, default="dma", choices="dma_engine"),
            NAME,
        ),
        engines=_DMA,
        shape=Shape.CROSS_CORE,
        same_dtype=(("dst", "src"),),
        generations=(3, 4),
        multi_core=True,
    ),
    Instruction(
        name="core_barrier",
        family="cross_core",
        params=(
            # Documented for shared HBM; shipped kernels also name a tile in SBUF.
            tile("data", DMA_SPACES, _ANY),
            Param("cores", Kind.INTEGERS),
            Param("engine", Kind.CHOICE, default="gpsimd", choices="engine"),
            NAME,
        ),
        engines=tuple(
            EngineUse(engine) for engine in ("gpsimd", "vector", "scalar", "tensor", "sync")
        ),
        shape=Shape.CROSS_CORE,
        generations=(3, 4),
        multi_core=True,
    ),
)
