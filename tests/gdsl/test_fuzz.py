"""Random edits of the library: the front end always answers with diagnostics, quickly.

`GDSL_FUZZ_EDITS=20000` sets the number of edits, `GDSL_FUZZ_SEED` where they start.
"""

from __future__ import annotations

import os
import random
import re
import time
from importlib.resources import files
from pathlib import Path

import pytest

from gdsl.diagnostics.codes import CODES
from gdsl.errors import CompileError
from gdsl.semantics.elaborate import elaborate
from gdsl.source import Source
from gdsl.syntax.format import format_source
from gdsl.syntax.parse import parse
from gdsl.syntax.words import spellings

EDITS = int(os.environ.get("GDSL_FUZZ_EDITS", "300"))
SEED = int(os.environ.get("GDSL_FUZZ_SEED", "0"))
LONGEST = 1.0
"""Seconds of processor time for one text."""
PARTS = 4

LIBRARY = Path(str(files("kernels_dsl")))
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted(LIBRARY.glob("*.gdn"))}
TOKEN = re.compile(r'"""(?:[^"]|"(?!""))*"""|"[^"\n]*"|\w+|[^\w\s]|\s+')
ODD = [
    "\t", "\r", "\x00", "\x7f", "é", "×", "𝛼", "\u202e", "\ufeff", '"', '"""', "#", "\\", "'",
    "9" * 400, "1e999", "1e-999", "0x10", "1_000", ".", "..", "...", "1.", ".5", "-", "--",
]  # fmt: skip


def edited(rng: random.Random) -> str:
    """A library text with one to three random edits."""
    text = TEXTS[rng.choice(sorted(TEXTS))]
    if rng.random() < 0.7:
        text = _one_declaration(text, rng)
    for _ in range(rng.randint(1, 3)):
        text = rng.choice(KINDS)(text, rng)
    return text


def _one_declaration(text: str, rng: random.Random) -> str:
    """The file's `use` line and one of its blocks: most edits need no more."""
    blocks = re.split(r"\n(?=kernel |rule |shapes |schedule |fn )", text)
    head = "\n".join(line for line in blocks[0].splitlines() if line.startswith("use "))
    return f"{head}\n{rng.choice(blocks[1:] or blocks)}"


def _characters(text: str, rng: random.Random) -> str:
    place = rng.randrange(len(text) + 1)
    length = rng.choice((0, 0, 1, 2, 5))
    new = rng.choice((rng.choice(ODD), chr(rng.randrange(32, 127)), ""))
    return text[:place] + new + text[place + length :]


def _tokens(text: str, rng: random.Random) -> str:
    tokens = TOKEN.findall(text) or [""]
    place = rng.randrange(len(tokens))
    words = list(spellings().values())
    new = rng.choice((rng.choice(words), rng.choice(tokens), rng.choice(ODD), ""))
    match rng.randrange(4):
        case 0:
            tokens[place] = new
        case 1:
            tokens.insert(place, f" {new} ")
        case 2:
            del tokens[place]
        case _:
            other = rng.randrange(len(tokens))
            tokens[place], tokens[other] = tokens[other], tokens[place]
    return "".join(tokens)


def _lines(text: str, rng: random.Random) -> str:
    lines = text.split("\n")
    place = rng.randrange(len(lines))
    match rng.randrange(5):
        case 0:
            del lines[place]
        case 1:
            lines.insert(rng.randrange(len(lines) + 1), lines[place])
        case 2:
            lines[place] = " " * rng.randrange(9) + lines[place].lstrip()
        case 3:
            other = rng.randrange(len(lines))
            lines[place], lines[other] = lines[other], lines[place]
        case _:
            lines[place] = f"{lines[place]}; {rng.choice(lines).strip()}"
    return "\n".join(lines)


def _names(text: str, rng: random.Random) -> str:
    names = re.findall(r"\b[A-Za-z_]\w*\b", text) or ["x"]
    old, new = rng.choice(names), rng.choice(names)
    if rng.random() < 0.5:
        return re.sub(rf"\b{old}\b", new, text)
    return re.sub(rf"\b{old}\b", new, text, count=1)


def _numbers(text: str, rng: random.Random) -> str:
    new = rng.choice(("0", "1", "-1", "17", "1e39", "1e-50", "inf", "9" * 30, "0.0", "true"))
    return re.sub(r"\b\d+(\.\d+)?\b", lambda m: new if rng.random() < 0.3 else m[0], text)


def _nesting(text: str, rng: random.Random) -> str:
    depth = rng.choice((10, 50, 59, 61, 200, 5000))
    before, after = rng.choice((("(", ")"), ("-", ""), ("exp(", ")"), ("1 + ", ""), ("2 ** ", "")))
    name = rng.choice(re.findall(r"\b[a-z]\w*\b", text) or ["x"])
    deep = before * depth + name + after * depth
    return re.sub(rf"\b{name}\b", lambda _: deep, text, count=rng.randint(1, 2))


def _ending(text: str, rng: random.Random) -> str:
    return text[: rng.randrange(len(text) + 1)] if rng.random() < 0.5 else text.rstrip("\n")


KINDS = (_characters, _tokens, _tokens, _lines, _names, _names, _numbers, _nesting, _ending)


def answer(text: str) -> None:
    """Compile a text and check what the front end says to it."""
    source = Source("fuzz.gdn", text)

    def load(name: str) -> Source | None:
        return Source(f"{name}.gdn", TEXTS[name]) if name in TEXTS else None

    try:
        found = elaborate(parse(source), load)[1]
        format_source(source)
    except CompileError as error:
        found = error.diagnostics
        assert found
    for diagnostic in found:
        assert diagnostic.code in CODES
        assert diagnostic.code != "G9999"
        assert diagnostic.span is not None
        for span in (diagnostic.span, *(label.span for label in diagnostic.labels)):
            assert 0 <= span.start <= span.end <= len(span.source.text)
            assert span.start < span.end or not text.strip()


@pytest.mark.parametrize("part", range(PARTS))
def test_random_edits_get_diagnostics(part: int) -> None:
    for number in range(SEED + part, SEED + EDITS, PARTS):
        text = edited(random.Random(number))
        start = time.process_time()
        try:
            answer(text)
        except Exception as error:
            raise AssertionError(f"GDSL_FUZZ_SEED={number} GDSL_FUZZ_EDITS=1\n{text}") from error
        spent = time.process_time() - start
        assert spent < LONGEST, f"seed {number} took {spent:.2f} s\n{text}"
