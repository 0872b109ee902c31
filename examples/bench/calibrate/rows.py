"""The published figures. Where each is from: `SOURCES`. Sizes are those of the source."""

from __future__ import annotations

from examples.bench.calibrate.measures import (
    Busy,
    InFlight,
    InFlightShare,
    Length,
    Spacing,
    ToConsumer,
    Total,
)
from examples.bench.calibrate.row import Row
from examples.bench.calibrate.runs import Argument, Run, Tensor

SOURCES = {
    "tutorial": "aws-neuron-sdk, nki/guides/tutorials/kernel-optimization.rst: fp32 matmul "
    "4096 x 8192 x 8192, profile of trn2. Its counters say that descriptors are made by software.",
    "mamba": "aws-neuron-sdk, nki/guides/tutorials/fused_mamba.rst: fp32, 16 states, trn1; the "
    "instruction stream written anew.",
    "kda": "Jerry2423/kda-for-trainium: fp32, one core of trn2; device time is 2 x the reported "
    "p50; the instruction streams written anew.",
    "dma": "aws-neuron-sdk, nki/get-started/about/nki-dma-overview.rst: profile images, trn2.",
    "rmsnorm": "aws-neuron-sdk, nki/library/specs/design-rmsnorm-quant.rst: profile images, trn2.",
    "cs149": "xaviergonzalez/asst4-trainium2, writeup.md: vector addition, trn2.",
    "delta rule": "aws-neuron/nki-library, experimental/gdn: docstrings; one head, bf16, D = 128.",
    "autotune": "awslabs/nki-autotune: bf16 matmul 2048 cubed, trn2, 90.9% of peak.",
    "ladder": "aws-neuron-sdk, matrix multiplication tutorial (SDK 2.26): bf16 4096 x 8192 x 8192, "
    "trn1.",
}

_SDK = "aws-neuron-sdk/nki"


def _tutorial(version: int) -> Run:
    return Run(
        entry="matrix_multiply_kernel",
        arguments=(("lhsT", Tensor((8192, 4096))), ("rhs", Tensor((8192, 8192)))),
        file=f"{_SDK}/guides/tutorials/kernel-optimization.rst",
        block=version - 1,
        numbers=(("dma_software_unnamed", 1.0),),
    )


TUTORIAL = (
    Row("tutorial", "v5, TensorE busy", 28.16, "ms", _tutorial(5), Busy("tensor"), within=0.01),
    Row("tutorial", "v2, total", 39.89, "ms", _tutorial(2), Total(), within=0.1),
    Row("tutorial", "v3, total", 28.20, "ms", _tutorial(3), Total(), within=0.1),
    Row("tutorial", "v4, total", 28.41, "ms", _tutorial(4), Total(), within=0.1),
    Row("tutorial", "v5, total", 28.30, "ms", _tutorial(5), Total(), within=0.1),
)


def _mamba(seq: int, channels: int, hoisted: bool) -> Run:
    return Run(
        entry="mamba_scan",
        arguments=(
            ("delta", Tensor((channels, seq))),
            ("u", Tensor((channels, seq))),
            ("a", Tensor((channels, 16))),
            ("b", Tensor((16, seq))),
            ("c", Tensor((16, seq))),
            ("tile", 512),
            ("hoisted", hoisted),
            ("shared_rows", False),
        ),
        target="trn1",
    )


_V1, _V2 = _mamba(512, 4096, hoisted=False), _mamba(512, 4096, hoisted=True)
_V3 = _mamba(8192, 4096, hoisted=True)
MAMBA = (
    Row("mamba", "v1, S 512, C 256, VectorE active", 148.99, "us", _mamba(512, 256, False),
        InFlight("vector"), within=0.05),
    Row("mamba", "v2, S 512, C 4096, VectorE active", 1.57, "ms", _V2, Busy("vector"), within=0.05),
    Row("mamba", "v2, S 512, C 4096, total", 1.61, "ms", _V2, Total()),
    Row("mamba", "v1, S 512, C 4096, total", 2.34, "ms", _V1, Total()),
    Row("mamba", "v2 / v1, total", 1.61 / 2.34, "x", _V2, Total(), over=(_V1,),
        why="a state's instructions wait for one another; the wait on trn1 is copied from trn2"),
    Row("mamba", "v3, S 8192, C 4096, VectorE active", 26.26, "ms", _V3, Busy("vector"),
        within=0.05),
    Row("mamba", "v3, S 8192, C 4096, total", 27.8, "ms", _V3, Total()),
)  # fmt: skip


def _silu(tiles: int, width: int) -> Run:
    return Run("silu_stream", (("x", Tensor((128, tiles, width))),))


