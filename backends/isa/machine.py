"""The machines in numbers: rates, latencies, bandwidths of one NeuronCore, each with its evidence.

A machine is a table from a key to a `Fact`. The rows live by subject in `machine_engines.py`,
`machine_widths.py` and `machine_memory.py`; `evidence.py` says what a row is. What a kernel may
*occupy* (bytes, banks, partitions) is in `targets.py`, not here.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, frozen

from backends.isa import machine_engines, machine_memory, machine_widths
from backends.isa.evidence import Fact, Row

ROWS: tuple[Row, ...] = (*machine_engines.ROWS, *machine_widths.ROWS, *machine_memory.ROWS)


@frozen
class Machine:
    """All facts of one generation. `machine["pe_clock"]` is the number itself."""

    name: str
    facts: Mapping[str, Fact]

    def __getitem__(self, key: str) -> float:
        return self.facts[key].value

    def __contains__(self, key: str) -> bool:
        return key in self.facts

    def replaced(self, values: Mapping[str, float]) -> Machine:
        """Return the machine with some numbers changed; KeyError for a key it does not have."""
        changed = {key: evolve(self.facts[key], value=value) for key, value in values.items()}
        return Machine(self.name, {**self.facts, **changed})

    @property
    def assumed(self) -> tuple[str, ...]:
        """The keys that rest on an assumption and have a range, in table order."""
        return tuple(key for key, fact in self.facts.items() if fact.low is not None)


MACHINES: dict[str, Machine] = {
    target: Machine(
        target, {row.key: fact for row in ROWS if (fact := row.fact(target)) is not None}
    )
    for target in ("trn1", "trn2", "trn3")
}
"""The machines by target name."""
