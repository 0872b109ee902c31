"""The page that explains a code: a failing program, why it fails, the repair."""

from __future__ import annotations

from importlib.resources import files

from gdsl.diagnostics.codes import CODES


def explain(code: str) -> str | None:
    """Return the page of a code with its title, or None when there is no such code."""
    title = CODES.get(code)
    if title is None:
        return None
    page = files("gdsl.diagnostics").joinpath("explain", f"{code}.md")
    return f"# {code}: {title}\n\n{page.read_text(encoding='utf-8').strip()}\n"
