"""The kernels that ship with gdsl, by name, and how a FILE argument or a `use` finds its text."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache, lru_cache
from importlib.resources import files

# Unlike the methods of a path these say no to a name that no system takes.
from os.path import isdir, isfile
from pathlib import Path

from attrs import frozen

from gdsl.errors import UsageError
from gdsl.source import Source
from gdsl.suggest import did_you_mean

PACKAGE = "kernels_dsl"
_KERNEL = re.compile(r"^kernel\s+(\w+)\s*:", re.MULTILINE)


@frozen
class Located:
    """A text, the folder its quoted `use` paths are relative to, and the kernel that was named."""

    source: Source
    folder: Path | None
    kernel: str | None


@cache
def library_files() -> dict[str, Path]:
    """Return {stem: path} of the `.gdn` files that ship, sorted by stem."""
    folder = Path(str(files(PACKAGE)))
    return {path.stem: path for path in sorted(folder.glob("*.gdn"))}


@cache
def library_kernels() -> dict[str, Path]:
    """Return {kernel name: file that declares it}, in file order. Reads texts, parses nothing."""
    return {
        name: path
        for path in library_files().values()
        for name in _KERNEL.findall(path.read_text(encoding="utf-8"))
    }


def library_sources() -> tuple[Source, ...]:
    """Return the texts of the library, in the order of `library_files`."""
    return tuple(_read(path, f"{PACKAGE}/{path.name}") for path in library_files().values())


def locate(file: str) -> Located:
    """Find the text behind what a user typed for FILE.

    `-` is standard input; otherwise a library kernel's name, a path, or `path:KERNEL`. A path wins
    over a library name only when it ends in `.gdn` or has a folder. Raises UsageError.
    """
    if file == "-":
        return Located(_decoded("<stdin>", sys.stdin.buffer.read()), Path.cwd(), None)
    path, kernel = _split(file)
    if path is None:
        name = kernel or file
        found = library_kernels().get(name)
        if found is None:
            raise UsageError(
                f"there is no library kernel `{name}`{did_you_mean(name, library_kernels())}; "
                "type `gdsl kernels` for the list, or give a path that ends in `.gdn`"
            )
        return Located(_read(found, f"{PACKAGE}/{found.name}"), found.parent, name)
    return Located(_read(path, str(path)), path.parent, kernel)


def loader(folder: Path | None) -> Callable[[str], Source | None]:
    """Return the function that finds the text of `use NAME` or `use "path"` (None: not there).

    A name is a file of the library, or else NAME.gdn in `folder`, like a quoted path.
    """

    beside = folder or Path.cwd()

    def load(name: str) -> Source | None:
        shipped = library_files().get(name)
        if shipped is not None:
            return _read(shipped, f"{PACKAGE}/{shipped.name}")
        path = beside / (name if name.endswith(".gdn") else f"{name}.gdn")
        return _read(path, str(path)) if isfile(path) else None

    return load


def usable(folder: Path | None) -> Callable[[str], list[str]]:
    """Return the function that lists what `use` could name where a name was looked for.

    Files of the library, and those of the folder that the name leads to; they are spelled as the
    name is, with its folder and with or without `.gdn`.
    """
    beside = folder or Path.cwd()

    def near(name: str) -> list[str]:
        path = Path(name)
        where = beside / path.parent
        found = sorted(where.glob("*.gdn")) if isdir(where) else []
        files = [item.name if name.endswith(".gdn") else item.stem for item in found]
        return [*library_files(), *(str(path.parent / file) for file in files)]

    return near


def _split(file: str) -> tuple[Path | None, str | None]:
    """Split `path:KERNEL`; a name that is no path gives (None, None)."""
    if Path(file).suffix == ".gdn" or Path(file).is_file():
        return Path(file), None
    head, colon, tail = file.rpartition(":")
    if colon and tail.isidentifier() and head:
        if head in library_files() and not Path(head).is_file():
            return library_files()[head], tail
        return Path(head), tail
    if "/" in file:
        return Path(file), None
    return None, None


def _read(path: Path, name: str) -> Source:
    try:
        return _decoded(name, path.read_bytes())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"cannot read `{path}`: {reason}") from error


def _decoded(name: str, data: bytes) -> Source:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"`{name}` is not UTF-8: byte {error.start} is 0x{data[error.start]:02x}; "
            "save the file as UTF-8"
        ) from error
    return _source(name, text.replace("\r\n", "\n"))


@lru_cache(maxsize=64)
def _source(name: str, text: str) -> Source:
    """Return one object for one text, so that what is read again is known to be parsed."""
    return Source(name, text)
