"""Public NKI kernels that do what our prefill kernels do, and how each is called.

Contracts are read from the kernels' own signatures. A kernel takes one head per call, or all; the
table compares time per chunk of 128 tokens and value head, so both stand beside each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import frozen

_MASKS = tuple(f"{name}=f32[128,128]" for name in ("lower_mask", "identity", "lower_mask_diag"))
_ONE_HEAD = (
    *(f"{name}=f32[{{T}},128]" for name in ("query", "key", "value")),
    "g_in=f32[{T},1]",
    "beta_in=f32[{T},1]",
    "initial_state=f32[128,128]",
    *_MASKS,
)
_ONE_CHUNK = (
    *(
        f"{name}=f32[128,128]"
        for name in ("query", "key", "value", "beta_broadcast", "g_cumsum", "g_last", "state_in")
    ),
    *_MASKS,
)
_KDA_INSIDE = (
    *(f"{name}_hbm=f32[{{N}},8,128]" for name in ("q", "k", "v", "gk")),
    "beta_hbm=f32[{N},8,1]",
    *(f"{name}_hbm=f32[8,8]" for name in ("triu", "eye", "mask_lower", "last_row")),
)
_KDA_BETWEEN = (
    *(f"{name}_hbm=f32[{{N}},8,128]" for name in ("kg", "w", "u", "gk", "q")),
    "aqk_hbm=f32[{N},8,8]",
    "triu_hbm=f32[8,8]",
    "last_col_hbm=f32[8,1]",
    "state_init_hbm=f32[128,128]",
)
"""One head in chunks of 8 tokens, which is what a gate bounded by -5 leaves this kernel."""
_HEADS_FIRST = (
    *(f"{name}=bf16[{{H}},{{T}},128]" for name in "qkv"),
    "beta=f32[{H},{T}]",
    "gate=f32[{H},{T},128]",
)


@frozen
class Peer:
    """A kernel of a public repository."""

    pattern: str
    """Of its file below the folder that holds the checkouts."""
    entry: str
    arguments: tuple[str, ...] = ()
    """As `--arg` takes them; {T} and {H} are tokens and value heads, {N} chunks of 8 tokens."""
    units: str = "all"
    """What a call computes: `all`, one `head` or one `chunk` of a head."""

    def words(self, path: Path, sizes: Mapping[str, int]) -> list[str]:
        """Return the words of an `--against` for this kernel."""
        chunks = -(-sizes["T"] // 128)
        sizes = {**sizes, "N": -(-sizes["T"] // 8)}
        units = {"all": [], "head": [f"units={chunks}"], "chunk": ["units=1"]}[self.units]
        return [f"{path}:{self.entry}", *units, *(text.format(**sizes) for text in self.arguments)]


PEERS = (
    Peer("**/gdn/gdn_cte.py", "gdn_cte", ("algorithm=schur", "mask_pack=f32[10,128,128]")),
    Peer("**/gdn/gdn_cte.py", "gdn_cte", ("algorithm=neumann", "recurrent_state=none")),
    Peer("**/nki_deltanet_fused.py", "deltanet_fused_chunked_fwd", _ONE_HEAD, "head"),
    Peer("**/nki_deltanet_fused_legacy.py", "deltanet_fused_chunked_fwd", _ONE_HEAD, "head"),
    Peer("**/nki_deltanet_chunked.py", "deltanet_chunk_step", _ONE_CHUNK, "chunk"),
    Peer("**/prefill/chunked_fused.py", "deltanet_fused_chunked_fwd", _ONE_HEAD, "head"),
    Peer("**/prefill/chunked_step.py", "deltanet_chunk_step", _ONE_CHUNK, "chunk"),
    Peer("**/nki_kda_cte.py", "kda_cte", _HEADS_FIRST),
    # Two launches: what lies inside a chunk, then the chain from chunk to chunk. Their sum counts.
    Peer("**/kda/chunked_recurrence.py", "kda_intra_chunk_kernel", _KDA_INSIDE, "head"),
    Peer("**/kda/chunked_recurrence.py", "kda_inter_chunk_kernel", _KDA_BETWEEN, "head"),
)


def found(folder: Path, sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """Yield the words of every kernel whose file lies in a folder, once per kernel."""
    for peer in PEERS:
        paths = sorted(folder.glob(peer.pattern))
        if paths:
            yield peer.words(paths[0], sizes)
