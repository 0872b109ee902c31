"""What each adapter exports, as data: one row per function of the code it stands in for.

A row is a call as its users write it. Nothing here says how a kernel computes, and a row asks
nothing of the emitter: the kernel it names must have this very call, which `adapt` checks.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen


@frozen
class Argument:
    """A parameter as the callers know it; `default` is its Python text, None for none."""

    name: str
    default: str | None = None


@frozen
class Export:
    """One exported function."""

    name: str
    kernel: str
    """Kernel that stands behind it."""
    arguments: tuple[Argument, ...]
    """In the order of a positional call."""
    returns: tuple[str, ...]
    """Outputs in the order returned; one with the name of an argument is that argument."""


@frozen
class Adapter:
    """A module that takes the place of another one."""

    name: str
    doc: str
    """What the exports replace, for the header of the module."""
    exports: tuple[Export, ...]


def _plain(names: str) -> tuple[Argument, ...]:
    return tuple(Argument(name) for name in names.split())


NKI_LIBRARY = Adapter(
    "nki_library",
    "the decode kernels of nki-library (experimental/gdn, experimental/kda)",
    (
        Export(
            "gdn_tkg",
            "gdn_tkg",
            _plain("q k v b a A_log dt_bias z norm_weight state_in"),
            ("out", "state_out"),
        ),
        Export(
            "kda_tkg",
            "kda_tkg",
            _plain("q k v g beta a_log dt_bias out S scale lower_bound"),
            ("out", "S"),
        ),
    ),
)

ADAPTERS: Mapping[str, Adapter] = {adapter.name: adapter for adapter in (NKI_LIBRARY,)}
