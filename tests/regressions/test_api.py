"""What a call may pass: misspelt options, forms of beta."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gdsl.errors import RunError

BETA = """
kernel beta:
    axes N
    dtypes X in bf16, f32
    input logit: X[N]
    output beta: f32[N] = sigmoid(logit)
    output negative_eigenvalues: f32[N] = 2 * sigmoid(logit)
    output rounded: X[N] = sigmoid(logit)
"""


def test_b61_an_unknown_argument_is_an_error_that_lists_the_known(run: Callable[..., Any]) -> None:
    with pytest.raises(RunError) as error:
        run(BETA, logit=[1.0], logits=[2.0])
    (found,) = error.value.diagnostics
    assert found.code == "E0703"
    assert "did you mean `logit`" in found.message
    assert found.help is not None
    assert "`logit`" in found.help


def test_b61_logits_and_betas_are_different_texts(run: Callable[..., Any]) -> None:
    outputs = run(BETA, logit=[1.0])
    assert outputs["beta"][0] == pytest.approx(0.7310586, abs=1e-7)
    assert outputs["negative_eigenvalues"][0] == pytest.approx(1.4621172, abs=1e-7)


def test_b44_a_dtype_is_converted_or_refused_never_reinterpreted(run: Callable[..., Any]) -> None:
    wide = run(BETA, "declared", logit=np.ones(1, np.float32))
    narrow = run(BETA, "declared", logit=np.ones(1, ml_dtypes.bfloat16))
    assert wide["rounded"].dtype == np.float32
    assert narrow["rounded"].dtype == ml_dtypes.bfloat16
    assert wide["beta"][0] == narrow["beta"][0]
    with pytest.raises(RunError) as error:
        run(BETA, "declared", logit=np.ones(1, np.float16))
    assert error.value.diagnostics[0].code == "E0705"
    assert "`logit` is f16" in error.value.diagnostics[0].message


def test_b44_outputs_are_fresh_memory(run: Callable[..., Any]) -> None:
    logit = np.ones(3, np.float32)
    first = run(BETA, "declared", logit=logit)
    second = run(BETA, "declared", logit=logit)
    assert not np.shares_memory(first["rounded"], second["rounded"])
    assert not np.shares_memory(first["rounded"], logit)


def test_b45_strided_views_are_read_by_their_strides(run: Callable[..., Any]) -> None:
    packed = np.arange(12, dtype=np.float32)
    view = packed[1::3]
    copy = run(BETA, "declared", logit=view.copy())
    np.testing.assert_array_equal(run(BETA, "declared", logit=view)["beta"], copy["beta"])
