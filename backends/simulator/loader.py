"""Loads kernel files: their `import nki` is the simulator, nothing enters `sys.modules`.

Modules are kept by path, so relative imports work with or without `__init__.py` files. Absolute
names are looked for under the loader's roots first (never shadowing the standard library) and then
imported for real. Unlike Python, a package's `__init__.py` runs only when the package itself is
imported, not when an import passes through it.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from attrs import define, field

from backends.simulator import location
from backends.simulator.faults import Fault, MissingImport
from gdsl.source import Source


@define(eq=False)
class Loader:
    """Modules of one load. `simulated` maps absolute names (`nki.isa`) to module objects."""

    simulated: Mapping[str, ModuleType]
    roots: list[Path] = field(factory=list)
    _modules: dict[Path, ModuleType] = field(factory=dict)

    def load_file(self, path: Path) -> ModuleType:
        """Execute a file and return its module. Raises Fault S103 and whatever the file raises."""
        path = path.resolve()
        package_root = _package_root(path)
        for root in (package_root, path.parent if package_root == path.parent else None):
            if root is not None and root not in self.roots:
                self.roots.append(root)
        return self._execute(path)

    def load_text(self, text: str, name: str) -> ModuleType:
        """Execute a module's text that has no file; `name` stands for it in messages."""
        module = ModuleType("kernel_text")
        self._run(module, Source(name, text), base=None)
        return module

    def _execute(self, path: Path) -> ModuleType:
        """Return the module of a file, executing it the first time."""
        if path.name == "__init__.py":
            return self._package(path.parent, run=True)
        known = self._modules.get(path)
        if known is not None:
            return known
        module = ModuleType(self._dotted(path.with_suffix("")))
        module.__file__ = str(path)
        module.__package__ = module.__name__.rpartition(".")[0]
        self._modules[path] = module
        try:
            self._run_file(module, path)
        except BaseException:
            del self._modules[path]
            raise
        return module

    def _package(self, folder: Path, *, run: bool) -> ModuleType:
        """Return the module of a directory; `run` executes its `__init__.py` once."""
        module = self._modules.get(folder)
        if module is None:
            module = self._modules[folder] = ModuleType(self._dotted(folder))
            module.__package__ = module.__name__
            module.__path__ = [str(folder)]
        init = folder / "__init__.py"
        if run and init.is_file() and not hasattr(module, "__file__"):
            module.__file__ = str(init)
            try:
                self._run_file(module, init)
            except BaseException:
                del module.__file__
                raise
        return module

    def _run_file(self, module: ModuleType, path: Path) -> None:
        self._run(module, Source(str(path), path.read_text(encoding="utf-8")), base=path.parent)

    def _run(self, module: ModuleType, source: Source, base: Path | None) -> None:
        location.register(source)
        code = _compiled(source.text, source.name)
        module.__dict__["__builtins__"] = vars(builtins) | {"__import__": self._importer(base)}
        exec(code, module.__dict__)

    def _dotted(self, path: Path) -> str:
        """Return a module name for a path: relative to the nearest root, else the file's name."""
        for root in sorted(self.roots, key=lambda root: -len(root.parts)):
            if path.is_relative_to(root):
                return ".".join(path.relative_to(root).parts)
        return path.name

    def _importer(self, base: Path | None) -> Any:
        """Return the `__import__` of modules in directory `base`."""

        def import_name(
            name: str,
            globals: Mapping[str, Any] | None = None,
            locals: Mapping[str, Any] | None = None,
            fromlist: Sequence[str] | None = (),
            level: int = 0,
        ) -> ModuleType:
            if level:
                return self._relative(base, name, fromlist or (), level)
            if name in self.simulated or name.partition(".")[0] == "nki":
                return self._simulated(name, fromlist or ())
            if name.partition(".")[0] == "neuronxcc":
                raise MissingImport(
                    "S103",
                    f"`{name}` is the removed name space of NKI 0.1",
                    help="import `nki`, `nki.isa` and `nki.language`",
                )
            found = self._absolute(name)
            if found is None:
                return builtins.__import__(name, globals, locals, fromlist or (), 0)
            top, module = found
            if not fromlist:
                return top
            self._load_submodules(module, fromlist)
            return module

        return import_name

    def _simulated(self, name: str, fromlist: Sequence[str]) -> ModuleType:
        """Return a simulated module, or its top package as Python's protocol wants."""
        module = self.simulated.get(name)
        if module is None:
            raise MissingImport("S107", f"there is no module `{name}`")
        for wanted in fromlist:
            if wanted != "*" and not hasattr(module, wanted):
                raise MissingImport("S107", f"`{name}` has no name `{wanted}`")
        return module if fromlist or "." not in name else self._top(name)

    def _top(self, name: str) -> ModuleType:
        """Return the package that `import a.b` binds; `neuronxcc` is made up of its known part."""
        top, *rest = name.split(".")
        known = self.simulated.get(top)
        if known is not None:
            return known
        package = outer = ModuleType(top)
        for depth, part in enumerate(rest, 2):
            inner = self.simulated.get(".".join(name.split(".")[:depth]), ModuleType(part))
            setattr(outer, part, inner)
            outer = inner
        return package

    def _relative(
        self, base: Path | None, name: str, fromlist: Sequence[str], level: int
    ) -> ModuleType:
        """Return the module of `from ..name import ...` seen from directory `base`."""
        if base is None:
            raise MissingImport("S103", "a relative import in a text that has no file")
        folder = base
        for _ in range(level - 1):
            folder = folder.parent
        module = self._find(folder, name.split(".") if name else [])
        if module is None:
            raise MissingImport("S103", f"no module `{'.' * level}{name}` next to {base}")
        self._load_submodules(module, fromlist)
        return module

    def _absolute(self, name: str) -> tuple[ModuleType, ModuleType] | None:
        """Return the top and the named module when a root holds it."""
        parts = name.split(".")
        if parts[0] in sys.stdlib_module_names:
            return None
        for root in self.roots:
            module = self._find(root, parts)
            if module is not None:
                known = self._modules.get(root / parts[0])
                return known or module, module
        return None

    def _find(self, folder: Path, parts: Sequence[str]) -> ModuleType | None:
        """Return the module at `folder`/parts, binding each module in its parent."""
        if not parts:
            return self._package(folder, run=True)
        parent: ModuleType | None = None
        module: ModuleType | None = None
        for depth, part in enumerate(parts, 1):
            if (folder / part).is_dir():
                folder = folder / part
                module = self._package(folder, run=depth == len(parts))
            elif (folder / f"{part}.py").is_file():
                module = self._execute(folder / f"{part}.py")
                folder = folder / part
            else:
                return None
            if parent is not None:
                setattr(parent, part, module)
            parent = module
        return module

    def _load_submodules(self, module: ModuleType, names: Sequence[str]) -> None:
        """Bind the submodules that a `from module import names` asks for."""
        folder = _folder_of(module)
        if folder is None:
            return
        for name in names:
            if name != "*" and not hasattr(module, name):
                found = self._find(folder, [name])
                if found is not None:
                    setattr(module, name, found)


@lru_cache(maxsize=64)
def _compiled(text: str, name: str) -> CodeType:
    """Return a file's code; a kernel is simulated at many shapes, its text changes seldom."""
    return compile(text, name, "exec", dont_inherit=True)


def _folder_of(module: ModuleType) -> Path | None:
    """Return the directory of a package, None for a plain module."""
    paths = getattr(module, "__path__", None)
    return Path(paths[0]) if paths else None


def _package_root(path: Path) -> Path:
    """Return the directory above the outermost package that holds the file."""
    folder = path.parent
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        folder = folder.parent
    return folder


def syntax_fault(error: SyntaxError) -> Fault:
    """Return a Python syntax error of a kernel file as a fault."""
    place = location.Location(error.filename or "", error.lineno or 0, "")
    return Fault("S102", f"the file is not Python: {error.msg}", location=place)
