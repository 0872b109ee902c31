"""The command line. One module per command, imported when that command is typed."""
