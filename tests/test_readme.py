"""Every block of the README is executed.

`console`: commands after `$ ` run in an empty folder that holds the README's `.gdn` blocks; what
they print must be what stands there (`...` matches anything, numbers may differ by a few per cent).
`gdn`: checked; `# error: CODE` in it names what must be found. `python`: executed. `sh`: compared
with `.ci/run`. `text`: prose. With GDSL_UPDATE_README=1 outputs and the table are written anew.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from attrs import frozen

from gdsl.errors import CompileError
from gdsl.library import library_sources
from gdsl.pipeline import Compilation, Definition, KernelFile
from gdsl.source import Source

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
UPDATE = bool(os.environ.get("GDSL_UPDATE_README"))
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")
HEAD = ["| kernel | what it is | form | NKI |", "|---|---|---|---|"]
_TABLE = re.compile(r"(<!-- kernels -->\n)(.*?)(<!-- /kernels -->\n)", re.DOTALL)


@frozen
class Block:
    """A fenced block: its language and text."""

    language: str
    text: str

    @property
    def file(self) -> str | None:
        """The name in its first line's comment."""
        match = re.match(r"# (\S+\.gdn)\n", self.text)
        return match[1] if match else None


def blocks() -> list[Block]:
    return [Block(*match.groups()) for match in _BLOCK.finditer(README.read_text())]


def of(language: str) -> list[Block]:
    return [block for block in blocks() if block.language == language]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the README's kernels and a `gdsl` command that runs this checkout."""
    where = tmp_path_factory.mktemp("readme")
    for block in of("gdn"):
        if block.file:
            (where / block.file).write_text(block.text)
    command = where / "bin" / "gdsl"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m gdsl "$@"\n')
    command.chmod(0o755)
    return where


def test_every_block_is_of_a_kind_that_is_checked() -> None:
    assert {block.language for block in blocks()} == {"console", "gdn", "python", "sh", "text"}


def _commands(block: Block) -> list[tuple[str, list[str]]]:
    found: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def _run(command: str, folder: Path) -> list[str]:
    environment = {
        **os.environ,
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "NO_COLOR": "1",
    }
    for variable in ("GDSL_DEBUG", "NEURON_PLATFORM_TARGET_OVERRIDE", "FORCE_COLOR"):
        environment.pop(variable, None)
    done = subprocess.run(
        ["sh", "-c", f"{command} 2>&1"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    return done.stdout.rstrip("\n").splitlines()


@pytest.mark.parametrize("number", range(len(of("console"))))
def test_commands_print_what_stands_there(number: int, folder: Path) -> None:
    block = of("console")[number]
    for command, expected in _commands(block):
        printed = _run(command, folder)
        if UPDATE and not _matches(expected, printed):
            _replace_output(command, expected, printed)
            continue
        assert _matches(expected, printed), f"$ {command}\n" + "\n".join(printed)


def _matches(expected: list[str], printed: list[str]) -> bool:
    """Compare line by line; a line `...` stands for any number of lines."""
    if not expected:
        return not printed
    if expected[0] == "...":
        return any(_matches(expected[1:], printed[i:]) for i in range(len(printed) + 1))
    return bool(printed) and _same(expected[0], printed[0]) and _matches(expected[1:], printed[1:])


def _same(expected: str, printed: str) -> bool:
    if "..." in expected:
        pattern = ".*".join(re.escape(part) for part in expected.split("..."))
        return re.fullmatch(pattern, printed) is not None
    if _words(expected) != _words(printed):
        return False
    pairs = zip(_NUMBER.findall(expected), _NUMBER.findall(printed), strict=True)
    return all(_close(a, b) for a, b in pairs)


def _words(line: str) -> list[str]:
    return _NUMBER.sub("#", line).split()


def _close(a: str, b: str) -> bool:
    """Whole numbers must be equal; others are rounding errors or printed to a few digits."""
    if a == b or "." not in a:
        return a == b
    return abs(float(a) - float(b)) <= 0.2 * abs(float(a))


def _replace_output(command: str, expected: list[str], printed: list[str]) -> None:
    text = README.read_text()
    old = "\n".join([f"$ {command}", *expected])
    assert text.count(old + "\n") == 1
    README.write_text(text.replace(old + "\n", "\n".join([f"$ {command}", *printed]) + "\n"))


@pytest.mark.parametrize("number", range(len(of("gdn"))))
def test_kernels_check(number: int) -> None:
    import gdsl

    text = of("gdn")[number].text
    wanted = re.findall(r"^# error: (\S+)", text, re.MULTILINE)
    assert sorted({d.code for d in gdsl.check(text)}) == sorted(wanted)


@pytest.mark.parametrize("number", range(len(of("python"))))
def test_python_runs(number: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    exec(compile(of("python")[number].text, "README.md", "exec"), {"__name__": "readme"})


def test_the_setup_commands_are_those_of_ci() -> None:
    setup, tests = (block.text.strip() for block in of("sh"))
    script = (ROOT / ".ci" / "run").read_text()
    assert f"\n{tests}\n" in script
    assert "pip install -q -e '.[cli]' --group test" in setup
    assert setup.endswith("&& gdsl verify gdn_tkg --shape qwen3_next_80b")
    assert "\n" not in setup


def test_every_path_that_is_linked_exists() -> None:
    targets = re.findall(r"\]\((\w[\w.]*/[\w./]*|[A-Z]+)\)", README.read_text())
    assert len(targets) > 10
    for target in targets:
        assert (ROOT / target).exists(), target


def test_the_table_of_kernels_has_every_kernel_in_order() -> None:
    if UPDATE:
        table = "\n".join([*HEAD, *(row for source in library_sources() for row in _rows(source))])
        text = _TABLE.sub(lambda match: f"{match[1]}{table}\n{match[3]}", README.read_text())
        README.write_text(text)
    lines = _table()
    assert lines[:2] == HEAD
    files = [KernelFile(source) for source in library_sources()]
    links = [_link(kernel.name, file.source) for file in files for kernel in file.module.kernels]
    assert [line.split(" | ")[0].removeprefix("| ") for line in lines[2:]] == links


@pytest.mark.parametrize("source", library_sources(), ids=lambda source: Path(source.name).stem)
def test_the_table_of_kernels_is_current(source: Source) -> None:
    assert [line for line in _table() if f"]({source.name})" in line] == _rows(source)


def _table() -> list[str]:
    found = _TABLE.search(README.read_text())
    assert found is not None
    return found[2].splitlines()


def _rows(source: Source) -> list[str]:
    file, rows = KernelFile(source), []
    for kernel in file.module.kernels:
        compilation = Compilation(Definition(file, kernel.name))
        doc = " ".join(kernel.doc.split("\n\n")[0].split()).rstrip(".")
        try:
            _ = compilation.program
            emitted = "yes"
        except CompileError:
            emitted = "not yet"
        form = compilation.plan.form
        rows.append(f"| {_link(kernel.name, source)} | {doc} | {form} | {emitted} |")
    return rows


def _link(kernel: str, source: Source) -> str:
    return f"[`{kernel}`]({source.name})"
