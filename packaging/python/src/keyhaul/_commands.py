"""The functions `inspect`, `verify` and `plan`, which call the program and return typed results."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

from . import _process, _streams
from ._errors import KeyhaulError, TimedOut, id_of_code
from ._program import find_program
from ._records import DecodingError, decode
from .passwords import Password, PasswordCommand, PasswordFile, PasswordList, PasswordName, PasswordSource
from .results import Answer, Futures, Inspection, MigrationPlan, Plan, Verification

A = TypeVar("A", bound=Answer)
Backup: TypeAlias = "str | os.PathLike[str] | _process.Readable"
Command: TypeAlias = Literal["inspect", "verify", "plan"]

# With these exit codes, the document is a result. 13 and 14 are results of `verify`. All other codes are errors.
RESULT_CODES = frozenset({0, 2, 3, 13, 14})
FORMATS: Mapping[str, type[Answer]] = {
    "backup-inspection/1": Inspection,
    "backup-verification/1": Verification,
    "migration-futures/1": Futures,
    "migration-plan/1": MigrationPlan,
}


@dataclasses.dataclass(frozen=True)
class _Options:
    """The arguments that `inspect`, `verify` and `plan` share."""

    password: PasswordSource | None
    device_key: str | None
    home: str | None
    program: str | None
    timeout: float | None
    cancel: threading.Event | None = None


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
    """Return the contents of a backup. Without a password, only unencrypted parts are included.

    `backup` is a path, an address for `fsspec` (`s3://…`), or an object with `read`, such as an open tar file.
    Addresses and objects are read once, in chunks, and nothing is written to the disk. `items` also lists the items,
    which needs the password.
    """
    options = _Options(password, device_key, home, program, timeout, cancel)
    return _call("inspect", backup, Inspection, ["--list"] if items else [], options)


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
    """Check whether a backup is intact, and return every fault with its location.

    A damaged backup is a result, not an error. A backup at an address or in a stream is read only once, so its files
    are not checked. `unchecked` says so.
    """
    options = _Options(password, device_key, home, program, timeout, cancel)
    return _call("verify", backup, Verification, ["--quick"] if quick else [], options)


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
    """Return the plan of a restore to the device `to` (`MigrationPlan`).

    Without `to`, return the outlook for a new device and for the same one (`Futures`).
    """
    options = _Options(password, device_key, home, program, timeout, cancel)
    return _call("plan", backup, _plan_type(to), _target_flags(to), options)


def is_listable(path: str) -> bool:
    """Whether the path means one backup, both in `--paths-from` and as an argument."""
    if _streams.is_address(path) or path == "-":
        return False
    try:
        path.encode("utf-8")
        # As an argument, a folder that is not a backup means the backups in it.
        return os.path.isfile(path) or os.path.isfile(os.path.join(path, "Manifest.plist"))
    except ValueError:
        return False


def stream_results(
    verb: Command,
    paths: Sequence[str],
    *,
    password: PasswordSource | None = None,
    to: str | None = None,
    device_key: str | None = None,
    home: str | None = None,
    program: str | None = None,
    timeout: float | None = None,
) -> Generator[Inspection | Verification | Plan | KeyhaulError, None, None]:
    """Yield the result of each path, in order and as soon as it is available, from one call of the program.

    The paths must be listable (`is_listable`) and unique. If the program ends early, the remaining paths have no
    result. To get the reason, call `inspect`, `verify` or `plan` with the first of them. `timeout` applies to each
    path. A path that takes longer yields `TimedOut`, and is the last one.
    """
    result_type = _result_type(verb, to)
    secret, arguments = _arguments(verb, _target_flags(to), _Options(password, device_key, home, program, timeout))
    arguments += ["--format", "ndjson", "--jobs", "1", "--paths-from", "-"]
    stream = io.BytesIO(b"".join(path.encode("utf-8") + b"\0" for path in paths))
    started = time.monotonic()
    result_count = 0
    try:
        with contextlib.closing(
            _process.lines(find_program(program), arguments, stream=stream, secret=secret, timeout=timeout)
        ) as lines:
            for line, path in zip(lines, paths):
                outcome = _result_in_line(result_type, path, line, time.monotonic() - started)
                if outcome is None:
                    return
                result_count += 1
                yield outcome
                started = time.monotonic()
    except TimedOut as error:
        # The program can also exceed its time at its end, when all paths have a result.
        if result_count < len(paths):
            yield error


def version(program: str | None = None) -> str:
    """Return the program's version and commit."""
    completed = _process.run(find_program(program), ["version", "--json"])
    document = _document(completed.out)
    if document is None or completed.code != 0:
        raise _failure(completed)
    return " ".join(str(document[part]) for part in ("version", "commit") if document.get(part))


