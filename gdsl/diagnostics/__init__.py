"""What the compiler says to its user: diagnostics, their catalogue, and how they are shown."""
