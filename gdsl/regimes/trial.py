"""A trial: the arguments of one or several calls, and what they are to be compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from attrs import field, frozen

from gdsl.ir.expr import Ref
from gdsl.ir.kernel import Kernel, Run
from gdsl.ir.node import Symbol
from gdsl.regimes.base import Sizes, base_values, mapped_axes, to_arguments
from gdsl.regimes.drive import Values
from gdsl.regimes.roles import Roles, kernel_roles
from gdsl.runner import Array

Arguments = Mapping[str, Array]


@frozen
class Setting:
    """What a regime makes its trials from. `chunk` is None for a kernel without chunked runs."""

    kernel: Kernel
    sizes: Sizes
    seed: int
    chunk: int | None = None

    def rng(self) -> np.random.Generator:
        """A generator in its initial state; the same setting gives the same trial."""
        return np.random.default_rng(self.seed)

    def values(self, sizes: Sizes | None = None) -> Values:
        """The plain Gaussian values that a regime starts from."""
        return base_values(self.kernel, sizes or self.sizes, self.rng())

    @property
    def roles(self) -> tuple[Roles, ...]:
        """The delta-rule runs of the kernel, and what enters them."""
        return kernel_roles(self.kernel)

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs of the kernel, windows included, in body order."""
        return tuple(statement for statement in self.kernel.body if isinstance(statement, Run))

    @property
    def scan_axis(self) -> str | None:
        """The axis of tokens; None for a kernel that takes one token per call."""
        return next((run.axis for run in self.runs if run.axis), None)

    def tokens(self, wanted: int) -> int:
        """The wanted number of tokens, or the most that the kernel's text allows."""
        limit = next((a.at_most for a in self.kernel.axes if a.name == self.scan_axis), None)
        return min(wanted, limit or wanted)


@frozen
class Trial:
    """Calls in order; each after the first takes its states from the outputs of the one before.

    `whole` are the arguments of the one reference run that all calls together must equal, split
    along `split_axis`; None when each call has its own reference.
    """

    sizes: Sizes
    calls: tuple[Arguments, ...] = field(repr=False)
    whole: Arguments | None = field(default=None, repr=False)
    split_axis: str | None = None
    once: bool = False
    """One of very many alike: it runs on one target and one number of cores only."""


@frozen
class Skip:
    """Why a regime cannot apply to a kernel."""

    reason: str


Outcome = Iterable[Trial] | Skip


@frozen
class Regime:
    """A named kind of input that has broken a kernel of this family somewhere."""

    name: str
    doc: str
    trials: Callable[[Setting], Outcome]
    once: bool = False
    """Very long: it runs on one target and one core only, and float32 itself drifts in it."""


def single(setting: Setting, values: Values, sizes: Sizes | None = None) -> tuple[Trial]:
    """Return the one trial of one call with these values."""
    sizes = sizes or setting.sizes
    return (Trial(sizes, (to_arguments(setting.kernel, values, sizes),)),)


def carried_states(kernel: Kernel) -> dict[str, str]:
    """Return {state argument: output that holds its value after the call}, where there is one."""
    final = _final_states(kernel)
    found: dict[str, str] = {}
    for state in kernel.states:
        for output in kernel.outputs:
            is_final = isinstance(output.value, Ref) and output.value.symbol == final[state.symbol]
            if output.state == state.name or (is_final and output.dims == state.dims):
                found[state.argument] = output.name
    return found


def _final_states(kernel: Kernel) -> dict[Symbol, Symbol]:
    """Follow each state through the runs that rebind it."""
    final = {state.symbol: state.symbol for state in kernel.states}
    for statement in kernel.body:
        if isinstance(statement, Run):
            for initial, current in final.items():
                if current == statement.state:
                    final[initial] = statement.state_out
    return final


def few_heads(setting: Setting, limit: int) -> dict[str, int]:
    """Return the sizes with batch and heads reduced to at most `limit` in all."""
    sizes = dict(setting.sizes)
    left = limit
    axes = [axis for roles in setting.roles for axis in mapped_axes(roles.run)]
    for axis in reversed(dict.fromkeys(axes)):
        sizes[axis] = max(1, min(sizes[axis], left))
        left //= sizes[axis]
    return sizes
