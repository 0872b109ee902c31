"""Streaming cycles of VectorE, ScalarE and GpSimdE instructions, by opcode.

`WIDTHS` names for each (engine, opcode) the rule that picks a row of `backends/isa/machine_widths`;
a rule looks at element types, memories and strides, never at a number of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from backends.cost.workload import Stream
from backends.isa.machine import Machine
from backends.isa.machine_widths import FAST_FUSED, FAST_TENSOR, NARROW_DTYPES, ROOTS

Rule = Callable[[Stream, Machine], float]


def streaming_cycles(stream: Stream, machine: Machine) -> float:
    """Return the cycles for which the instruction streams, without its fixed occupancy."""
    cycles = WIDTHS[stream.engine, stream.opcode](stream, machine)
    if stream.stride_bytes > machine["wide_stride_bytes"]:
        cycles *= machine["wide_stride_factor"]
    if stream.dynamic:
        cycles = max(cycles, machine["dynamic_cycles"])
    return max(cycles, 1.0)


def _narrow(stream: Stream, machine: Machine) -> bool:
    return stream.dtypes <= NARROW_DTYPES[machine.name]


def _per(key: str) -> Rule:
    """The same cycles per element whatever the operands."""
    return lambda stream, machine: stream.elements * machine[key]


def _two_inputs(stream: Stream, machine: Machine) -> float:
    if stream.psum_streamed:
        key = "v_two_psum"
    elif not _narrow(stream, machine):
        key = "v_two_sbuf"
    elif stream.contiguous and set(stream.operators) <= FAST_TENSOR:
        key = "v_two_16bit"
    else:
        key = "v_two_16bit_other"
    return stream.elements * machine[key]


def _fused(stream: Stream, machine: Machine) -> float:
    if stream.psum_streamed:
        key = "v_fused_psum"
    elif _narrow(stream, machine) and stream.contiguous and set(stream.operators) <= FAST_FUSED:
        key = "v_fused_16bit"
    else:
        key = "v_fused_sbuf"
    return stream.elements * machine[key]


def _one_input(stream: Stream, machine: Machine) -> float:
    key = {
        # (16-bit, PSUM, contiguous)
        (True, False, True): "v_one_16bit",
        (True, False, False): "v_one_16bit_half",
        (True, True, True): "v_one_16bit_half",
        (True, True, False): "v_one_psum",
        (False, True, True): "v_one_psum",
        (False, True, False): "v_one_psum",
        (False, False, True): "v_one_sbuf",
        (False, False, False): "v_one_sbuf",
    }[_narrow(stream, machine), stream.psum_streamed, stream.contiguous]
    return stream.elements * machine[key]


def _memset(stream: Stream, machine: Machine) -> float:
    zero = stream.constant == 0 and _narrow(stream, machine)
    return stream.elements * machine["v_memset_16bit_zero" if zero else "v_memset"]


def _reduce(stream: Stream, machine: Machine) -> float:
    narrow = stream.all_dtypes <= NARROW_DTYPES[machine.name]
    return stream.elements * machine["v_reduce_16bit" if narrow else "v_reduce"]


def _map_and_reduce(stream: Stream, machine: Machine) -> float:
    return stream.elements * machine["v_reduce"] + machine["v_reduce_extra"]


def _predicated(stream: Stream, machine: Machine) -> float:
    key = "v_predicated_psum" if stream.psum_streamed else "v_predicated_sbuf"
    return stream.elements * machine[key]


def _scalar_copy(stream: Stream, machine: Machine) -> float:
    key = "s_copy_16bit" if _narrow(stream, machine) else "s_stream"
    return stream.elements * machine[key]


def _gpsimd_inputs(stream: Stream, machine: Machine) -> float:
    if set(stream.operators) & ROOTS:
        return stream.elements * machine["g_root"]
    return stream.elements * machine["g_two" if stream.inputs > 1 else "g_one"]


def _topk(stream: Stream, machine: Machine) -> float:
    return stream.candidates * machine["g_topk"] + stream.elements


WIDTHS: dict[tuple[str, str], Rule] = {
    ("vector", "tensor_tensor"): _two_inputs,
    ("vector", "scalar_tensor_tensor"): _fused,
    ("vector", "tensor_scalar"): _one_input,
    ("vector", "tensor_copy"): _one_input,
    ("vector", "memset"): _memset,
    ("vector", "tensor_copy_predicated"): _predicated,
    ("vector", "select_reduce"): _predicated,
    ("vector", "tensor_reduce"): _reduce,
    ("vector", "tensor_scalar_reduce"): _map_and_reduce,
    ("vector", "tensor_scalar_cumulative"): _per("v_scan"),
    ("vector", "tensor_tensor_scan"): _per("v_scan"),
    ("vector", "reciprocal"): _per("v_reciprocal"),
    ("vector", "bn_stats"): _per("v_bn_stats"),
    ("vector", "bn_aggr"): _per("v_bn_aggr"),
    ("vector", "max8"): _per("v_search"),
    ("vector", "nc_find_index8"): _per("v_search"),
    ("vector", "nc_match_replace8"): _per("v_search"),
    ("vector", "range_select"): _per("v_move"),
    ("vector", "nc_stream_shuffle"): _per("v_move"),
    ("vector", "dropout"): _per("v_move"),
    ("vector", "nc_transpose"): _per("v_transpose"),
    ("vector", "exponential"): _per("v_exponential"),
    ("vector", "quantize_mx"): _per("v_quantize"),
    ("vector", "rng"): _per("v_random"),
    ("vector", "rand2"): _per("v_random"),
    ("vector", "set_rng_seed"): _per("v_random"),
    ("vector", "rand_set_state"): _per("v_random"),
    ("vector", "rand_get_state"): _per("v_random"),
    ("scalar", "activation"): _per("s_stream"),
    ("scalar", "activation_reduce"): _per("s_stream"),
    ("scalar", "activate2"): _per("s_stream"),
    ("scalar", "tensor_copy"): _scalar_copy,
    ("scalar", "tensor_scalar"): _scalar_copy,
    ("gpsimd", "iota"): _per("g_generate"),
    ("gpsimd", "affine_select"): _per("g_generate"),
    ("gpsimd", "tensor_tensor"): _gpsimd_inputs,
    ("gpsimd", "tensor_scalar"): _gpsimd_inputs,
    ("gpsimd", "tensor_copy"): _gpsimd_inputs,
    ("gpsimd", "memset"): _gpsimd_inputs,
    ("gpsimd", "tensor_partition_reduce"): _per("g_two"),
    ("gpsimd", "local_gather"): _per("g_gather"),
    ("gpsimd", "nc_n_gather"): _per("g_gather"),
    ("gpsimd", "topk"): _topk,
    ("gpsimd", "sequence_bounds"): _per("g_one"),
    ("gpsimd", "nonzero_with_count"): _per("g_one"),
    ("gpsimd", "rng"): _per("g_one"),
    ("gpsimd", "rand_set_state"): _per("g_one"),
    ("gpsimd", "rand_get_state"): _per("g_one"),
}
"""The rule of every instruction on every engine that runs it."""
