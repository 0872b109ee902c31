"""The smaller commands: check, fmt, explain, kernels, lint, simulate, doctor."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gdsl.arrays import load_npz
from gdsl.library import library_kernels

Cli = Callable[..., Any]
BAD = "kernel bad:\n    axes K\n    input x: f32[K]\n    output y: f32[K] = xx + zz + x\n"


def test_check_says_form_and_reason(cli: Cli) -> None:
    done = cli("check", "gdn_tkg", "gdn_cte")
    assert (done.code, done.err) == (0, "")
    assert "gdn_tkg: good, decode form" in done.out
    assert "gdn_cte: good, chunked form" in done.out


def test_check_prints_several_errors_and_json_lines(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "bad.gdn"
    path.write_text(BAD)
    done = cli("check", str(path))
    assert done.code == 1
    assert done.err.count("error[E0201]") == 2
    lines = [json.loads(line) for line in cli("check", str(path), "--json").out.splitlines()]
    assert [line["code"] for line in lines] == ["E0201", "E0201"]
    assert {"severity", "message", "path", "span", "labels", "notes", "help"} <= lines[0].keys()
    assert (lines[0]["span"]["line"], lines[0]["path"]) == (4, str(path))


def test_check_with_a_target_maps_to_it(cli: Cli) -> None:
    assert "trn3: " in cli("check", "gdn_tkg", "-t", "trn3").out


def test_every_library_kernel_checks(cli: Cli) -> None:
    done = cli("check", *library_kernels())
    assert (done.code, done.err) == (0, "")
    assert done.out.count(": good, ") == len(library_kernels())


def test_fmt_writes_checks_and_diffs(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "mine.gdn"
    path.write_text("kernel mine:\n    axes K\n    input x:f32[K]\n    output y: f32[K]=x\n")
    before = path.read_text()
    assert cli("fmt", str(path), "--check").code == 1
    diff = cli("fmt", str(path), "--diff")
    assert "+    input x: f32[K]" in diff.out
    assert path.read_text() == before
    assert cli("fmt", str(path)).code == 0
    assert "input x: f32[K]" in path.read_text()
    assert cli("fmt", str(path), "--check").code == 0
    broken = tmp_path / "broken.gdn"
    broken.write_text("kernel\n")
    assert cli("fmt", str(broken)).code == 1
    assert broken.read_text() == "kernel\n"


def test_explain_lists_and_prints_pages(cli: Cli) -> None:
    assert "E0201" in cli("explain").out
    page = cli("explain", "e0201")
    assert page.code == 0
    assert "```" in page.out


def test_kernels_as_text_and_json(cli: Cli) -> None:
    assert "gdn_tkg " in cli("kernels").out
    rows = json.loads(cli("kernels", "--json").out)["kernels"]
    assert {row["name"] for row in rows} == set(library_kernels())
    tkg = next(row for row in rows if row["name"] == "gdn_tkg")
    assert tkg["returns"] == ["out", "state_out"]
    assert "qwen3_next_80b" in tkg["shapes"]


def test_lint_of_emitted_and_of_foreign_text(cli: Cli, tmp_path: Path) -> None:
    cli("compile", "gdn_tkg", "-o", str(tmp_path / "k.py"))
    assert cli("lint", str(tmp_path / "k.py")).code == 0
    (tmp_path / "bad.py").write_text("def f(:\n")
    done = cli("lint", str(tmp_path / "bad.py"))
    assert done.code == 1
    assert "error[S" in done.err
    assert cli("lint", str(tmp_path / "k.py"), "--nki-version", "9.9").code == 2


def test_simulate(cli: Cli, tmp_path: Path, foreign_kernel: str) -> None:
    (tmp_path / "add.py").write_text(foreign_kernel)
    kernel = f"{tmp_path}/add.py:add"
    given = ("--arg", "x=bf16[128,64]", "--arg", "y=bf16[128,64]")
    done = cli("simulate", kernel, *given, "-o", str(tmp_path / "out.npz"))
    assert done.code == 0
    assert "4 instructions" in done.err
    assert load_npz(tmp_path / "out.npz")["output_0"].shape == (128, 64)
    assert cli("simulate", kernel, *given, "--shape-only").out == ""
    same = cli("simulate", kernel, *given).out
    assert same.startswith("output_0: bfloat16[128, 64]")


def test_a_refused_kernel_exits_1_at_its_line(
    cli: Cli, tmp_path: Path, foreign_kernel: str
) -> None:
    (tmp_path / "add.py").write_text(foreign_kernel)
    done = cli(
        "simulate", f"{tmp_path}/add.py:add", "--arg", "x=f32[129,4]", "--arg", "y=f32[129,4]"
    )
    assert done.code == 1
    assert "add.py:9:" in done.err
    assert "128" in done.err


UNWRITTEN = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def late(x):
    t = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.sbuf)
    if x:
        nisa.dma_copy(dst=x, src=t)
    return x
"""


def test_simulate_takes_choices_and_shows_warnings(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text(UNWRITTEN)
    given = (f"{tmp_path}/late.py:late", "--arg", "x=f32[4,8]")
    done = cli("simulate", *given)
    assert done.code == 0
    assert "warning[S108]" in done.err
    refused = cli("simulate", *given, "--set", "uninitialized=fault")
    assert refused.code == 1
    assert "S401" in refused.err
    assert "no setting `speed`" in cli("simulate", *given, "--set", "speed=1").err


@pytest.mark.parametrize(
    ("arg", "said"),
    [("x=f99[4]", "there is no dtype `f99`"), ("x", "expected NAME="), ("=3", "expected NAME=")],
)
def test_wrong_arguments_of_simulate(
    cli: Cli, tmp_path: Path, foreign_kernel: str, arg: str, said: str
) -> None:
    (tmp_path / "add.py").write_text(foreign_kernel)
    done = cli("simulate", f"{tmp_path}/add.py:add", "--arg", arg)
    assert done.code == 2
    assert said in done.err


def test_doctor_says_what_can_run(cli: Cli) -> None:
    done = cli("doctor", "--json")
    report = json.loads(done.out)
    assert (done.code, report["ok"]) == (0, True)
    lines = {line["what"]: line for line in report["lines"]}
    for name in ("interpreter", "simulator", "nki", "cost"):
        assert lines[f"backend {name}"]["state"] == "ok"
    assert "not simulated: " in lines["backend simulator"]["detail"]
    text = cli("doctor").out
    assert all(line["what"] in text for line in report["lines"])


def test_doctor_calls_a_broken_backend_wrong(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gdsl.registry.backend_specs", lambda: {"mine": "no_such:THING"})
    done = cli("doctor")
    assert done.code == 1
    assert "wrong    backend mine" in done.out
    assert "pip install no_such" in done.out


def test_doctor_calls_a_wrong_target_wrong(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "tpu")
    done = cli("doctor")
    assert done.code == 1
    assert "wrong    target" in done.out


def test_summary_of_what_is_not_finite() -> None:
    from gdsl.debug.watch import summary

    assert "2 of 5 not finite" in summary(np.array([1, 2, np.nan, np.inf, 3.0]))
    assert summary(np.full(9, np.nan)) == "no finite value among 9"
    assert summary(np.array([1.5])) == "[1.5]"


def test_diff_says_what_it_could_not_compare(cli: Cli, tmp_path: Path) -> None:
    left, right = tmp_path / "a.npz", tmp_path / "b.npz"
    np.savez(left, q=np.zeros(2), out=np.ones(2))
    np.savez(right, out=np.ones(2))
    done = cli("diff", str(left), str(right))
    assert done.code == 0
    assert done.err == f"not compared, only in {left}: q\n"
