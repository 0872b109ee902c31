"""Everything that knows a machine; each folder is one backend. See gdsl.registry."""
