"""How a kernel of an NKI file is named: `FILE.py:KERNEL`."""

from __future__ import annotations

from pathlib import Path

from gdsl.errors import UsageError


def is_nki(text: str) -> bool:
    """Whether a FILE argument names an NKI kernel and not a `.gdn` one."""
    return text.rpartition(":")[0].endswith(".py")


def nki_source(text: str) -> tuple[Path, str]:
    """Split `FILE.py:KERNEL`. Raises UsageError."""
    path, _, entry = text.rpartition(":")
    if not is_nki(text) or not entry.isidentifier():
        raise UsageError(f"`{text}` does not name an NKI kernel; expected FILE.py:KERNEL")
    if not Path(path).is_file():
        raise UsageError(f"there is no file `{path}`")
    return Path(path), entry
