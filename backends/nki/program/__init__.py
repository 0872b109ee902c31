"""The tile program: a trace-time program over symbolic sizes. Printed as NKI by `..emit`."""
