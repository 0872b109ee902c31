"""DMA copies, casts, patterns, gathers and scatters, transposes, additions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from backends.simulator.faults import Fault

TABLE = np.arange(20.0, dtype=np.float32).reshape(5, 4)


class TestCopy:
    """`dma_copy` without run-time addresses."""

    def test_shapes_may_differ_when_counts_agree(self, bench: Any) -> None:
        dst = bench.empty((10, 2))
        bench.run("dma_copy", dst, bench.tile(TABLE, memory="hbm"))
        assert bench.read(dst).reshape(-1).tolist() == list(range(20))

    @pytest.mark.parametrize(
        ("source", "target"), [("hbm", "hbm"), ("sbuf", "hbm"), ("sbuf", "sbuf")]
    )
    def test_directions(self, bench: Any, source: str, target: str) -> None:
        dst = bench.empty((5, 4), memory=target)
        bench.run("dma_copy", dst, bench.tile(TABLE, memory=source))
        assert bench.read(dst).tolist() == TABLE.tolist()

    def test_casts_on_the_way(self, bench: Any) -> None:
        dst = bench.empty((1, 3), "bfloat16")
        bench.run("dma_copy", dst, bench.tile([[1.0, 1 + 2.0**-9, -2.5]], memory="hbm"))
        assert bench.read(dst).tolist() == [[1, 1, -2.5]]
        integers = bench.empty((1, 3), "int32")
        bench.run("dma_copy", integers, bench.tile([[0.5, 1.5, 2.5]], memory="hbm"))
        assert bench.read(integers).tolist() == [[0, 2, 2]]

    def test_hbm_row_broadcast_over_partitions(self, bench: Any) -> None:
        row = bench.tile(TABLE[:1], memory="hbm")
        dst = bench.empty((128, 4))
        bench.run("dma_copy", dst, row.ap([[0, 128], [1, 4]]))
        assert bench.read(dst).tolist() == np.tile(TABLE[:1], (128, 1)).tolist()

    def test_state_pattern_gathers_heads_side_by_side(self, bench: Any) -> None:
        state = np.arange(2 * 3 * 4.0).reshape(2, 3, 4)
        dst = bench.empty((3, 8))
        pattern = [[4, 3], [12, 2], [1, 4]]
        bench.run("dma_copy", dst, bench.tile(state, memory="hbm").ap(pattern))
        assert bench.read(dst).tolist() == state.transpose(1, 0, 2).reshape(3, 8).tolist()

    def test_any_start_partition(self, bench: Any) -> None:
        dst = bench.tile(np.zeros((8, 4)))
        bench.run("dma_copy", dst[5:7], bench.tile(TABLE[:2], memory="hbm"))
        assert bench.read(dst)[5:7].tolist() == TABLE[:2].tolist()


class TestRunTimeAddresses:
    """Rows and offsets found when the DMA executes."""

    def test_gather_rows(self, bench: Any) -> None:
        index = bench.tile([[3], [0], [3]], "int32")
        src = bench.tile(TABLE, memory="hbm").ap(
            [[4, 3], [1, 4]], vector_offset=index, indirect_dim=0
        )
        dst = bench.empty((3, 4))
        bench.run("dma_copy", dst, src)
        assert bench.read(dst).tolist() == TABLE[[3, 0, 3]].tolist()
        assert bench.machine.recorder.records[-1].attributes["indirect"] is True

    def test_scatter_rows(self, bench: Any) -> None:
        index = bench.tile([[4], [1]], "uint32")
        table = bench.tile(np.zeros((5, 4)), memory="hbm")
        dst = table.ap([[4, 2], [1, 4]], vector_offset=index, indirect_dim=0)
        bench.run("dma_copy", dst, bench.tile(TABLE[:2]))
        expected = np.zeros((5, 4))
        expected[[4, 1]] = TABLE[:2]
        assert bench.read(table).tolist() == expected.tolist()

    @pytest.mark.parametrize("bad", [5, -1])
    def test_out_of_range_is_a_fault(self, bench: Any, bad: int) -> None:
        index = bench.tile([[0], [bad]], "int32")
        src = bench.tile(TABLE, memory="hbm").ap([[4, 2], [1, 4]], vector_offset=index)
        with pytest.raises(Fault) as fault:
            bench.run("dma_copy", bench.empty((2, 4)), src)
        assert fault.value.code == "S402"

    def test_out_of_range_rows_are_skipped_on_request(self, bench: Any) -> None:
        index = bench.tile([[0], [7]], "int32")
        src = bench.tile(TABLE, memory="hbm").ap([[4, 2], [1, 4]], vector_offset=index)
        dst = bench.tile(np.full((2, 4), -1.0))
        bench.run("dma_copy", dst, src, oob_mode=bench.member("oob_mode", "skip"))
        assert bench.read(dst).tolist() == [TABLE[0].tolist(), [-1.0] * 4]

    def test_skipped_rows_of_a_scatter_leave_the_table(self, bench: Any) -> None:
        index = bench.tile([[9], [1]], "int32")
        table = bench.tile(np.zeros((5, 4)), memory="hbm")
        dst = table.ap([[4, 2], [1, 4]], vector_offset=index)
        bench.run("dma_copy", dst, bench.tile(TABLE[:2]), oob_mode=bench.member("oob_mode", "skip"))
        assert bench.read(table).sum() == TABLE[1].sum()

    def test_scalar_offset(self, bench: Any) -> None:
        slot = bench.tile([[2]], "int32")
        src = bench.tile(TABLE, memory="hbm").ap(
            [[4, 1], [1, 4]], offset=0, scalar_offset=slot, indirect_dim=0
        )
        dst = bench.empty((1, 4))
        bench.run("dma_copy", dst, src)
        assert bench.read(dst).tolist() == [TABLE[2].tolist()]
        assert bench.machine.recorder.records[-1].attributes["dynamic"] is True


class TestTranspose:
    """`dma_transpose`."""

    def test_two_axes(self, bench: Any) -> None:
        dst = bench.empty((4, 5))
        bench.run("dma_transpose", dst, bench.tile(TABLE, memory="hbm"))
        assert bench.read(dst).tolist() == TABLE.T.tolist()

    @pytest.mark.parametrize(
        ("shape", "axes"), [((2, 3, 4), (2, 1, 0)), ((2, 3, 4, 5), (3, 1, 2, 0))]
    )
    def test_more_axes(self, bench: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
        data = np.arange(float(np.prod(shape))).reshape(shape)
        dst = bench.empty(tuple(shape[axis] for axis in axes), "bfloat16")
        src = bench.tile(data, "bfloat16", memory="hbm")
        bench.run("dma_transpose", dst, src, axes=axes)
        assert bench.read(dst).tolist() == data.transpose(axes).tolist()

    def test_a_column_becomes_a_row_in_sbuf(self, bench: Any) -> None:
        dst = bench.empty((1, 64))
        bench.run("dma_transpose", dst, bench.tile(np.arange(64.0).reshape(64, 1)))
        assert bench.read(dst).reshape(-1).tolist() == list(range(64))

    def test_rows_found_at_run_time(self, bench: Any) -> None:
        data = np.arange(32 * 8.0).reshape(32, 8)
        rows = np.arange(16)[::-1] * 2
        index = bench.tile(rows[:, None], "uint32")
        src = bench.tile(data, "bfloat16", memory="hbm").ap([[8, 16], [1, 8]], vector_offset=index)
        dst = bench.empty((8, 16), "bfloat16")
        bench.run("dma_transpose", dst, src)
        assert bench.read(dst).tolist() == data[rows].T.tolist()


class TestCompute:
    """`dma_compute`."""

    def test_sum_of_three_in_fp32(self, bench: Any) -> None:
        sources = [bench.tile([[1.0]], "bfloat16"), bench.tile([[2.0**-9]]), bench.tile([[1.0]])]
        dst = bench.empty((1, 1))
        bench.run("dma_compute", dst, sources, bench.op("add"))
        assert bench.read(dst)[0, 0] == 2 + 2.0**-9

    def test_a_second_call_uses_its_own_tiles(self, bench: Any) -> None:
        for value in (1.0, 5.0):
            dst = bench.empty((1, 1))
            sources = [bench.tile([[value]]), bench.tile([[value]])]
            bench.run("dma_compute", dst, sources, bench.op("add"))
            assert bench.read(dst)[0, 0] == 2 * value

    def test_scatter_add(self, bench: Any) -> None:
        table = bench.tile(TABLE, memory="hbm")
        rows = table.ap([[4, 2], [1, 4]], vector_offset=bench.tile([[4], [0]], "int32"))
        bench.run("dma_compute", rows, [rows, bench.tile(np.ones((2, 4)))], bench.op("add"))
        expected = TABLE.copy()
        expected[[4, 0]] += 1
        assert bench.read(table).tolist() == expected.tolist()

    def test_gather_add(self, bench: Any) -> None:
        rows = bench.tile(TABLE, memory="hbm").ap(
            [[4, 2], [1, 4]], vector_offset=bench.tile([[4], [0]], "int32")
        )
        dst = bench.tile(np.ones((2, 4)))
        bench.run("dma_compute", dst, [dst, rows], bench.op("add"))
        assert bench.read(dst).tolist() == (TABLE[[4, 0]] + 1).tolist()


def test_attributes_for_timing(bench: Any) -> None:
    dst, src = bench.empty((5, 4)), bench.tile(TABLE, memory="hbm")
    bench.run(
        "dma_copy",
        dst,
        src,
        dge_mode=bench.member("dge_mode", "hwdge"),
        engine=bench.member("engine", "scalar"),
    )
    record = bench.machine.recorder.records[-1]
    assert record.engine == "dma"
    assert dict(record.attributes) == {
        "dge_mode": "hwdge",
        "queue": "scalar",
        "indirect": False,
        "dynamic": False,
        "transpose": False,
    }
