"""The vectors of a group of chunks on their way in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from backends.nki.program.build import Block, compare, part
from backends.nki.program.nodes import Function, If, Space, Tile, Unpack, View
from backends.nki.program.numbers import (
    NONE,
    ONE,
    ZERO,
    Choice,
    Literal,
    Name,
    Number,
    binary,
    smallest,
)
from backends.nki.program.structures import EMPTY, Item, Record, Slice, Text
from backends.nki.schedules.chunked.gates import per_slot
from backends.nki.schedules.chunked.records import (
    CHUNK,
    KEYS,
    PAIR,
    SLOTS,
    STEPS,
    TEAM,
    VALUES,
    tile_of,
)
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.select.layouts import GPSIMD
from gdsl.ir.kernel import Input

COUNT, POSITION, FIRST_CHUNK = Name("count"), Name("position"), Name("chunk")


def functions(schedule: Schedule) -> Iterator[Function]:
    """Yield `load_group`, and what keeps live tokens where a kernel has a length per row."""
    if schedule.scan.valid is not None:
        yield _keep_alive(schedule)
    yield _load_group(schedule)


def _sources(schedule: Schedule) -> Mapping[str, tuple[Input, str | None, Number]]:
    """Tensor, axis and width of each vector, by the name of its tile."""
    scan = schedule.scan
    return {
        "k_sb": (scan.key, scan.key_axis, KEYS),
        "q_sb": (scan.query, scan.key_axis, KEYS),
        "v_sb": (scan.value, scan.value_axis, VALUES),
        **{extra.name: (extra.item, extra.axis, extra.width) for extra in schedule.around.extra},
    }


def _load_group(schedule: Schedule) -> Function:
    scan = schedule.scan
    stage = Stage(
        "load_group",
        ("gates", "tensors", "sizes", "team", "position", "count", "chunk", "steps"),
        "Bring in q, k, v of `count` lanes x `steps` chunks and scale them by their decays.\n\n"
        "Slot lane * steps + step of every tile is one chunk of one lane.",
        scan.run.span,
    )
    block = stage.block
    sources = _sources(schedule)
    elements = {extra.name: extra.element for extra in schedule.around.extra}
    schedule.tensors(stage, *dict.fromkeys(item.name for item, _, _ in sources.values()))
    stage.numbers("sizes", "keys", "values", "total")
    block.let_named("slots", COUNT * STEPS)
    tiles = {
        name: block.tile(name, (CHUNK, SLOTS * width), elements.get(name, schedule.operand))
        for name, (_, _, width) in sources.items()
    }
    tiles["kq_T"] = block.tile("kq_T", (KEYS, SLOTS * PAIR), schedule.operand)
    _clear_tail(block, tiles.values())
    _transfers(schedule, stage, tiles)
    chunks, first = Item(Name("gates"), Text("chunks")), Item(Name("gates"), Text("first_chunk"))
    fields: dict[str, Number] = {
        "gates": Name("gates"),
        "lanes": COUNT,
        "steps": STEPS,
        "slots": SLOTS,
        "position": POSITION,
        "chunk": FIRST_CHUNK,
        "column": POSITION * chunks + FIRST_CHUNK - first,
        "keys": KEYS,
        "values": VALUES,
        "v": Name("v_sb"),
        "kq_T": Name("kq_T"),
    }
    around = schedule.around
    kept = [extra.name for extra in around.extra]
    kept += ["v_sb"] if "v_sb" in around.used else []
    kept += ["sizes"] if around.prologue else []
    fields |= {name: Name(name) for name in kept}
    block.let_named("group", Record(tuple(fields.items())))
    if scan.valid is not None:
        alive = Item(Name("gates"), Text("alive"))
        with block.when(compare("!=", alive, NONE)) as some:
            some.call(
                "keep_alive",
                Name("group"),
                *(tiles[name] for name in ("q_sb", "k_sb")),
                result="alive_qk",
            )
            some.statements.append(Unpack(("q_sb", "k_sb"), "alive_qk"))
    wanted = [name for name in ("q_sb", "k_sb") if name in around.used]
    if wanted:
        block.put("group", **{name: tiles[name] for name in wanted})
    more = (Name("tensors"), Name("sizes"), TEAM) if scan.channels else ()
    block.call("scale_vectors", Name("group"), tiles["q_sb"], tiles["k_sb"], *more)
    return stage.done("group")


def _clear_tail(block: Block, tiles: Iterable[View]) -> None:
    over = compare(">", (FIRST_CHUNK + STEPS) * CHUNK, Name("total"))
    with block.when(over) as body:
        body.comment("Tokens past the end are identity steps: zero vectors, log decay 0, beta 0.")
        for tile in tiles:
            body.do("memset", dst=tile, value=Literal(0.0), engine=GPSIMD)


def _transfers(schedule: Schedule, stage: Stage, tiles: Mapping[str, View]) -> None:
    """Slots of one length travel together; a tail among whole chunks of the same lane does not."""
    block, scan, sources = stage.block, schedule.scan, _sources(schedule)
    strides = {
        name: schedule.strides(stage, item.dims, scan.axis, *((axis,) if axis else ()))
        for name, (item, axis, _) in sources.items()
    }
    for name in sources:
        block.let_named(f"{_stem(name)}_offsets", EMPTY)
    block.let_named("lengths", EMPTY)
    with block.loop("place", POSITION, POSITION + COUNT) as (lanes, place):
        lanes.let_named("lane", Item(TEAM, place))
        with lanes.loop("step", 0, STEPS) as (body, step):
            token = body.let_named("token", (FIRST_CHUNK + step) * CHUNK)
            for name in sources:
                item = sources[name][0]
                body.append(f"{_stem(name)}_offsets", schedule.where.offset(item.name, token))
            body.append("lengths", smallest(CHUNK, Name("total") - token))
    lengths = Name("lengths")
    together = binary("or", compare("==", STEPS, 1), compare("==", Item(lengths, STEPS - 1), CHUNK))
    share = block.let_named("share", Choice(together, SLOTS, ONE))
    with block.loop("slot", 0, SLOTS, share) as (body, slot):
        last = body.let_named("last", slot + share)
        tokens = body.let_named("tokens", Item(lengths, slot))
        for name in sources:
            item, _, width = sources[name]
            tensor = schedule.contract.tensors[item.name]
            offsets = Slice(Name(f"{_stem(name)}_offsets"), slot, last)
            to = part(tiles[name], None, (slot * width, share * width))
            step, *inner = strides[name]
            source = View(tensor, tensor.shape)
            body.call("load_rows", to, source, offsets, step, *(inner or [ONE]), tokens, width)
        turning = body.inner()
        for name, first in (("k_sb", ZERO), ("q_sb", CHUNK)):
            item = sources[name][0]
            tensor = schedule.contract.tensors[item.name]
            offsets = Slice(Name(f"{_stem(name)}_offsets"), slot, last)
            turning.call(
                "load_turned",
                tiles["kq_T"],
                slot * PAIR + first,
                View(tensor, tensor.shape),
                offsets,
                *strides[name],
                tokens,
                KEYS,
            )
        if scan.valid is None:
            body.extend(turning)
        else:
            alive = Item(Name("gates"), Text("alive"))
            body.statements.append(If(compare("==", alive, NONE), tuple(turning.statements)))


def _keep_alive(schedule: Schedule) -> Function:
    stage = Stage(
        "keep_alive",
        ("group", "q_sb", "k_sb"),
        "q, k and v without what dead tokens hold, and their transposes.",
    )
    block = stage.block
    stage.numbers("group", "gates", "lanes", "steps", "column", "keys", "values")
    v, kq_T = stage.of_group("v", "kq_T")
    stage.numbers("gates", "chunks", "columns")
    (alive,) = stage.tiles("gates", "alive")
    q_sb, k_sb = (stage.given(name, tile_of("group", "q")) for name in ("q_sb", "k_sb"))
    for name, values, width in (
        ("q_alive", q_sb, KEYS),
        ("k_alive", k_sb, KEYS),
        ("v_alive", v, VALUES),
    ):
        block.call("only_alive", values, per_slot(alive, ZERO, width), result=name)
    for name, first in (("k_alive", ZERO), ("q_alive", CHUNK)):
        block.call("turn_rows", kq_T, first, Name(name), SLOTS, KEYS)
    block.put("group", v=Name("v_alive"))
    if "v_sb" in schedule.around.used:
        block.put("group", v_sb=Name("v_alive"))
    for extra in schedule.around.extra:
        block.take("group", extra.name)
        shape = (CHUNK, SLOTS * extra.width)
        view = View(Tile(extra.name, shape, extra.element, Space.SBUF), shape)
        block.call("only_alive", view, per_slot(alive, ZERO, extra.width), result=extra.name)
        block.put("group", **{extra.name: Name(extra.name)})
    return stage.done("q_alive", "k_alive")


def _stem(name: str) -> str:
    return name.removesuffix("_sb")
