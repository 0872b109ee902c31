"""The compute function of every simulated instruction, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from backends.isa.instructions import INSTRUCTIONS
from backends.simulator.instructions import (
    activation,
    copy,
    dma,
    elementwise,
    generate,
    matmul,
    reduce,
    scan,
    search,
    select,
    shuffle_gather,
    statistics,
)
from backends.simulator.instructions.call import BoundCall

FUNCTIONS: Mapping[str, Callable[[BoundCall], None]] = {
    function.__name__: function
    for function in (
        matmul.nc_matmul,
        matmul.nc_transpose,
        dma.dma_copy,
        dma.dma_transpose,
        dma.dma_compute,
        elementwise.tensor_tensor,
        elementwise.tensor_scalar,
        elementwise.scalar_tensor_tensor,
        elementwise.reciprocal,
        copy.tensor_copy,
        copy.tensor_copy_predicated,
        generate.memset,
        generate.iota,
        select.affine_select,
        select.range_select,
        select.select_reduce,
        select.dropout,
        reduce.tensor_reduce,
        reduce.tensor_partition_reduce,
        reduce.tensor_scalar_reduce,
        scan.tensor_tensor_scan,
        scan.tensor_scalar_cumulative,
        activation.activation,
        activation.activate2,
        activation.exponential,
        statistics.bn_stats,
        statistics.bn_aggr,
        search.max8,
        search.nc_find_index8,
        search.nc_match_replace8,
        search.sequence_bounds,
        search.nonzero_with_count,
        search.topk,
        shuffle_gather.nc_stream_shuffle,
        shuffle_gather.local_gather,
        shuffle_gather.nc_n_gather,
    )
} | {"activation_reduce": activation.activation}

NOT_SIMULATED: dict[str, str] = {
    name: row.not_simulated for name, row in INSTRUCTIONS.items() if row.not_simulated is not None
}
"""Instructions that the simulator refuses, with the reason."""
