"""Ours and any NKI kernel on one model in one run, and whether the order holds.

    python -m examples.bench.compare_kernels gdn_cte --shape B=1,Hk=1,G=1,T=2048,K=128,V=128 \
        --against FILE.py:gdn_cte algorithm=schur 'mask_pack=f32[10,128,128]' \
        --against FILE.py:gdn_cte algorithm=neumann recurrent_state=none
    python -m examples.bench.compare_kernels gdn_cte gdn_cte,inverse=neumann kda_cte_bounded \
        --shape B=1,Hk=8,G=1,T=2048,K=128,V=128 --peers FOLDER

Ours are `.gdn` kernels at a shape, each with schedule keys behind commas. Each `--against` names an
NKI source, which gets the first kernel's arguments where its parameters have their names, and what
stands behind it; `units=N` says that a call does N chunks of a head (default: as many as ours).
`--peers` adds the public prefill kernels of `prefill_peers.py` that a folder of checkouts holds.

Every time is estimated. `chunk and head` is program order over the chunks of 128 tokens of all
value heads (a decode step counts as one). Besides the figures the table gives the engine that is
busy longest, each kernel's time per unit relative to the first one's, and the range of that ratio
when each assumed number of the machine is moved to either end of its range, for both kernels alike,
one at a time and all together. A range on one side of 1 means that the order of the two holds
whatever those numbers are. A kernel that the simulator refuses says so in its row.
"""

from __future__ import annotations

import argparse
import ast
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from backends.cost.bounds import instruction_bounds
from backends.cost.list_schedule import list_scheduled
from backends.cost.program import Program, prepare
from backends.cost.sensitivity import extremes, single_changes
from backends.cost.timeline import Timeline, program_order
from backends.isa.machine import MACHINES, Machine
from backends.simulator import RUNNER
from examples.bench import prefill_peers
from gdsl.cli import arguments, nki_arguments
from gdsl.emitter import EmitOptions
from gdsl.errors import GdslError, UsageError
from gdsl.estimate import shapes_only
from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Run
from gdsl.launch import trace
from gdsl.nki_source import nki_source
from gdsl.regimes.base import mapped_axes
from gdsl.regimes.typed import bind_dtypes
from gdsl.shapes import resolve_sizes

CHUNK = 128


@frozen
class Entry:
    """One kernel, traced."""

    name: str
    programs: tuple[Program, ...]
    units: int
    """Chunks of a head that it computes."""


@frozen
class Refused:
    """A kernel that has no time, and why."""

    name: str
    reason: str


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument(
        "kernels",
        nargs="+",
        metavar="KERNEL[,KEY=VALUE]",
        help="a `.gdn` kernel: library name, path or path:KERNEL; schedule keys",
    )
    parser.add_argument("--shape", help="name or AXIS=SIZE,...")
    parser.add_argument("-t", "--target", default="trn2", choices=("trn2", "trn3"))
    parser.add_argument("--lnc", type=int, default=1, choices=(1, 2))
    parser.add_argument("--against", nargs="+", action="append", default=[], metavar="WHAT")
    parser.add_argument("--peers", metavar="FOLDER", help="where checkouts of public kernels lie")
    return parser.parse_args()


def main() -> int:
    """Print the table; exit 2 when a kernel cannot be compiled, found or traced."""
    chosen = _arguments()
    try:
        (first, given, sizes), *more = [_ours(text, chosen) for text in chosen.kernels]
        against = list(chosen.against)
        if chosen.peers:
            against += prefill_peers.found(Path(chosen.peers), sizes)
        others = [_other(words, given, first.units, chosen) for words in against]
    except GdslError as error:
        print(error, file=sys.stderr)
        return 2
    entries = [first, *(entry for entry, _, _ in more), *others]
    print(_table(entries, MACHINES[chosen.target]))
    return 0


