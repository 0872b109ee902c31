"""Line ends and indentation become tokens."""

from __future__ import annotations

from collections.abc import Callable

from gdsl.syntax import ast

Tree = Callable[[str], ast.File]

KERNEL = "kernel k:\n    axes B\n    input x: f32[B]\n    output y: f32[B] = x\n"


def test_a_file_may_lack_its_last_newline(tree: Tree) -> None:
    assert tree(KERNEL) == tree(KERNEL.rstrip("\n"))


def test_comments_and_empty_lines_do_not_count(tree: Tree) -> None:
    commented = KERNEL.replace("\n", "  # note\n\n  # a comment at any column\n")
    assert tree(commented) == tree(KERNEL)


def test_semicolons_separate_items_of_one_line(tree: Tree) -> None:
    joined = "kernel k:\n    axes B;  input x: f32[B];\n    output y: f32[B] = x"
    assert tree(joined) == tree(KERNEL)


def test_line_ends_inside_brackets_do_not_count(tree: Tree) -> None:
    spread = KERNEL.replace("= x", "= (\nx  # here\n      )")
    assert tree(spread) == tree(KERNEL.replace("= x", "= (x)"))


def test_carriage_returns_are_line_ends(tree: Tree) -> None:
    assert tree(KERNEL.replace("\n", "\r\n")) == tree(KERNEL)


def test_any_consistent_indentation(tree: Tree) -> None:
    assert tree(KERNEL.replace("    ", "  ")) == tree(KERNEL)


def test_a_range_mixes_brackets(tree: Tree) -> None:
    kernel = tree(KERNEL.replace("x: f32[B]", "x: f32[B] in (-inf, 0]")).declarations[0]
    assert isinstance(kernel, ast.Kernel)
    item = kernel.items[1]
    assert isinstance(item, ast.Input)
    (limits,) = item.clauses
    assert isinstance(limits, ast.Interval)
    assert (limits.lo, limits.hi) == (float("-inf"), 0.0)
    assert (limits.lo_open, limits.hi_open) == (True, False)


def test_empty_texts(tree: Tree) -> None:
    for text in ("", "\n\n", "# only a comment", "   \n  # indented comment\n"):
        assert tree(text).declarations == ()