def devices(program: str | None = None, home: str | None = None) -> list[dict[str, Any]]:
    """Return the virtual devices in the device folder, without those that cannot be read."""
    document = _device_document(["device", "list"], program, home, {0, 3})
    entries = document.get("devices")
    if not isinstance(entries, list):
        raise _undecodable_output("devices: not a list")
    return [entry for entry in entries if isinstance(entry, dict)]


def device(name: str, program: str | None = None, home: str | None = None) -> dict[str, Any]:
    """Return one virtual device."""
    return _device_document(["device", "show", name], program, home, {0})


def _device_document(
    command: list[str], program: str | None, home: str | None, accepted_codes: set[int]
) -> dict[str, Any]:
    """Return the document that a command about virtual devices prints."""
    arguments = [*command, "--json", "--quiet", "--no-input", *([_option("--home", home)] if home is not None else [])]
    completed = _process.run(find_program(program), arguments)
    document = _document(completed.out)
    if document is None or completed.code not in accepted_codes:
        raise _failure(completed)
    return document


def _result_type(verb: Command, to: str | None) -> type[Inspection | Verification | Plan]:
    """Return the type of a command's result."""
    match verb:
        case "inspect":
            return Inspection
        case "verify":
            return Verification
        case "plan":
            return _plan_type(to)


def _plan_type(to: str | None) -> type[Plan]:
    """Return the type of a plan. Without a target, the plan is an outlook (`Futures`)."""
    return Futures if to is None else MigrationPlan


def _target_flags(to: str | None) -> list[str]:
    """Return the option for the target of a plan."""
    return [] if to is None else [_option("--to", to)]


def _call(verb: Command, backup: Backup, result_type: type[A], flags: Sequence[str], options: _Options) -> A:
    """Run a command on one backup, and return its result."""
    secret, arguments = _arguments(verb, flags, options)
    arguments.append("--json")
    executable = find_program(options.program)
    is_path = isinstance(backup, (str, os.PathLike)) and not _streams.is_address(os.fspath(backup))
    if isinstance(options.password, PasswordList) and not is_path:
        raise TypeError("a list of passwords works with paths, not with streams")
    with _streams.open_backup(backup) as (path, stream):
        if stream is not None:
            # Otherwise the program would put a large manifest into a temporary file.
            arguments.append("--memory")
        completed = _process.run(
            executable,
            [*arguments, "--", path],
            stream=stream,
            secret=secret,
            timeout=options.timeout,
            cancel=options.cancel,
        )
    return _result(result_type, completed)


def _arguments(verb: Command, flags: Sequence[str], options: _Options) -> tuple[bytes | None, list[str]]:
    """Return the password to write to the program's pipe, and the arguments that all calls have."""
    secret, password_flags = _password_flags(options.password)
    arguments = [verb, *password_flags, "--quiet", "--no-input", *flags]
    if options.device_key is not None:
        arguments.append(_option("--device-key-file", _file(options.device_key)))
    if options.home is not None:
        arguments.append(_option("--home", options.home))
    return secret, arguments


def _option(flag: str, value: str) -> str:
    """Return an option and its value as one argument, because a value such as `--help` would be taken for an option."""
    return f"{flag}={value}"


def _file(path: str) -> str:
    """Return the path of a file. `-` alone would mean standard input."""
    return path if path != "-" else "./-"


def _password_flags(password: PasswordSource | None) -> tuple[bytes | None, list[str]]:
    """Return the password to write to the program's pipe, and the options for the password's source."""
    if isinstance(password, PasswordName):
        password = password.resolve()
    match password:
        case None:
            return None, []
        case PasswordFile(path):
            return None, [_option("--password-file", _file(path))]
        case PasswordCommand(command):
            return None, [_option("--password-command", command)]
        case PasswordList(path):
            return None, [_option("--passwords", _file(path))]
        case Password():
            return password.secret(), []
    # The message omits the value, which may be the password.
    raise TypeError(
        f"a password comes from a PasswordFile, PasswordCommand, PasswordName, PasswordList or Password, not {type(password)}"
    )


