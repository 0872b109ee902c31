"""Gates of many chunks at once: decay factors and beta, one column per chunk of every lane.

A gate comes in with one chunk per partition, tokens along the free axis, and is turned on TensorE.
Sums of log decays are matmuls with 0/1 operands, so none is a difference of two prefixes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from backends.nki.program.build import Block, compare, part
from backends.nki.program.mentions import names_in
from backends.nki.program.nodes import F32, Function, Pattern, Space, Tile, View
from backends.nki.program.numbers import NONE, ONE, ZERO, Literal, Name, Number, number, smallest
from backends.nki.program.structures import EMPTY, Length, Record, tupled
from backends.nki.schedules.chunked.constants import select
from backends.nki.schedules.chunked.formulas import numbers_of
from backends.nki.schedules.chunked.gate_terms import (
    CHUNKS,
    FIRST,
    computed,
    inputs_of,
    raw,
)
from backends.nki.schedules.chunked.operators import EXP, GREATER_EQUAL, MULTIPLY
from backends.nki.schedules.chunked.records import (
    CHUNK,
    COLUMNS,
    LANES,
    PARTITIONS,
    STEPS,
    SUMMED,
    TEAM,
    tile_of,
)
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.select.layouts import GPSIMD, TENSOR, VECTOR
from backends.nki.select.terms import Term


def functions(schedule: Schedule) -> Iterator[Function]:
    """Yield `make_gates`."""
    yield _make_gates(schedule)


def per_slot(view: View, first: Number, width: Number) -> Pattern:
    """Return one column per slot of a group, repeated `width` times (stride 0).

    `chunks` of the gates and `lanes`, `steps`, `column` of the group are in scope.
    """
    steps = ((view.shape[1], CHUNK), (CHUNKS, LANES), (ONE, STEPS), (ZERO, width))
    return Pattern(view.tile, steps, first + Name("column"))


def of_slot(block: Block, view: View, first: Number, slot: Number) -> View:
    """Return the column of one slot; the same names are in scope."""
    place = first + Name("column") + slot // STEPS * CHUNKS + slot % STEPS
    return part(view, None, (block.let("column_of_slot", place), 1))


def beta_of(
    schedule: Schedule, stage: Stage, *, scaled: bool = False
) -> Callable[[Block, Number], View]:
    """Return how to get at beta of a slot, with the key's factor (if it has one) when `scaled`."""
    if scaled and schedule.around.key_scaled:
        (scaled_betas,) = stage.tiles("group", "scaled_betas")
        return lambda block, slot: part(scaled_betas, None, (slot, 1))
    stage.numbers("group", "gates", "column", "steps")
    stage.numbers("gates", "chunks", "columns")
    if schedule.scan.channels:
        (betas,) = stage.tiles("gates", "betas")
        return lambda block, slot: of_slot(block, betas, ZERO, slot)
    (log_and_beta,) = stage.tiles("gates", "log_and_beta")
    return lambda block, slot: of_slot(block, log_and_beta, COLUMNS, slot)


def terms_of(schedule: Schedule) -> tuple[Term, ...]:
    """Return the gates that are columns, in their order: log decay, unless per channel, beta."""
    formulas = schedule.scan.formulas
    return (formulas.beta,) if schedule.scan.channels else (formulas.log, formulas.beta)


def _make_gates(schedule: Schedule) -> Function:
    scan = schedule.scan
    doc = (
        "beta of `chunks` chunks as columns; column lane * chunks + chunk. Decays are per channel."
        if scan.channels
        else "Decay factors and beta of `chunks` chunks as columns; column lane * chunks + chunk."
    )
    stage = Stage(
        "make_gates",
        ("constants", "tensors", "sizes", "team", "first_chunk", "chunks"),
        doc,
        (scan.beta if scan.channels else scan.log).span,
    )
    block, terms = stage.block, terms_of(schedule)
    block.let_named("columns", Length(TEAM) * CHUNKS)
    turned = _turned(schedule, stage, terms)
    name = "betas" if scan.channels else "log_and_beta"
    columns = block.create(Tile(name, turned.shape, F32, Space.SBUF))
    block.do("tensor_copy", dst=columns, src=turned, engine=VECTOR)
    if any(raw(schedule, term) is None for term in terms):
        _select_tokens(block, columns, len(terms))
    if scan.valid:
        _select_alive(block, columns, len(terms))
    tiles = [name]
    if not scan.channels:
        _decays(stage, schedule, columns)
        tiles += ["decays", "last", "left"]
        tiles += ["decays_before"] if scan.before_decay else []
    tiles += ["alive"] if scan.valid else []
    numbers = ("columns", "chunks", "first_chunk")
    record = Record(tuple((field, Name(field)) for field in (*numbers, *tiles)))
    block.let_named("gates", record)
    if schedule.around.shared:
        given = (Name(name) for name in ("gates", "tensors", "sizes", "team"))
        block.call("share_values", *given, Length(TEAM))
    return stage.done("gates")


