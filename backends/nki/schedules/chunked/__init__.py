"""A prompt in chunks of tokens: the chunked schedule, for a scalar or a per-channel decay.

A *lane* is one value head (or a tile of its value columns); a *group* is four chunks of different
lanes, or of one lane when there are few, side by side in [128, 512] tiles, so that one instruction
evacuates a whole PSUM bank. Per chunk and lane, nanoseconds of its engine at K = V = 128 on trn2,
bf16:

    loads     k, q, v, and k^T, q^T by transposing transfers                     DMA
    gates     q exp(G), k exp(G), beta k exp(G_last - G); its turn     GpSimdE  870, ScalarE  125
    scores    segment sums (0/1 stationary, f32), exp; [k^T k | k^T q]  TensorE  270, ScalarE 125
              beta_j decay times both, P^T masked                      VectorE  360, GpSimdE 140
    inverse   merges 1..16 side by side, 32 and 64 on partition ranges  VectorE 1030, ScalarE 550,
                                                                       TensorE  850
    carry     w = X v - W S; o; S <- exp(G_last) S + k^T w             VectorE  230, ScalarE  375,
                                                                       GpSimdE 140, TensorE  340

VectorE works 1.6 us, each of the others 1.2 to 1.5; the whole takes 1.81 (8 lanes, 2,048 tokens),
a single lane 3.8.
Program order is the pipeline: every group goes through the same ticks from its transfers to its
outputs, each a few ticks behind the one before (`driver`, `prepare`, `steps`), so that at every
tick some groups are scored, others inverted or carried on, and none waits for itself. The steps of
an inverse wait for one another; what only outputs and the carried state need goes along with them.

Up to blocks of 32 rows the inverse keeps X with the diagonal blocks of a slot side by side, a
quarter of the columns: products have stationaries that are zero outside these blocks. X^T, the next
stationary, is made of X by transposing it with every block in all columns and masking (`inverse`).

Value heads with one key head share k^T k and k^T q: they are rounded to SBUF once, and what each
head makes of them are passes over 16-bit numbers. GpSimdE makes P^T, and w has beta (`shared_keys`;
1.61 us with two value heads per key head). All groups of such a kernel do so, whatever lanes they
hold: which lanes meet changes no bit. The plan states the form with its rounding points.

The chunk follows from the plan: with chunks of 64 tokens a group is eight of them, and so on. Lanes
are shared among cores by heads or by value columns (`sharding`); with one head its columns are.
A norm of the output needs all columns of a head: its lanes have up to 512, fewer side by side.

beta sits in the key alone (`gdsl.algorithm.erasure`): A^T and P^T take it as a scalar per partition
in the instruction that multiplies the decay, and v needs no pass at all. Exponents are sums of log
decays, made by matmuls with 0/1 operands: over no tokens they are 0, so that none is positive.

A decay per channel stands inside the sum over channels, so every pair of tokens meets around a
reference of the plan (`gdsl.algorithm.chunk_plan.AnchoredSegments`): k and q are scaled in [K, C]
layout by exp of sums to it (one f32 matmul with a 0/1 operand). Between the halves of a block both
factors are <= 1 whatever the gate. With a bounded gate the rows of a sub-block share the reference
in its middle with all columns of their tile of 32, and every block is written in place in PSUM;
without a bound only blocks of 32 and more are, and five predicated copies select the pairs below.
What no product wrote lies above the diagonal and is replaced on GpSimdE when scores are rounded.
The carried state is read before the solve, with the factor that also serves the queries. Per chunk
and lane TensorE works 2.6 us with a bounded gate and 3.4 without, VectorE 2.6 and 4.2; the whole
takes 3.3 and 5.8.

A state that is read along another vector than it is written along (GDN-2) has k^T in a tile of its
own, `keys_T`; one that is read before it decays (Comba) sums decays up to each token's own for A.
Operands of another dtype than the inputs' (`operands`) are vectors that are computed: copied into
tiles of that dtype, and turned on TensorE.

Where nothing is erased (linear attention, Mamba-2) there is no A and nothing to invert: what is
written is the value. The same stages make P^T alone, and no tick is for an inverse.

What stands around the rule is computed by instruction selection (`formulas`, `around`; the layout
TOKENS of `select.tokens`), from terms and not by any kernel's name. Gates of many chunks are made
at once, one chunk per partition. A factor of the query goes to the output; a key with a factor (an
L2 norm) is scaled and turned on TensorE, its sum of squares a product with ones. Outputs take what
follows the rule before they leave. Both are straight pieces, cut where an engine would wait for
another (`cut`); the cuts are steps of the pipeline. Norms, gates and a gated norm of the output
take about 1.1 us more per chunk and lane than finished gates and normalised keys.

Rows with a length select their live tokens (dead ones may hold NaN), 16-bit ones two at a time as
words of four bytes, and are then turned by transfers from SBUF to SBUF.

States in a pool of slots, and rows that a flag starts from zeros, are brought in row by row at
addresses that the device knows (`entries`): no transfer where there is no such entry. A row without
any slot has no live token, so that it is padding. That takes up to 2 % of a prompt of 512 tokens, a
part of it the selection of live tokens. Windows in front of the rule may lie in a pool with the
same slots; the lines of their rows then go through HBM, as those of rows with a length do.

What stands in front of the rule (`front`: projections, windows, fields of a packed axis) is cut off
the text and computed before the first chunk, in blocks of 512 tokens (`before`): tokens are turned
once for all weights (`projecting`), windows are filtered in the lines that projections leave
(`lines`, `filter_channels`), and the rule finds rows of tokens in HBM, in the dtype of the text.
A field of a packed weight or of packed tokens may have its window, or its place in HBM, to itself:
its channels are brought in where they lie, run by run (`runs`).
Two cores share columns and channels, and meet before one reads what the other wrote. TensorE is
busy throughout: for 512 tokens of Qwen3-Next 330 us of projections and 55 us of taps.
"""

from backends.nki.schedules.chunked.module import chunked_program

__all__ = ["chunked_program"]
