"""From float64 values to the arrays a caller would hold: declared dtypes, `--random`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gdsl.ir.dtypes import Dtype
from gdsl.ir.kernel import Kernel
from gdsl.ir.types import DtypeVar
from gdsl.regimes.base import base_values, to_arguments
from gdsl.runner import Array


def bind_dtypes(kernel: Kernel, prefer: Dtype) -> dict[str, Dtype]:
    """Return a dtype for each dtype variable: the preferred one where it is a choice."""
    return {
        variable.name: prefer if prefer in variable.choices else variable.choices[0]
        for variable in kernel.dtype_vars
    }


def typed(
    kernel: Kernel, arguments: Mapping[str, Array], bound: Mapping[str, Dtype]
) -> dict[str, Array]:
    """Round each argument to the dtype its declaration gives it."""
    dtypes = argument_dtypes(kernel, bound)
    return {name: values.astype(dtypes[name].numpy) for name, values in arguments.items()}


def argument_dtypes(kernel: Kernel, bound: Mapping[str, Dtype]) -> dict[str, Dtype]:
    """Return the dtype of every tensor argument."""
    declared: dict[str, Dtype | DtypeVar] = {item.name: item.dtype for item in kernel.inputs}
    declared |= {state.argument: state.dtype for state in kernel.states}
    return {
        name: bound[dtype.name] if isinstance(dtype, DtypeVar) else dtype
        for name, dtype in declared.items()
    }


def random_arguments(
    kernel: Kernel, sizes: Mapping[str, int], seed: int, prefer: Dtype = Dtype.BF16
) -> dict[str, Array]:
    """Return Gaussian arguments that fit the kernel's contract, in declared dtypes."""
    values = base_values(kernel, sizes, np.random.default_rng(seed))
    arguments = to_arguments(kernel, values, sizes)
    return typed(kernel, arguments, bind_dtypes(kernel, prefer))
