"""What tests of emitted kernels share: one verification on trn2, by both cores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from gdsl import api
from gdsl.pipeline import Definition

Agrees = Callable[..., None]


@pytest.fixture
def agrees() -> Agrees:
    """Compare a kernel in the simulator with the interpreter: `agrees(definition, sizes)`.

    It takes the sizes of its own axes. A regime that does not apply is left out, but not the first.
    """

    def compare(
        definition: Definition,
        sizes: Mapping[str, int],
        *,
        regimes: Sequence[str] = ("gaussian",),
        settings: Mapping[str, str | int | float | bool] | None = None,
    ) -> None:
        axes = {axis.name for axis in definition.kernel.axes}
        report = api.verify(
            definition,
            shape={axis: size for axis, size in sizes.items() if axis in axes},
            targets=("trn2",),
            lnc=(2,),
            regimes=regimes,
            settings=settings or {},
        )
        assert regimes[0] in report.run
        report.assert_ok()

    return compare
