"""Every fault code with its title, its explanation and where the rule is documented.

S1xx Python and launch, S2xx memory and views, S3xx instruction operands, S4xx data at run time,
S5xx two cores, S6xx the lint of source texts. The rules are those of the public NKI documentation
(Neuron SDK 2.32, NKI 0.6).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from backends.simulator.fault_info import FaultInfo
from backends.simulator.instruction_faults import INSTRUCTION_FAULTS

_LANGUAGE = "NKI language guide"
_MEMORY = "NKI programming model, memory hierarchy"
_TENSOR = "nki.language.NkiTensor"
_AP = "NKI access patterns deep dive"

FAULTS: Mapping[str, FaultInfo] = MappingProxyType(
    INSTRUCTION_FAULTS
    | {
        "S101": FaultInfo(
            "outside a kernel",
            "Instructions and allocations exist only while a kernel runs.",
            _LANGUAGE,
        ),
        "S102": FaultInfo(
            "python error in the kernel",
            "The kernel's own Python raised an exception while it was specialised.",
            _LANGUAGE,
        ),
        "S103": FaultInfo(
            "import that NKI does not offer",
            "The `neuronxcc.nki` name space was removed; current kernels import `nki`.",
            "NKI migration guide 0.3 to 0.4",
        ),
        "S104": FaultInfo(
            "kernel argument",
            "Kernel arguments are tensors in HBM or compile-time scalars, strings, tuples and "
            "NKIObject instances; lists are not accepted and there are no 64-bit types.",
            "nki.jit",
        ),
        "S105": FaultInfo(
            "kernel result",
            "A kernel returns one tensor or a tuple of tensors, each allocated with "
            "`buffer=nl.shared_hbm` or received as an argument.",
            "NKI migration guide 0.2 to 0.3",
        ),
        "S106": FaultInfo(
            "launch grid",
            "The grid is one integer, the number of cores of the launch: 1 or 2.",
            "Logical NeuronCore configuration (LNC)",
        ),
        "S107": FaultInfo(
            "name that NKI does not have",
            "The attribute is not part of the documented name space.",
            "NKI API reference",
        ),
        "S108": FaultInfo(
            "tensor contents read in Python",
            "Only shape, dtype, strides, offset, buffer and name of a tensor exist while the "
            "kernel is specialised; its contents exist on the device.",
            _LANGUAGE,
        ),
        "S109": FaultInfo(
            "not simulated",
            "The documentation does not say enough to give this feature a meaning here.",
            "NKI CPU simulator guide",
        ),
        "S110": FaultInfo(
            "register used in Python",
            "A register's value exists at run time only; there is no Python arithmetic on it.",
            "NKI dynamic loops deep dive",
        ),
        "S111": FaultInfo(
            "device loop",
            "A device loop needs known bounds that count upwards and a body that returns nothing "
            "(`fori_loop`) or the next register (`while_loop`); it cannot stand in `no_reorder`.",
            "NKI dynamic loops deep dive",
        ),
        "S112": FaultInfo(
            "scheduling edge",
            "`depends_on` takes handles of instructions, `with_schedule` names that exist once.",
            "NKI scheduling guide",
        ),
        "S201": FaultInfo(
            "allocation shape",
            "On-chip tensors have rank 2 to 5, positive sizes and at most 128 partitions.",
            "nki.language.ndarray",
        ),
        "S202": FaultInfo(
            "buffer or dtype of an allocation",
            "Buffers are the objects `nl.sbuf`, `nl.psum`, `nl.hbm`, `nl.private_hbm`, "
            "`nl.shared_hbm`; dtypes those of `nki.language`.",
            "NKI migration guide 0.2 to 0.3",
        ),
        "S203": FaultInfo(
            "SBUF capacity",
            "More bytes per partition are alive at once than a partition holds.",
            _MEMORY,
        ),
        "S204": FaultInfo(
            "PSUM capacity",
            "More PSUM banks are alive at once than exist (8 banks of 2 KiB per partition).",
            _MEMORY,
        ),
        "S205": FaultInfo(
            "pinned address",
            "`address=(partition, byte)` must lie inside the memory; PSUM addresses begin at a "
            "bank.",
            "nki.language.ndarray",
        ),
        "S206": FaultInfo(
            "pinned addresses overlap",
            "Two tensors alive at the same time were pinned to overlapping bytes.",
            "nki.language.ndarray",
        ),
        "S210": FaultInfo(
            "index out of range",
            "Indices and slices must lie inside the tensor; slices need step >= 1 and, on chip, "
            "start < end.",
            _TENSOR,
        ),
        "S211": FaultInfo(
            "kind of index",
            "An index is an integer, a slice, `...` or `nl.ds`, at most one per dimension.",
            _TENSOR,
        ),
        "S212": FaultInfo(
            "step over partitions",
            "Hardware reads a contiguous range of partitions; a view cannot step over them.",
            _AP,
        ),
        "S213": FaultInfo(
            "view of the partition dimension",
            "On chip, dimension 0 stays where it is and as long as it is.",
            _TENSOR,
        ),
        "S214": FaultInfo(
            "view arguments",
            "The view's arguments do not fit the tensor's shape, or an on-chip view would not have "
            "2 to 5 dimensions.",
            _TENSOR,
        ),
        "S215": FaultInfo(
            "layout that cannot be viewed so",
            "The elements are not laid out such that strides could describe the requested view.",
            _TENSOR,
        ),
        "S216": FaultInfo(
            "dtype reinterpretation",
            "`view(dtype)` needs a contiguous last dimension that divides.",
            _TENSOR,
        ),
        "S217": FaultInfo(
            "access pattern",
            "`.ap` takes [step, count] pairs of integers; on chip the first pair is [free size, "
            "partitions], at most four more follow, and every element must lie in the storage.",
            _AP,
        ),
        "S218": FaultInfo(
            "dynamic index",
            "One dynamic index per view: a register or (1, 1) SBUF tensor, or a (P, 1) SBUF "
            "tensor of row numbers into HBM; index tensors hold int32 or uint32.",
            _AP,
        ),
        "S401": FaultInfo(
            "unwritten memory read",
            "Bytes are read that nothing wrote.",
            "NKI CPU simulator guide",
        ),
        "S402": FaultInfo(
            "dynamic index out of range",
            "The value of a run-time index leads outside the tensor; `oob_mode.skip` allows it.",
            "nki.isa.dma_copy",
        ),
        "S501": FaultInfo(
            "race between cores",
            "Both programs touch the same bytes of shared HBM, at least one writes them, and no "
            "barrier on that tensor lies between.",
            "nki.isa.core_barrier",
        ),
        "S502": FaultInfo(
            "deadlock between cores",
            "One program waits for a barrier or an exchange that the other never reaches.",
            "nki.isa.sendrecv",
        ),
        "S503": FaultInfo(
            "programs that differ",
            "Both programs of a launch must allocate the same shared tensors and return the same.",
            "Logical NeuronCore configuration (LNC)",
        ),
        "S601": FaultInfo(
            "not in NKI's Python",
            "Kernels are written in a subset of Python that the compiler interprets.",
            _LANGUAGE,
        ),
        "S602": FaultInfo(
            "doubtful in NKI's Python",
            "The documents do not say that the compiler takes it, or kernels had trouble with it.",
            _LANGUAGE,
        ),
        "S603": FaultInfo(
            "not in every NKI release",
            "The name, argument or form came, went or never existed in the releases asked for.",
            "NKI release notes and migration guides",
        ),
    }
)
