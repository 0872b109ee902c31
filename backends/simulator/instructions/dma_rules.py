"""Rules of the DMA instructions: descriptor modes, run-time addresses, transposition shapes."""

from __future__ import annotations

from math import prod

from backends.isa.dtypes import PACKED
from backends.isa.targets import PARTITIONS
from backends.simulator.faults import Fault
from backends.simulator.instructions.call import BoundCall
from backends.simulator.tensor import NkiTensor

_MAX_SOURCES = 16
_QUEUES = frozenset({"sync", "scalar"})
_MAX_PRIORITY = 3
_TRANSPOSE_GROUP = 16
_TRANSPOSE_WIDTH = 128
_TRANSPOSE_ROWS = frozenset({1, 2, 4, 8, 16})
DMA_TRANSPOSES: dict[int, tuple[int, ...]] = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}
"""The order of axes of a transposition, by rank."""


def check_dma_copy(call: BoundCall) -> None:
    """Mode, queue, priority, types and run-time addresses of a copy (S303, S305, S320)."""
    _mode(call)
    _priority(call)
    if call["engine"] != "unknown" and (
        call["dge_mode"] != "hwdge" or call["engine"] not in _QUEUES
    ):
        raise Fault(
            "S320",
            f"`engine` {call['engine']} of a DMA needs `dge_mode.hwdge` and must be sync or scalar",
            values={"dge_mode": call["dge_mode"]},
        )
    dst, src = call["dst"], call["src"]
    if dst.dtype != src.dtype:
        if call["dge_mode"] == "hwdge":
            raise Fault(
                "S320",
                f"hardware descriptors do not convert {src.dtype} to {dst.dtype}",
                help="use `.view` for equal sizes, or another `dge_mode`",
            )
        if {dst.dtype.name, src.dtype.name} & PACKED:
            raise Fault("S305", f"a DMA does not convert {src.dtype} to {dst.dtype}")


def check_dma_transpose(call: BoundCall) -> None:
    """Mode and priority, and the shapes that hardware descriptors transpose (S320, S328)."""
    _mode(call, transpose=True)
    _priority(call)
    src: NkiTensor = call["src"]
    if src.dynamic is not None:
        _indirect_transpose(call, src)
    elif call["dge_mode"] == "hwdge":
        _hardware_transpose(src)


def check_dma_compute(call: BoundCall) -> None:
    """At most 16 sources, no scales, and the two forms with run-time rows (S314, S320, S326)."""
    sources: tuple[NkiTensor, ...] = call["srcs"]
    dst: NkiTensor = call["dst"]
    if len(sources) > _MAX_SOURCES:
        raise Fault("S314", f"`srcs` has {len(sources)} tiles; at most {_MAX_SOURCES} are allowed")
    scales = call["scales"]
    if scales is not None and any(scale != 1 for scale in scales):
        raise Fault("S326", f"every one of `scales` must be 1.0, they are {scales}")
    if not any(tile.dynamic for tile in (dst, *sources)):
        return
    if len(sources) != 2:
        raise Fault("S320", f"indexed accumulation takes two sources, not {len(sources)}")
    scatters = dst.dynamic is not None
    if scatters and not any(_same_view(dst, source) for source in sources):
        raise Fault("S320", "an indexed `dst` must be one of `srcs` as well")
    if not scatters and not any(_same_view(dst, source) for source in sources):
        raise Fault("S320", "`dst` must be the source that is not indexed")
    if not call["unique_indices"]:
        raise Fault("S320", "indices of an accumulating DMA must be unique")


def _same_view(a: NkiTensor, b: NkiTensor) -> bool:
    return (a.storage, a.shape, a.strides, a.offset) == (b.storage, b.shape, b.strides, b.offset)


def _mode(call: BoundCall, transpose: bool = False) -> None:
    mode = call["dge_mode"]
    dynamic = [tile.dynamic for tile in (call["dst"], call["src"]) if tile.dynamic is not None]
    if mode == "hwdge" and call.target.generation < 3:
        raise Fault("S303", f"hardware descriptors exist from trn2 on, not on {call.target.name}")
    if mode == "none" and dynamic:
        raise Fault("S320", "`dge_mode.none` has static addresses only")
    tables = [access.index for access in dynamic if access.kind == "rows"]
    rows = any(access.kind != "scalar" for access in dynamic)
    if rows and call.target.generation < 3:
        raise Fault("S303", f"gathers and scatters exist from trn2 on, not on {call.target.name}")
    for table in tables:
        if not transpose and isinstance(table, NkiTensor) and table.free_size != 1:
            raise Fault(
                "S320",
                f"row numbers of `{call.row.name}` are a (P, 1) tensor, not {tuple(table.shape)}",
            )
    if rows and mode not in ("unknown", "swdge"):
        raise Fault("S320", f"a gather or scatter needs `dge_mode.swdge`, not {mode}")


