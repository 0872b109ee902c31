"""The short causal convolution: the schedule of a kernel whose one rule is a sliding window.

Channels lie on partitions, and partition p holds *neighbouring* channels, so that a transfer moves
the columns of many channels as one run. Both forms see one line of columns per channel, the old
window followed by the new tokens: token t is the sum of the taps over line[t + 1 .. t + W], and the
new window is the end of the line (with lengths, the columns before the end of each row).

    step    one token: the taps of all channels and rows at once, fp32 products on VectorE with the
            weights repeated over the rows; one transfer each way for a block of channels
    scan    2,048 tokens of a channel per partition at once. The older taps are matmuls with
            diagonal stationaries (TensorE, fp32 sums in PSUM), the newest tap is one
            scalar_tensor_tensor that reads them, bias and silu are ScalarE's evacuation

What rounds: in a scan the weights of the older taps are rounded to the dtype of the tokens, once;
with fp32 tokens nothing is. Products and sums are fp32 everywhere.
"""

from backends.nki.schedules.window.filter import has_window
from backends.nki.schedules.window.program import window_program

__all__ = ["has_window", "window_program"]
