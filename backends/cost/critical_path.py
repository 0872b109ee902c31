"""The chain of instructions that sets the end: each started when the one before let it go."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from backends.cost.core import Placed


@frozen
class Link:
    """One instruction of the chain."""

    at: int
    nanoseconds: float
    """From when it was let go until it let the next one go. All links sum up to the end."""
    reason: str
    """What it waited for; empty for the first."""


def critical_path(placed: Sequence[Placed]) -> tuple[Link, ...]:
    """Return the chain that ends with the last result, first instruction first.

    A barrier ends the chain of its core: what the partner did before it stands in the partner's.
    """
    if not placed:
        return ()
    at: int | None = max(
        range(len(placed)), key=lambda index: max(placed[index].visible, placed[index].release)
    )
    assert at is not None
    until = max(placed[at].visible, placed[at].release)
    links = []
    while at is not None:
        here = placed[at]
        links.append(Link(at, until - here.entered, here.reason))
        until = here.entered
        at = here.cause
    if until > 0:
        # Nothing before it explains the wait (a barrier): it counts for the first link.
        first = links[-1]
        links[-1] = Link(first.at, first.nanoseconds + until, first.reason)
    return tuple(reversed(links))
