"""Our own bugs: what the user sees instead of a traceback."""

from __future__ import annotations

import shlex
import traceback
from collections.abc import Sequence
from types import TracebackType

from gdsl.cli import console
from gdsl.options import DEBUG
from gdsl.version import __version__

CODE = "G9999"
# The deepest module of a traceback that starts with one of these names the stage.
_STAGES: dict[str, str] = {
    "gdsl.syntax": "parse",
    "gdsl.semantics": "elaborate",
    "gdsl.canonical": "canonicalize",
    "gdsl.algorithm": "plan",
    "backends.nki": "emit",
    "backends.simulator": "simulate",
    "backends.interpreter": "interpret",
    "backends.cost": "cost",
    "gdsl.regimes": "make inputs",
    "gdsl.verification": "verify",
}


def report(error: Exception, arguments: Sequence[str]) -> None:
    """Print what broke, in which stage, and the command that repeats it."""
    command = shlex.join(["gdsl", *arguments])
    console.say(f"error[{CODE}]: internal error: {type(error).__name__}: {error}")
    console.say(f"  = note: this is our bug, in stage `{stage_of(error.__traceback__)}`")
    console.say(f"  = note: gdsl {__version__}, repeated by `{command}`")
    console.say(f"  = help: report it with the output of `{DEBUG.name}=1 {command}`")
    if DEBUG.value:
        traceback.print_exception(error)


def stage_of(trace: TracebackType | None) -> str:
    """Return the stage whose code is deepest in a traceback."""
    stage = "command line"
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "")
        for prefix, name in _STAGES.items():
            if module == prefix or module.startswith(prefix + "."):
                stage = name
        trace = trace.tb_next
    return stage
