"""The docstring of an emitted kernel, in nki-library's sections.

Dimensions, Args, Returns, Notes (target, version, the serving rules that apply), Pseudocode. All of
it comes from the kernel: declarations, doc strings, the canonical recurrence.
"""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc
from textwrap import wrap

from backends.nki.emit.pseudocode import pseudocode
from gdsl.algorithm.plan import Plan
from gdsl.canonical.form import Delta, Window
from gdsl.ir.dtypes import Dtype
from gdsl.ir.interval import show
from gdsl.ir.kernel import Input, Kernel, Output, Run, State
from gdsl.ir.node import Symbol
from gdsl.ir.text import dim_text
from gdsl.ir.types import ANY, DtypeVar

WIDTH = 108


def docstring(plan: Plan, notes: tuple[str, ...]) -> str:
    """Return the text between the quotes."""
    kernel = plan.kernel.kernel
    summary = kernel.doc or f"{kernel.name}: generated from a delta-rule recurrence."
    lines = [line.rstrip() for line in cleandoc(summary).split("\n")]
    lines += ["", "Dimensions:", *_indent(_dimensions(kernel))]
    lines += ["", "Args:", *_indent(_arguments(kernel))]
    lines += ["", "Returns:", *_indent(_returns(kernel))]
    found = (*_serving(plan), *_limits(plan), *notes)
    lines += ["", "Notes:", *_indent(_bullets(tuple(dict.fromkeys(found))))]
    lines += ["", "Pseudocode:", *_indent(_wrapped(pseudocode(plan)))]
    return "\n".join(line.rstrip() for line in lines)


def _indent(lines: Iterator[str]) -> list[str]:
    return [f"    {line}" if line else "" for line in lines]


def _dimensions(kernel: Kernel) -> Iterator[str]:
    composites = [(name, dim_text(dim)) for name, dim in kernel.composites]
    for axis in kernel.axes:
        facts = []
        if axis.at_most is not None:
            facts.append(f"at most {axis.at_most}")
        if axis.multiple_of != 1:
            facts.append(f"a multiple of {axis.multiple_of}")
        meaning = _MEANING.get(axis.name, "axis of the tensors below")
        yield f"{axis.name}: {', '.join([meaning, *facts])}"
    for name, text in composites:
        yield f"{name}: = {text}, the last cycling fastest"


_MEANING = {
    "B": "batch",
    "T": "tokens",
    "H": "heads",
    "Hk": "key heads",
    "Hv": "value heads",
    "G": "value heads per key head",
    "K": "key head dimension",
    "V": "value head dimension",
    "W": "window of the short convolution",
    "N": "slots of the pool",
    "P": "stored states per row",
    "Hid": "hidden size",
}


def _arguments(kernel: Kernel) -> Iterator[str]:
    tensors: dict[str, Input | State] = {i.name: i for i in kernel.inputs}
    tensors |= {s.argument: s for s in kernel.states}
    params = {p.name: p for p in kernel.params}
    outputs = {o.name: o for o in kernel.outputs}
    for argument in kernel.call.arguments:
        name = argument.name
        if name in tensors:
            yield from _tensor(name, tensors[name])
        elif name in params:
            param = params[name]
            text = param.doc or "trace-time constant"
            yield f"{name} ({param.kind}): {text}"
        elif name in outputs:
            yield f"{name} ({_dtype(outputs[name].dtype)}): written and returned"
        else:
            role = "accepted and not needed" if argument.role == "ignored" else "schedule"
            yield f"{name}: {role}"


def _tensor(name: str, item: Input | State) -> Iterator[str]:
    shape = ", ".join(dim_text(dim) for dim in item.dims)
    facts = [f"[{shape}]"]
    if isinstance(item, State):
        facts.append("updated in place" if item.inplace else "state before the call")
        if item.optional:
            facts.append("zeros when None")
    elif item.range is not None and item.range != ANY:
        facts.append(f"in {show(item.range)}")
    if item.doc:
        facts.append(item.doc)
    yield from wrap(
        f"{name} ({_dtype(item.dtype)}): {', '.join(facts)}", WIDTH, subsequent_indent="    "
    )


def _dtype(dtype: Dtype | DtypeVar) -> str:
    if isinstance(dtype, DtypeVar):
        return " or ".join(choice.value for choice in dtype.choices)
    return dtype.value


def _returns(kernel: Kernel) -> Iterator[str]:
    outputs = {o.name: o for o in kernel.outputs}
    for name in kernel.call.returns:
        yield from _returned(outputs[name])


