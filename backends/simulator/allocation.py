"""`nl.ndarray`: the rules of an allocation, then the tensor."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index as as_integer
from typing import Any

from backends.isa.dtypes import Dtype, find_dtype
from backends.isa.targets import PARTITIONS, PSUM_BANK_BYTES, PSUM_BYTES, Target
from backends.simulator.faults import Fault
from backends.simulator.machine import Machine, current, running
from backends.simulator.memory import form_of
from backends.simulator.stored_view import MOST_DIMENSIONS
from backends.simulator.tensor import NkiTensor
from backends.simulator.tokens import MemoryRegion


def ndarray(
    shape: Sequence[int],
    dtype: Any,
    buffer: Any = MemoryRegion.sbuf,
    name: str = "",
    address: Sequence[int] | None = None,
) -> NkiTensor:
    """Return an uninitialised tensor. Raises Fault S201 to S205."""
    machine = running() or current()
    key = None
    try:
        sizes = tuple(shape)
        # The dtype by identity: it may be written in several ways, and most have slow hashes. A sum
        # of integers is one: 2.0 equals 2, and is refused.
        if type(sum(sizes)) is int:
            key = (sizes, id(dtype), buffer)
            form = machine.forms[key][0]
            if address is None:
                return machine.place(form, name)
    except (KeyError, TypeError):
        pass
    checked = _check(shape, dtype, buffer, machine.target)
    form = form_of(*checked, widen=machine.options.widen_to_fp32)
    if key is not None:
        machine.forms[key] = (form, dtype)
    place = None if address is None else _address(machine, address, *checked)
    return machine.place(form, name, place)


_Checked = tuple[tuple[int, ...], Dtype, MemoryRegion]


def _check(shape: Sequence[int], dtype: Any, buffer: Any, target: Target) -> _Checked:
    """Return shape, dtype and memory of an allocation that obeys the rules."""
    region = _region(buffer)
    element = element_type(dtype)
    checked = _shape(shape, region)
    if region is MemoryRegion.sbuf:
        _check_sbuf(target, checked, element)
    elif region is MemoryRegion.psum:
        _check_psum(checked, element)
    return checked, element, region


def element_type(dtype: Any) -> Dtype:
    """Return the NKI dtype that a kernel names. Raises Fault S202."""
    try:
        return find_dtype(dtype)
    except ValueError as error:
        raise Fault("S202", str(error), help="use a dtype of `nki.language`") from None


def _region(buffer: Any) -> MemoryRegion:
    if not isinstance(buffer, MemoryRegion):
        raise Fault(
            "S202",
            f"`buffer` is a memory object, not `{buffer!r}`",
            help="pass `nl.sbuf`, `nl.psum`, `nl.private_hbm` or `nl.shared_hbm`",
        )
    return buffer


def _shape(shape: Sequence[int], region: MemoryRegion) -> tuple[int, ...]:
    try:
        sizes = tuple([as_integer(n) for n in shape])
    except TypeError:
        raise Fault("S201", f"a shape is a tuple of integers, got `{shape!r}`") from None
    if not sizes or min(sizes) < 1:
        raise Fault("S201", f"shape {list(sizes)} needs positive sizes")
    if region.on_chip and len(sizes) < 2:
        raise Fault(
            "S201",
            f"shape {list(sizes)} in {region.name}: on-chip tensors have a partition dimension and "
            "at least one free dimension",
        )
    if region.on_chip and len(sizes) > MOST_DIMENSIONS:
        raise Fault(
            "S201",
            f"shape {list(sizes)} in {region.name}: on-chip tensors have at most "
            f"{MOST_DIMENSIONS} dimensions",
        )
    if region.on_chip and sizes[0] > PARTITIONS:
        raise Fault(
            "S201",
            f"{sizes[0]} partitions in {region.name}; there are {PARTITIONS}",
            values={"shape": sizes},
        )
    return sizes


def _check_sbuf(target: Target, sizes: tuple[int, ...], dtype: Dtype) -> None:
    wanted, limit = prod(sizes[1:]) * dtype.bytes, target.sbuf_usable_bytes
    if wanted > limit:
        raise Fault(
            "S203",
            f"one tensor of {wanted} bytes per partition; {target.name} has {limit}",
            values={"shape": sizes, "dtype": dtype},
        )


def _check_psum(sizes: tuple[int, ...], dtype: Dtype) -> None:
    wanted = prod(sizes[1:]) * dtype.bytes
    if wanted > PSUM_BYTES:
        raise Fault(
            "S204",
            f"one tensor of {wanted} bytes per partition; PSUM has {PSUM_BYTES}",
            values={"shape": sizes, "dtype": dtype},
        )


def _address(
    machine: Machine,
    address: Sequence[int],
    sizes: tuple[int, ...],
    dtype: Dtype,
    region: MemoryRegion,
) -> tuple[int, int]:
    """Return the pinned (partition, byte)."""
    if not region.on_chip:
        raise Fault("S205", "`address` pins on-chip tensors only")
    partition, free = (as_integer(part) for part in address)
    if machine.options.address_unit == "elements":
        free *= dtype.bytes
    limit = machine.target.sbuf_usable_bytes if region is MemoryRegion.sbuf else PSUM_BYTES
    end = free + prod(sizes[1:]) * dtype.bytes
    if partition < 0 or partition + sizes[0] > PARTITIONS or free < 0 or end > limit:
        raise Fault(
            "S205",
            f"address ({partition}, {free}) puts {list(sizes)} {dtype} outside {region.name}",
            values={"partitions": PARTITIONS, "bytes per partition": limit},
        )
    if region is MemoryRegion.psum and free % PSUM_BANK_BYTES:
        raise Fault(
            "S205",
            f"PSUM address {free} is not the start of a bank",
            help=f"use a multiple of {PSUM_BANK_BYTES}",
        )
    return partition, free
