"""Any tree of attrs nodes as indented text (`--emit ast`). Spans are shown as line:column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import fields, has

from gdsl.source import Span


def tree_text(node: Any) -> str:
    """Return one line per node or leaf, children indented under the field they belong to."""
    return "\n".join(_lines("", node, "")) + "\n"


def _lines(label: str, value: Any, indent: str) -> Iterator[str]:
    head = f"{indent}{label}: " if label else indent
    if isinstance(value, tuple | list):
        if not value or not any(_is_node(item) or isinstance(item, tuple) for item in value):
            yield f"{head}{value!r}"
            return
        yield head.rstrip()
        for item in value:
            yield from _lines("-", item, indent + "  ")
    elif _is_node(value):
        yield f"{head}{type(value).__name__}{_place(value)}"
        for field in fields(type(value)):
            child = getattr(value, field.name)
            if not isinstance(child, Span):
                yield from _lines(field.name, child, indent + "  ")
    else:
        yield f"{head}{value!r}"


def _is_node(value: Any) -> bool:
    return has(type(value)) and not isinstance(value, Span)


def _place(node: Any) -> str:
    span = getattr(node, "span", None)
    return f"  @{span.line}:{span.column}" if isinstance(span, Span) else ""
