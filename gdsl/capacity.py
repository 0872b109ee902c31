"""Does a kernel fit its target at known sizes? Asked before any text is written or simulated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from gdsl import registry
from gdsl.diagnostics.diagnostic import Diagnostic
from gdsl.emitter import Footprint
from gdsl.errors import CompileError, GdslError, UsageError
from gdsl.ir.kernel import Kernel
from gdsl.pipeline import Compilation
from gdsl.shapes import empty_axes


def require_fit(compilation: Compilation, sizes: Mapping[str, int], lnc: int) -> Footprint:
    """Return the on-chip memory a kernel needs at these sizes on `lnc` cores.

    Raises CompileError when it does not fit, UsageError where there is nothing to launch. The
    findings are the emitter's.
    """
    require_elements(compilation.definition.kernel, sizes)
    found = _misfits(compilation, sizes, lnc)
    if found:
        raise CompileError(found[0].message, found)
    return registry.emitter().footprint(compilation.plan, compilation.options, sizes, lnc)


def require_elements(kernel: Kernel, sizes: Mapping[str, int]) -> None:
    """Raise UsageError where an axis has no elements: then there is nothing to launch."""
    empty = empty_axes(kernel, sizes)
    if empty:
        raise UsageError(
            f"axis `{empty[0]}` of kernel `{kernel.name}` has size 0, so nothing would be "
            "launched; give 1 or more"
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


def _misfits(
    compilation: Compilation, sizes: Mapping[str, int], lnc: int
) -> tuple[Diagnostic, ...]:
    return registry.emitter().misfits(compilation.plan, compilation.options, sizes, lnc)
