"""The states on the way (`every N`) of a call that has none: no tensor of NKI is empty.

The tensor has one entry per row then. It is filled with zeros, as entries are that a row's own
length does not reach.
"""

from __future__ import annotations

from collections.abc import Mapping

from backends.nki.program.build import Block, compare, part
from backends.nki.program.nodes import Pattern, Tile
from backends.nki.program.numbers import (
    ONE,
    ZERO,
    Literal,
    Name,
    Number,
    Query,
    binary,
    product,
    smallest,
)
from backends.nki.select.constants import PARTITIONS
from gdsl.ir.kernel import Kernel, Run
from gdsl.ir.node import Symbol


def write_no_states(block: Block, kernel: Kernel, outputs: Mapping[str, Tile]) -> None:
    """Fill the outputs along the axes of states that a call is too short for, on the first core."""
    for run in kernel.body:
        if not isinstance(run, Run) or run.states is None or run.every in (None, 1):
            continue
        for output in kernel.outputs:
            if run.states_axis in output.value.type.axes:
                first_core = compare("==", Query("nl.program_id(0)"), 0)
                with block.when(binary("and", _none(run), first_core)) as body:
                    body.comment("No tensor is empty: the one entry of each row is zeros.")
                    _fill(body, outputs[output.name])


def _none(run: Run) -> Number:
    """Whether no state is due: too few tokens, or a distance of 0."""
    tokens = Name(str(run.axis))
    if not isinstance(run.every, Symbol):
        return compare("<", tokens, run.every or 1)
    every = Name(run.every.name)
    return binary("or", compare("<", tokens, every), compare("==", every, 0))


def _fill(block: Block, tensor: Tile) -> None:
    *others, width = tensor.shape
    total = product(tuple(others))
    zeros = block.tile("zeros_sb", (Literal(PARTITIONS), width), tensor.element)
    block.do("memset", dst=zeros, value=Literal(0.0))
    with block.loop("row", 0, total, PARTITIONS) as (body, row):
        many = body.let_named("many", smallest(PARTITIONS, total - row))
        target = Pattern(tensor, ((width, many), (ONE, width)), row * width)
        body.do("dma_copy", dst=target, src=part(zeros, (ZERO, many), None))
