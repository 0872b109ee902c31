"""What runs a kernel on arrays. Names `gdsl.ir` only, so that the interpreter can implement it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from attrs import frozen
from numpy.typing import NDArray

from gdsl.ir.kernel import Kernel

Array = NDArray[Any]


@frozen
class RunOptions:
    """`precision`: "float64" (the reference), "float32", or "declared" (dtypes as in the text)."""

    precision: str = "declared"


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