def _ours(
    text: str, chosen: argparse.Namespace
) -> tuple[Entry, Mapping[str, Any], Mapping[str, int]]:
    """Trace a kernel of ours; return it with its arguments, its tokens and its heads."""
    name, *keys = text.split(",")
    definition = arguments.define(name)
    kernel = definition.kernel
    sizes = resolve_sizes(kernel, definition.shapes, chosen.shape)
    given = shapes_only(kernel, sizes, bind_dtypes(kernel, Dtype.BF16))
    settings = arguments.settings(argparse.Namespace(set=keys))
    compilation = definition.compilation(EmitOptions(chosen.target), settings)
    simulation = trace(compilation.program, kernel, given, lnc=chosen.lnc)
    runs = [statement for statement in kernel.body if isinstance(statement, Run)]
    axis = runs[-1].axis
    tokens = sizes[axis] if axis else 1
    heads = math.prod(sizes[name] for name in mapped_axes(runs[-1]))
    units = heads * -(-tokens // CHUNK)
    entry = Entry(text, tuple(map(prepare, simulation.traces)), units)
    return entry, given, {"T": tokens, "H": heads}


def _other(
    words: Sequence[str], given: Mapping[str, Any], units: int, chosen: argparse.Namespace
) -> Entry | Refused:
    path, name = nki_source(words[0])
    texts = list(words[1:])
    for text in [text for text in texts if text.startswith("units=")]:
        units = _count(text)
        texts.remove(text)
    extra = argparse.Namespace(arg=texts, inputs=None, seed=0)
    named = {**given, **nki_arguments.arguments(extra, data=False)}
    taken = {key: value for key, value in named.items() if key in _parameters(path, name)}
    label = " ".join((f"{path.name}:{name}", *(t for t in texts if "[" not in t)))
    try:
        simulation = RUNNER.simulate(
            path, name, taken, target=chosen.target, lnc=chosen.lnc, shape_only=True
        )
    except GdslError as error:
        found = error.diagnostics[0] if error.diagnostics else None
        reason = f"{found.code}: {found.message}" if found else str(error).splitlines()[0]
        return Refused(label, reason)
    return Entry(label, tuple(map(prepare, simulation.traces)), units)


def _count(text: str) -> int:
    number = text.partition("=")[2]
    if not number.isdigit() or int(number) < 1:
        raise UsageError(f"`{text}`: expected a number of chunks, for example `units=16`")
    return int(number)


def _parameters(path: Path, name: str) -> set[str]:
    """Return the parameter names of a function, read from its text."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)}
    return set()


def _table(entries: Sequence[Entry | Refused], machine: Machine) -> str:
    cases = [*extremes(machine), *single_changes(machine)]
    base: list[float] = []
    rows = [
        "| kernel | us per chunk and head | program order us | list-scheduled us | busiest engine "
        "| / first | over the assumed numbers |",
        "|---|---:|---:|---:|---|---:|---|",
    ]
    for entry in entries:
        if isinstance(entry, Refused):
            rows.append(f"| {entry.name} | refused: {entry.reason} | | | | | |")
            continue
        found = [program_order(entry.programs, case) for case in cases]
        each = [timeline.end / entry.units for timeline in found]
        base = base or each
        ratios = [time / first for time, first in zip(each, base, strict=True)]
        listed = min(list_scheduled(entry.programs, machine).end, found[0].end)
        engine = _busiest(entry, found[0])
        rows.append(
            f"| {entry.name} | {each[0] / 1e3:.2f} | {found[0].end / 1e3:.2f} | {listed / 1e3:.2f} "
            f"| {engine} | {ratios[0]:.3f} "
            f"| {min(ratios):.3f} to {max(ratios):.3f} |"
        )
    return "\n".join(rows)


def _busiest(entry: Entry, timeline: Timeline) -> str:
    """The engine with most to do on the first core, and for how long per chunk and head."""
    bounds = instruction_bounds(entry.programs[0], timeline.costs[0])
    name = max(bounds, key=lambda engine: bounds[engine])
    return f"{name} {bounds[name] * len(entry.programs) / entry.units / 1e3:.2f}"


if __name__ == "__main__":
    sys.exit(main())
