"""Windows of several tokens on their way: the transfers before a filter, and those after it.

Windows of a pool, or after a number of kept tokens, are addressed by numbers on the device: one
transfer for each entry.
"""

from __future__ import annotations

from backends.nki.program.build import Block, Names, part
from backends.nki.program.nodes import F32, Function, Operand, Pattern, Range, Space, Tile, View
from backends.nki.program.numbers import ONE, ZERO, Literal, Name, Number
from backends.nki.program.outline import outline
from backends.nki.schedules.block.projection_stream import RING
from backends.nki.schedules.block.row_chunks import CHUNK, COUNT, ENTRY, HEAD, ROWS, SOME, chunks
from backends.nki.schedules.block.window_places import (
    COLUMNS,
    NEW,
    SHOWN,
    SKIP,
    TOKEN,
    WIDE,
    WINDOW,
    Place,
)
from backends.nki.schedules.block.window_tokens import (
    PARAMETERS,
    TEAM,
    TOKENS,
    TokenRows,
    TokensStep,
    element_of,
)
from backends.nki.select.helpers import QUEUE
from backends.nki.select.layouts import GPSIMD

LENGTH = Name("length")
"""Columns of a line: the window's and the tokens."""
_LENGTHS = Tile("lengths", (), F32, Space.ARGUMENT)


def fetch_tokens(form: TokensStep, name: str) -> Function:
    """Return the function that sends for windows, tokens and ends of a field."""
    block = Block(Names({*PARAMETERS}))
    if form.slots:
        windows = TokenRows(form, block).windows
        block.do("memset", dst=windows, value=Literal(0.0), engine=GPSIMD)
    with chunks(block) as body:
        _fetch(TokenRows(form, body))
    doc = "Send for windows and tokens, an (entry, head) per partition, 128 of them side by side."
    return outline(name, doc, block.statements)


def _fetch(rows: TokenRows) -> None:
    _fetch_windows(rows)
    steps = (
        (TOKEN.apart, SOME),
        (TOKEN.step, COUNT),
        (Name("token_next"), TOKENS),
        (ONE, WIDE),
    )
    offset = TOKEN.first + ENTRY * TOKEN.apart + HEAD * TOKEN.step
    mine = rows.mine(rows.tokens, TOKENS * WIDE)
    rows.block.do("dma_copy", dst=mine, src=Pattern(TOKEN.tile, steps, offset), **QUEUE)
    if rows.form.lengths:
        source = Pattern(_LENGTHS, ((ONE, SOME), (ZERO, COUNT)), TEAM + ENTRY)
        rows.block.do("dma_copy", dst=rows.mine(rows.ends, ONE), src=source, **RING)


def _fetch_windows(rows: TokenRows) -> None:
    """The old windows; zeros where there is none."""
    block, form = rows.block, rows.form
    mine = rows.mine(rows.windows, rows.run)
    if form.indexed is not None:
        chip = mine.tile, CHUNK * rows.run
        _move_by_number(rows, WINDOW, chip, "numbers", form.indexed, store=False)
        return
    given = block.inner() if form.optional else block
    given.do("dma_copy", dst=mine, src=WINDOW.runs(rows.run), **RING)
    if form.optional:
        missing = block.inner()
        missing.do("memset", dst=mine, value=Literal(0.0), engine=GPSIMD)
        block.decide(Name("missing"), missing, given)


