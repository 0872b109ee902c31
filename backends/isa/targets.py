"""The NeuronCore generations and their capacities. Rates are in `machine.py`.

Unless a comment says otherwise a number is from the architecture guides of the Neuron SDK 2.32
documentation (`nki/guides/architecture/{trainium_inferentia2,trainium2,trainium3}_arch.rst`).
"""

from __future__ import annotations

from attrs import frozen


@frozen
class Target:
    """One NeuronCore generation, with what a kernel may occupy of it."""

    name: str
    generation: int
    """The value of `nisa.nc_version`: 2, 3, 4."""
    aliases: tuple[str, ...]
    sbuf_bytes: int
    """Nominal SBUF bytes of one partition."""
    sbuf_usable_bytes: int
    """SBUF bytes of one partition that a kernel may allocate (`nl.tile_size.sbuf_fmax_bytes`)."""
    matmul_in_one_bank: bool
    """Whether the destination of one matmul must lie inside one PSUM bank."""
    cores: int
    """Physical cores a logical core may be made of (LNC)."""


PARTITIONS = 128
"""Partitions of SBUF and of PSUM (`nl.tile_size.pmax`)."""
PSUM_BANKS = 8
"""PSUM banks of one partition (`nl.tile_size.psum_num_banks`)."""
PSUM_BANK_BYTES = 2048
"""Bytes of one bank of one partition (`nl.tile_size.psum_bank_fmax_bytes`)."""
PSUM_BYTES = PSUM_BANKS * PSUM_BANK_BYTES
STATIONARY_FREE = 128
"""Largest free size of the stationary operand (`nl.tile_size.gemm_stationary_fmax`)."""
QUADRANT = 32
"""Partitions of one quadrant: the grid of start partitions and of stream shuffles."""

# Usable SBUF bytes: aws-neuron/nkipy, nkigen/mlir/include/nkipy/Transforms/HardwareConstants.h,
# which says it mirrors the tracer of the nki wheel. The documentation prints the nominal sizes.
TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        Target(
            name="trn1",
            generation=2,
            aliases=("inf2", "gen2"),
            sbuf_bytes=192 * 1024,
            sbuf_usable_bytes=180_224,
            matmul_in_one_bank=True,
            cores=1,
        ),
        Target(
            name="trn2",
            generation=3,
            aliases=("gen3",),
            sbuf_bytes=224 * 1024,
            sbuf_usable_bytes=212_984,
            matmul_in_one_bank=True,
            cores=2,
        ),
        Target(
            name="trn3",
            generation=4,
            aliases=("gen4",),
            sbuf_bytes=256 * 1024,
            sbuf_usable_bytes=245_752,
            matmul_in_one_bank=False,
            cores=2,
        ),
    )
}

_BY_NAME: dict[str, Target] = {
    name: target for target in TARGETS.values() for name in (target.name, *target.aliases)
}
GENERATION_NAMES: dict[int, str] = {target.generation: target.name for target in TARGETS.values()}


def find_target(name: str) -> Target:
    """The target called `name`, by its own name or an alias.

    Raises ValueError naming the known targets.
    """
    try:
        return _BY_NAME[name]
    except KeyError:
        known = ", ".join(f"`{known}`" for known in _BY_NAME)
        raise ValueError(f"unknown target `{name}`; known are {known}") from None


def start_partitions(partitions: int) -> tuple[int, ...]:
    """Legal start partitions of an engine access to `partitions` partitions (1 to 128).

    From the architecture guides: 65 to 128 partitions start at 0, 33 to 64 at 0 or 64, up to 32 at
    any quadrant. DMA is free of this rule.
    """
    if partitions > 2 * QUADRANT:
        return (0,)
    if partitions > QUADRANT:
        return (0, 2 * QUADRANT)
    return (0, QUADRANT, 2 * QUADRANT, 3 * QUADRANT)
