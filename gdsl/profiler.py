"""What estimates the time of instruction traces. A protocol and its data; `backends.cost` has it.

Everything here is *estimated*; nothing was measured. A report is plain data: the numbers of the
JSON, and what the text, the HTML page and the pictures are drawn from. All times are microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from attrs import field, frozen

from gdsl.ir.work import Contract


@frozen
class CostOptions:
    """What a report is about besides the traces. `sources` are NKI texts by file name."""

    shape: Mapping[str, int] = field(factory=dict)
    schedule: Mapping[str, str] = field(factory=dict)
    sources: Mapping[str, str] = field(factory=dict)
    machine: Mapping[str, float] = field(factory=dict)
    """Numbers of the machine to replace, by their key in `backends.isa.machine`."""
    sweep: bool = False
    """Whether to re-run with each assumed number at both ends of its range."""


@frozen
class Event:
    """One executed instruction on the estimated timeline, program order."""

    index: int
    row: str
    """Engine, or `dma` and the ring's name."""
    opcode: str
    name: str | None
    start: float
    end: float
    """When the row is free again."""
    visible: float
    """When others may use the result."""
    waits_for: int | None
    """The instruction whose end set this one's start."""
    waited: str
    """Why: `engine`, `data`, `buffer`, `ring`, `bank`, `barrier`, or `` at once."""
    bytes: int
    cycles: float
    file: str
    line: int
    origin: str
    """`FILE.gdn:LINE` it was emitted for, or empty."""


@frozen
class Step:
    """One instruction of the critical path: what it adds to the total, and what it waited for."""

    event: int
    microseconds: float
    reason: str


@frozen
class LineTime:
    """What one source line costs: its share of the critical path, and its engines' busy time."""

    file: str
    line: int
    path: float
    busy: float
    instructions: int


@frozen
class MemoryPoint:
    """Bytes per partition of SBUF and banks of PSUM in use from a time on."""

    time: float
    sbuf: int
    psum_banks: int


@frozen
class EngineUse:
    """How long one engine is busy, and with how many instructions."""

    busy: float
    instructions: int


@frozen
class Estimate:
    """The three figures. The truth of one launch lies between the first two."""

    program_order: float
    list_scheduled: float
    throttled: float


@frozen
class CoreReport:
    """One physical core."""

    program: int
    estimate: Estimate
    engines: Mapping[str, EngineUse]
    bounds: Mapping[str, float]
    """Least time each engine needs for its instructions; `dma` for the transfers."""
    dma_count: int
    dma_bytes: int
    table_loads: int
    sbuf_bytes_per_partition: int
    psum_banks: int
    instructions: int
    events: tuple[Event, ...] = field(repr=False)
    critical_path: tuple[Step, ...] = field(repr=False)
    memory: tuple[MemoryPoint, ...] = field(repr=False)


@frozen
class Case:
    """One run of the sweep: a machine number at one end of its range."""

    key: str
    value: float
    program_order: float


@frozen
class CostReport:
    """A kernel's estimated time on one target, and where it goes."""

    model: str
    kernel: str
    target: str
    lnc: int
    shape: Mapping[str, int]
    schedule: Mapping[str, str]
    estimate: Estimate
    contract: Contract
    hbm: float
    """Roofline: the contract's bytes at the HBM rate."""
    pe: float
    """Roofline: the contract's FLOPs at TensorE's peak."""
    bound_by: str
    low: float
    """Program order with every assumed number at its favourable end."""
    high: float
    cores: tuple[CoreReport, ...]
    lines: tuple[LineTime, ...]
    """By NKI line."""
    origin_lines: tuple[LineTime, ...]
    """By `.gdn` line, where the emitted text names it."""
    cases: tuple[Case, ...] = ()


class Profiler(Protocol):
    """Estimates time from traces. Pure: no files, no clock."""

    name: str

    def profile(
        self,
        traces: Sequence[Any],
        target: str,
        contract: Contract | None = None,
        options: CostOptions | None = None,
    ) -> CostReport:
        """Return the report for one launch: one `backends.isa.trace.Trace` per core.

        Without a contract (somebody else's kernel) the rooflines come from its HBM arguments.
        """

    def to_json(self, report: CostReport) -> dict[str, Any]:
        """Return the report as `gdsl/schemas/cost.schema.json` describes it."""

    def to_text(self, report: CostReport, sources: Mapping[str, str]) -> str:
        """Return the report for a terminal; `sources` (NKI and `.gdn`, by name) quote the lines."""

    def compare(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
        """Return two JSON reports side by side, old first, and whether the difference holds."""

    def chrome_trace(self, report: CostReport) -> dict[str, Any]:
        """Return the timeline as Chrome trace JSON, which Perfetto opens."""

    def html(self, report: CostReport, sources: Mapping[str, str]) -> str:
        """Return one self-contained page: timeline, memory, roofline, sources with time."""

    def roofline_svg(self, report: CostReport) -> str:
        """Return the roofline as SVG. Raises BackendUnavailable without the `plot` extra."""
