"""What dead tokens hold leaves the vectors of a group, in kernels with a length per row.

The steps are no part of `load_group`, where they would come in a burst for every batch of groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from backends.nki.program.build import Block, compare
from backends.nki.program.nodes import F32, Element, Function, Pattern, View
from backends.nki.program.numbers import NONE, ONE, ZERO, Extent, Name, Number
from backends.nki.schedules.chunked.alive import words_of
from backends.nki.schedules.chunked.gates import per_slot
from backends.nki.schedules.chunked.prepare import Step
from backends.nki.schedules.chunked.records import CHUNK, KEYS, PAIR, SLOTS, VALUES
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.schedules.chunked.vectors import turned_on_chip, vectors_of


def functions(schedule: Schedule) -> Iterator[Function]:
    """Yield the functions of the steps; none where every token is alive."""
    if schedule.scan.valid is None:
        return
    # What the kernel itself stored in HBM has the text's dtype, whatever the caller's tensors
    # have; only those of the caller are seen as words.
    words = not schedule.scan.fields
    for name, kept in _kept(schedule).items():
        yield _keep(name, kept, words)
    if turned_on_chip(schedule):
        yield _turn_vectors(schedule)


def steps(schedule: Schedule) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """Return the steps of `prepare` that clear k and q of dead tokens, and those for the rest."""
    if schedule.scan.valid is None:
        return (), ()
    kept, group = _kept(schedule), (Name("group"),)
    vectors = [Step(name, group) for name in ("keep_vectors",) if name in kept]
    vectors += [Step("turn_vectors", group)] if turned_on_chip(schedule) else []
    values = [Step(name, group) for name in ("keep_values",) if name in kept]
    return tuple(vectors), tuple(values)


Kept = tuple[str, Number, Element]
"""A tile of a group, the width of a slot, the type of its elements."""


def _kept(schedule: Schedule) -> dict[str, tuple[Kept, ...]]:
    """What loses its dead tokens, by the name of the function."""
    found = {"keep_vectors": _kept_first(schedule), "keep_values": _others(schedule)}
    return {name: kept for name, kept in found.items() if kept}


def _kept_first(schedule: Schedule) -> tuple[Kept, ...]:
    """What scores are made of."""
    vectors = tuple((name, KEYS, schedule.operand) for name in turned_on_chip(schedule))
    given = schedule.scan.channels and not schedule.around.log_computed
    return (*vectors, ("g", KEYS, F32)) if given else vectors


def _others(schedule: Schedule) -> tuple[Kept, ...]:
    """What else lies in a group, but for what a selected log decay is made of."""
    extra = (extra for extra in schedule.around.extra if not extra.of_log)
    rest = tuple((extra.name, extra.width, extra.element) for extra in extra)
    value = vectors_of(schedule).get("v_sb")
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
    turned = turned_on_chip(schedule)
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
