"""The functions of an emitted projection: a weight that is stationary, an activation that moves.

Channels come out on partitions; all row groups add up in PSUM in fp32.
"""

from __future__ import annotations

from backends.nki.program.build import Block, Names, compare, every, part
from backends.nki.program.nodes import F32, Constant, Function, Pattern, Space, Token
from backends.nki.program.numbers import ONE, ZERO, Literal, Name, Number, smallest
from backends.nki.schedules.block.projection_stream import (
    COLUMNS,
    LOAD_WEIGHT,
    WEIGHT,
    WEIGHTS,
    argument,
    slot_of,
    tile_at,
    tiles_of,
    unpack_columns,
)
from backends.nki.select.constants import PARTITIONS
from backends.nki.select.layouts import MULTIPLY, SCALAR

BANK = Name("BANK")
STEP_CONSTANTS = (Constant("BANK", Literal(512), "fp32 numbers of a PSUM bank and partition"),)
MOVING = argument("moving_sb")


def _numbers(*names: str) -> tuple[Number, ...]:
    return tuple(Name(name) for name in names)


SCALE = argument("scale_sb")


def _project_tile(*, scaled: bool) -> Function:
    names = ("start", "many", "width", "heads", "entries", "groups")
    scale = ("scale_sb",) if scaled else ()
    start, many, width, heads, entries, groups = _numbers(*names)
    port, weight = argument("port_sb"), argument("weight_sb")
    block = Block(Names({*names}))
    most = block.let("most", BANK // entries)
    with block.loop("begin", ZERO, many, most) as (body, first):
        count = body.let("count", smallest(most, many - first))
        total = body.tile("sum_psum", (width, count * entries), F32, Space.PSUM)
        with (
            body.loop("place", ZERO, count) as (one, place),
            one.loop("group", ZERO, groups) as (inner, group),
        ):
            column = inner.let("column", (group * many + first + place) * width)
            inner.do(
                "nc_matmul",
                dst=part(total, None, (place * entries, entries)),
                stationary=part(weight, None, (column, width)),
                moving=every(MOVING, group, groups, entries),
                accumulate=compare(">", group, ZERO),
            )
        body.comment("From columns (slice, entry) to (entry, head).")
        free = (ONE, count), (heads, entries)
        dst = Pattern(port.tile, ((entries * heads, width), *free), start + first)
        if scaled:
            sums = (count * entries, width), (entries, count), (ONE, entries)
            same = (heads, width), (ONE, count), (ZERO, entries)
            body.do(
                "tensor_tensor",
                dst=dst,
                data1=Pattern(total.tile, sums, ZERO),
                data2=Pattern(SCALE.tile, same, start + first),
                op=Token(MULTIPLY),
            )
        else:
            body.do("tensor_copy", dst=dst, src=total, engine=SCALAR)
    times = ", times the scales of a slice, a column of `scale_sb`" if scaled else ""
    return Function(
        "project_tile_scaled" if scaled else "project_tile",
        ("port_sb", "weight_sb", "moving_sb", *scale, *names),
        "Multiply a tile of a weight with the activation: `many` slices of `width` channels, from\n"
        f"slice `start` of `heads` on{times}.",
        tuple(block.statements),
    )


def _project(*, scaled: bool) -> Function:
    names = ("width", "heads", "entries")
    scale = ("scale_sb",) if scaled else ()
    width, heads, entries = _numbers(*names)
    unit, groups, slots = _numbers("unit", "groups", "slots")
    block = Block(Names({*names, *COLUMNS}), [unpack_columns()])
    tiles = block.let("tiles", tiles_of())
    with block.loop("tile", ZERO, tiles) as (body, tile):
        found = tile_at(body, WEIGHT, WEIGHTS, tile)
        slices = unit // width
        body.call(
            (PROJECT_TILE_SCALED if scaled else PROJECT_TILE).name,
            argument("port_sb"),
            found.slot,
            MOVING,
            *((SCALE,) if scaled else ()),
            found.start * slices,
            found.many * slices,
            width,
            heads,
            entries,
            groups,
        )
        with body.when(compare("<", tile + slots, tiles)) as more:
            more.call(LOAD_WEIGHT.name, WEIGHTS, WEIGHT, Name("columns"), tile + slots)
    return Function(
        "project_scaled" if scaled else "project",
        ("port_sb", "weights_sb", "weight", "moving_sb", *scale, "columns", *names),
        "Multiply all tiles of a weight with the activation; a slot that is free takes the next\n"
        "tile at once. Columns of `port_sb` are (entry, head).",
        tuple(block.statements),
    )


def _project_heads() -> Function:
    names = ("apart", "outer", "inner", "entries")
    apart, outer, inner, entries = _numbers(*names)
    groups, unit = _numbers("groups", "unit")
    rows, identity, ones = (argument(n) for n in ("rows_sb", "identity_sb", "ones_sb"))
    block = Block(Names({*names, *COLUMNS}), [unpack_columns()])
    at = block.let("at", slot_of(WEIGHTS, ZERO))
    heads = block.let("heads", outer * inner)
    sums = block.tile("sum_psum", (heads, entries), F32, Space.PSUM)
    with block.loop("group", ZERO, groups) as (body, group):
        place = (WEIGHTS.shape[1], MOVING.shape[0])
        body.do(
            "nc_matmul",
            dst=sums,
            stationary=Pattern(
                WEIGHTS.tile, (place, (apart, outer), (ONE, inner)), at + group * unit
            ),
            moving=every(MOVING, group, groups, entries),
            accumulate=compare(">", group, ZERO),
        )
    sums_sb = block.tile("sum_sb", (heads, entries), F32)
    block.do("tensor_copy", dst=sums_sb, src=sums, engine=SCALAR)
    block.comment(
        "Column (entry, head) keeps the value of its head; a sum over partitions then brings it\n"
        "onto the partition of its row."
    )
    kept = block.tile("kept_sb", (heads, entries, heads), F32)
    block.do(
        "tensor_tensor",
        dst=kept,
        data1=Pattern(sums_sb.tile, ((entries, heads), (ONE, entries), (ZERO, heads)), ZERO),
        data2=Pattern(
            identity.tile, ((Literal(PARTITIONS), heads), (ZERO, entries), (ONE, heads)), ZERO
        ),
        op=Token(MULTIPLY),
    )
    with block.loop("row", ZERO, entries * heads, PARTITIONS) as (body, row):
        count = body.let("count", smallest(PARTITIONS, entries * heads - row))
        column = body.tile("column_psum", (count, ONE), F32, Space.PSUM)
        body.do(
            "nc_matmul",
            dst=column,
            stationary=Pattern(kept.tile, ((entries * heads, heads), (ONE, count)), row),
            moving=part(ones, (ZERO, heads), (ZERO, ONE)),
            is_moving_onezero=True,
            accumulate=False,
        )
        body.do(
            "tensor_copy",
            dst=part(rows, (ZERO, count), (row // PARTITIONS, ONE)),
            src=column,
            engine=SCALAR,
        )
    return Function(
        "project_heads",
        (
            "rows_sb",
            "weights_sb",
            "weight",
            "moving_sb",
            "identity_sb",
            "ones_sb",
            "columns",
            *names,
        ),
        "Multiply one column of a weight per head (`outer` runs of `inner`, `apart`) with the\n"
        "activation. Row (entry, head) comes onto partition row % 128 of column row // 128.",
        tuple(block.statements),
    )


PROJECT_TILE, PROJECT_TILE_SCALED = _project_tile(scaled=False), _project_tile(scaled=True)
PROJECT, PROJECT_SCALED = _project(scaled=False), _project(scaled=True)
PROJECT_HEADS = _project_heads()
NEEDS = {
    PROJECT: (PROJECT_TILE, PROJECT),
    PROJECT_SCALED: (PROJECT_TILE_SCALED, PROJECT_SCALED),
    PROJECT_HEADS: (PROJECT_HEADS,),
}
"""What a module holds for each function that is called, in this order."""
