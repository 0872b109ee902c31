"""The name space `nki.language` for one target."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from backends.isa.activations import ACTIVATIONS
from backends.isa.dtypes import DTYPES
from backends.isa.operators import OPERATOR_ALIASES, OPERATORS
from backends.isa.targets import (
    PARTITIONS,
    PSUM_BANK_BYTES,
    PSUM_BANKS,
    STATIONARY_FREE,
    Target,
)
from backends.simulator import (
    allocation,
    language_control,
    language_math,
    language_memory,
    language_reduce,
)
from backends.simulator.faults import Fault
from backends.simulator.namespace import namespace
from backends.simulator.nki_object import NKIObject
from backends.simulator.op_tokens import TOKENS
from backends.simulator.registers import VirtualRegister
from backends.simulator.tensor import NkiTensor
from backends.simulator.tokens import MemoryRegion

_BINARY = (
    "add", "subtract", "multiply", "maximum", "minimum", "abs_max", "abs_min", "power",
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift",
    "logical_and", "logical_or", "logical_xor",
)  # fmt: skip
_OWN_UNARY = {
    "reciprocal": language_math.reciprocal,
    "rsqrt": language_math.rsqrt,
    "sin": language_math.sin,
    "copy": language_memory.copy,
}
_UNARY_ALU = ("invert", "logical_not")
_FUNCTIONS: dict[str, Any] = {
    "negative": language_math.negative,
    "floor": language_math.floor,
    "ceil": language_math.ceil,
    "trunc": language_math.trunc,
    "cos": language_math.cos,
    "tan": language_math.tan,
    "where": language_math.where,
    "broadcast_to": language_math.broadcast_to,
    "divide": language_math.not_on_hardware("divide"),
    "mod": language_math.not_on_hardware("mod"),
    "fmod": language_math.not_on_hardware("fmod"),
    "sum": language_reduce.reduction("sum", "add"),
    "prod": language_reduce.reduction("prod", "multiply"),
    "mean": language_reduce.mean,
    "var": language_reduce.var,
    "all": language_reduce.all_,
    "softmax": language_reduce.softmax,
    "rms_norm": language_reduce.rms_norm,
    "transpose": language_reduce.transpose,
    "matmul": language_reduce.matmul,
    "gather_flattened": language_reduce.gather_flattened,
    "expand_dims": language_reduce.expand_dims,
    "ndarray": allocation.ndarray,
    "zeros": language_memory.zeros,
    "ones": language_memory.ones,
    "full": language_memory.full,
    "zeros_like": language_memory.zeros_like,
    "empty_like": language_memory.empty_like,
    "load": language_memory.load,
    "store": language_memory.store,
    "load_transpose2d": language_memory.load_transpose2d,
    "shared_constant": language_memory.shared_constant,
    "shared_identity_matrix": language_memory.shared_identity_matrix,
    "ds": language_control.ds,
    "program_id": language_control.program_id,
    "num_programs": language_control.num_programs,
    "program_ndim": language_control.program_ndim,
    "fori_loop": language_control.fori_loop,
    "while_loop": language_control.while_loop,
    "dynamic_range": language_control.dynamic_range,
    "no_reorder": language_control.no_reorder,
    "device_print": language_control.device_print,
    "range": range,
    "static_range": range,
    "affine_range": range,
    "sequential_range": range,
    "NKIObject": NKIObject,
    "NkiTensor": NkiTensor,
    "VirtualRegister": VirtualRegister,
    "MemoryRegion": MemoryRegion,
    "sbuf": MemoryRegion.sbuf,
    "psum": MemoryRegion.psum,
    "hbm": MemoryRegion.private_hbm,
    "private_hbm": MemoryRegion.private_hbm,
    "shared_hbm": MemoryRegion.shared_hbm,
    "is_hbm": lambda region: not region.on_chip,
    "is_on_chip": lambda region: region.on_chip,
    "is_psum": lambda region: region is MemoryRegion.psum,
    "is_sbuf": lambda region: region is MemoryRegion.sbuf,
}
_RANDOM = ("rand", "random_seed", "dropout")
_BN_STATS_FREE = 512

NOT_SIMULATED_LANGUAGE = tuple(f"nl.{name}" for name in (*_RANDOM, "divide", "mod", "fmod"))
"""Functions that exist and raise a fault when called."""


def _wire_tokens() -> None:
    """Give every token that is also a function what calling it does."""
    for name in _BINARY:
        TOKENS[name].wrapper = language_math.binary(name)
    for name in _UNARY_ALU:
        TOKENS[name].wrapper = language_math.unary_alu(name)
    for name in ACTIVATIONS:
        TOKENS[name].wrapper = language_math.activation(name)
    for name, function in _OWN_UNARY.items():
        TOKENS[name].wrapper = function
    # `nl.max(x, axis)` reduces; as `op=nl.max` it is another name of `nl.maximum`.
    for alias, canonical in OPERATOR_ALIASES.items():
        TOKENS[alias].wrapper = language_reduce.reduction(alias, canonical)


_wire_tokens()


def _random(name: str) -> Any:
    def call(*_: Any, **__: Any) -> NkiTensor:
        raise Fault("S109", f"`nl.{name}`: the machine's random streams are not documented")

    return call


def tile_size(target: Target) -> ModuleType:
    """Return `nl.tile_size` for a target."""
    usable = target.sbuf_usable_bytes
    return namespace(
        "nki.language.tile_size",
        {
            "pmax": PARTITIONS,
            "psum_fmax": PSUM_BANK_BYTES // 4,
            "psum_bank_fmax": PSUM_BANK_BYTES // 4,
            "psum_bank_fmax_bytes": PSUM_BANK_BYTES,
            "psum_num_banks": PSUM_BANKS,
            "gemm_stationary_fmax": STATIONARY_FREE,
            "gemm_moving_fmax": PSUM_BANK_BYTES // 4,
            "bn_stats_fmax": _BN_STATS_FREE,
            "sbuf_size_bytes": PARTITIONS * usable,
            "sbuf_fmax_bytes": usable,
            "sbuf_fmax": usable // 4,
            "total_available_sbuf_size": usable,
        },
    )


def language(target: Target) -> ModuleType:
    """Return the module object of `nki.language`."""
    names: dict[str, Any] = {
        **DTYPES,
        **TOKENS,
        **_FUNCTIONS,
        **{name: _random(name) for name in _RANDOM},
        "tile_size": tile_size(target),
    }
    assert set(OPERATORS) <= set(names)
    return namespace("nki.language", names)
