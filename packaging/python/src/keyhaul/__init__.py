"""What is in an iOS backup's keychain, whether the backup is whole, and what would move to another device."""

from ._errors import KeyhaulError, ProgramNotFound
from ._program import find_program
from ._version import __version__

__all__ = ["KeyhaulError", "ProgramNotFound", "__version__", "find_program"]
