"""Find the program `keyhaul`."""

from __future__ import annotations

import os
import pathlib

from ._errors import ProgramNotFound

VARIABLE = "KEYHAUL_PROGRAM"
PACKAGED = pathlib.Path(__file__).parent / "bin" / "keyhaul"


def find_program(program: str | os.PathLike[str] | None = None) -> str:
    """Return the program's absolute path.

    It is the first of these: the argument, `KEYHAUL_PROGRAM`, the program in this package, the first program on PATH
    that is not a script. If the argument or the variable names a program that cannot be run, that is an error, and no
    other program is used.
    """
    if program is not None:
        return _validated(os.fspath(program), "it is the given argument")
    if path := os.environ.get(VARIABLE):
        return _validated(path, f"it is the value of {VARIABLE}")
    if _is_executable(PACKAGED):
        return str(PACKAGED)
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        candidate = pathlib.Path(folder or os.curdir, "keyhaul").absolute()
        if _is_executable(candidate) and not _is_script(candidate):
            return str(candidate)
    raise ProgramNotFound(
        "there is no program keyhaul",
        "it is not in this package and not on the search path",
        f"install a wheel for this system, or set {VARIABLE} to its path",
    )


def _validated(path: str, why: str) -> str:
    """Return the absolute path of a program. Raise an error if it cannot be run."""
    if not _is_executable(pathlib.Path(path)):
        raise ProgramNotFound(f"{path} cannot be run", why, "the path of the program keyhaul")
    return os.path.abspath(path)


def _is_executable(path: pathlib.Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _is_script(path: pathlib.Path) -> bool:
    """Whether the file is a script. The command of this package is a script, and would start itself endlessly."""
    try:
        with path.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False
