"""Token by token: the decode schedule.

Rows (batch and heads) lie on partitions for everything that is a vector, up to 128 at once, so that
a norm, a gate or an epilogue is one instruction for all of them. The state of a head is a [K, V]
block with K on partitions. Per head, and nanoseconds of its engine at K = V = 128 on trn2:

    read    S^T [a | q]            TensorE 113   the state is stationary, raw columns move, fp32
    spread  delta on K partitions  TensorE 113   a 0/1 stationary picks the head's row of delta
    decay   D * S                  ScalarE 182   a scale per partition: scalar and K-vector decay
    update  k delta + D * S        VectorE 227   one scalar_tensor_tensor

Moving the state through HBM takes 356 ns, so that is the limit for many heads; the rest of the work
per tile of rows is spread over its heads. Both reads see the old state: one pass over it serves the
delta and the output. Norms, scales and a scalar decay are row factors applied to the results of 32
heads at once (`select.delta`).

Program order is the pipeline: while the states of one group of 32 heads are updated, TensorE reads
those of the next (two heads per update), whose deltas are formed half-way; states are fetched two
groups ahead, and a new tile of rows is prepared inside the last group of the one before. ScalarE
needs no function but exp and copies, so its table is loaded once.

Several tokens per call (`decode.tokens`; ordered sub-steps of a token are tokens to it): the states
of a tile of rows stay in SBUF in fp32, and the groups of each token take the place of the groups of
rows. VectorE is the limit: 227 ns per head and token, and the preparation of each token's vectors.

States stored [V, K] (`decode.turned`) arrive with V on partitions, in runs of K elements; TensorE
turns each (110 ns) before its first read and again before it leaves, ScalarE and VectorE share the
copies out of PSUM (182 or 227 ns each), which makes them the limit.

A decay along V lies on the row of its head; it is spread over K like the delta (TensorE 113) and
multiplied on VectorE (227). Slots of a pool, kept tokens and ended sequences are addresses of
transfers (`select.state_moves`), not arithmetic.

More than 128 keys lie in several tiles side by side (`select.key_tiles`, the key `key_tiles`). A
read adds over them in PSUM; the delta is formed and spread once for all; decay and update go tile
by tile. A step at K = 256 takes 1.8 times as long as at 128 (64 heads, estimated).

`reads=bf16` rounds the state that is read on chip (`decode.reads`): one bf16 pass on TensorE
instead of four, at the price of a copy of each state on ScalarE or GpSimdE. TensorE is not the
limit on trn2 and trn3, so it saves no time there; it serves comparisons with kernels that do so.
"""

from backends.nki.schedules.decode.program import decode_program

__all__ = ["decode_program"]
