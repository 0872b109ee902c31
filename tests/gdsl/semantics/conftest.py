"""Fixtures of the semantics tests."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files

import pytest

from gdsl.errors import CompileError
from gdsl.ir.kernel import Kernel, Module
from gdsl.semantics.elaborate import elaborate
from gdsl.source import Source
from gdsl.syntax.parse import parse


def _load(name: str) -> Source | None:
    path = files("kernels_dsl").joinpath(f"{name}.gdn")
    if not path.is_file():
        return None
    return Source(f"kernels_dsl/{name}.gdn", path.read_text(encoding="utf-8"))


@pytest.fixture
def module() -> Callable[[str], Module]:
    """Elaborate a text that must be right and give no warning."""

    def make(text: str) -> Module:
        made, warnings = elaborate(parse(Source("test.gdn", text)), _load)
        assert warnings == ()
        return made

    return make


@pytest.fixture
def kernel(module: Callable[[str], Module]) -> Callable[[str], Kernel]:
    """Elaborate a text with one kernel."""

    def make(text: str) -> Kernel:
        (only,) = module(text).kernels
        return only

    return make


@pytest.fixture
def errors() -> Callable[[str], CompileError]:
    """Elaborate a text that must be wrong."""

    def make(text: str) -> CompileError:
        with pytest.raises(CompileError) as caught:
            elaborate(parse(Source("test.gdn", text)), _load)
        return caught.value

    return make
