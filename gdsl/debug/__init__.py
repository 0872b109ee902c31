"""Looking into a run: watch values, record them, find where a NaN began, compare two records."""
