"""The typed recurrence: what a kernel means. Everything downstream starts from `gdsl.ir.kernel`."""
