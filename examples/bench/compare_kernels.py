"""Ours and any NKI kernel on one model in one run, and whether the order holds.

    python -m examples.bench.compare_kernels gdn_cte --shape B=1,Hk=1,G=1,T=2048,K=128,V=128 \
        --against FILE.py:gdn_cte algorithm=schur 'mask_pack=f32[10,128,128]' \
        --against FILE.py:gdn_cte algorithm=neumann recurrent_state=none

The first kernel is a `.gdn` kernel at a shape. Each `--against` names an NKI source, which gets the
first kernel's arguments where its parameters have their names, and what stands behind it.

Every time is estimated. Besides the figures the table gives each kernel's time relative to ours,
and the range of that ratio when each assumed number of the machine is moved to either end of its
range, for both kernels alike, one at a time and all together. A range on one side of 1 means that
the order of the two holds whatever those numbers are.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from backends.cost.list_schedule import list_scheduled
from backends.cost.program import Program, prepare
from backends.cost.sensitivity import extremes, single_changes
from backends.cost.timeline import program_order
from backends.isa.machine import MACHINES, Machine
from backends.simulator import RUNNER
from gdsl.cli import arguments, nki_arguments
from gdsl.emitter import EmitOptions
from gdsl.errors import GdslError
from gdsl.estimate import shapes_only
from gdsl.ir.dtypes import Dtype
from gdsl.launch import trace
from gdsl.nki_source import nki_source
from gdsl.pipeline import Compilation
from gdsl.regimes.typed import bind_dtypes
from gdsl.shapes import resolve_sizes


@frozen
class Entry:
    """One kernel, traced."""

    name: str
    programs: tuple[Program, ...]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("kernel", help="a `.gdn` kernel: library name, path or path:KERNEL")
    parser.add_argument("--shape", help="name or AXIS=SIZE,...")
    parser.add_argument("-t", "--target", default="trn2", choices=("trn2", "trn3"))
    parser.add_argument("--lnc", type=int, default=1, choices=(1, 2))
    parser.add_argument("--against", nargs="+", action="append", default=[], metavar="WHAT")
    return parser.parse_args()


def main() -> int:
    """Print the table; exit 2 when a kernel cannot be compiled, found or traced."""
    chosen = _arguments()
    try:
        ours, given = _ours(chosen)
        entries = [ours]
        entries += [_other(words, given, chosen.target, chosen.lnc) for words in chosen.against]
    except GdslError as error:
        print(error, file=sys.stderr)
        return 2
    print(_table(entries, MACHINES[chosen.target]))
    return 0


def _ours(chosen: argparse.Namespace) -> tuple[Entry, Mapping[str, Any]]:
    definition = arguments.define(chosen.kernel)
    kernel = definition.kernel
    sizes = resolve_sizes(kernel, definition.shapes, chosen.shape)
    given = shapes_only(kernel, sizes, bind_dtypes(kernel, Dtype.BF16))
    compilation = Compilation(definition, EmitOptions(chosen.target))
    simulation = trace(compilation.program, kernel, given, lnc=chosen.lnc)
    return Entry(kernel.name, tuple(map(prepare, simulation.traces))), given


def _other(words: Sequence[str], given: Mapping[str, Any], target: str, lnc: int) -> Entry:
    path, name = nki_source(words[0])
    extra = argparse.Namespace(arg=list(words[1:]), inputs=None, seed=0)
    named = {**given, **nki_arguments.arguments(extra, data=False)}
    taken = {key: value for key, value in named.items() if key in _parameters(path, name)}
    simulation = RUNNER.simulate(path, name, taken, target=target, lnc=lnc, shape_only=True)
    label = " ".join((f"{path.name}:{name}", *words[1:]))
    return Entry(label, tuple(map(prepare, simulation.traces)))


def _parameters(path: Path, name: str) -> set[str]:
    """Return the parameter names of a function, read from its text."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)}
    return set()


def _table(entries: Sequence[Entry], machine: Machine) -> str:
    cases = [*extremes(machine), *single_changes(machine)]
    times = [[program_order(entry.programs, case).end for case in cases] for entry in entries]
    rows = [
        "| kernel | program order us | list-scheduled us | / ours | over the assumed numbers |",
        "|---|---:|---:|---:|---|",
    ]
    for entry, found in zip(entries, times, strict=True):
        ratios = [time / ours for time, ours in zip(found, times[0], strict=True)]
        listed = min(list_scheduled(entry.programs, machine).end, found[0])
        rows.append(
            f"| {entry.name} | {found[0] / 1e3:.2f} | {listed / 1e3:.2f} | {ratios[0]:.3f} "
            f"| {min(ratios):.3f} to {max(ratios):.3f} |"
        )
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
