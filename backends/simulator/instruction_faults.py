"""Faults of instructions: S3xx operands and arguments, S43x data found when one executes."""

from __future__ import annotations

from backends.simulator.fault_info import FaultInfo

_ISA = "nki.isa reference"
_ARCH = "NeuronCore architecture guide"

INSTRUCTION_FAULTS: dict[str, FaultInfo] = {
    "S301": FaultInfo(
        "call does not fit the signature",
        "The call names an argument that the instruction does not have, leaves one out, gives one "
        "twice, or gives too many.",
        _ISA,
    ),
    "S302": FaultInfo(
        "kind of argument",
        "The argument is not what the instruction takes: a tile, a number, an operator token, a "
        "member of an enumeration, a tuple of integers.",
        _ISA,
    ),
    "S303": FaultInfo(
        "not on this target",
        "The instruction, operator, engine or element type came with a later NeuronCore.",
        _ISA,
    ),
    "S304": FaultInfo(
        "memory of an operand",
        "Each operand lives where its engine can reach it: TensorE reads SBUF and writes PSUM, "
        "GpSimdE and DMA never touch PSUM, only DMA touches HBM.",
        "NKI programming model, memory hierarchy",
    ),
    "S305": FaultInfo(
        "element type of an operand",
        "The instruction does not take this element type here, or needs two operands to agree.",
        _ISA,
    ),
    "S306": FaultInfo(
        "operator",
        "The operator is not accepted in this slot, or arithmetic and bit operators are mixed.",
        "nki.language supported operators",
    ),
    "S307": FaultInfo(
        "engine",
        "No engine, or not the requested one, can run the instruction with these operands.",
        _ISA,
    ),
    "S308": FaultInfo(
        "two inputs in PSUM",
        "At most one of these inputs may be in PSUM.",
        _ISA,
    ),
    "S309": FaultInfo(
        "partitions of an operand",
        "Operands cover at most 128 partitions, and as many as the instruction asks for.",
        _ISA,
    ),
    "S310": FaultInfo(
        "start partition",
        "65 to 128 partitions start at partition 0, 33 to 64 at 0 or 64, up to 32 at 0, 32, 64 "
        "or 96.",
        _ARCH,
    ),
    "S311": FaultInfo(
        "inputs start at different partitions",
        "Inputs of one instruction that are both in SBUF start at the same partition.",
        "aws-neuron/nki-library, core/embeddings/rope.py",
    ),
    "S312": FaultInfo(
        "elements per partition",
        "The operands do not have the element counts that the instruction asks for.",
        _ISA,
    ),
    "S313": FaultInfo(
        "scalar operand",
        "An operand that is not a full tile is a number or a (P, 1) tile with one element for "
        "each partition of the data.",
        _ISA,
    ),
    "S314": FaultInfo(
        "size limit",
        "The operand is larger or smaller than the instruction allows, or not a multiple; no "
        "engine accesses more than 64K elements of a partition at once.",
        _ISA,
    ),
    "S315": FaultInfo(
        "matmul shapes",
        "`dst[M, N] = stationary[K, M].T @ moving[K, N]` with K, M up to 128.",
        "nki.isa.nc_matmul",
    ),
    "S316": FaultInfo(
        "PSUM bank",
        "On trn1 and trn2 one matmul writes inside one PSUM bank of 2 KiB per partition.",
        "nki.isa.nc_matmul",
    ),
    "S317": FaultInfo(
        "matmul element types",
        "float32 and tfloat32 go only with each other, float8_e4m3 not with float8_e4m3fn; the "
        "destination is float32 (bfloat16 as well on trn3).",
        "nki.isa.nc_matmul",
    ),
    "S318": FaultInfo(
        "matmul tiling or mode",
        "`tile_size` and `tile_position` come together, positions are multiples of the size and "
        "stay inside 128; `double_row` takes fp8 only.",
        "nki.isa.nc_matmul",
    ),
    "S319": FaultInfo(
        "DMA elements",
        "A DMA copies equal element counts and never broadcasts by itself.",
        "nki.isa.dma_copy",
    ),
    "S320": FaultInfo(
        "DMA mode",
        "Hardware descriptors neither convert types nor gather; the engine argument belongs to "
        "them only; a static descriptor has no run-time address.",
        "NKI descriptor generation deep dive",
    ),
    "S321": FaultInfo(
        "reduction axes",
        "`axis` names the trailing free axes of the data; the partition axis cannot be reduced.",
        "nki.isa.tensor_reduce",
    ),
    "S322": FaultInfo(
        "accumulator command",
        "`reduce_cmd` must fit the instruction and the other reduction arguments.",
        _ISA,
    ),
    "S323": FaultInfo(
        "pattern",
        "`pattern` has at most four [step, count] pairs whose counts multiply to the elements of "
        "a partition.",
        "nki.isa.iota",
    ),
    "S324": FaultInfo(
        "run-time address",
        "Only DMA, `tensor_copy` and the trn3 indirection take run-time addresses.",
        "NKI dynamic loops deep dive",
    ),
    "S325": FaultInfo(
        "two-core instruction",
        "`sendrecv` and `core_barrier` need a launch on two cores.",
        "Logical NeuronCore configuration (LNC)",
    ),
    "S326": FaultInfo(
        "constant",
        "The constant does not fit: numbers are fp32, registers 32 bits wide, integer tiles take "
        "integers in range, `range_select` takes only the most negative fp32 number.",
        _ISA,
    ),
    "S327": FaultInfo(
        "shuffle mask",
        "The mask has 32 entries, each 0 to 31 inside the source, or 255 to keep the destination.",
        "nki.isa.nc_stream_shuffle",
    ),
    "S328": FaultInfo(
        "transposition",
        "The destination has the transposed shape, the same rank and the same element type.",
        _ISA,
    ),
    "S431": FaultInfo(
        "accumulation onto data that no matmul wrote",
        "`accumulate=True` adds to PSUM; on trn1 and trn2 the location must have been written by "
        "a matmul before.",
        "nki.isa.nc_matmul",
    ),
    "S432": FaultInfo(
        "function outside its range",
        "Outside the valid range of a ScalarE function the result is garbage.",
        "nki.language activation functions",
    ),
    "S433": FaultInfo(
        "index found in data",
        "An index tile points outside the data it indexes.",
        _ISA,
    ),
    "S434": FaultInfo(
        "stale accumulator",
        "An accumulator register is read that no instruction of the chain has reset.",
        "nki.isa.activation",
    ),
}
