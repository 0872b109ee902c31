"""Which `.gdn` line each line of an emitted NKI text came from, by its origin comments.

An origin comment ends in `FILE.gdn:LINE`, with or without `: text` behind it. Alone on a line it
holds for the lines below it, until the next one or the end of the indented block it stands in; at
the end of a line of code it holds for that line only.
"""

from __future__ import annotations

import re

_ORIGIN = re.compile(r"#.*?(?P<file>[\w./-]+\.gdn):(?P<line>\d+)")


def origins(text: str) -> dict[int, str]:
    """Return `FILE.gdn:LINE` by 1-based line of an NKI text; lines without origin are absent."""
    found: dict[int, str] = {}
    standing: str | None = None
    depth = 0
    for number, line in enumerate(text.split("\n"), start=1):
        code = line.strip()
        if not code:
            continue
        indent = len(line) - len(line.lstrip())
        match = _ORIGIN.search(line)
        if code.startswith("#"):
            if match:
                standing, depth = f"{match['file']}:{match['line']}", indent
            continue
        if indent < depth:
            standing = None
        origin = f"{match['file']}:{match['line']}" if match else standing
        if origin is not None:
            found[number] = origin
    return found
