"""The comparison script on two small kernels."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from examples.bench import compare_kernels

SLOW = """\
import nki.isa as nisa
import nki.language as nl


def slow(state_in, times):
    out = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=state_in[0])
    for _ in range(times):
        nisa.reciprocal(dst=tile, data=tile)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["compare_kernels", *words])
    return compare_kernels.main()


def test_the_ratio_and_its_range_are_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "slow.py"
    path.write_text(SLOW)
    shape = ("--shape", "B=1,Hv=1,K=128,V=128")
    assert run(monkeypatch, "gdn_tkg", *shape, "--against", f"{path}:slow", "times=100") == 0
    ours, other = capsys.readouterr().out.strip().split("\n")[-2:]
    assert ours.startswith("| gdn_tkg |")
    assert ours.endswith("1.000 | 1.000 to 1.000 |")
    ratio, low, high = map(float, re.findall(r"[\d.]+", other.split("times=100")[1])[-3:])
    assert 1 < low <= ratio <= high


def test_time_per_chunk_and_head_with_the_chunks_a_call_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "slow.py"
    path.write_text(SLOW.replace("state_in[0]", "query[0, 0, 0:128]").replace("state_in", "query"))
    shape = ("--shape", "B=1,Hk=1,G=2,T=300,K=128,V=128")
    against = ("--against", f"{path}:slow", "times=4", "units=2")
    assert run(monkeypatch, "gdn_cte", "gdn_cte,inverse=neumann", *shape, *against) == 0
    lines = capsys.readouterr().out.strip().split("\n")[-3:]
    cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines]
    assert [line[0] for line in cells[:2]] == ["gdn_cte", "gdn_cte,inverse=neumann"]
    for line, units in zip(cells, (6, 6, 2), strict=True):
        assert float(line[1]) * units == pytest.approx(float(line[2]), abs=0.02 * units)
        assert re.fullmatch(r"(tensor|vector|scalar|gpsimd|sync|dma) [\d.]+", line[4])
    assert float(cells[1][5]) > 1
    assert run(monkeypatch, "gdn_cte", *shape, "--against", f"{path}:slow", "units=x") == 2
    assert "`units=x`: expected a number of chunks" in capsys.readouterr().err


def test_public_kernels_of_a_folder_and_one_that_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "checkout" / "prefill"
    folder.mkdir(parents=True)
    parameters = "query, key, value, beta_broadcast, g_cumsum, g_last, state_in, lower_mask"
    body = "    nisa.tensor_copy(dst=key, src=query)\n    return query\n"
    text = f"import nki.isa as nisa\n\n\ndef deltanet_chunk_step({parameters}, **more):\n{body}"
    (folder / "chunked_step.py").write_text(text)
    words = ("--shape", "B=1,Hk=1,G=1,T=128,K=128,V=128", "--peers", str(tmp_path))
    assert run(monkeypatch, "gdn_cte", *words) == 0
    last = capsys.readouterr().out.strip().split("\n")[-1]
    assert last.startswith("| chunked_step.py:deltanet_chunk_step | refused: S")


def test_an_unknown_kernel_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "no_such_kernel") == 2
    assert "no_such_kernel" in capsys.readouterr().err
