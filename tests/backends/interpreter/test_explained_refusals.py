"""The pages of the codes of a run: the failing call fails with that code, the repaired one runs."""

from __future__ import annotations

import re

import numpy as np
import pytest

import gdsl
from gdsl.diagnostics.explain import explain
from gdsl.errors import RunError

CODES = [f"E07{number:02}" for number in range(2, 11)]


def namespace(kernel: gdsl.Definition) -> dict[str, object]:
    """What the calls on a page may use; arrays have the dtypes that the kernels declare."""
    return {
        "gdsl": gdsl,
        "kernel": kernel,
        "ones": lambda shape: np.ones(shape, np.float32),
        "full": lambda shape, value: np.full(shape, value, np.float32),
        "array": lambda values: np.array(values, np.int32),
    }


@pytest.mark.parametrize("code", CODES)
def test_page_of_a_run_code(code: str) -> None:
    page = explain(code)
    assert page is not None
    (text,) = re.findall(r"```gdn\n(.*?)```", page, re.S)
    failing, repaired = re.findall(r"```python\n(.*?)```", page, re.S)
    kernel = gdsl.loads(text)
    with pytest.raises(RunError) as error:
        exec(failing, namespace(kernel))
    assert [found.code for found in error.value.diagnostics] == [code]
    exec(repaired, namespace(kernel))
