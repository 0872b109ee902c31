"""Highlighting follows the grammar."""

from __future__ import annotations

import json
from importlib.resources import files

from pygments import token

from gdsl.source import Source
from gdsl.syntax.highlight import lexer, textmate_grammar, textmate_text
from gdsl.syntax.words import reserved


def test_committed_textmate_grammar_is_current() -> None:
    committed = files("gdsl.syntax").joinpath("gdn.tmLanguage.json").read_text(encoding="utf-8")
    assert committed == textmate_text()
    assert json.loads(committed)["scopeName"] == "source.gdn"


def test_textmate_grammar_knows_every_word() -> None:
    patterns = " ".join(rule.get("match", "") for rule in textmate_grammar()["patterns"])
    missing = {word for word in reserved() if word not in patterns}
    assert missing == set()


def test_lexer_knows_every_character_of_the_library(library_file: Source) -> None:
    tokens = list(lexer().get_tokens(library_file.text))
    assert [text for kind, text in tokens if kind is token.Error] == []
    assert "".join(text for _, text in tokens) == library_file.text


def test_words_get_their_kind() -> None:
    tokens = lexer().get_tokens("kernel scan f32 exp zeros name 1.5e-3")
    kinds = {text: kind for kind, text in tokens}
    assert kinds["kernel"] is token.Keyword.Declaration
    assert kinds["scan"] is token.Keyword
    assert kinds["f32"] is token.Keyword.Type
    assert kinds["exp"] is token.Name.Builtin
    assert kinds["zeros"] is token.Keyword.Constant
    assert kinds["name"] is token.Name
    assert kinds["1.5e-3"] is token.Number
