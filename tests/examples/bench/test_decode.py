"""The table of decode kernels: ours, somebody's, and what the machine refuses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from examples.bench import decode
from gdsl import api

COPY = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def copies(s, times=1):
    out = nl.ndarray(s.shape, dtype=s.dtype, buffer=nl.shared_hbm)
    for row in range(s.shape[0]):
        tile = nl.ndarray(s.shape[1:], dtype=s.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=s[row])
        for _ in range(times):
            nisa.reciprocal(dst=tile, data=tile)
        nisa.dma_copy(dst=out[row], src=tile)
    return out
"""


def table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> list[list[str]]:
    """The cells of every row under the head."""
    monkeypatch.setattr(sys, "argv", ["decode", *words])
    assert decode.main() == 0
    lines = capsys.readouterr().out.strip().splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_ours_and_a_given_kernel_stand_in_one_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "copies.py"
    path.write_text(COPY)
    against = ("--against", f"{path}:copies", "s=f32[{H},128,128]", "times=2")
    rows = table(monkeypatch, capsys, "--heads", "2,8", *against)
    assert [row[1] for row in rows] == [*(k.label for k in decode.KERNELS), "copies.py:copies"] * 2
    for row in rows:
        order, listed = float(row[2]), float(row[3])
        low, high = map(float, row[4].split(" to "))
        assert listed <= order
        assert low <= order <= high
    assert float(rows[9][2]) > float(rows[4][2])
    limit = {row[1]: row[6] for row in rows if row[0] == "8"}
    assert limit["gdn_tkg, fp32 state"] == "15.00"
    assert limit["copies.py:copies"] == ""


def test_a_kernel_of_the_same_name_gets_our_arguments(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Our own emitted kernels as somebody's give our own times."""
    words = ["--heads", "2"]
    for name in ("gdn_tkg", "kda_tkg"):
        path = tmp_path / f"{name}.py"
        path.write_text(api.compile(api.load(name), target="trn2").text)
        words += ["--against", f"{path}:{name}"]
    rows = table(monkeypatch, capsys, *words)
    assert [row[2:5] for row in rows[4:]] == [row[2:5] for row in rows[:2]]


def test_what_the_machine_refuses_is_said_in_the_row(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "copies.py"
    path.write_text(COPY)
    against = ("--against", f"{path}:copies", "s=f32[1,129,{H}]")
    rows = table(monkeypatch, capsys, "--heads", "2", *against)
    assert rows[-1][2].startswith("refused: S")


def test_wrong_arguments_are_errors(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["--heads", "many"], ["--against", "no_such_file.py:kernel"]):
        monkeypatch.setattr(sys, "argv", ["decode", *words])
        assert decode.main() == 2
        assert words[1].split(":")[0] in capsys.readouterr().err
