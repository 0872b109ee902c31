"""Line ends and indentation as tokens: what lark calls a post-lexer.

The lexer gives a `_NL` for every line end and drops comments and spaces. Here a `_NL` survives only
between two lines of content, outside brackets; a change of the first token's column becomes
`_INDENT` or `_DEDENT`. Works for a file that lacks its last newline.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, field
from lark import Token
from lark.lark import PostLex

OPEN = frozenset({"LPAR", "LSQB", "LBRACE"})
CLOSE = frozenset({"RPAR", "RSQB", "RBRACE"})
DEEPEST_BRACKETS = 60
"""More brackets inside one another than this are refused, so that no later stage can overflow."""

MOST_DIGITS = 60


class LayoutError(Exception):
    """A problem with indentation, brackets or a number; `kind` says which, `token` where."""

    def __init__(self, kind: str, token: Token, other: Token | None = None) -> None:
        super().__init__(kind)
        self.kind = kind
        self.token = token
        self.other = other


@define
class Layout(PostLex):
    """Turns the raw token stream of one text into the token stream the grammar is written for."""

    always_accept = ("_NL",)

    brackets: list[Token] = field(factory=list)
    """The brackets open at this point."""
    columns: list[int] = field(factory=lambda: [1])
    """The columns of the blocks open at this point, outermost first."""

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """Yield the tokens of the grammar. Raises LayoutError."""
        self.brackets, self.columns = [], [1]
        line_end: Token | None = None
        last: Token | None = None
        for token in stream:
            if token.type == "_NL":
                if not self.brackets:
                    line_end = line_end or token
                continue
            if line_end is not None or last is None:
                if last is not None and line_end is not None:
                    yield line_end
                yield from self._indentation(token)
                line_end = None
            if token.type in ("INT", "FLOAT") and len(token) > MOST_DIGITS:
                raise LayoutError("long number", token)
            self._bracket(token)
            last = token
            yield token
        if self.brackets:
            raise LayoutError("unclosed", self.brackets[-1])
        if last is not None:
            yield line_end or _after(last, "_NL")
            for _ in self.columns[1:]:
                yield _after(last, "_DEDENT")

    def _indentation(self, token: Token) -> Iterator[Token]:
        column = token.column or 1
        if column > self.columns[-1]:
            self.columns.append(column)
            yield _before(token, "_INDENT")
        while column < self.columns[-1]:
            self.columns.pop()
            if column > self.columns[-1]:
                raise LayoutError("between", token)
            yield _before(token, "_DEDENT")

    def _bracket(self, token: Token) -> None:
        if token.type in OPEN:
            self.brackets.append(token)
            if len(self.brackets) > DEEPEST_BRACKETS:
                raise LayoutError("deep", token)
        elif token.type in CLOSE:
            if not self.brackets:
                raise LayoutError("unopened", token)
            self.brackets.pop()


def _before(token: Token, kind: str) -> Token:
    return Token(
        kind, "", token.start_pos, token.line, token.column, token.line, token.column,
        token.start_pos,
    )  # fmt: skip


def _after(token: Token, kind: str) -> Token:
    return Token(
        kind, "", token.end_pos, token.end_line, token.end_column, token.end_line,
        token.end_column, token.end_pos,
    )  # fmt: skip