def _result(result_type: type[A], completed: _process.CompletedRun) -> A:
    """Return the result that the program printed, or raise its error."""
    document = _document(completed.out)
    if document is not None and document.get("format") == "backup-list/1":
        return _only_result(result_type, document, completed)
    error = _failure(completed)
    if document is None or not _is_result(result_type, completed.code, document):
        raise error
    return _decode_result(result_type, document, completed.code, error, completed.seconds)


def _only_result(result_type: type[A], document: Mapping[str, Any], completed: _process.CompletedRun) -> A:
    """Return the only result in a `backup-list/1`, which the program prints even for one backup with `--passwords`."""
    backups = document.get("backups")
    entry = backups[0] if isinstance(backups, list) and len(backups) == 1 else None
    if not isinstance(entry, dict):
        raise KeyhaulError(14, id_of_code(14), "the path is not a single backup", "a folder of backups was given")
    line = json.dumps({"format": "backup-answer/1", **entry}).encode("utf-8")
    outcome = _result_in_line(result_type, str(entry.get("path")), line, completed.seconds)
    if outcome is None:
        raise _failure(completed)
    if isinstance(outcome, KeyhaulError):
        raise outcome
    return outcome


def _result_in_line(result_type: type[A], path: str, line: bytes, seconds: float) -> A | KeyhaulError | None:
    """Return the result in a line of output, or None if the line has no result for this path.

    The program prints a line with neither a result nor an error if the result is too large, or if the path is not a
    backup. A call for the path alone returns the reason.
    """
    entry = _document(line) or {}
    code, document, error = entry.get("code"), entry.get("document"), entry.get("error")
    if entry.get("format") != "backup-answer/1" or entry.get("path") != path or type(code) is not int:
        return None

    error_members = error if isinstance(error, dict) else {}
    failure = KeyhaulError(
        code,
        str(entry.get("id", id_of_code(code))),
        str(error_members.get("message", f"the program ended with {code}")),
        error_members.get("why"),
        error_members.get("try"),
        entry,
    )
    if isinstance(document, dict) and _is_result(result_type, code, document):
        try:
            return _decode_result(result_type, document, code, failure, seconds)
        except KeyhaulError as decoding_error:
            return decoding_error
    return failure if isinstance(error, dict) else None


def _is_result(result_type: type[Answer], code: int, document: Mapping[str, Any]) -> bool:
    """Whether a document is a result of this type, and not an error of the program."""
    format_id = document.get("format")
    return code in RESULT_CODES and isinstance(format_id, str) and FORMATS.get(format_id) is result_type


def _decode_result(
    result_type: type[A], document: Mapping[str, Any], code: int, failure: KeyhaulError, seconds: float
) -> A:
    """Return the result in a document, with the failure if the code means that the backup is damaged or refused."""
    try:
        result = decode(result_type, document)
    except DecodingError as fault:
        raise _undecodable_output(str(fault)) from None
    error = None if code in (0, 2, 3) else failure
    return dataclasses.replace(result, code=code, error=error, seconds=seconds)


def _undecodable_output(why: str) -> KeyhaulError:
    """Return the error for output that is not as its schema says."""
    return KeyhaulError(1, "failed", "the program's output cannot be decoded", why, "a newer package")


def _document(text: bytes) -> dict[str, Any] | None:
    """Return a JSON object, or None if the text is something else."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _failure(completed: _process.CompletedRun) -> KeyhaulError:
    """Return the error in the last line of standard error, or a general error if there is none."""
    for line in reversed(completed.err.splitlines()):
        message = _document(line)
        if message is not None and message.get("message_type") == "exit_error":
            code = completed.code or 1
            return KeyhaulError(
                code,
                str(message.get("id", id_of_code(code))),
                str(message.get("message")),
                message.get("why"),
                message.get("try"),
                message,
            )
    code = completed.code or 1
    why = completed.err.decode("utf-8", "backslashreplace").strip()[-1000:] or None
    return KeyhaulError(code, id_of_code(code), f"the program ended with {completed.code} without a result", why)
