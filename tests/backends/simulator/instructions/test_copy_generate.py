"""Copies, predicated copies, constants and ramps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from backends.simulator.faults import Fault


class TestCopy:
    """`tensor_copy`: bits for equal types, fp32 otherwise."""

    def test_equal_types_copy_bits(self, bench: Any) -> None:
        src = bench.empty((1, 2), "bfloat16")
        src.store(np.array([[0x7FC1, 0x3F80]], dtype=np.uint16).view(src.dtype.numpy))
        dst = bench.empty((1, 2), "bfloat16")
        bench.run("tensor_copy", dst, src)
        assert dst.load().view(np.uint16).tolist() == [[0x7FC1, 0x3F80]]

    def test_large_int32_survives_a_plain_copy_and_not_a_cast(self, bench: Any) -> None:
        src = bench.tile([[2**24 + 1]], "int32")
        same, other = bench.empty((1, 1), "int32"), bench.empty((1, 1), "uint32")
        bench.run("tensor_copy", same, src)
        bench.run("tensor_copy", other, src)
        assert (bench.read(same)[0, 0], bench.read(other)[0, 0]) == (2**24 + 1, 2**24)

    @pytest.mark.parametrize(
        ("engine", "runs_on"), [("unknown", "vector"), ("scalar", "scalar"), ("gpsimd", "gpsimd")]
    )
    def test_engines(self, bench: Any, engine: str, runs_on: str) -> None:
        src, dst = bench.tile([[1.5, 2.5]]), bench.empty((1, 2), "int32")
        bench.run("tensor_copy", dst, src, engine=bench.member("engine", engine))
        assert bench.read(dst).tolist() == [[2, 2]]
        assert bench.machine.recorder.records[-1].engine == runs_on

    def test_quadrants_may_differ(self, bench: Any) -> None:
        src, dst = bench.tile(np.arange(128.0).reshape(128, 1)), bench.empty((128, 1))
        bench.run("tensor_copy", dst[0:32], src[96:128])
        assert bench.read(dst[0:32]).reshape(-1).tolist() == list(range(96, 128))

    def test_in_place_with_overlap_reads_before_it_writes(self, bench: Any) -> None:
        tile = bench.tile([[0.0, 1.0, 2.0, 3.0]])
        bench.run("tensor_copy", tile[:, 1:4], tile[:, 0:3])
        assert bench.read(tile).tolist() == [[0, 0, 1, 2]]

    def test_stride_0_destination_keeps_the_last(self, bench: Any) -> None:
        dst = bench.empty((2, 1))
        bench.run("tensor_copy", dst.broadcast(1, 3), bench.tile([[1.0, 2.0, 3.0]] * 2))
        assert bench.read(dst).tolist() == [[3.0], [3.0]]


class TestPredicated:
    """`tensor_copy_predicated`: where, reversed, a number as source."""

    @pytest.mark.parametrize(
        ("reverse", "expected"), [(False, [[1, 20, 3]]), (True, [[10, 2, 30]])]
    )
    def test_tile(self, bench: Any, reverse: bool, expected: list[list[float]]) -> None:
        dst = bench.tile([[10.0, 20.0, 30.0]])
        predicate = bench.tile([[1, 0, 7]], "uint8")
        bench.run(
            "tensor_copy_predicated",
            dst,
            bench.tile([[1.0, 2.0, 3.0]]),
            predicate,
            reverse_pred=reverse,
        )
        assert bench.read(dst).tolist() == expected

    def test_number(self, bench: Any) -> None:
        dst = bench.tile([[10.0, 20.0]], "bfloat16")
        bench.run("tensor_copy_predicated", dst, -1.0, bench.tile([[0, 1]], "uint32"))
        assert bench.read(dst).tolist() == [[10.0, -1.0]]

    def test_ranks_may_differ(self, bench: Any) -> None:
        dst = bench.tile(np.zeros((1, 2, 2)))
        bench.run(
            "tensor_copy_predicated",
            dst,
            bench.tile(np.ones((1, 4))),
            bench.tile([[1, 0, 0, 1]], "uint16"),
        )
        assert bench.read(dst).reshape(-1).tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize(
    ("dtype", "value"), [("float32", 1.5), ("bfloat16", 3), ("int32", -7), ("uint8", 255)]
)
def test_memset(bench: Any, dtype: str, value: float) -> None:
    dst = bench.empty((4, 2, 3), dtype)
    bench.run("memset", dst, value)
    assert np.unique(bench.read(dst)).tolist() == [value]


def test_a_checked_call_does_not_stand_for_one_with_another_constant(bench: Any) -> None:
    """Calls that passed the rules are remembered; 0, 0.0 and False are different constants."""
    dst = bench.empty((1, 1), "int32")
    bench.run("memset", dst, 0)
    with pytest.raises(Fault) as fault:
        bench.run("memset", dst, 0.0)
    assert fault.value.code == "S326"


def test_a_checked_call_does_not_stand_for_one_on_other_partitions(bench: Any) -> None:
    tile = bench.empty((64, 1))
    bench.run("memset", tile[32:64], 0.0)
    with pytest.raises(Fault) as fault:
        bench.run("memset", tile[16:48], 0.0)
    assert fault.value.code == "S310"


class TestIota:
    """`iota`: pattern, offset, channel."""

    def test_one_axis(self, bench: Any) -> None:
        dst = bench.empty((3, 4), "int32")
        bench.run("iota", dst, pattern=[[2, 4]], offset=10, channel_multiplier=100)
        expected = [[10 + 100 * c + 2 * i for i in range(4)] for c in range(3)]
        assert bench.read(dst).tolist() == expected

    def test_two_axes_outermost_first(self, bench: Any) -> None:
        dst = bench.empty((1, 6))
        bench.run("iota", dst, pattern=((10, 2), (1, 3)))
        assert bench.read(dst).tolist() == [[0, 1, 2, 10, 11, 12]]

    def test_channels_count_from_the_first_partition_of_the_tile(self, bench: Any) -> None:
        dst = bench.empty((64, 1), "int32")
        bench.run("iota", dst[32:64], pattern=[[0, 1]], channel_multiplier=1)
        assert bench.read(dst[32:64]).reshape(-1).tolist() == list(range(32))

    def test_wide_values_are_exact_in_int32_and_rounded_in_bf16(self, bench: Any) -> None:
        exact, rounded = bench.empty((1, 1), "int32"), bench.empty((1, 1), "bfloat16")
        for dst in (exact, rounded):
            bench.run("iota", dst, pattern=[[1, 1]], offset=2**24 + 1)
        assert bench.read(exact)[0, 0] == 2**24 + 1
        assert bench.read(rounded)[0, 0] == 2**24
