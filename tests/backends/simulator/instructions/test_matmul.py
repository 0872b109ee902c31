"""Products, accumulation rules, tiling, modes, transposes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from backends.simulator.faults import Fault

RNG = np.random.default_rng(4)


def _normal(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return RNG.standard_normal(shape).astype(np.float32)


def test_product_of_3_by_2_and_3_by_2(bench: Any) -> None:
    dst = bench.empty((2, 2), memory="psum")
    stationary = bench.tile([[1, 2], [3, 4], [5, 6]])
    moving = bench.tile([[1, 0], [0, 1], [1, 1]])
    bench.run("nc_matmul", dst, stationary, moving)
    assert bench.read(dst).tolist() == [[6, 8], [8, 10]]


def test_bf16_operands_multiply_exactly_and_add_in_fp32(bench: Any) -> None:
    a, b = _normal(128, 16), _normal(128, 64)
    dst = bench.empty((16, 64), memory="psum")
    stationary, moving = bench.tile(a, "bfloat16"), bench.tile(b, "bfloat16")
    bench.run("nc_matmul", dst=dst, stationary=stationary, moving=moving, accumulate=False)
    expected = bench.read(stationary).astype(np.float64).T @ bench.read(moving)
    np.testing.assert_allclose(bench.read(dst), expected, rtol=1e-5, atol=1e-5)


def test_tf32_operands_are_rounded(bench: Any) -> None:
    value = np.float32(1 + 2.0**-12)
    dst = bench.empty((1, 1), memory="psum")
    operand = bench.tile([[value]], "tfloat32")
    bench.run("nc_matmul", dst, operand, operand)
    assert bench.read(dst)[0, 0] == 1.0


def test_free_axes_are_flattened(bench: Any) -> None:
    a, b = _normal(8, 2, 3), _normal(8, 4, 5)
    dst = bench.empty((6, 20), memory="psum")
    bench.run("nc_matmul", dst, bench.tile(a), bench.tile(b))
    np.testing.assert_allclose(
        bench.read(dst), a.reshape(8, 6).T @ b.reshape(8, 20), rtol=1e-5, atol=1e-5
    )


class TestAccumulation:
    """`accumulate` False, True and None against what was in PSUM before."""

    def setup_tiles(self, bench: Any) -> tuple[Any, Any, Any]:
        return bench.empty((1, 2), memory="psum"), bench.tile([[2.0]]), bench.tile([[3.0, 5.0]])

    def test_false_overwrites(self, bench: Any) -> None:
        dst, stationary, moving = self.setup_tiles(bench)
        for _ in range(2):
            bench.run("nc_matmul", dst, stationary, moving, accumulate=False)
        assert bench.read(dst).tolist() == [[6, 10]]

    def test_true_adds(self, bench: Any) -> None:
        dst, stationary, moving = self.setup_tiles(bench)
        bench.run("nc_matmul", dst, stationary, moving, accumulate=False)
        bench.run("nc_matmul", dst, stationary, moving, accumulate=True)
        assert bench.read(dst).tolist() == [[12, 20]]

    def test_none_overwrites_first_and_adds_then(self, bench: Any) -> None:
        dst, stationary, moving = self.setup_tiles(bench)
        for _ in range(3):
            bench.run("nc_matmul", dst, stationary, moving)
        assert bench.read(dst).tolist() == [[18, 30]]

    def test_none_decides_per_element(self, bench: Any) -> None:
        dst, stationary, moving = self.setup_tiles(bench)
        bench.run("nc_matmul", dst[:, 0:1], stationary, moving[:, 0:1])
        bench.run("nc_matmul", dst, stationary, moving)
        assert bench.read(dst).tolist() == [[12, 10]]

    def test_true_onto_nothing_is_a_fault(self, bench: Any) -> None:
        dst, stationary, moving = self.setup_tiles(bench)
        with pytest.raises(Fault) as fault:
            bench.run("nc_matmul", dst, stationary, moving, accumulate=True)
        assert fault.value.code == "S431"

    def test_true_onto_a_memset_is_a_fault_on_trn2(self, bench: Any) -> None:
        dst, stationary, moving = self.setup_tiles(bench)
        bench.run("memset", dst, 0.0)
        with pytest.raises(Fault) as fault:
            bench.run("nc_matmul", dst, stationary, moving, accumulate=True)
        assert fault.value.code == "S431"

    def test_true_onto_a_memset_adds_on_trn3(self, make_bench: Any) -> None:
        bench = make_bench("trn3")
        dst, stationary, moving = self.setup_tiles(bench)
        bench.run("memset", dst, 1.0)
        bench.run("nc_matmul", dst, stationary, moving, accumulate=True)
        assert bench.read(dst).tolist() == [[7, 11]]

    def test_zero_memset_then_none_is_silent(self, bench: Any) -> None:
        dst, stationary, moving = self.setup_tiles(bench)
        bench.run("memset", dst, 0.0)
        bench.run("nc_matmul", dst, stationary, moving)
        assert bench.read(dst).tolist() == [[6, 10]]
        assert not bench.machine.warnings

    def test_non_zero_preset_with_none_is_overwritten_with_a_warning(self, bench: Any) -> None:
        dst, stationary, moving = self.setup_tiles(bench)
        bench.run("memset", dst, 1.0)
        bench.run("nc_matmul", dst, stationary, moving)
        assert bench.read(dst).tolist() == [[6, 10]]
        assert [code for code, *_ in bench.machine.warnings] == ["S431"]

    def test_non_zero_preset_is_a_fault_on_request(self, make_bench: Any) -> None:
        bench = make_bench(accumulate_preset="fault")
        dst, stationary, moving = self.setup_tiles(bench)
        bench.run("memset", dst, 1.0)
        with pytest.raises(Fault, match="overwrites non-zero data"):
            bench.run("nc_matmul", dst, stationary, moving)

    def test_a_write_between_two_matmuls_of_a_group_is_reported(self, make_bench: Any) -> None:
        bench = make_bench(accumulate_after_write="fault")
        dst, stationary, moving = self.setup_tiles(bench)
        bench.run("nc_matmul", dst, stationary, moving, accumulate=False)
        bench.run("memset", dst, 0.0)
        with pytest.raises(Fault, match="another engine wrote"):
            bench.run("nc_matmul", dst, stationary, moving, accumulate=True)

    def test_the_trace_says_what_none_became(self, bench: Any) -> None:
        dst, stationary, moving = self.setup_tiles(bench)
        for _ in range(2):
            bench.run("nc_matmul", dst, stationary, moving)
        records = bench.machine.recorder.records
        assert [record.attributes["accumulate"] for record in records] == [False, True]
        assert ["dst" in [a.operand for a in record.reads] for record in records] == [False, True]


def test_bf16_destination_rounds_after_adding_on_trn3(make_bench: Any) -> None:
    bench = make_bench("trn3")
    dst = bench.empty((1, 1), "bfloat16", "psum")
    bench.run("nc_matmul", dst, bench.tile([[1.0]]), bench.tile([[1.0]]))
    bench.run("nc_matmul", dst, bench.tile([[1.0]]), bench.tile([[2.0**-9]]), accumulate=True)
    assert bench.read(dst)[0, 0] == 1.0


def test_double_row_contracts_two_rows_per_partition(bench: Any) -> None:
    a = RNG.integers(-3, 4, (128, 2, 16)).astype(np.float32)
    b = RNG.integers(-3, 4, (128, 2, 64)).astype(np.float32)
    dst = bench.empty((16, 64), memory="psum")
    bench.run(
        "nc_matmul",
        dst=dst,
        stationary=bench.tile(a, "float8_e4m3"),
        moving=bench.tile(b, "float8_e5m2"),
        perf_mode=bench.member("matmul_perf_mode", "double_row"),
    )
    np.testing.assert_array_equal(bench.read(dst), np.einsum("ptm,ptn->mn", a, b))


def test_column_tiles_write_their_own_partitions(bench: Any) -> None:
    a, b = _normal(64, 32), _normal(64, 8)
    dst = bench.empty((128, 8), memory="psum")
    for column in (0, 32, 64, 96):
        bench.run(
            "nc_matmul",
            dst=dst[column : column + 32],
            stationary=bench.tile(a * (column + 1)),
            moving=bench.tile(b),
            tile_position=(0, column),
            tile_size=(128, 32),
        )
    expected = np.concatenate([(a * (column + 1)).T @ b for column in (0, 32, 64, 96)])
    np.testing.assert_allclose(bench.read(dst), expected, rtol=1e-4, atol=1e-4)


def test_row_tile_takes_operands_of_its_rows(bench: Any) -> None:
    a, b = _normal(128, 16), _normal(128, 8)
    dst = bench.empty((16, 8), memory="psum")
    stationary, moving = bench.tile(a), bench.tile(b)
    bench.run(
        "nc_matmul",
        dst=dst,
        stationary=stationary[64:128],
        moving=moving[64:128],
        tile_position=(64, 0),
        tile_size=(64, 128),
    )
    np.testing.assert_allclose(bench.read(dst), a[64:].T @ b[64:], rtol=1e-5, atol=1e-5)


class TestTranspose:
    """`nc_transpose` on both engines, and the transpose mode of `nc_matmul`."""

    @pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int32"])
    def test_tensor_engine_moves_bits(self, bench: Any, dtype: str) -> None:
        data = bench.tile(_normal(128, 96) * 100, dtype)
        dst = bench.empty((96, 128), dtype, "psum")
        bench.run("nc_transpose", dst, data)
        np.testing.assert_array_equal(bench.read(dst), bench.read(data).T)
        assert bench.machine.recorder.records[-1].engine == "tensor"

    def test_vector_engine_into_sbuf(self, bench: Any) -> None:
        data = bench.tile(_normal(32, 32))
        dst = bench.empty((32, 32))
        bench.run("nc_transpose", dst, data)
        np.testing.assert_array_equal(bench.read(dst), bench.read(data).T)
        assert bench.machine.recorder.records[-1].engine == "vector"

    def test_nan_stays_where_it_is_on_trn2(self, bench: Any) -> None:
        dst = bench.empty((2, 2), memory="psum")
        bench.run("nc_transpose", dst, bench.tile([[np.nan, 1], [2, 3]]))
        np.testing.assert_array_equal(bench.read(dst), [[np.nan, 2], [1, 3]])

    def test_nan_spreads_on_trn1(self, make_bench: Any) -> None:
        bench = make_bench("trn1")
        dst = bench.empty((2, 2), memory="psum")
        bench.run("nc_transpose", dst, bench.tile([[np.nan, 1], [2, 3]]))
        np.testing.assert_array_equal(np.isnan(bench.read(dst)), [[True, True], [False, False]])

    def test_free_axes_are_flattened(self, bench: Any) -> None:
        data = bench.tile(_normal(16, 2, 8))
        dst = bench.empty((16, 16), memory="psum")
        bench.run("nc_transpose", dst, data)
        np.testing.assert_array_equal(bench.read(dst), bench.read(data).reshape(16, 16).T)

    def test_transpose_mode_keeps_the_operand_type(self, bench: Any) -> None:
        data = bench.tile(_normal(64, 32), "bfloat16")
        identity = bench.tile(np.eye(64), "bfloat16")
        dst = bench.empty((32, 64), "bfloat16", "psum")
        bench.run("nc_matmul", dst, data, identity, is_transpose=True)
        np.testing.assert_array_equal(bench.read(dst), bench.read(data).T)


def test_shape_only_knows_that_a_tile_was_written(make_bench: Any) -> None:
    bench = make_bench(shape_only=True)
    dst = bench.empty((1, 2), memory="psum")
    stationary, moving = bench.empty((1, 1)), bench.empty((1, 2))
    for _ in range(2):
        bench.run("nc_matmul", dst, stationary, moving)
    records = bench.machine.recorder.records
    assert [record.attributes["accumulate"] for record in records] == [False, True]
