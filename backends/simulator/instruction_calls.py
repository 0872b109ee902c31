"""`nki.isa` functions as callables: each hands its call to the instruction layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from backends.simulator.instructions.issue import issue
from backends.simulator.machine import current


def instruction(name: str) -> Callable[..., Any]:
    """Return the function `nki.isa.<name>`."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return issue(current(), name, args, kwargs)

    call.__name__ = call.__qualname__ = name
    return call