def _adamw(width: int) -> Run:
    shape = (128, 175_104 // width, width)
    names = ("theta", "grad", "mean", "var")
    return Run("adamw_stream", tuple((name, Tensor(shape)) for name in names))


_ROPE = Run(
    "rope_six",
    (
        ("x", Tensor((128, 262_144))),
        ("cos", Tensor((64, 262_144))),
        ("sin", Tensor((64, 262_144))),
    ),
)
_KDA_MAMBA = Run(
    "mamba_scan",
    (
        ("delta", Tensor((256, 7168))),
        ("u", Tensor((256, 7168))),
        ("a", Tensor((256, 16))),
        ("b", Tensor((16, 7168))),
        ("c", Tensor((16, 7168))),
        ("tile", 512),
        ("hoisted", True),
        ("shared_rows", True),
    ),
)


def _matmuls(dtype: str, columns: int, count: int, evacuate: int) -> Run:
    return Run(
        "matmul_stream",
        (
            ("x", Tensor((128, 128), dtype)),
            ("weights", Tensor((128, columns), dtype)),
            ("count", count),
            ("evacuate", evacuate),
        ),
    )


def _copies(engine: str) -> Run:
    return Run(
        "copy_stream",
        (("x", Tensor((128, 512), "bfloat16")), ("count", 512), ("engine", engine)),
    )


_NOISE = "streams of one shape differ by up to 40% among tile widths in the source, no trend"
KDA = (
    Row("kda", "silu [128, 7168] x 32, device time", 2 * 0.3009, "ms", _silu(32, 7168), Total(),
        within=0.2, why=_NOISE),
    Row("kda", "silu [128, 1024] x 224, device time", 2 * 0.2940, "ms", _silu(224, 1024), Total(),
        within=0.2, why=_NOISE),
    Row("kda", "silu [128, 7168] x 32, ScalarE active", 34, "%", _silu(32, 7168),
        InFlightShare("scalar", 2 * 0.3009e6), within=0.05),
    Row("kda", "silu [128, 1024] x 224, ScalarE active", 45, "%", _silu(224, 1024),
        InFlightShare("scalar", 2 * 0.2940e6), within=0.05),
    Row("kda", "adamw, width 1024, device time", 2 * 0.5921, "ms", _adamw(1024), Total(),
        within=0.2, why=_NOISE),
    Row("kda", "adamw, width 1216, device time", 2 * 0.5601, "ms", _adamw(1216), Total(),
        within=0.2, why=_NOISE),
    Row("kda", "adamw, width 1824, device time", 2 * 0.5474, "ms", _adamw(1824), Total(),
        within=0.2, why=_NOISE),
    Row("kda", "adamw, width 512, VectorE active", 57, "%", _adamw(512),
        InFlightShare("vector", 2 * 0.7768e6), within=0.05,
        why="the source's own factor between p50 and device time moves by 10%"),
    Row("kda", "adamw, width 1024, VectorE active", 69, "%", _adamw(1024),
        InFlightShare("vector", 2 * 0.5921e6), within=0.05),
    Row("kda", "adamw, width 1824, VectorE active", 72, "%", _adamw(1824),
        InFlightShare("vector", 2 * 0.5474e6), within=0.05),
    Row("kda", "rope, six products, VectorE active", 92, "%", _ROPE,
        InFlightShare("vector", 2 * 0.9445e6), within=0.05),
    Row("kda", "rope, six products, device time", 2 * 0.9445, "ms", _ROPE, Total(), within=0.2),
    Row("kda", "mamba, shared rows, VectorE busy", 1.390, "ms", _KDA_MAMBA, Busy("vector"),
        within=0.05),
    Row("kda", "mamba, shared rows, device time", 2 * 0.7164, "ms", _KDA_MAMBA, Total()),
    Row("kda", "transpose_matmul fp32, N 456, TensorE", 9.449, "ms",
        _matmuls("float32", 456, 12_288, 16), Busy("tensor"), within=0.05),
    Row("kda", "transpose_matmul bf16, N 456, TensorE", 7.127, "ms",
        _matmuls("bfloat16", 456, 36_864, 16), Busy("tensor"), within=0.05),
    Row("kda", "PSUM copy [128, 512] on ScalarE", 510, "ns", _copies("scalar"),
        Spacing("activation"), within=0.07),
    Row("kda", "PSUM copy [128, 512] on VectorE", 615, "ns", _copies("vector"),
        Spacing("tensor_copy"), within=0.07),
)  # fmt: skip


def _exp(partitions: int, columns: int) -> Run:
    return Run("load_exp_store", (("x", Tensor((partitions, columns), "bfloat16")),))


def _one(kind: str, columns: int) -> Run:
    return Run(
        "one_vector",
        (
            ("x", Tensor((128, columns), "bfloat16")),
            ("y", Tensor((128, min(columns, 512)), "float32")),
            ("kind", kind),
        ),
    )


def _add(tiles: int, partitions: int, columns: int) -> Run:
    shape = (tiles, partitions, columns)
    return Run("vector_add", (("x", Tensor(shape)), ("y", Tensor(shape))))


_ONE_RING = "the course's kernels fit one ring (486 ns per transfer), where two are assumed"
PROFILES = (
    Row("dma", "[4, 4096] bf16, trigger to consumer", 2735, "ns", _exp(4, 4096), ToConsumer(),
        within=0.15),
    Row("dma", "[4, 4096] bf16, exp", 3710, "ns", _exp(4, 4096), Length("activation"),
        within=0.05),
    Row("dma", "[128, 128] bf16, trigger to consumer", 8 + 739 + 468 + 293, "ns", _exp(128, 128),
        ToConsumer(), within=0.15,
        why="the 16 engines do not end together: 468 ns from first to last data, 97 ns each"),
    Row("dma", "[128, 128] bf16, exp", 400, "ns", _exp(128, 128), Length("activation"),
        within=0.1),
    Row("rmsnorm", "maximum of 16,384 bf16", 17_247, "ns", _one("abs_max", 16_384),
        Length("tensor_reduce"), within=0.05),
    Row("rmsnorm", "bf16 to fp8, 16,384", 8750, "ns", _one("to_fp8", 16_384),
        Length("tensor_scalar"), within=0.05),
    Row("rmsnorm", "scalar_tensor_tensor with PSUM, 512", 740, "ns", _one("with_psum", 512),
        Length("scalar_tensor_tensor"), within=0.07),
    Row("cs149", "25,600 x one element", 37_318, "us", _add(25_600, 1, 1), Total(),
        within=0.15, why=_ONE_RING),
    Row("cs149", "100 x [128, 2]", 186, "us", _add(100, 128, 2), Total(), launch=True,
        within=0.15),
    Row("cs149", "one [128, 200], launch included", 15, "us", _add(1, 128, 200), Total(),
        launch=True, within=0.15, why="this harness launches in 11 us, the profiles in 22 to 33"),
)  # fmt: skip


def _prefill(algorithm: str, tokens: int, group: int = 8) -> Run:
    heads = (1, 1, tokens)
    arguments: tuple[tuple[str, Argument], ...] = (
        *((name, Tensor((*heads, 128), "bfloat16")) for name in ("query", "key", "value")),
        ("g_log", Tensor(heads)),
        ("beta", Tensor(heads)),
        ("scale", 128**-0.5),
        ("algorithm", algorithm),
    )
    if algorithm == "schur":
        arguments += (("mask_pack", Tensor((10, 128, 128))), ("group_size", group))
    return Run(
        entry="gdn_cte",
        arguments=arguments,
        file="nki-library/src/nkilib_src/nkilib/experimental/gdn/gdn_cte.py",
    )


_GROUPS = tuple(_prefill("schur", 2048, group) for group in (1, 2, 4, 8, 16))
DELTA_RULE = (
    Row("delta rule", "neumann / schur, S 128, with launch", 1.8, "x", _prefill("neumann", 128),
        Total(), over=(_prefill("schur", 128),), launch=True, between=(1.6, 2.2)),
    Row("delta rule", "neumann / schur, S 2048, with launch", 3.7, "x", _prefill("neumann", 2048),
        Total(), over=(_prefill("schur", 2048),), launch=True, between=(3.3, 4.3)),
    Row("delta rule", "neumann / schur, S 4096, with launch", 3.7, "x", _prefill("neumann", 4096),
        Total(), over=(_prefill("schur", 4096),), launch=True, between=(3.3, 4.3)),
    Row("delta rule", "schur, S 2048, group of 8 / best group", 1.0, "x", _GROUPS[3], Total(),
        over=_GROUPS, between=(1.0, 1.03)),
)  # fmt: skip

_AUTOTUNE = Run(
    "matmul_lhsT_rhs_nkigym",
    (("lhs_T", Tensor((2048, 2048), "bfloat16")), ("rhs", Tensor((2048, 2048), "bfloat16"))),
    file="nki-autotune/kernel_library/matmul/lhsT_rhs/kernel_hand_90.92mfu.py",
)
AUTOTUNE = (
    Row("autotune", "lhsT x rhs, total", 240, "us", _AUTOTUNE, Total(),
        why="VectorE fills every accumulator with zeros first, which a compiler can drop, and adds "
        "between the groups of matmuls"),
)  # fmt: skip


def _ladder(entry: str) -> Run:
    return Run(
        entry,
        (
            ("lhsT", Tensor((8192, 4096), "bfloat16")),
            ("rhs", Tensor((8192, 8192), "bfloat16")),
        ),
        file=f"{_SDK}/examples/matrix_multiplication/matrix_multiplication_nki_kernels.py",
        target="trn1",
    )


_SMALL = (
    "DMA-bound on trn1, whose cost per transfer and for short runs nobody published; "
    "trn2's are used"
)
LADDER = (
    Row("ladder", "tiled", 51.80, "ms", _ladder("nki_matmul_tiled_"), Total(), why=_SMALL),
    Row("ladder", "hoisted loads", 42.96, "ms", _ladder("nki_matmul_hoist_load_"), Total(),
        why=_SMALL),
    Row("ladder", "blocked free dimensions", 22.07, "ms",
        _ladder("nki_matmul_block_free_dimension_"), Total(), why=_SMALL),
    Row("ladder", "fully blocked", 6.97, "ms", _ladder("nki_matmul_fully_optimized_"), Total(),
        within=0.15),
)  # fmt: skip

ROWS: tuple[Row, ...] = (
    *TUTORIAL,
    *MAMBA,
    *KDA,
    *PROFILES,
    *DELTA_RULE,
    *AUTOTUNE,
    *LADDER,
)
