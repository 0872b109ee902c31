"""lark tree -> syntax tree: expressions, and what all builder methods share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lark import Token, Tree

from gdsl.source import Source, Span
from gdsl.syntax import ast

LarkTree = Tree[Token]
Child = Any
"""What lark hands a callback: a token, a node, a tuple of nodes, or None for what was left out."""

_ENDING_IN_A_LINE_END = frozenset({"use", "fn", "rule", "kernel", "schedule", "shapes"})
"""Rules whose last token is a line end or dedent, maybe behind a comment."""


class ExpressionBuilder:
    """Builds the expressions of one source. `build(tree)` dispatches on the rule's name."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._length = len(source.text)

    def build(self, tree: LarkTree | Token | None) -> Child:
        """Return the node (or tuple of nodes) of a tree; tokens and None pass through."""
        if not isinstance(tree, Tree):
            return tree
        method: Callable[[Span, list[Child]], Child] = getattr(self, f"_{tree.data}")
        children = [self.build(child) for child in tree.children]
        end = tree.meta.end_pos
        if tree.data in _ENDING_IN_A_LINE_END:
            end = children[-1].span.end
        return method(self._span(tree.meta.start_pos, end), children)

    def _span(self, start: int, end: int) -> Span:
        return Span(self.source, min(start, self._length), min(end, self._length))

    def _name(self, span: Span, children: list[Child]) -> ast.NameUse:
        return ast.NameUse(str(children[0]), span=span)

    def word(self, token: Token) -> ast.Name:
        """Return the name a token is."""
        start = token.start_pos or 0
        return ast.Name(str(token), span=self._span(start, start + len(token)))

    def all_words(self, children: list[Child]) -> tuple[ast.Name, ...]:
        """Return the names that tokens are."""
        return tuple(self.word(token) for token in children)

    def _number(self, span: Span, children: list[Child]) -> ast.Number:
        (token,) = children
        value = int(token) if token.type == "INT" else float(token)
        return ast.Number(str(token), value, span=span)

    def _binary(self, operator: str, span: Span, children: list[Child]) -> ast.Binary:
        return ast.Binary(operator, children[0], children[1], span=span)

    def _add(self, span: Span, children: list[Child]) -> ast.Binary:
        return self._binary("+", span, children)

    def _subtract(self, span: Span, children: list[Child]) -> ast.Binary:
        return self._binary("-", span, children)

    def _multiply(self, span: Span, children: list[Child]) -> ast.Binary:
        return self._binary("*", span, children)

    def _divide(self, span: Span, children: list[Child]) -> ast.Binary:
        return self._binary("/", span, children)

    def _power(self, span: Span, children: list[Child]) -> ast.Binary:
        return self._binary("**", span, children)

    def _compare(self, span: Span, children: list[Child]) -> ast.Binary:
        left, operator, right = children
        return ast.Binary(operator, left, right, span=span)

    def _comparison(self, span: Span, children: list[Child]) -> str:
        return str(children[0])

    def _negate(self, span: Span, children: list[Child]) -> ast.Negate:
        return ast.Negate(children[0], span=span)

    def _group(self, span: Span, children: list[Child]) -> ast.Group:
        return ast.Group(children[0], span=span)

    def _function_call(self, span: Span, children: list[Child]) -> ast.Call:
        name, axes, arguments = children
        return ast.Call(self.word(name), axes or (), arguments or (), span=span)

    def _arguments(self, span: Span, children: list[Child]) -> tuple[ast.Expr | ast.Keyword, ...]:
        return tuple(children)

    def _keyword_argument(self, span: Span, children: list[Child]) -> ast.Keyword:
        return ast.Keyword(self.word(children[0]), children[1], span=span)

    def _builtin_call(self, span: Span, children: list[Child]) -> ast.Builtin:
        return ast.Builtin(children[0], children[1] or (), span=span)

    def _function(self, span: Span, children: list[Child]) -> ast.Name:
        return self.word(children[0])

    def _reduction(self, span: Span, children: list[Child]) -> ast.Reduction:
        return ast.Reduction(children[0], children[1], children[2], span=span)

    def _reducer(self, span: Span, children: list[Child]) -> ast.Name:
        return self.word(children[0])

    def _index(self, span: Span, children: list[Child]) -> ast.Index:
        return ast.Index(children[0], span=span)

    def _shift(self, span: Span, children: list[Child]) -> ast.Shift:
        return ast.Shift(children[0], children[1], children[2], span=span)

    def _unpack(self, span: Span, children: list[Child]) -> ast.Unpack:
        return ast.Unpack(children[0], children[1], span=span)

    def _rename(self, span: Span, children: list[Child]) -> ast.Rename:
        source, target = self.all_words(children[:2])
        return ast.Rename(source, target, children[2], span=span)

    def _cast(self, span: Span, children: list[Child]) -> ast.Cast:
        return ast.Cast(children[0], children[1], span=span)
