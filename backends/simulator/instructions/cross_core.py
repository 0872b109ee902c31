"""Exchanges between the two programs of a launch."""

from __future__ import annotations

from backends.simulator.instructions.call import BoundCall


def sendrecv(call: BoundCall) -> int:
    """Give `src` to the other core and store its tile in `dst`; returns the meeting's number."""
    sent = call["src"].load().copy() if call.machine.data else None
    received, number = call.machine.exchange("sendrecv", call["pipe_id"], sent)
    if received is not None:
        call["dst"].store(received)
    return int(number)


def core_barrier(call: BoundCall) -> int:
    """Wait for the other core; returns the meeting's number. SBUF of one core orders nothing."""
    data = call["data"]
    if data.memory == "shared_hbm":
        return call.machine.barrier(data)
    _, number = call.machine.exchange("core_barrier", data.memory, None)
    return int(number)
