"""`python -m gdsl`."""

from gdsl.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
