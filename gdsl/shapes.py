"""Sizes of a kernel's axes: named shapes, `A=1,B=2`, defaults, and the shapes of its tensors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import assert_never

from gdsl.errors import UsageError
from gdsl.ir.dims import Atom, Axis, Dim, Packed, Product, Unit
from gdsl.ir.kernel import Kernel, Shape
from gdsl.ir.size_plan import FromTokens, size_plan
from gdsl.suggest import did_you_mean

_DEFAULT_SIZES: Mapping[str, int] = {"B": 2, "T": 40, "W": 4}
"""Sizes for a kernel whose file names no shape; every axis not listed gets 2, K and V 32."""
_DEFAULT_FEATURE = 32


def parse_sizes(text: str) -> dict[str, int]:
    """Parse `A=1,B=2`. Raises UsageError."""
    sizes: dict[str, int] = {}
    for item in text.split(","):
        name, equals, value = (part.strip() for part in item.partition("="))
        if not (name.isidentifier() and equals and value.isascii() and value.isdigit()):
            raise UsageError(
                f"`{item.strip()}` is not a size; expected a shape's name or `AXIS=NUMBER,...`, "
                "for example `--shape B=1,Hv=32,K=128,V=128`"
            )
        if name in sizes:
            raise UsageError(f"axis `{name}` has two sizes, {sizes[name]} and {value}; give one")
        if len(value) > 9:
            raise UsageError(f"axis `{name}` cannot have {value} elements; the limit is 999999999")
        sizes[name] = int(value)
    return sizes


def resolve_sizes(
    kernel: Kernel, shapes: Iterable[Shape], wanted: str | Mapping[str, int] | None
) -> dict[str, int]:
    """Return a size for every atomic axis of the kernel.

    `wanted` is the name of one of `shapes`, `A=1,B=2` as text or as a mapping, or None: the first
    named shape, or else small defaults. A composite axis may be given when all but one of its parts
    are. Raises UsageError for unknown, missing or contradicting axes and for broken axis limits.
    """
    named = {shape.name: dict(shape.sizes) for shape in shapes}
    if wanted is None:
        given = next(iter(named.values()), None) or _defaults(kernel)
    elif isinstance(wanted, str) and "=" not in wanted:
        if wanted not in named:
            known = ", ".join(f"`{name}`" for name in named) or "none"
            raise UsageError(
                f"kernel `{kernel.name}` has no shape `{wanted}`{did_you_mean(wanted, named)}; "
                f"named shapes: {known}; or give sizes: `--shape {_example(kernel)}`"
            )
        given = named[wanted]
    else:
        given = parse_sizes(wanted) if isinstance(wanted, str) else dict(wanted)
    return _complete(kernel, given)


def _complete(kernel: Kernel, given: Mapping[str, int]) -> dict[str, int]:
    sizes = dict(given)
    composites = dict(kernel.composites)
    for name, dim in composites.items():
        if name in sizes:
            _split_composite(name, dim, sizes)
    atoms = [axis.name for axis in atomic_axes(kernel)]
    unknown = [name for name in sizes if name not in atoms and name not in composites]
    if unknown:
        raise UsageError(
            f"kernel `{kernel.name}` has no axis `{unknown[0]}`{did_you_mean(unknown[0], atoms)}; "
            f"its axes: {', '.join(atoms)}"
        )
    for name, size in checkpoint_axes(kernel, sizes).items():
        if sizes.setdefault(name, size) != size:
            raise UsageError(
                f"axis `{name}` of kernel `{kernel.name}` counts checkpoints, here {size} and not "
                f"{sizes[name]}; leave it out"
            )
    missing = [name for name in atoms if name not in sizes]
    if missing:
        raise UsageError(
            f"axis `{missing[0]}` of kernel `{kernel.name}` has no size; "
            f"add {', '.join(f'`{name}=...`' for name in missing)} to `--shape`"
        )
    for axis in atomic_axes(kernel):
        _check_limits(kernel, axis, sizes[axis.name])
    return {name: sizes[name] for name in atoms}


def checkpoint_axes(kernel: Kernel, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the size of each axis that counts the states after every so many tokens."""
    found: dict[str, int] = {}
    for step in size_plan(kernel).steps:
        if isinstance(step, FromTokens) and step.tokens in sizes:
            block = _block(kernel, step.every)
            found[step.target[0]] = sizes[step.tokens] // block if block else 0
    return found


