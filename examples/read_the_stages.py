"""Every level of the compiler as text, from syntax tree to NKI."""

import gdsl

program = gdsl.compile(gdsl.load("gdn_tkg"), target="trn3")
for name, text in program.stages.items():
    lines = text.splitlines()
    print(f"==== {name}: {len(lines)} lines")
    print("\n".join(line[:100] for line in lines[:8]))
    print()
