"""`gdsl cost` and `gdsl trace`: our kernels and anybody's, on the same model."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gdsl.ir.dtypes import Dtype

Cli = Callable[..., Any]
TKG = ("gdn_tkg", "-t", "trn2", "--shape", "B=1,Hv=4,K=32,V=32")


@pytest.fixture
def schema(root: Path) -> Any:
    return json.loads((root / "gdsl" / "schemas" / "cost.schema.json").read_text())


@pytest.mark.parametrize("lnc", ["1", "2"])
def test_json_fits_its_schema(cli: Cli, schema: Any, lnc: str) -> None:
    done = cli("cost", *TKG, "--lnc", lnc, "--json")
    assert done.code == 0
    report = json.loads(done.out)
    jsonschema.validate(report, schema)
    assert report["estimated_us"]["program_order"] > report["roofline"]["hbm_us"] > 0
    assert len(report["cores"]) == int(lnc)


def test_the_roofline_counts_the_declared_bytes(cli: Cli) -> None:
    """q, k, v, z in bf16, gates in f32 or bf16, the state in and out: from the text, by hand."""
    import gdsl
    from gdsl.ir.work import work

    kernel = gdsl.load("gdn_tkg").kernel
    bound = {"X": Dtype.BF16, "Y": Dtype.BF16}
    contract = work(kernel, {"B": 1, "Hv": 4, "K": 32, "V": 32}, bound)
    rows = 4 * 4 * 32 * 2 + 4 * 2 * 2 + 2 * 4 * 4 + 32 * 4
    state = 2 * 4 * 32 * 32 * 4
    out = 4 * 32 * 2
    assert contract.hbm_bytes == rows + state + out


def test_text_says_estimated_and_names_gdn_lines(cli: Cli) -> None:
    out = cli("cost", *TKG).out
    assert "estimated" in out
    assert "gdn_tkg.gdn:22" in out


def test_optional_arguments_can_be_left_out(cli: Cli) -> None:
    shape = ("kda_cte", "--shape", "B=1,Hk=1,G=1,T=128,K=32,V=32", "--json")
    given, left_out = cli("cost", *shape), cli("cost", *shape, "--without", "valid_len")
    times = [json.loads(done.out)["estimated_us"]["program_order"] for done in (given, left_out)]
    assert times[1] < times[0]
    wrong = cli("cost", *shape, "--without", "valid_le")
    assert wrong.code == 2
    assert "did you mean `valid_len`?" in wrong.err
    required = cli("cost", *TKG, "--without", "q")
    assert "`q` is no argument of `gdn_tkg` that may be left out" in required.err


def test_compare_and_pages(cli: Cli, tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    assert cli("cost", *TKG, "--json", "-o", str(old)).code == 0
    page = tmp_path / "page.html"
    done = cli("cost", *TKG, "--compare", str(old), "--html", str(page))
    assert done.code == 0
    assert done.out
    assert page.read_text().lower().startswith("<!doctype html>")
    (tmp_path / "no.json").write_text("[]")
    assert cli("cost", *TKG, "--compare", str(tmp_path / "no.json")).code == 2


def test_trace_is_chrome_json(cli: Cli, tmp_path: Path) -> None:
    done = cli("trace", *TKG, "-o", str(tmp_path / "t.json"))
    assert done.code == 0
    assert "estimated" in done.err
    assert len(json.loads((tmp_path / "t.json").read_text())["traceEvents"]) > 50


def test_a_foreign_kernel_on_the_same_model(
    cli: Cli, schema: Any, tmp_path: Path, foreign_kernel: str
) -> None:
    (tmp_path / "add.py").write_text(foreign_kernel)
    given = ("--arg", "x=bf16[128,512]", "--arg", "y=bf16[128,512]")
    done = cli("cost", f"{tmp_path}/add.py:add", *given, "--json")
    assert done.code == 0
    report = json.loads(done.out)
    jsonschema.validate(report, schema)
    assert report["dma"]["bytes"] == 3 * 128 * 512 * 2
    assert cli("cost", f"{tmp_path}/add.py:add", *given, "--shape", "B=1").code == 2
