"""Kernels of several rules for one token or a few: projections, windows, then one delta rule.

`cut` takes a kernel apart by its text: contractions over a hidden axis become projections, window
rules convolutions, and what is left is one delta rule with its prologue and epilogue, which the
decode schedule emits (`decode`, behind a `Front`). Nothing in between goes through HBM.

What passes from section to section is channel-major: the channels of a head on partitions, a
column for each (entry, head), entries outermost. So

    projection      weights are stationary, hidden values move: [channels, entries] per head, in
                    fp32; weights come once, in the order they are needed (`projection_stream`)
    convolution     old windows and taps come with heads on partitions, as whole runs, and TensorE
                    turns them column by column; a tap is one product over all heads and entries;
                    the newest column goes back the same way and the slid window leaves as a run
    silu            one activation for all heads of a field; it also repeats the column of a key
                    head for each head of its group: grouped heads cost no copy in HBM
    delta rule      q and k lie as the reads want them, K on partitions; v and the gates z are
                    turned to rows by TensorE; a and b are columns of rows

Cores split the key heads (`share`): no weight, window or state is needed by two cores, and bits do
not depend on the number of cores. A core without heads does nothing. One token: everything ahead of
the pipeline over all rows. Several tokens (T <= 16): the line of a channel, its old window and the
tokens, is filtered for a team of entries, and every window on the way is a slice of it; tokens are
projected into HBM before all else, cores share their columns (`projected_tokens`).

Limits: channels of a head at most 128 (K and V), a projection of one token at most 512 entries; a
window as an output of another shape is refused (E0521).
"""
