"""The interpreter: a typed kernel on numpy, token by token. It defines what the language means.

It is written to be compared with the page, not to be fast: no canonical form, no algorithm, no
schedule. `RUNNER` implements `gdsl.runner.Runner`.
"""

from backends.interpreter.run import Interpreter

RUNNER = Interpreter()
