"""Our kernels in the place of a layer of transformers: the prompt, then token by token."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import frozen

from examples.layers.definitions import TAPS, Arrays, Layer
from examples.layers.reference import Case
from gdsl import api, registry
from gdsl.ir.dtypes import Dtype
from gdsl.launch import launch
from gdsl.pipeline import Definition
from gdsl.runner import Array, RunOptions

BF16 = Dtype.BF16.numpy
Step = Callable[[Arrays], Arrays]
"""One call of a kernel."""


@frozen
class Ran:
    """What a kernel made of its tokens."""

    kernel: str
    tokens: int
    out: Array
    """[tokens, heads, V]."""
    states: Arrays
    """Behind the last token, by argument names."""


@frozen
class Way:
    """Who runs a kernel: the interpreter, or the emitted text on the simulator."""

    precision: str
    """fp32: nothing is rounded; declared: the dtypes of the text."""
    lnc: int | None
    """Cores of the simulator; None: the interpreter."""

    @property
    def name(self) -> str:
        """How the page calls it."""
        return "interpreter" if self.lnc is None else f"simulated, LNC {self.lnc}"

    def step(self, kernel: Definition) -> Step:
        """Return what runs the kernel once."""
        if self.lnc is None:
            options = RunOptions("float32" if self.precision == "fp32" else "declared")
            return lambda given: registry.interpreter().run(kernel.kernel, given, options)
        program, lnc, widen = api.compile(kernel, target="trn2").nki, self.lnc, self._widens
        return lambda given: launch(program, kernel.kernel, given, lnc=lnc, widen=widen)[0]

    def typed(self, kernel: Definition, given: Arrays) -> Arrays:
        """Arguments in the dtypes the text declares, or all in float32."""
        declared = {i.name: i.dtype for i in kernel.kernel.inputs}
        declared |= {s.argument: s.dtype for s in kernel.kernel.states}
        return {
            name: value.astype(
                BF16 if declared[name] == Dtype.BF16 and not self._widens else np.float32
            )
            for name, value in given.items()
        }

    @property
    def _widens(self) -> bool:
        return self.precision == "fp32"


def run(layer: Layer, case: Case, prompt: int, way: Way) -> tuple[Ran, Ran]:
    """Run the prompt from states of zeros, then the other tokens from what it left."""
    first = _prefilled(layer, case, prompt, way)
    return first, _decoded(layer, case, prompt, first.states, way)


def _prefilled(layer: Layer, case: Case, tokens: int, way: Way) -> Ran:
    """All tokens of the prompt in one call."""
    kernel = api.load(layer.prefill)
    given = {**case.weights, **_zeros(kernel, case)}
    outputs = way.step(kernel)(way.typed(kernel, {**given, "hidden": case.hidden[:, :tokens]}))
    return Ran(layer.prefill, tokens, _by_head(outputs, case), _states(kernel, outputs))


def _decoded(layer: Layer, case: Case, first: int, states: Arrays, way: Way) -> Ran:
    """The tokens from `first` on, one call each."""
    kernel = api.load(layer.decode)
    step, out = way.step(kernel), list[Array]()
    for t in range(first, case.hidden.shape[1]):
        given = {**case.weights, **states, "hidden": case.hidden[:, t : t + 1]}
        outputs = step(way.typed(kernel, given))
        states = _states(kernel, outputs)
        out.append(_by_head(outputs, case))
    return Ran(layer.decode, len(out), np.concatenate(out), states)


def _zeros(kernel: Definition, case: Case) -> Arrays:
    """The states of a new sequence."""
    weights = case.weights
    shapes = {name: weights[taps].shape for name, taps in TAPS.items() if taps in weights}
    shapes["recurrent_state"] = case.states[0].shape
    return {
        s.argument: np.zeros((1, *shapes[s.argument]), np.float32) for s in kernel.kernel.states
    }


def _states(kernel: Definition, outputs: Arrays) -> Arrays:
    """The returned states, by the arguments that they are for the next call: by their order."""
    returned = [o.name for o in kernel.kernel.outputs if o.name != "core_out"]
    arguments = [s.argument for s in kernel.kernel.states]
    return {a: np.asarray(outputs[o]) for a, o in zip(arguments, returned, strict=True)}


def _by_head(outputs: Arrays, case: Case) -> Array:
    out: Array = np.asarray(outputs["core_out"], np.float64)
    return out.reshape(-1, *case.out.shape[1:])
