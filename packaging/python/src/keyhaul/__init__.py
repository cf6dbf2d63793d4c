"""Inspect and verify iOS backups, and plan what their keychains bring to another device.

The functions call the program `keyhaul` and return its results as typed values. If the program fails, they raise a
`KeyhaulError`. `keyhaul.fleet` does the same for many backups, on a cluster.
"""

from . import results
from ._commands import inspect, plan, verify, version
from ._errors import KeyhaulError, ProgramNotFound, TimedOut
from ._program import find_program
from ._version import __version__
from .passwords import Password, PasswordCommand, PasswordFile, PasswordList, PasswordName, PasswordSource

__all__ = [
    "KeyhaulError",
    "Password",
    "PasswordCommand",
    "PasswordFile",
    "PasswordList",
    "PasswordName",
    "PasswordSource",
    "ProgramNotFound",
    "TimedOut",
    "__version__",
    "find_program",
    "inspect",
    "plan",
    "results",
    "verify",
    "version",
]
