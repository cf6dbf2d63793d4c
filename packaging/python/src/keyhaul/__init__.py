"""What is in an iOS backup's keychain, whether the backup is whole, and what would move to another device.

The functions call the program `keyhaul` and return what it says as typed values; what it refuses is a `KeyhaulError`.
`keyhaul.fleet` asks the same of many backups over a cluster.
"""

from . import results
from ._errors import KeyhaulError, ProgramNotFound, TimedOut
from ._program import find_program
from ._verbs import inspect, plan, verify, version
from ._version import __version__
from .passwords import Password, PasswordCommand, PasswordFile, PasswordName, PasswordSource

__all__ = [
    "KeyhaulError",
    "Password",
    "PasswordCommand",
    "PasswordFile",
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
