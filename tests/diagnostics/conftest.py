"""How the programs of this folder are compiled, and what they say they expect."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest
from attrs import frozen

from gdsl.diagnostics.diagnostic import Diagnostic
from gdsl.errors import CompileError
from gdsl.semantics.elaborate import elaborate
from gdsl.source import Source
from gdsl.syntax.parse import parse

_EXPECTATION = re.compile(r'# (error|warning)(?:@([+-]?\d+))?: \[(\w+)\] "(.*)"')


@frozen
class Expectation:
    """`# error: [CODE] "part of the message"` behind a line; `@-1` or `@7` names another line."""

    line: int
    severity: str
    code: str
    message: str


@pytest.fixture
def compiled() -> Callable[[Source], tuple[Diagnostic, ...]]:
    """Return everything the front end has to say about a text."""

    def run(source: Source) -> tuple[Diagnostic, ...]:
        folder = Path(source.name).parent
        libraries = Path(str(files("kernels_dsl")))

        def load(name: str) -> Source | None:
            path = folder / name if name.endswith(".gdn") else libraries / f"{name}.gdn"
            return Source(str(path), path.read_text(encoding="utf-8")) if path.is_file() else None

        try:
            return elaborate(parse(source), load)[1]
        except CompileError as error:
            return error.diagnostics

    return run


@pytest.fixture
def expected() -> Callable[[Source], list[Expectation]]:
    """Return what a program says it expects."""

    def read(source: Source) -> list[Expectation]:
        found: list[Expectation] = []
        for number, line in enumerate(source.text.split("\n"), start=1):
            for severity, place, code, message in _EXPECTATION.findall(line):
                relative = (
                    number + int(place) if place[:1] in "+-" and place else int(place or number)
                )
                found.append(Expectation(relative, severity, code, message))
        return found

    return read