def checkpoint_distance(kernel: Kernel) -> int:
    """Return the tokens from one returned state to the next, 1 where none or each is returned."""
    steps = (step for step in size_plan(kernel).steps if isinstance(step, FromTokens))
    return max((_block(kernel, step.every) for step in steps), default=1)


def empty_axes(kernel: Kernel, sizes: Mapping[str, int]) -> tuple[str, ...]:
    """Return the axes without elements, because of which nothing would be launched.

    A call that is too short for a checkpoint is none of them.
    """
    checkpoints = checkpoint_axes(kernel, sizes)
    return tuple(axis for axis, size in sizes.items() if size == 0 and axis not in checkpoints)


def _block(kernel: Kernel, every: int | str) -> int:
    """Tokens between two checkpoints; 0 (none) for a parameter without a default."""
    if isinstance(every, int):
        return every
    return next(int(param.default or 0) for param in kernel.params if param.name == every)


def _split_composite(name: str, dim: Dim, sizes: dict[str, int]) -> None:
    """Turn the size of a composite axis into that of its one part that has none."""
    whole = sizes.pop(name)
    parts = dim_axes(dim)
    written = f"({' '.join(parts)})"
    known = math.prod(sizes[part] for part in parts if part in sizes)
    open_parts = [part for part in parts if part not in sizes]
    if len(open_parts) > 1:
        raise UsageError(
            f"`{name}` is the composite axis {written}; give its parts, "
            f"for example `{','.join(f'{part}=...' for part in parts)}`"
        )
    if known == 0 or whole % known or (not open_parts and whole != known):
        raise UsageError(f"`{name}={whole}` is not {written} with the given sizes of its parts")
    for part in open_parts:
        sizes[part] = whole // known


def _check_limits(kernel: Kernel, axis: Axis, size: int) -> None:
    if axis.at_most is not None and size > axis.at_most:
        raise UsageError(
            f"kernel `{kernel.name}` declares `{axis.name} <= {axis.at_most}`, got {size}"
        )
    if size % axis.multiple_of:
        raise UsageError(
            f"kernel `{kernel.name}` declares `{axis.name} % {axis.multiple_of} == 0`, got {size}"
        )


def _defaults(kernel: Kernel) -> dict[str, int]:
    sizes = {}
    for axis in atomic_axes(kernel):
        feature = _DEFAULT_FEATURE if axis.name in ("K", "V") else 2
        size = _DEFAULT_SIZES.get(axis.name, feature)
        size = -(-size // axis.multiple_of) * axis.multiple_of
        sizes[axis.name] = size if axis.at_most is None else min(size, axis.at_most)
    return sizes


def _example(kernel: Kernel) -> str:
    return ",".join(f"{name}={size}" for name, size in _defaults(kernel).items())


def atomic_axes(kernel: Kernel) -> tuple[Axis, ...]:
    """The kernel's axes that have a size of their own (packed axes do not)."""
    packed = {item.name for item in kernel.packed}
    return tuple(axis for axis in kernel.axes if axis.name not in packed)


def dim_axes(dim: Dim) -> tuple[str, ...]:
    """The atomic axes a dimension is made of, in order."""
    match dim:
        case Unit():
            return ()
        case Atom(axis=axis):
            return (axis,)
        case Product(parts=parts):
            return tuple(axis for part in parts for axis in dim_axes(part))
        case Packed(fields=fields):
            return tuple(axis for _, field in fields for axis in dim_axes(field))
        case _:
            assert_never(dim)


def dim_size(dim: Dim, sizes: Mapping[str, int]) -> int:
    """The number of elements along a dimension."""
    match dim:
        case Unit():
            return 1
        case Atom(axis=axis):
            return sizes[axis]
        case Product(parts=parts):
            return math.prod(dim_size(part, sizes) for part in parts)
        case Packed(fields=fields):
            return sum(dim_size(field, sizes) for _, field in fields)
        case _:
            assert_never(dim)


def tensor_shape(dims: Iterable[Dim], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of a tensor with these dimensions."""
    return tuple(dim_size(dim, sizes) for dim in dims)
