"""The import contracts of pyproject.toml hold, and they cover what exists."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_contracts_are_kept() -> None:
    command = shutil.which("lint-imports", path=str(Path(sys.executable).parent))
    assert command is not None, "install the group `test`"
    done = subprocess.run(
        [command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    assert f"{len(contracts['contracts'])} kept, 0 broken" in done.stdout


def test_every_module_of_gdsl_stands_in_a_layer() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = settings["contracts"][0]["layers"]
    named = {name.strip() for layer in layers for name in layer.replace(":", "|").split("|")}
    present = {
        f"gdsl.{path.stem}"
        for path in (ROOT / "gdsl").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").is_file()
    }
    assert present - {"gdsl.__init__", "gdsl.__main__"} == named


@pytest.mark.parametrize("name", ["backends", "kernels_dsl"])
def test_packages_with_common_names_hold_a_docstring_and_nothing_else(name: str) -> None:
    import ast

    tree = ast.parse((ROOT / name / "__init__.py").read_text())
    assert ast.get_docstring(tree)
    assert len(tree.body) == 1


def test_no_package_below_tests() -> None:
    """`tests/backends/__init__.py` would hide the real package in every import mode."""
    assert not list((ROOT / "tests").rglob("__init__.py"))


def test_no_path_of_a_machine_in_what_ships() -> None:
    machine = ("/" + "work/", "/" + "root/", "/" + "tmp/")
    for folder in ("gdsl", "backends", "kernels_dsl", "examples"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".gdn", ".md", ".json", ".lark"):
                text = path.read_text(encoding="utf-8")
                assert not any(name in text for name in machine), path
