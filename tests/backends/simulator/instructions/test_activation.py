"""Fused scale, bias, row sums; ranges; trn3 forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from backends.simulator.faults import Fault

X = np.array([[0.0, 1.0], [2.0, -1.0]], dtype=np.float32)


class TestActivation:
    """`activation` and `activation_reduce`."""

    def test_order_is_scale_then_bias(self, bench: Any) -> None:
        dst = bench.empty(X.shape)
        bench.run(
            "activation",
            dst,
            bench.op("copy"),
            bench.tile(X),
            bias=bench.tile([[1.0], [-1.0]], "bfloat16"),
            scale=bench.tile([[2.0], [3.0]]),
        )
        assert bench.read(dst).tolist() == [[1, 3], [5, -4]]

    def test_scalar_bias_on_trn2_and_psum_operands(self, bench: Any) -> None:
        dst = bench.empty(X.shape, memory="psum")
        bench.run(
            "activation", dst, bench.op("exp"), bench.tile(X, memory="psum"), bias=0.5, scale=-1.0
        )
        np.testing.assert_allclose(bench.read(dst), np.exp(0.5 - X), rtol=1e-6)

    def test_row_sums_are_taken_before_rounding(self, bench: Any) -> None:
        dst, res = bench.empty((1, 2), "bfloat16"), bench.empty((1, 1))
        value = 1 + 2.0**-9
        bench.run(
            "activation_reduce",
            dst,
            bench.op("copy"),
            bench.tile([[value, value]]),
            bench.op("add"),
            res,
        )
        assert bench.read(res)[0, 0] == 2 * value
        assert bench.read(dst).tolist() == [[1, 1]]

    def test_commands_chain(self, bench: Any) -> None:
        dst, res = bench.empty((1, 2)), bench.empty((1, 1))
        data = bench.tile([[1.0, 2.0]])

        def run(command: str, result: Any = None) -> None:
            bench.run(
                "activation",
                dst,
                bench.op("copy"),
                data,
                reduce_op=bench.op("add"),
                reduce_res=result,
                reduce_cmd=bench.member("reduce_cmd", command),
            )

        run("reset_reduce")
        run("reduce")
        run("idle", res)
        assert bench.read(res)[0, 0] == 6
        run("reset", res)
        assert bench.read(res)[0, 0] == 0

    def test_reading_a_register_that_nothing_reset_is_a_fault(self, bench: Any) -> None:
        with pytest.raises(Fault) as fault:
            bench.run(
                "activation",
                bench.empty((1, 1)),
                bench.op("copy"),
                bench.tile([[1.0]]),
                reduce_op=bench.op("add"),
                reduce_res=bench.empty((1, 1)),
            )
        assert fault.value.code == "S434"

    def test_the_result_may_alias_the_destination(self, bench: Any) -> None:
        dst = bench.empty((1, 2))
        bench.run(
            "activation_reduce",
            dst,
            bench.op("copy"),
            bench.tile([[1.0, 2.0]]),
            bench.op("add"),
            dst[:, 0:1],
        )
        assert bench.read(dst)[0, 0] == 3

    def test_stride_0_destination_of_a_pure_reduction(self, bench: Any) -> None:
        dst, res = bench.empty((2, 1)), bench.empty((2, 1))
        bench.run(
            "activation_reduce",
            dst.ap([[1, 2], [0, 2]]),
            bench.op("square"),
            bench.tile(X),
            bench.op("add"),
            res,
        )
        assert bench.read(res).tolist() == [[1], [5]]

    def test_masked_scores_become_exact_zeros(self, bench: Any) -> None:
        dst = bench.empty((1, 2))
        bench.run("activation", dst, bench.op("exp"), bench.tile([[-np.inf, 0.0]]))
        assert bench.read(dst).tolist() == [[0, 1]]


class TestRange:
    """Inputs outside the valid range of a function."""

    @pytest.mark.parametrize("name", ["log", "sqrt", "rsqrt", "reciprocal"])
    def test_zero_is_outside_and_warned_about(self, bench: Any, name: str) -> None:
        bench.run("activation", bench.empty((1, 1)), bench.op(name), bench.tile([[0.0]]))
        assert [code for code, *_ in bench.machine.warnings] == ["S432"]

    @pytest.mark.parametrize(("name", "x"), [("log", 1e30), ("arctan", 2.0), ("reciprocal", 1e13)])
    def test_a_fault_on_request(self, make_bench: Any, name: str, x: float) -> None:
        bench = make_bench(activation_range="fault")
        with pytest.raises(Fault, match="outside its valid range") as fault:
            bench.run("activation", bench.empty((1, 1)), bench.op(name), bench.tile([[x]]))
        assert fault.value.code == "S432"

    def test_sine_is_extrapolated_as_documented(self, bench: Any) -> None:
        dst = bench.empty((1, 1))
        bench.run("activation", dst, bench.op("sin"), bench.tile([[9.0]]))
        assert abs(bench.read(dst)[0, 0] - 27.65) < 0.01

    def test_functions_valid_everywhere_never_warn(self, bench: Any) -> None:
        data = bench.tile([[-1e30, 0.0, 1e30]])
        for name in ("exp", "sigmoid", "silu", "softplus", "tanh"):
            bench.run("activation", bench.empty((1, 3)), bench.op(name), data)
        assert not bench.machine.warnings


class TestTrn3:
    """`activate2` and `exponential`."""

    @pytest.mark.parametrize(
        ("op0", "op1", "reverse0", "expected"),
        [
            ("multiply", "add", False, 3 * 2 + 5),
            ("multiply", "subtract", False, 3 * 2 - 5),
            ("multiply", "bypass", False, 3 * 2),
            ("subtract", "bypass", False, 3 - 2),
            ("subtract", "bypass", True, 2 - 3),
            ("bypass", "bypass", False, 3),
        ],
    )
    def test_activate2_stages(
        self, make_bench: Any, op0: str, op1: str, reverse0: bool, expected: float
    ) -> None:
        bench = make_bench("trn3")
        dst = bench.empty((1, 1))
        bench.run(
            "activate2",
            dst,
            bench.op("copy"),
            bench.tile([[3.0]]),
            2.0,
            5.0,
            bench.op(op0),
            bench.op(op1),
            reverse0=reverse0,
        )
        assert bench.read(dst)[0, 0] == expected

    def test_prelu(self, make_bench: Any) -> None:
        bench = make_bench("trn3")
        dst = bench.empty((1, 2))
        bench.run(
            "activate2",
            dst,
            bench.op("prelu"),
            bench.tile([[4.0, -4.0]]),
            0.0,
            0.0,
            bench.op("bypass"),
            bench.op("bypass"),
            relu_param=0.25,
        )
        assert bench.read(dst).tolist() == [[4, -1]]

    @pytest.mark.parametrize(
        ("name", "expected"),
        [("add", -1), ("maximum", 2), ("minimum", -3), ("abs_max", -3), ("abs_min", 0)],
    )
    def test_activate2_folds(self, make_bench: Any, name: str, expected: float) -> None:
        bench = make_bench("trn3")
        dst, res = bench.empty((1, 3)), bench.empty((1, 1))
        bench.run(
            "activate2",
            dst,
            bench.op("copy"),
            bench.tile([[2.0, -3.0, 0.0]]),
            0.0,
            0.0,
            bench.op("bypass"),
            bench.op("bypass"),
            reduce_op=bench.op(name),
            reduce_res=res,
            reduce_cmd=bench.member("reduce_cmd", "reset_reduce"),
        )
        assert bench.read(res)[0, 0] == expected

    def test_exponential_with_maximum_and_sum(self, make_bench: Any) -> None:
        bench = make_bench("trn3")
        dst, res = bench.empty(X.shape), bench.empty((2, 1))
        bench.run(
            "exponential",
            dst,
            bench.tile(X),
            bench.tile([[1.0], [2.0]]),
            res,
            bench.member("reduce_cmd", "load_reduce"),
            10.0,
        )
        expected = np.exp(X - np.array([[1.0], [2.0]], dtype=np.float32))
        np.testing.assert_allclose(bench.read(dst), expected, rtol=1e-6)
        np.testing.assert_allclose(bench.read(res), 10 + expected.sum(1, keepdims=True), rtol=1e-6)
