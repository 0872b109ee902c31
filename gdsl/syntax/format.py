"""`gdsl fmt`: the canonical layout of a text.

One declaration a line, four spaces a level, one blank line around blocks and never two in a row.
Lines that are too long are broken at the brackets of a run, a call line, a rule's head or the
outermost call. Comments stay with the line they stand above or behind. Formatting never changes the
syntax tree, and formatting twice changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from attrs import define, field, frozen

from gdsl.source import Source, Span
from gdsl.syntax import ast, printer
from gdsl.syntax.parse import parse

WIDTH = 100
INDENT = "    "
_TEXTS_AND_COMMENTS = re.compile(r'"""(?:[^"]|"(?!""))*"""|"[^"\n]*"|#[^\n]*')


def format_source(source: Source) -> str:
    """Return the canonical layout of a source. Raises CompileError when it does not parse."""
    return _Formatter(source, _comments(source)).file(parse(source))


@frozen
class _Comment:
    line: int
    column: int
    text: str
    alone: bool
    """Nothing else stands on its line."""


def _comments(source: Source) -> list[_Comment]:
    found: list[_Comment] = []
    for match in _TEXTS_AND_COMMENTS.finditer(source.text):
        if match.group().startswith("#"):
            line, column = source.line_column(match.start())
            before = source.line_text(line)[: column - 1]
            found.append(_Comment(line, column, match.group().rstrip(), not before.strip()))
    return found


@define
class _Formatter:
    source: Source
    comments: list[_Comment]
    lines: list[str] = field(factory=list)
    last: int = 0
    """Line of the source that was written last."""

    def file(self, node: ast.File) -> str:
        """Return the whole text."""
        if node.doc is not None:
            self._item(_doc_text(node.doc), node.doc.span, 0, blank=False)
        previous: ast.Declaration | None = None
        for position, declaration in enumerate(node.declarations):
            apart = previous is not None and (_has_block(declaration) or _has_block(previous))
            self._head(declaration, apart)
            following = node.declarations[position + 1 : position + 2]
            if _has_block(declaration):
                self._block(declaration, following[0].span.line if following else None)
            previous = declaration
        self._comments_above(None, 0)
        return "\n".join(self.lines) + "\n" if self.lines else ""

    def _head(self, node: ast.Declaration, apart: bool) -> None:
        text = _broken(printer.head(node), node, 0)
        self._item(text, _head_span(node), 0, blank=True if apart else None)

    def _block(self, node: ast.Declaration, end: int | None) -> None:
        """Write what is indented under a declaration; the next one starts at line `end`."""
        blank: bool | None = False
        if isinstance(node, ast.Kernel | ast.Rule) and node.doc is not None:
            self._item(_doc_text(node.doc), node.doc.span, 1, blank)
        for part in _parts(node):
            text = (
                printer.setting(part)
                if isinstance(part, ast.Setting | ast.Shape)
                else _broken(printer.item(part), part, 1)
            )
            self._item(text, part.span, 1, blank)
            blank = None
        self._comments_above(end, 1, indented=True)

    def _item(self, text: str, span: Span, level: int, blank: bool | None) -> None:
        """Write a piece with the comments that belong to it.

        `blank`: whether an empty line stands before it and its comments; None keeps what the source
        has.
        """
        start = span.line
        end = self.source.line_column(max(span.start, span.end - 1))[0]
        if self._comments_above(start, level, blank=blank):
            blank = None
        self._gap(start, blank)
        here = [c for c in self.comments if start <= c.line <= end]
        behind = [c for c in here if c.line == end and not c.alone]
        for comment in here:
            if comment not in behind:
                self._write(comment.text, level)
            self.comments.remove(comment)
        tail = "".join(f"  {comment.text}" for comment in behind)
        self._write(text + tail, level)
        self.last = max(self.last, end)

    def _comments_above(
        self, line: int | None, level: int, *, blank: bool | None = None, indented: bool = False
    ) -> bool:
        """Write the comments that stand before a line (None: all that are left).

        `indented`: only those that still belong to the block before it. Returns whether any did.
        """
        written = False
        for comment in list(self.comments):
            if line is not None and comment.line >= line:
                break
            if indented and comment.column == 1:
                break
            self._gap(comment.line, None if written else blank)
            self._write(comment.text, level)
            self.comments.remove(comment)
            self.last = comment.line
            written = True
        return written

    def _gap(self, line: int, blank: bool | None) -> None:
        if not self.lines:
            return
        wanted = line > self.last + 1 if blank is None else blank
        if wanted and self.lines[-1]:
            self.lines.append("")

    def _write(self, text: str, level: int) -> None:
        first, *rest = text.split("\n")
        self.lines.append(f"{INDENT * level}{first}".rstrip())
        self.lines.extend(rest)


def _has_block(node: ast.Declaration) -> bool:
    return not isinstance(node, ast.Use | ast.Fn)


def _parts(
    node: ast.Declaration,
) -> Sequence[ast.KernelItem | ast.Setting | ast.Shape]:
    match node:
        case ast.Kernel(items=items):
            return items
        case ast.Rule(body=body):
            return body
        case ast.Schedule(settings=settings):
            return settings
        case ast.Shapes(shapes=shapes):
            return shapes
        case _:
            return ()


def _head_span(node: ast.Declaration) -> Span:
    """The lines of a declaration that are not its block."""
    if not _has_block(node):
        return node.span
    inner: Iterable[ast.Node] = _parts(node)
    if isinstance(node, ast.Kernel | ast.Rule) and node.doc is not None:
        inner = (node.doc, *inner)
    first = min(part.span.start for part in inner)
    text = node.span.source.text
    end = text.rfind(":", node.span.start, first) + 1
    return Span(node.span.source, node.span.start, end)


def _doc_text(node: ast.Doc) -> str:
    return f"{node.quotes}{node.text}{node.quotes}"


def _broken(text: str, node: ast.Node, level: int) -> str:
    """Return a line, broken at its outermost brackets when it is too long."""
    if len(text) + len(INDENT) * level <= WIDTH:
        return text
    parts = _pieces(node)
    if parts is None:
        return text
    before, inside, after = parts
    outer, inner = INDENT * level, INDENT * (level + 1)
    lines = [inner]
    for position, piece in enumerate(inside):
        word = piece if position == len(inside) - 1 else f"{piece},"
        if len(lines[-1]) + len(word) > WIDTH and lines[-1] != inner:
            lines.append(inner)
        lines[-1] += word if lines[-1] == inner else f" {word}"
    return "\n".join((before, *lines, f"{outer}{after}"))


def _pieces(node: ast.Node) -> tuple[str, list[str], str] | None:
    """What stands before, inside and behind the brackets at which a line is broken."""
    match node:
        case ast.Step() | ast.Scan():
            inside = [printer.expression(each) for each in node.call.arguments]
            return f"{printer.run_head(node)}(", inside, ")"
        case ast.CallLine():
            inside = [printer.call_argument(each) for each in node.arguments]
            return "call (", inside, f") -> {printer.names(node.returns)}"
        case ast.Rule():
            head = printer.head(node)
            opening = head.index("(") + 1
            closing = head.rindex(")")
            return (
                head[:opening],
                [printer.rule_param(each) for each in node.params],
                head[closing:],
            )
        case ast.Let(targets=targets, value=ast.Call() as call):
            left = f"{printer.names(targets)} = {call.function.text}{printer.brackets(call.axes)}("
            return left, [printer.expression(each) for each in call.arguments], ")"
        case _:
            return None
