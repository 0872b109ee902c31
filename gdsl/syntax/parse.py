"""Text -> syntax tree."""

from __future__ import annotations

from functools import lru_cache

from lark import Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from gdsl.diagnostics.diagnostic import Diagnostic
from gdsl.errors import CompileError
from gdsl.source import Source
from gdsl.syntax import ast, syntax_errors
from gdsl.syntax.build import Builder
from gdsl.syntax.grammar import parser
from gdsl.syntax.layout import LayoutError

DEEPEST_TREE = 200
"""lark trees deeper than this are refused; an expression of 60 nested terms stays below it."""


@lru_cache(maxsize=64)
def parse(source: Source) -> ast.File:
    """Return the syntax tree of a text: the same tree for the same source.

    Raises CompileError with one diagnostic, the first syntax error.
    """
    tree = _tree(source)
    too_deep = _deeper_than(tree, DEEPEST_TREE)
    if too_deep is not None:
        raise _error(syntax_errors.too_deep(source, too_deep))
    return Builder(source).file(tree)


def _tree(source: Source) -> Tree[Token]:
    tab = source.text.find("\t")
    if tab >= 0:
        raise _error(syntax_errors.tab(source, tab))
    try:
        return parser().parse(source.text)
    except LayoutError as problem:
        raise _error(syntax_errors.layout(source, problem)) from None
    except UnexpectedToken as problem:
        raise _error(syntax_errors.unexpected_token(source, problem)) from None
    except UnexpectedCharacters as problem:
        offset = problem.pos_in_stream or 0
        raise _error(syntax_errors.unexpected_character(source, offset)) from None


def _deeper_than(tree: Tree[Token], limit: int) -> int | None:
    """Return where a subtree that lies deeper than `limit` starts. Without recursion."""
    pending: list[tuple[Tree[Token], int]] = [(tree, 0)]
    while pending:
        node, depth = pending.pop()
        if depth > limit:
            return node.meta.start_pos
        pending.extend((child, depth + 1) for child in node.children if isinstance(child, Tree))
    return None


def _error(diagnostic: Diagnostic) -> CompileError:
    return CompileError(diagnostic.message, (diagnostic,))
