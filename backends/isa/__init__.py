"""NKI and the machines as data: instructions, targets, versions, the trace record. No behaviour."""
