"""The schedule keys: name, type, choices, default, meaning. The one list; everything else reads it.

A key says how to compute, never what. Its value comes from, weakest first: the default here, the
`schedule` block of the file, `--set key=value` or Python.
"""

from __future__ import annotations

from attrs import frozen

Value = str | int | float | bool
TOKENS = ("decode", "recurrent")
"""The forms that go token by token."""
CHUNKS = ("chunked",)
WINDOW = "window"
"""Stands among the forms for a sliding window, in whatever form the kernel is."""


@frozen
class ScheduleKey:
    """One key. `choices` is the closed list of values, or None for any value of `type` in `bounds`.

    `forms` says where it has an effect; set from outside anywhere else, it is refused.
    `auto` among the choices means that the compiler decides and says why.
    """

    name: str
    type: type
    default: Value
    doc: str
    forms: tuple[str, ...]
    choices: tuple[Value, ...] | None = None
    bounds: tuple[int, int] | None = None

    @property
    def accepts(self) -> str:
        """The values it takes, as a reader would write them."""
        if self.choices is not None:
            return ", ".join(f"`{choice}`" for choice in self.choices)
        if self.bounds is not None:
            return f"an integer from {self.bounds[0]} to {self.bounds[1]}"
        return f"a value of type {self.type.__name__}"


SCHEDULE_KEYS: dict[str, ScheduleKey] = {
    key.name: key
    for key in (
        ScheduleKey(
            "form",
            str,
            "auto",
            "decode (one token per call), recurrent (token by token) or chunked (chunk-parallel)",
            forms=(*TOKENS, *CHUNKS, WINDOW),
            choices=("auto", "decode", "recurrent", "chunked"),
        ),
        ScheduleKey(
            "chunk",
            int,
            128,
            "tokens per chunk of the chunked form, sub-steps counted as tokens",
            forms=CHUNKS,
            choices=(16, 32, 64, 128),
        ),
        ScheduleKey(
            "inverse",
            str,
            "auto",
            "how (I + A) is inverted: schur merges 2x2 blocks from the diagonal, neumann doubles "
            "leaves of at most 16 and merges from there",
            forms=CHUNKS,
            choices=("auto", "schur", "neumann"),
        ),
        ScheduleKey(
            "leaf",
            int,
            0,
            "diagonal block at which merging starts; 0 lets the compiler choose (schur: 1 merges "
            "from single rows, 16 starts with row substitution)",
            forms=CHUNKS,
            choices=(0, 1, 8, 16, 32, 64, 128),
        ),
        ScheduleKey(
            "corrections",
            int,
            -1,
            "residual corrections X + X (I - (I + A) X) of each neumann leaf before any merge; "
            "-1 lets the compiler choose",
            forms=CHUNKS,
            bounds=(-1, 3),
        ),
        ScheduleKey(
            "subblock",
            int,
            0,
            "diagonal block of a per-channel decay that shares one reference; 0 lets the compiler "
            "choose from the gate's bound, 1 needs no bound",
            forms=CHUNKS,
            choices=(0, 1, 2, 4, 8, 16, 32, 64),
        ),
        ScheduleKey(
            "group",
            int,
            8,
            "chunks that are in flight together",
            forms=CHUNKS,
            bounds=(1, 64),
        ),
        ScheduleKey(
            "operands",
            str,
            "input",
            "dtype of the matmul operands: that of the inputs, bf16 or f32",
            forms=CHUNKS,
            choices=("input", "bf16", "f32"),
        ),
        ScheduleKey(
            "reads",
            str,
            "f32",
            "dtype in which a decode or recurrent step reads the state: bf16 rounds the operand, "
            "not the state that is updated, and saves no time on trn2 and trn3",
            forms=TOKENS,
            choices=("f32", "bf16"),
        ),
        ScheduleKey(
            "key_tiles",
            int,
            1,
            "tiles in which the keys of a head lie on the 128 partitions in a decode or recurrent "
            "step: 1 for K up to 128, 2 for up to 256, 3 for up to 384, 4 for up to 512",
            forms=TOKENS,
            bounds=(1, 4),
        ),
        ScheduleKey(
            "shard",
            str,
            "heads",
            "what the cores of a logical core split: heads (rows), value_columns or none",
            forms=(*TOKENS, *CHUNKS, WINDOW),
            choices=("heads", "value_columns", "none"),
        ),
    )
}
