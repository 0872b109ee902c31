"""Canonical recurrence -> plan: which algorithm computes each run, safe by range analysis.

**The recurrence.** Per token and head, with S of shape [K, V] and log decay g_t <= 0 (a scalar or
one number per key channel):

    S' = exp(g_t) S        r = e_t^T S' (or e_t^T S, read before the decay)
    S  = S' + k_t u_t^T - d_t r^T               o_t = q_t^T S

**The chunk form.** Unrolling C tokens from a carried state S gives, with G_i = g_1 + ... + g_i and
R_i = G_i for a read after the decay, G_i - g_i (exclusive) for one before it,

    r_i = (e_i exp(R_i))^T S + sum_{j<i} (e_i . k_j exp(R_i - G_j)) u_j - (the same with d_j) r_j

so the reads solve a unit lower triangular system. When d = rho k (every delta rule of the field but
DPLR and RWKV-7) it is simpler to solve for what is written, w = u - rho r:

    A_ij = rho_i e_i . k_j exp(R_i - G_j),  j < i        (I + A) w = u - rho (e exp(R)) S
    O = (q exp(G)) S + P w,  P_ij = q_i . k_j exp(G_i - G_j),  j <= i
    S <- exp(G_C) S + (k exp(G_C - G))^T w

All of it but w, O and S of a chunk is independent of the carried state and parallel over chunks.
Sub-steps are consecutive tokens whose decay belongs to the first of them. If u = rho v, rho moves
into the key: with w = rho w' the key is rho k, the value v, and rho becomes 1 (`erasure`). That is
exact, saves two passes, and leaves e and v as they came, to be shared by heads with one key. Where
several value heads have one key and one query, k k^T and q k^T are made once for them: then rho
goes to A and to what is solved for, and w is written along the bare key (`shared_keys`).

**Decay.** Exponents are sums of the g between two tokens, never differences of prefix sums
(`segments`), and are masked before the exp. A scalar decay multiplies the [C, C] scores. A decay
per channel stands inside the sum over channels; a matmul needs it as a product of a row and a
column factor around a reference (`anchors`). The pairs (i, j) form a binary tree of blocks: at
level w, rows in the second half of a block of 2 w meet columns in its first half, and with the
boundary between them as reference both exponents are <= 0 for every gate. The leaves are single
tokens (an unbounded gate), or blocks of b tokens around their middle when the gate's bound keeps
b |g| <= 80. The tree is that of the inverse's merges: level w of the scores is what merge w needs.

**Inverse.** (I + A)^-1 by merging 2x2 blocks from the diagonal, by row substitution in leaves, or
by doubling leaves of at most 16 rows with residual corrections (`triangular`). Powers of the whole
A are never formed: for correlated keys their entries reach 1e26 while the result stays near 1.

**Safety.** `domain` and `norms` derive bounds on g, on |A_ij| (norms of read and key times the
erase ratio) and the operand dtype; `inverse_domain` says in which of those bounds each inverse
holds which error. What cannot be shown safe runs token by token and the plan says what to declare;
an unsafe request is an error. `evaluate_plan` computes any plan in numpy, exactly or with the
plan's rounding points: every matmul operand (vectors, decayed vectors, A once, P, the inverse after
each merge, W, w, the carried state as an operand; products of shared keys and their decays) is
rounded to the operand dtype, everything else and every accumulation, the carried state among them,
is f32.
"""
