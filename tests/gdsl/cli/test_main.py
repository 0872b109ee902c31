"""What holds for every command: help, exit codes, no tracebacks."""

import os
from collections.abc import Callable
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from gdsl.cli import main as entry
from gdsl.cli.main import COMMANDS

Cli = Callable[..., Any]


def test_the_overview_lists_every_command_and_every_module_is_one(cli: Cli) -> None:
    done = cli("--help")
    assert done.code == 0
    for name, line in COMMANDS.items():
        assert name in done.out
        assert line in done.out
    folder = Path(entry.__file__).parent
    shared = {
        "__init__",
        "arguments",
        "console",
        "estimating",
        "internal",
        "main",
        "nki_arguments",
        "parser",
    }
    assert {path.stem for path in folder.glob("*.py")} - shared == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_or_a_sentence(cli: Cli, name: str) -> None:
    done = cli(name, "--help")
    assert done.code == 0
    assert f"usage: gdsl {name}" in done.out
    assert import_module(f"gdsl.cli.{name}").DESCRIPTION.splitlines()[0] in done.out


def test_version(cli: Cli) -> None:
    assert cli("--version").out.startswith("gdsl 0.")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("chek",), "did you mean `check`"),
        ((), ""),
        (("compile",), "required: FILE"),
        (("compile", "gdn_tkg", "--emmit", "ir"), "unrecognized arguments: --emmit"),
        (("compile", "gdn_tkg", "--emit", "asm"), "invalid choice: 'asm'"),
        (("compile", "gdn_tkg", "-t", "trn9"), "no target `trn9`"),
        (("compile", "gdn_tkg", "--set", "chunk"), "expected KEY=VALUE"),
        (("compile", "gdn_tkg", "--set", "group=1", "--set", "group=2"), "given twice"),
        (("compile", "gdn_tkq"), "did you mean `gdn_tkg`"),
        (("compile", "no/such.gdn"), "no such file"),
        (("compile", "gdn_tkg", "-o", "no/such/folder/x.py"), "cannot write"),
        (("run", "gdn_tkg"), "one of the arguments --inputs --random is required"),
        (("run", "gdn_tkg", "--random", "--shape", "nope"), "has no shape `nope`"),
        (("run", "gdn_tkg", "--inputs", "none.npz"), "cannot read `none.npz`"),
        (("run", "gdn_tkg", "--random", "--param", "x=1"), "expected NAME=VALUE"),
        (("verify", "gdn_tkg", "--regimes", "gausian"), "did you mean `gaussian`"),
        (("verify", "gdn_tkg", "--regimes", ","), "no regime is named"),
        (("verify", "gdn_tkg", "--precision", "fp8"), "there is no precision `fp8`"),
        (("explain", "E9999"), "there is no code `E9999`"),
        (("simulate", "kernel.py"), "expected FILE.py:KERNEL"),
        (("simulate", "none.py:k"), "there is no file `none.py`"),
        (("fmt", "none.gdn"), "there is no file `none.gdn`"),
        (("diff", "a.npz", "b.npz"), "cannot read `a.npz`"),
        (("cost", "gdn_tkg", "--arg", "x=1"), "belong to FILE.py:KERNEL"),
        (("compile", "gdn_tkg", "--nki-version", "9.9"), "there is no NKI release `9.9`"),
        (("run", "gdn_tkg", "--random", "--seed", "-1"), "`-1` is no seed; expected 0, 1, 2"),
        (("verify", "gdn_tkg", "--seed", "x"), "`x` is no seed"),
        (("check", "gdn_tkg", "--shape", "B=0,Hv=1,K=4,V=4"), "axis `B` of kernel `gdn_tkg` has"),
        (("cost", "gdn_cte", "--shape", "B=1,Hk=1,G=1,T=0,K=4,V=4"), "nothing would be launched"),
        (("lint", "no/such.py"), "cannot read `no/such.py`: no such file"),
        (("compile", "gdn_tkg", "--lnc", "2"), "add `--shape`"),
        (("compile", "gdn_tkg", "-t", "trn2", "-t", "trn3"), "given twice, as trn2 and as trn3"),
        (("verify", "gdn_tkg", "-o", "no/such/r.json"), "there is no folder"),
        (("run", "gdn_tkg", "--random", "--trace", "."), "is a directory"),
    ],
)
def test_usage_errors_exit_2_and_say_what_to_do(
    cli: Cli, arguments: tuple[str, ...], said: str
) -> None:
    done = cli(*arguments)
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err


