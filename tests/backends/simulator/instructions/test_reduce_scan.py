"""Reductions, scans, and the accumulator registers between calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from backends.simulator.faults import Fault

CUBE = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)


class TestTensorReduce:
    """`tensor_reduce`."""

    @pytest.mark.parametrize(
        ("axis", "shape", "expected"),
        [
            (2, (2, 3), CUBE.sum(2)),
            ((2,), (2, 3), CUBE.sum(2)),
            ((1, 2), (2, 1), CUBE.sum((1, 2))[:, None]),
            (-1, (2, 3), CUBE.sum(2)),
        ],
    )
    def test_axes(self, bench: Any, axis: Any, shape: tuple[int, ...], expected: Any) -> None:
        dst = bench.empty(shape)
        bench.run("tensor_reduce", dst, bench.op("add"), bench.tile(CUBE), axis)
        assert bench.read(dst).tolist() == expected.tolist()

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("multiply", 2 * -3 * 0.5),
            ("maximum", 2.0),
            ("minimum", -3.0),
            ("subtract", 2 + 3 - 0.5),
            ("logical_and", 1.0),
            ("logical_or", 1.0),
            ("logical_xor", 1.0),
        ],
    )
    def test_operators(self, bench: Any, name: str, expected: float) -> None:
        dst = bench.empty((1, 1))
        bench.run("tensor_reduce", dst, bench.op(name), bench.tile([[2.0, -3.0, 0.5]]), 1)
        assert bench.read(dst)[0, 0] == expected

    def test_negate_and_names_max(self, bench: Any) -> None:
        dst = bench.empty((1, 1))
        bench.run("tensor_reduce", dst, bench.op("max"), bench.tile([[2.0, 5.0]]), 1, negate=True)
        assert bench.read(dst)[0, 0] == -5

    def test_bits(self, bench: Any) -> None:
        dst = bench.empty((1, 1), "uint8")
        data = bench.tile([[1, 4, 16]], "uint8")
        bench.run("tensor_reduce", dst, bench.op("bitwise_or"), data, 1)
        assert bench.read(dst)[0, 0] == 21

    def test_a_permuted_view_reduces_the_other_axis(self, bench: Any) -> None:
        dst = bench.empty((2, 4))
        view = bench.tile(CUBE).permute((0, 2, 1))
        bench.run("tensor_reduce", dst, bench.op("add"), view, 2)
        assert bench.read(dst).tolist() == CUBE.sum(1).tolist()

    def test_sum_of_bf16_is_not_rounded_on_the_way(self, bench: Any) -> None:
        dst = bench.empty((1, 1))
        data = bench.tile(np.full((1, 1000), 1.0), "bfloat16")
        bench.run("tensor_reduce", dst, bench.op("add"), data, 1)
        assert bench.read(dst)[0, 0] == 1000


def test_a_sum_does_not_depend_on_rows_or_layout(bench: Any) -> None:
    data = np.random.default_rng(5).standard_normal((4, 300)).astype(np.float32)
    sums = []
    for tile in (
        bench.tile(data),
        bench.tile(data[:1]),
        bench.tile(np.repeat(data, 2, axis=1))[:, ::2],
        bench.tile(data.reshape(4, 3, 100).transpose(0, 2, 1)).permute((0, 2, 1)),
    ):
        dst = bench.empty((tile.partitions, 1))
        axes = tuple(range(1, tile.ndim))
        bench.run("tensor_reduce", dst, bench.op("add"), tile, axes)
        sums.append(float(bench.read(dst)[0, 0]))
    assert len(set(sums)) == 1


@pytest.mark.parametrize(
    ("name", "expected"), [("add", [[5, 7]]), ("average", [[2.5, 3.5]]), ("maximum", [[4, 5]])]
)
def test_partition_reduce(bench: Any, name: str, expected: list[list[float]]) -> None:
    dst = bench.empty((1, 2))
    bench.run("tensor_partition_reduce", dst, bench.op(name), bench.tile([[1.0, 2.0], [4.0, 5.0]]))
    assert bench.read(dst).tolist() == expected


def test_partition_reduce_of_bits(bench: Any) -> None:
    dst = bench.empty((1, 1), "int32")
    bench.run(
        "tensor_partition_reduce", dst, bench.op("bitwise_and"), bench.tile([[6], [3]], "int32")
    )
    assert bench.read(dst).tolist() == [[2]]


class TestScalarReduce:
    """`tensor_scalar_reduce`: the value, the fold, the chain."""

    def _run(self, bench: Any, data: list[list[float]], **kwargs: Any) -> tuple[Any, Any]:
        dst, res = bench.empty((1, len(data[0]))), bench.empty((1, 1))
        bench.run(
            "tensor_scalar_reduce",
            dst,
            bench.tile(data),
            bench.op("multiply"),
            2.0,
            bench.op("add"),
            res,
            **kwargs,
        )
        return bench.read(dst).tolist(), bench.read(res)[0, 0]

    def test_value_and_sum(self, bench: Any) -> None:
        assert self._run(bench, [[1.0, 2.0]]) == ([[2, 4]], 6)

    def test_reduce_continues(self, bench: Any) -> None:
        self._run(bench, [[1.0, 2.0]])
        command = bench.member("reduce_cmd", "reduce")
        assert self._run(bench, [[10.0]], reduce_cmd=command)[1] == 26

    def test_load_starts_from_the_given_value(self, bench: Any) -> None:
        command = bench.member("reduce_cmd", "load_reduce")
        assert self._run(bench, [[1.0]], reduce_cmd=command, reduce_init=100.0)[1] == 102

    def test_negation_touches_only_the_result(self, bench: Any) -> None:
        assert self._run(bench, [[1.0]], reduce_res_negate=True)[1] == -2
        command = bench.member("reduce_cmd", "reduce")
        assert self._run(bench, [[1.0]], reduce_cmd=command)[1] == 4

    def test_no_result_keeps_the_sum_in_the_engine(self, bench: Any) -> None:
        dst = bench.empty((1, 1))
        bench.run(
            "tensor_scalar_reduce",
            dst,
            bench.tile([[3.0]]),
            bench.op("add"),
            1.0,
            bench.op("maximum"),
        )
        command = bench.member("reduce_cmd", "reduce")
        assert self._run(bench, [[1.0]], reduce_cmd=command)[1] == 6

    def test_the_fold_sees_the_value_before_rounding(self, bench: Any) -> None:
        dst, res = bench.empty((1, 2), "bfloat16"), bench.empty((1, 1))
        bench.run(
            "tensor_scalar_reduce",
            dst,
            bench.tile([[1.0, 1.0]]),
            bench.op("add"),
            2.0**-9,
            bench.op("add"),
            res,
        )
        assert bench.read(res)[0, 0] == 2 + 2.0**-8


class TestCumulative:
    """`tensor_scalar_cumulative`."""

    def test_prefix_sum_and_chain(self, bench: Any) -> None:
        args = {"op0": bench.op("multiply"), "op1": bench.op("add"), "imm0": 1.0}
        dst = bench.empty((1, 3))
        bench.run("tensor_scalar_cumulative", dst, bench.tile([[1.0, 2.0, 3.0]]), **args)
        assert bench.read(dst).tolist() == [[1, 3, 6]]
        bench.run(
            "tensor_scalar_cumulative",
            dst,
            bench.tile([[1.0, 1.0, 1.0]]),
            **args,
            reduce_cmd=bench.member("reduce_cmd", "reduce"),
        )
        assert bench.read(dst).tolist() == [[7, 8, 9]]

    def test_subtract_is_new_minus_running(self, bench: Any) -> None:
        dst = bench.empty((1, 3))
        bench.run(
            "tensor_scalar_cumulative",
            dst,
            bench.tile([[1.0, 5.0, 2.0]]),
            bench.op("add"),
            bench.op("subtract"),
            0.0,
        )
        assert bench.read(dst).tolist() == [[1, 4, -2]]

    @pytest.mark.parametrize(
        ("name", "expected"),
        [("maximum", [[1, 5, 5]]), ("minimum", [[1, 1, 1]]), ("multiply", [[1, 5, 10]])],
    )
    def test_other_folds(self, bench: Any, name: str, expected: list[list[float]]) -> None:
        dst = bench.empty((1, 3))
        bench.run(
            "tensor_scalar_cumulative",
            dst,
            bench.tile([[1.0, 5.0, 2.0]]),
            bench.op("add"),
            bench.op(name),
            0.0,
        )
        assert bench.read(dst).tolist() == expected

    def test_load_starts_from_imm1(self, bench: Any) -> None:
        dst = bench.empty((2, 1))
        bench.run(
            "tensor_scalar_cumulative",
            dst,
            bench.tile([[1.0], [2.0]]),
            bench.op("multiply"),
            bench.op("add"),
            2.0,
            bench.tile([[10.0], [20.0]]),
            reduce_cmd=bench.member("reduce_cmd", "load_reduce"),
        )
        assert bench.read(dst).tolist() == [[12], [24]]


class TestScan:
    """`tensor_tensor_scan`."""

    def test_gated_recurrence(self, bench: Any) -> None:
        decay, value = [[0.5, 0.5, 2.0]], [[1.0, 2.0, 3.0]]
        dst = bench.empty((1, 3))
        bench.run(
            "tensor_tensor_scan",
            dst,
            bench.tile(decay),
            bench.tile(value),
            4.0,
            bench.op("multiply"),
            bench.op("add"),
        )
        assert bench.read(dst).tolist() == [[3, 3.5, 10]]

    def test_initial_column(self, bench: Any) -> None:
        ones = bench.tile(np.ones((2, 2)))
        dst = bench.empty((2, 2))
        bench.run(
            "tensor_tensor_scan",
            dst,
            ones,
            ones,
            bench.tile([[10.0], [20.0]]),
            bench.op("multiply"),
            bench.op("add"),
        )
        assert bench.read(dst).tolist() == [[11, 12], [21, 22]]

    @pytest.mark.parametrize(
        ("reverse0", "reverse1", "expected"),
        [
            # x = 5, state = 2, y = 10: op0 and op1 both subtract.
            (False, False, (5 - 2) - 10),
            (True, False, (2 - 5) - 10),
            (False, True, 10 - (5 - 2)),
            (True, True, 10 - (2 - 5)),
        ],
    )
    def test_reverse(self, bench: Any, reverse0: bool, reverse1: bool, expected: float) -> None:
        dst = bench.empty((1, 1))
        bench.run(
            "tensor_tensor_scan",
            dst,
            bench.tile([[5.0]]),
            bench.tile([[10.0]]),
            2.0,
            bench.op("subtract"),
            bench.op("subtract"),
            reverse0,
            reverse1,
        )
        assert bench.read(dst)[0, 0] == expected

    def test_the_state_is_fp32_whatever_the_destination(self, bench: Any) -> None:
        dst = bench.empty((1, 256), "bfloat16")
        ones = bench.tile(np.ones((1, 256)), "bfloat16")
        bench.run(
            "tensor_tensor_scan",
            dst,
            ones,
            bench.tile(np.full((1, 256), 2.0**-9)),
            1.0,
            bench.op("multiply"),
            bench.op("add"),
        )
        assert bench.read(dst)[0, -1] == 1.5


def test_accumulators_are_kept_per_partition(bench: Any) -> None:
    dst, res = bench.empty((64, 1)), bench.empty((64, 1))
    data = bench.tile(np.arange(64.0).reshape(64, 1))
    for rows, command in ((slice(0, 32), "reset_reduce"), (slice(32, 64), "reset_reduce")):
        bench.run(
            "tensor_scalar_reduce",
            dst[rows],
            data[rows],
            bench.op("add"),
            0.0,
            bench.op("add"),
            reduce_cmd=bench.member("reduce_cmd", command),
        )
    bench.run(
        "tensor_scalar_reduce",
        dst,
        data,
        bench.op("multiply"),
        0.0,
        bench.op("add"),
        res,
        reduce_cmd=bench.member("reduce_cmd", "reduce"),
    )
    assert bench.read(res).reshape(-1).tolist() == list(range(64))


def test_commands_that_an_instruction_does_not_take(bench: Any) -> None:
    with pytest.raises(Fault) as fault:
        bench.run(
            "tensor_scalar_reduce",
            bench.empty((1, 1)),
            bench.tile([[1.0]]),
            bench.op("add"),
            0.0,
            bench.op("add"),
            reduce_cmd=bench.member("reduce_cmd", "idle"),
        )
    assert fault.value.code == "S322"
