"""`--watch NAME`: one line per value of a name, in the order the run computes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from gdsl.errors import UsageError
from gdsl.ir.kernel import Kernel, Let, Run, Statement
from gdsl.runner import Array, Event
from gdsl.suggest import did_you_mean


class Watch:
    """A hook that says every value of the given names. Call `check` when the run is over."""

    def __init__(self, kernel: Kernel, names: Iterable[str], say: Callable[[str], None]) -> None:
        known = defined_names(kernel)
        self._names = tuple(names)
        for name in self._names:
            if name not in known:
                raise UsageError(
                    f"kernel `{kernel.name}` defines no `{name}`{did_you_mean(name, known)}; "
                    f"it defines {', '.join(known)}"
                )
        self._say = say

    def __call__(self, event: Event) -> None:
        if event.name in self._names:
            self._say(f"{place(event)} = {summary(event.values)}")


def defined_names(kernel: Kernel) -> tuple[str, ...]:
    """Return every name that gets a value in a kernel, rules included, in order."""
    names = [
        *(item.name for item in kernel.inputs),
        *(state.name for state in kernel.states),
        *_body_names(kernel.body),
        *(output.name for output in kernel.outputs),
    ]
    return tuple(dict.fromkeys(names))


def _body_names(body: tuple[Statement, ...]) -> Iterable[str]:
    for statement in body:
        match statement:
            case Let(target=target):
                yield target.name
            case Run():
                yield from _body_names(statement.rule.body)
                yield from (symbol.name for symbol in statement.results)
                yield statement.state_out.name


def place(event: Event) -> str:
    """Return what an event is about: `S[T=17] [B 1, Hv 32, K 128, V 128]`."""
    where = ", ".join(f"{axis}={index}" for axis, index in event.where)
    sizes = ", ".join(
        f"{axis} {size}" for axis, size in zip(event.axes, event.values.shape, strict=True)
    )
    return f"{event.name}[{where}] [{sizes}]" if where else f"{event.name} [{sizes}]"


def summary(values: Array) -> str:
    """Return a few numbers that tell values apart: all of them when there are few."""
    x = np.asarray(values)
    if x.size <= 4:
        return np.array2string(x.astype(np.float64), precision=7, separator=", ")
    if x.dtype.kind in "iub":
        return f"min {x.min()}, max {x.max()}, first {x.ravel()[0]}"
    x = x.astype(np.float64)
    bad = int(np.count_nonzero(~np.isfinite(x)))
    finite = x[np.isfinite(x)]
    if not finite.size:
        return f"no finite value among {x.size}"
    rms = float(np.sqrt(np.mean(finite * finite)))
    note = f", {bad} of {x.size} not finite" if bad else ""
    return f"rms {rms:.6g}, min {finite.min():.6g}, max {finite.max():.6g}{note}"
