"""Password sources.

`PasswordFile`, `PasswordCommand` and `PasswordName` say where a password is. They contain no password, so you can send them
to another machine, which reads the password itself. `Password` contains a password, for a call in this process. It cannot
be pickled, copied or printed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from ._errors import KeyhaulError

# The worker's environment variable with the path of a JSON file: {"NAME": {"file": "PATH"}, "OTHER": {"command": "…"}}.
VARIABLE = "KEYHAUL_PASSWORDS"


@dataclass(frozen=True)
class PasswordFile:
    """A file that contains the password, on the machine that reads the backup."""

    path: str


@dataclass(frozen=True)
class PasswordCommand:
    """A shell command that prints the password, on the machine that reads the backup.

    The command is not secret, because the process list shows it. Let it ask a secret store.
    """

    command: str


@dataclass(frozen=True)
class PasswordName:
    """A name in the file that `KEYHAUL_PASSWORDS` names, on the machine that reads the backup."""

    name: str

    def resolve(self) -> PasswordFile | PasswordCommand:
        """Looks up the name in this machine's file."""
        place = os.environ.get(VARIABLE)
        if not place:
            raise _unknown(self.name, f"{VARIABLE} is not set on this machine")
        try:
            with open(place, encoding="utf-8") as file:
                listed = json.load(file)
        except (OSError, ValueError) as error:
            # Without the error's own text, which may quote the file.
            raise _unknown(self.name, f"{place} cannot be read: {type(error).__name__}") from None
        entry = listed.get(self.name) if isinstance(listed, dict) else None
        match entry:
            case {"file": str(path), **rest} if not rest:
                return PasswordFile(path)
            case {"command": str(command), **rest} if not rest:
                return PasswordCommand(command)
            case None:
                raise _unknown(self.name, f"{place} has no such name")
        raise _unknown(self.name, f'its entry in {place} is neither {{"file": …}} nor {{"command": …}}')


class Password:
    """A password, for a call in this process.

    The program reads it from a pipe. Python cannot wipe it from the memory of this process.
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode("utf-8")

    def secret(self) -> bytes:
        """Returns the password's bytes, for the pipe to the program."""
        return self._secret

    def __repr__(self) -> str:
        return "Password(…)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a password itself is not sent or stored; use PasswordFile, PasswordCommand or PasswordName")

    def __copy__(self) -> NoReturn:
        self.__reduce_ex__(2)

    def __deepcopy__(self, memo: object) -> NoReturn:
        self.__reduce_ex__(2)


Sendable: TypeAlias = PasswordFile | PasswordCommand | PasswordName
PasswordSource: TypeAlias = Sendable | Password


def _unknown(name: str, why: str) -> KeyhaulError:
    entry: Mapping[str, str] = {"name": name}
    return KeyhaulError(12, "wrong-password", f"there is no password named {name}", why, "the worker's file", entry)
