"""Emitted texts have no dead lines: functions are called, constants read, nothing stands twice."""

from __future__ import annotations

import ast
import builtins
from itertools import pairwise

import pytest

import gdsl
from gdsl.errors import CompileError
from gdsl.library import library_kernels

NOT_EMITTED = {"delta_product_fwd", "rwkv7_fwd"}
IMPORTED = {"nki", "nisa", "nl"}


def _module(name: str, **settings: str | int) -> ast.Module:
    return ast.parse(gdsl.compile(gdsl.load(name), target="trn2", settings=settings).text)


def _read(tree: ast.AST) -> set[str]:
    nodes = (n for n in ast.walk(tree) if isinstance(n, ast.Name))
    return {n.id for n in nodes if isinstance(n.ctx, ast.Load)}


def _check(module: ast.Module) -> None:
    functions = [n for n in module.body if isinstance(n, ast.FunctionDef)]
    helpers = {f.name for f in functions if not f.decorator_list}
    constants = {n.id for s in module.body if isinstance(s, ast.Assign) for n in _targets(s)}
    assert helpers | constants <= _read(module)
    for function in functions:
        stored = (n for n in ast.walk(function) if isinstance(n, ast.Name))
        bound = {n.id for n in stored if isinstance(n.ctx, ast.Store)}
        bound |= {argument.arg for argument in function.args.args}
        assert _read(function) <= bound | helpers | constants | IMPORTED | set(dir(builtins))
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.For | ast.If | ast.While):
            for first, second in pairwise(node.body):
                assert not isinstance(first, ast.Assign) or ast.dump(first) != ast.dump(second)


def _targets(statement: ast.Assign) -> list[ast.Name]:
    return [t for t in statement.targets if isinstance(t, ast.Name)]


@pytest.mark.parametrize("kernel", library_kernels())
def test_library_kernels(kernel: str) -> None:
    if kernel in NOT_EMITTED:
        with pytest.raises(CompileError):
            _module(kernel)
    else:
        _check(_module(kernel))


@pytest.mark.parametrize("kernel", ["gdn_prefill", "kda_cte_bounded", "comba_fwd"])
@pytest.mark.parametrize("settings", [{"inverse": "neumann"}, {"chunk": 32}])
def test_other_ways_to_invert_a_chunk(kernel: str, settings: dict[str, str | int]) -> None:
    _check(_module(kernel, **settings))
