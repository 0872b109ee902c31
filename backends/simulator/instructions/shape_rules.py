"""How the shapes of one call's tiles hang together: one rule per `Shape` of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod

from backends.isa.schema import Kind, Shape
from backends.isa.targets import QUADRANT, STATIONARY_FREE
from backends.simulator.faults import Fault
from backends.simulator.instructions.call import BoundCall
from backends.simulator.tensor import NkiTensor

_TOPK_GROUP = 16
_TOPK_ELEMENTS = (8, 65536)
_TOPK_RESULTS = 32767
DMA_TRANSPOSES: dict[int, tuple[int, ...]] = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}


def check_shapes(call: BoundCall) -> None:
    """Operand columns, the rule of the row's shape, and the row's limits (S309 to S328)."""
    _check_columns(call)
    _RULES[call.row.shape](call)
    _check_limits(call)


def _check_columns(call: BoundCall) -> None:
    """(P, 1) operands have one element for each partition of the first full input (S313)."""
    full = [
        call.values[param.name] for param in call.row.params if param.kind in (Kind.IN, Kind.OUT)
    ]
    partitions = next((tile.partitions for tile in reversed(full) if tile is not None), None)
    columns = (Kind.OPERAND, Kind.VECTOR_IN, Kind.VECTOR_OUT)
    for param in call.row.params:
        tile = call.values[param.name]
        if param.kind not in columns or not isinstance(tile, NkiTensor):
            continue
        if tile.free_size != 1 or tile.partitions != partitions:
            raise Fault(
                "S313",
                f"`{param.name}` of `{call.row.name}` must be ({partitions}, 1), it is "
                f"{tuple(tile.shape)}",
                help="nothing broadcasts over partitions; take a (P, 1) slice",
            )


def _check_limits(call: BoundCall) -> None:
    dst: NkiTensor | None = call.values.get("dst")
    for limit in call.row.limits:
        tile: NkiTensor | None = call.values[limit.param]
        if (
            tile is None
            or call.target.generation not in limit.generations
            or (limit.engine is not None and limit.engine != call.engine)
            or (limit.dst_dtypes is not None and _type(dst) not in limit.dst_dtypes)
        ):
            continue
        size = tile.free_size if limit.quantity == "free" else tile.partitions
        what = "elements per partition" if limit.quantity == "free" else "partitions"
        subject = f"`{limit.param}` of `{call.row.name}` has {size} {what}"
        if limit.maximum is not None and size > limit.maximum:
            where = f" on {call.engine}" if limit.engine else ""
            raise Fault("S314", f"{subject}; at most {limit.maximum} are allowed{where}")
        if size < limit.minimum:
            raise Fault("S314", f"{subject}; at least {limit.minimum} are needed")
        if size % limit.multiple:
            raise Fault("S314", f"{subject}; a multiple of {limit.multiple} is needed")


def _type(tile: NkiTensor | None) -> str | None:
    return None if tile is None else tile.dtype.name


def _equal_partitions(call: BoundCall, names: Iterable[str]) -> None:
    tiles = [(name, call.values[name]) for name in names]
    first_name, first = tiles[0]
    for name, tile in tiles[1:]:
        if tile.partitions != first.partitions:
            raise Fault(
                "S309",
                f"`{first_name}` and `{name}` of `{call.row.name}` cover {first.partitions} and "
                f"{tile.partitions} partitions",
                values={first_name: tuple(first.shape), name: tuple(tile.shape)},
            )


def _full_tiles(call: BoundCall) -> list[str]:
    """Names of the tiles of an elementwise call that have one element per element of `dst`."""
    kinds = (Kind.OUT, Kind.IN, Kind.IN_OR_NUMBER)
    return [
        param.name
        for param in call.row.params
        if param.kind in kinds and isinstance(call.values[param.name], NkiTensor)
    ]


def _elementwise(call: BoundCall) -> None:
    names = _full_tiles(call)
    _equal_partitions(call, names)
    first: NkiTensor = call.values[names[0]]
    for name in names[1:]:
        tile: NkiTensor = call.values[name]
        if tile.free_size != first.free_size:
            raise Fault(
                "S312",
                f"`{names[0]}` and `{name}` of `{call.row.name}` have {first.free_size} and "
                f"{tile.free_size} elements per partition",
                values={names[0]: tuple(first.shape), name: tuple(tile.shape)},
                help="broadcast along the free axes with `.broadcast` or a stride-0 `.ap`",
            )


def _matmul(call: BoundCall) -> None:
    dst, stationary, moving = (call.values[name] for name in ("dst", "stationary", "moving"))
    shapes = {
        "dst": tuple(dst.shape),
        "stationary": tuple(stationary.shape),
        "moving": tuple(moving.shape),
    }
    rows = 2 if call["perf_mode"] == "double_row" else 1
    if stationary.partitions != moving.partitions:
        raise Fault(
            "S315", "`stationary` and `moving` must cover equally many partitions", values=shapes
        )
    if rows == 2 and not all(
        tile.ndim >= 3 and tile.shape[1] == 2 for tile in (stationary, moving)
    ):
        raise Fault(
            "S315", "`double_row` takes operands of shape (P, 2, M) and (P, 2, N)", values=shapes
        )
    columns = stationary.free_size // rows
    if columns > STATIONARY_FREE:
        raise Fault(
            "S314",
            f"`stationary` has {columns} columns; at most {STATIONARY_FREE} are allowed",
            values=shapes,
        )
    if (dst.partitions, dst.free_size) != (columns, moving.free_size // rows):
        raise Fault(
            "S315",
            f"`dst` must have {columns} partitions of {moving.free_size // rows} elements, it has "
            f"{dst.partitions} of {dst.free_size}",
            values=shapes,
        )


def _transpose(call: BoundCall) -> None:
    dst, data = call["dst"], call["data"]
    if (dst.partitions, dst.free_size) != (data.free_size, data.partitions):
        raise Fault(
            "S328",
            f"`dst` must have {data.free_size} partitions of {data.partitions} elements, it has "
            f"{dst.partitions} of {dst.free_size}",
            values={"dst": tuple(dst.shape), "data": tuple(data.shape)},
        )


def _equal_counts(dst: NkiTensor, name: str, src: NkiTensor) -> None:
    if prod(dst.shape) != prod(src.shape):
        raise Fault(
            "S319",
            f"`dst` has {prod(dst.shape)} elements and `{name}` {prod(src.shape)}",
            values={"dst": tuple(dst.shape), name: tuple(src.shape)},
            help="a DMA does not broadcast; use a stride-0 view of the source",
        )


def _dma(call: BoundCall) -> None:
    _equal_counts(call["dst"], "src", call["src"])


def _dma_compute(call: BoundCall) -> None:
    for index, src in enumerate(call["srcs"]):
        _equal_counts(call["dst"], f"srcs[{index}]", src)


def _dma_transpose(call: BoundCall) -> None:
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


def reduced_axes(call: BoundCall) -> int:
    """How many trailing axes of `data` a `tensor_reduce` folds.

    Raises Fault S321 unless `axis` names the last axes and not the partition axis.
    """
    data: NkiTensor = call["data"]
    axes = sorted(axis + data.ndim if axis < 0 else axis for axis in call["axis"])
    expected = list(range(data.ndim - len(axes), data.ndim))
    if not axes or axes != expected or axes[0] < 1:
        raise Fault(
            "S321",
            f"`axis` {call['axis']} of data {tuple(data.shape)} must name the last free axes",
            help="permute the view so that the reduced axes come last",
        )
    return len(axes)


def _reduce_free(call: BoundCall) -> None:
    dst, data = call["dst"], call["data"]
    _equal_partitions(call, ("data", "dst"))
    kept = prod(data.shape[1 : data.ndim - reduced_axes(call)])
    if dst.free_size != kept:
        raise Fault(
            "S312",
            f"`dst` must have {kept} elements per partition, it has {dst.free_size}",
            values={"dst": tuple(dst.shape), "data": tuple(data.shape), "axis": call["axis"]},
        )


def _expect_free(call: BoundCall, name: str, expected: int) -> None:
    tile: NkiTensor = call.values[name]
    if tile.free_size != expected:
        raise Fault(
            "S312",
            f"`{name}` of `{call.row.name}` must have {expected} elements per partition, it has "
            f"{tile.free_size}",
        )


def _reduce_partition(call: BoundCall) -> None:
    dst, data = call["dst"], call["data"]
    if dst.partitions != 1:
        raise Fault("S309", f"`dst` must cover one partition, it covers {dst.partitions}")
    _expect_free(call, "dst", data.free_size)


def _statistics(call: BoundCall) -> None:
    _equal_partitions(call, ("data", "dst"))
    _expect_free(call, "dst", 6)


def _aggregate(call: BoundCall) -> None:
    _equal_partitions(call, ("data", "dst"))
    _expect_free(call, "dst", 2)


def _eight(call: BoundCall) -> None:
    names = [
        name
        for name in ("data", "src", "vals", "dst", "dst_idx")
        if call.values.get(name) is not None
    ]
    _equal_partitions(call, names)
    data = "data" if "data" in names else "src"
    sizes = {"vals": 8, "dst_idx": 8, "dst": 8}
    if call.row.name == "nc_match_replace8":
        sizes["dst"] = call.values[data].free_size
    for name, size in sizes.items():
        if name in names:
            _expect_free(call, name, size)


def _shuffle(call: BoundCall) -> None:
    dst, src, mask = call["dst"], call["src"], call["shuffle_mask"]
    if dst.free_size != src.free_size:
        _expect_free(call, "dst", src.free_size)
    quadrants = [-(-tile.partitions // QUADRANT) for tile in (src, dst)]
    if quadrants[0] != quadrants[1]:
        raise Fault(
            "S309",
            f"`src` covers {quadrants[0]} quadrants of {QUADRANT} partitions and `dst` "
            f"{quadrants[1]}",
            help="issue one shuffle per quadrant",
        )
    # An entry counts when some quadrant of dst has that row; its source must be in src's view.
    for row, source in enumerate(mask[: min(dst.partitions, QUADRANT)]):
        last_rows = [q * QUADRANT + source for q in range(quadrants[1])]
        reached = [
            start for q, start in enumerate(last_rows) if q * QUADRANT + row < dst.partitions
        ]
        if source != KEEP and any(partition >= src.partitions for partition in reached):
            raise Fault(
                "S327",
                f"entry {row} of the mask takes partition {source}, outside the "
                f"{src.partitions} partitions of `src`",
            )


KEEP = 255
"""A shuffle mask entry that leaves the destination partition unchanged."""


def _gather(call: BoundCall) -> None:
    index = "index" if call.row.name == "local_gather" else "indices"
    data = "src_buffer" if call.row.name == "local_gather" else "data"
    _equal_partitions(call, (data, index, "dst"))
    if call.row.name == "nc_n_gather":
        _expect_free(call, "dst", call[index].free_size)


def _sequence(call: BoundCall) -> None:
    dst, ids = call["dst"], call["segment_ids"]
    if ids.partitions != 1 or dst.partitions != 1:
        raise Fault("S309", "`segment_ids` and `dst` of `sequence_bounds` cover one partition")
    _expect_free(call, "dst", 2 * ids.free_size)


def _count(call: BoundCall) -> None:
    _equal_partitions(call, ("src", "dst"))
    _expect_free(call, "dst", call["src"].free_size + 1)


def _topk(call: BoundCall) -> None:
    _equal_partitions(call, ("src", "val_dst", "idx_dst"))
    count, n = call["val_dst"].free_size, call["n"]
    _expect_free(call, "idx_dst", count)
    if not _TOPK_ELEMENTS[0] <= n < _TOPK_ELEMENTS[1] or not count <= min(n, _TOPK_RESULTS):
        raise Fault(
            "S314",
            f"`topk` of {count} out of {n} elements; n is 8 to 65535 and k at most n and 32767",
        )
    if call["src"].free_size * _TOPK_GROUP < n:
        raise Fault(
            "S312",
            f"`src` holds {call['src'].free_size * _TOPK_GROUP} elements per group of 16 "
            f"partitions, `n` is {n}",
        )


def _cross_core(call: BoundCall) -> None:
    if call.row.name != "sendrecv":
        return
    dst, src = call["dst"], call["src"]
    if tuple(dst.shape) != tuple(src.shape):
        raise Fault(
            "S312",
            "`src` and `dst` of `sendrecv` must have one shape",
            values={"src": tuple(src.shape), "dst": tuple(dst.shape)},
        )


def _one_element(call: BoundCall) -> None:
    for name, tile in call.tiles().items():
        if prod(tile.shape) != 1:
            raise Fault("S312", f"`{name}` of `{call.row.name}` must have one element")


def _free(call: BoundCall) -> None:
    """Shapes that nothing generic can be said about; the instruction's own rules check them."""


_RULES: dict[Shape, Callable[[BoundCall], None]] = {
    Shape.ELEMENTWISE: _elementwise,
    Shape.MATMUL: _matmul,
    Shape.MATMUL_MX: _free,
    Shape.TRANSPOSE: _transpose,
    Shape.DMA: _dma,
    Shape.DMA_TRANSPOSE: _dma_transpose,
    Shape.DMA_COMPUTE: _dma_compute,
    Shape.REDUCE_FREE: _reduce_free,
    Shape.REDUCE_PARTITION: _reduce_partition,
    Shape.STATISTICS: _statistics,
    Shape.AGGREGATE: _aggregate,
    Shape.EIGHT: _eight,
    Shape.SHUFFLE: _shuffle,
    Shape.GATHER: _gather,
    Shape.GENERATE: _free,
    Shape.SEQUENCE: _sequence,
    Shape.COUNT: _count,
    Shape.TOPK: _topk,
    Shape.QUANTIZE_MX: _free,
    Shape.CROSS_CORE: _cross_core,
    Shape.REGISTER: _one_element,
}
