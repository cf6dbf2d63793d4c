"""`inspect`, `verify` and `plan`: they take a backup's path, address or stream, and return a typed result."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

from . import _process, _streams
from ._errors import KeyhaulError, TimedOut, name_of
from ._program import find_program
from ._records import NotUnderstood, decode
from .passwords import Password, PasswordCommand, PasswordFile, PasswordName, PasswordSource
from .results import Answer, Futures, Inspection, MigrationPlan, Plan, Verification

A = TypeVar("A", bound=Answer)
Backup: TypeAlias = "str | os.PathLike[str] | _process.Readable"
Verb: TypeAlias = Literal["inspect", "verify", "plan"]

# The exit codes with which a document is a result; 13 and 14 are results of `verify`. All other codes are failures.
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
    """Returns the contents of a backup. Without a password, it contains only what needs none.

    `backup` is a path, an address for `fsspec` (`s3://…`), or an object with `read`, such as an open tar file. Addresses and
    objects are read once, in portions, and nothing is written to disk. `items` also lists the items; it needs the password.
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
    """Checks whether a backup is intact, and returns every fault with its location.

    A damaged backup is a result, not an error. The files of an address or a stream are not checked, because it is read
    only once; `unchecked` says so.
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
    """Returns what a new device and the same one would get (`Futures`), or what a restore to the device `to` would do."""
    flags = [_option("--to", to)] if to is not None else []
    kind: type[Plan] = Futures if to is None else MigrationPlan
    return _asked(kind, "plan", flags, backup, password, device_key, home, program, timeout, cancel)


def is_listable(path: str) -> bool:
    """Whether the program treats the path as one backup in a list of paths too, as it does in an argument."""
    if _streams.is_address(path) or path == "-":
        return False
    try:
        path.encode("utf-8")
        # As an argument, a folder that is not a backup stands for the backups in it.
        return os.path.isfile(path) or os.path.isfile(os.path.join(path, "Manifest.plist"))
    except ValueError:
        return False


def listed(
    verb: Verb,
    paths: Sequence[str],
    *,
    password: PasswordSource | None = None,
    to: str | None = None,
    device_key: str | None = None,
    home: str | None = None,
    program: str | None = None,
    timeout: float | None = None,
) -> Generator[Inspection | Verification | Plan | KeyhaulError, None, None]:
    """Yields the result for each path, in order and as soon as it is known, from one call of the program.

    The paths must be listable and unique. If the program ends early, the remaining paths have no result; call the function
    for the next one alone to learn why. `timeout` applies to each path. A path that takes longer yields `TimedOut`, as the last.
    """
    planned: type[Plan] = Futures if to is None else MigrationPlan
    kind: type[Inspection | Verification | Plan] = (
        Inspection if verb == "inspect" else Verification if verb == "verify" else planned
    )
    secret, arguments = _arguments(verb, [_option("--to", to)] if to is not None else [], password, device_key, home)
    arguments += ["--format", "ndjson", "--jobs", "1", "--paths-from", "-"]
    stream = io.BytesIO(b"".join(path.encode("utf-8") + b"\0" for path in paths))
    started = time.monotonic()
    left = iter(paths)
    try:
        with contextlib.closing(
            _process.lines(find_program(program), arguments, stream=stream, secret=secret, timeout=timeout)
        ) as lines:
            for line, path in zip(lines, left):
                outcome = _of_line(kind, path, line, time.monotonic() - started)
                if outcome is None:
                    return
                yield outcome
                started = time.monotonic()
    except TimedOut as error:
        yield error


def version(program: str | None = None) -> str:
    """Returns the program's version and commit."""
    ended = _process.run(find_program(program), ["version", "--json"])
    document = _document(ended.out)
    if document is None or ended.code != 0:
        raise _failure(ended)
    return " ".join(str(document[part]) for part in ("version", "commit") if document.get(part))


def devices(program: str | None = None, home: str | None = None) -> list[dict[str, Any]]:
    """Returns the virtual devices in the home folder. Devices that cannot be read are left out."""
    found = _device_document(["device", "list"], program, home, {0, 3})
    return [device for device in found.get("devices", ()) if isinstance(device, dict)]


def device(name: str, program: str | None = None, home: str | None = None) -> dict[str, Any]:
    """Returns one virtual device."""
    return _device_document(["device", "show", name], program, home, {0})


