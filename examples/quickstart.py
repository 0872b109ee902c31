"""From a library kernel to verified NKI in ten lines."""

import gdsl

kernel = gdsl.load("gdn_tkg")
sizes = {"B": 2, "Hv": 4, "K": 64, "V": 64}

inputs = gdsl.random_inputs(kernel, sizes, seed=0)
outputs = gdsl.run(kernel, inputs)  # the interpreter: what the text means
print("interpreter:", {name: (array.shape, str(array.dtype)) for name, array in outputs.items()})

program = gdsl.compile(kernel, target="trn2")  # NKI source text
print("NKI:", len(program.text.splitlines()), "lines, entry", program.nki.entry)
print("schedule:", program.settings)

simulated = program.run(inputs)  # that text, executed on numpy
for name, array in simulated.items():
    error = abs(array.astype(float) - outputs[name].astype(float)).max()
    print(f"{name}: largest difference to the interpreter {error:.2g}")

report = gdsl.verify(kernel, shape=sizes, regimes=["gaussian", "identical-keys", "zero-state"])
report.assert_ok()
print(report)
