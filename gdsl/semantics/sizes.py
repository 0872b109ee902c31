"""Whether shapes determine every axis."""

from __future__ import annotations

from gdsl.ir.kernel import Kernel
from gdsl.ir.size_plan import size_plan
from gdsl.semantics.axes import AxisTable, show
from gdsl.semantics.report import Reporter


def check(kernel: Kernel, table: AxisTable, reporter: Reporter) -> None:
    """Report axes whose sizes do not follow from the shapes of the arguments."""
    plan = size_plan(kernel)
    for axis in plan.open:
        if axis not in table.used:
            continue
        known = [name for name in table.atomic if name not in plan.open]
        reporter.error(
            "E0310",
            f"the size of axis `{axis}` does not follow from the shapes of the arguments",
            table.spans[axis],
            label="not determined",
            notes=(f"determined are {show(known)}",) if known else (),
            help=f"add `param {axis}: int`, or an argument with `{axis}` as a dimension of its own",
        )
        return
