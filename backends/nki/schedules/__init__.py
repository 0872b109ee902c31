"""Hand-made schedules: how a plan's dataflow is laid over engines, buffers and loops."""
