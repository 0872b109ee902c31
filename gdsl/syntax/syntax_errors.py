"""What is wrong with a text that does not parse, in words of the language."""

from __future__ import annotations

import re

from lark import Token
from lark.exceptions import UnexpectedToken

from gdsl.diagnostics.diagnostic import Diagnostic, Label
from gdsl.source import Source, Span
from gdsl.syntax.hints import hint
from gdsl.syntax.layout import LayoutError
from gdsl.syntax.words import describe, first_terminals, one_of, reserved, words


def tab(source: Source, offset: int) -> Diagnostic:
    """A tab character anywhere in the text."""
    return Diagnostic(
        "E0103",
        "a tab stands in the text",
        Span(source, offset, offset + 1),
        label="tab",
        help="indent with spaces, four a level",
    )


def too_deep(source: Source, offset: int) -> Diagnostic:
    """An expression nested beyond what later stages follow."""
    offset = min(offset, max(0, len(source.text) - 1))
    return Diagnostic(
        "E0107",
        "this expression is nested too deeply",
        Span(source, offset, min(offset + 1, len(source.text))),
        help="give a part of it a name of its own and use that name here",
    )


def unexpected_character(source: Source, offset: int) -> Diagnostic:
    """A character that starts no token."""
    character = source.text[offset]
    span = Span(source, offset, offset + 1)
    if character == '"':
        return Diagnostic(
            "E0106",
            "this text in quotes does not end",
            span,
            label="opened here",
            help='close it with `"` on the same line, or use `"""` for several lines',
        )
    shown = character if character.isprintable() else f"U+{ord(character):04X}"
    return Diagnostic(
        "E0105",
        f"the character `{shown}` has no meaning here",
        span,
        help=_CHARACTER_HELP.get(character, "names consist of letters A-Z, digits and `_`"),
    )


_CHARACTER_HELP = {
    "^": "powers are written `**`",
    "@": "a product summed over an axis is written `sum[K](a * b)`",
    "&": "conditions do not combine; state them one by one",
    "!": "`!=` compares; there is no negation",
    "−": "use the ASCII hyphen `-`",
    "×": "products are written `*`",
    "·": "products are written `*`",
    "→": "an arrow is written `->`",
    "≤": "write `<=`",
    "≥": "write `>=`",
    "'": 'texts stand in double quotes `"`',
    "“": 'texts stand in straight double quotes `"`',
    "”": 'texts stand in straight double quotes `"`',
    ".": "numbers are written `0.5`; nothing has members",
}


def layout(source: Source, problem: LayoutError) -> Diagnostic:
    """Indentation that fits no block, or brackets without partners."""
    span = _span(source, problem.token)
    match problem.kind:
        case "between":
            return Diagnostic(
                "E0104",
                "this line's indentation fits no block that is open here",
                span,
                help="indent it like the lines of the block it belongs to",
            )
        case "unclosed":
            return Diagnostic(
                "E0106",
                f"`{problem.token}` is never closed",
                span,
                label="opened here",
                help="line ends do not count inside brackets; close it where it should end",
            )
        case "unopened":
            return Diagnostic("E0106", f"`{problem.token}` closes nothing", span)
        case "long number":
            return Diagnostic(
                "E0108",
                "this number has too many digits",
                span,
                help="write it with an exponent, such as `1e-6`, within the range of f32",
            )
        case _:
            return too_deep(source, span.start)


def unexpected_token(source: Source, problem: UnexpectedToken) -> Diagnostic:
    """A token that cannot stand where it does."""
    token, expected = problem.token, set(problem.accepts or problem.expected)
    span = _span(source, token)
    special = (
        _unclosed(source, token)
        or _indentation(token, span, expected)
        or _reserved_word(token, span, expected)
    )
    if special is not None:
        return special
    found = describe(token.type) if not token.strip() else f"`{token}`"
    return Diagnostic(
        "E0101",
        f"expected {one_of(expected)}, found {found}",
        span,
        label="unexpected",
        labels=_opened(source, token),
        help=hint(source.text[: span.start], str(token)),
    )


def _indentation(token: Token, span: Span, expected: set[str]) -> Diagnostic | None:
    if token.type == "_INDENT":
        return Diagnostic(
            "E0104",
            "this line is indented, but no line before it opens a block",
            span,
            help="indent it like the lines around it; a block follows a line that ends in `:`",
        )
    if "_INDENT" in expected:
        return Diagnostic(
            "E0104",
            "an indented block is missing here",
            span,
            help="indent the lines that belong to the line above by four spaces",
        )
    return None


def _reserved_word(token: Token, span: Span, expected: set[str]) -> Diagnostic | None:
    if first_terminals("expr") <= expected and str(token) in _RUN:
        return Diagnostic(
            "E0102",
            f"`{token}` cannot stand inside an expression",
            span,
            label="runs a rule",
            help=f"a run is a line of its own: `o, S = {_RUN[str(token)]} rule(..., S)`",
        )
    is_name_missing = "NAME" in expected and str(token) not in words("_declaration")
    if is_name_missing and str(token) in reserved():
        return Diagnostic(
            "E0102",
            f"`{token}` is a reserved word and cannot be a name",
            span,
            label="reserved word",
            help=_INSTEAD.get(str(token), f"choose another name, such as `{token}_`"),
        )
    return None


_INSTEAD = {
    "zeros": "a state starts from an argument that may be missing: `= state_in or zeros`",
    "inplace": "name the argument first: `= state_in inplace`",
}
_RUN = {"step": "step", "scan": "scan[T]"}


def _opened(source: Source, token: Token) -> tuple[Label, ...]:
    """Point at the bracket that the token stands inside, when it was opened on an earlier line."""
    start = token.start_pos or 0
    opened = _open_bracket(source.text[:start])
    if opened is None or "\n" not in source.text[opened:start]:
        return ()
    return (Label(Span(source, opened, opened + 1), "inside this bracket"),)


def _open_bracket(text: str) -> int | None:
    """Where the innermost bracket that is open at the end of a text stands.

    Any closing bracket closes the innermost one, since `(-inf, 0]` is a range.
    """
    opened: list[int] = []
    for match in re.finditer(r'#[^\n]*|"""(?:.|\n)*?"""|"[^"\n]*"|[(\[{)\]}]', text):
        if match.group() in "([{":
            opened.append(match.start())
        elif match.group() in ")]}" and opened:
            opened.pop()
    return opened[-1] if opened else None


def _unclosed(source: Source, token: Token) -> Diagnostic | None:
    """A bracket that an earlier line opened, when a line follows that begins a statement."""
    start = token.start_pos or 0
    line = source.text[source.text.rfind("\n", 0, start) + 1 : start]
    begins = str(token) in words("_kernel_item") | words("_declaration")
    labels = _opened(source, token)
    if line.strip() or not begins or not labels or labels[0].span is None:
        return None
    bracket = labels[0].span
    return Diagnostic(
        "E0106",
        f"`{bracket.text}` is not closed before the next line begins",
        bracket,
        label="opened here",
        labels=(Label(_span(source, token), "this line is read as if it stood inside"),),
        help="line ends do not count inside brackets; close it where it should end",
    )


def _span(source: Source, token: Token) -> Span:
    """The place of a token; what is missing behind the last character is shown at it."""
    length = len(source.text)
    start = token.start_pos or 0
    if token.type == "$END" or start >= length:
        start = max(0, len(source.text.rstrip()) - 1)
    end = start + max(1, len(str(token).rstrip("\r\n")))
    return Span(source, start, min(end, length))
