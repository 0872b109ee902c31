"""Where a lane's chunk lies in a tensor: strides and offsets as Python text of the kernel.

A lane is one (batch, value head, tile of value columns); `lane` counts them with the tile fastest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from attrs import frozen

from backends.nki.program.nodes import Function, Verbatim
from backends.nki.schedules.chunked.scan import Scan
from backends.nki.select.addressing import strides
from gdsl.ir.dims import Dim


@frozen
class Addresses:
    """Addresses of one scan's tensors, over a dict `sizes` of the kernel's axes."""

    scan: Scan

    def stride(self, dims: Sequence[Dim], axis: str) -> str:
        """Elements between neighbours along an axis, as text."""
        return _sizes(str(strides(dims).of(axis)))

    def functions(self, scan: Scan) -> Iterator[Function]:
        """For each tensor the function `<tensor>_offset(lane, token, sizes)`."""
        inputs = (scan.query, scan.key, scan.value, scan.log, scan.beta, scan.valid)
        tensors = {item.name: item.dims for item in inputs if item is not None}
        tensors |= {scan.out.name: scan.out.dims, scan.state.argument: scan.state.dims}
        for name, dims in tensors.items():
            doc = f"Where a lane's elements begin in `{name}`, at a token."
            body = Verbatim(_body(self._terms(dims)))
            yield Function(f"{name}_offset", ("lane", "token", "sizes"), doc, (body,))

    def _terms(self, dims: Sequence[Dim]) -> list[str]:
        steps = strides(dims)
        terms = [
            _scaled(self._index(axis), str(steps.of(axis)))
            for axis in self.scan.mapped
            if axis in steps.axes
        ]
        if self.scan.value_axis in steps.axes:
            width = f"{self.scan.value_axis} // tiles"
            terms.append(_scaled(f"lane % tiles * ({width})", str(steps.of(self.scan.value_axis))))
        if self.scan.axis in steps.axes:
            terms.append(_scaled("token", str(steps.of(self.scan.axis))))
        return terms

    def _index(self, axis: str) -> str:
        """The index of a lane along a mapped axis."""
        mapped = self.scan.mapped
        inner = ["tiles", *mapped[mapped.index(axis) + 1 :]]
        divisor = " * ".join(inner)
        whole = f"lane // ({divisor})" if len(inner) > 1 else f"lane // {divisor}"
        return whole if axis == mapped[0] else f"{whole} % {axis}"


def _body(terms: list[str]) -> str:
    """Sizes by their names, then the sum, one term a line."""
    names = dict.fromkeys(n for term in terms for n in _NAME.findall(term))
    axes = [name for name in names if name not in ("lane", "token")]
    first = f"{', '.join(axes)} = {', '.join(_sizes(name) for name in axes)}"
    if len(terms) == 1:
        return f"{first}\nreturn {terms[0]}"
    rest = "".join(f"    + {term}\n" for term in terms[1:])
    return f"{first}\nreturn (\n    {terms[0]}\n{rest})"


def _scaled(index: str, stride: str) -> str:
    if stride == "1":
        return index
    factor = f"({stride})" if "*" in stride else stride
    return f"{index} * {factor}"


def _sizes(text: str) -> str:
    """Names of axes as entries of `sizes`."""

    return _NAME.sub(lambda match: f'sizes["{match[0]}"]', text)


_NAME = re.compile(r"[A-Za-z_]\w*")
