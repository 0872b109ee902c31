"""Which kernel runs at which sizes, and how its source is found in a folder of checkouts."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from attrs import field, frozen

from backends.cost.program import Program, prepare
from backends.isa.dtypes import find_dtype
from backends.simulator import RUNNER
from backends.simulator.arguments import TensorSpec

OWN = Path(__file__).with_name("kernels.py")


@frozen
class Tensor:
    """An HBM argument: its shape and element type."""

    shape: tuple[int, ...]
    dtype: str = "float32"


Argument = Tensor | int | float | str | bool


@frozen
class Run:
    """One launch. `file` is relative to the folder of checkouts; empty: our own kernels."""

    entry: str
    arguments: tuple[tuple[str, Argument], ...]
    file: str = ""
    block: int | None = None
    """Of a documentation page: which of the listings that define `entry`, in order."""
    target: str = "trn2"
    numbers: tuple[tuple[str, float], ...] = field(default=())
    """Machine numbers that the source states otherwise than we assume."""


class SourceMissing(Exception):
    """The folder has no such checkout."""


def program(run: Run, folder: Path | None) -> Program:
    """Execute a launch in shape-only mode and prepare its trace. Raises SourceMissing."""
    source = _source(run, folder)
    arguments = {name: _value(argument) for name, argument in run.arguments}
    # Published kernels may spill; the simulator would refuse them.
    simulation = RUNNER.simulate(
        source,
        run.entry,
        arguments,
        target=run.target,
        shape_only=True,
        settings={"capacity": "warn"},
    )
    return prepare(simulation.traces[0])


def _value(argument: Argument) -> object:
    if isinstance(argument, Tensor):
        return TensorSpec(argument.shape, find_dtype(argument.dtype))
    return argument


def _source(run: Run, folder: Path | None) -> Path | str:
    if not run.file:
        return OWN
    path = None if folder is None else folder / run.file
    if path is None or not path.exists():
        raise SourceMissing(run.file)
    if run.block is None:
        return path
    listings = [text for text in _listings(path.read_text()) if f"def {run.entry}(" in text]
    # Listings of the page allocate their result where only scratch may live since NKI 0.3.
    return listings[run.block].replace("buffer=nl.hbm", "buffer=nl.shared_hbm")


def _listings(page: str) -> list[str]:
    """Return the Python listings of a reStructuredText page."""
    lines = page.split("\n")
    found = []
    at = 0
    while at < len(lines):
        directive = re.match(r"^(\s*)\.\. code-block:: python\s*$", lines[at])
        at += 1
        if not directive:
            continue
        body = []
        while at < len(lines) and (
            not lines[at].strip() or len(lines[at]) - len(lines[at].lstrip()) > len(directive[1])
        ):
            if not re.match(r"^\s*:\w+:", lines[at]):
                body.append(lines[at])
            at += 1
        found.append(textwrap.dedent("\n".join(body)).strip("\n"))
    return found
