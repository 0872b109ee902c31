"""Rules of what moves data across partitions, by index, or between the two cores of a launch."""

from __future__ import annotations

from backends.isa.targets import QUADRANT
from backends.simulator.faults import Fault
from backends.simulator.instructions.call import BoundCall
from backends.simulator.instructions.extents import equal_partitions, expect_free
from backends.simulator.tensor import NkiTensor

_MASK_LENGTH = QUADRANT
_GATHER_WIDTHS = (1, 2, 4, 8, 16, 32)
_GATHER_INDICES = 4096
_GPSIMD_DMA_BYTES = {4: 1024, 2: 512, 1: 256}
"""Bytes per partition that `dma_engine.gpsimd_dma` moves, by element size."""
KEEP = 255
"""A shuffle mask entry that leaves the destination partition unchanged."""

# ---- shapes


def shuffle(call: BoundCall) -> None:
    """`src` and `dst` cover equally many quadrants, and sources lie in `src` (S309, S312, S327)."""
    dst, src, mask = call["dst"], call["src"], call["shuffle_mask"]
    if dst.free_size != src.free_size:
        expect_free(call, "dst", src.free_size)
    quadrants = [-(-tile.partitions // QUADRANT) for tile in (src, dst)]
    if quadrants[0] != quadrants[1]:
        raise Fault(
            "S309",
            f"`src` covers {quadrants[0]} quadrants of {QUADRANT} partitions and `dst` "
            f"{quadrants[1]}",
            help="issue one shuffle per quadrant",
        )
    # An entry counts when some quadrant of dst has that row; its source must be in src's view.
    for row, source in enumerate(mask[: min(dst.partitions, QUADRANT)]):
        last_rows = [q * QUADRANT + source for q in range(quadrants[1])]
        reached = [
            start for q, start in enumerate(last_rows) if q * QUADRANT + row < dst.partitions
        ]
        if source != KEEP and any(partition >= src.partitions for partition in reached):
            raise Fault(
                "S327",
                f"entry {row} of the mask takes partition {source}, outside the "
                f"{src.partitions} partitions of `src`",
            )


def gather(call: BoundCall) -> None:
    """Indices, data and results cover the same partitions (S309, S312)."""
    index = "index" if call.row.name == "local_gather" else "indices"
    data = "src_buffer" if call.row.name == "local_gather" else "data"
    equal_partitions(call, (data, index, "dst"))
    if call.row.name == "nc_n_gather":
        expect_free(call, "dst", call[index].free_size)


def exchange_shapes(call: BoundCall) -> None:
    """What one core sends has the shape that the other receives (S312)."""
    if call.row.name != "sendrecv":
        return
    dst, src = call["dst"], call["src"]
    if tuple(dst.shape) != tuple(src.shape):
        raise Fault(
            "S312",
            "`src` and `dst` of `sendrecv` must have one shape",
            values={"src": tuple(src.shape), "dst": tuple(dst.shape)},
        )


# ---- arguments


def shuffle_mask(call: BoundCall) -> None:
    """A shuffle mask has an entry for each partition of a quadrant (S327)."""
    mask = call["shuffle_mask"]
    legal = all(0 <= entry < QUADRANT or entry == KEEP for entry in mask)
    if len(mask) != _MASK_LENGTH or not legal:
        raise Fault(
            "S327",
            f"`shuffle_mask` must have {_MASK_LENGTH} entries of 0..31 or {KEEP}, it is {mask}",
        )


def local_gather(call: BoundCall) -> None:
    """Known widths, indices that are there, and `dst` as large as both say (S312, S314)."""
    width, valid = call["num_elem_per_idx"], call["num_valid_indices"]
    index: NkiTensor = call["index"]
    if width not in _GATHER_WIDTHS:
        raise Fault("S314", f"`num_elem_per_idx` must be one of {_GATHER_WIDTHS}, it is {width}")
    available = index.free_size * 16
    count = available if valid is None else valid
    if not 0 < count <= min(available, _GATHER_INDICES):
        raise Fault(
            "S314",
            f"{count} indices per group of 16 partitions; 1 to {min(available, _GATHER_INDICES)} "
            "are possible",
        )
    if count * width != call["dst"].free_size:
        # The 0.6 release notes list wrong results for any other size.
        raise Fault(
            "S312",
            f"`dst` must have {count * width} elements per partition, it has "
            f"{call['dst'].free_size}",
            help="give `num_valid_indices` and `num_elem_per_idx` and size `dst` to their product",
        )


def two_cores(call: BoundCall) -> None:
    """There must be another core (S325)."""
    if call.machine.num_programs != 2:
        raise Fault(
            "S325",
            f"`{call.row.name}` needs a launch on two cores, this one has "
            f"{call.machine.num_programs}",
        )


def sendrecv(call: BoundCall) -> None:
    """Sizes of `gpsimd_dma`, and the other core as both ends (S314, S325)."""
    src: NkiTensor = call["src"]
    limit = _GPSIMD_DMA_BYTES.get(src.dtype.bytes, 0)
    size = src.free_size * src.dtype.bytes
    if call["dma_engine"] == "gpsimd_dma" and size > limit:
        raise Fault(
            "S314",
            f"`gpsimd_dma` moves at most {limit} bytes per partition of {src.dtype}, not {size}",
        )
    other = 1 - call.machine.program_id
    if (call["send_to_rank"], call["recv_from_rank"]) != (other, other):
        raise Fault(
            "S325",
            f"core {call.machine.program_id} exchanges with core {other}",
            values={
                "send_to_rank": call["send_to_rank"],
                "recv_from_rank": call["recv_from_rank"],
            },
        )


def core_barrier(call: BoundCall) -> None:
    """Both cores, and data in shared HBM (S304, S325)."""
    if tuple(sorted(call["cores"])) != (0, 1):
        raise Fault("S325", f"`cores` must be (0, 1), it is {call['cores']}")
    memory = call["data"].memory
    if memory != "shared_hbm":
        message = f"`data` of `core_barrier` should be in shared HBM, it is in {memory}"
        call.report(call.options.barrier_data, "S304", message)
