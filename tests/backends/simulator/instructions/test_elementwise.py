"""Arithmetic stages, engines, integers and bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from backends.simulator.faults import Fault

X = np.array([[1.0, -2.0, 3.5], [4.0, 0.0, -6.0]], dtype=np.float32)
Y = np.array([[0.5, 2.0, -1.0], [4.0, 1.0, 2.0]], dtype=np.float32)
COLUMN = np.array([[10.0], [100.0]], dtype=np.float32)


def _engine(bench: Any) -> str:
    return str(bench.machine.recorder.records[-1].engine)


class TestTensorTensor:
    """`tensor_tensor`: operand order, engines, integers, bits."""

    def test_data1_is_the_left_operand(self, bench: Any) -> None:
        dst = bench.empty(X.shape)
        bench.run("tensor_tensor", dst, bench.tile(X), bench.tile(Y), bench.op("subtract"))
        assert bench.read(dst).tolist() == (X - Y).tolist()
        assert _engine(bench) == "vector"

    @pytest.mark.parametrize(("op", "engine"), [("add", "gpsimd"), ("power", "unknown")])
    def test_the_memory_that_an_engine_cannot_reach_is_named(
        self, bench: Any, op: str, engine: str
    ) -> None:
        member, psum = bench.member("engine", engine), bench.tile(X, memory="psum")
        with pytest.raises(Fault, match="gpsimd needs `data1` in sbuf, it is in psum"):
            bench.run(
                "tensor_tensor", bench.empty(X.shape), psum, bench.tile(Y), bench.op(op), member
            )

    def test_result_is_rounded_once_to_the_destination(self, bench: Any) -> None:
        dst = bench.empty((1, 1), "bfloat16")
        one, small = bench.tile([[1.0]], "bfloat16"), bench.tile([[2.0**-9]], "bfloat16")
        bench.run("tensor_tensor", dst, one, small, bench.op("add"))
        assert bench.read(dst)[0, 0] == 1.0

    def test_one_input_in_psum(self, bench: Any) -> None:
        dst = bench.empty(X.shape, memory="psum")
        bench.run(
            "tensor_tensor", dst, bench.tile(X, memory="psum"), bench.tile(Y), bench.op("maximum")
        )
        assert bench.read(dst).tolist() == np.maximum(X, Y).tolist()

    def test_comparison_gives_one_and_zero_in_the_destination_type(self, bench: Any) -> None:
        dst = bench.empty(X.shape, "uint8")
        bench.run("tensor_tensor", dst, bench.tile(X), bench.tile(Y), bench.op("greater"))
        assert bench.read(dst).tolist() == [[1, 0, 1], [0, 0, 0]]

    def test_power_runs_on_gpsimd(self, bench: Any) -> None:
        dst = bench.empty((1, 2))
        bench.run(
            "tensor_tensor",
            dst,
            bench.tile([[2.0, 9.0]]),
            bench.tile([[3.0, 0.5]]),
            bench.op("power"),
        )
        assert bench.read(dst).tolist() == [[8.0, 3.0]]
        assert _engine(bench) == "gpsimd"

    def test_int32_is_exact_and_wraps_on_gpsimd(self, bench: Any) -> None:
        big = np.array([[2**24 + 1, 2**31 - 1]], dtype=np.int32)
        dst = bench.empty((1, 2), "int32")
        bench.run(
            "tensor_tensor",
            dst,
            bench.tile(big, "int32"),
            bench.tile([[1, 1]], "int32"),
            bench.op("add"),
        )
        assert bench.read(dst).tolist() == [[2**24 + 2, -(2**31)]]
        assert _engine(bench) == "gpsimd"

    def test_int32_goes_through_fp32_on_vector(self, bench: Any) -> None:
        dst = bench.empty((1, 1), "int32")
        bench.run(
            "tensor_tensor",
            dst,
            bench.tile([[2**24 + 1]], "int32"),
            bench.tile([[0]], "int32"),
            bench.op("add"),
            engine=bench.member("engine", "vector"),
        )
        assert bench.read(dst).tolist() == [[2**24]]

    def test_int32_in_psum_falls_back_to_vector(self, bench: Any) -> None:
        dst = bench.empty((1, 1), "int32")
        bench.run(
            "tensor_tensor",
            dst,
            bench.tile([[3]], "int32", "psum"),
            bench.tile([[4]], "int32"),
            bench.op("multiply"),
        )
        assert bench.read(dst).tolist() == [[12]]
        assert _engine(bench) == "vector"

    @pytest.mark.parametrize("dtype", ["uint8", "int16", "uint32", "int32"])
    def test_bit_operators_keep_bits(self, bench: Any, dtype: str) -> None:
        dst = bench.empty((1, 2), dtype)
        bench.run(
            "tensor_tensor",
            dst,
            bench.tile([[12, 10]], dtype),
            bench.tile([[10, 6]], dtype),
            bench.op("bitwise_xor"),
        )
        assert bench.read(dst).tolist() == [[6, 12]]

    def test_in_place(self, bench: Any) -> None:
        tile = bench.tile(X)
        bench.run("tensor_tensor", tile, tile, tile, bench.op("multiply"))
        assert bench.read(tile).tolist() == (X * X).tolist()

    def test_free_broadcast_by_stride_0(self, bench: Any) -> None:
        column = bench.tile(COLUMN)
        wide = column.broadcast(1, 3)
        dst = bench.empty(X.shape)
        bench.run("tensor_tensor", dst, bench.tile(X), wide, bench.op("add"))
        assert bench.read(dst).tolist() == (X + COLUMN).tolist()

    def test_shapes_may_differ_when_counts_agree(self, bench: Any) -> None:
        dst = bench.empty((2, 2, 3))
        flat, cube = np.arange(12.0).reshape(2, 6), np.ones((2, 3, 2))
        bench.run("tensor_tensor", dst, bench.tile(flat), bench.tile(cube), bench.op("add"))
        assert bench.read(dst).reshape(2, 6).tolist() == (flat + 1).tolist()


class TestTensorScalar:
    """`tensor_scalar`: two stages, reversal, columns, unary operators, engines."""

    @pytest.mark.parametrize(
        ("reverse0", "reverse1", "expected"),
        [
            (False, False, (X - 2) - COLUMN),
            (True, False, (2 - X) - COLUMN),
            (False, True, COLUMN - (X - 2)),
            (True, True, COLUMN - (2 - X)),
        ],
    )
    def test_stages(self, bench: Any, reverse0: bool, reverse1: bool, expected: Any) -> None:
        dst = bench.empty(X.shape)
        bench.run(
            "tensor_scalar",
            dst=dst,
            data=bench.tile(X),
            op0=bench.op("subtract"),
            operand0=2.0,
            reverse0=reverse0,
            op1=bench.op("subtract"),
            operand1=bench.tile(COLUMN),
            reverse1=reverse1,
        )
        assert bench.read(dst).tolist() == expected.tolist()

    def test_fp32_between_the_stages(self, bench: Any) -> None:
        dst = bench.empty((1, 1), "bfloat16")
        bench.run(
            "tensor_scalar",
            dst,
            bench.tile([[1.0]], "bfloat16"),
            bench.op("add"),
            2.0**-9,
            op1=bench.op("multiply"),
            operand1=512.0,
        )
        assert bench.read(dst)[0, 0] == 512.0 + 0.0  # 513 rounds to 512 in bf16
        exact = bench.empty((1, 1))
        bench.run(
            "tensor_scalar",
            exact,
            bench.tile([[1.0]], "bfloat16"),
            bench.op("add"),
            2.0**-9,
            op1=bench.op("multiply"),
            operand1=512.0,
        )
        assert bench.read(exact)[0, 0] == 513.0

    def test_rsqrt_runs_on_gpsimd(self, bench: Any) -> None:
        dst = bench.empty((1, 2))
        bench.run("tensor_scalar", dst, bench.tile([[4.0, 0.25]]), bench.op("rsqrt"), 0.0)
        assert bench.read(dst).tolist() == [[0.5, 2.0]]
        assert _engine(bench) == "gpsimd"

    def test_abs_ignores_its_operand(self, bench: Any) -> None:
        dst = bench.empty(X.shape)
        bench.run("tensor_scalar", dst, bench.tile(X), bench.op("abs"), None)
        assert bench.read(dst).tolist() == np.abs(X).tolist()

    def test_scalar_engine_multiplies_and_adds_on_trn2(self, bench: Any) -> None:
        dst = bench.empty(X.shape)
        bench.run(
            "tensor_scalar",
            dst,
            bench.tile(X),
            bench.op("multiply"),
            2.0,
            op1=bench.op("add"),
            operand1=1.0,
            engine=bench.member("engine", "scalar"),
        )
        assert bench.read(dst).tolist() == (X * 2 + 1).tolist()
        assert _engine(bench) == "scalar"

    def test_bits_with_an_unsigned_mask_on_a_signed_tile(self, bench: Any) -> None:
        dst = bench.empty((1, 2), "int32")
        bench.run(
            "tensor_scalar",
            dst,
            bench.tile([[-1, 6]], "int32"),
            bench.op("bitwise_and"),
            0xFFFFFFF0,
            op1=bench.op("right_shift"),
            operand1=4,
        )
        assert bench.read(dst).tolist() == [[0x0FFFFFFF, 0]]

    def test_invert(self, bench: Any) -> None:
        dst = bench.empty((1, 2), "uint8")
        bench.run("tensor_scalar", dst, bench.tile([[0, 15]], "uint8"), bench.op("invert"), None)
        assert bench.read(dst).tolist() == [[255, 240]]

    @pytest.mark.parametrize(("name", "expected"), [("square", X * X), ("relu", np.maximum(X, 0))])
    def test_unary_operators_of_trn3(self, make_bench: Any, name: str, expected: Any) -> None:
        bench = make_bench("trn3")
        dst = bench.empty(X.shape)
        bench.run("tensor_scalar", dst, bench.tile(X), bench.op(name), 0)
        assert bench.read(dst).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("reverse0", "reverse1", "expected"),
    [
        (False, False, (X - COLUMN) - Y),
        (True, False, (COLUMN - X) - Y),
        (False, True, Y - (X - COLUMN)),
        (True, True, Y - (COLUMN - X)),
    ],
)
def test_scalar_tensor_tensor(bench: Any, reverse0: bool, reverse1: bool, expected: Any) -> None:
    dst = bench.empty(X.shape)
    bench.run(
        "scalar_tensor_tensor",
        dst,
        bench.tile(X),
        bench.op("subtract"),
        bench.tile(COLUMN),
        bench.op("subtract"),
        bench.tile(Y, memory="psum"),
        reverse0,
        reverse1,
    )
    assert bench.read(dst).tolist() == expected.tolist()


def test_reciprocal_also_of_zero(bench: Any) -> None:
    dst = bench.empty((1, 3))
    bench.run("reciprocal", dst, bench.tile([[4.0, -0.5, 0.0]]))
    assert bench.read(dst).tolist() == [[0.25, -2.0, np.inf]]
