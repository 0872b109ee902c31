"""NKI releases 0.3 to 0.7: which call, argument or construct exists in which.

Sources: the migration pages and release notes of the Neuron SDK (2.29 to 2.32), and for 0.7 the
opening of the 2.33.1 pages. Instructions and their arguments carry their own `since` in
`instructions.py`; this table holds what is not an instruction row, and what changed or went away.
"""

from __future__ import annotations

from typing import Literal

from attrs import frozen

Version = str
VERSIONS: tuple[Version, ...] = ("0.3", "0.4", "0.5", "0.6", "0.7")
NEWEST = VERSIONS[-1]

Where = Literal["call", "argument", "method", "construct"]


@frozen
class Change:
    """One difference between releases.

    `name` is a dotted name with the usual import names (`nisa.topk`, `nl.fori_loop`); an argument
    is `call(argument)`; a method of a tensor is `tensor.name`; a construct has a name of its own
    that the lint gives a meaning to.
    """

    where: Where
    name: str
    rule: str
    """What to write instead, so that all releases take it."""
    added: Version | None = None
    deprecated: Version | None = None
    removed: Version | None = None

    def exists(self, version: Version) -> bool:
        """Whether `version` has it."""
        order = VERSIONS.index(version)
        started = self.added is None or order >= VERSIONS.index(self.added)
        return started and (self.removed is None or order < VERSIONS.index(self.removed))


_VIEW = "index with slices, or use `.ap` on the base tensor"

CHANGES: tuple[Change, ...] = (
    # Calls and arguments of nki.isa that came, went or changed their form.
    Change("argument", "nisa.dma_copy(dst_rmw_op)", "use `nisa.dma_compute`", removed="0.3"),
    Change("argument", "nisa.dma_copy(unique_indices)", "use `nisa.dma_compute`", removed="0.3"),
    Change("argument", "nisa.nc_matmul(psumAccumulateFlag)", "use `accumulate`", removed="0.3"),
    Change("argument", "nisa.nc_matmul(is_moving_zero)", "use `is_moving_onezero`", removed="0.3"),
    Change("argument", "nisa.register_move(imm)", "use `src`", removed="0.3"),
    Change("argument", "nisa.sendrecv(use_gpsimd_dma)", "use `dma_engine`", removed="0.3"),
    Change(
        "call",
        "nisa.tensor_copy_dynamic_src",
        "use `nisa.tensor_copy` with `.ap(scalar_offset=...)`",
        removed="0.4",
    ),
    Change(
        "call",
        "nisa.tensor_copy_dynamic_dst",
        "use `nisa.tensor_copy` with `.ap(scalar_offset=...)`",
        removed="0.4",
    ),
    Change(
        "argument",
        "nisa.tensor_scalar_reduce(reduce_res=None)",
        "give `reduce_res` a (P, 1) tile in every call",
        added="0.6",
    ),
    # nki.language.
    Change("call", "nl.fori_loop", "use a Python `for`, which is unrolled", added="0.6"),
    Change("call", "nl.while_loop", "use a Python `for`, which is unrolled", added="0.6"),
    Change(
        "call",
        "nl.dynamic_range",
        "use a Python `for`, or `nl.fori_loop` from 0.6",
        deprecated="0.6",
        removed="0.7",
    ),
    Change("call", "nl.affine_range", "use `range`", deprecated="0.3"),
    Change("call", "nl.sequential_range", "use `range`", deprecated="0.3"),
    Change("call", "nl.static_range", "use `range`", deprecated="0.3"),
    Change("call", "nl.arange", "use slices", removed="0.3"),
    Change("call", "nl.mgrid", "use slices", removed="0.3"),
    Change(
        "call", "nl.par_dim", "the first axis of an on-chip tensor is its partitions", removed="0.3"
    ),
    Change("call", "nl.tile_size.psum_num_banks", "write 8", added="0.5"),
    Change(
        "call",
        "nl.tile_size.total_available_sbuf_size",
        "use `nl.tile_size.sbuf_fmax_bytes`",
        deprecated="0.4",
    ),
    Change("call", "nl.tile_size.psum_fmax", "use `nl.tile_size.psum_bank_fmax`", deprecated="0.5"),
    # Views. Slices, `ap` and `reshape` are older than 0.3.
    *(
        Change("method", f"tensor.{name}", _VIEW, added="0.5")
        for name in (
            "slice",
            "select",
            "vector_select",
            "permute",
            "broadcast",
            "expand_dim",
            "squeeze_dim",
            "reshape_dim",
            "flatten_dims",
            "rearrange",
            "indirect",
        )
    ),
    # The Python subset.
    Change(
        "construct",
        "while register",
        "use `nl.while_loop` from 0.6",
        deprecated="0.6",
        removed="0.7",
    ),
    Change("construct", "neuronxcc import", "import `nki`", removed="0.4"),
    Change("construct", "buffer string", "use the object `nl.sbuf`, `nl.psum`, ...", removed="0.3"),
    Change("construct", "enumeration integer", "use the member of the enumeration", removed="0.3"),
    Change("construct", "non-shared output", "allocate outputs in `nl.shared_hbm`", removed="0.3"),
    Change("construct", "keyword-only marker", "drop the `*` of the signature", removed="0.3"),
    Change("construct", "is comparison", "use `==` or `!=`", removed="0.3"),
    Change("construct", "list argument", "use a tuple", removed="0.3"),
    Change(
        "argument",
        "nki.jit(platform_target)",
        "set `NEURON_PLATFORM_TARGET_OVERRIDE`",
        removed="0.3",
    ),
    Change("argument", "nki.jit(mode)", "leave it out", deprecated="0.3"),
)


def at_least(version: Version, floor: Version) -> bool:
    """Whether `version` is `floor` or newer; both must be in `VERSIONS`."""
    return VERSIONS.index(version) >= VERSIONS.index(floor)
