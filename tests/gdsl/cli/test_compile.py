"""`gdsl compile`: the product on stdout or in a whole file; it needs nothing of gdsl."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gdsl
from gdsl.arrays import save_npz

Cli = Callable[..., Any]

# A process in which the compiler cannot be imported; what is left runs NKI text.
WITHOUT_COMPILER = """
import sys

class Refuse:
    blocked = ("gdsl.syntax", "gdsl.semantics", "gdsl.canonical", "kernels_dsl",
               "gdsl.algorithm", "gdsl.pipeline", "backends.nki", "backends.interpreter")
    def find_spec(self, name, path=None, target=None):
        if any(name == b or name.startswith(b + ".") for b in self.blocked):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Refuse())
from backends.simulator import RUNNER
from gdsl.arrays import load_npz, save_npz
from pathlib import Path
result = RUNNER.simulate(Path(sys.argv[1]), "gdn_tkg", load_npz(sys.argv[2]), target="trn2")
save_npz(sys.argv[3], {str(i): array for i, array in enumerate(result.outputs)})
"""


def test_stdout_and_file_hold_the_same(cli: Cli, tmp_path: Path) -> None:
    printed = cli("compile", "gdn_tkg", "-t", "trn2")
    assert printed.code == 0
    assert printed.err == ""
    cli("compile", "gdn_tkg", "-t", "trn2", "-o", str(tmp_path / "k.py"))
    assert (tmp_path / "k.py").read_text() == printed.out
    assert cli("compile", "gdn_tkg", "-t", "trn2", "-o", "-").out == printed.out


@pytest.mark.parametrize("stage", ["ast", "ir", "canonical", "plan", "program", "nki"])
def test_every_level_can_be_written(cli: Cli, stage: str) -> None:
    done = cli("compile", "gdn_tkg", "--emit", stage)
    assert done.code == 0
    assert len(done.out.splitlines()) > 5


def test_a_failing_compile_leaves_no_file_and_keeps_the_old_one(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "k.py"
    assert cli("compile", "gdn_tkg", "--set", "chunks=64", "-o", str(out)).code == 1
    assert not out.exists()
    out.write_text("old")
    assert cli("compile", "gdn_tkg", "--set", "chunks=64", "-o", str(out)).code == 1
    assert out.read_text() == "old"


def test_an_unknown_schedule_key_lists_the_known_ones(cli: Cli) -> None:
    done = cli("compile", "gdn_tkg", "--set", "grop=4")
    assert done.code == 1
    assert "error[E0501]" in done.err
    assert "did you mean `group`" in done.err
    assert "`chunk`" in done.err


def test_the_emitted_file_runs_with_the_compiler_removed(
    cli: Cli, process: Cli, tmp_path: Path
) -> None:
    kernel = gdsl.load("gdn_tkg")
    inputs = gdsl.random_inputs(kernel, {"B": 1, "Hv": 4, "K": 16, "V": 16}, seed=1)
    save_npz(tmp_path / "in.npz", inputs)
    cli("compile", "gdn_tkg", "-t", "trn2", "-o", str(tmp_path / "k.py"))
    paths = [str(tmp_path / name) for name in ("k.py", "in.npz", "out.npz")]
    done = process("-c", WITHOUT_COMPILER, *paths)
    assert done.code == 0, done.err
    got = gdsl.load_npz(tmp_path / "out.npz")
    expected = gdsl.run(kernel, inputs, backend="simulator", target="trn2")
    for array, name in zip(got.values(), expected, strict=True):
        np.testing.assert_array_equal(array, expected[name])


def test_sizes_that_do_not_fit_are_found_before_anything_is_written(
    cli: Cli, tmp_path: Path
) -> None:
    shape = ("--shape", "B=1,Hv=4,K=200,V=128")
    done = cli("compile", "gdn_tkg", *shape, "-o", str(tmp_path / "k.py"))
    assert done.code == 1
    assert "error[E0531]: `gdn_tkg` needs K <= 128, got K = 200, on trn2" in done.err
    assert not list(tmp_path.iterdir())
    for command in ("check", "verify"):
        assert "error[E0531]" in (said := cli(command, "gdn_tkg", *shape)).err
        assert said.code == 1
    fits = cli("check", "gdn_tkg", "--shape", "qwen3_next_80b", "--lnc", "2")
    assert "fits on LNC 2: " in fits.out
    assert cli("check", "gdn_tkg", "--lnc", "2").code == 2
