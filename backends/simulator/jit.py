"""`nki.jit` and `nki.simulate`: kernels as callables.

Inside a running kernel, calling another kernel runs its function in place. Outside, it launches.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from attrs import define, field

from backends.simulator.faults import Fault
from backends.simulator.machine import running

Edge = tuple[str, str | Sequence[str]]
Launcher = Callable[["Kernel", tuple[Any, ...], dict[str, Any]], Any]


@define(eq=False, slots=False)
class Kernel:
    """A function marked with `@nki.jit`, with its launch grid and extra ordering edges."""

    function: Callable[..., Any]
    launcher: Launcher
    grid: int | None = None
    schedule: tuple[Edge, ...] = field(default=())

    def __attrs_post_init__(self) -> None:
        functools.update_wrapper(self, self.function)

    def __getitem__(self, grid: Any) -> Kernel:
        if isinstance(grid, bool) or not isinstance(grid, int) or grid not in (1, 2):
            raise Fault(
                "S106",
                f"a launch grid is 1 or 2, not `{grid!r}`",
                help="`kernel[2](...)` launches on the two cores of an LNC pair",
            )
        return Kernel(self.function, self.launcher, grid, self.schedule)

    def with_schedule(self, edges: Sequence[Edge]) -> Kernel:
        """Return the kernel with (consumer, producers) edges between named instructions."""
        return Kernel(self.function, self.launcher, self.grid, (*self.schedule, *edges))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if running() is not None:
            return self.function(*args, **kwargs)
        return self.launcher(self, args, kwargs)


def make_jit(launcher: Launcher) -> Callable[..., Any]:
    """Return the decorator `nki.jit`, bare or with arguments."""

    def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
        if "platform_target" in options:
            raise Fault(
                "S104",
                "`nki.jit(platform_target=...)` was removed",
                help="set NEURON_PLATFORM_TARGET_OVERRIDE; the simulator takes `target=`",
            )
        if function is None:
            return lambda wrapped: Kernel(wrapped, launcher)
        return function if isinstance(function, Kernel) else Kernel(function, launcher)

    return jit
