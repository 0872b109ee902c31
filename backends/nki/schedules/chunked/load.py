"""The vectors of a group of chunks on their way in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from backends.nki.program.build import Block, compare, part
from backends.nki.program.nodes import F32, Element, Function, If, Pattern, View
from backends.nki.program.numbers import (
    NONE,
    ONE,
    ZERO,
    Choice,
    Extent,
    Literal,
    Name,
    Number,
    binary,
    smallest,
)
from backends.nki.program.structures import EMPTY, Item, Record, Slice, Text
from backends.nki.schedules.chunked.alive import words_of
from backends.nki.schedules.chunked.gates import per_slot
from backends.nki.schedules.chunked.prepare import Step
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
from backends.nki.select.layouts import GPSIMD
from gdsl.ir.kernel import Input

COUNT, POSITION, FIRST_CHUNK = Name("count"), Name("position"), Name("chunk")


def functions(schedule: Schedule) -> Iterator[Function]:
    """Yield `load_group`, and what keeps live tokens where a kernel has a length per row."""
    if schedule.shares:
        yield distinct_keys(schedule)
    yield _load_group(schedule)
    if schedule.scan.valid is not None:
        # What the kernel itself stored in HBM has the text's dtype, whatever the caller's tensors
        # have; only those of the caller are seen as words.
        words = not schedule.scan.fields
        for name, kept in _kept(schedule).items():
            yield _keep(name, kept, words)
        if _selected(schedule):
            yield _turn_vectors(schedule)


def steps(schedule: Schedule) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """Return the steps of `prepare` by which what is dead leaves k and q, and what leaves the rest.

    They are no part of `load_group`, where they would come in a burst for every batch of groups.
    """
    if schedule.scan.valid is None:
        return (), ()
    kept, group = _kept(schedule), (Name("group"),)
    vectors = [Step(name, group) for name in ("keep_vectors",) if name in kept]
    vectors += [Step("turn_vectors", group)] if _selected(schedule) else []
    values = [Step(name, group) for name in ("keep_values",) if name in kept]
    return tuple(vectors), tuple(values)


Sources = dict[str, tuple[Input, str | None, Number]]
"""Tensor, axis and width of each vector, by the name of its tile."""


def _vectors(schedule: Schedule) -> Sources:
    """What the rule takes and is an input."""
    scan, formulas = schedule.scan, schedule.scan.formulas
    found: Sources = {}
    read = (("p_sb", formulas.read, scan.key_axis, KEYS),) if formulas.own_read else ()
    for name, vector, axis, width in (
        ("k_sb", formulas.key, scan.key_axis, KEYS),
        *read,
        ("q_sb", formulas.query, scan.key_axis, KEYS),
        ("v_sb", formulas.value, scan.value_axis, VALUES),
    ):
        if not vector.computed:
            found[name] = (vector.item, axis, width)
    return found


def _turned(schedule: Schedule) -> dict[str, tuple[str, Number]]:
    """Those with keys along the free axis, which are needed turned, too: the tile, and where."""
    places = schedule.around.turned
    return {name: places[name] for name in _vectors(schedule) if name in places}


def _selected(schedule: Schedule) -> dict[str, tuple[str, Number]]:
    """Those among them that lose dead tokens on chip, and are turned there."""
    held, clean = _vectors(schedule), schedule.scan.clean
    return {n: place for n, place in _turned(schedule).items() if held[n][0].name not in clean}


def _sources(schedule: Schedule) -> Sources:
    """What is brought in for a group."""
    extra = {e.name: (e.item, e.axis, e.width) for e in schedule.around.extra}
    return {**_vectors(schedule), **extra}


def _load_group(schedule: Schedule) -> Function:
    scan = schedule.scan
    stage = Stage(
        "load_group",
        ("gates", "tensors", "sizes", "team", "position", "count", "chunk", "steps"),
        "Bring in q, k, v of `count` lanes x `steps` chunks.\n\n"
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
    turned = dict.fromkeys(tile for tile, _ in schedule.around.turned.values())
    for name in turned:
        tiles[name] = block.tile(name, (KEYS, SLOTS * PAIR), schedule.operand)
    _clear_tail(block, tiles.values())
    _transfers(schedule, stage, tiles)
    chunks, first = Item(Name("gates"), Text("chunks")), Item(Name("gates"), Text("first_chunk"))
    vectors = _vectors(schedule)
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
        **{name: Name(name) for name in turned},
    }
    fields |= {"scaled_levels": EMPTY} if scan.channels else {}
    fields |= {"scaled_columns": EMPTY} if scan.channels and scan.formulas.own_read else {}
    fields |= {"heads": Name("heads")} if schedule.shares else {}
    around = schedule.around
    kept = [extra.name for extra in around.extra]
    kept += ["v_sb"] if "v_sb" in around.used else []
    kept += ["sizes"] if around.before else []
    fields |= {name: Name(name) for name in kept}
    block.let_named("group", Record(tuple(fields.items())))
    if scan.channels:
        if not around.log_computed:
            block.call("load_decays", Name("group"), Name("tensors"), Name("sizes"), TEAM)
    else:
        block.call("spread_decays", Name("group"))
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
        name: schedule.strides(stage, item, scan.axis, *((axis,) if axis else ()))
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
    if schedule.shares:
        block.call(
            "distinct_keys", Name("k_offsets"), Name("q_offsets"), Name("sizes"), result="heads"
        )
    lengths = Name("lengths")
    together = binary("or", compare("==", STEPS, 1), compare("==", Item(lengths, STEPS - 1), CHUNK))
    share = block.let_named("share", Choice(together, SLOTS, ONE))
    with block.loop("slot", 0, SLOTS, share) as (body, slot):
        last = body.let_named("last", slot + share)
        tokens = body.let_named("tokens", Item(lengths, slot))
        turning = body.inner()
        selected = {} if scan.valid is None else _selected(schedule)
        for name, (turned, first) in _turned(schedule).items():
            item = sources[name][0]
            tensor = schedule.contract.tensors[item.name]
            offsets = Slice(Name(f"{_stem(name)}_offsets"), slot, last)
            (turning if name in selected else body).call(
                "load_turned",
                tiles[turned],
                slot * PAIR + first,
                View(tensor, tensor.shape),
                offsets,
                *strides[name],
                tokens,
                KEYS,
            )
        if turning.statements:
            alive = Item(Name("gates"), Text("alive"))
            body.statements.append(If(compare("==", alive, NONE), tuple(turning.statements)))
        for name in sources:
            item, _, width = sources[name]
            tensor = schedule.contract.tensors[item.name]
            offsets = Slice(Name(f"{_stem(name)}_offsets"), slot, last)
            to = part(tiles[name], None, (slot * width, share * width))
            step, *inner = strides[name]
            source = View(tensor, tensor.shape)
            body.call("load_rows", to, source, offsets, step, *(inner or [ONE]), tokens, width)


Kept = tuple[str, Number, Element]
"""A tile of a group, the width of a slot, the type of its elements."""


def _kept(schedule: Schedule) -> dict[str, tuple[Kept, ...]]:
    """What loses its dead tokens, by the name of the function."""
    found = {"keep_vectors": _kept_first(schedule), "keep_values": _others(schedule)}
    return {name: kept for name, kept in found.items() if kept}


def _kept_first(schedule: Schedule) -> tuple[Kept, ...]:
    """What scores are made of."""
    vectors = tuple((name, KEYS, schedule.operand) for name in _selected(schedule))
    given = schedule.scan.channels and not schedule.around.log_computed
    return (*vectors, ("g", KEYS, F32)) if given else vectors


def _others(schedule: Schedule) -> tuple[Kept, ...]:
    """What else lies in a group, but for what a selected log decay is made of."""
    extra = (extra for extra in schedule.around.extra if not extra.of_log)
    rest = tuple((extra.name, extra.width, extra.element) for extra in extra)
    value = _vectors(schedule).get("v_sb")
    dead = value is not None and value[0].name not in schedule.scan.clean
    values = (("v", VALUES, schedule.operand),) if dead else ()
    return (*values, *rest)


def _keep(name: str, kept: Sequence[Kept], as_words: bool) -> Function:
    doc = f"{', '.join(field for field, _, _ in kept)} without what dead tokens hold."
    stage = Stage(name, ("group",), doc)
    fields = dict.fromkeys((*("gates", "lanes", "steps", "slots", "column"), *_names(kept)))
    stage.numbers("group", *fields)
    with _alive(stage) as (block, alive):
        for field, width, element in kept:
            if not as_words or element == F32 or width == ONE:
                block.call("only_alive", Name(field), per_slot(alive, ZERO, width))
                continue
            words = block.let(f"{field}_words", words_of(field, width))
            predicate = per_slot(alive, ZERO, Extent(str(words), 1) // SLOTS)
            block.call("only_alive", words, predicate)
    return stage.done()


def _names(kept: Sequence[Kept]) -> Iterator[str]:
    for field, width, _ in kept:
        yield from (*((str(width),) if isinstance(width, Name) else ()), field)


def _turn_vectors(schedule: Schedule) -> Function:
    turned = _selected(schedule)
    doc = f"{' and '.join(f'{n[0]}^T' for n in turned)} of vectors that were selected on chip."
    stage = Stage("turn_vectors", ("group",), doc)
    stage.numbers("group", "gates", "keys")
    names = dict.fromkeys(tile for tile, _ in turned.values())
    found = stage.of_group(*names, *turned)
    to, vectors = dict(zip(names, found, strict=False)), found[len(names) :]
    (alive,) = stage.tiles("gates", "alive")
    turned_steps = ((SLOTS * PAIR, KEYS), (PAIR, SLOTS), (ONE, CHUNK))
    with stage.block.when(compare("!=", Name(alive.tile.name), NONE)) as block:
        for (name, first), given in zip(turned.values(), vectors, strict=True):
            block.do(
                "dma_transpose",
                dst=Pattern(to[name].tile, turned_steps, first),
                src=Pattern(given.tile, ((SLOTS * KEYS, CHUNK), (KEYS, SLOTS), (ONE, KEYS)), ZERO),
            )
    return stage.done()


@contextmanager
def _alive(stage: Stage) -> Iterator[tuple[Block, View]]:
    """Add what happens when some token may be dead; yields the block and the predicate."""
    stage.numbers("gates", "chunks", "columns")
    (alive,) = stage.tiles("gates", "alive")
    with stage.block.when(compare("!=", Name("alive"), NONE)) as block:
        yield block, alive


def _stem(name: str) -> str:
    return name.removesuffix("_sb")
