"""Every code has its page and its failing program."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest

from gdsl.diagnostics.codes import CODES
from gdsl.diagnostics.diagnostic import Diagnostic
from gdsl.diagnostics.explain import explain
from gdsl.errors import CompileError
from gdsl.semantics.elaborate import elaborate
from gdsl.source import Source
from gdsl.syntax.parse import parse

# Codes that parsing and semantics can give; the others are raised later.
LATER = re.compile(r"E040[1-6]|E05..|E06..|E07..|W05..|G....")
FRONT_END = sorted(code for code in CODES if not LATER.match(code))
PROGRAMS = Path(__file__).parents[2] / "diagnostics"


@pytest.fixture
def codes() -> Callable[[str], list[str]]:
    """Return the codes a text gets from the front end."""

    def load(name: str) -> Source | None:
        path = Path(str(files("kernels_dsl"))) / f"{name}.gdn"
        return Source(str(path), path.read_text(encoding="utf-8")) if path.is_file() else None

    def run(text: str) -> list[str]:
        found: tuple[Diagnostic, ...]
        try:
            found = elaborate(parse(Source("page.gdn", text)), load)[1]
        except CompileError as error:
            found = error.diagnostics
        return [diagnostic.code for diagnostic in found]

    return run


def programs(code: str) -> list[str]:
    return re.findall(r"```gdn\n(.*?)```", explain(code) or "", re.DOTALL)


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_code_has_a_page(code: str) -> None:
    page = explain(code)
    assert page is not None
    assert page.startswith(f"# {code}: {CODES[code]}\n")
    assert len(page.splitlines()) > 4


def test_no_page_without_a_code() -> None:
    pages = files("gdsl.diagnostics").joinpath("explain").iterdir()
    assert {page.name for page in pages} == {f"{code}.md" for code in CODES}


def test_unknown_code_has_no_page() -> None:
    assert explain("E9999") is None


@pytest.mark.parametrize("code", FRONT_END)
def test_program_of_the_page_fails_with_its_code(
    code: str, codes: Callable[[str], list[str]]
) -> None:
    failing, repaired = programs(code)
    assert codes(failing) == [code]
    assert codes(repaired) == []


@pytest.mark.parametrize("code", [code for code in FRONT_END if code > "E0109"])
def test_code_occurs_in_the_programs(code: str) -> None:
    texts = [path.read_text(encoding="utf-8") for path in PROGRAMS.glob("*.gdn")]
    assert any(f"[{code}]" in text for text in texts)
