"""What each adapter exports, as data: one row per function of the code it stands in for.

A row is a call as its users write it. Nothing here says how a kernel computes, and a row asks
nothing of the emitter: the kernel it names must have this very call, which `adapt` checks.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from backends.nki.adapters import mask_pack
from backends.nki.program.nodes import Constant, Function
from backends.nki.program.numbers import Literal, Name


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
    constants: tuple[Constant, ...] = ()
    """What callers import beside the function. A kernel's own of that name must be equal."""
    functions: tuple[Function, ...] = ()
    """Host functions that callers import beside the function."""


@frozen
class Adapter:
    """A module that takes the place of another one."""

    name: str
    doc: str
    """What the exports replace, for the header of the module."""
    exports: tuple[Export, ...]


def _plain(names: str) -> tuple[Argument, ...]:
    return tuple(Argument(name) for name in names.split())


_CTE_CONSTANTS = (
    Constant("CHUNK", Literal(128), "tokens per chunk: all partitions"),
    Constant("MAX_HEAD_DIM", Literal(128), "key and value dimension callers may count on"),
    Constant("ALGORITHMS", Name('("schur", "neumann")'), "ways to invert a chunk"),
    Constant("DEFAULT_ALGORITHM", Name('"schur"'), "of `algorithm`"),
    Constant("DEFAULT_GROUP_SIZE", Literal(8), "of `group_size`"),
    Constant("N_MASKS", Literal(mask_pack.PLANES), "planes of a mask pack"),
)

NKI_LIBRARY = Adapter(
    "nki_library",
    "the kernels of nki-library (experimental/gdn, experimental/kda)",
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
        Export(
            "gdn_block_tkg",
            "gdn_block_tkg",
            _plain(
                "hidden W_in_qkv W_in_z W_in_a W_in_b conv_weight conv_state A_log dt_bias "
                "norm_weight recurrent_state"
            ),
            ("core_out", "conv_out", "state_out"),
        ),
        Export(
            "gdn_cte",
            "gdn_cte",
            (
                *_plain("query key value g_log beta"),
                Argument("scale", "1.0"),
                Argument("algorithm", "DEFAULT_ALGORITHM"),
                Argument("mask_pack", "None"),
                Argument("group_size", "DEFAULT_GROUP_SIZE"),
                Argument("recurrent_state", "None"),
            ),
            ("out", "recurrent_state"),
            _CTE_CONSTANTS,
            (mask_pack.BUILD_MASK_PACK,),
        ),
    ),
)

ADAPTERS: Mapping[str, Adapter] = {adapter.name: adapter for adapter in (NKI_LIBRARY,)}
