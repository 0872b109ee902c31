"""The Python subset of NKI kernels, construct by construct."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from attrs import frozen

from backends.simulator.lint_finding import Finding, at
from backends.simulator.lint_scope import Aliases, Function, KernelParts, is_jit


@frozen
class _Rule:
    """What is wrong with a construct, what to write instead, and whether the guide says so."""

    message: str
    help: str
    error: bool = True


_LOOP = "write a `for` loop"
_RULES: dict[type[ast.AST], _Rule] = {
    ast.ListComp: _Rule("list comprehension in kernel code", _LOOP, error=False),
    ast.SetComp: _Rule("set comprehension in kernel code", _LOOP),
    ast.DictComp: _Rule("dict comprehension in kernel code", _LOOP, error=False),
    ast.GeneratorExp: _Rule("generator expression in kernel code", _LOOP),
    ast.Lambda: _Rule("lambda in kernel code", "write a `def`", error=False),
    ast.Set: _Rule("set in kernel code", "use a tuple"),
    ast.Try: _Rule("`try` in kernel code: there are no exceptions", "test with `if`"),
    ast.Raise: _Rule(
        "`raise` in kernel code: there are no exceptions", "use `assert` with a message"
    ),
    ast.Global: _Rule("`global` in kernel code", "pass the value as an argument"),
    ast.Nonlocal: _Rule("`nonlocal` in kernel code", "pass the value as an argument"),
    ast.Yield: _Rule("`yield` in kernel code", "return a tuple"),
    ast.YieldFrom: _Rule("`yield from` in kernel code", "return a tuple"),
    ast.Await: _Rule("`await` in kernel code", "kernels are sequential"),
    ast.AsyncFunctionDef: _Rule("`async def` in kernel code", "write a plain `def`"),
    ast.Match: _Rule("`match` in kernel code", "use `if` and `elif`"),
    ast.NamedExpr: _Rule("`:=` in kernel code", "assign on a line of its own"),
    ast.Delete: _Rule("`del` in kernel code", "let the name go out of use", error=False),
    ast.Import: _Rule("import inside kernel code", "import at the top of the file", error=False),
    ast.ImportFrom: _Rule(
        "import inside kernel code", "import at the top of the file", error=False
    ),
}
_BUILTINS = (
    "sum",
    "abs",
    "sorted",
    "map",
    "filter",
    "any",
    "all",
    "set",
    "frozenset",
    "eval",
    "exec",
)
_ENUM_ARGUMENTS = (
    "engine", "dge_mode", "oob_mode", "reduce_cmd", "perf_mode", "dma_engine",
)  # fmt: skip
_CLASS_METHODS = ("__init__", "__post_init__", "__call__", "__eq__")
_CLASS_DECORATORS = ("property", "classmethod")


def module_findings(tree: ast.Module, aliases: Aliases) -> Iterator[Finding]:
    """Yield findings about imports and values computed when the module is imported."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            names = [item.name for item in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            names = []
        for name in names:
            if name.partition(".")[0] == "neuronxcc":
                yield at(
                    node,
                    "S603",
                    f"`{name}` was removed in NKI 0.4",
                    "import `nki`, `nki.isa`, `nki.language`",
                )
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for inner in ast.walk(node.value):
                dotted = aliases.dotted(inner)
                if dotted is not None and dotted.startswith("nl.tile_size."):
                    yield at(
                        inner,
                        "S602",
                        f"`{dotted}` is -1 while a module is imported",
                        "read it inside the kernel, or write the number",
                        error=False,
                    )


def function_findings(
    function: Function, aliases: Aliases, parts: KernelParts
) -> Iterator[Finding]:
    """Yield findings about one kernel function or helper, nested functions included."""
    loop_bodies = _loop_bodies(function, aliases)
    yield from _signature(function)
    for decorator in function.decorator_list:
        if not is_jit(decorator, aliases):
            yield at(
                decorator, "S602", "decorator on kernel code", "call the function", error=False
            )
    registers = _register_names(function, aliases)
    for node in ast.walk(function):
        if node is function:
            continue
        rule = _RULES.get(type(node))
        if rule is not None:
            yield at(node, "S601", rule.message, rule.help, error=rule.error)
        match node:
            case ast.FunctionDef():
                yield from _signature(node)
                if node.name not in loop_bodies:
                    yield at(
                        node,
                        "S602",
                        f"nested function `{node.name}` that is no device-loop body",
                        "define it at the top of the file",
                        error=False,
                    )
            case ast.Compare():
                yield from _identity(node)
            case ast.With():
                yield from _with(node, aliases)
            case ast.Assert(msg=None):
                yield at(node, "S602", "`assert` without a message", "add one", error=False)
            case ast.While(test=ast.Name(id=name)) if name in registers:
                yield at(
                    node,
                    "S603",
                    f"`while {name}` on a register was deprecated in 0.6 and removed in 0.7",
                    "use `nl.while_loop`",
                )
            case ast.Dict():
                yield from _keys(node)
            case ast.Constant(value=bytes() | complex()):
                yield at(node, "S602", "bytes or complex literal in kernel code", error=False)
            case ast.Assign(targets=[ast.Tuple(elts=places)]):
                for place in places:
                    if isinstance(place, ast.Subscript):
                        yield at(
                            place,
                            "S602",
                            "subscript as target of an unpacking assignment",
                            "unpack into names first",
                            error=False,
                        )
            case ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value=v))]) if v is ...:
                yield at(
                    node,
                    "S602",
                    "`tensor[...] = value` has no documented meaning",
                    "use an instruction with `dst=`",
                    error=False,
                )
            case ast.Call():
                yield from _call(node, aliases, parts)
            case _:
                pass


