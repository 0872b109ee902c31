"""A trial in chosen dtypes beside its exact result: what every bound is relative to."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Kernel
from gdsl.regimes.trial import Trial
from gdsl.runner import Array, Precision
from gdsl.verification.judge import errors_max, errors_rms, group_scale, grouped
from gdsl.verification.witnesses import Call, Result, group_axes, interpret, run_reference


@frozen
class Exact:
    """A trial, and the definition's float64 result of it."""

    kernel: Kernel
    trial: Trial
    bound: Mapping[str, Dtype]
    """The dtype of each dtype variable."""
    reference: Result

    def interpreted(self, kernel: Kernel, precision: Precision) -> Result:
        """Run the trial with another text of the kernel, or in another precision."""
        return interpret(kernel, self.trial, self.bound, precision)

    def run(self, call: Call) -> Result:
        """Run the trial with something else that computes the kernel."""
        return run_reference(self.kernel, self.trial, self.bound, call)

    def groups(self, name: str) -> int:
        """Return how many groups (batch, head) an output has."""
        return len(self._grouped(self.reference, name))

    def errors(self, result: Result, name: str) -> tuple[Array, Array]:
        """Return e_rms and e_max of an output, [groups] each."""
        expected = self._grouped(self.reference, name)
        scale, x = group_scale(expected), self._grouped(result, name)
        return errors_rms(x, expected, scale), errors_max(x, expected, scale)

    def _grouped(self, result: Result, name: str) -> Array:
        return grouped(result.outputs[name], result.axes[name], group_axes(self.kernel))


def run_exactly(kernel: Kernel, trial: Trial, bound: Mapping[str, Dtype]) -> Exact:
    """Run the definition in float64."""
    return Exact(kernel, trial, bound, interpret(kernel, trial, bound, "float64"))
