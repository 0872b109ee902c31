"""`gdsl kernels`: the kernels that ship."""

from __future__ import annotations

import argparse
import json

from attrs import asdict, frozen

from gdsl.library import library_sources
from gdsl.pipeline import Definition, KernelFile

DESCRIPTION = "List the kernels that ship: name, how they run, their named shapes, what they do."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(args: argparse.Namespace) -> int:
    """Print one line per kernel."""
    files = [KernelFile(source) for source in library_sources()]
    rows = [_row(Definition(file, k.name)) for file in files for k in file.module.kernels]
    if args.json:
        document = {"schema": 1, "kernels": [asdict(row) for row in rows]}
        print(json.dumps(document, indent=2))
        return 0
    width = max(len(row.name) for row in rows)
    for row in rows:
        shapes = f"  [{', '.join(row.shapes)}]" if row.shapes else ""
        print(f"{row.name:<{width}}  {row.doc}{shapes}")
    return 0


@frozen
class Row:
    """One kernel of the list."""

    name: str
    doc: str
    file: str
    arguments: tuple[str, ...]
    returns: tuple[str, ...]
    shapes: tuple[str, ...]


def _row(definition: Definition) -> Row:
    kernel = definition.kernel
    return Row(
        name=kernel.name,
        doc=" ".join(kernel.doc.split("\n\n")[0].split()),
        file=definition.file.source.name,
        arguments=tuple(argument.name for argument in kernel.call.arguments),
        returns=kernel.call.returns,
        shapes=tuple(shape.name for shape in definition.shapes),
    )
