"""Does a kernel fit its target at known sizes? Asked before any text is written or simulated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from attrs import evolve

from gdsl import registry
from gdsl.diagnostics.diagnostic import Diagnostic
from gdsl.emitter import Footprint
from gdsl.errors import CompileError, GdslError, UsageError
from gdsl.pipeline import Compilation


def require_fit(compilation: Compilation, sizes: Mapping[str, int], lnc: int) -> Footprint:
    """Return the on-chip memory a kernel needs at these sizes on `lnc` cores.

    Raises CompileError when it does not fit, UsageError where there is nothing to launch. The
    findings are the emitter's; where a smaller schedule key makes it fit, they say so.
    """
    require_elements(compilation.definition.kernel.name, sizes)
    found = _misfits(compilation, sizes, lnc)
    if found:
        keys = [f"`--set {key}={value}`" for key, value in _keys(compilation, sizes, lnc)]
        raise CompileError(found[0].message, tuple(_helped(d, keys) for d in found))
    return registry.emitter().footprint(compilation.plan, compilation.options, sizes, lnc)


def require_elements(kernel: str, sizes: Mapping[str, int]) -> None:
    """Raise UsageError where an axis has no elements: then there is nothing to launch."""
    empty = [axis for axis, size in sizes.items() if size == 0]
    if empty:
        raise UsageError(
            f"axis `{empty[0]}` of kernel `{kernel}` has size 0, so nothing would be launched; "
            "give 1 or more"
        )


@contextmanager
def explaining(compilation: Compilation, sizes: Mapping[str, int], lnc: int) -> Iterator[None]:
    """Put why the sizes do not fit in place of an error of the text that was run at them."""
    try:
        yield
    except GdslError as error:
        found = _misfits(compilation, sizes, lnc)
        if found:
            raise CompileError(found[0].message, found) from error
        raise


def _helped(diagnostic: Diagnostic, keys: Sequence[str]) -> Diagnostic:
    ways = [f"it fits with {' or '.join(keys)}"] if keys else []
    ways += [diagnostic.help] if diagnostic.help else []
    return evolve(diagnostic, help="; ".join(ways) or None)


def _misfits(
    compilation: Compilation, sizes: Mapping[str, int], lnc: int
) -> tuple[Diagnostic, ...]:
    return registry.emitter().misfits(compilation.plan, compilation.options, sizes, lnc)


def _keys(
    compilation: Compilation, sizes: Mapping[str, int], lnc: int
) -> Iterator[tuple[str, int]]:
    """Yield the schedule keys that make it fit, with the largest half, quarter, ... that does."""
    from gdsl.algorithm.schedule_keys import SCHEDULE_KEYS

    plan = compilation.plan
    for key in SCHEDULE_KEYS.values():
        if key.bounds is None or not plan.takes(key.name):
            continue
        value = int(plan.settings[key.name]) // 2
        while value >= max(1, key.bounds[0]):
            smaller = evolve(compilation, settings={**compilation.settings, key.name: value})
            if not _misfits(smaller, sizes, lnc):
                yield key.name, value
                break
            value //= 2