def _priority(call: BoundCall) -> None:
    priority = call["priority"]
    if priority is None:
        return
    if call.target.generation < 4:
        raise Fault("S303", f"`priority` exists on trn3, not on {call.target.name}")
    if not 0 <= priority <= _MAX_PRIORITY:
        raise Fault("S326", f"`priority` must be 0 to {_MAX_PRIORITY}, it is {priority}")


def _hardware_transpose(src: NkiTensor) -> None:
    shape = tuple(src.shape)
    rows = shape[0] == _TRANSPOSE_GROUP
    if src.ndim > 2:
        rows = shape[0] in _TRANSPOSE_ROWS and shape[0] * shape[-2] % _TRANSPOSE_GROUP == 0
    if src.dtype.bytes != 2 or shape[-1] > _TRANSPOSE_WIDTH or not rows:
        raise Fault(
            "S328",
            f"hardware descriptors cannot transpose {src.dtype} {shape}",
            help="use 2-byte types, at most 128 columns and groups of 16 rows, or leave `dge_mode`",
        )


def _transpose_table(table: NkiTensor) -> None:
    """The row numbers of an indirect transpose, which may stand in several columns."""
    rows, columns = table.shape[0], table.free_size
    whole = rows == PARTITIONS or columns == 1
    if table.dtype.name != "uint32" or rows % _TRANSPOSE_GROUP or not whole:
        raise Fault(
            "S320",
            f"row numbers of an indirect transpose are {table.dtype} {tuple(table.shape)}",
            help="use uint32 in a multiple of 16 partitions, all 128 for more than one column",
        )


def _indirect_transpose(call: BoundCall, src: NkiTensor) -> None:
    shape = tuple(src.shape)
    assert src.dynamic is not None
    table = src.dynamic.index
    if src.dynamic.kind == "rows" and isinstance(table, NkiTensor):
        _transpose_table(table)
    if src.memory == "sbuf" or src.dtype.bytes != 2:
        raise Fault("S320", "an indirect transpose reads 2-byte elements from HBM")
    if shape[-1] > _TRANSPOSE_WIDTH or shape[0] % _TRANSPOSE_GROUP:
        raise Fault(
            "S328",
            f"an indirect transpose takes multiples of 16 rows of at most 128 columns, not {shape}",
        )
    if len(shape) == 4 and 1 not in shape[1:3]:
        raise Fault("S328", f"axis 1 or 2 of {shape} must be 1 in an indirect transpose")


# ---- shapes


def copy_shapes(call: BoundCall) -> None:
    """A copy has as many elements on both sides (S319)."""
    _equal_counts(call["dst"], "src", call["src"])


def compute_shapes(call: BoundCall) -> None:
    """Every source has as many elements as `dst` (S319)."""
    for index, src in enumerate(call["srcs"]):
        _equal_counts(call["dst"], f"srcs[{index}]", src)


def transpose_shapes(call: BoundCall) -> None:
    """`dst` has the axes of `src` in the one order its rank admits (S328)."""
    dst, src = call["dst"], call["src"]
    default = DMA_TRANSPOSES.get(src.ndim)
    if default is None or call["axes"] not in (None, default):
        known = ", ".join(str(axes) for axes in DMA_TRANSPOSES.values())
        raise Fault("S328", f"`axes` {call['axes']} of rank {src.ndim}; supported are {known}")
    expected = tuple(src.shape[axis] for axis in default)
    if tuple(dst.shape) != expected:
        raise Fault(
            "S328",
            f"`dst` must have shape {expected}, it has {tuple(dst.shape)}",
            values={"src": tuple(src.shape)},
        )


def _equal_counts(dst: NkiTensor, name: str, src: NkiTensor) -> None:
    if prod(dst.shape) != prod(src.shape):
        raise Fault(
            "S319",
            f"`dst` has {prod(dst.shape)} elements and `{name}` {prod(src.shape)}",
            values={"dst": tuple(dst.shape), name: tuple(src.shape)},
            help="a DMA does not broadcast; use a stride-0 view of the source",
        )
