"""`schedule` and `shapes` blocks. Which schedule keys exist is known to `gdsl.algorithm`."""

from __future__ import annotations

from collections.abc import Mapping

from gdsl.diagnostics.diagnostic import Label
from gdsl.ir.dims import Axis, Dim
from gdsl.ir.kernel import Kernel, Run, Schedule, Setting, Shape
from gdsl.options import TARGETS
from gdsl.semantics.axes import show, unknown_axis, value_axes
from gdsl.semantics.measure import I32_MAX
from gdsl.semantics.report import Reporter
from gdsl.source import Span
from gdsl.suggest import did_you_mean
from gdsl.syntax import ast


def known_kernel(name: ast.Name, declared: Mapping[str, ast.Kernel], reporter: Reporter) -> bool:
    """Return whether the file declares the kernel that a block names; reports when not."""
    if name.text in declared:
        return True
    reporter.error(
        "E0201",
        f"unknown kernel `{name.text}`{did_you_mean(name.text, declared)}",
        name.span,
        label="no kernel of this name in this file",
        help=None if declared else "the block belongs in the file that declares the kernel",
    )
    return False


def schedule(node: ast.Schedule, reporter: Reporter) -> Schedule:
    """Return a schedule's settings as written."""
    settings: list[Setting] = []
    seen: dict[str, Span] = {}
    for item in node.settings:
        key = item.key
        if not reporter.is_first(seen, key.text, key.span, f"`{key.text}` is set twice"):
            continue
        value = item.value.text if isinstance(item.value, ast.Name) else item.value.value
        settings.append(Setting(key.text, value, span=item.span))
    targets = tuple(target.text for target in node.targets)
    for target in node.targets:
        if target.text not in TARGETS:
            reporter.error(
                "E0201",
                f"unknown target `{target.text}`{did_you_mean(target.text, TARGETS)}",
                target.span,
                label="no machine of this name",
                notes=(f"targets: {', '.join(TARGETS)}",),
                help="leave out `on ...` for a schedule that holds everywhere",
            )
    return Schedule(node.kernel.text, targets, tuple(settings), span=node.span)


def overlapping(schedules: list[tuple[ast.Schedule, Schedule]], reporter: Reporter) -> None:
    """Report two schedules of one kernel for one target."""
    seen: dict[str, Span] = {}
    for node, made in schedules:
        for target in made.targets or ("every target",):
            message = f"`{made.kernel}` has two schedules on {target}"
            reporter.is_first(seen, message, node.kernel.span, message)


def shapes(node: ast.Shapes, kernel: Kernel | None, reporter: Reporter) -> tuple[Shape, ...]:
    """Return the named sizes of a kernel (None: it has errors, and only names are checked)."""
    found: list[Shape] = []
    names: dict[str, Span] = {}
    for item in node.shapes:
        name = item.name
        message = f"there are two shapes `{name.text}`"
        if not reporter.is_first(names, name.text, name.span, message):
            continue
        shape = _shape(item, kernel, reporter)
        if shape is not None:
            found.append(shape)
    return tuple(found)


def _shape(node: ast.Shape, kernel: Kernel | None, reporter: Reporter) -> Shape | None:
    sizes: dict[str, ast.Size] = {}
    seen: dict[str, Span] = {}
    fits = True
    for size in node.sizes:
        axis = size.axis.text
        sizes.setdefault(axis, size)
        if not reporter.is_first(seen, axis, size.span, f"axis `{axis}` has two sizes"):
            fits = False
        elif not 1 <= size.value <= I32_MAX:
            fits = False
            reporter.error(
                "E0108",
                f"axis `{axis}` cannot have {_digits(size.value)} elements",
                size.span,
                help=f"sizes lie between 1 and {I32_MAX}",
            )
    if kernel is None or not fits or not _fits_kernel(node, sizes, kernel, reporter):
        return None
    return Shape(
        node.name.text, tuple((size.axis.text, size.value) for size in node.sizes), span=node.span
    )


def _digits(value: int) -> str:
    text = str(value)
    return text if len(text) <= 12 else f"{text[:6]}... ({len(text)} digits)"


def _fits_kernel(
    node: ast.Shape, sizes: dict[str, ast.Size], kernel: Kernel, reporter: Reporter
) -> bool:
    atomic = {axis.name: axis for axis in kernel.axes}
    composites = dict(kernel.composites)
    known = {name: size.value for name, size in sizes.items() if name in atomic}
    fits = True
    for name, size in sizes.items():
        if name in atomic:
            fits &= _meets_facts(size, atomic[name], reporter)
        elif name in composites:
            fits &= _split(size, composites[name], known, reporter)
        else:
            fits = False
            unknown_axis(name, size.axis.span, (*atomic, *composites), reporter)
    missing = [name for name in atomic if name not in known and name not in _derived(kernel)]
    if fits and missing:
        fits = False
        reporter.error(
            "E0310",
            f"shape `{node.name.text}` leaves {show(missing)} open",
            node.name.span,
            help=f"add {', '.join(f'`{name}: ...`' for name in missing)}",
        )
    return fits


def _derived(kernel: Kernel) -> set[str]:
    """Axes whose size follows from others: those that states on the way lie along."""
    return {
        run.states_axis
        for run in kernel.body
        if isinstance(run, Run) and run.states_axis is not None
    }


def _meets_facts(size: ast.Size, axis: Axis, reporter: Reporter) -> bool:
    wrong = None
    if axis.at_most is not None and size.value > axis.at_most:
        wrong = f"{axis.name} <= {axis.at_most}"
    elif size.value % axis.multiple_of:
        wrong = f"{axis.name} % {axis.multiple_of} == 0"
    if wrong is None:
        return True
    reporter.error(
        "E0309",
        f"size {size.value} of axis `{axis.name}` breaks `{wrong}`",
        size.span,
        labels=(Label(axis.span, "declared here"),) if axis.span is not None else (),
    )
    return False


def _split(size: ast.Size, dim: Dim, known: dict[str, int], reporter: Reporter) -> bool:
    """Use the size of a composite axis for its one part that has none."""
    parts = value_axes(dim)
    product = 1
    for part in parts:
        product *= known.get(part, 1)
    open_parts = [part for part in parts if part not in known]
    if len(open_parts) > 1:
        reporter.error(
            "E0310",
            f"`{size.axis.text}` is {show(parts)} together; two of them stay open",
            size.span,
            help=f"give the sizes of {show(parts)}",
        )
        return False
    if size.value % product or (not open_parts and size.value != product):
        reporter.error(
            "E0309",
            f"`{size.axis.text}: {size.value}` is not the product of its parts {show(parts)}",
            size.span,
            notes=(f"the parts given here make {product}",),
        )
        return False
    known.update(dict.fromkeys(open_parts, size.value // product))
    return True
