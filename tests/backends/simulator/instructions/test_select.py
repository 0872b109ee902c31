"""Selection by ramp, range and predicate, with the running maximum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from backends.simulator.faults import Fault

FP32_MIN = float(np.finfo(np.float32).min)


class TestAffine:
    """`affine_select`."""

    def test_causal(self, bench: Any) -> None:
        data = np.arange(16.0).reshape(4, 4) + 1
        dst = bench.empty((4, 4))
        bench.run(
            "affine_select",
            dst=dst,
            pattern=[[-1, 4]],
            channel_multiplier=1,
            on_true_tile=bench.tile(data),
            on_false_value=0.0,
            cmp_op=bench.op("greater_equal"),
        )
        assert bench.read(dst).tolist() == np.tril(data).tolist()

    def test_default_is_equality_with_offset(self, bench: Any) -> None:
        dst = bench.empty((2, 3), "bfloat16")
        bench.run("affine_select", dst, [[1, 3]], -1, bench.tile(np.ones((2, 3))), -5.0, offset=-1)
        assert bench.read(dst).tolist() == [[-5, 1, -5], [-5, -5, 1]]

    @pytest.mark.parametrize(
        ("comparison", "expected"),
        [
            ("less", [[1, 0, 0]]),
            ("less_equal", [[1, 1, 0]]),
            ("greater", [[0, 0, 1]]),
            ("not_equal", [[1, 0, 1]]),
        ],
    )
    def test_comparisons(self, bench: Any, comparison: str, expected: list[list[int]]) -> None:
        dst = bench.empty((1, 3))
        bench.run(
            "affine_select",
            dst,
            [[1, 3]],
            0,
            bench.tile([[1.0, 1.0, 1.0]]),
            0.0,
            cmp_op=bench.op(comparison),
            offset=-1,
        )
        assert bench.read(dst).tolist() == expected

    def test_minus_infinity_may_fill(self, bench: Any) -> None:
        dst = bench.empty((1, 2), "bfloat16")
        bench.run("affine_select", dst, [[1, 2]], 0, bench.tile([[1.0, 1.0]]), FP32_MIN)
        assert bench.read(dst).tolist() == [[1.0, -np.inf]]


class TestRange:
    """`range_select`."""

    def _run(self, bench: Any, **kwargs: Any) -> tuple[Any, Any]:
        dst, res = bench.empty((2, 4)), bench.empty((2, 1))
        bench.run(
            "range_select",
            dst=dst,
            on_true_tile=bench.tile([[5.0, 6.0, 7.0, 8.0], [1.0, 2.0, 3.0, 4.0]]),
            comp_op0=bench.op("greater_equal"),
            comp_op1=bench.op("less"),
            bound0=bench.tile([[1.0], [0.0]]),
            bound1=bench.tile([[3.0], [1.0]]),
            reduce_res=res,
            **kwargs,
        )
        return bench.read(dst), bench.read(res)

    def test_bounds_per_partition_and_maximum(self, bench: Any) -> None:
        dst, res = self._run(bench)
        low = np.float32(FP32_MIN)
        np.testing.assert_array_equal(dst, [[low, 6, 7, low], [1, low, low, low]])
        assert res.tolist() == [[7.0], [1.0]]

    def test_start_shifts_the_index(self, bench: Any) -> None:
        dst, _ = self._run(bench, range_start=-1)
        low = np.float32(FP32_MIN)
        np.testing.assert_array_equal(dst, [[low, low, 7, 8], [low, 2, low, low]])

    def test_reduce_continues_the_maximum(self, bench: Any) -> None:
        self._run(bench)
        _, res = self._run(bench, range_start=100, reduce_cmd=bench.member("reduce_cmd", "reduce"))
        assert res.tolist() == [[7.0], [1.0]]


class TestSelectReduce:
    """`select_reduce`."""

    def test_selection_without_reduction(self, bench: Any) -> None:
        dst = bench.empty((1, 3))
        bench.run(
            "select_reduce",
            dst,
            bench.tile([[1, 0, 2]], "uint8"),
            bench.tile([[1.0, 2.0, 3.0]]),
            -1.0,
        )
        assert bench.read(dst).tolist() == [[1, -1, 3]]

    def test_reversed_with_column_and_maximum(self, bench: Any) -> None:
        dst, res = bench.empty((1, 3)), bench.empty((1, 1))
        bench.run(
            "select_reduce",
            dst=dst,
            predicate=bench.tile([[1, 0, 2]], "int16"),
            on_true=bench.tile([[1.0, 2.0, 3.0]]),
            on_false=bench.tile([[-4.0]]),
            reduce_res=res,
            reduce_cmd=bench.member("reduce_cmd", "reset_reduce"),
            reverse_pred=True,
        )
        assert bench.read(dst).tolist() == [[-4, 2, -4]]
        assert bench.read(res).tolist() == [[2]]

    def test_idle_with_a_result_needs_an_earlier_reset(self, bench: Any) -> None:
        with pytest.raises(Fault) as fault:
            bench.run(
                "select_reduce",
                bench.empty((1, 1)),
                bench.tile([[1]], "uint8"),
                bench.tile([[1.0]]),
                0.0,
                bench.empty((1, 1)),
            )
        assert fault.value.code == "S434"


class TestDropout:
    """`dropout`: only the certain probabilities have a meaning here."""

    @pytest.mark.parametrize(("prob", "expected"), [(0.0, [[1, 2]]), (1.0, [[0, 0]])])
    def test_certain(self, bench: Any, prob: float, expected: list[list[float]]) -> None:
        dst = bench.empty((1, 2), "bfloat16")
        bench.run("dropout", dst, bench.tile([[1.0, 2.0]], "bfloat16"), prob)
        assert bench.read(dst).tolist() == expected

    def test_per_partition(self, bench: Any) -> None:
        dst = bench.empty((2, 1))
        bench.run("dropout", dst, bench.tile([[1.0], [2.0]]), bench.tile([[1.0], [0.0]]))
        assert bench.read(dst).tolist() == [[0], [2]]

    def test_uncertain_is_not_simulated(self, bench: Any) -> None:
        with pytest.raises(Fault, match="undocumented random stream") as fault:
            bench.run("dropout", bench.empty((1, 1)), bench.tile([[1.0]]), 0.5)
        assert fault.value.code == "S109"
