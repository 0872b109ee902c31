"""What the docstring of an emitted block says about its dataflow and its memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from backends.nki.schedules.block.cut import cut
from backends.nki.schedules.block.sections import Port, Projection
from gdsl.algorithm.plan import Plan
from gdsl.canonical.form import Delta


def dataflow(plan: Plan) -> Iterator[str]:
    """Yield the notes of a kernel of several sections; none for one that is a rule alone."""
    if plan.form != "decode" or sum(isinstance(f, Delta) for _, f in plan.kernel.runs) != 1:
        return
    sections = cut(plan)
    late = _weights(value.port for value in sections.values if value.late)
    early = [name for name in _weights(sections.ports) if name not in late]
    if not early:
        return
    yield (
        f"Every weight is read once, in tiles of about 1 MiB on SyncE's ring: "
        f"{_list(early)}, then the first states, then {_list(late) or 'nothing more'}. "
        "A weight is stationary and the activation moves, so channels of a head come out on "
        "partitions, where convolutions and the rule want them: nothing goes through HBM."
    )
    scales = [p.scale.name for p in sections.projections if p.scale is not None]
    if scales:
        yield (
            f"Sums are multiplied with {_list(scales)} as they leave PSUM, where a channel has its "
            "partition."
        )
    if late:
        yield (
            f"Up to 128 rows (batch and heads of a core), {_list(late)} streams while "
            "convolutions and the rule run, and is multiplied last; with more rows it comes "
            "before them."
        )
    yield (
        "What SBUF has left beside the states, windows and activations holds tiles of weights; "
        "the kernel asserts that two fit. At most 512 entries of the batch."
    )


def _weights(ports: Iterable[Port]) -> list[str]:
    found = (p.section.weight.name for p in ports if isinstance(p.section, Projection))
    return list(dict.fromkeys(found))


def _list(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
