"""The simulator's choices as one typed object; `README.md` has a row per field.

Where the public NKI documents contradict one another or are silent, the default takes the stricter
reading unless shipped AWS kernels rely on the other one.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from functools import cache
from typing import Any, Literal, get_args, get_type_hints

from attrs import fields_dict, frozen

from gdsl.errors import UsageError

Severity = Literal["fault", "warn"]


@frozen(kw_only=True)
class SimOptions:
    """What a run does: `shape_only` and `widen_to_fp32` say how, the rest what is legal."""

    shape_only: bool = False
    """Run the kernel's Python and check every rule that needs no data; memory holds nothing."""
    widen_to_fp32: bool = False
    """Store every float dtype as float32: the algorithm's error without the dtypes' rounding."""
    uninitialized: Literal["nan", "fault"] = "nan"
    """Unwritten memory reads as NaN (4 for integers), or reading it is a fault."""
    capacity: Severity = "fault"
    """Live bytes beyond SBUF or PSUM: the compiler would spill or fail."""
    races: Severity = "fault"
    """Unordered accesses of the two programs of an LNC pair to the same HBM bytes."""
    barrier_scope: Literal["tensor", "all"] = "tensor"
    """What `core_barrier(data=...)` orders: accesses to `data` only, or all shared HBM."""
    tensor_truth: Severity = "warn"
    """`if tensor:`; shipped kernels test so for an argument that may be None (it is true)."""
    partition_step: Literal["fault", "allow"] = "fault"
    """On-chip views that step over partitions (`t[::2]`)."""
    ap_offset: Literal["add", "absolute"] = "add"
    """Whether `.ap(offset=)` counts from the view's own offset or from the start of the storage."""
    address_unit: Literal["bytes", "elements"] = "bytes"
    """Unit of the free part of `nl.ndarray(address=(partition, free))`."""
    enumeration_stand_ins: Severity = "warn"
    """An integer or name where a member of an enumeration belongs, as in some shipped kernels."""
    column_types: Severity = "warn"
    """A (P, 1) operand of `scalar_tensor_tensor` that is not float32."""
    barrier_data: Severity = "warn"
    """`core_barrier` on a tensor that is not in shared HBM; it orders no memory."""
    matmul_operand_start: Literal["zero", "quadrant"] = "zero"
    """Matmul operands start at the array row of their tile, or at any legal start partition."""
    accumulate_preset: Severity = "warn"
    """`accumulate=None` overwriting non-zero data that no matmul wrote."""
    accumulate_after_write: Severity = "warn"
    """Accumulating where a non-matmul write came after the last matmul."""
    activation_range: Severity = "warn"
    """A ScalarE function of a number outside its valid range (the conventional value is used)."""

    def __attrs_post_init__(self) -> None:
        """Raise UsageError when a field holds none of its words."""
        for name, kind in _kinds().items():
            value = getattr(self, name)
            allowed = get_args(kind) or (True, False)
            if value not in allowed:
                words = " or ".join(f"`{word}`" for word in allowed)
                raise UsageError(f"simulator setting `{name}` is {words}, not `{value}`")


@cache
def _kinds() -> Mapping[str, Any]:
    """Return the type of every field, which takes long to find out."""
    return get_type_hints(SimOptions)


_SWITCHES: Mapping[str, bool] = {"true": True, "false": False}


def make_options(settings: Mapping[str, object]) -> SimOptions:
    """Return options from names and values, switches also as the words `true` and `false`.

    Raises UsageError for an unknown name or value.
    """
    known = fields_dict(SimOptions)
    for name in settings:
        if name not in known:
            raise UsageError(
                f"the simulator has no setting `{name}`; it has "
                + ", ".join(f"`{other}`" for other in known)
            )
    kinds = _kinds()
    chosen = {
        name: _SWITCHES.get(value, value)
        if kinds[name] is bool and isinstance(value, str)
        else value
        for name, value in settings.items()
    }
    # Any values as far as types can tell: the object itself refuses those that are no choice.
    return SimOptions(**chosen)  # type: ignore[arg-type]


_DEFAULT = SimOptions()
_ACTIVE: ContextVar[SimOptions] = ContextVar("simulator options", default=_DEFAULT)


def active_options() -> SimOptions:
    """Return the options of the run in progress."""
    return _ACTIVE.get()


def activate(options: SimOptions) -> None:
    """Make `options` those of the run in this context."""
    _ACTIVE.set(options)
