"""Texts become trees: precedence, spans, every construct."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest

from gdsl.source import Source
from gdsl.syntax import ast
from gdsl.syntax.parse import parse

Tree = Callable[[str], ast.File]


def shape(node: ast.Expr) -> str:
    """An expression with every operation in parentheses."""
    match node:
        case ast.Binary():
            return f"({shape(node.left)} {node.operator} {shape(node.right)})"
        case ast.Negate():
            return f"(-{shape(node.operand)})"
        case ast.Group():
            return shape(node.inner)
        case ast.Number():
            return node.text
        case ast.NameUse():
            return node.name
        case _:
            return node.span.text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b * c", "(a + (b * c))"),
        ("a - b - c", "((a - b) - c)"),
        ("a / b * c", "((a / b) * c)"),
        ("-a ** b", "(-(a ** b))"),
        ("a ** -b", "(a ** (-b))"),
        ("a ** b ** c", "(a ** (b ** c))"),
        ("-a * b", "((-a) * b)"),
        ("a * -b", "(a * (-b))"),
        ("(a + b) * c", "((a + b) * c)"),
        ("1 - 2 ** (-5 - x)", "(1 - (2 ** ((-5) - x)))"),
        ("K ** -0.5 * q", "((K ** (-0.5)) * q)"),
        ("a + b <= c * d", "((a + b) <= (c * d))"),
    ],
)
def test_precedence(tree: Tree, text: str, expected: str) -> None:
    (fn,) = tree(f"fn f(x) = {text}").declarations
    assert isinstance(fn, ast.Fn)
    assert shape(fn.body) == expected


def nodes(value: Any) -> Iterator[ast.Node]:
    if isinstance(value, ast.Node):
        yield value
        for field in attrs.fields(type(value)):
            yield from nodes(getattr(value, field.name))
    elif isinstance(value, tuple):
        for item in value:
            yield from nodes(item)


def test_every_node_of_the_library_has_an_exact_span(library_file: Source) -> None:
    for node in nodes(parse(library_file)):
        text = node.span.text
        assert node.span.source is library_file
        if not isinstance(node, ast.File):
            assert text
            assert text == text.strip()
        if isinstance(node, ast.Name | ast.NameUse | ast.AxisDim):
            name = node.text if isinstance(node, ast.Name) else node.name
            assert text == name


def test_spans_of_statements(tree: Tree) -> None:
    text = (
        "kernel k:\n"
        "    o, S = scan[T < n every 4 -> P] r[A, B](x, S)  # why\n"
        '    output y: f32[(A B), 1] = o  "doc"\n'
    )
    (kernel,) = tree(text).declarations
    assert isinstance(kernel, ast.Kernel)
    scan, output = kernel.items
    assert isinstance(scan, ast.Scan)
    assert scan.span.text == "o, S = scan[T < n every 4 -> P] r[A, B](x, S)"
    assert scan.call.span.text == "r[A, B](x, S)"
    assert scan.every is not None
    assert scan.every.span.text == "every 4 -> P"
    assert isinstance(output, ast.Output)
    assert output.tensor is not None
    assert [dim.span.text for dim in output.tensor.dims] == ["(A B)", "1"]
    assert output.doc is not None
    assert output.doc.text == "doc"
    assert kernel.span.text.endswith('"doc"')


def test_declarations(tree: Tree) -> None:
    text = (
        '"""About the file."""\n'
        'use a, "b/c.gdn"\n'
        "fn f[D](x, eps = 1e-6) = x\n"
        "rule r[K](q[K], decay[K?], state S[K]) -> o:\n    S = q\n    o = q\n"
        "schedule k on trn2, trn3:\n    chunk = 64\n    operands = input\n    reads = bf16\n"
        "    scale = -1.5\n    on_chip = true\n"
        "shapes k:\n    small = {B: 1, K: 2}\n"
    )
    file = tree(text)
    assert file.doc is not None
    assert file.doc.text == "About the file."
    use, fn, rule, schedule, shapes = file.declarations
    assert isinstance(use, ast.Use)
    assert [(lib.name, lib.quoted) for lib in use.libraries] == [("a", False), ("b/c.gdn", True)]
    assert isinstance(fn, ast.Fn)
    assert [param.default is None for param in fn.params] == [True, False]
    assert isinstance(rule, ast.Rule)
    assert [(p.name.text, p.is_state) for p in rule.params] == [
        ("q", False),
        ("decay", False),
        ("S", True),
    ]
    assert rule.params[1].axes[0].optional
    assert isinstance(schedule, ast.Schedule)
    values = [
        s.value.text if isinstance(s.value, ast.Name) else s.value.value for s in schedule.settings
    ]
    assert values == [64, "input", "bf16", -1.5, True]
    assert isinstance(shapes, ast.Shapes)
    assert [(s.axis.text, s.value) for s in shapes.shapes[0].sizes] == [("B", 1), ("K", 2)]


def test_states(tree: Tree) -> None:
    text = (
        "kernel k:\n"
        "    state A: f32[B] = a inplace or zeros\n"
        "    state B: X[N, K] = pool[N at read -> write] inplace or zeros unless fresh\n"
        "    state C: f32[B, P] = states[P at accepted]\n"
    )
    (kernel,) = tree(text).declarations
    assert isinstance(kernel, ast.Kernel)
    plain, pool, stored = kernel.items
    assert isinstance(plain, ast.State)
    assert isinstance(plain.initial, ast.Argument)
    assert [type(clause) for clause in plain.clauses] == [ast.Inplace, ast.OrZeros]
    assert isinstance(pool, ast.State)
    assert isinstance(pool.initial, ast.Slots)
    assert (pool.initial.axis.text, pool.initial.write.text) == ("N", "write")
    assert isinstance(pool.clauses[2], ast.Unless)
    assert isinstance(stored, ast.State)
    assert isinstance(stored.initial, ast.Accepted)


def test_call_line(tree: Tree) -> None:
    (kernel,) = tree("kernel k:\n    call (q, a = inverse, m = ignored) -> out, S\n").declarations
    assert isinstance(kernel, ast.Kernel)
    (call,) = kernel.items
    assert isinstance(call, ast.CallLine)
    seen = [(a.name.text, a.key.text if a.key else None, a.ignored) for a in call.arguments]
    assert seen == [("q", None, False), ("a", "inverse", False), ("m", None, True)]
    assert [name.text for name in call.returns] == ["out", "S"]
