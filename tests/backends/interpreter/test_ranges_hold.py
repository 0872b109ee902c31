"""The range that semantics wrote on every value holds for every value of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from backends.interpreter import RUNNER
from gdsl.ir.kernel import Kernel, Let, Run, Statement
from gdsl.ir.node import Symbol
from gdsl.ir.types import Interval
from gdsl.library import library_kernels
from gdsl.runner import Event, RunOptions

SIZES = {
    "B": 2, "T": 5, "P": 6, "N": 3, "Hk": 2, "G": 2, "Hv": 4, "H": 4, "R": 2, "K": 3, "V": 4,
    "W": 4, "M": 3, "C": 5, "Hid": 128,
}  # fmt: skip
POOLS = [name for name in library_kernels() if name.endswith("_pool")]
OWN: dict[str, dict[str, Any]] = {name: {"read": [0, 1], "write": [0, 1]} for name in POOLS} | {
    "gdn_cte_varlen": {"checkpoint_every": 2},
    "kda_cte_checkpoints": {"checkpoint_every": 2},
}


def ranges(body: tuple[Statement, ...]) -> dict[Symbol, Interval]:
    """Return the range of every defined symbol, inside rules too."""
    found: dict[Symbol, Interval] = {}
    for statement in body:
        match statement:
            case Let(target=target, value=value):
                found[target] = value.type.range
            case Run(rule=rule, results=results):
                found |= ranges(rule.body)
                types = (kind.range for kind in rule.result_types)
                found |= dict(zip(results, types, strict=True))
    return found


@pytest.mark.parametrize("scale", [1.0, 1e3])
@pytest.mark.parametrize("name", library_kernels())
def test_no_value_of_a_run_leaves_its_range(
    name: str,
    scale: float,
    library_kernel: Callable[[str], Kernel],
    draw: Callable[..., dict[str, Any]],
) -> None:
    """`scale` enlarges every input without a declared range, far into overflow of exponentials."""
    kernel = library_kernel(name)
    sizes = SIZES | ({"P": 2} if "checkpoint_every" in OWN.get(name, {}) else {})
    arguments = draw(kernel, sizes, seed=7)
    for item in kernel.inputs:
        if item.range is None and arguments[item.name].dtype == np.float64 and not kernel.assumes:
            arguments[item.name] *= scale
    for key, value in OWN.get(name, {}).items():
        arguments[key] = np.array(value, np.int32) if isinstance(value, list) else value
    known = ranges(kernel.body)
    checked = set()

    def hook(event: Event) -> None:
        bound = known.get(event.symbol) if event.symbol is not None else None
        if bound is None:
            return
        checked.add(event.symbol)
        values = np.asarray(event.values, float)
        nan = np.isnan(values)
        assert bound.may_be_nan or not nan.any(), event.name
        rest = values[~nan]
        assert (rest >= bound.lo).all(), (event.name, bound, rest.min())
        assert (rest <= bound.hi).all(), (event.name, bound, rest.max())

    RUNNER.run(kernel, arguments, RunOptions("float64", hook=hook))
    assert checked == set(known)
