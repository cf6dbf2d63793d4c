"""`inspect`, `verify` and `plan`: a backup's path, address or stream in, a typed answer out."""

from __future__ import annotations

import dataclasses
import json
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from . import _process, _streams
from ._errors import KeyhaulError, name_of
from ._program import find_program
from ._records import NotUnderstood, decode
from .passwords import Password, PasswordCommand, PasswordFile, PasswordName, PasswordSource
from .results import Answer, Futures, Inspection, MigrationPlan, Plan, Verification

A = TypeVar("A", bound=Answer)
Backup: TypeAlias = "str | os.PathLike[str] | _process.Readable"

# The codes beside which a document is an answer: 13 and 14 are what `verify` found. Every other is a failure, known or not.
ANSWERS = frozenset({0, 2, 3, 13, 14})
FORMATS: Mapping[str, type[Answer]] = {
    "backup-inspection/1": Inspection,
    "backup-verification/1": Verification,
    "migration-futures/1": Futures,
    "migration-plan/1": MigrationPlan,
}


def inspect(
    backup: Backup,
    *,
    password: PasswordSource | None = None,
    items: bool = False,
    device_key: str | None = None,
    home: str | None = None,
    program: str | None = None,
    timeout: float | None = None,
    cancel: threading.Event | None = None,
) -> Inspection:
    """What is in a backup; without a password, what can be told without one.

    `backup` is a path, an address that `fsspec` knows (`s3://…`), or what has `read`, such as an open tar. The latter two are
    read once, in portions, and nothing of them is written to a disk. `items` lists the items, which takes the password.
    """
    flags = ["--list"] if items else []
    return _asked(Inspection, "inspect", flags, backup, password, device_key, home, program, timeout, cancel)


def verify(
    backup: Backup,
    *,
    password: PasswordSource | None = None,
    quick: bool = False,
    device_key: str | None = None,
    home: str | None = None,
    program: str | None = None,
    timeout: float | None = None,
    cancel: threading.Event | None = None,
) -> Verification:
    """Whether a backup is whole, with every fault's place. A damaged backup is an answer, not an error.

    Of an address or a stream, which is read once, the payloads are not looked at: `unchecked` says so.
    """
    flags = ["--quick"] if quick else []
    return _asked(Verification, "verify", flags, backup, password, device_key, home, program, timeout, cancel)


def plan(
    backup: Backup,
    *,
    password: PasswordSource | None = None,
    to: str | None = None,
    device_key: str | None = None,
    home: str | None = None,
    program: str | None = None,
    timeout: float | None = None,
    cancel: threading.Event | None = None,
) -> Plan:
    """What a new device gets and what comes back to the same one (`Futures`), or what a restore to the device `to` would do."""
    flags = ["--to", to] if to is not None else []
    kind: type[Plan] = Futures if to is None else MigrationPlan
    return _asked(kind, "plan", flags, backup, password, device_key, home, program, timeout, cancel)


def version(program: str | None = None) -> str:
    """The program's version and commit."""
    ended = _process.run(find_program(program), ["version", "--json"])
    document = _document(ended)
    if document is None or ended.code != 0:
        raise _failure(ended)
    return " ".join(str(document[part]) for part in ("version", "commit") if document.get(part))


def _asked(
    kind: type[A],
    verb: str,
    flags: Sequence[str],
    backup: Backup,
    password: PasswordSource | None,
    device_key: str | None,
    home: str | None,
    program: str | None,
    timeout: float | None,
    cancel: threading.Event | None,
) -> A:
    secret, sources = _password_flags(password)
    arguments = [verb, *sources, "--json", "--quiet", "--no-input", *flags]
    if device_key is not None:
        arguments += ["--device-key-file", device_key]
    if home is not None:
        arguments += ["--home", home]
    found = find_program(program)
    with _streams.opened(backup) as (path, stream):
        if stream is not None:
            # Without it a large list of files would be put into a temporary file.
            arguments.append("--memory")
        ended = _process.run(
            found, [*arguments, "--", path], stream=stream, secret=secret, timeout=timeout, cancel=cancel
        )
    return _answer(kind, ended)


def _password_flags(password: PasswordSource | None) -> tuple[bytes | None, list[str]]:
    """What goes into a pipe, and what into the arguments."""
    if isinstance(password, PasswordName):
        password = password.resolve()
    match password:
        case None:
            return None, []
        case PasswordFile(path):
            return None, ["--password-file", path if path != "-" else "./-"]
        case PasswordCommand(command):
            return None, ["--password-command", command]
        case Password():
            return password.secret(), []
    # Not its value: it may be the password itself.
    raise TypeError(
        f"a password comes from a PasswordFile, PasswordCommand, PasswordName or Password, not {type(password)}"
    )


def _answer(kind: type[A], ended: _process.Ended) -> A:
    document = _document(ended)
    if document is None or ended.code not in ANSWERS or FORMATS.get(document.get("format", "")) is not kind:
        raise _failure(ended)
    try:
        answer = decode(kind, document)
    except NotUnderstood as fault:
        raise KeyhaulError(
            1, "failed", "the program's answer is not understood", str(fault), "a newer package"
        ) from None
    error = _failure(ended) if ended.code not in (0, 2, 3) else None
    return dataclasses.replace(answer, code=ended.code, error=error, seconds=ended.seconds)


def _document(ended: _process.Ended) -> dict[str, Any] | None:
    try:
        document = json.loads(ended.out)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _failure(ended: _process.Ended) -> KeyhaulError:
    """The last line on standard error, or what there is to say without one."""
    for line in reversed(ended.err.splitlines()):
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(said, dict) and said.get("message_type") == "exit_error":
            code = ended.code or 1
            return KeyhaulError(
                code,
                str(said.get("id", name_of(code))),
                str(said.get("message")),
                said.get("why"),
                said.get("try"),
                said,
            )
    code = ended.code or 1
    why = ended.err.decode("utf-8", "backslashreplace").strip()[-1000:] or None
    return KeyhaulError(code, name_of(code), f"the program ended with {ended.code} and no answer", why)
