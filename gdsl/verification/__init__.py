"""Do the witnesses agree? The simulated NKI text against the interpreter in float64."""
