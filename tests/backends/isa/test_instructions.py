"""The rows: complete, consistent, and equal to the documented signatures."""

from __future__ import annotations

import pytest

from backends.isa.activations import ACTIVATIONS, PRELU
from backends.isa.dtypes import DTYPES
from backends.isa.instructions import ENUMERATIONS, INSTRUCTIONS
from backends.isa.operators import OPERATORS, TOKENS
from backends.isa.schema import ON_CHIP, REQUIRED, TILE_KINDS, Instruction, Kind
from backends.isa.versions import VERSIONS

# Name and arguments in call order of every instruction of the NKI 0.6 reference (0.7 for topk).
SIGNATURES = """
activate2 dst op data imm0 imm1 op0 op1 relu_param reverse0 reverse1 reduce_op reduce_res reduce_cmd
activation dst op data bias scale reduce_op reduce_res reduce_cmd
activation_reduce dst op data reduce_op reduce_res bias scale
affine_select dst pattern channel_multiplier on_true_tile on_false_value cmp_op offset
bn_aggr dst data
bn_stats dst data
core_barrier data cores engine
dma_compute dst srcs reduce_op scales unique_indices oob_mode
dma_copy dst src priority oob_mode dge_mode engine
dma_transpose dst src axes priority dge_mode oob_mode
dropout dst data prob
exponential dst src max_value reduce_res reduce_cmd reduce_init
iota dst pattern offset channel_multiplier
local_gather dst src_buffer index num_elem_per_idx num_valid_indices
max8 dst src
memset dst value engine
nc_find_index8 dst data vals
nc_match_replace8 dst data vals imm dst_idx
nc_matmul dst stationary moving is_stationary_onezero is_moving_onezero is_transpose accumulate \
tile_position tile_size perf_mode
nc_matmul_mx dst stationary moving stationary_scale moving_scale tile_position tile_size accumulate
nc_n_gather dst data indices
nc_stream_shuffle dst src shuffle_mask
nc_transpose dst data engine
nonzero_with_count dst src index_offset padding_val
quantize_mx dst src dst_scale
rand2 dst min max
rand_get_state dst engine
rand_set_state src_seeds engine
range_select dst on_true_tile comp_op0 comp_op1 bound0 bound1 reduce_cmd reduce_res reduce_op \
range_start on_false_value
reciprocal dst data
register_alloc x
register_load dst src
register_move dst src
register_store dst src
rng dst engine
scalar_tensor_tensor dst data op0 operand0 op1 operand1 reverse0 reverse1
select_reduce dst predicate on_true on_false reduce_res reduce_cmd reduce_op reverse_pred
sendrecv src dst send_to_rank recv_from_rank pipe_id dma_engine
sequence_bounds dst segment_ids
set_rng_seed src_seeds
tensor_copy dst src engine
tensor_copy_predicated dst src predicate reverse_pred
tensor_partition_reduce dst op data
tensor_reduce dst op data axis negate keepdims
tensor_scalar dst data op0 operand0 reverse0 op1 operand1 reverse1 engine
tensor_scalar_cumulative dst src op0 op1 imm0 imm1 reduce_cmd
tensor_scalar_reduce dst data op0 operand0 reduce_op reduce_res reverse0 reduce_cmd reduce_init \
reduce_res_negate
tensor_tensor dst data1 data2 op engine
tensor_tensor_scan dst data0 data1 initial op0 op1 reverse0 reverse1
topk val_dst idx_dst src n sorted
"""
ROWS = list(INSTRUCTIONS.values())


def test_every_documented_instruction_has_a_row_with_its_signature() -> None:
    documented = {
        words[0]: tuple(words[1:]) for words in map(str.split, SIGNATURES.strip().splitlines())
    }
    rows = {
        name: tuple(param.name for param in row.params if param.name != "name")
        for name, row in INSTRUCTIONS.items()
    }
    assert rows == documented


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_name_is_the_last_argument_of_all_but_register_functions(row: Instruction) -> None:
    assert (row.params[-1].name == "name") == (row.family != "register")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_operands_named_by_rules_exist(row: Instruction) -> None:
    names = {param.name for param in row.params}
    named = {name for group in row.one_psum + row.same_dtype for name in group}
    named |= {limit.param for limit in row.limits}
    assert named <= names


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_required_arguments_come_first(row: Instruction) -> None:
    required = [param.default is REQUIRED for param in row.params]
    assert required == sorted(required, reverse=True)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_tile_has_a_place_and_every_choice_an_enumeration(row: Instruction) -> None:
    for param in row.params:
        if param.kind in TILE_KINDS or param.kind is Kind.TILES:
            assert param.spaces, param.name
        if param.kind is Kind.CHOICE:
            assert param.choices in ENUMERATIONS
            assert param.default in ENUMERATIONS[param.choices]
        if param.dtypes is not None:
            assert param.dtypes <= frozenset(DTYPES)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_operators_and_functions_are_known(row: Instruction) -> None:
    for param in row.params:
        if param.kind is Kind.OPERATOR:
            assert param.operators
            assert param.operators <= frozenset(OPERATORS) | TOKENS, param.name
        if param.kind is Kind.FUNCTION:
            assert param.operators <= frozenset(ACTIVATIONS) | {PRELU}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_gpsimd_and_dma_never_reach_psum_and_only_dma_reaches_hbm(row: Instruction) -> None:
    for use in row.engines:
        reach = frozenset().union(
            *(param.spaces for param in row.params if param.kind in TILE_KINDS)
        )
        reach &= use.spaces
        if use.engine in ("gpsimd", "dma") and row.family not in ("random", "cross_core"):
            assert "psum" not in reach
        if use.engine in ("tensor", "vector", "scalar") and row.family != "cross_core":
            assert reach <= ON_CHIP


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_versions_and_generations_are_known(row: Instruction) -> None:
    assert row.since in VERSIONS
    assert all(param.since in VERSIONS for param in row.params)
    assert row.generations
    assert set(row.generations) <= {2, 3, 4}


@pytest.mark.parametrize(
    ("name", "generations"),
    [
        *[(name, (4,)) for name in ("activate2", "exponential", "rand2", "quantize_mx")],
        ("nc_matmul_mx", (4,)),
        *[(name, (3, 4)) for name in ("range_select", "core_barrier", "sendrecv")],
        ("nonzero_with_count", (3, 4)),
        ("nc_matmul", (2, 3, 4)),
        ("tensor_tensor", (2, 3, 4)),
    ],
)
def test_generations(name: str, generations: tuple[int, ...]) -> None:
    assert INSTRUCTIONS[name].generations == generations
