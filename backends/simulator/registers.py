"""`nki` virtual registers: integers that exist at run time only."""

from __future__ import annotations

from itertools import count
from typing import Any, NoReturn

from backends.simulator.faults import Fault

_IDS = count()


class VirtualRegister:
    """A 32-bit sequencer register. `value` is None when unknown (never loaded, or shape-only).

    Kernels cannot compute with it in Python; every attempt is a fault that says what to do instead.
    """

    __slots__ = ("id", "value")

    def __init__(self, value: int | None = None) -> None:
        self.id = next(_IDS)
        self.value = value

    def __repr__(self) -> str:
        return f"VirtualRegister({'?' if self.value is None else self.value})"

    def _refuse(self, *_: Any) -> NoReturn:
        raise Fault(
            "S110",
            "a register has no value while the kernel is specialised; keep the number in a (1, 1) "
            "int32 tile, change it with `nisa.tensor_scalar` and load it with `nisa.register_load`",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __floordiv__ = __rfloordiv__ = __truediv__ = __rtruediv__ = __mod__ = __rmod__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        """Whether it is the same register; what it holds cannot be compared."""
        if isinstance(other, (int, float)):
            self._refuse()
        return self is other

    __int__ = __float__ = __index__ = _refuse

    def __bool__(self) -> bool:
        """`while register:` of the older front end; a device loop that ends at zero."""
        if self.value is None:
            raise Fault(
                "S111", "the loop's register was never loaded, or holds data in shape-only mode"
            )
        return self.value != 0
