"""What a file can call: the functions and rules it declares and those of the files it uses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from attrs import define, field

from gdsl.diagnostics.diagnostic import Label
from gdsl.errors import CompileError
from gdsl.semantics.report import Reporter
from gdsl.source import Source
from gdsl.suggest import did_you_mean
from gdsl.syntax import ast
from gdsl.syntax.parse import parse
from gdsl.syntax.words import words

Load = Callable[[str], Source | None]
"""Finds the text of a used library; None: there is none."""
Near = Callable[[str], Collection[str]]
"""Lists what could be used where a name was looked for, spelled as the name is."""


@define(eq=False)
class Definition:
    """A function or rule, and the scope its body is read in."""

    node: ast.Fn | ast.Rule
    scope: Scope
    sound: bool | None = None
    """Whether it is right in itself; None before `definitions.is_sound` looked."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.node.name.text


@define(eq=False)
class Scope:
    """The names one file can call. Uses are not passed on: a library's uses stay its own."""

    file: ast.File
    own: dict[str, Definition] = field(factory=dict)
    used: dict[str, Definition] = field(factory=dict)
    complete: bool = True
    """Whether every library it uses could be read."""

    def find(self, name: str) -> Definition | None:
        """Return the function or rule called `name`; own ones were checked not to clash."""
        return self.own.get(name) or self.used.get(name)

    def names(self, kind: type[ast.Fn] | type[ast.Rule]) -> Iterator[str]:
        """Yield the names of all functions, or of all rules."""
        for table in (self.own, self.used):
            yield from (name for name, item in table.items() if isinstance(item.node, kind))


@define
class Linker:
    """Builds the scopes of a file and of everything it uses, each file once."""

    load: Load
    reporter: Reporter
    near: Near
    _done: dict[str, Scope | None] = field(factory=dict)
    _open: list[str] = field(factory=list)

    def link(self, file: ast.File) -> Scope:
        """Return the scope of a file; what is wrong with its uses is reported."""
        scope = Scope(file)
        for declaration in file.declarations:
            if isinstance(declaration, ast.Fn | ast.Rule):
                self._declare(scope, declaration)
        for declaration in file.declarations:
            if isinstance(declaration, ast.Use):
                for library in declaration.libraries:
                    self._use(scope, library)
        return scope

    def _declare(self, scope: Scope, node: ast.Fn | ast.Rule) -> None:
        earlier = scope.own.get(node.name.text)
        if earlier is not None:
            self.reporter.error(
                "E0202",
                f"`{earlier.name}` is declared twice",
                node.name.span,
                label="declared again",
                labels=(Label(earlier.node.name.span, "declared here first"),),
                help="give one of them another name",
            )
            return
        scope.own[node.name.text] = Definition(node, scope)

    def _use(self, scope: Scope, library: ast.Library) -> None:
        used = self._library(library)
        if used is None:
            scope.complete = False
            return
        for name, definition in used.own.items():
            clash = scope.own.get(name) or scope.used.get(name)
            if clash is not None and clash is not definition:
                self.reporter.error(
                    "E0202",
                    f"`{library.name}` brings a second `{name}`",
                    library.span,
                    label=f"declares `{name}`",
                    labels=(Label(clash.node.name.span, f"`{name}` is also declared here"),),
                    help="use one of the two files, or rename",
                )
            else:
                scope.used[name] = definition

    def _library(self, library: ast.Library) -> Scope | None:
        name = library.name
        if name in self._open:
            chain = " -> ".join((*self._open[self._open.index(name) :], name))
            self.reporter.error(
                "E0203",
                f"`{name}` uses itself",
                library.span,
                label="used while it is being read",
                notes=(f"the chain is {chain}",),
                help="move what both need into a third file",
            )
            return None
        if name not in self._done:
            self._open.append(name)
            self._done[name] = self._read(library)
            self._open.pop()
        return self._done[name]

    def _read(self, library: ast.Library) -> Scope | None:
        source = self.load(library.name)
        if source is None:
            kind = "file" if library.quoted else "library"
            self.reporter.error(
                "E0203",
                f"there is no {kind} `{library.name}`"
                f"{did_you_mean(library.name, self.near(library.name))}",
                library.span,
                label="not found",
                help=_KNOWN_LIBRARIES
                if not library.quoted
                else "the path is relative to this file",
            )
            return None
        try:
            file = parse(source)
        except CompileError as error:
            for diagnostic in error.diagnostics:
                self.reporter.add(diagnostic)
            return None
        return self.link(file)


_KNOWN_LIBRARIES = (
    "name a file of `kernels_dsl` (`gdsl kernels` lists them), or give a path in quotes"
)


def unknown_callable(
    reporter: Reporter, scope: Scope, name: ast.Name, kind: type[ast.Fn] | type[ast.Rule]
) -> None:
    """Report that no function (or rule) has this name, unless a library could not be read."""
    if not scope.complete:
        return
    word = "rule" if kind is ast.Rule else "function"
    known = sorted(scope.names(kind))
    built_in = words("function", "reducer") if kind is ast.Fn else frozenset()
    reporter.error(
        "E0201",
        f"unknown {word} `{name.text}`{did_you_mean(name.text, {*known, *built_in})}",
        name.span,
        label=f"no {word} of this name",
        notes=(f"known here: {', '.join(f'`{item}`' for item in known)}",) if known else (),
        help=None if known else "name the library that declares it: `use delta_rule, gates, norms`",
    )
