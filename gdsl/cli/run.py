"""`gdsl run`: a kernel on arrays, in the interpreter or as NKI in the simulator."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gdsl import api
from gdsl.arrays import load_npz, npz_bytes
from gdsl.cli import arguments, console
from gdsl.debug.watch import Watch, summary
from gdsl.errors import UsageError
from gdsl.files import write_atomically
from gdsl.ir.kernel import Kernel
from gdsl.pipeline import Definition
from gdsl.runner import Array, Event

DESCRIPTION = """\
Run a kernel on arrays and print a line per output, or write them to an .npz file.

  gdsl run gdn_tkg --random --seed 1 --shape B=1,Hv=4,K=128,V=128
  gdsl run gdn_tkg --inputs in.npz --backend simulator -t trn3 -o out.npz
  gdsl run gdn_cte --random --watch S,beta
  gdsl run my_kernel.gdn --inputs in.npz --nan-origin"""

BACKENDS = ("interpreter", "simulator")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    arguments.add_file(parser)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--inputs", metavar="F.npz", help="arrays by argument name")
    source.add_argument("--random", action="store_true", help="Gaussian arrays that fit")
    arguments.add_seed(parser, "--random")
    arguments.add_shape(parser)
    parser.add_argument(
        "--param",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a trace-time constant of the kernel; may be repeated",
    )
    parser.add_argument("--backend", choices=BACKENDS, default=BACKENDS[0])
    parser.add_argument(
        "--precision",
        choices=("declared", "float32", "float64"),
        default="declared",
        help="of the interpreter (default: declared, dtypes as in the text)",
    )
    arguments.add_target(parser, "the simulated machine")
    arguments.add_lnc(parser, "simulated cores (default: 1)")
    arguments.add_set(parser)
    arguments.add_output(parser, "the outputs (.npz)")
    parser.add_argument("--watch", metavar="NAME,...", help="say every value of these names")
    parser.add_argument("--trace", metavar="F.npz", help="record every intermediate value")
    parser.add_argument(
        "--nan-origin", action="store_true", help="stop at the first value that is not finite"
    )


def run(args: argparse.Namespace) -> int:
    """Run and show."""
    _refuse_idle(args)
    kernel = arguments.define(args.file)
    given = _arguments(args, kernel)
    if args.backend == "simulator":
        outputs = api.run(
            kernel,
            given,
            backend="simulator",
            target=arguments.target(args),
            lnc=args.lnc or 1,
            settings=arguments.settings(args),
        )
    else:
        outputs = _interpret(args, kernel, given)
    if args.output:
        data = npz_bytes(outputs)
        if args.output == "-":
            sys.stdout.buffer.write(data)
        else:
            write_atomically(Path(args.output), data)
    else:
        for name, array in outputs.items():
            print(_line(name, array))
    return 0


def _arguments(args: argparse.Namespace, kernel: Definition) -> dict[str, Any]:
    if args.inputs:
        given: dict[str, Any] = dict(load_npz(args.inputs))
    else:
        given = dict(api.random_inputs(kernel, args.shape, args.seed))
    return given | params(kernel.kernel, args.param)


def params(kernel: Kernel, items: list[str]) -> dict[str, Any]:
    """Return the constants of --param, as the kinds the kernel declares. Raises UsageError."""
    kinds: dict[str, Callable[[str], Any]] = {"float": float, "int": int, "bool": _bool}
    declared = {param.name: param.kind for param in kernel.params}
    found: dict[str, Any] = {}
    for item in items:
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals or name not in declared:
            known = ", ".join(declared) or "none"
            raise UsageError(f"`--param {item}`: expected NAME=VALUE; params: {known}")
        try:
            found[name] = kinds[declared[name]](value)
        except ValueError:
            raise UsageError(f"`--param {item}`: `{name}` is a {declared[name]}") from None
    return found


def _bool(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


def _refuse_idle(args: argparse.Namespace) -> None:
    """Raise UsageError for an option that the chosen backend would not look at."""
    if args.backend == "simulator":
        why, idle = "is the interpreter's; leave out `--backend`", [*_INTERPRETER]
        idle += ["precision"] if args.precision != "declared" else []
    else:
        why, idle = "is the emitted kernel's; add `--backend simulator`", [*_SIMULATOR]
    for option in idle:
        if getattr(args, option):
            raise UsageError(f"`--{option.replace('_', '-')}` {why}")


_INTERPRETER, _SIMULATOR = ("watch", "trace", "nan_origin"), ("target", "lnc", "set")
"""Options that only one backend has a use for."""


def _interpret(
    args: argparse.Namespace, kernel: Definition, given: dict[str, Any]
) -> dict[str, Array]:
    from gdsl.debug.nan_origin import NanOrigin
    from gdsl.debug.record import Record

    hooks: list[Callable[[Event], None]] = []
    record = Record() if args.trace else None
    if args.watch:
        hooks.append(Watch(kernel.kernel, _names(args.watch), print))
    if record:
        hooks.append(record)
    if args.nan_origin:
        hooks.append(NanOrigin(kernel.kernel))
    progress = console.Progress()
    try:
        return api.run(
            kernel,
            given,
            precision=args.precision,
            hook=_all(hooks) if hooks else None,
            progress=lambda done, total: progress.show(done, total, "tokens"),
        )
    finally:
        progress.clear()
        if record:
            write_atomically(Path(args.trace), npz_bytes(record.arrays()))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _all(hooks: list[Callable[[Event], None]]) -> Callable[[Event], None]:
    def call(event: Event) -> None:
        for hook in hooks:
            hook(event)

    return call


def _line(name: str, array: Array) -> str:
    from gdsl.ir.dtypes import Dtype

    names = {dtype.numpy: dtype.value for dtype in Dtype}
    shape = ", ".join(map(str, array.shape))
    return f"{name}: {names.get(array.dtype, str(array.dtype))}[{shape}]  {summary(array)}"
