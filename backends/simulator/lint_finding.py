"""One finding of the lint, by line and column."""

from __future__ import annotations

import ast

from attrs import frozen


@frozen
class Finding:
    """What is wrong where; `end` 0 means to the end of the line."""

    code: str
    line: int
    column: int
    end: int
    message: str
    help: str | None = None
    error: bool = True


def at(
    node: ast.AST, code: str, message: str, help: str | None = None, *, error: bool = True
) -> Finding:
    """Return a finding at a syntax node; a node of several lines is marked on its first."""
    line = getattr(node, "lineno", 1)
    one_line = getattr(node, "end_lineno", line) == line
    end = getattr(node, "end_col_offset", 0) if one_line else 0
    return Finding(code, line, getattr(node, "col_offset", 0), end, message, help, error)
