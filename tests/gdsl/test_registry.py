"""Finding and loading backends."""

import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from gdsl import registry
from gdsl.errors import BackendUnavailable


def test_the_list_in_pyproject_is_what_is_known(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    listed = project["entry-points"]["gdsl.backends"]
    assert dict(registry.backend_specs()).items() >= listed.items()
    assert {"interpreter", "simulator", "nki", "cost"} <= listed.keys()


@pytest.mark.parametrize("name", ["interpreter", "simulator", "nki", "cost"])
def test_every_backend_loads_and_knows_its_name(name: str) -> None:
    assert registry.load_backend(name).name == name


def test_an_unknown_backend_names_the_nearest() -> None:
    with pytest.raises(BackendUnavailable, match="did you mean `simulator`"):
        registry.load_backend("simulato")


def _announce(monkeypatch: pytest.MonkeyPatch, spec: str) -> None:
    monkeypatch.setattr(registry, "backend_specs", lambda: {"mine": spec})


def test_a_missing_module_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    _announce(monkeypatch, "no_such_package.backend:RUNNER")
    with pytest.raises(BackendUnavailable, match="pip install no_such_package"):
        registry.load_backend("mine")


def test_a_missing_attribute_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    _announce(monkeypatch, "gdsl.suggest:NOTHING")
    with pytest.raises(BackendUnavailable, match="has no `NOTHING`"):
        registry.load_backend("mine")


def test_a_backend_of_another_distribution_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("somebody_elses")
    module.BACKEND = object()  # type: ignore[attr-defined]
    monkeypatch.setitem(__import__("sys").modules, "somebody_elses", module)
    _announce(monkeypatch, "somebody_elses:BACKEND")
    assert registry.load_backend("mine") is module.BACKEND
