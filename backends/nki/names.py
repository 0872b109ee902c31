"""Names of a kernel's text that the emitted text needs for itself, and how both keep theirs.

Inside of a schedule a tensor or an axis goes by the name that the text gives it, beside the
schedule's own (`rows`, `keys`, `team`). Which those are is found, not listed: the kernel is emitted
once with every name marked, and what is then there without a mark is the schedule's. A name of the
text that is among them gets another inside. Arguments keep theirs in the call: the kernel begins
with `rows_given = rows`.
"""

from __future__ import annotations

import ast
import keyword
from collections.abc import Callable, Mapping
from typing import Any

import attrs
from attrs import evolve, frozen

from backends.nki.emit.module import Entry, module_text
from backends.nki.program.nodes import Program, Rebind
from backends.nki.refusal import refuse
from gdsl.algorithm.plan import Plan
from gdsl.ir.kernel import CallArgument, Kernel
from gdsl.source import Span

MARK = "0q0"
"""No name of a schedule holds it."""
KEPT = {
    ("Apply", "operator"),
    ("CallArgument", "role"),
    ("DtypeVar", "name"),
    ("Exposed", "default"),
    ("Exposed", "key"),
    ("Inverse", "name"),
    ("Kernel", "name"),
    ("Param", "kind"),
    ("Plan", "form"),
    ("Reduce", "operator"),
    ("Resolved", "key"),
    ("Resolved", "origin"),
    ("Resolved", "value"),
    ("Rule", "name"),
    ("Score", "name"),
}
"""Text in the nodes of a plan that is no name of the kernel's."""
MODULES = {"nki", "nisa", "nl"}
KEPT_FIELDS = {"span", "doc", "why"}

Emit = Callable[[Plan], Program]


