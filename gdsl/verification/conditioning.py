"""How far the exact result moves when the inputs move by one ulp.

Where q . k is near 0 before an RMSNorm, or new values cancel against the state, no float32 program
can meet the fixed limits: the definition itself, run in float32, errs as much. What a backward
stable program may err by is a small multiple of the change that one ulp in each input makes to the
float64 result. It is looked at only where a fixed limit is not met. The same holds of bf16 operands
and half an ulp in inputs of bf16.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from attrs import evolve

from gdsl import registry
from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Kernel
from gdsl.runner import Array, RunOptions
from gdsl.verification.exact import Exact
from gdsl.verification.judge import Allowed

FACTOR = 4.0
_DRAWS = 4
_ULP = 2.0**-23


def conditioned(exact: Exact, allowed: Mapping[str, Allowed]) -> dict[str, Allowed]:
    """Return the bounds raised to what one ulp in every input does to the float64 result."""
    found = dict(allowed)
    for name, moved in inherent(exact, lambda _: _ULP).items():
        limits = found[name]
        assert moved.max is not None
        most = None if limits.max is None else np.maximum(limits.max, moved.max)
        found[name] = Allowed(np.maximum(limits.rms, moved.rms), most)
    return found


def half_ulp(dtype: np.dtype[Any]) -> float:
    """Return half the distance between neighbours in a dtype, relative to them, at least."""
    (own,) = [known for known in Dtype if known.numpy == dtype]
    return float(2.0 ** -(own.fraction_bits + 2))


def inherent(exact: Exact, ulp: Callable[[np.dtype[Any]], float]) -> dict[str, Allowed]:
    """Return what a backward stable program may err by, with inputs known to `ulp` of their dtype.

    A small multiple of the largest change over several draws of which way each input moves.
    """
    kernel = _unconstrained(exact.kernel)
    found: dict[str, tuple[Array, Array]] = {}
    for draw in range(_DRAWS):
        rng = np.random.default_rng(draw)

        def call(arguments: Mapping[str, Any], rng: np.random.Generator = rng) -> dict[str, Array]:
            moved = {name: _moved(value, rng, ulp) for name, value in arguments.items()}
            return registry.interpreter().run(kernel, moved, RunOptions("float64"))

        other = exact.run(call)
        for name in exact.reference.outputs:
            e_rms, e_max = exact.errors(other, name)
            old = found.get(name, (np.zeros(1), np.zeros(1)))
            found[name] = np.maximum(old[0], FACTOR * e_rms), np.maximum(old[1], FACTOR * e_max)
    return {name: Allowed(rms, most) for name, (rms, most) in found.items()}


def _unconstrained(kernel: Kernel) -> Kernel:
    """The kernel without dtypes, ranges and facts: its arguments are float64 as they are."""
    inputs = (
        evolve(item, dtype=Dtype.F32, range=None) if _is_float(item.dtype) else item
        for item in kernel.inputs
    )
    states = (evolve(state, dtype=Dtype.F32) for state in kernel.states)
    return evolve(kernel, inputs=tuple(inputs), states=tuple(states), assumes=())


def _is_float(dtype: object) -> bool:
    return dtype.is_float if isinstance(dtype, Dtype) else True


def _moved(value: Any, rng: np.random.Generator, ulp: Callable[[np.dtype[Any]], float]) -> Any:
    """Move every float by one ulp, up or down."""
    if not isinstance(value, np.ndarray) or value.dtype.kind in "iub":
        return value
    return value.astype(np.float64) * (1 + ulp(value.dtype) * rng.choice((-1.0, 1.0), value.shape))
