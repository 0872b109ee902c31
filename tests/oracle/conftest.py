"""Peers run in processes of their own, once a session; errors are judged per batch and head."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

Array = NDArray[Any]
Case = dict[str, Array]
PEERS = Path(__file__).parent / "peers"


def _results(script: str, folder: Path) -> dict[str, Case]:
    out = folder / "results.npz"
    done = subprocess.run(
        [sys.executable, str(PEERS / script), str(out)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    cases: dict[str, Case] = {}
    with np.load(out) as file:
        for key in file.files:
            case, _, name = key.partition("/")
            cases.setdefault(case, {})[name] = file[key]
    return cases


@pytest.fixture(scope="session")
def transformers_cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    """Return what transformers computed, by case."""
    pytest.importorskip("torch")
    if find_spec("transformers") is None:
        pytest.skip("transformers is not installed")
    return _results("transformers_peer.py", tmp_path_factory.mktemp("transformers"))


@pytest.fixture(scope="session")
def fla_cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    """Return what flash-linear-attention's naive references computed, by case."""
    pytest.importorskip("torch")
    if find_spec("fla") is None:
        pytest.skip("flash-linear-attention is not installed")
    return _results("fla_peer.py", tmp_path_factory.mktemp("fla"))


@pytest.fixture
def e_rms() -> Callable[[Array, Array, tuple[int, ...]], float]:
    """Return the largest rms(x - ref) / s over heads, s = max(rms(head), 0.01 rms(all heads)).

    `heads` are the dimensions that tell batches and heads apart; all others are averaged.
    """

    def measure(x: Array, ref: Array, heads: tuple[int, ...]) -> float:
        assert x.shape == ref.shape
        rest = tuple(axis for axis in range(ref.ndim) if axis not in heads)
        wide = ref.astype(float)
        scale = np.sqrt(np.mean(wide**2, axis=rest))
        scale = np.maximum(scale, 0.01 * np.sqrt(np.mean(wide**2)))
        return float(np.max(np.sqrt(np.mean((x - wide) ** 2, axis=rest)) / scale))

    return measure
