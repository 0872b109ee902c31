"""A recurrence of your own: a new rule, a kernel around it, and what the compiler makes of it.

The rule erases along one key and writes along another, with a decay per value column: no paper's
rule, but affine in the state, so it is taken apart and compiled like any other.
"""

import gdsl
from gdsl.errors import CompileError

TEXT = """
use norms

rule erase_then_write[K, V](q[K], e[K], w[K], v[V], decay[V], beta, state S[K, V]) -> o[V]:
    S = decay * S
    r = sum[K](e * S)
    S = S - e * (beta * r) + w * v
    o = sum[K](q * S)

kernel mine:
    axes B, H, K, V
    dtypes X in bf16, f32
    input q, e, w: X[B, H, K]
    input v: X[B, H, V]
    input decay: f32[B, H, V] in [0, 1]
    input beta: f32[B, H] in [0, 1]
    state S: f32[B, H, K, V] = s0
    o, S = step erase_then_write(l2norm[K](q), l2norm[K](e), l2norm[K](w), v, decay, beta, S)
    output out: X[B, H, V] = o
    output s1: f32[B, H, K, V] = S
"""

kernel = gdsl.loads(TEXT)
inputs = gdsl.random_inputs(kernel, {"B": 1, "H": 2, "K": 16, "V": 8})
print("outputs:", {name: array.shape for name, array in gdsl.run(kernel, inputs).items()})

# A mistake is an exception with diagnostics: code, message, place.
try:
    gdsl.loads(TEXT.replace("sum[K](e * S)", "e * S").replace("* r)", "* rr)"))
except CompileError as error:
    for diagnostic in error.diagnostics:
        span = diagnostic.span
        print(f"{diagnostic.code} at line {span.line if span else '?'}: {diagnostic.message}")

# What is not affine in the state is refused, with the term named.
for diagnostic in gdsl.check(TEXT.replace("S = decay * S", "S = tanh(decay * S)")):
    print(f"{diagnostic.code}: {diagnostic.message}")
