"""A package of emitted kernels that exports the vendor's names.

A caller replaces `from nkilib... import gdn_tkg` by an import from this package; argument order,
defaults, return order and in-place behaviour are those of the kernel's call line, which for the
library kernels of these names is the vendor's contract. Each kernel keeps a file of its own, since
their helper functions share names.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from gdsl.emitter import NkiProgram

VENDOR_KERNELS: dict[str, tuple[str, ...]] = {
    "gdn_tkg": (*("q", "k", "v", "b", "a", "A_log", "dt_bias", "z", "norm_weight", "state_in"),),
    "kda_tkg": (
        *("q", "k", "v", "g", "beta", "a_log", "dt_bias", "out", "S", "scale", "lower_bound"),
    ),
}
"""The vendor's decode kernels and the order of their arguments (nki-library, shared reference)."""


@frozen
class DropIn:
    """Files of the package by name; `__init__.py` exports the kernels."""

    files: Mapping[str, str]
    exports: tuple[str, ...]


def drop_in(programs: Mapping[str, NkiProgram]) -> DropIn:
    """Return a package that exports each program under its key.

    Raises ValueError when a program's arguments are not those the vendor's kernel of that name has.
    """
    for name, program in programs.items():
        wanted = VENDOR_KERNELS.get(name, program.arguments)
        if program.arguments != wanted:
            raise ValueError(
                f"`{name}` takes ({', '.join(program.arguments)}), "
                f"its vendor's form ({', '.join(wanted)})"
            )
    files = {f"{name}_kernel.py": program.text for name, program in programs.items()}
    files["__init__.py"] = _init(programs)
    return DropIn(files, tuple(sorted(programs)))


def _init(programs: Mapping[str, NkiProgram]) -> str:
    lines = ['"""Generated decode kernels under the names of nki-library."""', ""]
    for name in sorted(programs):
        entry = programs[name].entry
        renamed = entry if entry == name else f"{entry} as {name}"
        lines.append(f"from .{name}_kernel import {renamed}")
    exported = ", ".join(f'"{name}"' for name in sorted(programs))
    return "\n".join([*lines, "", f"__all__ = [{exported}]"]) + "\n"
