"""The two kinds of parameter sweeps that tests of an nki-library checkout declare.

Their own expansion lives in a conftest that also talks to devices, so it is not used; which rows
are valid is still asked of the tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

_SWEEP_FIXTURE = "range_test_options"
_COVERAGE_OPTIONS = frozenset(
    {
        "coverage",
        "filter",
        "enable_automatic_boundary_tests",
        "enable_invalid_combination_tests",
        "n_tests_per_boundary_value",
        "max_invalid_tests",
    }
)
_COVERAGE_TURNS = 2000


def expand(metafunc: pytest.Metafunc, cases: int) -> None:
    """Parametrise a test function that declares a sweep, with up to `cases` rows of a product."""
    if _SWEEP_FIXTURE in metafunc.fixturenames:
        from test.utils.ranged_test_harness import (  # type: ignore[import-not-found]
            RangeTestHarness,
        )

        sweep = RangeTestHarness(metafunc.function.range_test_config)
        names, options = sweep.get_unique_test_cases()
        metafunc.parametrize(_SWEEP_FIXTURE, options, ids=names)
    elif marker := metafunc.definition.get_closest_marker("coverage_parametrize"):
        names, rows = _coverage_rows(marker.kwargs, cases)
        metafunc.parametrize(names, rows)


def _coverage_rows(
    options: Mapping[str, Any], count: int
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return argument names and up to `count` valid rows in which the values take turns."""
    lists = {
        name: list(getattr(values, "values", values))
        for name, values in options.items()
        if name not in _COVERAGE_OPTIONS
    }
    accepts = options.get("filter") or (lambda **_: True)
    rows: list[tuple[Any, ...]] = []
    for turn in range(_COVERAGE_TURNS):
        row = {
            name: values[(turn + turn // len(values) * place) % len(values)]
            for place, (name, values) in enumerate(lists.items())
        }
        verdict = accepts(**row)
        valid = getattr(verdict, "value", "valid" if verdict else "invalid") == "valid"
        if valid and (values := (*row.values(), False)) not in rows:
            rows.append(values)
        if len(rows) == count:
            break
    return [*lists, "is_negative_test_case"], rows
