"""What runs when little is said: sizes, ways to invert a chunk, processes, several kernels."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gdsl
from gdsl.errors import GdslError
from gdsl.ir.dtypes import Dtype
from gdsl.verification.judge import Allowed, judge
from gdsl.verification.parallel import run_regimes
from gdsl.verification.request import Request
from gdsl.verification.run import verify

Cli = Callable[..., Any]

TINY = "B=1,Hv=3,K=16,V=8"
SMALL = {"B": 1, "Hk": 1, "G": 2, "T": 20, "K": 16, "V": 8}


def test_without_a_shape_a_prompt_has_few_heads_and_a_tail() -> None:
    request = Request(gdsl.load("gdn_cte"))
    assert request.sizes == {"B": 1, "Hk": 2, "G": 2, "T": 133, "K": 128, "V": 128}
    assert Request(gdsl.load("gdn_cte"), shape="short").sizes["T"] == 256
    assert Request(gdsl.load("gdn_tkg")).sizes["Hv"] == 32
    window = Request(gdsl.load("gdn_conv1d_prefill")).sizes
    assert (window["C"], window["T"]) == (8192, 21)


def test_without_a_shape_a_layer_has_few_heads_and_hidden_channels() -> None:
    request = Request(gdsl.load("gdn_block_tkg"))
    assert request.sizes == {"B": 1, "Hid": 512, "Hk": 2, "G": 2, "K": 128, "V": 128, "W": 4}
    assert Request(gdsl.load("gdn_block_tkg"), shape="qwen3_next_80b").sizes["Hid"] == 2048
    assert Request(gdsl.load("kda_block_tkg")).sizes["R"] == 128
    prompt = Request(gdsl.load("gdn_block_prefill")).sizes
    assert (prompt["Hid"], prompt["T"], prompt["Hk"] * prompt["G"]) == (512, 133, 4)


def test_every_way_to_invert_that_is_safe_and_not_chosen_is_run() -> None:
    kernel = gdsl.load("gdn_cte")
    report = gdsl.verify(
        kernel, shape=SMALL, regimes=["gaussian"], targets=["trn2"], lnc=[1], precisions=["bf16"]
    )
    report.assert_ok()
    assert [case.settings for case in report.cases] == [
        {"inverse": "schur"},
        {"inverse": "neumann"},
    ]
    assert report.cases[0].instructions != report.cases[1].instructions
    assert "--set inverse=neumann" in report.cases[1].repro
    chosen = Request(kernel, shape=SMALL, settings={"inverse": "schur"})
    assert chosen.variants == ({},)
    for name in ("gdn_tkg", "mamba2_fwd"):
        assert Request(gdsl.load(name)).variants == ({},)


def test_processes_change_nothing(cli: Cli) -> None:
    request = Request(
        gdsl.load("gdn_tkg"),
        shape=TINY,
        regimes=("gaussian", "padding", "lnc-bits"),
        targets=("trn2",),
    )
    shown: list[tuple[int, int]] = []
    alone = verify(request)
    spread = verify(request, lambda done, total, what: shown.append((done, total)), jobs=2)
    assert spread.to_json() == alone.to_json()
    assert shown[-1] == (3, 3)
    assert cli("verify", "gdn_tkg", "--jobs", "0").code == 2


def test_an_error_in_a_process_arrives_with_its_diagnostics() -> None:
    """The text of the kernel is what a process gets; there it cannot be planned."""
    request = Request(gdsl.load("gdn_tkg"), shape=TINY, settings={"chunk": 64})
    with pytest.raises(GdslError) as error:
        run_regimes(request, 2, lambda done, total, what: None)
    assert error.value.diagnostics[0].code == "E0503"


def test_several_kernels_in_one_command(cli: Cli) -> None:
    shape = ("--shape", "B=1,Hv=2,K=16,V=8", "--regimes", "gaussian", "-t", "trn2", "--lnc", "1")
    done = cli("verify", "gdn_tkg", "gdn_tkg_vk", *shape)
    assert done.code == 0
    assert "gdn_tkg: 3 cases agree" in done.out
    assert "gdn_tkg_vk: 3 cases agree" in done.out
    reports = json.loads(cli("verify", "gdn_tkg", "gdn_tkg_vk", *shape, "--json").out)
    assert [report["kernel"] for report in reports] == ["gdn_tkg", "gdn_tkg_vk"]


def test_the_comparator_of_the_vendor_is_reported_and_does_not_bind() -> None:
    reference = np.array([[1.0, -3.0], [0.01, 0.01]])
    x = reference + np.array([[0.0, 0.04], [0.0, 0.0]])
    loose = Allowed(np.full(2, 10.0), None)
    verdict = judge("y", ("H", "V"), ("H",), x, reference, loose, Dtype.F32)
    assert verdict.vendor == pytest.approx(0.04 / (0.02 + 0.02 * 3.0))
    x[1] += 0.02
    small = judge("y", ("H", "V"), ("H",), x, reference, Allowed(np.full(2, 0.1), None), None)
    assert small.vendor < 1
    assert not small.ok
