"""The nearest known name, for messages."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name closest to `name`, or None when nothing is close."""
    matches = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean `x`?" to append to a message, or nothing."""
    match = nearest(name, known)
    return f"; did you mean `{match}`?" if match else ""
