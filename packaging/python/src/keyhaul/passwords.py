"""Where a password comes from, as a value that holds none.

`PasswordFile`, `PasswordCommand` and `PasswordName` say where a password is and can be sent to another machine, which looks
there for itself. `Password` holds one, for a call in this process; it cannot be pickled, copied or printed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from ._errors import KeyhaulError

# Of the environment of a worker: the path of a JSON file, {"NAME": {"file": "PATH"}, "OTHER": {"command": "…"}}.
VARIABLE = "KEYHAUL_PASSWORDS"


@dataclass(frozen=True)
class PasswordFile:
    """A file with the password, on the machine that opens the backup."""

    path: str


@dataclass(frozen=True)
class PasswordCommand:
    """A command of the shell that prints the password, on the machine that opens the backup.

    The command is no secret: it stands in the list of processes. Have it ask a store of secrets.
    """

    command: str


@dataclass(frozen=True)
class PasswordName:
    """A name that the machine that opens the backup knows: one of the file that `KEYHAUL_PASSWORDS` names there."""

    name: str

    def resolve(self) -> PasswordFile | PasswordCommand:
        """What this machine's file says of the name."""
        place = os.environ.get(VARIABLE)
        if not place:
            raise _unknown(self.name, f"{VARIABLE} is not set on this machine")
        try:
            with open(place, encoding="utf-8") as file:
                listed = json.load(file)
        except (OSError, ValueError) as error:
            # Not the error's own words, which may quote the file.
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
    """A password itself, for a call in this process.

    The program reads it from a pipe. It is not wiped from this process's memory, which Python has no means for.
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode("utf-8")

    def secret(self) -> bytes:
        """The password's bytes, for the pipe to the program."""
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
    return KeyhaulError(
        12, "wrong-password", f"there is no password of the name {name}", why, "the worker's file", entry
    )
