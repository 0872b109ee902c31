"""What stands in front of a chunked rule, from the structure of the text (`schedules.block.cut`).

The rule itself reads tensors in HBM. A field of a packed axis is one (`q` of `qkv`): other strides,
another first element. The result of a window or of a projection becomes one, a tensor of the
kernel's own in the dtype of its tokens, which is written before the first chunk is loaded; what
only a window or another projection sees stays on chip. What is left of the text is a kernel over
these tensors, and is planned as any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from attrs import evolve, frozen

from backends.nki.program.build import Names
from backends.nki.refusal import refuse
from backends.nki.schedules.block.cut import cut
from backends.nki.schedules.block.sections import (
    Convolution,
    Given,
    Port,
    Projection,
    Sections,
    Value,
)
from gdsl.algorithm.choose import choose
from gdsl.algorithm.plan import ChunkedRun, Plan
from gdsl.canonical.canonicalize import canonicalize
from gdsl.canonical.form import Window
from gdsl.ir.dims import Atom, Dim
from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Input, Run
from gdsl.ir.node import Symbol
from gdsl.ir.types import DtypeVar, Type


@frozen
class Turned:
    """A projection that only another one reads: it stays on chip, its columns on partitions."""

    section: Projection
    moving: Input


@frozen
class Projected:
    """The result of a projection in HBM: token by token, the columns of its weight."""

    item: Input
    section: Projection
    moving: Input | Turned


@frozen
class Filtered:
    """The result of a window in HBM: token by token, all channels, in the dtype of its tokens."""

    item: Input
    section: Convolution
    token: Input | Projected
    """The raw tokens: a tensor, or a projection whose result only the window sees."""
    silu: bool


@frozen
class Front:
    """A plan over tensors in HBM, and what these are."""

    plan: Plan
    """The rule, and what is computed around it."""
    fields: Mapping[str, Mapping[str, str]]
    """By tensor: which field of each packed axis it is."""
    sources: Mapping[str, str]
    """Tensors of the plan that are a field of another tensor, or all of it: its name."""
    filtered: tuple[Filtered, ...] = ()
    projected: tuple[Projected, ...] = ()
    """Those that the rule reads."""

    @property
    def clean(self) -> frozenset[str]:
        """Tensors of the plan that hold zeros for the tokens behind the end of a row."""
        run = next(r.run for r in self.plan.runs)
        ended = [f for f in self.filtered if f.section.run.valid_len is not None]
        made = {f.item.name for f in ended if f.section.run.valid_len == run.valid_len}
        return frozenset(name for name, source in self.sources.items() if source in made)


def front_of(plan: Plan) -> Front:
    """Cut a plan. Raises CompileError for what does not stand in front of a chunked rule."""
    windows = [run for run, form in plan.kernel.runs if isinstance(form, Window)]
    if not windows and not plan.kernel.kernel.packed:
        return Front(plan, {}, {})
    if not any(isinstance(run, ChunkedRun) for run in plan.runs):
        raise refuse("a window in front of a rule token by token is not emitted", windows[0].span)
    sections = cut(plan)
    names = names_of(plan)
    projected = {
        section.symbol: projected_of(section, sections, names) for section in sections.projections
    }
    filtered = {
        section.symbol: _filtered(section, sections, projected, names)
        for section in sections.convolutions
    }
    inputs, sources, fields = [], {}, {}
    for value in sections.values:
        source = _source(value.port, projected, filtered)
        name = names.fresh(value.name)
        inputs.append(_input(value, name, source.dims, source.dtype))
        sources[name] = source.name
        fields[name] = dict(value.port.field.packed)
    left = _planned(plan, sections, inputs)
    read = [p for p in projected.values() if p.item.name in sources.values()]
    return Front(left, fields, sources, tuple(filtered.values()), tuple(read))


def names_of(plan: Plan) -> Names:
    """Return the names that a kernel's caller knows, to which others are added."""
    kernel = plan.kernel.kernel
    taken = {argument.name for argument in kernel.call.arguments}
    taken |= {axis.name for axis in kernel.axes} | {output.name for output in kernel.outputs}
    return Names(taken)


