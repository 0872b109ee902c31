"""The key `shard` where a kernel goes token by token: one core may do everything."""

import numpy as np
import pytest

from backends.isa.trace import Trace
from gdsl import api
from gdsl.launch import launch

SHAPES = {
    "gdn_tkg": "B=2,Hv=3,K=16,V=16",
    "gdn_block_tkg": "B=2,Hid=128,Hk=3,G=2,K=16,V=16,W=4",
    "gdn_verify": "small",
    "gdn_conv1d_decode": "B=2,C=5,W=4",
    "gdn_conv1d_prefill": "B=2,C=5,T=7,W=4",
}


@pytest.mark.parametrize("name", SHAPES)
def test_with_none_the_first_core_does_everything(name: str) -> None:
    kernel = api.load(name)
    inputs = api.random_inputs(kernel, SHAPES[name])
    both = api.compile(kernel, target="trn2")
    alone = api.compile(kernel, target="trn2", settings={"shard": "none"})
    expected, _ = launch(both.nki, kernel.kernel, inputs, lnc=2)
    outputs, whole = launch(alone.nki, kernel.kernel, inputs, lnc=2)
    for output, array in expected.items():
        assert np.array_equal(array, outputs[output]), output
    first, second = (_stores(trace) for trace in whole.traces)
    assert first > 0
    assert second == 0


def _stores(trace: Trace) -> int:
    """How often a core writes to HBM."""
    hbm = {buffer.id for buffer in trace.buffers if buffer.memory in ("hbm", "shared_hbm")}
    return sum(access.buffer in hbm for record in trace.records for access in record.writes)
