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


def test_an_unknown_kernel_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "no_such_kernel") == 2
    assert "no_such_kernel" in capsys.readouterr().err
