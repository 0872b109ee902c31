"""Arguments of an NKI kernel on the command line: `--arg x=bf16[32,128] --arg scale=0.5`."""

from __future__ import annotations

import argparse
import re
from typing import Any

import ml_dtypes
import numpy as np

from gdsl.arrays import load_npz
from gdsl.cli import arguments as shared
from gdsl.errors import UsageError
from gdsl.suggest import did_you_mean

DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(kind)
    for name, kind in (
        ("f32", np.float32),
        ("bf16", ml_dtypes.bfloat16),
        ("f16", np.float16),
        ("fp8_e4m3", ml_dtypes.float8_e4m3),
        ("fp8_e5m2", ml_dtypes.float8_e5m2),
        ("i32", np.int32),
        ("u32", np.uint32),
        ("i16", np.int16),
        ("u16", np.uint16),
        ("i8", np.int8),
        ("u8", np.uint8),
    )
}
_TENSOR = re.compile(r"(\w+)\[([\d,\s]*)\]")


def add(parser: argparse.ArgumentParser) -> None:
    """Declare --arg, --inputs and --seed."""
    parser.add_argument(
        "--arg",
        metavar="NAME=DTYPE[SIZES]|NAME=VALUE",
        action="append",
        default=[],
        help="a Gaussian tensor, or a number, true, false, none or text; may be repeated",
    )
    parser.add_argument("--inputs", metavar="F.npz", help="arrays by parameter name")
    shared.add_seed(parser, "the tensors")


def arguments(args: argparse.Namespace, *, data: bool) -> dict[str, Any]:
    """Return the arguments by name; without `data` a tensor takes no memory. Raises UsageError."""
    rng = np.random.default_rng(args.seed)
    found: dict[str, Any] = dict(load_npz(args.inputs)) if args.inputs else {}
    for item in args.arg:
        name, equals, text = (part.strip() for part in item.partition("="))
        if not (equals and name.isidentifier() and text):
            raise UsageError(f"`--arg {item}`: expected NAME=DTYPE[SIZES] or NAME=VALUE")
        tensor = _TENSOR.fullmatch(text)
        if tensor is None and "[" in text:
            raise UsageError(f"`--arg {item}`: expected sizes as in `{name}=f32[32,128]`")
        found[name] = _tensor(item, tensor[1], tensor[2], rng, data) if tensor else _value(text)
    return found


def _tensor(item: str, dtype: str, sizes: str, rng: np.random.Generator, data: bool) -> Any:
    kind = DTYPES.get(dtype)
    if kind is None:
        raise UsageError(
            f"`--arg {item}`: there is no dtype `{dtype}`{did_you_mean(dtype, DTYPES)}; "
            f"known: {', '.join(DTYPES)}"
        )
    shape = tuple(int(size) for size in sizes.split(",") if size.strip())
    if not data:
        return np.broadcast_to(np.zeros((), kind), shape)
    if kind.kind in "iu":
        return rng.integers(0, 8, shape).astype(kind)
    return rng.standard_normal(shape).astype(kind)


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