def test_findings_exit_1_with_a_source_window(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "bad.gdn"
    path.write_text("kernel bad:\n    axes K\n    output y: f32[K] = x\n")
    for command in (("check",), ("compile",), ("run", "--random"), ("verify",), ("cost",)):
        done = cli(command[0], str(path), *command[1:])
        assert done.code == 1, command
        assert "error[E0201]" in done.err
        assert f"{path}:3:24" in done.err
        assert done.out == ""


def test_our_own_bug_is_said_to_be_ours(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("axis")

    monkeypatch.setattr("gdsl.canonical.canonicalize.canonicalize", broken)
    done = cli("compile", "gdn_tkg", "--set", "reads=bf16")
    assert done.code == 2
    assert "error[G9999]: internal error: KeyError: 'axis'" in done.err
    assert "this is our bug" in done.err
    assert "`gdsl compile gdn_tkg --set reads=bf16`" in done.err
    assert "Traceback" not in done.err
    monkeypatch.setenv("GDSL_DEBUG", "1")
    assert entry.main(["compile", "gdn_tkg"]) == 2


def test_the_stage_of_a_bug_is_named(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("x")

    monkeypatch.setattr("gdsl.semantics.kernel.elaborate", broken)
    assert "in stage `elaborate`" in cli("check", "gdn_tkg").err


def test_the_target_variable_is_the_default_of_t(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, trn3 = cli("compile", "gdn_tkg"), cli("compile", "gdn_tkg", "-t", "trn3")
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "gen4")
    assert cli("compile", "gdn_tkg").out == trn3.out
    assert cli("compile", "gdn_tkg", "-t", "trn2").out == plain.out
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "tpu")
    done = cli("compile", "gdn_tkg")
    assert done.code == 2
    assert "no target `tpu` (from $NEURON_PLATFORM_TARGET_OVERRIDE)" in done.err


def test_a_reader_that_goes_away_is_no_error(process: Cli) -> None:
    program = (
        "import subprocess, sys\n"
        "p = subprocess.Popen([sys.executable, '-m', 'gdsl', 'compile', 'gdn_tkg'],"
        " stdout=subprocess.PIPE, stderr=subprocess.PIPE)\n"
        "p.stdout.read(10); p.stdout.close()\n"
        "err = p.stderr.read().decode(); print(p.wait(), repr(err))\n"
    )
    assert process("-c", program).out == "0 ''\n"


def test_color_only_where_asked(process: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.gdn").write_text("kernel bad:\n    axes K\n    output y: f32[K] = x\n")
    clean = {"NO_COLOR": "", "FORCE_COLOR": ""}
    command = ("-m", "gdsl", "check", str(tmp_path / "bad.gdn"))
    assert "\x1b[" not in process(*command, env=clean).err
    assert "\x1b[" in process(*command, env={**clean, "FORCE_COLOR": "1"}).err
    assert "\x1b[" not in process(*command, env={"FORCE_COLOR": "1", "NO_COLOR": "1"}).err
    assert os.environ.get("FORCE_COLOR") is None


def test_too_large_for_memory_is_no_fault_of_ours(cli: Cli) -> None:
    done = cli("run", "gdn_cte", "--random", "--shape", "B=9999,Hk=4096,G=8,T=99999,K=128,V=128")
    assert done.code == 2
    assert "not enough memory here" in done.err
    assert "give smaller sizes" in done.err


@pytest.mark.parametrize(
    ("missing", "ours"), [("lark.exceptions", False), ("gdsl.cli.check", True)]
)
def test_a_missing_package_is_said_to_be_one(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, missing: str, ours: bool
) -> None:
    def broken(*_: object) -> None:
        raise ModuleNotFoundError(f"No module named '{missing}'", name=missing)

    monkeypatch.setattr("gdsl.canonical.canonicalize.canonicalize", broken)
    done = cli("check", "gdn_tkg")
    assert done.code == 2
    assert ("internal error" in done.err) is ours
    assert ("the package `lark` is not installed" in done.err) is not ours


def test_ctrl_c_is_said_in_one_word_even_where_an_import_wraps_it(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(arguments: list[str]) -> int:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise ImportError("a package failed to import")  # noqa: B904

    monkeypatch.setattr(entry, "_dispatch", stop)
    done = cli("doctor")
    assert (done.code, done.err) == (130, "interrupted\n")


def test_a_file_without_a_kernel_is_said_to_hold_none(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "empty.gdn"
    path.write_text("")
    assert cli("check", str(path)).out == f"{path}: good, it holds no kernel\n"


def test_an_idle_key_of_a_file_is_warned_of_and_compiles(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "idle.gdn"
    text = files("kernels_dsl").joinpath("gdn_tkg_pool.gdn").read_text(encoding="utf-8")
    path.write_text(text + "\nschedule gdn_tkg_pool:\n    chunk = 64\n")
    for words in (("check", str(path)), ("compile", str(path), "-o", str(tmp_path / "k.py"))):
        done = cli(*words)
        assert done.code == 0
        assert "warning[W0501]: schedule key `chunk` has no effect on `gdn_tkg_pool`" in done.err
    assert (tmp_path / "k.py").exists()


def test_what_a_command_reads_is_never_written_over(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "mine.gdn"
    text = files("kernels_dsl").joinpath("gdn_conv1d.gdn").read_text()
    path.write_text(text)
    link = tmp_path / "link.py"
    link.symlink_to(path)
    for output in (path, link):
        done = cli("compile", f"{path}:gdn_conv1d_decode", "-o", str(output))
        assert done.code == 2
        assert "is what this command reads" in done.err
        assert path.read_text() == text
    other = tmp_path / "other.py"
    for _ in range(2):
        assert cli("compile", f"{path}:gdn_conv1d_decode", "-o", str(other)).code == 0


def test_the_same_option_twice_is_one(cli: Cli) -> None:
    twice = cli("compile", "gdn_tkg", "-t", "trn3", "-t", "trn3")
    assert twice.code == 0
    assert twice.out == cli("compile", "gdn_tkg", "-t", "trn3").out


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_closed_stream_is_no_error(closed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"sys.{closed}", None)
    assert entry.main(["explain", "E0301"]) == 0
    assert entry.main(["explain", "E9999"]) == 2
