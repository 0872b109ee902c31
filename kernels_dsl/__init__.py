"""The kernel library: rules, gates, norms and kernels as .gdn files."""
