"""The metric, with numbers worked out by hand."""

import ml_dtypes
import numpy as np
import pytest

from gdsl.ir.dtypes import Dtype
from gdsl.verification.judge import Allowed, group_scale, grouped, judge, storage_rounding

AXES = ("B", "T", "H", "V")


def allowed(groups: int, rms: float, largest: float | None) -> Allowed:
    return Allowed(np.full(groups, rms), None if largest is None else np.full(groups, largest))


def test_groups_are_batch_and_head_whatever_their_place() -> None:
    x = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    found = grouped(x, AXES, ("B", "H"))
    assert found.shape == (8, 15)
    np.testing.assert_array_equal(found[1].reshape(3, 5), x[0, :, 1, :])


def test_the_scale_of_a_small_head_is_a_hundredth_of_all() -> None:
    reference = np.array([[1.0, 1.0], [1e-9, 1e-9]])
    np.testing.assert_allclose(group_scale(reference), [1.0, 0.01 * np.sqrt(0.5)])


def test_errors_and_the_worst_place() -> None:
    reference = np.ones((1, 2, 2, 3))
    x = reference.copy()
    x[0, 1, 1, 2] += 0.3
    verdict = judge("out", AXES, ("B", "H"), x, reference, allowed(2, 0.1, 0.2), Dtype.F32)
    assert verdict.e_max == pytest.approx(0.3)
    assert verdict.e_rms == pytest.approx(np.sqrt(0.09 / 6))
    assert dict(verdict.at) == {"B": 0, "T": 1, "H": 1, "V": 2}
    assert (verdict.value, verdict.expected) == (1.3, 1.0)
    assert not verdict.ok


@pytest.mark.parametrize(("rms", "largest", "ok"), [(0.2, 0.4, True), (0.1, 0.4, False)])
def test_both_bounds_bind(rms: float, largest: float, ok: bool) -> None:
    reference = np.ones((1, 1, 1, 4))
    x = reference + np.array([0.3, 0, 0, 0])
    verdict = judge("out", AXES, ("B", "H"), x, reference, allowed(1, rms, largest), Dtype.F32)
    assert verdict.ok is ok


def test_an_error_in_one_head_is_not_hidden_by_the_others() -> None:
    reference = np.concatenate([np.full((1, 1, 1, 8), 100.0), np.ones((1, 1, 1, 8))], axis=2)
    x = reference.copy()
    x[0, 0, 1] += 0.5
    bound = allowed(2, 0.02, 0.02)
    assert not judge("out", AXES, ("B", "H"), x, reference, bound, Dtype.F32).ok
    assert judge("out", AXES, ("B",), x, reference, allowed(1, 0.02, 0.02), Dtype.F32).ok


def test_a_bf16_output_may_be_off_by_half_an_ulp_and_no_more() -> None:
    rng = np.random.default_rng(0)
    reference = rng.standard_normal((1, 50, 2, 64)) * np.exp(rng.standard_normal((1, 50, 2, 64)))
    stored = reference.astype(ml_dtypes.bfloat16)
    tight = allowed(2, 1e-9, 1e-9)
    assert judge("out", AXES, ("B", "H"), stored, reference, tight, Dtype.BF16).ok
    assert not judge("out", AXES, ("B", "H"), stored, reference, tight, Dtype.F32).ok
    truncated = (reference.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)
    assert not judge("out", AXES, ("B", "H"), truncated, reference, tight, Dtype.BF16).ok


def test_storage_rounding_is_half_the_distance_to_the_next_number() -> None:
    values = np.array([1.0, 1.5, 3.0, 1e-3, 100.0])
    for dtype, normal in ((Dtype.BF16, 2.0**-126), (Dtype.F16, 2.0**-14)):
        exact = values.astype(dtype.numpy).astype(np.float64)
        step = np.nextafter(exact.astype(dtype.numpy), np.array(1e4, dtype.numpy))
        wanted = (step.astype(float) - exact) / 2 + normal
        np.testing.assert_array_equal(storage_rounding(exact, dtype), wanted)


@pytest.mark.parametrize("dtype", [Dtype.F32, Dtype.BF16])
def test_what_no_float_holds_may_be_flushed_and_what_one_holds_may_not(dtype: Dtype) -> None:
    zero = np.zeros((1, 1, 1, 4))
    tight = allowed(1, 3e-6, 3e-5)
    for size, ok in ((1e-49, True), (1e-39, True), (1e-36, False), (1e-30, False)):
        verdict = judge("out", AXES, ("B", "H"), zero, zero + size, tight, dtype)
        assert verdict.ok is ok, size


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_never_passes(bad: float) -> None:
    reference = np.ones((1, 1, 1, 4))
    x = reference.copy()
    x[0, 0, 0, 2] = bad
    for largest in (None, 1e9):
        bound = allowed(1, 1e9, largest)
        verdict = judge("out", AXES, ("B", "H"), x, reference, bound, Dtype.F32)
        assert not verdict.ok
        assert verdict.at["V"] == 2


def test_equal_nan_in_both_agrees() -> None:
    """An unread pool slot keeps its poison, bit for bit."""
    reference = np.array([[[[1.0, np.nan, np.inf]]]])
    assert judge("out", AXES, ("B",), reference, reference, allowed(1, 0, 0), Dtype.F32).ok


def test_an_empty_output_agrees() -> None:
    empty = np.zeros((1, 0, 2, 3))
    assert judge("out", AXES, ("B", "H"), empty, empty, allowed(2, 0, 0), Dtype.F32).ok
