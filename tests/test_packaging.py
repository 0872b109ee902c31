"""The wheel holds everything, and works where there is no checkout."""

import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from gdsl.version import __version__

ROOT = Path(__file__).parents[1]
PACKAGES = ("gdsl", "backends", "kernels_dsl")


def _run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from an sdist built from the checkout: what a release would be."""
    folder = tmp_path_factory.mktemp("dist")
    script = (
        "import os, sys\n"
        "from hatchling import build\n"
        "print(getattr(build, sys.argv[1])(sys.argv[2]))\n"
    )
    sdist = (
        folder / _run(sys.executable, "-c", script, "build_sdist", str(folder), cwd=ROOT).strip()
    )
    _run(
        sys.executable,
        "-c",
        "import sys, tarfile; tarfile.open(sys.argv[1]).extractall('.')",
        str(sdist),
        cwd=folder,
    )
    source = folder / sdist.name.removesuffix(".tar.gz")
    name = _run(sys.executable, "-c", script, "build_wheel", str(folder), cwd=source).strip()
    return folder / name


def _tracked() -> set[str]:
    return {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_every_file_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    packaged = {name for name in names if not name.startswith(f"gdsl-{__version__}.dist-info/")}
    assert packaged == _tracked()


def test_an_installed_wheel_compiles_runs_and_verifies(wheel: Path, tmp_path: Path) -> None:
    """Unpacked into an environment that sees our dependencies but not the checkout."""
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    site = next((tmp_path / "env").glob("lib/python*/site-packages"))
    zipfile.ZipFile(wheel).extractall(site)
    ours = next(path for path in map(Path, sys.path) if (path / "attrs").is_dir())
    (site / "dependencies.pth").write_text(f"{ours}\n")
    where = _run(str(python), "-I", "-c", "import gdsl; print(gdsl.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(site)
    gdsl = (str(python), "-I", "-m", "gdsl")
    assert _run(*gdsl, "--version", cwd=tmp_path) == f"gdsl {__version__}\n"
    _run(*gdsl, "compile", "gdn_tkg", "-o", "k.py", cwd=tmp_path)
    assert "@nki.jit" in (tmp_path / "k.py").read_text()
    shape = ("--shape", "B=1,Hv=2,K=8,V=8")
    report = _run(*gdsl, "verify", "gdn_tkg", *shape, "--regimes", "gaussian", cwd=tmp_path)
    assert "cases agree" in report


def test_a_bare_checkout_works(tmp_path: Path) -> None:
    """Nothing installed but the dependencies: the registry reads this checkout's list."""
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from gdsl.cli.main import main\n"
        "main(['doctor'])\n"
    )
    out = _run(sys.executable, "-I", "-c", script, str(ROOT), cwd=tmp_path)
    assert out.count("ok       backend ") == 4


def test_versions_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == __version__


def test_the_optional_toolchain_cannot_be_met_by_placeholders() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    neuron = extras["optional-dependencies"]["neuron"]
    assert neuron == ["nki>=0.3", "neuronx-cc>=2"]
