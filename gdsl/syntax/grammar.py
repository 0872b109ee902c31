"""The lark parser made from `gdsl.lark`, once per process.

Analysing the grammar takes longer than parsing any kernel, so lark keeps the result in the user's
cache folder: `$GDSL_CACHE_DIR`, else `$XDG_CACHE_HOME/gdsl`, else `~/.cache/gdsl`. lark checks
that a kept result belongs to this grammar and these versions, and does without where it cannot
write.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.resources import files
from pathlib import Path

from lark import Lark

from gdsl.syntax.layout import Layout


def grammar_text() -> str:
    """Return the grammar."""
    return files("gdsl.syntax").joinpath("gdsl.lark").read_text(encoding="utf-8")


def _cache_file() -> str | bool:
    """Where lark keeps the analysed grammar; False where there is no place for it."""
    chosen = os.environ.get("GDSL_CACHE_DIR")
    try:
        folder = Path(chosen) if chosen else _user_cache() / "gdsl"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # not writable, or no home
        return False
    return str(folder / "grammar.pickle")


def _user_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base) if base else Path.home() / ".cache"


@cache
def parser() -> Lark:
    """Return the parser; `strict` conflicts are excluded by a test, which is slower."""
    # A basic lexer: a word of the grammar is reserved everywhere, not only where it could stand.
    return Lark(
        grammar_text(),
        parser="lalr",
        lexer="basic",
        postlex=Layout(),
        propagate_positions=True,
        maybe_placeholders=True,
        cache=_cache_file(),
    )
