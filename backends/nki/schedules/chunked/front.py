"""What stands in front of a chunked rule, from the structure of the text (`schedules.block.cut`).

The rule itself reads tensors in HBM. A field of a packed axis is one (`q` of `qkv`): other strides,
another first element. The result of a window or of a projection becomes one, a tensor of the
kernel's own in the dtype of its tokens, which is written before the first chunk is loaded; what
only a window or another projection sees stays on chip. What is left of the text is a kernel over
these tensors, and is planned as any other.
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
from backends.nki.schedules.chunked.projected import (
    Projected,
    Read,
    projected_of,
    read_by_rule,
    taken,
)
from backends.nki.schedules.chunked.runs import Part, part_of
from gdsl.algorithm.choose import choose
from gdsl.algorithm.plan import ChunkedRun, Plan
from gdsl.canonical.canonicalize import canonicalize
from gdsl.canonical.form import Window
from gdsl.ir.dims import Atom, Dim
from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Input, Slots
from gdsl.ir.node import Symbol
from gdsl.ir.types import DtypeVar, Type


@frozen
class Filtered:
    """The result of a window in HBM: token by token, all channels, in the dtype of its tokens."""

    item: Input
    section: Convolution
    token: Input | Projected
    """The raw tokens: a tensor, or a projection whose result only the window sees."""
    silu: bool
    part: Part = ()
    """Which channels the tokens are, of the tensor or of the projection's weight."""


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
    def slots(self) -> Slots | None:
        """The pool that the rule's state lies in."""
        return next((state.slots for state in self.plan.kernel.kernel.states), None)

    @property
    def valid_len(self) -> Symbol | None:
        """The live tokens of the rows of the rule."""
        return next(r.run.valid_len for r in self.plan.runs)

    @property
    def ends(self) -> bool:
        """Whether rows of the rule may have fewer tokens than there are: a length, or no slot."""
        return self.valid_len is not None or self.slots is not None

    @property
    def clean(self) -> frozenset[str]:
        """Tensors of the plan that hold zeros for the tokens behind the end of a row."""
        if not self.ends:
            return frozenset()
        made = {f.item.name for f in self.filtered if f.section.run.valid_len == self.valid_len}
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
    read = read_by_rule(sections, names)
    filtered = {
        section.symbol: _filtered(section, sections, names) for section in sections.convolutions
    }
    inputs, sources, fields = [], {}, {}
    for value in sections.values:
        source, part = _source(value.port, read, filtered)
        name = names.fresh(value.name)
        inputs.append(_input(value, name, source.dims, source.dtype))
        sources[name] = source.name
        fields[name] = dict(part)
    left = _planned(plan, sections, inputs)
    return Front(left, fields, sources, tuple(filtered.values()), read.tensors)


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


def _source(port: Port, read: Read, filtered: Mapping[Symbol, Filtered]) -> tuple[Input, Part]:
    """The tensor in HBM that a port is in, and which field of it."""
    match port.section:
        case Given(input=item):
            return item, port.field.packed
        case Projection():
            projected = read.ports[port]
            return projected.item, () if projected.part else port.field.packed
        case Convolution(symbol=symbol):
            return filtered[symbol].item, port.field.packed
        case section:
            assert_never(section)


# ---- windows


def _filtered(section: Convolution, sections: Sections, names: Names) -> Filtered:
    """A window over all channels of one tensor or projection, in their order, or over a field."""
    part, source = taken(section), section.token[0].section
    around = (Atom(sections.entry), Atom(section.run.axis or ""))
    token: Input | Projected
    match source:
        case Given(input=token):
            dtype, dims = token.dtype, token.dims
            if section.rounded is not None and section.rounded != dtype:
                raise refuse("tokens of a window that are rounded", section.run.span)
            channels = part_of([dim for dim in dims if dim not in around], part)
        case Projection():
            dtype = section.rounded or Dtype.F32
            token = projected_of(source, sections, names, dtype, part)
            channels = tuple(dim for dim in token.item.dims if dim not in around)
        case Convolution():
            raise refuse("a window over the result of a window", section.run.span)
        case _:
            assert_never(source)
    item = Input(
        section.symbol,
        names.fresh(f"{section.symbol.name}_hbm"),
        dtype,
        (*around, *channels),
        Type((), dtype),
    )
    return Filtered(item, section, token, _silu(section, sections), part)


def _silu(section: Convolution, sections: Sections) -> bool:
    """Whether silu follows the window, everywhere."""
    ports: list[Port] = [v.port for v in sections.values if v.port.section is section]
    found = {port.silu for port in ports}
    if len(found) != 1:
        raise refuse("a window whose sums are used with silu and without", section.run.span)
    return found.pop()
