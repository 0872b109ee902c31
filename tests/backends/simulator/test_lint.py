"""The lint: each construct alone, releases, scope, and that clean text is clean."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.isa.versions import VERSIONS
from backends.simulator.lint import lint_file, lint_text
from gdsl.diagnostics.diagnostic import Diagnostic, Severity
from gdsl.errors import UsageError
from gdsl.source import Source

HEADER = """\
from enum import Enum
import math
import nki
import nki.isa as nisa
import nki.language as nl
"""
CLEAN = (
    HEADER
    + """
class Kind(Enum):
    A = 1

class Config(nl.NKIObject):
    size: int = 4

def helper(t, config=None, sizes=(1, 2)):
    if config == None:
        config = Config()
    for i in range(config.size):
        nisa.memset(dst=t[:, i : i + 1], value=float(i), name=f"set_{i}")
    return t

@nki.jit
def kernel(x):
    assert x.shape[0] <= 128, "partitions"
    t = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.sbuf)
    helper(t)
    tiles = []
    tiles.append(t)
    with nl.no_reorder():
        nisa.tensor_copy(dst=tiles[0], src=t, engine=nisa.engine.vector)
    a, b = divmod(7, 2)
    sizes = {"a": a, "b": b}
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=y, src=x)
    return y

def host_code(values):
    try:
        return {v: [w for w in v if w is not None] for v in values}
    except KeyError:
        raise
"""
)


def findings(text: str, version: str | None = None) -> tuple[Diagnostic, ...]:
    return lint_text(Source("k.py", text), version)


def in_kernel(*lines: str) -> str:
    body = "\n".join("    " + line for line in lines)
    return HEADER + f"\n@nki.jit\ndef kernel(x, flag=None):\n{body}\n    return x\n"


@pytest.mark.parametrize("version", [None, *VERSIONS])
def test_clean_text_is_clean_in_every_release(version: str | None) -> None:
    assert findings(CLEAN, version) == ()


@pytest.mark.parametrize(
    ("lines", "code", "error"),
    [
        (("y = [i for i in range(3)]",), "S601", False),
        (("y = {i: 1 for i in range(3)}",), "S601", False),
        (("y = {i for i in range(3)}",), "S601", True),
        (("y = tuple(i for i in range(3))",), "S601", True),
        (("f = lambda a: a",), "S601", False),
        (("y = {1, 2}",), "S601", True),
        (("if flag is None: pass",), "S601", False),
        (("if flag is x: pass",), "S601", True),
        (("try: pass", "except KeyError: pass"), "S601", True),
        (("raise ValueError('no')",), "S601", True),
        (("with open('f'): pass",), "S601", False),
        (("global y",), "S601", True),
        (("import math",), "S601", False),
        (("del x",), "S601", False),
        (("if (y := 1): pass",), "S601", True),
        (("y = {1: 2}",), "S601", True),
        (("match flag:", "    case None: pass"), "S601", True),
        (("nisa.dma_copy(dst=x, src=x, dge_mode=3)",), "S601", True),
        (("y = nl.ndarray((1, 1), nl.float32, buffer='sbuf')",), "S601", True),
        (("def inner(a, *, b): return a",), "S601", True),
        (("def inner(a=[]): return a",), "S601", True),
        (("def inner(a): return a",), "S602", False),
        (("def inner(*args): return args",), "S602", False),
        (("y = sorted((2, 1))",), "S602", False),
        (("assert flag",), "S602", False),
        (("x[...] = 0",), "S602", False),
        (("y = [0, 0]", "y[0], y[1] = 1, 2"), "S602", False),
        (("y = 1j",), "S602", False),
        (("nl.arange(4)",), "S603", True),
        (("nl.dynamic_range(4)",), "S603", True),
        (("nl.fori_loop(0, 4, x)",), "S603", True),
        (("nl.affine_range(4)",), "S603", False),
        (("nl.zeroes((1, 1), nl.float32)",), "S603", True),
        (("nisa.memclear(x)",), "S603", True),
        (("nisa.tensor_copy(dst=x, src=x, dtype=nl.float32)",), "S603", True),
        (("x.permute((1, 0))",), "S603", False),
        (("r = nisa.register_alloc(1)", "while r: pass"), "S603", True),
    ],
)
def test_construct(lines: tuple[str, ...], code: str, error: bool) -> None:
    found = findings(in_kernel(*lines))
    assert found, "not found"
    first = next(diagnostic for diagnostic in found if diagnostic.code == code)
    assert (first.severity is Severity.ERROR) == error
    assert first.span is not None
    assert first.span.line >= 9


@pytest.mark.parametrize(
    ("lines", "absent"),
    [
        (("nl.fori_loop(0, 4, x)",), {"0.3", "0.4", "0.5"}),
        (("nl.dynamic_range(4)",), {"0.7"}),
        (("nisa.topk(x, x, x, 4)",), {"0.3", "0.4", "0.5"}),
        (("nisa.activate2(x, nl.exp, x, 1.0, 0.0, nl.multiply, nl.add)",), {"0.3"}),
    ],
)
def test_releases_differ(lines: tuple[str, ...], absent: set[str]) -> None:
    text = in_kernel(*lines)
    errors = {
        version
        for version in VERSIONS
        if any(found.severity is Severity.ERROR for found in findings(text, version))
    }
    assert errors == absent


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("import neuronxcc.nki as nki", "S603"),
        ("from neuronxcc.nki.language import add", "S603"),
        (HEADER + "P = nl.tile_size.pmax", "S602"),
        (HEADER + "@nki.jit(platform_target='trn2')\ndef kernel(x): return x", "S603"),
        (HEADER + "class C:\n    pass\n\n@nki.jit\ndef kernel(x): return C()", "S601"),
        (HEADER + "class C(nl.NKIObject):\n    @property\n    def a(self): return 1\n", "S602"),
        (HEADER + "@nki.jit\ndef f(x): return x\n\n@nki.jit\ndef g(x): return f(x)\n", "S602"),
        (HEADER + "@math.ceil\ndef helper(x): return x\n", "S602"),
        ("def broken(:", "S601"),
    ],
)
def test_outside_function_bodies(text: str, code: str) -> None:
    assert code in {found.code for found in findings(text)}


def test_loop_bodies_may_be_nested() -> None:
    text = in_kernel("def body(i): nisa.memset(dst=x, value=0.0)", "nl.fori_loop(0, 4, body)")
    assert findings(text, "0.6") == ()


def test_names_follow_the_files_own_import_names() -> None:
    text = "import nki\nfrom nki import language as L\nfrom nki.isa import memset as put\n"
    text += "@nki.jit\ndef kernel(x):\n    put(x, values=1)\n    L.arange(3)\n    return x\n"
    messages = " ".join(found.message for found in findings(text))
    assert "`nisa.memset` has no argument `values`" in messages
    assert "`nl.arange`" in messages


def test_files_and_releases_that_do_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.py"):
        lint_file(tmp_path / "none.py")
    path = tmp_path / "k.py"
    path.write_text(CLEAN, encoding="utf-8")
    assert lint_file(path, "0.6") == ()
    with pytest.raises(UsageError, match=r"`0\.8`"):
        lint_file(path, "0.8")
