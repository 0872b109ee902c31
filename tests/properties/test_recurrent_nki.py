"""Random rules token by token: emitted, simulated and compared with the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from backends.interpreter import RUNNER
from gdsl import api
from gdsl.errors import CompileError
from gdsl.runner import RunOptions

RECURRENT = {"form": "recurrent"}


def _single(value: Any) -> Any:
    return np.asarray(value, np.float32) if np.asarray(value).dtype == np.float64 else value


def test_the_emitted_kernel_equals_the_interpreter(
    cases: st.SearchStrategy[Any],
    all_switches: frozenset[str],
    error: Callable[..., float],
) -> None:
    """Every switch is emitted; what is refused is refused for the one reason there is."""
    emitted: set[str] = set()

    @settings(
        max_examples=60, deadline=None, derandomize=True, database=None, phases=(Phase.generate,)
    )
    @given(cases)
    def check(case: Any) -> None:
        recurrence = case.recurrence
        kernel, arguments = case.built()
        # Without a written value only the state tells the size of the value axis.
        optional = "" if recurrence.write == "none" else " or zeros"
        definition = api.loads(recurrence.text.replace(" or zeros", optional))
        if recurrence.steps == "several" and recurrence.emit == "before with bonus":
            with pytest.raises(CompileError, match="beside sub-steps"):
                _ = api.compile(definition, target="trn2", settings=RECURRENT).text
            return
        program = api.compile(definition, target="trn2", settings=RECURRENT)
        emitted.update(recurrence.drawn)
        single = {name: _single(value) for name, value in arguments.items()}
        reference = RUNNER.run(kernel, single, RunOptions("float64"))
        assert error(program.run(single), reference) < 2e-5

    check()
    assert emitted == all_switches


KEYS = ((2, 3), (2, 129), (2, 256), (3, 300))
"""Tiles of keys, and how many keys there are."""


def test_keys_on_several_tiles(cases: st.SearchStrategy[Any], error: Callable[..., float]) -> None:
    """The same with more keys than partitions."""
    drawn: set[tuple[int, int]] = set()

    @settings(
        max_examples=10, deadline=None, derandomize=True, database=None, phases=(Phase.generate,)
    )
    @given(cases, st.sampled_from(KEYS))
    def check(case: Any, keys: tuple[int, int]) -> None:
        recurrence, (tiles, size) = case.recurrence, keys
        if recurrence.steps == "several" and recurrence.emit == "before with bonus":
            return
        sizes = {**dict(case.sizes), recurrence.axes[0]: size, "T": 2}
        kernel, arguments = evolve(case, sizes=tuple(sizes.items()), every=1).built()
        optional = "" if recurrence.write == "none" else " or zeros"
        definition = api.loads(recurrence.text.replace(" or zeros", optional))
        chosen: dict[str, str | int | float | bool] = {**RECURRENT, "key_tiles": tiles}
        program = api.compile(definition, target="trn2", settings=chosen)
        single = {name: _single(value) for name, value in arguments.items()}
        reference = RUNNER.run(kernel, single, RunOptions("float64"))
        assert error(program.run(single), reference) < 2e-5
        drawn.add(keys)

    check()
    assert drawn == set(KEYS)