def _turned(schedule: Schedule, stage: Stage, terms: tuple[Term, ...]) -> View:
    """Bring gates in, one chunk per partition, and put tokens on partitions instead."""
    block, count = stage.block, len(terms)
    inputs = inputs_of(schedule, terms)
    schedule.tensors(stage, *dict.fromkeys(item.name for item in inputs))
    (total,) = stage.numbers("sizes", "total")
    for item in inputs:
        schedule.strides(stage, item, schedule.scan.axis)
    needed = names_in(numbers_of(terms), known=stage.block.names.taken)
    if needed:
        block.take("sizes", *needed)
    rows = block.tile("rows", (COLUMNS, count * CHUNK), F32)
    tokens = block.let_named("tokens", smallest(CHUNKS * CHUNK, total - FIRST * CHUNK))
    with block.when(compare(">", tokens % CHUNK, 0)) as tail:
        tail.do("memset", dst=rows, value=Literal(0.0))
    made: dict[Term, View] = {}
    for i, term in enumerate(terms):
        half, loaded = part(rows, None, (i * CHUNK, CHUNK)), raw(schedule, term)
        if loaded is None:
            made[term] = half
            continue
        offsets = block.let_named(f"{loaded.name}_offsets", EMPTY)
        with block.each(("lane",), TEAM) as body:
            body.append(f"{loaded.name}_offsets", schedule.where.offset(loaded.name, FIRST * CHUNK))
        tensor = schedule.contract.tensors[loaded.name]
        step = schedule.where.stride(loaded, schedule.scan.axis)
        block.call("load_gate", half, View(tensor, tensor.shape), offsets, step, CHUNKS, tokens)
    if made:
        computed(schedule, block, made)
    turned = block.tile("turned", (CHUNK, count * COLUMNS), F32, Space.PSUM)
    for i in range(count):
        block.do(
            "nc_transpose",
            dst=part(turned, None, (i * COLUMNS, COLUMNS)),
            data=part(rows, None, (i * CHUNK, CHUNK)),
            engine=TENSOR,
        )
    return turned


def _select_tokens(block: Block, columns: View, count: int) -> None:
    """Make what lies past the last token identity steps: computed gates are not 0 there."""
    tokens = Name("tokens")
    with block.when(compare(">", tokens % CHUNK, 0)) as body:
        live = body.tile("live", columns.shape, F32)
        pattern = ((ZERO, count * Length(TEAM)), (number(-1) * CHUNK, CHUNKS))
        select(body, live, columns, pattern, -1, tokens - 1, GREATER_EQUAL)
        body.let_named(columns.tile.name, Name(live.tile.name))


def _select_alive(block: Block, columns: View, count: int) -> None:
    """Make tokens without life identity steps: log decay 0, beta 0."""
    given = (Name("tensors"), Name("sizes"), TEAM, FIRST, CHUNKS)
    block.call("find_alive", *given, result="alive")
    with block.when(compare("!=", Name("alive"), NONE)) as some:
        alive = tile_of("gates", "alive")
        repeated = ((COLUMNS, CHUNK), (ZERO, Literal(count)), (ONE, COLUMNS))
        predicate = alive if count == 1 else Pattern(alive.tile, repeated, ZERO)
        some.call("only_alive", columns, predicate, result=columns.tile.name)


