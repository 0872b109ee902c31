"""Movement across partitions and by index."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from backends.simulator.faults import Fault

RNG = np.random.default_rng(7)
ROWS = np.arange(128.0, dtype=np.float32).reshape(128, 1)


class TestShuffle:
    """`nc_stream_shuffle`."""

    def test_one_partition_to_a_quadrant(self, bench: Any) -> None:
        src, dst = bench.tile(ROWS), bench.empty((128, 1))
        bench.run("nc_stream_shuffle", dst[64:96], src[0:1], [0] * 32)
        assert (bench.read(dst[64:96]) == 0).all()

    def test_row_one_to_row_zero(self, bench: Any) -> None:
        tile = bench.tile(ROWS[:2])
        bench.run("nc_stream_shuffle", tile, tile, [1] * 32)
        assert bench.read(tile).reshape(-1).tolist() == [1, 1]

    def test_same_mask_in_every_quadrant(self, bench: Any) -> None:
        mask = [int(i) for i in RNG.permutation(32)]
        dst = bench.empty((128, 1))
        bench.run("nc_stream_shuffle", dst, bench.tile(ROWS), mask)
        expected = [32 * q + m for q in range(4) for m in mask]
        assert bench.read(dst).reshape(-1).tolist() == expected

    def test_255_keeps_the_row(self, bench: Any) -> None:
        dst = bench.tile(np.full((32, 1), -1.0))
        bench.run("nc_stream_shuffle", dst, bench.tile(ROWS[:32]), [255] * 31 + [0])
        assert bench.read(dst).reshape(-1).tolist() == [-1.0] * 31 + [0.0]
        record = bench.machine.recorder.records[-1]
        assert "dst" in [access.operand for access in record.reads]

    def test_without_255_the_destination_is_not_read(self, bench: Any) -> None:
        bench.run("nc_stream_shuffle", bench.empty((32, 1)), bench.tile(ROWS[:32]), [0] * 32)
        record = bench.machine.recorder.records[-1]
        assert [access.operand for access in record.reads] == ["src"]


class TestGather:
    """`local_gather` and `nc_n_gather`."""

    @pytest.mark.parametrize("width", [1, 2, 4])
    def test_local(self, bench: Any, width: int) -> None:
        data = RNG.standard_normal((32, 24)).astype(np.float32)
        index = RNG.integers(0, 24 // width, (32, 2)) * width
        dst = bench.empty((32, 32 * width))
        bench.run(
            "local_gather",
            dst,
            bench.tile(data),
            bench.tile(index, "uint16"),
            num_elem_per_idx=width,
            num_valid_indices=32,
        )
        found = bench.read(dst)
        for p in range(32):
            group = index[p // 16 * 16 : p // 16 * 16 + 16]
            starts = [group[i % 16, i // 16] for i in range(32)]
            expected = [data[p, s + e] for s in starts for e in range(width)]
            assert found[p].tolist() == expected

    def test_local_takes_only_the_valid_indices(self, bench: Any) -> None:
        data = RNG.standard_normal((16, 8)).astype(np.float32)
        index = RNG.integers(0, 8, (16, 1))
        dst = bench.empty((16, 3))
        bench.run("local_gather", dst, bench.tile(data), bench.tile(index, "uint16"), 1, 3)
        assert bench.read(dst).tolist() == data[:, index[:3, 0]].tolist()

    def test_n_gather(self, bench: Any) -> None:
        data = RNG.standard_normal((4, 3, 2)).astype(np.float32)
        index = RNG.integers(0, 6, (4, 5))
        dst = bench.empty((4, 5))
        bench.run("nc_n_gather", dst, bench.tile(data), bench.tile(index, "uint32"))
        expected = np.take_along_axis(data.reshape(4, 6), index, axis=1)
        assert bench.read(dst).tolist() == expected.tolist()

    @pytest.mark.parametrize("name", ["local_gather", "nc_n_gather"])
    def test_index_outside_the_data(self, bench: Any, name: str) -> None:
        data = bench.tile(np.zeros((16, 4)))
        index = bench.tile(np.full((16, 1), 4), "uint16" if name == "local_gather" else "uint32")
        columns = 16 if name == "local_gather" else 1
        with pytest.raises(Fault) as fault:
            bench.run(name, bench.empty((16, columns)), data, index)
        assert fault.value.code == "S433"
