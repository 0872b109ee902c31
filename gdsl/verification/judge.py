"""How far two results are apart, and how far they may be.

Per output and per group (batch, head), over all its tokens and columns:
e_rms = rms(x - ref) / s, e_max = max|x - ref| / s, s = max(rms of the group, 0.01 rms of all).
Per token would be wrong: where q . k is near 0 before an RMSNorm, fp32 itself is off by 6e-2.

The comparator of the vendor's tests, |x - ref| <= atol + rtol max|ref|, is reported beside these
and does not bind: one global maximum hides a head that is small.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import frozen

from gdsl.ir.dtypes import Dtype
from gdsl.runner import Array

VENDOR_TOLERANCE = 2e-2
"""atol and rtol of nki-library's tests of delta-rule kernels, the tightest of them."""
_FLOOR = 0.01
_SMALLEST_EXPONENT: Mapping[Dtype, int] = {Dtype.BF16: -126, Dtype.F16: -14, Dtype.F32: -126}


@frozen
class Allowed:
    """The bounds of one output, for each group, in units of s. `max` None: reported, not bounded.

    Rounding to the output's own dtype comes on top.
    """

    rms: Array
    max: Array | None


@frozen
class Verdict:
    """One output judged. The errors and bounds are those of the worst group and place."""

    name: str
    e_rms: float
    e_max: float
    bound_rms: float
    bound_max: float | None
    at: Mapping[str, int]
    """The worst place, by axis."""
    value: float
    expected: float
    vendor: float
    """max|x - ref| / (atol + rtol max|ref|) over the whole output: at most 1 passes there."""
    ok: bool


def group_scale(reference: Array) -> Array:
    """Return s of each group, from the finite values; `reference` is [groups, elements]."""
    if not reference.size:
        return np.ones(reference.shape[0])
    reference = np.where(np.isfinite(reference), reference, 0.0)
    own = np.sqrt(np.mean(reference**2, axis=1))
    scale = np.maximum(own, _FLOOR * np.sqrt(np.mean(reference**2)))
    return np.asarray(np.where(scale > 0, scale, 1.0))


def errors_rms(x: Array, reference: Array, scale: Array) -> Array:
    """Return e_rms of each group. A value that is not finite where the other is counts as inf."""
    return np.asarray(np.sqrt(np.mean(_difference(x, reference) ** 2, axis=1)) / scale)


def errors_max(x: Array, reference: Array, scale: Array) -> Array:
    """Return e_max of each group."""
    return np.asarray(np.max(_difference(x, reference), axis=1, initial=0.0) / scale)


def vendor_share(x: Array, reference: Array) -> float:
    """Return the largest difference in units of what the vendor's tests admit."""
    largest = float(np.max(np.abs(reference[np.isfinite(reference)]), initial=0.0))
    admitted = VENDOR_TOLERANCE * (1 + largest)
    return float(np.max(_difference(x, reference), initial=0.0)) / admitted


def storage_rounding(reference: Array, dtype: Dtype) -> Array:
    """Return what storing each value in a dtype may change: half an ulp, and underflow.

    Half a unit in the last place counts for bf16 and f16; results are computed in fp32, so a
    float32 output adds no rounding of its own. Below the smallest normal number a machine may flush
    to 0 (the instruction set is silent about it).
    """
    normal = 2.0 ** _SMALLEST_EXPONENT.get(dtype, -126)
    underflow = np.full_like(reference, normal)
    if dtype not in (Dtype.BF16, Dtype.F16):
        return underflow
    _, exponent = np.frexp(np.where(np.isfinite(reference), reference, 0.0))
    exponent = np.maximum(exponent - 1, _SMALLEST_EXPONENT[dtype])
    return np.asarray(np.ldexp(0.5, exponent - dtype.fraction_bits) + underflow)


def judge(
    name: str,
    axes: tuple[str, ...],
    groups: tuple[str, ...],
    x: Array,
    reference: Array,
    allowed: Allowed,
    stored: Dtype | None,
) -> Verdict:
    """Compare an output with its reference.

    `axes` name the dimensions of both; those in `groups` separate groups. `stored` is the dtype the
    output was rounded to; None when the reference was rounded to it as well.
    """
    x2, ref2 = grouped(x, axes, groups), grouped(reference, axes, groups)
    if not ref2.size:
        return Verdict(name, 0.0, 0.0, 0.0, None, {}, 0.0, 0.0, 0.0, ok=True)
    scale = group_scale(ref2)
    rounding = storage_rounding(ref2, stored) if stored else np.zeros_like(ref2)
    relative = _difference(x2, ref2) / scale[:, None]
    e_rms = errors_rms(x2, ref2, scale)
    rms = allowed.rms + np.sqrt(np.mean(rounding**2, axis=1)) / scale
    worst_group = int(np.argmax(_ratio(e_rms, rms)))
    if allowed.max is None:
        place = np.unravel_index(int(np.argmax(relative)), relative.shape)
        bound_max, within = None, bool(np.isfinite(relative).all())
    else:
        limit = allowed.max[:, None] + rounding / scale[:, None]
        place = np.unravel_index(int(np.argmax(_ratio(relative, limit))), relative.shape)
        bound_max, within = float(limit[place]), bool((relative <= limit).all())
    return Verdict(
        name,
        float(e_rms[worst_group]),
        float(relative[place]),
        float(rms[worst_group]),
        bound_max,
        _place(axes, groups, x.shape, (int(place[0]), int(place[1]))),
        float(x2[place]),
        float(ref2[place]),
        vendor_share(x2, ref2),
        ok=within and bool((e_rms <= rms).all()),
    )


def grouped(x: Array, axes: tuple[str, ...], groups: tuple[str, ...]) -> Array:
    """Return the array as float64 with shape [groups, elements of a group]."""
    order = _order(axes, groups)
    moved = x.astype(np.float64).transpose(order)
    count = int(np.prod([x.shape[i] for i, axis in enumerate(axes) if axis in groups], dtype=int))
    size = x.size // count if count else 0
    return moved.reshape(count, size)


def _order(axes: tuple[str, ...], groups: tuple[str, ...]) -> list[int]:
    outer = [i for i, axis in enumerate(axes) if axis in groups]
    return outer + [i for i in range(len(axes)) if i not in outer]


def _difference(x: Array, reference: Array) -> Array:
    """Return |x - ref|; equal infinities and a NaN in both differ by 0, a NaN in one by inf."""
    with np.errstate(invalid="ignore"):
        same = (x == reference) | (np.isnan(x) & np.isnan(reference))
        difference = np.abs(x - reference)
    difference = np.where(np.isnan(difference), np.inf, difference)
    return np.where(same, 0.0, difference)


def _ratio(error: Array, allowed: Array) -> Array:
    """Return error / allowed; 0 / 0 is 0, and an error where nothing is allowed is infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(error == 0, 0.0, error / allowed)


def _place(
    axes: tuple[str, ...],
    groups: tuple[str, ...],
    shape: tuple[int, ...],
    place: tuple[int, int],
) -> dict[str, int]:
    order = _order(axes, groups)
    moved = tuple(shape[i] for i in order)
    size = int(np.prod([n for n, i in zip(moved, order, strict=True) if axes[i] not in groups]))
    index = np.unravel_index(place[0] * size + place[1], moved)
    found = {axes[i]: int(at) for i, at in zip(order, index, strict=True)}
    return {axis: found[axis] for axis in axes}