def _planned(plan: Plan, sections: Sections, inputs: Iterable[Input]) -> Plan:
    """What is left of the text as a plan of its own, with the settings of the whole."""
    kernel = sections.kernel
    (run,) = [planned.run for planned in plan.runs if isinstance(planned, ChunkedRun)]
    left = evolve(
        kernel,
        inputs=(*kernel.inputs, *inputs),
        states=tuple(state for state in kernel.states if state.symbol == run.state),
        body=sections.body,
        outputs=sections.outputs,
    )
    asked = [s for s in plan.resolved if s.origin in ("file", "override")]
    found = choose(canonicalize(left), {s.key: s.value for s in asked})
    return evolve(found, exposed=plan.exposed, resolved=plan.resolved)


def _input(value: Value, name: str, dims: tuple[Dim, ...], dtype: Dtype | DtypeVar) -> Input:
    return Input(value.symbol, name, dtype, dims, evolve(value.type, dtype=dtype))


def _source(
    port: Port, projected: Mapping[Symbol, Projected], filtered: Mapping[Symbol, Filtered]
) -> Input:
    """The tensor in HBM that a port is a field of."""
    match port.section:
        case Given(input=item):
            return item
        case Projection(symbol=symbol):
            return projected[symbol].item
        case Convolution(symbol=symbol):
            return filtered[symbol].item
        case section:
            assert_never(section)


# ---- projections


def projected_of(section: Projection, sections: Sections, names: Names) -> Projected:
    """Return where a projection of tokens goes: in the dtype that a window rounds them to.

    Raises CompileError where the tokens are no input, or no rows of hidden channels.
    """
    moving = _moving(section, sections)
    given = moving if isinstance(moving, Input) else moving.moving
    windows = [c for c in sections.convolutions if section in {p.section for p in c.token}]
    rounded = {c.rounded for c in windows if c.rounded is not None}
    dtype = rounded.pop() if len(rounded) == 1 else Dtype.F32
    weight = section.weight
    dims = (*given.dims[:-1], *weight.dims[1:])
    name = names.fresh(f"{section.symbol.name}_hbm")
    axes = (*given.type.axes[:-1], *(a for a in weight.type.axes if a != section.axis))
    item = Input(section.symbol, name, dtype, dims, Type(axes, dtype))
    return Projected(item, section, moving)


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


# ---- windows


def _filtered(
    section: Convolution,
    sections: Sections,
    projected: Mapping[Symbol, Projected],
    names: Names,
) -> Filtered:
    """A window over all channels of one tensor or projection, in their order."""
    sources = {port.section: port for port in section.token}
    parts = tuple(port.field.packed for port in section.token)
    if len(sources) != 1 or parts != tuple(part.packed for part in section.fields):
        raise refuse(
            "a window over parts of several tensors is not emitted in front of a rule in chunks",
            section.run.span,
            help="give each tensor a window of its own",
        )
    (source,) = sources
    token: Input | Projected
    match source:
        case Given(input=token):
            dtype, dims = token.dtype, token.dims
        case Projection(symbol=symbol):
            token = projected[symbol]
            dtype, dims = token.item.dtype, token.item.dims
        case Convolution():
            raise refuse("a window over the result of a window", section.run.span)
        case _:
            assert_never(source)
    if section.rounded is not None and section.rounded != dtype:
        raise refuse("tokens of a window that are rounded", section.run.span)
    around = (Atom(sections.entry), Atom(section.run.axis or ""))
    channels = tuple(dim for dim in dims if dim not in around)
    item = Input(
        section.symbol,
        names.fresh(f"{section.symbol.name}_hbm"),
        dtype,
        (*around, *channels),
        Type((), dtype),
    )
    return Filtered(item, section, token, _silu(section, sections))


def _silu(section: Convolution, sections: Sections) -> bool:
    """Whether silu follows the window, everywhere."""
    ports: list[Port] = [v.port for v in sections.values if v.port.section is section]
    found = {port.silu for port in ports}
    if len(found) != 1:
        raise refuse("a window whose sums are used with silu and without", section.run.span)
    return found.pop()
