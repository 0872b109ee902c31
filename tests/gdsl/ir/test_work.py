"""What kernels must do, against hand counts."""

from __future__ import annotations

import pytest

from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Kernel
from gdsl.ir.work import work
from gdsl.library import loader, locate
from gdsl.semantics.elaborate import elaborate
from gdsl.source import Source
from gdsl.syntax.parse import parse


def kernel_of(text: str) -> Kernel:
    module, _ = elaborate(parse(Source("<test>", text)), lambda _: None)
    return module.kernels[0]


def library_kernel(name: str, kernel: str) -> Kernel:
    located = locate(name)
    module, _ = elaborate(parse(located.source), loader(located.folder))
    return next(found for found in module.kernels if found.name == kernel)


PRODUCT = '''\
kernel product:
    """A matrix product."""
    axes M, N, K
    dtypes X in bf16, f32
    input x: X[M, K]
    input y: X[K, N]
    output out: X[M, N] = sum[K](x * y)
    call (x, y) -> out
'''


@pytest.mark.parametrize(("dtype", "width", "operands"), [("bf16", 2, "bf16"), ("f32", 4, "fp32")])
def test_a_matrix_product(dtype: str, width: int, operands: str) -> None:
    found = work(kernel_of(PRODUCT), {"M": 3, "N": 5, "K": 7}, {"X": Dtype(dtype)})
    assert found.hbm_bytes == width * (3 * 7 + 7 * 5 + 3 * 5)
    assert found.matmul_flops == 2 * 3 * 5 * 7
    assert found.operands == operands


STEP_BYTES = 4 * 128 * 256 + 4 * (2 * 128) + 2 * 128 + 2 * 2 + 2 * 4 + 4 * 128


def test_one_head_of_a_decode_step() -> None:
    """State in and out, q, k, v, z and out in bf16, two gates, two gate parameters, a weight."""
    sizes = {"B": 1, "Hv": 1, "K": 128, "V": 128}
    kernel = library_kernel("gdn_tkg", "gdn_tkg")
    found = work(kernel, sizes, {"X": Dtype.BF16, "Y": Dtype.BF16})
    assert found.hbm_bytes == STEP_BYTES
    # k S, the outer product and q S, and the two norms.
    assert found.matmul_flops == 3 * 2 * 128 * 128 + 2 * 2 * 128


def test_heads_share_weights_only() -> None:
    kernel = library_kernel("gdn_tkg", "gdn_tkg")
    dtypes = {"X": Dtype.BF16, "Y": Dtype.BF16}
    one = work(kernel, {"B": 1, "Hv": 1, "K": 128, "V": 128}, dtypes)
    many = work(kernel, {"B": 4, "Hv": 8, "K": 128, "V": 128}, dtypes)
    assert many.matmul_flops == 32 * one.matmul_flops
    once_a_call = 4 * 128
    once_a_head = 2 * 4
    assert many.hbm_bytes == (
        32 * (one.hbm_bytes - once_a_call - once_a_head) + once_a_call + 8 * once_a_head
    )


def test_of_a_pool_only_the_rows_of_the_call_move() -> None:
    kernel = library_kernel("gdn_tkg_pool", "gdn_tkg_pool")
    dtypes = {variable.name: Dtype.BF16 for variable in kernel.dtype_vars}
    sizes = {"B": 2, "Hk": 1, "G": 1, "K": 128, "V": 128}
    small, large = (work(kernel, {**sizes, "N": n}, dtypes) for n in (4, 4000))
    assert small.hbm_bytes == large.hbm_bytes
    assert small.hbm_bytes > 2 * 2 * 128 * 128 * 4


def test_a_scan_runs_its_rule_once_a_token() -> None:
    kernel = library_kernel("gdn_cte", "gdn_cte")
    dtypes = {variable.name: Dtype.BF16 for variable in kernel.dtype_vars}
    sizes = {"B": 1, "Hk": 1, "G": 1, "K": 128, "V": 128}
    short, long = (work(kernel, {**sizes, "T": t}, dtypes) for t in (64, 128))
    assert long.matmul_flops == 2 * short.matmul_flops
