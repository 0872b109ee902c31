"""The entry of a kernel that is nothing but projections: each output a contraction with a weight.

Heads of the weight's columns are shared by the cores. A result comes out of the stream with
channels on partitions; TensorE turns it head by head, so that rows of `entries` leave as runs.
"""

from __future__ import annotations

from collections.abc import Mapping

from backends.nki.contract import Contract
from backends.nki.program.build import Block, Names, compare
from backends.nki.program.nodes import F32, Pattern, Program, Space, View
from backends.nki.program.numbers import ONE, ZERO, Literal, Name, Number, smallest
from backends.nki.refusal import refuse
from backends.nki.schedules.block.projection_step import STEP_CONSTANTS
from backends.nki.schedules.block.projection_stream import (
    RING,
    SBUF,
    constants_of,
)
from backends.nki.schedules.block.projections import Projections
from backends.nki.schedules.block.sections import Field, Port, Projection
from backends.nki.schedules.sharing import share_of
from backends.nki.select.addressing import strides
from backends.nki.select.constants import PARTITIONS, Constants
from backends.nki.select.inputs import RowWindow, base_of
from backends.nki.select.layouts import SCALAR, TENSOR
from gdsl.algorithm.plan import Plan
from gdsl.ir.expr import Apply, Expr, Reduce, Ref
from gdsl.ir.kernel import Input, Kernel, Output
from gdsl.ir.node import Symbol

WORK = 8 * 512
"""Bytes of a partition that tiles of a few rows take."""


def projection_program(plan: Plan, target: str) -> Program:
    """Return the tile program of a kernel without runs. Raises CompileError for other outputs."""
    kernel = plan.kernel.kernel
    ports = tuple((output, _port(kernel, output)) for output in kernel.outputs)
    contract = Contract(kernel)
    parameters = contract.parameters()
    constants = (*constants_of(target), *STEP_CONSTANTS)
    names = Names({p.name for p in parameters} | {c.name for c in constants})
    main = Block(names)
    main.banner("Sizes and contract")
    contract.write_sizes(main)
    contract.write_checks(main, (), contract.optional)
    contract.write_outputs(main)
    heads = Name(ports[0][1].field.heads[0])
    share = share_of(main, heads, ("first_head", "own_heads"), plan.settings["shard"])
    made = Constants(Block(names), Block(names))
    axes = ports[0][0].value.type.axes[:-1]
    window = RowWindow(axes, ZERO, share.count, shares={axes[1]: share})
    projections = Projections(contract, window, made, main)
    body = Block(names)
    with body.when(compare(">", share.count, ZERO)) as inner:
        _stream(inner, projections, ports)
    main.extend(made.block)
    main.extend(body)
    return Program(
        entry=kernel.name,
        parameters=parameters,
        constants=constants,
        functions=projections.functions,
        body=tuple(main.statements),
        returns=contract.returns,
    )


def _port(kernel: Kernel, output: Output) -> Port:
    """The projection an output is: entries, heads, channels of a head."""
    expr, inputs = output.value, {item.symbol: item for item in kernel.inputs}
    scale: Input | None = None
    if isinstance(expr, Apply) and expr.operator == "mul":
        factors = sorted(expr.args, key=lambda factor: isinstance(factor, Ref))
        scale = _scale(factors[0], _input(factors[-1], inputs))
        expr = expr if scale is None else factors[0]
    match expr:
        case Reduce(operator="sum", axes=(axis,), arg=Apply(operator="mul", args=(a, b))):
            moving, weight = _input(a, inputs), _input(b, inputs)
            entry, *heads, wide = expr.type.axes
            if weight is not None and entry in weight.type.axes:
                moving, weight = weight, moving
            if moving is not None and weight is not None and heads:
                symbol = Symbol(output.name, -1)
                section = Projection(symbol, axis, moving, weight, scale=scale)
                return Port(section, Field(weight.name, tuple(heads), wide))
    raise refuse(
        f"output `{output.name}` of a kernel without a rule is not a projection",
        output.span,
        label="expected sum[hidden](activation * weight), times a scale per column, over entries, "
        "heads and channels",
    )


def _scale(total: Expr, factor: Input | None) -> Input | None:
    """The tensor with a number for each column of a contraction, if `factor` is one."""
    if factor is None or {*factor.type.axes} != {*total.type.axes[1:]}:
        return None
    return factor


def _input(expr: Expr, inputs: Mapping[Symbol, Input]) -> Input | None:
    return inputs.get(expr.symbol) if isinstance(expr, Ref) else None


def _stream(
    block: Block,
    projections: Projections,
    ports: tuple[tuple[Output, Port], ...],
) -> None:
    """All weights one after the other."""
    for _, port in ports:
        projections.plan(block, port)
    projections.activate(block)
    views = [projections.create(block, port, F32) for _, port in ports]
    projections.scales.load(block)
    free = SBUF - projections.bytes_held() - WORK
    projections.allocate(block, free, Literal(False), ())
    projections.scales.turn(block)
    for _, port in ports:
        projections.begin(block, port)
        projections.finish(block, port)
    for (output, port), view in zip(ports, views, strict=True):
        _store(block, projections, output, port, view)


def _store(block: Block, projections: Projections, output: Output, port: Port, view: View) -> None:
    """Turn a result back onto rows: the heads of one entry, or the entries of one head."""
    block.banner(f"`{output.name}`: channels back onto rows")
    entries, heads = projections.entries, projections.heads(port)
    by_entry, by_head = block.inner(), block.inner()
    with (
        by_entry.loop("entry", ZERO, entries) as (outer, entry),
        outer.loop("head", ZERO, heads, PARTITIONS) as (body, head),
    ):
        count = body.let("rows", smallest(PARTITIONS, heads - head))
        columns = _columns(view, entry * heads + head, ONE, count)
        _store_rows(body, projections, output, port, columns, (entry, head))
    with (
        by_head.loop("head", ZERO, heads) as (outer, head),
        outer.loop("entry", ZERO, entries, PARTITIONS) as (body, entry),
    ):
        count = body.let("rows", smallest(PARTITIONS, entries - entry))
        columns = _columns(view, entry * heads + head, heads, count)
        _store_rows(body, projections, output, port, columns, (entry, head))
    block.decide(compare("<", entries, heads), by_entry, by_head)


def _columns(view: View, first: Number, apart: Number, count: Number) -> Pattern:
    """Columns of a result, `apart` from each other."""
    width, free = view.shape
    return Pattern(view.tile, ((free, width), (apart, count)), first)


def _store_rows(
    block: Block,
    projections: Projections,
    output: Output,
    port: Port,
    columns: Pattern,
    first: tuple[Number, Number],
) -> None:
    """Write columns as rows from (entry, head) on: an entry's heads, or entries of a head."""
    (_, width), (beside, rows) = columns.steps
    tile, where = projections.contract.outputs[output.name], strides(output.dims)
    entry, head = where.of(projections.entry), where.of(port.field.heads[-1])
    turned = block.tile("turned_psum", (rows, width), F32, Space.PSUM)
    block.do("nc_transpose", dst=turned, data=columns, engine=TENSOR)
    rows_sb = block.tile("rows_sb", (rows, width), tile.element)
    block.do("tensor_copy", dst=rows_sb, src=turned, engine=SCALAR)
    apart = head if beside == ONE else entry
    steps = ((apart, rows), (where.of(str(port.field.wide)), width))
    offset = base_of(where, projections.window) + first[0] * entry + first[1] * head
    block.do("dma_copy", dst=Pattern(tile, steps, offset), src=rows_sb, **RING)