def _decays(stage: Stage, schedule: Schedule, log_and_beta: View) -> None:
    """exp(G) and exp(G_last - G) side by side; exp(G_last); (beta) exp(G_last - G)."""
    block, columns = stage.block, COLUMNS
    upto, after = stage.tiles("constants", "upto", "after")
    sums = block.tile("sums", (CHUNK, 2 * columns), F32, Space.PSUM)
    g = part(log_and_beta, None, (ZERO, columns))
    for i, operand in enumerate((upto, after)):
        block.do(
            "nc_matmul",
            dst=part(sums, None, (i * columns, columns)),
            stationary=operand,
            moving=g,
            is_stationary_onezero=True,
            accumulate=False,
        )
    decays = block.tile("decays", (CHUNK, 2 * columns), F32)
    block.do("activation", dst=decays, op=EXP, data=sums)
    if schedule.scan.before_decay:
        _decays_before(stage, g)
    _last_decays(stage, schedule, log_and_beta)
    left, since = block.tile("left", (CHUNK, columns), F32), part(decays, None, (columns, columns))
    multiplied = block.inner() if schedule.shares else block
    multiplied.do(
        "tensor_tensor",
        dst=left,
        data1=since,
        data2=part(log_and_beta, None, (columns, columns)),
        op=MULTIPLY,
        engine=VECTOR,
    )
    if schedule.shares:
        sharing, bare = schedule.sharing(stage), block.inner()
        bare.comment("Where keys are shared, what is written has beta.")
        bare.do("tensor_copy", dst=left, src=since, engine=VECTOR)
        block.decide(compare(">", sharing, 1), bare, multiplied)


def _decays_before(stage: Stage, g: View) -> None:
    """exp(G) without the own decay of each token, for what reads the state before it decays."""
    block, columns = stage.block, COLUMNS
    (before,) = stage.tiles("constants", "before")
    sums = block.tile("sums_before", (CHUNK, columns), F32, Space.PSUM)
    block.do(
        "nc_matmul",
        dst=sums,
        stationary=before,
        moving=g,
        is_stationary_onezero=True,
        accumulate=False,
    )
    decays = block.tile("decays_before", (CHUNK, columns), F32)
    block.do("activation", dst=decays, op=EXP, data=sums)


def _last_decays(stage: Stage, schedule: Schedule, log_and_beta: View) -> None:
    """exp(G_last) of every chunk on all partitions, a product over SUMMED tokens at a time."""
    chunk, columns, block = schedule.scan.chunk.chunk, COLUMNS, stage.block
    block.comment(
        f"exp(G_last) carries the state on, so its exponent is summed over {SUMMED} tokens at a\n"
        "time: a smaller sum is rounded less."
    )
    parts = chunk // SUMMED
    rows = max(1, parts // 2)
    # More than half of the parts do not fit a PSUM bank.
    halves = [
        (
            block.tile(name, (PARTITIONS, rows * columns), F32, Space.PSUM),
            tile_of("constants", tokens),
        )
        for name, tokens in (("first_sums", "upto"), ("later_sums", "after"))[:parts]
    ]
    for i in range(parts):
        half, place = divmod(i, rows)
        sums, tokens = halves[half]
        low, size = place * 2 * SUMMED, min(chunk, 2 * SUMMED)
        # The tokens of the first, or of the second half of the rows.
        picked = ((CHUNK, number(size)), (ZERO, PARTITIONS))
        at = low * CHUNK + (low + SUMMED - 1)
        tiling = {"tile_position": tupled(low, 0), "tile_size": tupled(size, PARTITIONS)}
        block.do(
            "nc_matmul",
            dst=part(sums, None, (place * columns, columns)),
            stationary=Pattern(tokens.tile, picked, at),
            moving=part(log_and_beta, (low, size), (ZERO, columns)),
            is_stationary_onezero=True,
            **(tiling if rows > 1 else {}),
            accumulate=False,
        )
    multiply_parts(block, [sums for sums, _ in halves], rows, columns, "last")


def multiply_parts(
    block: Block, sums: Sequence[View], each: int, columns: Number, name: str
) -> View:
    """Return the product of the exp of sums; `each` of one or two tiles has so many of them.

    They are [partitions, columns], side by side. `each` is a power of two.
    """
    parts, partitions = len(sums) * each, sums[0].shape[0]
    factors = block.tile(name if parts == 1 else "factors", (partitions, parts * columns), F32)
    for i, data in enumerate(sums):
        dst = part(factors, None, (i * each * columns, each * columns))
        block.do("activation", dst=dst, op=EXP, data=data)
    while parts > 1:
        parts //= 2
        half = parts * columns
        product = block.tile(name if parts == 1 else "products", (partitions, half), F32)
        block.do(
            "tensor_tensor",
            dst=product,
            data1=part(factors, None, (ZERO, half)),
            data2=part(factors, None, (half, half)),
            op=MULTIPLY,
            engine=GPSIMD,
        )
        factors = product
    return factors
