"""Arrays at the door: what a caller may hand in, what goes back, and `.npz` files.

bf16 and f8e4m3 are exchanged by their bits plus a dtype name, because numpy stores them as raw
bytes (`|V2`, `|V1`) and does not export them by DLPack.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from gdsl.errors import RunError, UsageError
from gdsl.ir.dtypes import Dtype
from gdsl.runner import Array

BF16, F8E4M3 = Dtype.BF16.numpy, Dtype.F8E4M3.numpy
DTYPE_TABLE = "__dtypes__"
"""The npz entry that holds {array name: dtype name} as JSON, for what numpy cannot store."""
_BY_NAME: dict[str, np.dtype[Any]] = {d.value: d.numpy for d in (Dtype.BF16, Dtype.F8E4M3)}
_NAMES = {dtype: name for name, dtype in _BY_NAME.items()}
_STORED_AS: dict[np.dtype[Any], np.dtype[Any]] = {
    BF16: np.dtype(np.uint16),
    F8E4M3: np.dtype(np.uint8),
}


def is_torch(value: object) -> bool:
    """Whether a value is a torch tensor; torch is not imported to find out."""
    return type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "numpy")


def from_caller(name: str, value: Any) -> Array | float | int | bool | str:
    """Return what the caller gave for argument `name` as a numpy array, scalars as they are.

    Raises RunError for a tensor that is not in the CPU's memory and for raw bytes.
    """
    if isinstance(value, bool | int | float | str):
        return value
    array = _from_torch(name, value) if is_torch(value) else np.asarray(value)
    if array.dtype.kind == "V" and array.dtype not in _NAMES:
        raise RunError(
            f"array `{name}` has dtype `{array.dtype}`, which says nothing about its values "
            "(numpy stores bf16 so); use `array.view(ml_dtypes.bfloat16)`, or write the file "
            "with `gdsl.save_npz`"
        )
    if array.dtype.kind not in "fiubV":
        raise RunError(f"array `{name}` has dtype `{array.dtype}`; expected numbers")
    return array


def to_caller(array: Array, torch: bool) -> Any:
    """Return an output in the caller's kind: a torch tensor when torch tensors came in."""
    if not torch:
        return array
    import torch as torch_package

    array = np.ascontiguousarray(array)
    if array.dtype == BF16:
        bits = torch_package.from_numpy(array.view(np.int16))
        return bits.view(torch_package.bfloat16)
    return torch_package.from_numpy(array)


def _from_torch(name: str, tensor: Any) -> Array:
    import torch

    if tensor.device.type != "cpu":
        raise RunError(
            f"tensor `{name}` is on device `{tensor.device}`; move it with `{name}.cpu()`"
        )
    tensor = tensor.detach().contiguous()
    if str(tensor.dtype).startswith("torch.float8"):
        raise RunError(
            f"tensor `{name}` is {tensor.dtype}, another format than f8e4m3 (which ends at 240 and "
            f"has infinities); use `{name}.float().numpy().astype(ml_dtypes.float8_e4m3)`"
        )
    if tensor.dtype == torch.bfloat16:
        return np.asarray(tensor.view(torch.int16).numpy()).view(BF16)
    return np.asarray(tensor.numpy())


# ---- files


def npz_bytes(arrays: Mapping[str, Array]) -> bytes:
    """Return the bytes of an `.npz` file with a dtype table for what numpy cannot store."""
    table = {n: _NAMES[array.dtype] for n, array in arrays.items() if array.dtype in _NAMES}
    stored = {
        name: array.view(_STORED_AS[array.dtype]) if array.dtype in _STORED_AS else array
        for name, array in arrays.items()
    }
    if table:
        stored[DTYPE_TABLE] = np.array(json.dumps(table))
    buffer = BytesIO()
    np.savez(buffer, allow_pickle=False, **stored)
    return buffer.getvalue()


def save_npz(path: str | Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays (numpy or torch) so that `load_npz` returns them with their dtypes."""
    from gdsl.files import write_atomically

    found = {name: np.asarray(from_caller(name, value)) for name, value in arrays.items()}
    write_atomically(Path(path), npz_bytes(found))


def load_npz(path: str | Path) -> dict[str, Array]:
    """Return the arrays of an `.npz` file, narrow floats by its dtype table. Raises UsageError."""
    try:
        with zipfile.ZipFile(path), np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        reason = getattr(error, "strerror", None) or "it is not one, or it is damaged"
        raise UsageError(f"cannot read `{path}` as an `.npz` file: {reason.lower()}") from error
    table = arrays.pop(DTYPE_TABLE, None)
    names = json.loads(str(table)) if table is not None else {}
    for name, dtype in names.items():
        if dtype not in _BY_NAME or name not in arrays:
            raise UsageError(f"`{path}`: its dtype table gives `{name}` the dtype `{dtype}`")
        arrays[name] = arrays[name].view(_BY_NAME[dtype])
    return arrays
