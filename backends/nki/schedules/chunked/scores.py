"""From loaded vectors to A^T and P^T of a group for a decay without key axis.

exp of a segment sum stands outside the sum over channels, so that one [CHUNK, CHUNK] factor per
slot multiplies k_j . k_i and k_j . q_i. Its exponents are one matmul with a 0/1 operand.
"""

from __future__ import annotations

from collections.abc import Iterator

from backends.nki.program.build import Block, compare, part
from backends.nki.program.nodes import F32, Function, Pattern, Space, Tile, View
from backends.nki.program.numbers import ONE, ZERO, Name, Number, number
from backends.nki.schedules.chunked.constants import select
from backends.nki.schedules.chunked.gates import beta_of, per_slot
from backends.nki.schedules.chunked.operators import EXP, GREATER, GREATER_EQUAL, MULTIPLY
from backends.nki.schedules.chunked.prepare import Part, Step
from backends.nki.schedules.chunked.records import (
    BOTH,
    CHUNK,
    KEYS,
    MATRICES,
    PAIR,
    PER_KEY,
    SLOTS,
    TURNED,
    like,
    slot_of,
    tile_of,
)
from backends.nki.schedules.chunked.rows import first_half, queries, rows_of
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.shared_keys import (
    heads_per_key,
    keys_are_shared,
    keys_of,
    rows_alone,
    select_products,
    select_upto,
    share_products,
    share_queries,
)
from backends.nki.schedules.chunked.slots import turn_slots
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.select.layouts import GPSIMD


def parts(schedule: Schedule) -> tuple[Part, ...]:
    """Return the steps from loaded vectors to A^T, or to P^T where nothing is erased, by tick.

    A tick without a step leaves engines time for what comes just before it.
    """
    group = Name("group")
    sums = Step("sum_segments", (Name("constants"), group))
    products, made = Step("multiply_keys", (group,)), Step("make_scores", (group,))
    if not schedule.solves:
        scaled, turned = (Step(name, (group,)) for name in ("scale_vectors", "turn_queries"))
        return ((sums, scaled), (), (products, made), (turned,), ())
    if not schedule.shares:
        return ((sums,), (products,), (), (made,))
    return ((Step("share_products", (group,)),), (sums,), (products,), (), (made,))


def beside(schedule: Schedule) -> tuple[Part, ...]:
    """Return the steps that only outputs and the carried state wait for, by tick of the inverse."""
    if not schedule.solves:
        return ()
    at = {0: "scale_vectors", 4: "turn_queries"}
    if schedule.shares:
        at |= {2: "select_products", 9: "share_queries"}
    ticks = range(max(at) + 1)
    return tuple((Step(at[tick], (Name("group"),)),) if tick in at else () for tick in ticks)


def functions(schedule: Schedule) -> Iterator[Function]:
    """Yield `spread_decays` and the steps of preparing scores."""
    yield _spread_decays(schedule)
    yield _scale_vectors(schedule)
    yield _turn_queries(schedule)
    yield _sum_segments(schedule)
    yield _multiply_keys(schedule)
    if schedule.shares:
        yield share_products(schedule)
        yield select_products(schedule)
        yield share_queries(schedule)
    yield _make_scores(schedule)


def _spread_decays(schedule: Schedule) -> Function:
    doc = "Log decays as one column per token, each with the tokens up to it."
    stage = Stage("spread_decays", ("group",), doc, schedule.scan.log.span)
    block = stage.block
    stage.numbers("group", "gates", "lanes", "steps", "slots", "column")
    stage.numbers("gates", "columns", "chunks")
    (log_and_beta,) = stage.tiles("gates", "log_and_beta")
    upto = ((0, SLOTS), (1, CHUNK))
    g = per_slot(log_and_beta, ZERO, CHUNK)
    if schedule.scan.before_decay:
        both = block.tile("g_before_upto", BOTH, F32)
        select(block, first_half(both), g, upto, -1, 0, GREATER)
        select(block, queries(both), g, upto, -1, 0, GREATER_EQUAL)
        block.put("group", g_before_upto=both)
        return stage.done()
    g_upto = block.tile("g_upto", MATRICES, F32)
    select(block, g_upto, g, upto, -1, 0, GREATER_EQUAL)
    block.put("group", g_upto=g_upto)
    return stage.done()


