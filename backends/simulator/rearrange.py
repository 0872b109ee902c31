"""`NkiTensor.rearrange`: from patterns of names to a split, a permutation and a merge."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from backends.simulator.faults import Fault
from backends.simulator.geometry import Ints


def _groups(pattern: tuple[Any, ...]) -> list[tuple[str, ...]]:
    """Return every entry of a pattern as a tuple of names."""
    return [(entry,) if isinstance(entry, str) else tuple(entry) for entry in pattern]


def rearrange_steps(
    shape: Ints, source: tuple[Any, ...], target: tuple[Any, ...], fixed: Mapping[str, int]
) -> tuple[Ints, Ints, Ints]:
    """Return the split shape, the order of its dimensions and the merged shape.

    `(("b", ("h", "w")), ("b", "w", "h"), {"h": 4})` on `(128, 24)` gives `(128, 4, 6)`,
    `(0, 2, 1)` and `(128, 6, 4)`. Raises Fault S214.
    """
    groups = _groups(source)
    if len(groups) != len(shape):
        raise Fault(
            "S214", f"`rearrange` names {len(groups)} dimensions of a tensor of {len(shape)}"
        )
    sizes: dict[str, int] = {}
    names: list[str] = []
    for names_here, size in zip(groups, shape, strict=True):
        unknown = [name for name in names_here if name not in fixed]
        known = prod(fixed[name] for name in names_here if name in fixed)
        if len(unknown) > 1 or known == 0 or size % known or (not unknown and known != size):
            raise Fault(
                "S214",
                f"`rearrange` cannot split {size} into {list(names_here)}",
                values={"fixed_sizes": dict(fixed)},
                help="give all but one size of every group in `fixed_sizes`",
            )
        for name in names_here:
            sizes[name] = fixed.get(name, size // known)
            names.append(name)
    wanted = _groups(target)
    order = [name for group in wanted for name in group]
    if len(set(names)) != len(names) or sorted(order) != sorted(names):
        raise Fault("S214", f"`rearrange` from {source} to {target} does not use every name once")
    return (
        tuple(sizes[name] for name in names),
        tuple(names.index(name) for name in order),
        tuple(prod(sizes[name] for name in group) for group in wanted),
    )
