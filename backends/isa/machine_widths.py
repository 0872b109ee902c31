"""Cycles per element and partition of every streaming case. Facts only; see `evidence.py`.

An instruction streams N elements per partition, whatever its number of partitions (D, PERF). Which
case applies is decided by element types, memories and strides (`backends/cost/widths.py`). The
64-cycle floor of the documentation is part of the fixed occupancy in `machine_engines.py`.

"16-bit" means bf16 and fp16, and fp8 from trn3 on. "Contiguous" means neighbouring elements of the
innermost axis are neighbours in memory.
"""

from __future__ import annotations

from backends.isa.evidence import Row, assume, aws, calc, doc, third

_SAME = "OLDISA; unchanged since trn1"


def _old(key: str, meaning: str, value: float, instruction: str) -> Row:
    """A row of the old documentation that nothing contradicts: assumed to hold unchanged."""
    return Row(
        key,
        "cycles/element",
        meaning,
        doc(value, f"OLDISA {instruction}"),
        assume(value, f"{_SAME}: {instruction}", value / 2, value),
        assume(value, f"{_SAME}: {instruction}", value / 2, value),
    )


ROWS: tuple[Row, ...] = (
    # ---- VectorE, two tensor inputs
    Row(
        "v_two_sbuf",
        "cycles/element",
        "two inputs, all in SBUF",
        doc(2, "OLDISA tensor_tensor"),
        third(1, "KDA rope_v1, rope_v2, mamba_v5: 1.05 cycles per element"),
        assume(1, "as trn2; ARCH lists the same widths", 0.5, 1),
    ),
    Row(
        "v_two_psum",
        "cycles/element",
        "two inputs, an operand in PSUM",
        doc(1, "OLDISA tensor_tensor"),
        aws(1, "KOPT 512 + 69 cycles spacing at N=512"),
        assume(1, "as trn2", 1, 1.2),
    ),
    Row(
        "v_two_16bit",
        "cycles/element",
        "add, subtract or multiply of two inputs, all 16-bit, contiguous, in SBUF",
        doc(1, "OLDISA tensor_tensor"),
        doc(0.5, "ARCH: twice as fast as v2"),
        doc(0.5, "ARCH"),
    ),
    Row(
        "v_two_16bit_other",
        "cycles/element",
        "any other operation of two 16-bit inputs in SBUF, or strided ones",
        doc(2, "OLDISA tensor_tensor"),
        calc(1, "half of the trn1 formula"),
        assume(1, "as trn2", 0.5, 1),
    ),
    Row(
        "v_fused_sbuf",
        "cycles/element",
        "scalar_tensor_tensor, all in SBUF",
        doc(2, "OLDISA scalar_tensor_tensor"),
        third(1, "KDA adamw: N + 120 to 175 cycles, isolated"),
        assume(1, "as trn2", 0.5, 1),
    ),
    Row(
        "v_fused_psum",
        "cycles/element",
        "scalar_tensor_tensor, an operand in PSUM",
        doc(2, "OLDISA scalar_tensor_tensor"),
        aws(1, "RMSQ 512 + 117 cycles"),
        assume(1, "as trn2", 1, 1.2),
    ),
    Row(
        "v_fused_16bit",
        "cycles/element",
        "scalar_tensor_tensor, all 16-bit, contiguous, in SBUF",
        doc(1, "OLDISA scalar_tensor_tensor"),
        assume(0.5, "trn1's factor of two between dtypes carried over", 0.5, 1),
        assume(0.5, "trn1's factor of two between dtypes carried over", 0.5, 1),
    ),
    # ---- VectorE, one tensor input
    Row(
        "v_one_sbuf",
        "cycles/element",
        "one input, all in SBUF",
        doc(1, "OLDISA tensor_scalar, tensor_copy"),
        aws(0.5, "KOPT 256 + 73 cycles at N=512; D ARCH width 256"),
        doc(0.5, "ARCH width 256"),
    ),
    Row(
        "v_one_psum",
        "cycles/element",
        "one input, an operand in PSUM",
        doc(1, "OLDISA"),
        third(1, "KDA bmm_softmax: 512 + 37 to 92 cycles"),
        assume(1, "as trn2", 1, 1.2),
    ),
    Row(
        "v_one_16bit",
        "cycles/element",
        "one input, 16-bit, contiguous, in SBUF",
        doc(1, "OLDISA"),
        doc(0.25, "ARCH: 4 times mode"),
        doc(0.25, "ARCH: 4 times mode"),
    ),
    Row(
        "v_one_16bit_half",
        "cycles/element",
        "one input, 16-bit, either strided in SBUF or contiguous with an operand in PSUM",
        doc(1, "OLDISA"),
        doc(0.5, "ARCH: 2 times mode"),
        doc(0.5, "ARCH: 2 times mode"),
    ),
    Row(
        "v_memset_16bit_zero",
        "cycles/element",
        "memset of 16-bit zeros",
        doc(0.5, "OLDISA memset"),
        assume(0.5, _SAME, 0.25, 0.5),
        assume(0.5, _SAME, 0.25, 0.5),
    ),
    _old("v_memset", "any other memset", 1, "memset"),
    # ---- VectorE, the rest
    Row(
        "v_scan",
        "cycles/element",
        "tensor_tensor_scan and cumulative scans",
        doc(2, "OLDISA tensor_tensor_scan"),
        third(2, "KDA mamba_v5: 1.390 ms of VectorE time fits 2, not 1"),
        assume(2, "as trn2", 1, 2),
    ),
    Row(
        "v_reduce",
        "cycles/element",
        "tensor_reduce",
        doc(1, "OLDISA tensor_reduce"),
        aws(1, "RMSQ 16,384 elements in 17,247 ns"),
        assume(1, "as trn2", 0.5, 1),
    ),
    _old("v_reduce_16bit", "add or maximum of 16-bit elements into 16 bits", 0.5, "tensor_reduce"),
    Row(
        "v_reduce_extra",
        "cycles",
        "what an instruction that also reduces takes beyond streaming",
        doc(64, "OLDISA tensor_scalar_reduce"),
        assume(64, _SAME, 0, 100),
        assume(64, _SAME, 0, 100),
    ),
    _old("v_reciprocal", "reciprocal on VectorE", 8, "reciprocal"),
    _old("v_bn_stats", "bn_stats", 1, "bn_stats"),
    _old("v_bn_aggr", "bn_aggr", 13 / 3, "bn_aggr"),
    _old("v_search", "max8, nc_find_index8, nc_match_replace8", 1, "max8"),
    _old("v_move", "range_select, nc_stream_shuffle, dropout and other moves", 1, "range_select"),
    _old("v_transpose", "nc_transpose of a block on VectorE", 1, "nc_transpose"),
    Row(
        "v_predicated_sbuf",
        "cycles/element",
        "predicated copy and select, all in SBUF",
        doc(2, "OLDISA tensor_copy_predicated"),
        assume(1, "by analogy with tensor_tensor", 0.5, 2),
        assume(1, "by analogy with tensor_tensor", 0.5, 2),
    ),
    Row(
        "v_predicated_psum",
        "cycles/element",
        "predicated copy and select, an operand in PSUM",
        doc(1, "OLDISA tensor_copy_predicated"),
        assume(1, _SAME, 1, 2),
        assume(1, _SAME, 1, 2),
    ),
    Row(
        "v_random",
        "cycles/element",
        "random numbers",
        assume(1, "one element per cycle", 0.25, 2),
        assume(1, "one element per cycle", 0.25, 2),
        doc(0.25, "ISA rand2: 4 values per lane and cycle"),
    ),
    Row(
        "v_exponential", "cycles/element", "exponential", None, None, doc(0.25, "ARCH: 4 x ScalarE")
    ),
    Row("v_quantize", "cycles/element", "quantize_mx", None, None, doc(0.25, "ARCH")),
    # ---- ScalarE
    Row(
        "s_stream",
        "cycles/element",
        "one input, any function",
        doc(1, "OLDISA activation"),
        aws(1, "RMSQ 16,384 in 13,902 ns, DMAOV 4,096 in 3,710 ns"),
        doc(1, "ARCH width 128"),
    ),
    Row(
        "s_copy_16bit",
        "cycles/element",
        "tensor_copy and tensor_scalar of 16-bit elements",
        doc(1, "OLDISA"),
        doc(1, "ARCH width 128"),
        doc(0.5, "ARCH width 256 for 16-bit"),
    ),
    # ---- GpSimdE
    _old("g_generate", "iota, affine_select", 1, "iota"),
    Row(
        "g_one",
        "cycles/element",
        "one input",
        assume(1, "128 elements per cycle (ARCH)", 0.5, 2),
        assume(1, "128 elements per cycle (ARCH, trn1 row)", 0.5, 2),
        assume(1, "128 elements per cycle (ARCH)", 0.5, 2),
    ),
    Row(
        "g_two",
        "cycles/element",
        "two inputs",
        assume(2, "documented as slower than VectorE, no rate", 1, 4),
        assume(2, "documented as slower than VectorE, no rate", 1, 4),
        assume(2, "documented as slower than VectorE, no rate", 1, 4),
    ),
    Row(
        "g_root",
        "cycles/element",
        "rsqrt and power",
        doc(4, "ISA: a quarter of ScalarE's throughput"),
        doc(4, "ISA: a quarter of ScalarE's throughput"),
        doc(4, "ISA: a quarter of ScalarE's throughput"),
    ),
    _old("g_gather", "local_gather, nc_n_gather, per gathered element", 1, "local_gather"),
    Row("g_topk", "cycles/element", "topk, per candidate", *(doc(4, "ISA topk"),) * 3),
    # ---- strides and run-time addresses
    Row(
        "wide_stride_bytes",
        "bytes",
        "innermost stride beyond which an engine reads at reduced rate",
        doc(16, "ARCH"),
        doc(16, "ARCH (text kept from trn1)"),
        doc(16, "ARCH (text kept from trn1)"),
    ),
    Row(
        "wide_stride_factor",
        "factor",
        "streaming cycles with such a stride, relative to without",
        doc(2, "ARCH: half the bandwidth"),
        assume(2, "ARCH (text kept from trn1)", 1, 2),
        assume(2, "ARCH (text kept from trn1)", 1, 2),
    ),
    Row(
        "dynamic_cycles",
        "cycles",
        "least streaming time with an address from a register",
        doc(600, "OLDISA tensor_copy_dynamic"),
        assume(600, _SAME, 100, 600),
        assume(600, _SAME, 100, 600),
    ),
)

_BITS16 = frozenset({"bfloat16", "float16"})
_BITS8 = frozenset({"float8_e4m3", "float8_e4m3fn", "float8_e5m2"})
NARROW_DTYPES: dict[str, frozenset[str]] = {
    "trn1": _BITS16,
    "trn2": _BITS16,
    "trn3": _BITS16 | _BITS8,
}
"""Element types that VectorE and ScalarE stream faster (D, ARCH width tables)."""
FAST_TENSOR = frozenset({"add", "subtract", "multiply"})
"""Operators of tensor_tensor that have the 16-bit mode (D, OLDISA)."""
FAST_FUSED = frozenset({"subtract", "multiply"})
"""Operators of scalar_tensor_tensor that have it (D, OLDISA)."""
ROOTS = frozenset({"rsqrt", "power"})
"""Operators that GpSimdE computes at the `g_root` rate."""
