"""The short causal convolution: the schedule of a kernel whose one rule is a sliding window.

Channels lie on partitions, and partition p holds *neighbouring* channels, so that a transfer moves
the columns of many channels as one run. Both forms see one line of columns per channel, the old
window followed by the new tokens: token t is the sum of the taps over line[t + 1 .. t + W], and the
new window is the end of the line (with lengths, the columns before the end of each row).

    step    one token: the taps of all channels and rows at once, fp32 products on VectorE with the
            weights repeated over the rows; one transfer each way for a block of channels
    scan    2,048 tokens of a channel per partition at once: the taps are matmuls with diagonal
            stationaries, summed in fp32 in PSUM; bias and silu are ScalarE's evacuation. Lines
            are fetched two groups of channels ahead

What rounds: products and sums are fp32 everywhere. TensorE does not mix fp32 with 16-bit tokens,
so beside those a scan's weights are fp16: two stationaries (the weight, and what its rounding left)
up to 512 tokens (22 bits, or 3e-8), one for longer prompts (11 bits), magnitudes below 65,504.
With fp32 tokens nothing is rounded, and in a step neither. A NaN or an infinity of one channel
reaches the other channels of its token in a scan (0 times NaN, in the matmul).
"""

from backends.nki.schedules.window.filter import has_window
from backends.nki.schedules.window.program import window_program

__all__ = ["has_window", "window_program"]
