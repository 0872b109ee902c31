"""Projections in front of a rule, as tensors: what is multiplied, and what goes to HBM.

A packed projection whose fields all go to the rule is one tensor. Otherwise each field that the
rule reads is one of its own, and so is one that only a window sees (`front`): its columns alone are
multiplied (`runs`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from attrs import field, frozen

from backends.nki.program.build import Names
from backends.nki.refusal import refuse
from backends.nki.schedules.block.sections import Convolution, Port, Projection, Sections
from backends.nki.schedules.chunked.runs import Part, part_of
from gdsl.ir.dims import Atom
from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Input, Run
from gdsl.ir.types import Type


@frozen
class Turned:
    """A projection that only another one reads: it stays on chip, its columns on partitions."""

    section: Projection
    moving: Input


@frozen
class Projected:
    """The result of a projection in HBM: token by token, columns of its weight."""

    item: Input
    section: Projection
    moving: Input | Turned
    part: Part = ()
    """Which columns."""


@frozen
class Read:
    """What the rule reads of projections."""

    tensors: tuple[Projected, ...]
    """In the order of the text."""
    ports: Mapping[Port, Projected] = field(eq=False)


def read_by_rule(sections: Sections, names: Names) -> Read:
    """Return the tensors of projections that the rule reads, in fp32 as the text has them.

    Raises CompileError as `projected_of`.
    """
    tensors: list[Projected] = []
    ports: dict[Port, Projected] = {}
    packed = {dim.name: len(dim.fields) for dim in sections.kernel.packed}
    for section in sections.projections:
        read = [value.port for value in sections.values if value.port.section == section]
        parts = dict.fromkeys(port.field.packed for port in read)
        fields = prod(packed.get(axis, 1) for axis in section.weight.type.axes)
        together = len(parts) == fields
        made = {
            part: projected_of(section, sections, names, Dtype.F32, part)
            for part in (((),) if read and together else parts)
        }
        tensors += made.values()
        ports |= {port: made[() if together else port.field.packed] for port in read}
    return Read(tuple(tensors), ports)


def projected_of(
    section: Projection, sections: Sections, names: Names, dtype: Dtype, part: Part = ()
) -> Projected:
    """Return where a projection of tokens goes, or one field of it.

    Raises CompileError where the tokens are no input, or no rows of hidden channels.
    """
    moving = _moving(section, sections)
    given = moving if isinstance(moving, Input) else moving.moving
    dims = (*given.dims[:-1], *part_of(section.weight.dims[1:], part))
    stem = "_".join((section.symbol.name, *(name for _, name in part)))
    item = Input(section.symbol, names.fresh(f"{stem}_hbm"), dtype, dims, Type((), dtype))
    return Projected(item, section, moving, part)


def taken(section: Convolution) -> Part:
    """Return which part of the channels of one tensor or projection a window goes over.

    Raises CompileError where that is neither one field nor all channels in their order.
    """
    parts = tuple(port.field.packed for port in section.token)
    if parts == tuple(part.packed for part in section.fields):
        return ()
    if len(parts) == 1:
        return parts[0]
    raise refuse(
        "a window over several fields of a packed axis in another order than theirs",
        section.run.span,
        help="give each field a window of its own",
    )


def _moving(section: Projection, sections: Sections) -> Input | Turned:
    """What a weight is multiplied with: tokens of the caller's, or what is projected from them."""
    weight, moving = section.weight, section.moving
    if weight.dims[0] != Atom(section.axis) or section.scale is not None:
        raise refuse(
            "a projection of several tokens needs a weight [hidden, columns] without a scale",
            weight.span,
            label="the weight of a projection",
            help="pass its result to this kernel as an input",
        )
    if isinstance(moving, Input):
        _check_rows(moving, section, sections)
        return moving
    inner = moving.section
    if not isinstance(inner, Projection) or section.rounded != weight.dtype:
        raise refuse(
            "what is projected twice must be rounded to the dtype of its second weight in between",
            weight.span,
            help="write a cast around the inner projection",
        )
    given = _moving(inner, sections)
    if not isinstance(given, Input):
        raise refuse("three projections one behind the other", weight.span)
    return Turned(inner, given)


def _check_rows(moving: Input, section: Projection, sections: Sections) -> None:
    """Whether hidden channels of each token lie side by side, and tokens one after the other."""
    token = next(run.axis for run in _runs(sections))
    rows = tuple(Atom(axis) for axis in (sections.entry, token, section.axis) if axis)
    if tuple(moving.dims) != rows:
        raise refuse(
            "a projection of several tokens needs them as an input [batch, tokens, hidden]",
            moving.span,
            label="what a weight is multiplied with",
            help="pass the result of the projection to this kernel as an input",
        )
    if moving.dtype != section.weight.dtype or section.rounded not in (None, moving.dtype):
        raise refuse(
            "a projection of several tokens needs tokens and weight of one dtype",
            section.weight.span,
            label=f"`{moving.name}` is multiplied with it",
            help="declare both alike, or pass the result of the projection as an input",
        )


def _runs(sections: Sections) -> Iterator[Run]:
    return (statement for statement in sections.body if isinstance(statement, Run))
