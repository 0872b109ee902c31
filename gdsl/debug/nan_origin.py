"""`--nan-origin`: the first statement, token and element that made a NaN or an infinity."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gdsl.diagnostics.diagnostic import Diagnostic
from gdsl.errors import RunError
from gdsl.ir.kernel import Kernel
from gdsl.runner import Event

CODE = "E0701"


class NanOrigin:
    """A hook that stops the run at the first computed value that is not finite.

    Inputs are allowed to hold such values (elements past a row's length do); they are mentioned.
    Raises RunError.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._given = {item.symbol for item in kernel.inputs}
        self._given |= {state.symbol for state in kernel.states}
        self._suspects: list[str] = []

    def __call__(self, event: Event) -> None:
        if event.values.dtype.kind in "iub":
            return
        bad = ~np.isfinite(event.values.astype(np.float64))
        if not bad.any():
            return
        if event.symbol in self._given and not event.where:
            self._suspects.append(event.name)
        else:
            self._stop(event, bad)

    def _stop(self, event: Event, bad: NDArray[np.bool_]) -> None:
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        where = [f"{axis} {at}" for axis, at in event.where]
        where += [f"{axis} {at}" for axis, at in zip(event.axes, index, strict=True)]
        place = f" at {', '.join(where)}" if where else ""
        message = f"`{event.name}` is {_spelled(float(event.values[index]))}{place}"
        notes = [f"{np.count_nonzero(bad)} of {bad.size} elements here are not finite"]
        if self._suspects:
            names = ", ".join(f"`{name}`" for name in self._suspects)
            notes.append(f"not finite already as given: {names}")
        diagnostic = Diagnostic(
            CODE,
            message,
            event.span,
            label="the first computed value that is not finite",
            notes=tuple(notes),
            help=f"look at it token by token: `gdsl run ... --watch {event.name}`",
        )
        raise RunError(message, (diagnostic,))


def _spelled(value: float) -> str:
    return "NaN" if np.isnan(value) else "inf" if value > 0 else "-inf"
