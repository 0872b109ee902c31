"""`gdsl simulate`: any NKI kernel on numpy, refused where the hardware would refuse it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from gdsl import registry
from gdsl.arrays import npz_bytes
from gdsl.cli import arguments, console, nki_arguments
from gdsl.debug.watch import summary
from gdsl.files import write_atomically
from gdsl.nki_source import nki_source
from gdsl.simulator import Simulation

DESCRIPTION = """\
Run a kernel of an NKI source file, anybody's, in the simulator.

  gdsl simulate gdn_tkg.py:gdn_tkg --inputs in.npz -t trn2 --lnc 2 -o out.npz
  gdsl simulate kernel.py:add --arg x=bf16[128,512] --arg y=bf16[128,512]"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("kernel", metavar="FILE.py:KERNEL")
    nki_arguments.add(parser)
    arguments.add_target(parser)
    arguments.add_lnc(parser, "number of cores (default: 1)")
    arguments.add_set(parser, "a choice of the simulator, for example uninitialized=fault")
    parser.add_argument(
        "--shape-only", action="store_true", help="compute nothing; check rules and count"
    )
    arguments.add_output(parser, "the results (.npz; without it a line per result)")


def run(args: argparse.Namespace) -> int:
    """Simulate and show."""
    path, entry = nki_source(args.kernel)
    given = nki_arguments.arguments(args, data=not args.shape_only)
    result = registry.simulator().simulate(
        path,
        entry,
        given,
        target=arguments.target(args),
        lnc=args.lnc or 1,
        shape_only=args.shape_only,
        settings=arguments.settings(args),
    )
    console.print_findings(result.warnings)
    console.say(_counts(result))
    if args.shape_only:
        return 0
    outputs = {f"output_{i}": np.asarray(array) for i, array in enumerate(result.outputs)}
    outputs |= {name: np.asarray(array) for name, array in result.mutated.items()}
    if args.output == "-":
        sys.stdout.buffer.write(npz_bytes(outputs))
    elif args.output:
        write_atomically(Path(args.output), npz_bytes(outputs))
    else:
        for name, array in outputs.items():
            print(f"{name}: {array.dtype}{list(array.shape)}  {summary(array)}")
    return 0


def _counts(result: Simulation) -> str:
    counts = [len(trace.records) for trace in result.traces]
    memory = max((trace.sbuf_bytes_per_partition for trace in result.traces), default=0)
    banks = max((trace.psum_banks for trace in result.traces), default=0)
    each = " + ".join(str(count) for count in counts)
    return f"{each} instructions, {memory} bytes of SBUF per partition, {banks} PSUM banks"