def _returned(output: Output) -> Iterator[str]:
    shape = ", ".join(dim_text(dim) for dim in output.dims)
    tail = f", {output.doc}" if output.doc else ""
    yield f"{output.name} ({_dtype(output.dtype)}): [{shape}]{tail}"


def _serving(plan: Plan) -> Iterator[str]:
    """The rules of the serving contract that concern this kernel."""
    kernel = plan.kernel.kernel
    names = {item.symbol: item.name for item in kernel.inputs}
    for state in kernel.states:
        if state.inplace:
            yield f"`{state.argument}` is written in place and returned."
        else:
            yield f"`{state.argument}` is not changed; the new state is a tensor of its own."
        if state.slots is not None:
            read = names[state.slots.read]
            write = names[state.slots.write] if state.slots.write is not None else None
            yield from _pool(state, read, write)
        if state.unless is not None:
            yield (
                f"Where `{names[state.unless]}` is false the row starts from zeros, whatever "
                f"`{state.argument}` holds."
            )
        if state.accepted is not None:
            yield (
                f"Row b starts from the state after `{names[state.accepted.symbol]}[b]` tokens, "
                f"entry {state.accepted.axis} of `{state.argument}`."
            )
    for run in kernel.body:
        if isinstance(run, Run) and run.valid_len is not None:
            yield (
                f"Row b has `{names[run.valid_len]}[b]` tokens (right padding); what lies behind "
                "may be anything: it is never used, outputs there are exactly 0."
            )
        if isinstance(run, Run) and run.states is not None and run.every not in (None, 1):
            every = run.every.name if isinstance(run.every, Symbol) else run.every
            none = f"fewer than {every} tokens" + ("" if isinstance(every, int) else ", or 0")
            yield (
                f"A call without a state on the way ({none}) has one entry of zeros along "
                f"{run.states_axis}: no tensor is empty."
            )
    yield _shares(plan)


def _shares(plan: Plan) -> str:
    """What two cores split."""
    windows = [isinstance(form, Window) for _, form in plan.kernel.runs]
    split = "rows (batch and heads)"
    if all(windows):
        split = "channels" if windows else "heads"
    elif any(windows):
        split = "key heads, with all that belongs to them,"
    match plan.settings["shard"]:
        case "value_columns":
            return "With two cores each takes a share of the value columns of every head."
        case "none":
            return "With two cores the first one does everything."
        case _:
            return f"With two cores the {split} are split, the remainder on the last core."


def _limits(plan: Plan) -> Iterator[str]:
    """What a caller must not expect of a schedule."""
    if plan.form != "chunked" and any(isinstance(form, Delta) for _, form in plan.kernel.runs):
        yield (
            "A NaN or Inf in a live row reaches the other rows of its tile (up to 128): TensorE "
            "picks a row by multiplying the others with 0."
        )
        tiles = plan.settings["key_tiles"]
        if tiles != 1:
            yield (
                f"The keys of a head lie on partitions in {tiles} tiles (`key_tiles={tiles}`), so "
                f"that there may be up to {128 * int(tiles)} of them."
            )
        if plan.settings["reads"] == "bf16":
            yield (
                "The state and the vectors that read it are rounded to bf16 where they are "
                "multiplied (`reads=bf16`), but for the read of an output behind an erasure. Sums, "
                "the decay and the update of the state are fp32. On trn2 and trn3 `reads=f32` is "
                "estimated to be faster."
            )
    runs = plan.kernel.runs
    if runs and all(isinstance(form, Window) and run.axis for run, form in runs):
        yield (
            "Beside 16-bit tokens the weights are held in fp16, magnitudes below 65,504: to 22 "
            "bits or 3e-8 in calls of up to 512 tokens, to 11 bits in longer ones."
        )
        yield (
            "A NaN or Inf in a channel of a valid token reaches the other channels of that token: "
            "TensorE multiplies them with 0."
        )


def _pool(state: State, read: str, write: str | None) -> Iterator[str]:
    """The rules of a pool of slots."""
    pool = state.argument
    yield (
        f"Row b reads slot `{read}[b]` of `{pool}`; a slot that does not exist (negative, or "
        "beyond the pool) reads as zeros."
    )
    if write is None:
        return
    yield (
        f"Row b writes slot `{write}[b]`; to none if that does not exist. All other slots keep "
        "their bits. A row without any slot is skipped: its output is exactly 0."
    )
    yield (
        "No two rows may write one slot, and no row may write a slot that another one reads: "
        "rows have no order."
    )


def _wrapped(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield from wrap(line, WIDTH, subsequent_indent="    ")


def _bullets(notes: tuple[str, ...]) -> Iterator[str]:
    for note in notes:
        yield from wrap(f"- {note}", WIDTH, subsequent_indent="  ")
