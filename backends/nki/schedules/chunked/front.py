"""What stands in front of a chunked rule, from the structure of the text (`schedules.block.cut`).

The rule itself reads tensors in HBM. A field of a packed axis is one (`q` of `qkv`): other strides,
another first element. The result of a window becomes one, a tensor of the kernel's own in the
dtype of its tokens, which the filter writes for all tokens before the first chunk is loaded. What
is left of the text is a kernel over these tensors, and is planned as any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
from gdsl.ir.kernel import Input
from gdsl.ir.node import Symbol
from gdsl.ir.types import DtypeVar, Type


@frozen
class Projected:
    """The result of a projection in HBM: token by token, the columns of its weight."""

    item: Input
    section: Projection
    moving: Input


@frozen
class Filtered:
    """The result of a window in HBM, as wide as its tokens."""

    name: str
    section: Convolution
    token: Input
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
    filtered: Filtered | None = None
    projected: tuple[Projected, ...] = ()


def front_of(plan: Plan) -> Front:
    """Cut a plan. Raises CompileError for what does not stand in front of a chunked rule."""
    windows = [run for run, form in plan.kernel.runs if isinstance(form, Window)]
    if not windows and not plan.kernel.kernel.packed:
        return Front(plan, {}, {})
    if not any(isinstance(run, ChunkedRun) for run in plan.runs):
        raise refuse("a window in front of a rule token by token is not emitted", windows[0].span)
    sections = cut(plan)
    names = _names(plan)
    projected = {
        section.symbol: _projected(section, sections, names) for section in sections.projections
    }
    filtered = _filtered(sections, projected, names)
    inputs, sources, fields = [], {}, {}
    for value in sections.values:
        source = (
            filtered.token if filtered and _is(value, filtered) else _source(value.port, projected)
        )
        name = names.fresh(value.name)
        inputs.append(_input(value, name, source.dims, source.dtype))
        sources[name] = filtered.name if filtered and _is(value, filtered) else source.name
        fields[name] = dict(value.port.field.packed)
    left = _planned(plan, sections, inputs)
    return Front(left, fields, sources, filtered, tuple(projected.values()))


def _names(plan: Plan) -> Names:
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


def _is(value: Value, filtered: Filtered) -> bool:
    return value.port.section is filtered.section


def _source(port: Port, projected: Mapping[Symbol, Projected]) -> Input:
    """The tensor in HBM that a port is a field of."""
    match port.section:
        case Given(input=item):
            return item
        case Projection(symbol=symbol):
            return projected[symbol].item
        case Convolution(run=run):
            raise refuse("a window over the result of a window", run.span)
        case section:
            assert_never(section)


# ---- projections


def _projected(section: Projection, sections: Sections, names: Names) -> Projected:
    """A projection of tokens that are an input, in the dtype that a window rounds them to."""
    moving, weight = section.moving, section.weight
    if (
        not isinstance(moving, Input)
        or not _are_rows(moving, section)
        or weight.dims[0] != Atom(section.axis)
    ):
        raise refuse(
            "a projection in front of a rule in chunks needs tokens [batch, tokens, hidden] that "
            "are an input, and a weight [hidden, columns]",
            weight.span,
            label="the weight of a projection",
            help="pass its result to this kernel as an input",
        )
    if moving.dtype != weight.dtype or section.rounded not in (None, moving.dtype):
        raise refuse("a projection whose tokens and weight differ in dtype", weight.span)
    windows = [c for c in sections.convolutions if section in {p.section for p in c.token}]
    rounded = {c.rounded for c in windows if c.rounded is not None}
    dtype = rounded.pop() if len(rounded) == 1 else Dtype.F32
    dims = (*moving.dims[:-1], *weight.dims[1:])
    name = names.fresh(f"{section.symbol.name}_hbm")
    axes = (*moving.type.axes[:-1], *(a for a in weight.type.axes if a != section.axis))
    item = Input(section.symbol, name, dtype, dims, Type(axes, dtype))
    return Projected(item, section, moving)


def _are_rows(moving: Input, section: Projection) -> bool:
    """Whether hidden channels of each token lie side by side, and tokens one after the other."""
    return all(isinstance(dim, Atom) for dim in moving.dims) and moving.dims[-1] == Atom(
        section.axis
    )


# ---- the window


def _filtered(
    sections: Sections, projected: Mapping[Symbol, Projected], names: Names
) -> Filtered | None:
    """The one window in front of the rule."""
    if not sections.convolutions:
        return None
    section, *more = sections.convolutions
    if more:
        raise refuse(
            "several windows in front of a rule in chunks are not emitted yet",
            more[0].run.span,
            help="filter channels side by side: one window over a packed axis",
        )
    token, silu = _token(section, projected), _silu(section, sections)
    return Filtered(names.fresh(f"{section.symbol.name}_hbm"), section, token, silu)


def _token(section: Convolution, projected: Mapping[Symbol, Projected]) -> Input:
    """The tensor of raw tokens; all its channels, in the order of the fields."""
    sources = [_source(port, projected) for port in section.token]
    found = {source.name: source for source in sources}
    parts = tuple(port.field.packed for port in section.token)
    if len(found) != 1 or parts != tuple(part.packed for part in section.fields):
        raise refuse("a window of several tensors is not emitted yet", section.run.span)
    return next(iter(found.values()))


def _silu(section: Convolution, sections: Sections) -> bool:
    """Whether silu follows the window, everywhere."""
    ports: list[Port] = [v.port for v in sections.values if v.port.section is section]
    found = {port.silu for port in ports}
    if len(found) != 1:
        raise refuse("a window whose sums are used with silu and without", section.run.span)
    return found.pop()
