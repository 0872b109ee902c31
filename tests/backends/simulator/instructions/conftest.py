"""A machine without a kernel: tiles from numpy arrays, one instruction at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from backends.isa.dtypes import find_dtype
from backends.isa.targets import find_target
from backends.simulator.instructions import ENUMS, issue
from backends.simulator.launch_memory import SharedMemory
from backends.simulator.machine import Machine, enter
from backends.simulator.options import SimOptions, activate
from backends.simulator.tensor import NkiTensor
from backends.simulator.tokens import MemoryRegion, OpToken

_REGIONS = {
    "sbuf": MemoryRegion.sbuf,
    "psum": MemoryRegion.psum,
    "hbm": MemoryRegion.private_hbm,
    "shared_hbm": MemoryRegion.shared_hbm,
}


class Bench:
    """One program on one target: makes tiles, issues instructions, reads tiles back."""

    def __init__(self, target: str, options: SimOptions) -> None:
        self.machine = Machine(target=find_target(target), options=options, shared=SharedMemory())
        activate(options)
        enter(self.machine)

    def empty(
        self, shape: tuple[int, ...], dtype: str = "float32", memory: str = "sbuf"
    ) -> NkiTensor:
        """An unwritten tensor."""
        return self.machine.allocate(shape, find_dtype(dtype), _REGIONS[memory])

    def tile(self, values: Any, dtype: str = "float32", memory: str = "sbuf") -> NkiTensor:
        """A tensor holding `values`, rounded to `dtype`."""
        array = np.asarray(values)
        tensor = self.empty(array.shape, dtype, memory)
        tensor.store(array.astype(find_dtype(dtype).numpy))
        return tensor

    def run(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Issue `nisa.<name>`; strings that name operators, functions or members are resolved."""
        return issue(self.machine, name, args, kwargs)

    @staticmethod
    def op(name: str) -> OpToken:
        """The operator or function `nl.<name>`."""
        return OpToken(name)

    @staticmethod
    def member(enumeration: str, name: str) -> Any:
        """The member `nisa.<enumeration>.<name>`."""
        return ENUMS[enumeration][name]

    @staticmethod
    def read(tile: NkiTensor) -> NDArray[Any]:
        """The contents as float32, or as integers where the tile holds integers."""
        values = tile.load()
        return values.copy() if tile.dtype.is_integer else values.astype(np.float32)


@pytest.fixture
def make_bench() -> Iterator[Callable[..., Bench]]:
    """A function that starts a program: `make_bench(target="trn2", **options)`."""

    def make(target: str = "trn2", **options: Any) -> Bench:
        return Bench(target, SimOptions(**options))

    yield make
    enter(None)
    activate(SimOptions())


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    """A program on trn2 with the default options."""
    return make_bench()
