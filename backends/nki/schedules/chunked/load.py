"""The vectors of a group of chunks on their way in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from backends.nki.program.build import Block, compare, part
from backends.nki.program.nodes import Function, If, View
from backends.nki.program.numbers import (
    NONE,
    ONE,
    Choice,
    Literal,
    Name,
    Number,
    binary,
    smallest,
)
from backends.nki.program.structures import EMPTY, Item, Record, Slice, Text
from backends.nki.schedules.chunked.records import (
    CHUNK,
    KEYS,
    PAIR,
    SLOTS,
    STEPS,
    TEAM,
    VALUES,
)
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.shared_keys import distinct_keys
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.schedules.chunked.vectors import (
    Sources,
    sources_of,
    turned_of,
    turned_on_chip,
    vectors_of,
)
from backends.nki.select.layouts import GPSIMD

COUNT, POSITION, FIRST_CHUNK = Name("count"), Name("position"), Name("chunk")


def functions(schedule: Schedule) -> Iterator[Function]:
    """Yield `load_group`, and which slots of a group have the keys of another."""
    if schedule.shares:
        yield distinct_keys(schedule)
    yield _load_group(schedule)


def _load_group(schedule: Schedule) -> Function:
    scan = schedule.scan
    stage = Stage(
        "load_group",
        ("gates", "tensors", "sizes", "team", "position", "count", "chunk", "steps"),
        "Bring in q, k, v of `count` lanes x `steps` chunks.\n\n"
        "Slot lane * steps + step of every tile is one chunk of one lane.",
        scan.run.span,
    )
    block, around, sources = stage.block, schedule.around, sources_of(schedule)
    elements = {extra.name: extra.element for extra in around.extra}
    schedule.tensors(stage, *dict.fromkeys(item.name for item, _, _ in sources.values()))
    stage.numbers("sizes", "keys", "values", "total")
    block.let_named("slots", COUNT * STEPS)
    tiles = {
        name: block.tile(name, (CHUNK, SLOTS * width), elements.get(name, schedule.operand))
        for name, (_, _, width) in sources.items()
    }
    for name in dict.fromkeys(tile for tile, _ in around.turned.values()):
        tiles[name] = block.tile(name, (KEYS, SLOTS * PAIR), schedule.operand)
    _clear_tail(block, tiles.values())
    strides = {
        name: schedule.strides(stage, item, scan.axis, *((axis,) if axis else ()))
        for name, (item, axis, _) in sources.items()
    }
    _find_slots(block, schedule, sources)
    _transfer(block, schedule, tiles, strides)
    block.let_named("group", _group(schedule))
    if scan.channels:
        if not around.log_computed:
            block.call("load_decays", Name("group"), Name("tensors"), Name("sizes"), TEAM)
    else:
        block.call("spread_decays", Name("group"))
    return stage.done("group")


def _group(schedule: Schedule) -> Record:
    """The record of a group: where its chunks are, and its tiles."""
    scan, around, vectors = schedule.scan, schedule.around, vectors_of(schedule)
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
        **{name: Name(name) for name in ("q_sb", "k_sb", "p_sb") if name in vectors},
        **({"v": Name("v_sb")} if "v_sb" in vectors else {}),
        **{tile: Name(tile) for tile, _ in around.turned.values()},
    }
    fields |= {"scaled_levels": EMPTY} if scan.channels else {}
    fields |= {"scaled_columns": EMPTY} if scan.channels and scan.formulas.own_read else {}
    fields |= {"heads": Name("heads")} if schedule.shares else {}
    kept = [extra.name for extra in around.extra]
    kept += ["v_sb"] if "v_sb" in around.used else []
    kept += ["sizes"] if around.before else []
    fields |= {name: Name(name) for name in kept}
    return Record(tuple(fields.items()))


def _clear_tail(block: Block, tiles: Iterable[View]) -> None:
    over = compare(">", (FIRST_CHUNK + STEPS) * CHUNK, Name("total"))
    with block.when(over) as body:
        body.comment("Tokens past the end are identity steps: zero vectors, log decay 0, beta 0.")
        for tile in tiles:
            body.do("memset", dst=tile, value=Literal(0.0), engine=GPSIMD)


def _find_slots(block: Block, schedule: Schedule, sources: Sources) -> None:
    """Where each slot begins in every tensor, and how many tokens it has."""
    for name in sources:
        block.let_named(f"{_stem(name)}_offsets", EMPTY)
    block.let_named("lengths", EMPTY)
    if schedule.shares:
        block.let_named("places", EMPTY)
    with block.loop("place", POSITION, POSITION + COUNT) as (lanes, place):
        lanes.let_named("lane", Item(TEAM, place))
        with lanes.loop("step", 0, STEPS) as (body, step):
            token = body.let_named("token", (FIRST_CHUNK + step) * CHUNK)
            for name, (item, _, _) in sources.items():
                body.append(f"{_stem(name)}_offsets", schedule.where.offset(item.name, token))
            if schedule.shares:
                body.append("places", schedule.where.place_of_keys(token))
            body.append("lengths", smallest(CHUNK, Name("total") - token))
    if schedule.shares:
        block.call("distinct_keys", Name("places"), Name("sizes"), result="heads")


def _transfer(
    block: Block,
    schedule: Schedule,
    tiles: Mapping[str, View],
    strides: Mapping[str, tuple[Number, ...]],
) -> None:
    """Slots of one length travel together; a tail among whole chunks of the same lane does not."""
    lengths, sources, on_chip = Name("lengths"), sources_of(schedule), turned_on_chip(schedule)
    together = binary("or", compare("==", STEPS, 1), compare("==", Item(lengths, STEPS - 1), CHUNK))
    share = block.let_named("share", Choice(together, SLOTS, ONE))
    with block.loop("slot", 0, SLOTS, share) as (body, slot):
        last = body.let_named("last", slot + share)
        tokens = body.let_named("tokens", Item(lengths, slot))

        def source(name: str) -> tuple[View, Slice]:
            tensor = schedule.contract.tensors[sources[name][0].name]
            offsets = Slice(Name(f"{_stem(name)}_offsets"), slot, last)
            return View(tensor, tensor.shape), offsets

        unpadded = body.inner()
        for name, (turned, first) in turned_of(schedule).items():
            to, begin = tiles[turned], slot * PAIR + first
            (unpadded if name in on_chip else body).call(
                "load_turned", to, begin, *source(name), *strides[name], tokens, KEYS
            )
        if unpadded.statements:
            alive = Item(Name("gates"), Text("alive"))
            body.statements.append(If(compare("==", alive, NONE), tuple(unpadded.statements)))
        for name, (_, _, width) in sources.items():
            to = part(tiles[name], None, (slot * width, share * width))
            step, *inner = strides[name]
            body.call("load_rows", to, *source(name), step, *(inner or [ONE]), tokens, width)


def _stem(name: str) -> str:
    return name.removesuffix("_sb")
