"""A chunked plan computes what the interpreter says, for random rules, shapes and cuts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.interpreter import RUNNER
from gdsl.algorithm.choose import choose
from gdsl.algorithm.evaluate_plan import evaluate
from gdsl.algorithm.schedule_keys import Value
from gdsl.canonical.canonicalize import canonicalize
from gdsl.errors import CompileError
from gdsl.runner import RunOptions

# No chunk form: a decay along the written axis.
WITHOUT = frozenset({"decay: value"})


def test_chunked_plans_equal_the_interpreter(
    cases: st.SearchStrategy[Any],
    all_switches: frozenset[str],
    error: Callable[..., float],
) -> None:
    drawn: set[str] = set()

    @settings(max_examples=100, deadline=None, derandomize=True, database=None)
    @given(cases, st.sampled_from((16, 32, 64)), st.sampled_from(("schur", "neumann")))
    def check(case: Any, chunk: int, inverse: str) -> None:
        kernel, arguments = case.built()
        canonical = canonicalize(kernel)
        asked: dict[str, Value] = {"chunk": chunk, "inverse": inverse}
        if WITHOUT & case.recurrence.drawn:
            assert choose(canonical, {}).form == "recurrent"
            with pytest.raises(CompileError, match="`chunk` has no effect"):
                choose(canonical, asked)
            return
        plan = choose(canonical, asked)
        assert plan.form == "chunked", plan.why
        drawn.update(case.recurrence.drawn)
        reference = RUNNER.run(kernel, arguments, RunOptions("float64"))
        assert error(evaluate(plan, arguments), reference) < 1e-10

    check()
    assert drawn == all_switches - WITHOUT
