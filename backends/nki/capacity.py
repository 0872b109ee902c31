"""Whether a kernel fits its target at given sizes, found before any text is written.

Two kinds of limits: what the kernel's head asserts of its axes (a key dimension of at most 128
partitions), and on-chip memory by the tile program's own accounting. Each finding says what is
needed, what there is, and which axis to make smaller, and how far.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from backends.isa.targets import PSUM_BANK_BYTES, PSUM_BANKS, find_target
from backends.nki.program.nodes import Assign, If, Program, Require, Statement
from backends.nki.program.numbers import evaluate
from gdsl.diagnostics.diagnostic import Diagnostic
from gdsl.emitter import Footprint
from gdsl.ir.kernel import Kernel
from gdsl.source import Span

Sizes = Mapping[str, int]
Measure = Callable[[Sizes], Footprint]

Broken = tuple[Require, Mapping[str, Any]]
"""An assertion that does not hold, with the values it names."""

MOST_TOKENS = 1 << 12
"""As far as a larger size is looked for where a size is too small."""

LIMIT = "E0531"
MEMORY = "E0532"


def misfits(
    kernel: Kernel, program: Program, target: str, sizes: Sizes, lnc: int, measure: Measure
) -> tuple[Diagnostic, ...]:
    """Return what does not fit; memory is looked at only where every axis is within its limit.

    `measure` accounts for the program's memory at sizes. What the program asserts of the room that
    its tiles leave is memory as well: the accounting says which axis takes it.
    """

    def broken(changed: Sizes) -> tuple[Broken, ...]:
        return tuple(_broken(kernel, program, changed, lnc))

    found = broken(sizes)
    if not any(_named(sizes, require) for require, _ in found):
        memory = tuple(_memory(kernel, target, sizes, measure(sizes), measure))
        if memory or not found:
            return memory
    return tuple(_limit(kernel, target, sizes, one, broken) for one in found)


# ---- limits of axes


def _broken(kernel: Kernel, program: Program, sizes: Sizes, lnc: int) -> Iterator[Broken]:
    """Yield the assertions of the head that do not hold."""
    shapes = {
        p.name: SimpleNamespace(
            shape=tuple(int(evaluate(size, sizes)) for size in p.tile.shape),
            element_bytes=p.tile.element.bytes,
        )
        for p in program.parameters
        if p.tile is not None
    }
    numbers = {p.name: p.default for p in kernel.params}
    names: dict[str, Any] = {c.name: evaluate(c.value, {}) for c in program.constants}
    names |= {**numbers, **sizes, **shapes, "None": None}
    names |= {"nl.num_programs(0)": lnc, "nl.program_id(0)": 0}
    yield from _asserted(program.body, names)


def _asserted(statements: Iterable[Statement], names: dict[str, Any]) -> Iterator[Broken]:
    for statement in statements:
        # Names that instructions made later bind are no contract of the caller.
        try:
            match statement:
                case Assign(name=name, value=value):
                    names[name] = evaluate(value, names)
                case Require(condition=condition) if not evaluate(condition, names):
                    yield statement, dict(names)
                case If(condition=condition, then=then, otherwise=otherwise):
                    branch = then if evaluate(condition, names) else otherwise
                    yield from _asserted(branch, names)
        except KeyError:
            continue


def _limit(
    kernel: Kernel,
    target: str,
    sizes: Sizes,
    found: Broken,
    broken: Callable[[Sizes], tuple[Broken, ...]],
) -> Diagnostic:
    require, names = found
    message = require.message.format_map(names).replace(kernel.name, f"`{kernel.name}`", 1)

    def holds(changed: Sizes) -> bool:
        return all(other.message != require.message for other, _ in broken(changed))

    for axis in _named(sizes, require):
        size = sizes[axis]
        others = (*range(size - 1, 0, -1), *range(size + 1, MOST_TOKENS))
        best = next((n for n in others if holds({**sizes, axis: n})), None)
        if best is not None:
            return Diagnostic(
                LIMIT,
                f"{message}, on {target}",
                _span(kernel, axis),
                label=f"{size:,} at this shape",
                help=f"it fits with `{axis}={best}`"
                + (f"; else {require.remedy}" if require.remedy else ""),
            )
    return Diagnostic(LIMIT, f"{message}, on {target}", kernel.span)


def _named(sizes: Sizes, require: Require) -> tuple[str, ...]:
    """The axes that an assertion names."""
    words = set(re.findall(r"\w+", f"{require.condition} {require.message}"))
    return tuple(axis for axis in sizes if axis in words)


# ---- on-chip memory


def _memory(
    kernel: Kernel, target: str, sizes: Sizes, need: Footprint, measure: Measure
) -> Iterator[Diagnostic]:
    have = find_target(target).sbuf_usable_bytes
    for what, needed, limit, unit in (
        ("SBUF", need.sbuf_bytes_per_partition, have, "bytes of SBUF per partition"),
        ("PSUM", need.psum_banks, PSUM_BANKS, f"PSUM banks of {PSUM_BANK_BYTES:,} bytes"),
    ):
        if needed <= limit:
            continue
        # Every axis alone, as far as it must shrink; the one that loses least comes first.
        smaller = {
            axis: largest
            for axis, size in sizes.items()
            if (largest := _largest(kernel, sizes, axis, what, limit, measure)) and largest < size
        }
        ways = sorted(smaller, key=lambda axis: sizes[axis] / smaller[axis])
        yield Diagnostic(
            MEMORY,
            f"`{kernel.name}` needs {needed:,} {unit}, {target} has {limit:,}",
            _span(kernel, ways[0]) if ways else kernel.span,
            label=f"{sizes[ways[0]]:,} at this shape" if ways else "",
            notes=("counted with every operand in the widest dtype that the text admits",),
            help="it fits with " + " or ".join(f"`{a}={smaller[a]}`" for a in ways)
            if ways
            else None,
        )


def _largest(
    kernel: Kernel, sizes: Sizes, axis: str, what: str, limit: int, measure: Measure
) -> int | None:
    """Return a size of one axis with which memory suffices, None if there is none.

    Memory grows with an axis, up to the rounding of tiles, so bisection finds about the largest
    among the multiples that the axis may have.
    """
    unit = next((a.multiple_of for a in kernel.axes if a.name == axis), 1)

    def fits(units: int) -> bool:
        need = measure({**sizes, axis: units * unit})
        return (need.sbuf_bytes_per_partition if what == "SBUF" else need.psum_banks) <= limit

    low, high = 1, sizes[axis] // unit
    if high <= 1 or not fits(low):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low * unit


def _span(kernel: Kernel, axis: str) -> Span | None:
    return next((a.span for a in kernel.axes if a.name == axis and a.span), kernel.span)
