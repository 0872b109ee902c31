"""One token for every channel and row: the body of `filter_step`."""

from __future__ import annotations

from backends.nki.program.build import Block, compare, part
from backends.nki.program.nodes import F32, Pattern, Token, View
from backends.nki.program.numbers import ONE, ZERO, Largest, Name, Number, smallest
from backends.nki.schedules.window.skipped import write_skipped, zero_skipped
from backends.nki.schedules.window.tensors import (
    LANES,
    MANY,
    PER,
    ROW,
    ROWS,
    SCALAR,
    SLOT,
    SYNC,
    Tensors,
    to_the_end,
)

BLOCK = Name("BLOCK")
STEP_DOC = "Filter one token of `lanes` * `per` channels from `first` on, all rows."


def write_step(block: Block, tensors: Tensors) -> None:
    """Add the step for the channels of one call."""
    taps = tensors.taps
    write_skipped(block, tensors)
    most = block.let_named("most", smallest(PER, Largest(ONE, BLOCK // taps)))
    with block.loop("slot", ZERO, PER, most, exact=True) as (body, _):
        body.let_named("many", smallest(most, PER - SLOT))
        weight_sb, bias_sb = tensors.load_weights(body)
        batch = Name(tensors.filter.batch)
        rows = body.let_named("most_rows", Largest(ONE, 2 * BLOCK // (MANY * taps)))
        with body.loop("row", ZERO, batch, rows, exact=True) as (inner, _):
            inner.let_named("rows", smallest(rows, batch - ROW))
            _block(inner, tensors, weight_sb, bias_sb)


def _block(block: Block, tensors: Tensors, weight_sb: View, bias_sb: View | None) -> None:
    filter = tensors.filter
    block.origin = filter.token.span
    token = tensors.argument(filter.token.name)
    token_sb = block.tile("token_sb", (LANES, ROWS, MANY), token.element)
    block.do("dma_copy", dst=token_sb, src=tensors.block(token, filter.token.dims), **SYNC)
    block.origin = filter.state.span
    window_sb = tensors.load_windows(block)
    block.origin = filter.run.span
    if filter.new_state is not None:
        _slide(block, tensors, window_sb, token_sb)
    sum_sb = _sum(block, tensors, window_sb, token_sb, weight_sb)
    block.origin = filter.out.span
    if bias_sb is not None:
        bias = Pattern(bias_sb.tile, ((MANY, LANES), (ZERO, ROWS), (ONE, MANY)), ZERO)
        block.do("tensor_tensor", dst=sum_sb, data1=sum_sb, data2=bias, op=Token("nl.add"))
    out = tensors.contract.outputs[filter.out.name]
    out_sb = block.tile("out_sb", (LANES, ROWS, MANY), out.element)
    function = Token("nl.silu" if filter.silu else "nl.copy")
    block.do("activation", dst=out_sb, op=function, data=sum_sb)
    zero_skipped(block, tensors, out_sb)
    block.do("dma_copy", dst=tensors.block(out, filter.out.dims), src=out_sb, **SCALAR)


def _slide(block: Block, tensors: Tensors, window_sb: View, token_sb: View) -> None:
    """The windows without their oldest column, and the token."""
    columns = tensors.columns
    block.comment("The window slides by one column.")
    new_sb = block.tile("new_sb", (LANES, ROWS, MANY, columns), tensors.window_element)
    block.do(
        "tensor_copy",
        dst=to_the_end(new_sb, columns - 1, ONE),
        src=token_sb,
        engine=Token("nisa.engine.gpsimd"),
    )
    with block.when(compare(">", columns, ONE)) as older:
        older.do(
            "tensor_copy",
            dst=part(new_sb, None, None, None, (ZERO, columns - 1)),
            src=to_the_end(window_sb, ONE, columns - 1),
            engine=Token("nisa.engine.gpsimd"),
        )
    tensors.store_windows(block, new_sb)


def _sum(block: Block, tensors: Tensors, window_sb: View, token_sb: View, weight_sb: View) -> View:
    """The taps over the window and the token, fp32."""
    taps = tensors.taps
    shape = (LANES, ROWS, MANY)

    def weight(tap: Number) -> Pattern:
        return Pattern(weight_sb.tile, ((MANY * taps, LANES), (ZERO, ROWS), (taps, MANY)), tap)

    block.comment("Each tap for all rows and channels; the weights repeat over the rows.")
    sum_sb = block.tile("sum_sb", shape, F32)
    block.do(
        "tensor_tensor",
        dst=sum_sb,
        data1=token_sb,
        data2=weight(taps - 1),
        op=Token("nl.multiply"),
    )
    with block.loop("tap", ZERO, taps - 1) as (body, tap):
        product_sb = body.tile("product_sb", shape, F32)
        place = body.let_named("column", tap + tensors.before)
        column = part(window_sb, None, None, None, (place, ONE))
        body.do(
            "tensor_tensor",
            dst=product_sb,
            data1=column,
            data2=weight(tap),
            op=Token("nl.multiply"),
        )
        body.do("tensor_tensor", dst=sum_sb, data1=sum_sb, data2=product_sb, op=Token("nl.add"))
    return sum_sb
