"""States in pools of slots around a reference whose states are rows. Imports nothing of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arguments = Mapping[str, Any]
Outputs = dict[str, NDArray[Any]]
Reference = Callable[[Arguments], Outputs]


def pooled(plain: Reference, states: Mapping[str, str], out: str) -> Reference:
    """Return the kernel over pools, `states` by the name of the pool; `out` is its output.

    A row that names no slot is skipped; one without an initial state starts from zeros.
    """

    def run(a: Arguments) -> Outputs:
        pools = {pool: np.array(a[pool], float) for pool in states}
        outputs: Outputs = {}
        for b, (read, write) in enumerate(zip(a["read"], a["write"], strict=True)):
            row = {name: value for name, value in a.items() if name not in states}
            for name in _rows_of(a):
                row[name] = a[name][b : b + 1]
            for pool, state in states.items():
                N = len(a[pool])
                kept = 0 <= read < N and a["has_initial_state"][b]
                row[state] = a[pool][[read]] if kept else np.zeros_like(a[pool][:1])
            found = plain(row)
            if out not in outputs:
                outputs[out] = np.zeros((len(a["read"]), *found[out].shape[1:]))
            if not (0 <= read < N or 0 <= write < N):
                continue
            outputs[out][b] = found[out][0]
            if 0 <= write < N:
                for pool, state in states.items():
                    pools[pool][write] = found[state][0]
        return outputs | pools

    return run


def _rows_of(a: Arguments) -> tuple[str, ...]:
    """The arguments with a row for each entry of the batch."""
    per_row = ("query", "key", "value", "z", "a", "b", "f", "x", "hidden", "valid_len")
    return tuple(name for name in per_row if name in a)
