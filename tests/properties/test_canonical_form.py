"""The canonical form means what the interpreter says, for random rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from backends.interpreter import RUNNER
from gdsl.canonical.build import Builder
from gdsl.canonical.canonicalize import canonicalize
from gdsl.canonical.evaluate import run_tokens
from gdsl.canonical.evaluate_kernel import FLOAT64, evaluate_kernel
from gdsl.canonical.rewrites import PASSES
from gdsl.canonical.verify import broken_invariants
from gdsl.runner import RunOptions


def evaluate(canonical: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    forms = {run.state_out: form for run, form in canonical.runs}
    return evaluate_kernel(
        canonical.kernel,
        arguments,
        lambda run, given, values, scope: run_tokens(run, forms[run.state_out], given, scope),
        FLOAT64,
    )


def test_the_canonical_form_equals_the_interpreter(
    cases: st.SearchStrategy[Any],
    all_switches: frozenset[str],
    error: Callable[..., float],
) -> None:
    drawn: set[str] = set()

    @settings(max_examples=100, deadline=None, derandomize=True, database=None)
    @given(cases)
    def check(case: Any) -> None:
        drawn.update(case.recurrence.drawn)
        kernel, arguments = case.built()
        canonical = canonicalize(kernel)
        builder = Builder(tuple(axis.name for axis in kernel.axes))
        for run, form in canonical.runs:
            assert broken_invariants(run, form) == ()
            for rewrite in PASSES:
                assert broken_invariants(run, rewrite(form, builder)) == ()
        reference = RUNNER.run(kernel, arguments, RunOptions("float64"))
        assert error(evaluate(canonical, arguments), reference) < 1e-12

    check()
    assert drawn == all_switches