@frozen(eq=False)
class Settled:
    """A plan whose names are its own inside of the emitted text, and what they were."""

    plan: Plan
    program: Program
    renamed: Mapping[str, str]
    """What stands in the text -> what stands inside."""

    def sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Sizes of axes under both names."""
        return {**sizes, **{new: sizes[old] for old, new in self.renamed.items() if old in sizes}}

    def called(self) -> Program:
        """The program as its caller knows it."""
        before = {new: old for old, new in self.renamed.items()}
        parameters, kept = [], []
        for parameter in self.program.parameters:
            name = before.get(parameter.name, parameter.name)
            parameters.append(evolve(parameter, name=name))
            if name != parameter.name:
                kept.append((parameter.name, name))
        begins = (Rebind((new,), (old,)) for new, old in kept)
        return evolve(
            self.program,
            parameters=tuple(parameters),
            body=(*begins, *self.program.body),
        )


def settled(plan: Plan, emit: Emit) -> Settled:
    """Return the plan with names of its own. Raises CompileError where a call cannot have one."""
    kernel = plan.kernel.kernel
    _check_python(kernel, MODULES)
    # First as it stands, so that a refusal says the names of the text.
    program, names = emit(plan), _names(plan)
    marked = emit(_renamed(plan, {name: name + MARK for name in names}))
    clashes, top = _clashes(marked)
    _check_python(kernel, top)
    clashes |= {name for name in names if keyword.iskeyword(name) or name in top | MODULES}
    if not clashes:
        return Settled(plan, program, {})
    renamed = {name: _free(name, names) for name in sorted(clashes)}
    plan = _renamed(plan, renamed)
    return Settled(plan, emit(plan), renamed)


def _clashes(marked: Program) -> tuple[set[str], set[str]]:
    """Names of the text that a function means something else by; what the entry must not hide.

    What a schedule makes of a name (`k_sb` of `k`) clashes like its own.
    """
    tree = ast.parse(module_text((Entry(marked, ""),), (), origins=False))
    clashes: set[str] = set()
    records: dict[str, set[str]] = {}
    for function in tree.body:
        clashes |= _both(_bound(function, records))
    for fields in records.values():
        clashes |= _both(fields)
    top = {f.name for f in marked.functions} | {c.name for c in marked.constants}
    return clashes, {name.replace(MARK, "") for name in top} | {"len", "max", "min", "range"}


def _bound(function: ast.stmt, records: dict[str, set[str]]) -> set[str]:
    """The names in a function; adds to `records` the fields of each record that it mentions.

    These are `record["field"]` and `record = {"field": ...}`.
    """
    found: set[str] = set()
    pending: list[ast.AST] = [function]
    while pending:
        node = pending.pop()
        match node:
            case ast.Name(id=name) | ast.arg(arg=name):
                found.add(name)
                continue
            case ast.Constant():
                continue
            case ast.Subscript(value=ast.Name(id=record), slice=ast.Constant(value=str(field))):
                records.setdefault(record, set()).add(field)
            case ast.Assign(targets=[ast.Name(id=record)], value=ast.Dict(keys=keys)):
                fields = {str(key.value) for key in keys if isinstance(key, ast.Constant)}
                records.setdefault(record, set()).update(fields)
        for field in node._fields:
            part = getattr(node, field)
            if isinstance(part, ast.AST):
                pending.append(part)
            elif isinstance(part, list):
                pending.extend(item for item in part if isinstance(item, ast.AST))
    return found


def _both(names: set[str]) -> set[str]:
    """Those that stand there with the mark and without."""
    given = {name.removesuffix(MARK) for name in names if name.endswith(MARK)}
    return given & {name.replace(MARK, "") for name in names if not name.endswith(MARK)}


def _check_python(kernel: Kernel, taken: set[str]) -> None:
    """Refuse names of a call that Python or the text needs at its top level."""
    places: list[tuple[str, Span | None]] = [(kernel.name, kernel.span)]
    spans = {item.name: item.span for item in kernel.inputs}
    spans |= {item.name: item.span for item in kernel.params}
    spans |= {item.name: item.span for item in kernel.outputs}
    spans |= {state.argument: state.span for state in kernel.states}
    places += [(a.name, spans.get(a.key or a.name)) for a in kernel.call.arguments]
    for name, span in places:
        if keyword.iskeyword(name) or name in taken:
            what = "a word of Python" if keyword.iskeyword(name) else "a name of the emitted text"
            raise refuse(
                f"`{name}` is {what}, so that no call can use it",
                span,
                help="give it another name, in the `call` line where there is one",
            )


def _free(name: str, taken: set[str]) -> str:
    """The name with `_given` behind it, as often as it takes."""
    name += "_given"
    return name if name not in taken else _free(name, taken)


def _names(plan: Plan) -> set[str]:
    """Every name that the text gives to something."""
    found: set[str] = set()

    def note(name: str) -> str:
        found.add(name)
        return name

    _mapped(plan, note)
    return found


def _renamed(plan: Plan, names: Mapping[str, str]) -> Plan:
    renamed: Plan = _mapped(plan, lambda name: names.get(name, name))
    return renamed


def _mapped(item: Any, change: Callable[[str], str]) -> Any:
    """Return a value of the plan with its names changed; what it shares stays shared."""
    done: dict[int, Any] = {}

    def walk(value: Any) -> Any:
        match value:
            case str():
                return change(value)
            case tuple():
                return tuple(walk(part) for part in value)
            case frozenset():
                return frozenset(walk(part) for part in value)
            case dict():
                return {walk(key): walk(part) for key, part in value.items()}
        if not attrs.has(type(value)):
            return value
        if id(value) not in done:
            done[id(value)] = fields(value)
        return done[id(value)]

    def fields(value: Any) -> Any:
        kind, changed = type(value).__name__, {}
        for field in attrs.fields(type(value)):
            if field.init and field.name not in KEPT_FIELDS and (kind, field.name) not in KEPT:
                of_schedule = field.name == "key" and isinstance(value, CallArgument)
                if of_schedule and value.role != "param":
                    continue
                old = getattr(value, field.name)
                new = walk(old)
                if new is not old and new != old:
                    changed[field.name] = new
        return evolve(value, **changed) if changed else value

    return walk(item)
