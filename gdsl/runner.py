"""What runs a kernel on arrays. Names `gdsl.ir` only, so that the interpreter can implement it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

from attrs import frozen
from numpy.typing import NDArray

from gdsl.ir.kernel import Kernel
from gdsl.ir.node import Symbol
from gdsl.source import Span

Array = NDArray[Any]
Precision = Literal["float64", "float32", "declared"]


@frozen
class Event:
    """A name just received its value. Order: inputs and initial states, statements, outputs.

    Inside a run `values` are those of one token and `where` says which, outermost axis first:
    (("T", 17), ("N", 0)). `axes` name the dimensions of `values`.
    """

    name: str
    symbol: Symbol | None
    axes: tuple[str, ...]
    values: Array
    where: tuple[tuple[str, int], ...] = ()
    span: Span | None = None


@frozen
class RunOptions:
    """How to run. A set `hook` is called for every Event, and may raise to stop the run.

    `precision`: "float64" (the reference: no rounding at all, outputs in float64), "float32", or
    "declared" (float32 arithmetic, casts and stores rounded as the text says). `progress` is called
    with (tokens done, tokens in all) during a scan.
    """

    precision: Precision = "declared"
    hook: Callable[[Event], None] | None = None
    progress: Callable[[int, int], None] | None = None


class Runner(Protocol):
    """Runs a typed kernel. Arrays are keyed by argument name; missing ones are left out."""

    name: str

    def run(
        self,
        kernel: Kernel,
        arguments: Mapping[str, Array | float | int | bool],
        options: RunOptions,
    ) -> dict[str, Array]:
        """Return the outputs by name (an in-place state's output among them).

        Raises RunError when shapes, dtypes, ranges or assumptions do not hold.
        """

    def check(
        self, kernel: Kernel, arguments: Mapping[str, Array | float | int | bool]
    ) -> dict[str, int]:
        """Return the size of every axis of a call, and compute nothing.

        Raises RunError where `run` with dtypes as declared would.
        """
