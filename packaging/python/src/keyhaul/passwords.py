"""Password sources.

`PasswordFile`, `PasswordCommand`, `PasswordName` and `PasswordList` name the source of a password. They do not contain
it, so they can be sent to another machine, which reads the password itself. `Password` contains a password, for a call
in this process. It cannot be pickled, copied or printed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from ._errors import KeyhaulError

# The environment variable with the path of a JSON file, on the machine that reads the backup. The file has the form
# {"NAME": {"file": "PATH"}, "OTHER": {"command": "…"}}.
VARIABLE = "KEYHAUL_PASSWORDS"


@dataclass(frozen=True)
class PasswordFile:
    """A file that contains the password, on the machine that reads the backup."""

    path: str


@dataclass(frozen=True)
class PasswordCommand:
    """A shell command that prints the password, on the machine that reads the backup.

    The command is not secret, because it appears in the process list. It should read the password from a secret store.
    """

    command: str


@dataclass(frozen=True)
class PasswordName:
    """A name in the file that `KEYHAUL_PASSWORDS` specifies, on the machine that reads the backup."""

    name: str

    def resolve(self) -> PasswordFile | PasswordCommand:
        """Look up the name in this machine's file."""
        path_of_list = os.environ.get(VARIABLE)
        if not path_of_list:
            raise _unknown_name(self.name, f"{VARIABLE} is not set on this machine")
        try:
            with open(path_of_list, encoding="utf-8") as file:
                entries = json.load(file)
        except (OSError, ValueError) as error:
            # The message omits the error's text, which may quote the file.
            raise _unknown_name(self.name, f"{path_of_list} cannot be read: {type(error).__name__}") from None
        entry = entries.get(self.name) if isinstance(entries, dict) else None
        match entry:
            case {"file": str(path), **rest} if not rest:
                return PasswordFile(path)
            case {"command": str(command), **rest} if not rest:
                return PasswordCommand(command)
            case None:
                raise _unknown_name(self.name, f"{path_of_list} has no such name")
        raise _unknown_name(self.name, f'its entry in {path_of_list} is neither {{"file": …}} nor {{"command": …}}')


@dataclass(frozen=True)
class PasswordList:
    """A list of password sources, as the program's `--passwords` reads it, on the machine that reads the backup.

    Each line has a pattern and a source: `PATTERN file:PATH` or `PATTERN command:COMMAND`. A backup without a password
    needs no line.
    """

    path: str


class Password:
    """A password, for a call in this process.

    The program reads it from a pipe. Python cannot wipe it from the memory of this process.
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode("utf-8")

    def secret(self) -> bytes:
        """Return the password's bytes, for the pipe to the program."""
        return self._secret

    def __repr__(self) -> str:
        return "Password(…)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "a password itself is not sent or stored; use PasswordFile, PasswordCommand, PasswordName or PasswordList"
        )

    def __copy__(self) -> NoReturn:
        self.__reduce_ex__(2)

    def __deepcopy__(self, memo: object) -> NoReturn:
        self.__reduce_ex__(2)


# The sources that can be sent to another machine.
Sendable: TypeAlias = PasswordFile | PasswordCommand | PasswordName | PasswordList
PasswordSource: TypeAlias = Sendable | Password


def _unknown_name(name: str, why: str) -> KeyhaulError:
    """Return the error for a name without a usable source."""
    entry: Mapping[str, str] = {"name": name}
    return KeyhaulError(12, "wrong-password", f"there is no password named {name}", why, "the worker's file", entry)
