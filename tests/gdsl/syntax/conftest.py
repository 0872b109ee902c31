"""Fixtures of the syntax tests."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest

from gdsl.errors import CompileError
from gdsl.source import Source
from gdsl.syntax import ast
from gdsl.syntax.parse import parse


def _library() -> list[Path]:
    return sorted(Path(str(files("kernels_dsl"))).glob("*.gdn"))


@pytest.fixture(params=_library(), ids=lambda path: path.stem)
def library_file(request: pytest.FixtureRequest) -> Source:
    """Each file of the kernel library."""
    path: Path = request.param
    return Source(path.name, path.read_text(encoding="utf-8"))


@pytest.fixture
def tree() -> Callable[[str], ast.File]:
    """Parse a text that must parse."""
    return lambda text: parse(Source("test.gdn", text))


@pytest.fixture
def error() -> Callable[[str], CompileError]:
    """Parse a text that must not parse, and return the error."""

    def fails(text: str) -> CompileError:
        with pytest.raises(CompileError) as caught:
            parse(Source("test.gdn", text))
        return caught.value

    return fails