def _signature(function: Function) -> Iterator[Finding]:
    arguments = function.args
    for default in (*arguments.defaults, *arguments.kw_defaults):
        if isinstance(default, ast.List | ast.Set | ast.Dict):
            yield at(default, "S601", "mutable default argument", "use a tuple")
    if arguments.kwonlyargs and arguments.vararg is None:
        yield at(
            arguments.kwonlyargs[0],
            "S601",
            "keyword-only marker `*` in a signature",
            "drop the `*`",
        )
    for extra, stars in ((arguments.vararg, "*"), (arguments.kwarg, "**")):
        if extra is not None:
            yield at(
                extra, "S602", f"`{stars}{extra.arg}` in a signature", "name them", error=False
            )


def _identity(node: ast.Compare) -> Iterator[Finding]:
    sides = (node.left, *node.comparators)
    for op, right in zip(node.ops, node.comparators, strict=True):
        if isinstance(op, ast.Is | ast.IsNot):
            with_none = any(isinstance(s, ast.Constant) and s.value is None for s in sides)
            sign = "==" if isinstance(op, ast.Is) else "!="
            yield at(
                right,
                "S601",
                "`is` in kernel code" + (" (shipped kernels do it with None)" if with_none else ""),
                f"use `{sign}`",
                error=not with_none,
            )


def _with(node: ast.With, aliases: Aliases) -> Iterator[Finding]:
    for item in node.items:
        call = item.context_expr
        if not (isinstance(call, ast.Call) and aliases.dotted(call.func) == "nl.no_reorder"):
            yield at(node, "S601", "`with` other than `with nl.no_reorder()`", error=False)


def _keys(node: ast.Dict) -> Iterator[Finding]:
    for key in node.keys:
        if isinstance(key, ast.Constant) and not isinstance(key.value, str):
            yield at(key, "S601", f"dict key `{key.value!r}` is no string", "use strings as keys")


def _call(node: ast.Call, aliases: Aliases, parts: KernelParts) -> Iterator[Finding]:
    if isinstance(node.func, ast.Name):
        name = node.func.id
        if name in _BUILTINS and name not in aliases.names:
            yield at(node, "S602", f"builtin `{name}` in kernel code", _LOOP, error=False)
        if name in parts.kernels:
            yield at(
                node,
                "S602",
                f"call of the `@nki.jit` kernel `{name}` inside a kernel",
                "call an undecorated function",
                error=False,
            )
    for keyword in node.keywords:
        value = keyword.value
        constant = value.value if isinstance(value, ast.Constant) else None
        if keyword.arg in _ENUM_ARGUMENTS and type(constant) is int:
            yield at(
                value,
                "S601",
                f"`{keyword.arg}` takes a member of an enumeration, not {constant}",
                f"pass a member of `nisa.{keyword.arg}`",
            )
        if keyword.arg == "buffer" and isinstance(constant, str):
            yield at(value, "S601", "`buffer` takes an object, not a string", f"nl.{constant}")


def _loop_bodies(function: Function, aliases: Aliases) -> frozenset[str]:
    """Return the names handed to `nl.fori_loop` and `nl.while_loop`."""
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and aliases.dotted(node.func) in (
            "nl.fori_loop",
            "nl.while_loop",
        ):
            values = (*node.args, *(keyword.value for keyword in node.keywords))
            found.update(value.id for value in values if isinstance(value, ast.Name))
    return frozenset(found)


def _register_names(function: Function, aliases: Aliases) -> frozenset[str]:
    """Return the names bound to `nisa.register_alloc(...)`."""
    return frozenset(
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and aliases.dotted(node.value.func) == "nisa.register_alloc"
        for target in node.targets
        if isinstance(target, ast.Name)
    )


def class_findings(node: ast.ClassDef, aliases: Aliases) -> Iterator[Finding]:
    """Yield findings about a class that kernels use."""
    bases = [aliases.dotted(base) or ast.unparse(base) for base in node.bases]
    if any(base.rpartition(".")[2] in ("Enum", "IntEnum", "Protocol") for base in bases):
        return
    if bases != ["nl.NKIObject"]:
        yield at(
            node,
            "S601",
            f"class `{node.name}` in kernel code does not inherit from `nl.NKIObject` alone",
            f"write `class {node.name}(nl.NKIObject):`",
        )
    for item in node.body:
        if not isinstance(item, ast.FunctionDef):
            continue
        if item.name.startswith("__") and item.name not in _CLASS_METHODS:
            yield at(item, "S602", f"method `{item.name}` in kernel code", error=False)
        for decorator in item.decorator_list:
            if isinstance(decorator, ast.Name) and decorator.id in _CLASS_DECORATORS:
                yield at(decorator, "S602", f"`@{decorator.id}` in kernel code", error=False)
