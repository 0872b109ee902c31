"""Every example runs, says something worth reading, and needs no argument."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ELSEWHERE = {"whole_layer"}
"""Needs transformers: tests/oracle runs it."""
EXAMPLES = sorted(p for p in (ROOT / "examples").glob("*.py") if p.stem not in ELSEWHERE)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs(path: Path, tmp_path: Path) -> None:
    assert path.read_text().startswith('"""')
    done = subprocess.run(
        [sys.executable, str(path)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) >= 3
    assert not list(tmp_path.iterdir()), "an example leaves no files behind"
