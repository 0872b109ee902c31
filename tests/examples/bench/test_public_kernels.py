"""The driver for public kernels: outcomes, comparison, references."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from examples.bench.public_kernels.case import Case, run_cases
from examples.bench.public_kernels.cases import CASES
from examples.bench.public_kernels.references import delta_rule, softplus, unit
from examples.bench.public_kernels.report import Row, relative_error, summary, table
from examples.bench.public_kernels.settings import Settings

KERNEL = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0={factor})
    nl.store(out, t)
    return out
"""


@pytest.mark.parametrize(
    ("factor", "outcome"),
    [("2.0", "ok"), ("2.1", "differs"), ("x", "refused"), ("1 / 0", "refused")],
)
def test_outcomes(tmp_path: Path, factor: str, outcome: str) -> None:
    folder = tmp_path / "repo" / "src"
    folder.mkdir(parents=True)
    (folder / "double.py").write_text(KERNEL.format(factor=factor), encoding="utf-8")
    case = Case(
        "src/double.py",
        "double",
        "2x3",
        lambda r: {"x": r.standard_normal((2, 3)).astype(np.float32)},
        lambda x: (2 * x["x"].astype(np.float64),),
        rtol=1e-3,
        atol=0.0,
    )
    (row,) = run_cases((case,), tmp_path, Settings())
    assert (row.kernel, row.outcome) == ("double:double", outcome)
    assert run_cases((case,), tmp_path, Settings("other")) == []
    assert run_cases((case,), tmp_path / "repo" / "src", Settings()) == []


def test_relative_error_is_a_fraction_of_what_is_allowed() -> None:
    reference = np.array([0.0, 2.0, -4.0])
    assert relative_error(np.array([0.0, 2.1, -4.0]), reference, 0.01, 0.01) == pytest.approx(2.0)
    assert relative_error(reference, reference, 0.0, 0.0) == 0.0
    assert relative_error(reference[:2], reference, 1.0, 1.0) == np.inf
    assert relative_error(np.array([np.nan]), np.array([1.0]), 1.0, 1.0) == np.inf
    assert relative_error(np.array([np.nan, 1.0]), np.array([np.nan, 1.0]), 0.0, 0.1) == 0.0
    assert relative_error(np.array([np.inf]), np.array([-np.inf]), 1.0, 1.0) == np.inf


def test_delta_rule_of_orthogonal_keys_is_a_table() -> None:
    k = np.eye(4)
    v = np.arange(12.0).reshape(4, 3)
    out, states = delta_rule(k, k, v, np.zeros(4), np.ones(4), np.zeros((4, 3)))
    assert (out == v).all()
    assert (states[-1] == v).all()
    out, states = delta_rule(k, k, v, np.full(4, np.log(0.5)), np.ones(4), np.zeros((4, 3)))
    assert np.allclose(states[-1], v * 0.5 ** np.arange(3, -1, -1)[:, None])


def test_small_functions() -> None:
    assert softplus(np.array([1000.0, -1000.0])).tolist() == [1000.0, 0.0]
    assert np.allclose(np.linalg.norm(unit(np.ones((2, 5)), 0.0), axis=1), 1)


def test_cases_are_named_once_and_take_what_they_make() -> None:
    names = [(case.file, case.kernel, case.case, case.target) for case in CASES]
    assert len(set(names)) == len(names)


def test_table_and_summary_count_kernels() -> None:
    rows = [Row("a:k", "1", "trn2", 1, "ok", 0.5, 10, 1.0), Row("b:k", "1", "trn2", 1, "refused")]
    assert "2 runs: 1 ok, 1 refused; kernels within tolerance: 1" in summary(rows)
    assert len(table(rows).splitlines()) == 3
