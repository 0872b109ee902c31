"""What value heads with one key head share: k^T k and k^T q, computed once.

Which slots of a group have the same keys is found while tracing. Their products are rounded to
SBUF, masked, and read by every slot that has them. There GpSimdE reaches them, and makes P^T unless
what stands around the rule keeps it busy. It has no instruction for two tensors and a scalar per
partition, so beta goes from P^T, and from the key that the state is written with, into w. The plan
has it so, too (`gdsl.algorithm.shared_keys`).
"""

from __future__ import annotations

from backends.nki.program.build import Block, compare, part
from backends.nki.program.nodes import F32, Function, Pattern, Space, View
from backends.nki.program.numbers import ONE, ZERO, Choice, Literal, Name, Number, binary, smallest
from backends.nki.program.structures import EMPTY, Item, Length, Record, Text
from backends.nki.schedules.chunked.constants import select
from backends.nki.schedules.chunked.operators import GREATER_EQUAL, MULTIPLY
from backends.nki.schedules.chunked.records import BANK, CHUNK, PAIR, SLOTS, like, slot_of
from backends.nki.schedules.chunked.schedule import Schedule
from backends.nki.schedules.chunked.stage import Stage
from backends.nki.select.layouts import SCALAR


def distinct_keys(schedule: Schedule) -> Function:
    """Return `distinct_keys`, which a group is loaded with."""
    doc = (
        "Slots whose keys and queries no earlier one has, which of them every slot has, and slots\n"
        "where another one begins."
    )
    stage = Stage("distinct_keys", ("places", "sizes"), doc)
    block, own, of_slot, runs = stage.block, Name("own"), Name("of_slot"), Name("runs")
    places = Name("places")
    block.comment("Every lane rounds alike, whatever lanes it meets.")
    sharing = block.let_named("sharing", schedule.sharing(stage))
    for name in ("own", "of_slot", "runs"):
        block.let_named(name, EMPTY)
    with block.loop("slot", 0, Length(places)) as (body, slot):
        found = body.let_named("found", Length(own))
        with body.loop("place", 0, Length(own)) as (inner, place):
            same = compare("==", Item(places, Item(own, place)), Item(places, slot))
            with inner.when(binary("and", compare(">", sharing, 1), same)) as equal:
                equal.let_named("found", place)
        with body.when(compare("==", found, Length(own))) as new:
            new.append("own", slot)
        changed = compare("!=", found, Item(of_slot, slot - 1))
        with body.when(binary("or", compare("==", slot, 0), changed)) as begun:
            begun.append("runs", slot)
        body.append("of_slot", found)
    fields = (("own", own), ("of_slot", of_slot), ("runs", runs), ("sharing", sharing))
    block.let_named("heads", Record(fields))
    return stage.done("heads")


def keys_are_shared() -> Number:
    """Whether lanes of the kernel have keys in common."""
    return compare(">", heads_per_key(), 1)


def heads_per_key() -> Number:
    """How many lanes of the kernel have the same keys."""
    return _heads("sharing")


def rows_alone() -> Number:
    """How many rows of a slot are scored by themselves: k and q, or k where products are shared."""
    return Choice(keys_are_shared(), ONE, Literal(2))


def keys_of(slot: Number) -> Number:
    """The place of a slot's products among the shared ones."""
    return Item(_heads("of_slot"), slot)


def _heads(field: str) -> Number:
    """What `distinct_keys` found."""
    return Item(Item(Name("group"), Text("heads")), Text(field))


def _own() -> Number:
    """The slots whose keys no earlier one has."""
    return _heads("own")


def share_products(schedule: Schedule) -> Function:
    """Return the step that multiplies shared keys."""
    doc = "k_j . k_i and k_j . q_i once for slots with the same keys, as operands."
    stage = Stage("share_products", ("group",), doc, schedule.scan.solve_span)
    (kq_T,) = stage.of_group("kq_T")
    with stage.block.when(keys_are_shared()) as block:
        own = block.let_named("own", _own())
        count = block.let_named("count", Length(own))
        found = block.tile("found", (CHUNK, count * PAIR), F32, Space.PSUM)
        with block.loop("place", 0, count) as (body, place):
            _multiply(body, found, kq_T, place, body.let_named("slot", Item(own, place)))
        products = block.tile("products", (CHUNK, count * PAIR), like(kq_T))
        with block.loop("first", 0, count * PAIR, BANK) as (body, first):
            span = (first, body.let_named("width", smallest(BANK, count * PAIR - first)))
            dst, src = part(products, None, span), part(found, None, span)
            body.do("tensor_copy", dst=dst, src=src, engine=SCALAR)
        block.put("group", products=products)
    return stage.done()


def select_products(schedule: Schedule) -> Function:
    """Return the step that masks what they gave."""
    doc = "Zeros for shared k_j . q_i where j comes after i."
    stage = Stage("select_products", ("group",), doc, schedule.scan.solve_span)
    stage.of_group()
    with stage.block.when(keys_are_shared()) as block:
        (products,) = stage.inside(block).tiles("group", "products")
        select_upto(block, products, Length(_own()))
    return stage.done()


def share_queries(schedule: Schedule) -> Function:
    """Return the step that makes P^T of them, a run of slots with the same keys at a time."""
    doc = "P^T from shared products: (k_j . q_i) decay, j on partitions; w has beta."
    stage = Stage("share_queries", ("group",), doc, schedule.scan.run.span)
    stage.of_group()
    with stage.block.when(keys_are_shared()) as block:
        products, decay, scores = stage.inside(block).tiles("group", "products", "decay", "scores")
        runs = block.let_named("runs", _heads("runs"))
        with block.loop("run", 0, Length(runs)) as (body, run):
            first = body.let_named("first", Item(runs, run))
            body.let_named("last", SLOTS)
            with body.when(compare("<", run + 1, Length(runs))) as more:
                more.let_named("last", Item(runs, run + 1))
            count = body.let_named("count", Name("last") - first)
            place = body.let_named("place", keys_of(first))
            rows = (SLOTS * PAIR, CHUNK)
            shared = ((Length(_own()) * PAIR, CHUNK), (ZERO, count), (ONE, CHUNK))
            body.do(
                "tensor_tensor",
                dst=Pattern(scores.tile, (rows, (PAIR, count), (ONE, CHUNK)), first * PAIR + CHUNK),
                data1=Pattern(products.tile, shared, place * PAIR + CHUNK),
                data2=part(decay, None, (first * CHUNK, count * CHUNK)),
                op=MULTIPLY,
                engine=schedule.around.shared_queries,
            )
    return stage.done()


def _multiply(block: Block, products: View, kq_T: View, place: Number, slot: Number) -> None:
    block.do(
        "nc_matmul",
        dst=slot_of(products, place, PAIR),
        stationary=part(kq_T, None, (slot * PAIR, CHUNK)),
        moving=slot_of(kq_T, slot, PAIR),
        accumulate=False,
    )


def select_upto(block: Block, scores: View, count: Number) -> None:
    """Add zeros in every second matrix where the row comes after the column."""
    queries = Pattern(scores.tile, ((count * PAIR, CHUNK), (PAIR, count), (ONE, CHUNK)), CHUNK)
    select(block, queries, queries, ((0, count), (1, CHUNK)), -1, 0, GREATER_EQUAL)
