"""The command `keyhaul` of this package. It runs the program with the same arguments."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from ._errors import ProgramNotFound
from ._program import find_program


def main() -> NoReturn:
    """Replace this process with the program."""
    try:
        program = find_program()
    except ProgramNotFound as error:
        print(f"error: {error.message}\n  why: {error.why}\n  try: {error.advice}", file=sys.stderr)
        sys.exit(error.code)
    os.execv(program, ["keyhaul", *sys.argv[1:]])


if __name__ == "__main__":
    main()