def _scale_vectors(schedule: Schedule) -> Function:
    read = "p" if schedule.scan.formulas.own_read else "k"
    scaled = ["q exp(G)", *([f"{read} exp(G)"] if schedule.solves else [])]
    scaled += [] if schedule.around.key_scaled else [schedule.left]
    doc = f"{', '.join(scaled)}, on the engine that has nothing else to do."
    stage = Stage("scale_vectors", ("group",), doc, schedule.scan.log.span)
    block = stage.block
    stage.numbers("group", "gates", "lanes", "steps", "slots", "column", "keys")
    stage.numbers("gates", "columns", "chunks")
    (decays,) = stage.tiles("gates", "decays")
    q_sb, k_sb = stage.tiles("group", "q_sb", "k_sb")
    made = [("q_decayed", q_sb, decays)]
    if schedule.solves:
        since = stage.tiles("gates", "decays_before")[0] if schedule.scan.before_decay else decays
        vector = k_sb if schedule.read == "k_sb" else stage.tiles("group", schedule.read)[0]
        made.append(("k_decayed", vector, since))
    if not schedule.around.key_scaled:
        made.append(("k_left", k_sb, stage.tiles("gates", "left")[0]))
    for name, src, column in made:
        dst = block.tile(name, PER_KEY, like(q_sb))
        block.do(
            "tensor_tensor",
            dst=dst,
            data1=src,
            data2=per_slot(column, ZERO, KEYS),
            op=MULTIPLY,
            engine=GPSIMD,
        )
        block.put("group", **{name: dst})
    return stage.done()


def _turn_queries(schedule: Schedule) -> Function:
    doc = "(q exp(G))^T: the stationary that reads the carried state for the output."
    stage = Stage("turn_queries", ("group",), doc, schedule.scan.query.span)
    block = stage.block
    stage.numbers("group", "keys")
    (q_decayed,) = stage.of_group("q_decayed")
    block.put("group", q_T=turn_slots(block, "q_T", q_decayed, KEYS, TURNED))
    return stage.done()


def _sum_segments(schedule: Schedule) -> Function:
    doc = (
        "decay[j, i] = exp(g_(j+1) + ... + g_i) for i >= j.\n\n"
        "Before j there is nothing to sum, so that no exponent is positive: the factor is 1 there."
    )
    stage = Stage("sum_segments", ("constants", "group"), doc, schedule.scan.log.span)
    block = stage.block
    if schedule.scan.before_decay:
        return _sum_both(stage)
    (g_upto,) = stage.of_group("g_upto")
    (after,) = stage.tiles("constants", "after")
    segments = block.tile("segments", MATRICES, F32, Space.PSUM)
    block.do(
        "nc_matmul",
        dst=segments,
        stationary=after,
        moving=g_upto,
        is_stationary_onezero=True,
        accumulate=False,
    )
    whole = block.inner() if schedule.shares else block
    whole.create(Tile("decay", MATRICES, F32, Space.SBUF))
    if schedule.shares:
        block.comment(
            "Shared products are 16-bit numbers in SBUF: so are their factors, for speed."
        )
        q_sb, low = stage.tiles("group", "q_sb")[0], block.inner()
        low.create(Tile("decay", MATRICES, like(q_sb), Space.SBUF))
        block.decide(keys_are_shared(), low, whole)
    decay = tile_of("group", "decay")
    block.do("activation", dst=decay, op=EXP, data=segments)
    block.put("group", decay=decay)
    return stage.done()


