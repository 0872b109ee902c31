"""Element types of NKI: bytes, numpy storage, ranges.

Source: the dtype table of the NKI language reference (NKI 0.6). Packed types hold four elements in
one container; their storage here is the unsigned container.
"""

from __future__ import annotations

from typing import Any, Literal

import ml_dtypes
import numpy as np
from attrs import field, frozen

Kind = Literal["float", "signed", "unsigned", "bool", "packed"]


@frozen
class Dtype:
    """One element type. Equal and hashable by name."""

    name: str
    bytes: int = field(eq=False)
    numpy: np.dtype[Any] = field(eq=False)
    """What the simulator stores; `tfloat32` is an fp32 container."""
    kind: Kind = field(eq=False)
    minimum: float = field(eq=False, default=0.0)
    """Smallest finite value."""
    maximum: float = field(eq=False, default=0.0)
    """Largest finite value."""
    has_inf: bool = field(eq=False, default=False)
    matmul_from: int | None = field(eq=False, default=None)
    """First generation whose TensorE takes it as an input; None: never."""

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy dtype where numpy looks for it: `np.zeros(3, nl.bfloat16)` works on a host."""
        return self.numpy

    @property
    def is_float(self) -> bool:
        """Whether elements are floating point (packed types are not)."""
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Whether elements are integers; `bool_` is stored as one and counts."""
        return self.kind in ("signed", "unsigned", "bool")


def _float(name: str, storage: Any, matmul_from: int | None, has_inf: bool = True) -> Dtype:
    numpy = np.dtype(storage)
    limits = ml_dtypes.finfo(numpy)  # type: ignore[no-untyped-call]
    return Dtype(
        name=name,
        bytes=numpy.itemsize,
        numpy=numpy,
        kind="float",
        minimum=float(limits.min),
        maximum=float(limits.max),
        has_inf=has_inf,
        matmul_from=matmul_from,
    )


def _integer(name: str, storage: Any) -> Dtype:
    numpy = np.dtype(storage)
    limits = np.iinfo(numpy)
    kind: Kind = "signed" if limits.min < 0 else "unsigned"
    return Dtype(name, numpy.itemsize, numpy, kind, float(limits.min), float(limits.max))


DTYPES: dict[str, Dtype] = {
    dtype.name: dtype
    for dtype in (
        Dtype("bool_", 1, np.dtype(np.uint8), "bool", 0.0, 1.0),
        _integer("uint8", np.uint8),
        _integer("int8", np.int8),
        _integer("uint16", np.uint16),
        _integer("int16", np.int16),
        _integer("uint32", np.uint32),
        _integer("int32", np.int32),
        # "Legacy" 1-4-3 of the documentation: IEEE-like with infinities and maximum 240.
        _float("float8_e4m3", ml_dtypes.float8_e4m3, matmul_from=3),
        _float("float8_e4m3fn", ml_dtypes.float8_e4m3fn, matmul_from=4, has_inf=False),
        _float("float8_e5m2", ml_dtypes.float8_e5m2, matmul_from=2),
        # Scales of microscaling formats only; no arithmetic.
        _float("float8_e8m0fnu", ml_dtypes.float8_e8m0fnu, matmul_from=None, has_inf=False),
        _float("float16", np.float16, matmul_from=2),
        _float("bfloat16", ml_dtypes.bfloat16, matmul_from=2),
        _float("tfloat32", np.float32, matmul_from=2),
        _float("float32", np.float32, matmul_from=2),
        Dtype("float8_e5m2_x4", 4, np.dtype(np.uint32), "packed"),
        Dtype("float8_e4m3fn_x4", 4, np.dtype(np.uint32), "packed"),
        Dtype("float4_e2m1fn_x4", 2, np.dtype(np.uint16), "packed"),
    )
}

ALIASES: dict[str, str] = {
    "bool": "bool_",
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "tf32": "tfloat32",
}
"""Short names that command lines and old kernels use."""

FLOATS = frozenset(name for name, dtype in DTYPES.items() if dtype.is_float)
INTEGERS = frozenset(name for name, dtype in DTYPES.items() if dtype.is_integer)
PACKED = frozenset(name for name, dtype in DTYPES.items() if dtype.kind == "packed")
UNPACKED = frozenset(DTYPES) - PACKED
FP32_FAMILY = frozenset({"float32", "tfloat32"})
FP8_E4 = frozenset({"float8_e4m3", "float8_e4m3fn"})
FP8 = FP8_E4 | {"float8_e5m2"}
INT32S = frozenset({"int32", "uint32"})
MATMUL_INPUTS = frozenset(name for name, dtype in DTYPES.items() if dtype.matmul_from is not None)

_BY_NUMPY: dict[np.dtype[Any], Dtype] = {
    dtype.numpy: dtype
    for dtype in DTYPES.values()
    if dtype.kind != "packed" and dtype.name not in ("tfloat32", "bool_")
} | {np.dtype(np.bool_): DTYPES["bool_"]}


def find_dtype(value: object) -> Dtype:
    """The element type that `value` names: a `Dtype`, a name, or a numpy dtype or scalar type.

    Raises ValueError for anything that the machine has no type for (64-bit types, for instance).
    """
    if isinstance(value, Dtype):
        return value
    if isinstance(value, str):
        name = ALIASES.get(value, value)
        if name in DTYPES:
            return DTYPES[name]
    else:
        try:
            numpy = np.dtype(value)  # type: ignore[call-overload]
        except TypeError:
            numpy = None
        if numpy in _BY_NUMPY:
            return _BY_NUMPY[numpy]
    raise ValueError(f"no NKI element type `{value}`; known are {', '.join(DTYPES)}")