def _device_document(command: list[str], program: str | None, home: str | None, codes: set[int]) -> dict[str, Any]:
    arguments = [*command, "--json", "--quiet", "--no-input", *([_option("--home", home)] if home is not None else [])]
    ended = _process.run(find_program(program), arguments)
    document = _document(ended.out)
    if document is None or ended.code not in codes:
        raise _failure(ended)
    return document


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
    secret, arguments = _arguments(verb, flags, password, device_key, home)
    arguments.append("--json")
    found = find_program(program)
    with _streams.opened(backup) as (path, stream):
        if stream is not None:
            # Otherwise the program would put a large manifest into a temporary file.
            arguments.append("--memory")
        ended = _process.run(
            found, [*arguments, "--", path], stream=stream, secret=secret, timeout=timeout, cancel=cancel
        )
    return _answer(kind, ended)


def _arguments(
    verb: str, flags: Sequence[str], password: PasswordSource | None, device_key: str | None, home: str | None
) -> tuple[bytes | None, list[str]]:
    """Returns the secret for the pipe, and the arguments that calls for one backup and for many share."""
    secret, sources = _password_flags(password)
    arguments = [verb, *sources, "--quiet", "--no-input", *flags]
    if device_key is not None:
        arguments.append(_option("--device-key-file", _file(device_key)))
    if home is not None:
        arguments.append(_option("--home", home))
    return secret, arguments


def _option(flag: str, value: str) -> str:
    """Returns a flag and its value as one argument. A value such as `--help` would otherwise be taken for a flag."""
    return f"{flag}={value}"


def _file(path: str) -> str:
    """Returns the path of a file. `-` alone would stand for standard input."""
    return path if path != "-" else "./-"


def _password_flags(password: PasswordSource | None) -> tuple[bytes | None, list[str]]:
    """Returns the secret for the pipe, and the arguments that name the password's source."""
    if isinstance(password, PasswordName):
        password = password.resolve()
    match password:
        case None:
            return None, []
        case PasswordFile(path):
            return None, [_option("--password-file", _file(path))]
        case PasswordCommand(command):
            return None, [_option("--password-command", command)]
        case Password():
            return password.secret(), []
    # Without its value, which may be the password.
    raise TypeError(
        f"a password comes from a PasswordFile, PasswordCommand, PasswordName or Password, not {type(password)}"
    )


def _answer(kind: type[A], ended: _process.Ended) -> A:
    document = _document(ended.out)
    if document is None or not _is_answer(kind, ended.code, document):
        raise _failure(ended)
    return _decoded(kind, document, ended.code, lambda: _failure(ended), ended.seconds)


def _of_line(kind: type[A], path: str, line: bytes, seconds: float) -> A | KeyhaulError | None:
    """Returns the result in a line of output, or None if the line is for another path or has neither a result nor an error.

    The program prints such a line if the result is too large for one, or if the path is not a backup. A call for the path
    alone says which.
    """
    said = _document(line) or {}
    code, document, error = said.get("code"), said.get("document"), said.get("error")
    if said.get("format") != "backup-answer/1" or said.get("path") != path or type(code) is not int:
        return None

    answer = document if isinstance(document, dict) and _is_answer(kind, code, document) else None
    if answer is None and not isinstance(error, dict):
        return None

    def failure() -> KeyhaulError:
        words = error if isinstance(error, dict) else {}
        message = words.get("message", f"the program ended with {code}")
        return KeyhaulError(
            code, str(said.get("id", name_of(code))), str(message), words.get("why"), words.get("try"), said
        )

    if answer is None:
        return failure()
    try:
        return _decoded(kind, answer, code, failure, seconds)
    except KeyhaulError as misunderstood:
        return misunderstood


def _is_answer(kind: type[Answer], code: int, document: Mapping[str, Any]) -> bool:
    return code in ANSWERS and FORMATS.get(document.get("format", "")) is kind


def _decoded(
    kind: type[A], document: Mapping[str, Any], code: int, failure: Callable[[], KeyhaulError], seconds: float
) -> A:
    try:
        answer = decode(kind, document)
    except NotUnderstood as fault:
        raise KeyhaulError(1, "failed", "the program's answer cannot be read", str(fault), "a newer package") from None
    error = failure() if code not in (0, 2, 3) else None
    return dataclasses.replace(answer, code=code, error=error, seconds=seconds)


def _document(text: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _failure(ended: _process.Ended) -> KeyhaulError:
    """Returns the error in the last line of standard error, or a general error if there is none."""
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