def show_windows(rows: TokenRows, line: Tile) -> None:
    """Store the window after each token; zeros behind the end."""
    block, run = rows.block, rows.run
    shown = block.tile("shown_sb", (ROWS, TOKENS * run), rows.form.line)
    steps = ((run, TOKENS), (COLUMNS, WIDE), (ONE, COLUMNS))
    dst = Pattern(shown.tile, ((TOKENS * run, ROWS), *steps), ZERO)
    slices = ((ONE, TOKENS), (LENGTH, WIDE), (ONE, COLUMNS))
    src = Pattern(line, ((WIDE * LENGTH, ROWS), *slices), ONE)
    if rows.form.lengths:
        block.do("memset", dst=shown, value=Literal(0.0), engine=GPSIMD)
        alive = rows.alive(((ONE, TOKENS), (ZERO, WIDE), (ZERO, COLUMNS)), ZERO)
        block.do("tensor_copy_predicated", dst=dst, src=src, predicate=alive)
    else:
        block.do("tensor_copy", dst=dst, src=src, engine=GPSIMD)
    offset = SHOWN.first + ENTRY * SHOWN.apart + HEAD * SHOWN.step
    around = ((SHOWN.apart, SOME), (SHOWN.step, COUNT), (Name("shown_next"), TOKENS))
    block.do(
        "dma_copy",
        dst=Pattern(SHOWN.tile, (*around, (ONE, run)), offset),
        src=_converted(rows, shown, SHOWN),
        **RING,
    )


def store_windows(rows: TokenRows, line: Tile) -> None:
    """Store the window after the last token of the sequence."""
    block, run = rows.block, rows.run
    new = block.tile("new_sb", (ROWS, run), rows.form.line)
    steps = ((run, ROWS), (COLUMNS, WIDE), (ONE, COLUMNS))
    dst = Pattern(new.tile, steps, ZERO)
    last = columns_of(line, ZERO if rows.form.lengths else TOKENS, COLUMNS)
    block.do("tensor_copy", dst=dst, src=last, engine=GPSIMD)
    if rows.form.lengths:
        block.comment("Each token that is there moves the end by one.")
        with block.loop("token", ZERO, TOKENS) as (body, token):
            body.do(
                "tensor_copy_predicated",
                dst=dst,
                src=columns_of(line, token + 1, COLUMNS),
                predicate=rows.alive(((ZERO, WIDE), (ZERO, COLUMNS)), token),
            )
    new = _converted(rows, new, NEW)
    if rows.form.slots:
        _move_by_number(rows, NEW, (new.tile, ZERO), "new_numbers", 0, store=True)
    else:
        block.do("dma_copy", dst=NEW.runs(run), src=new, **RING)


def columns_of(line: Tile, column: Number, count: Number) -> Pattern:
    """Return neighbouring columns of a line: [heads, channels, count]."""
    steps = ((WIDE * LENGTH, ROWS), (LENGTH, WIDE), (ONE, count))
    return Pattern(line, steps, column)


def _converted(rows: TokenRows, window: View, place: Place) -> View:
    """A window in the dtype of its tensor: transfers do not convert."""
    name = place.tile.name
    if rows.form.line.of in (name, "window"):
        return window
    stored = rows.block.tile("stored_sb", window.shape, element_of(name))
    rows.block.do("tensor_copy", dst=stored, src=window)
    return stored


def _move_by_number(
    rows: TokenRows,
    place: Place,
    chip: tuple[Tile, Number],
    numbers: str,
    dim: int,
    *,
    store: bool,
) -> None:
    """Move the windows of each entry to or from a tile, from its column on.

    `numbers` has one number per entry, for dimension `dim` of the tensor; nothing moves for one
    outside a pool.
    """
    known = Tile(numbers, (ONE, Name("batch")), F32, Space.SBUF)
    with rows.block.loop("member", ZERO, SOME, exact=True) as (body, member):
        entry = ENTRY + member
        index = View(known, (ONE, ONE), (None, Range(TEAM + entry, TEAM + entry + 1)))
        steps = ((place.step, COUNT), (ONE, rows.run))
        offset = place.first + entry * place.apart + HEAD * place.step
        hbm = Pattern(place.tile, steps, offset, index, dim)
        whole = View(chip[0], chip[0].shape)
        mine = part(whole, (member * COUNT, COUNT), (chip[1], rows.run))
        dst, src = (hbm, mine) if store else (mine, hbm)
        options: dict[str, Operand] = {"oob_mode": SKIP} if rows.form.slots else dict(RING)
        body.do("dma_copy", dst=dst, src=src, **options)
