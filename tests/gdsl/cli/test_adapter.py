"""`gdsl compile --adapter`: the drop-in module as a product of the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Cli = Callable[..., Any]


def test_one_module_holds_the_named_kernels(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "drop_in.py"
    done = cli("compile", "gdn_tkg", "kda_tkg", "--adapter", "nki_library", "-o", str(out))
    assert done.code == 0
    assert [line for line in out.read_text().splitlines() if line.startswith("@nki.jit")] == [
        "@nki.jit",
        "@nki.jit",
    ]


def test_several_kernels_need_an_adapter(cli: Cli) -> None:
    done = cli("compile", "gdn_tkg", "kda_tkg")
    assert done.code == 2
    assert "only with --adapter" in done.err


def test_an_adapter_has_no_other_level(cli: Cli) -> None:
    done = cli("compile", "gdn_tkg", "--adapter", "nki_library", "--emit", "plan")
    assert done.code == 2
    assert "`--emit plan`" in done.err


def test_an_unknown_adapter_is_named_with_the_known_ones(cli: Cli) -> None:
    done = cli("compile", "gdn_tkg", "--adapter", "nki_libary")
    assert done.code == 2
    assert "did you mean `nki_library`" in done.err
