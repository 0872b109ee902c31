"""What stands in front of a chunked rule, from the structure of the text (`schedules.block.cut`).

The rule itself reads tensors in HBM. A field of a packed axis is one (`q` of `qkv`): other strides,
another first element. The result of a window becomes one, a tensor of the kernel's own in the
dtype of its tokens, which the filter writes for all tokens before the first chunk is loaded. What
is left of the text is a kernel over these tensors, and is planned as any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
from gdsl.ir.dims import Dim
from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Input
from gdsl.ir.types import DtypeVar


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


def front_of(plan: Plan) -> Front:
    """Cut a plan. Raises CompileError for what does not stand in front of a chunked rule."""
    windows = [run for run, form in plan.kernel.runs if isinstance(form, Window)]
    if not windows and not plan.kernel.kernel.packed:
        return Front(plan, {}, {})
    if not any(isinstance(run, ChunkedRun) for run in plan.runs):
        raise refuse("a window in front of a rule token by token is not emitted", windows[0].span)
    sections = cut(plan)
    names = _names(plan)
    filtered = _filtered(sections, names)
    inputs, sources, fields = [], {}, {}
    for value in sections.values:
        source = filtered.token if filtered and _is(value, filtered) else _given(value)
        name = names.fresh(value.name)
        inputs.append(_input(value, name, source.dims, source.dtype))
        sources[name] = filtered.name if filtered and _is(value, filtered) else source.name
        fields[name] = dict(value.port.field.packed)
    return Front(_planned(plan, sections, inputs), fields, sources, filtered)


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


def _given(value: Value) -> Input:
    match value.port.section:
        case Given(input=item):
            return item
        case section:
            raise _projected(section)


def _projected(section: Projection | Convolution) -> Exception:
    return refuse(
        "a projection in front of a rule in chunks is not emitted yet",
        section.weight.span,
        label="the weight of a projection",
        help="pass its result to this kernel as an input, as `gdn_mixer_prefill` takes it",
    )


# ---- the window


def _filtered(sections: Sections, names: Names) -> Filtered | None:
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
    token, silu = _token(section), _silu(section, sections)
    return Filtered(names.fresh(f"{section.symbol.name}_hbm"), section, token, silu)


def _token(section: Convolution) -> Input:
    """The tensor of raw tokens; all its channels, in the order of the fields."""
    found: dict[str, Input] = {}
    for port in section.token:
        if not isinstance(port.section, Given):
            raise _projected(port.section)
        found[port.section.input.name] = port.section.input
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
