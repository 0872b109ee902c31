"""The report as JSON, as `gdsl/schemas/cost.schema.json` describes it. Times in microseconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gdsl.profiler import CoreReport, CostReport, EngineUse, Estimate

SCHEMA = 1
"""Version of the JSON's form."""


def to_json(report: CostReport) -> dict[str, Any]:
    """Return the report; of the cores together, times are the longer ones and counts are sums."""
    cores = report.cores
    return {
        "schema": SCHEMA,
        "model": report.model,
        "target": report.target,
        "shape": dict(report.shape),
        "lnc": report.lnc,
        "schedule": dict(report.schedule),
        "estimated_us": _estimate(report.estimate),
        "roofline": {"hbm_us": _round(report.hbm), "pe_us": _round(report.pe)},
        "instruction_bound_us": {
            name: _round(max(core.bounds[name] for core in cores)) for name in cores[0].bounds
        },
        "bound_by": report.bound_by,
        "engines": {
            name: _engine(
                EngineUse(
                    max(core.engines[name].busy for core in cores),
                    sum(core.engines[name].instructions for core in cores),
                )
            )
            for name in cores[0].engines
        },
        "dma": {
            "count": sum(core.dma_count for core in cores),
            "bytes": sum(core.dma_bytes for core in cores),
        },
        "table_loads": sum(core.table_loads for core in cores),
        "sbuf_bytes_per_partition": max(core.sbuf_bytes_per_partition for core in cores),
        "psum_banks": max(core.psum_banks for core in cores),
        "instructions": sum(core.instructions for core in cores),
        "sensitivity": {"low": _round(report.low), "high": _round(report.high)},
        "cores": [_core(core) for core in cores],
    }


def _core(core: CoreReport) -> dict[str, Any]:
    return {
        "program": core.program,
        "estimated_us": _estimate(core.estimate),
        "instruction_bound_us": _rounded(core.bounds),
        "engines": {name: _engine(use) for name, use in core.engines.items()},
        "dma": {"count": core.dma_count, "bytes": core.dma_bytes},
        "table_loads": core.table_loads,
        "sbuf_bytes_per_partition": core.sbuf_bytes_per_partition,
        "psum_banks": core.psum_banks,
        "instructions": core.instructions,
    }


def _estimate(estimate: Estimate) -> dict[str, float]:
    return {
        "program_order": _round(estimate.program_order),
        "list_scheduled": _round(estimate.list_scheduled),
        "throttled": _round(estimate.throttled),
    }


def _engine(use: EngineUse) -> dict[str, float | int]:
    return {"busy_us": _round(use.busy), "instructions": use.instructions}


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: _round(value) for name, value in values.items()}


def _round(microseconds: float) -> float:
    """Round to nanoseconds: finer digits are not information."""
    return round(microseconds, 3)
