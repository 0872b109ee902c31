"""What `import nki` and its submodules mean inside the simulator, for one target."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from backends.isa.dtypes import Dtype
from backends.isa.targets import Target
from backends.isa.versions import VERSIONS
from backends.simulator.faults import Fault
from backends.simulator.instruction_calls import instruction
from backends.simulator.instructions import ENGINE_ALIASES, ENUMS, INSTRUCTION_NAMES
from backends.simulator.jit import Kernel, Launcher, make_jit
from backends.simulator.language import language
from backends.simulator.machine import current
from backends.simulator.namespace import namespace
from backends.simulator.nki_object import dataclasses_module
from backends.simulator.recorder import NkiInstruction
from backends.simulator.registers import VirtualRegister

_SIMULATED_VERSION = f"{VERSIONS[-2]}.0"
"""The release whose documentation the simulator follows."""

COLLECTIVES = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "all_gather_v",
    "all_to_all_v",
    "collective_permute",
    "collective_permute_implicit",
    "collective_permute_implicit_reduce",
    "collective_permute_implicit_current_processing_rank_id",
    "rank_id",
)
"""Functions of `nki.collectives`; they reach beyond one logical core, so calling one is a fault."""


def simulated_modules(target: Target, launcher: Launcher) -> Mapping[str, ModuleType]:
    """Return module objects by dotted name; `launcher` runs a kernel that is called directly."""
    constants = namespace("nki.isa.constants", dict(ENUMS))
    isa = namespace("nki.isa", {**_isa_names(), "constants": constants})
    nl = language(target)
    typing = namespace(
        "nki.typing",
        {"tensor": _TensorType(), "mutable_tensor": _TensorType(), "NkiTensor": nl.NkiTensor},
    )
    collectives = namespace("nki.collectives", _collective_names())
    builder = namespace(
        "nki.compiler.kernel_builder",
        {
            "compile_kernel": _not_simulated("nki.compiler.kernel_builder.compile_kernel"),
            "CompileOptions": _not_simulated("nki.compiler.kernel_builder.CompileOptions"),
        },
    )
    compiler = namespace("nki.compiler", {"kernel_builder": builder})
    jit = make_jit(launcher)
    nki = namespace(
        "nki",
        {
            "__version__": _SIMULATED_VERSION,
            "jit": jit,
            "simulate": lambda kernel: kernel if isinstance(kernel, Kernel) else jit(kernel),
            "dtype": Dtype,
            "isa": isa,
            "language": nl,
            "typing": typing,
            "collectives": collectives,
            "compiler": compiler,
        },
    )
    return {
        "nki": nki,
        "nki.isa": isa,
        "nki.isa.constants": constants,
        "nki.language": nl,
        "nki.language.tile_size": nl.tile_size,
        "nki.typing": typing,
        # Shipped kernels of 0.3 still take the annotations from the old name space.
        "neuronxcc.nki.typing": typing,
        "nki.collectives": collectives,
        "nki.compiler": compiler,
        "nki.compiler.kernel_builder": builder,
        "dataclasses": dataclasses_module(),
    }


def _isa_names() -> dict[str, Any]:
    return {
        **{name: instruction(name) for name in INSTRUCTION_NAMES},
        **ENUMS,
        **ENGINE_ALIASES,
        "get_nc_version": lambda: ENUMS["nc_version"](current().target.generation),
        "get_nc_sub_version": lambda: 0,
        "NkiInstruction": NkiInstruction,
        "NkiValidationError": Fault,
        "VirtualRegister": VirtualRegister,
    }


def _collective_names() -> dict[str, Any]:
    calls = {name: _not_simulated(f"nki.collectives.{name}") for name in COLLECTIVES}
    return {**calls, "ReplicaGroup": ReplicaGroup}


def _not_simulated(name: str) -> Any:
    def call(*_: Any, **__: Any) -> Any:
        raise Fault("S109", f"`{name}` is not simulated: it needs more than one chip or a compiler")

    return call


class ReplicaGroup:
    """Lists of ranks without overlap (`nki.collectives.ReplicaGroup`)."""

    def __init__(self, groups: Any) -> None:
        ranks = [rank for group in groups for rank in group]
        if len(set(ranks)) != len(ranks):
            raise Fault("S104", "a rank occurs twice in a ReplicaGroup")
        self.groups = tuple(tuple(group) for group in groups)


class _TensorType:
    """`nt.tensor`, also subscripted with a shape in annotations."""

    def __getitem__(self, shape: Any) -> _TensorType:
        return self
