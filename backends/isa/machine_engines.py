"""Clocks, fixed costs and latencies of the compute engines. Facts only; see `evidence.py`.

`*_adder_*` is what an instruction occupies its engine for beyond streaming elements; `*_latency`
is what passes from the end of streaming until another instruction can use the result.
"""

from __future__ import annotations

from backends.isa.evidence import Row, assume, aws, calc, doc, third

ROWS: tuple[Row, ...] = (
    # ---- TensorE (PE)
    Row("pe_clock", "GHz", "TensorE clock", doc(2.8, "ARCH"), doc(2.4, "ARCH"), doc(2.4, "ARCH")),
    Row(
        "pe_min_cycles",
        "cycles",
        "shortest spacing of two matmuls, and the stationary width below which M counts",
        doc(64, "PERF, OLDISA nc_matmul"),
        doc(64, "PERF, OLDISA nc_matmul"),
        doc(64, "PERF, OLDISA nc_matmul"),
    ),
    Row(
        "pe_adder_cycles",
        "cycles",
        "extra cycles of one MATMUL in a dense stream",
        assume(8, "copied from trn2", 0, 16),
        aws(8, "KOPT 1030 against 1024, KDA 464 against 456: 6 to 11"),
        assume(8, "copied from trn2 in cycles", 0, 16),
    ),
    Row(
        "pe_passes",
        "passes",
        "passes of a 16-bit, fp8, tf32 or MX matmul",
        *(doc(1, "OLDISA"),) * 3,
    ),
    Row(
        "pe_passes_fp32",
        "passes",
        "passes of an fp32 matmul",
        doc(4, "OLDISA"),
        doc(4, "OLDISA; M KOPT 429.2 ns per half at N=512"),
        doc(4, "ARCH peak 20 of 79 TFLOPS"),
    ),
    Row(
        "pe_issues_fp32",
        "instructions",
        "MATMULs an fp32 matmul becomes, each with the adder",
        aws(2, "KOPT"),
        aws(2, "KOPT 65,536 for 32,768"),
        assume(2, "as trn2", 1, 4),
    ),
    Row(
        "pe_passes_onezero",
        "passes",
        "passes of an fp32 matmul with an operand flagged as holding ones and zeros only",
        doc(2, "OLDISA"),
        doc(2, "OLDISA; M RMSQ about 420 ns spacing at N=512"),
        doc(2, "OLDISA"),
    ),
    Row(
        "pe_passes_transpose_fp32",
        "passes",
        "passes of an fp32 transpose",
        doc(4, "OLDISA: an fp32 matmul with the identity"),
        doc(2, "ARCH: twice as fast as an fp32 matmul"),
        doc(2, "ARCH"),
    ),
    Row(
        "pe_load_cycles",
        "cycles",
        "loading a stationary operand when nothing runs to hide it",
        assume(32, "PERF: up to 4 times faster than moving, 128 columns", 32, 128),
        assume(32, "PERF: up to 4 times faster than moving, 128 columns", 32, 128),
        assume(32, "PERF: up to 4 times faster than moving, 128 columns", 32, 128),
    ),
    Row(
        "pe_latency",
        "ns",
        "last column to result in PSUM",
        assume(150, "copied from trn2", 100, 200),
        aws(150, "KOPT 591 at 429 spacing, RMSQ 570-598 at 420: 145 to 170"),
        assume(150, "copied from trn2 in ns", 100, 200),
    ),
    Row(
        "pe_throttle_window",
        "ns",
        "trailing window in which the clock gate looks at utilisation",
        None,
        doc(3000, "GLOSS: ramps up over about 3 us"),
        doc(3000, "GLOSS"),
    ),
    Row(
        "pe_throttle_threshold",
        "fraction",
        "utilisation of the window under which the clock gate engages",
        None,
        doc(0.5, "GLOSS"),
        doc(0.5, "GLOSS"),
    ),
    Row(
        "pe_throttle_slowdown",
        "factor",
        "busy time of a gated matmul",
        None,
        doc(2, "GLOSS: limited to about half"),
        doc(2, "GLOSS"),
    ),
    # ---- VectorE (DVE)
    Row(
        "vector_clock",
        "GHz",
        "VectorE clock",
        doc(1.12, "ARCH"),
        doc(0.96, "ARCH"),
        doc(1.2, "ARCH"),
    ),
    Row(
        "vector_adder_cycles",
        "cycles",
        "fixed occupancy, all operands in SBUF",
        calc(100, "PERF about 100 cycles; fits MAMBA within 3 percent"),
        aws(70, "KOPT, RMSQ: 60 to 75"),
        assume(70, "copied from trn2 in cycles", 60, 90),
    ),
    Row(
        "vector_adder_psum_cycles",
        "cycles",
        "fixed occupancy, an operand in PSUM",
        calc(100, "PERF about 100 cycles; fits MAMBA within 3 percent"),
        aws(90, "KOPT, RMSQ: 69 to 117"),
        assume(90, "copied from trn2 in cycles", 70, 120),
    ),
    Row(
        "vector_latency",
        "ns",
        "end of streaming to result, fixed occupancy included",
        assume(165, "copied from trn2", 120, 220),
        aws(165, "KOPT 687 event at 605 spacing, RMSQ: 150 to 180"),
        assume(165, "copied from trn2 in ns", 120, 220),
    ),
    # ---- ScalarE (ACT)
    Row(
        "scalar_clock", "GHz", "ScalarE clock", doc(1.4, "ARCH"), doc(1.2, "ARCH"), doc(1.2, "ARCH")
    ),
    Row(
        "scalar_adder_cycles",
        "cycles",
        "fixed occupancy",
        doc(100, "PERF about 100 cycles"),
        third(90, "KDA: 57 to 114"),
        assume(90, "copied from trn2 in ns; the clocks are equal", 57, 120),
    ),
    Row(
        "scalar_latency",
        "ns",
        "end of streaming to result, fixed occupancy included",
        aws(188, "PERF: dependent one-element instructions 189 ns apart"),
        aws(270, "DMAOV 293 and 297, RMSQ 249 and 285-341 at N=1"),
        assume(270, "copied from trn2 in ns", 200, 340),
    ),
    Row(
        "scalar_accumulator_read",
        "ns",
        "reading the accumulator out after an activation that reduces",
        doc(45.7, "OLDISA activation_reduce: 64 cycles"),
        aws(256, "RMSQ: a separate instruction"),
        assume(256, "copied from trn2 in ns", 50, 300),
    ),
    Row(
        "scalar_table_load",
        "ns",
        "loading the function table of another group",
        assume(1280, "copied from trn2", 640, 1300),
        aws(1280, "DMAOV 1280-1290, RMSQ 1140"),
        assume(1280, "copied from trn2 in ns", 640, 1300),
    ),
    # ---- GpSimdE (Pool)
    Row(
        "gpsimd_clock", "GHz", "GpSimdE clock", doc(1.4, "ARCH"), doc(1.2, "ARCH"), doc(1.2, "ARCH")
    ),
    Row(
        "gpsimd_adder_cycles",
        "cycles",
        "fixed occupancy",
        doc(150, "OLDISA iota, affine_select"),
        assume(150, "OLDISA iota, affine_select; unchanged since trn1", 100, 250),
        assume(150, "OLDISA iota, affine_select; unchanged since trn1", 100, 250),
    ),
    Row(
        "gpsimd_latency",
        "ns",
        "end of occupancy to result",
        assume(100, "between the write latencies of VectorE and ScalarE", 50, 300),
        assume(100, "between the write latencies of VectorE and ScalarE", 50, 300),
        assume(100, "between the write latencies of VectorE and ScalarE", 50, 300),
    ),
    # ---- between engines
    Row(
        "hop",
        "ns",
        "semaphore from one engine to another",
        assume(30, "copied from trn2", 20, 60),
        aws(30, "RMSQ 20 to 40, DMAOV 27"),
        assume(30, "copied from trn2 in ns", 20, 60),
    ),
    Row(
        "launch",
        "ns",
        "preamble of a launch, part of published kernel latencies and of no figure here",
        assume(25_000, "as trn2", 11_000, 33_000),
        assume(
            25_000, "profile origins 22 to 33 us (DMAOV, RMSQ); 11 to 15 in CS149", 11_000, 33_000
        ),
        assume(25_000, "as trn2", 11_000, 33_000),
    ),
    # ---- which engines exclude each other (1: they do)
    Row(
        "excludes_vector_scalar_psum",
        "flag",
        "VectorE and ScalarE never use PSUM at once, whatever the bank",
        doc(1, "ARCH"),
        doc(0, "ARCH"),
        doc(0, "ARCH"),
    ),
    Row(
        "excludes_vector_scalar_bank",
        "flag",
        "VectorE and ScalarE never use one PSUM bank at once (full serialisation is our reading)",
        doc(1, "ARCH"),
        assume(1, "ARCH: parallel unless same bank; penalty not published", 0, 1),
        assume(1, "ARCH: parallel unless same bank; penalty not published", 0, 1),
    ),
    Row(
        "excludes_vector_gpsimd",
        "flag",
        "VectorE and GpSimdE never access SBUF at once",
        doc(1, "ARCH"),
        doc(0, "ARCH"),
        doc(0, "ARCH"),
    ),
)

TABLE_GROUPS: dict[str, str] = {
    function: group
    for group, functions in {
        "exp": "exp",
        "sigmoid": "sigmoid silu silu_dx tanh mish erf erf_dx gelu gelu_dx gelu_apprx_tanh "
        "gelu_apprx_sigmoid gelu_apprx_sigmoid_dx",
        "sqrt": "sqrt rsqrt",
        "log": "log softplus",
        "other": "sin arctan reciprocal sign",
    }.items()
    for function in functions.split()
}
"""Which ScalarE functions share a table (A: the real grouping is not public in a usable form).

Functions that are not here (copy, square, relu, prelu, abs) are in every table.
"""