def _sum_both(stage: Stage) -> Function:
    """The same for rows that read before their own decay, next to those of queries."""
    block = stage.block
    (g_before_upto,) = stage.of_group("g_before_upto")
    (after,) = stage.tiles("constants", "after")
    segments = block.tile("segments", BOTH, F32, Space.PSUM)
    with block.loop("slot", 0, SLOTS) as (body, slot):
        body.do(
            "nc_matmul",
            dst=slot_of(segments, slot, PAIR),
            stationary=after,
            moving=slot_of(g_before_upto, slot, PAIR),
            is_stationary_onezero=True,
            accumulate=False,
        )
    decay_pair = block.tile("decay_pair", BOTH, F32)
    block.do("activation", dst=decay_pair, op=EXP, data=segments)
    block.put("group", decay_pair=decay_pair)
    return stage.done()


def _multiply_keys(schedule: Schedule) -> Function:
    doc = (
        "k_j . k_i and k_j . q_i of every slot, side by side"
        if schedule.solves
        else "k_j . q_i of every slot"
    ) + (", unless slots share them." if schedule.shares else ".")
    stage = Stage("multiply_keys", ("group",), doc, schedule.scan.solve_span)
    (kq_T,) = stage.of_group("kq_T")
    (columns,) = stage.of_group(schedule.columns) if schedule.columns != "kq_T" else (kq_T,)

    def multiply(block: Block) -> None:
        products = block.tile("products", BOTH, F32, Space.PSUM)
        with block.loop("slot", 0, SLOTS) as (body, slot):
            body.do(
                "nc_matmul",
                dst=rows_of(schedule, products, slot),
                stationary=part(columns, None, (slot * PAIR, CHUNK)),
                moving=rows_of(schedule, kq_T, slot),
                accumulate=False,
            )
        block.put("group", products=products)

    if not schedule.shares:
        multiply(stage.block)
        return stage.done()
    with stage.block.when(compare("==", heads_per_key(), 1)) as block:
        multiply(block)
    return stage.done()


def _make_scores(schedule: Schedule) -> Function:
    doc = (
        "A^T and P^T: beta_j (k_j . k_i) decay and beta_j (k_j . q_i) decay, j on partitions.\n\n"
        f"{'Where keys are shared, A^T alone. ' if schedule.shares else ''}"
        "What no merge reads of A^T may be anything; tokens after i must not count in P^T."
        if schedule.solves
        else "P^T: (k_j . q_i) decay, j on partitions; tokens after i do not count."
    )
    stage = Stage("make_scores", ("group",), doc, schedule.scan.solve_span)
    block, pairs = stage.block, schedule.scan.before_decay
    factors = "decay_pair" if pairs else "decay"
    kq_T, products, decay = stage.of_group("kq_T", "products", factors)
    scores = block.create(Tile("scores", BOTH, like(kq_T), Space.SBUF))
    beta = beta_of(schedule, stage)
    count = block.let_named("rows", rows_alone()) if schedule.shares else number(2)

    def rows(view: View, slot: Number) -> View:
        if not schedule.shares:
            return rows_of(schedule, view, slot)
        return part(view, None, (slot * PAIR, count * CHUNK))

    def factor(slot: Number) -> View | Pattern:
        """The decays of a slot, for its rows."""
        if pairs:
            return slot_of(decay, slot, PAIR)
        if not schedule.solves:
            return slot_of(decay, slot, CHUNK)
        steps = ((SLOTS * CHUNK, CHUNK), (ZERO, count), (ONE, CHUNK))
        return Pattern(decay.tile, steps, slot * CHUNK)

    with block.loop("slot", 0, SLOTS) as (body, slot):
        place = body.let_named("place", keys_of(slot)) if schedule.shares else slot
        body.do(
            "scalar_tensor_tensor",
            dst=rows(scores, slot),
            data=rows(products, place),
            op0=MULTIPLY,
            operand0=beta(body, slot),
            op1=MULTIPLY,
            operand1=factor(slot),
        )
    if schedule.shares:
        with block.when(compare("==", heads_per_key(), 1)) as alone:
            select_upto(alone, scores, SLOTS)
    else:
        select_upto(block, scores, SLOTS)
    block.put("group", scores=scores)
    return stage.done()
