"""`gdsl run`: both backends, files in and out, and looking inside."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gdsl
from gdsl.arrays import load_npz, save_npz

Cli = Callable[..., Any]
SHAPE = "B=1,Hv=2,K=8,V=4"

# The interpreter is the definition: it must run where nothing of the compiler behind it exists.
BLOCKED = """
import sys

class Refuse:
    blocked = ("gdsl.canonical", "gdsl.algorithm", "backends.nki", "backends.simulator",
               "backends.cost")
    def find_spec(self, name, path=None, target=None):
        if any(name == b or name.startswith(b + ".") for b in self.blocked):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Refuse())
from gdsl.cli.main import main
code = main(sys.argv[1:])
assert not [name for name in sys.modules if name.startswith(Refuse.blocked)]
sys.exit(code)
"""


@pytest.mark.parametrize(
    "command",
    [
        ("run", "gdn_tkg", "--random", "--shape", SHAPE),
        ("run", "gdn_tkg", "--random", "--shape", SHAPE, "--watch", "S,decay", "--nan-origin"),
        ("check", "--help"),
    ],
)
def test_it_runs_without_the_compiler(process: Cli, command: tuple[str, ...]) -> None:
    done = process("-c", BLOCKED, *command)
    assert done.code == 0, done.err


def test_the_import_blocker_blocks(process: Cli) -> None:
    done = process("-c", BLOCKED, "compile", "gdn_tkg")
    assert done.code == 2
    assert "backends.nki is blocked" in done.err


def test_a_line_per_output_and_the_same_for_the_same_seed(cli: Cli) -> None:
    one = cli("run", "gdn_tkg", "--random", "--seed", "5", "--shape", SHAPE)
    assert one.code == 0
    assert [line.partition(":")[0] for line in one.out.splitlines()] == ["out", "state_out"]
    assert "bf16[2, 4]" in one.out
    assert cli("run", "gdn_tkg", "--random", "--seed", "5", "--shape", SHAPE).out == one.out
    assert cli("run", "gdn_tkg", "--random", "--seed", "6", "--shape", SHAPE).out != one.out


@pytest.mark.parametrize("backend", ["interpreter", "simulator"])
def test_files_in_and_out(cli: Cli, tmp_path: Path, backend: str) -> None:
    kernel = gdsl.load("gdn_tkg")
    inputs = gdsl.random_inputs(kernel, SHAPE, seed=2)
    save_npz(tmp_path / "in.npz", inputs)
    files = ("--inputs", str(tmp_path / "in.npz"), "-o", str(tmp_path / "out.npz"))
    done = cli("run", "gdn_tkg", *files, "--backend", backend)
    assert (done.code, done.out) == (0, "")
    got = load_npz(tmp_path / "out.npz")
    for name, expected in gdsl.run(kernel, inputs, backend=backend).items():
        assert got[name].dtype == expected.dtype
        np.testing.assert_array_equal(got[name], expected)


def test_inputs_that_do_not_fit_exit_1_and_name_the_argument(cli: Cli, tmp_path: Path) -> None:
    inputs = gdsl.random_inputs(gdsl.load("gdn_tkg"), SHAPE)
    inputs["v"] = inputs["v"][:1]
    save_npz(tmp_path / "in.npz", inputs)
    done = cli("run", "gdn_tkg", "--inputs", str(tmp_path / "in.npz"))
    assert done.code == 1
    assert "`v`" in done.err
    assert "Traceback" not in done.err


def test_params_are_typed(cli: Cli) -> None:
    shape = ("--random", "--shape", "B=1,Hk=1,G=1,T=4,K=4,V=4")
    plain = cli("run", "gdn_cte", *shape)
    scaled = cli("run", "gdn_cte", *shape, "--param", "scale=2")
    assert plain.code == scaled.code == 0
    assert plain.out != scaled.out
    done = cli("run", "gdn_cte", *shape, "--param", "scale=big")
    assert done.code == 2
    assert "`scale` is a float" in done.err


def test_watch_says_every_token(cli: Cli) -> None:
    done = cli("run", "gdn_cte", "--random", "--shape", "B=1,Hk=1,G=1,T=3,K=4,V=4", "--watch", "r")
    lines = [line for line in done.out.splitlines() if line.startswith("r[")]
    assert [line.partition("]")[0] for line in lines] == ["r[T=0", "r[T=1", "r[T=2"]
    assert "Hk 1" in lines[0]


def test_an_unknown_name_to_watch_is_a_usage_error(cli: Cli) -> None:
    done = cli("run", "gdn_tkg", "--random", "--shape", SHAPE, "--watch", "betta")
    assert done.code == 2
    assert "did you mean `beta`" in done.err


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (("--backend", "simulator", "--watch", "S"), "`--watch` is the interpreter's"),
        (("--backend", "simulator", "--precision", "float64"), "`--precision` is the interp"),
        (("--set", "key_tiles=2"), "`--set` is the emitted kernel's; add `--backend simulator`"),
        (("--set", "nonsense=2"), "`--set` is the emitted kernel's"),
        (("--lnc", "2"), "`--lnc` is the emitted kernel's"),
        (("-t", "trn3"), "`--target` is the emitted kernel's"),
    ],
)
def test_an_option_of_the_other_backend_is_not_passed_over(
    options: tuple[str, ...], advice: str, cli: Cli
) -> None:
    done = cli("run", "gdn_tkg", "--random", "--shape", SHAPE, *options)
    assert done.code == 2
    assert advice in done.err


def test_trace_and_diff_find_the_first_difference(cli: Cli, tmp_path: Path) -> None:
    inputs = gdsl.random_inputs(
        gdsl.load("gdn_cte"), {"B": 1, "Hk": 1, "G": 2, "T": 5, "K": 4, "V": 4}
    )
    paths = [str(tmp_path / name) for name in ("in.npz", "a.npz", "b.npz")]
    save_npz(paths[0], inputs)
    assert cli("run", "gdn_cte", "--inputs", paths[0], "--trace", paths[1]).code == 0
    inputs["beta"] = inputs["beta"].copy()
    inputs["beta"][0, 1, 3] = 0.0
    save_npz(paths[0], inputs)
    assert cli("run", "gdn_cte", "--inputs", paths[0], "--trace", paths[2]).code == 0
    assert cli("diff", paths[1], paths[1]).out == "no difference\n"
    done = cli("diff", *paths[1:])
    assert done.code == 1
    assert "beta: first difference at B 0, Hk 0, G 1, T 3" in done.out


def test_nan_origin_names_statement_token_and_element(cli: Cli, tmp_path: Path) -> None:
    text = (
        "use delta_rule\n"
        "kernel mine:\n"
        "    axes B, T, K, V\n"
        "    input q, k: f32[B, T, K]\n"
        "    input v: f32[B, T, V]\n"
        "    input w: f32[B, T]\n"
        "    state S: f32[B, K, V] = s0\n"
        "    decay = log(w)\n"
        "    o, S = scan[T] gated_delta(q, k, v, decay, 0.5, S)\n"
        "    output out: f32[B, T, V] = o\n"
        "    output s1: f32[B, K, V] = S\n"
    )
    (tmp_path / "mine.gdn").write_text(text)
    rng = np.random.default_rng(0)
    inputs = {
        "q": rng.standard_normal((1, 4, 2)),
        "k": rng.standard_normal((1, 4, 2)),
        "v": rng.standard_normal((1, 4, 3)),
        "w": np.array([[0.5, 0.9, -1.0, 0.7]]),
        "s0": np.zeros((1, 2, 3)),
    }
    save_npz(tmp_path / "in.npz", {n: a.astype(np.float32) for n, a in inputs.items()})
    done = cli(
        "run", str(tmp_path / "mine.gdn"), "--inputs", str(tmp_path / "in.npz"), "--nan-origin"
    )
    assert done.code == 1
    assert "`decay` is NaN at B 0, T 2" in done.err
    assert "mine.gdn:8:" in done.err
    assert "decay = log(w)" in done.err
