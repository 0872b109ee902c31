"""Which parts of a file are kernel code, and what its import names stand for."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from attrs import frozen

Function = ast.FunctionDef | ast.AsyncFunctionDef

_SHORT = {"nki.language": "nl", "nki.isa": "nisa", "nki": "nki", "nki.collectives": "ncc"}


@frozen
class Aliases:
    """Names of a module that stand for NKI: local name to `nki`, `nl`, `nisa`, `nl.add`, ..."""

    names: Mapping[str, str]

    @classmethod
    def of(cls, tree: ast.Module) -> Aliases:
        """Read a module's imports."""
        names: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for item in node.names:
                    if item.name in _SHORT and (item.asname or item.name == "nki"):
                        names[item.asname or item.name] = _SHORT[item.name]
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                for item in node.names:
                    whole = f"{node.module}.{item.name}"
                    local = item.asname or item.name
                    if whole in _SHORT:
                        names[local] = _SHORT[whole]
                    elif node.module in _SHORT:
                        names[local] = f"{_SHORT[node.module]}.{item.name}"
        return cls(names)

    def dotted(self, node: ast.AST) -> str | None:
        """Return `nisa.tensor_copy` for such an expression, None for what is not NKI."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id)
        if isinstance(node, ast.Attribute):
            base = self.dotted(node.value)
            if base is None:
                return None
            joined = f"{base}.{node.attr}"
            return {"nki.language": "nl", "nki.isa": "nisa"}.get(joined, joined)
        return None


@frozen
class KernelParts:
    """Functions and classes that the compiler sees, and which of them are `@nki.jit` kernels."""

    functions: tuple[Function, ...]
    classes: tuple[ast.ClassDef, ...]
    kernels: frozenset[str]


def is_jit(node: ast.expr, aliases: Aliases) -> bool:
    """Whether a decorator is `nki.jit`, bare or called."""
    return aliases.dotted(node.func if isinstance(node, ast.Call) else node) == "nki.jit"


def kernel_parts(tree: ast.Module, aliases: Aliases) -> KernelParts:
    """Return what kernels of the file reach by name; without a kernel, everything at the top."""
    functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    classes = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef)}
    kernels = frozenset(
        name
        for name, node in functions.items()
        if any(is_jit(decorator, aliases) for decorator in node.decorator_list)
    )
    reached = set(_reachable(kernels, functions, classes)) if kernels else {*functions, *classes}
    return KernelParts(
        tuple(node for name, node in functions.items() if name in reached),
        tuple(node for name, node in classes.items() if name in reached),
        kernels,
    )


def _reachable(
    start: frozenset[str],
    functions: Mapping[str, ast.FunctionDef],
    classes: Mapping[str, ast.ClassDef],
) -> Iterator[str]:
    """Yield the names of functions and classes that `start` mentions, directly or not."""
    seen: set[str] = set()
    waiting = list(start)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        yield name
        node: ast.AST = functions[name] if name in functions else classes[name]
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and (inner.id in functions or inner.id in classes):
                waiting.append(inner.id)
