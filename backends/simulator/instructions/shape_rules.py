"""How the shapes of one call's tiles hang together: one rule per `Shape` of the rows."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from backends.isa.schema import Kind, Shape
from backends.isa.targets import STATIONARY_FREE
from backends.simulator.faults import Fault
from backends.simulator.instructions import dma_rules, movement_rules, reduction_rules
from backends.simulator.instructions.call import BoundCall
from backends.simulator.instructions.extents import equal_partitions
from backends.simulator.tensor import NkiTensor


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
    equal_partitions(call, names)
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
    Shape.DMA: dma_rules.copy_shapes,
    Shape.DMA_TRANSPOSE: dma_rules.transpose_shapes,
    Shape.DMA_COMPUTE: dma_rules.compute_shapes,
    Shape.REDUCE_FREE: reduction_rules.free_axes,
    Shape.REDUCE_PARTITION: reduction_rules.partition_axis,
    Shape.STATISTICS: reduction_rules.statistics,
    Shape.AGGREGATE: reduction_rules.aggregate,
    Shape.EIGHT: reduction_rules.eight,
    Shape.SHUFFLE: movement_rules.shuffle,
    Shape.GATHER: movement_rules.gather,
    Shape.GENERATE: _free,
    Shape.SEQUENCE: reduction_rules.sequence_bounds,
    Shape.COUNT: reduction_rules.places_and_count,
    Shape.TOPK: reduction_rules.topk,
    Shape.QUANTIZE_MX: _free,
    Shape.CROSS_CORE: movement_rules.exchange_shapes,
    Shape.REGISTER: _one_element,
}
