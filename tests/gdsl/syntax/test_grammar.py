"""The grammar itself: no conflict, no rule without a node, words reserved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lark import Lark

from gdsl.source import Source
from gdsl.syntax.build import Builder
from gdsl.syntax.grammar import grammar_text, parser
from gdsl.syntax.layout import Layout
from gdsl.syntax.words import reserved


def test_has_no_conflict() -> None:
    strict = Lark(grammar_text(), parser="lalr", lexer="basic", postlex=Layout(), strict=True)
    assert {rule.origin.name for rule in strict.rules} >= {"kernel", "rule", "fn", "scan"}


def test_each_rule_has_a_builder_method() -> None:
    builder = Builder(Source("test.gdn", ""))
    named = {rule.alias or rule.origin.name for rule in parser().rules}
    inlined = {"sum", "term", "unary", "atom", "expr"}
    kept = {name for name in named if not name.startswith("_")} - inlined - {"start"}
    missing = {name for name in kept if not hasattr(builder, f"_{name}")}
    assert missing == set()


def test_words_of_the_language_are_reserved() -> None:
    assert reserved() >= {"kernel", "state", "scan", "bf16", "exp", "index", "unless", "inf"}
    assert not reserved() & {"q", "S", "write", "read", "schur", "chunk"}


@pytest.fixture
def fresh_parser() -> Iterator[Callable[[], Lark]]:
    """Build the parser anew, and again for the tests that follow."""

    def build() -> Lark:
        parser.cache_clear()
        return parser()

    yield build
    parser.cache_clear()


@pytest.mark.parametrize("kept", ["nothing", "garbage", "no folder"])
def test_cache_never_hinders(
    kept: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fresh_parser: Callable[[], Lark],
) -> None:
    folder = tmp_path / "cache"
    if kept == "garbage":
        folder.mkdir()
        (folder / "grammar.pickle").write_bytes(b"not a grammar")
    if kept == "no folder":
        folder.write_text("a file stands where the folder should be")
    monkeypatch.setenv("GDSL_CACHE_DIR", str(folder))
    for _ in range(2):
        assert fresh_parser().parse("fn f(x) = x\n").data == "start"
    assert (folder / "grammar.pickle").exists() == (kept != "no folder")
