"""The work of one task, for a few backups. Only rows leave the worker."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import functools
import hashlib
import json
import math
import os
import socket
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from .. import _commands
from .._commands import Command
from .._errors import KeyhaulError
from .._program import find_program
from ..passwords import PasswordList, Sendable
from ..results import Futures, Inspection, MigrationPlan, Plan, Verification
from . import _rows
from ._stamps import stamp
from ._tables import escape

# The largest number of backups in a task. The tasks of a lost worker are repeated.
MAX_BATCH_SIZE = 16
# The exit codes after which all other commands would fail too.
FATAL_CODES = frozenset({10, 11, 12, 124, 127})


@dataclass(frozen=True)
class Settings:
    """The settings for every backup. `run` identifies the run: a worker caches some values for one run only."""

    verbs: tuple[Command, ...]
    names: bool
    program: str | None
    home: str | None
    to: str | None
    device_key: str | None
    timeout: float | None
    run: str = ""


@dataclass(frozen=True)
class EarlierRow:
    """What a worker needs to decide whether the row of an earlier run is still current.

    The row is current if its stamp and its question (see `_question`) are the same, and the password still decrypts
    the backup in `proof`. `proof` has the path and the stamp of a backup that the password decrypted in that run.
    `mark` is the same in all rows that one worker made in one run with one password source. Without a password, `mark`
    and `proof` are None. If the password decrypted no backup, only `proof` is None. `is_plain` states that the backup
    has no password.
    """

    stamp: str
    question: str
    mark: str | None = None
    proof: tuple[str, str] | None = None
    is_plain: bool = False


@dataclass(frozen=True)
class Job:
    """One backup, and its row of an earlier run."""

    index: int
    path: str
    password: Sendable | None
    earlier_row: EarlierRow | None


@dataclass(frozen=True)
class JobResult:
    """The result for one backup. `row` is None if the earlier row is still current."""

    index: int
    row: dict[str, Any] | None
    items: pa.Table | None


def batches(jobs: Sequence[Job], threads: int, batch: int | None) -> list[Sequence[Job]]:
    """Divide the backups into tasks.

    The first tasks are large, because one call for many backups costs less. The last tasks are small, so that all
    workers end together. If no worker has joined yet, each task has one backup, so that a late worker still has work.
    """
    tasks: list[Sequence[Job]] = []
    start = 0
    while start < len(jobs):
        remaining = len(jobs) - start
        size = batch or min(MAX_BATCH_SIZE, math.ceil(remaining / (2 * threads or remaining)))
        tasks.append(jobs[start : start + size])
        start += size
    return tasks


def run_jobs(jobs: Sequence[Job], settings: Settings) -> list[JobResult]:
    """Run one task for a few backups. Every error becomes a row."""
    states = [_BackupState(job, settings) for job in jobs]
    for verb in settings.verbs:
        for group in _by_password([state for state in states if state.is_pending]):
            _run_command(verb, group, settings)
    return [state.result() for state in states]


def run_single_job(job: Job, settings: Settings, event_name: str) -> list[JobResult]:
    """Run a task for one backup. First, set an event that shows that a worker has started the task."""
    from distributed import Event

    Event(event_name).set()
    return run_jobs([job], settings)


def failed_result(job: Job, code: int, id: str, error: str, why: str) -> JobResult:
    """Return the row of a backup for which no worker returned a result."""
    return JobResult(
        job.index, {"path": escape(job.path), "code": code, "id": id, "error": error, "why": escape(why)}, None
    )


class _BackupState:
    """The state of one backup while the commands run one after the other."""

    def __init__(self, job: Job, settings: Settings) -> None:
        self.job = job
        self.is_pending = True
        self._include_names = settings.names
        self._row: dict[str, Any] | None = {"path": escape(job.path)}
        self._items: pa.Table | None = None
        self._seconds = 0.0
        with self._catching_errors():
            # The stamp is taken before the backup is read, so that the next run detects a later change.
            current_stamp = stamp(job.path)
            question = _question(settings, job.password)
            if current_stamp is not None and _is_current(job, current_stamp, question, settings):
                self._row, self.is_pending = None, False
            else:
                mark = None if job.password is None else _mark(settings.run, job.password)
                self._row |= {"stamp": current_stamp, "asked": question, "password_mark": mark, "code": 0, "id": "ok"}

    def add(self, outcome: Inspection | Verification | Plan | Exception, seconds: float) -> None:
        """Add the result of a command, and the time that it took."""
        self._seconds += seconds
        with self._catching_errors():
            if isinstance(outcome, KeyhaulError):
                columns = _rows.error_columns(outcome)
            elif isinstance(outcome, Exception):
                raise outcome
            else:
                columns = self._fill_row(outcome)
            assert self._row is not None
            if self._row["code"] == 0:
                self._row.update(columns)
            self.is_pending = columns["code"] not in FATAL_CODES

    def result(self) -> JobResult:
        """Return the result."""
        if self._row is not None and "stamp" in self._row:
            self._row["worker"] = _worker()
            self._row["finished"] = datetime.datetime.now(datetime.timezone.utc)
            self._row["seconds"] = self._seconds
        return JobResult(self.job.index, self._row, self._items)

    def _fill_row(self, result: Inspection | Verification | Plan) -> dict[str, Any]:
        """Add the columns of a result to the row. Return its status columns."""
        assert self._row is not None
        columns = _rows.result_columns(result)
        self._row.update({name: value for name, value in columns.items() if value is not None})
        if isinstance(result, (Futures, MigrationPlan)):
            self._items = _rows.items(result, self._row["path"], self._row["stamp"], self._include_names)
        return _rows.error_columns(result.error) if result.error else _rows.status_columns(result)

    @contextlib.contextmanager
    def _catching_errors(self) -> Iterator[None]:
        """Limit an unexpected error to this backup."""
        try:
            yield
        except KeyhaulError as error:
            self._end(_rows.error_columns(error))
        except Exception as error:  # noqa: BLE001 - any error becomes a row
            self._end(
                {
                    "code": 1,
                    "id": "failed",
                    "error": "the worker could not run it",
                    "why": escape(f"{type(error).__name__}: {error}"),
                }
            )

    def _end(self, columns: dict[str, Any]) -> None:
        """Replace the row with one that has only an error, and run no more commands."""
        self._row = {"path": escape(self.job.path), **columns}
        self._items = None
        self.is_pending = False


def _by_password(states: Sequence[_BackupState]) -> list[list[_BackupState]]:
    """Group the backups that one call of the program can read."""
    groups: dict[Sendable | None, list[_BackupState]] = {}
    for state in states:
        groups.setdefault(state.job.password, []).append(state)
    return list(groups.values())


def _run_command(verb: Command, states: Sequence[_BackupState], settings: Settings) -> None:
    """Run a command on all backups. Afterwards, each has a result.

    A backup that ended a call for many, or that cannot be in a list, gets its own call. The backups after it are in the
    next call for many. If a call has no result at all, every backup gets its own call.
    """
    listable: list[_BackupState] = []
    single: list[_BackupState] = []
    for state in states:
        # Each path is tested only once, because a second test could have another result. The backup would then be in both
        # lists or in neither.
        (listable if _commands.is_listable(state.job.path) else single).append(state)
    while len(listable) > 1:
        result_count = _run_for_many(verb, listable, settings)
        next_start = result_count + 1 if result_count else len(listable)
        single += listable[result_count:next_start]
        listable = listable[next_start:]
    for state in single + listable:
        started = time.monotonic()
        outcome: Inspection | Verification | Plan | Exception
        try:
            outcome = _run_for_one(verb, state.job, settings)
        except Exception as error:  # noqa: BLE001 - `add` handles it
            outcome = _without_needless_password(verb, error, state.job, settings)
        state.add(outcome, time.monotonic() - started)


def _run_for_many(verb: Command, states: Sequence[_BackupState], settings: Settings) -> int:
    """Make one call for all backups. Return the number of results, counted from the first backup."""
    result_count = 0
    started = time.monotonic()
    paths = [state.job.path for state in states]
    # If the call fails, a call for only the next backup returns the reason.
    with contextlib.suppress(Exception):
        for outcome in _commands.stream_results(verb, paths, **_call_arguments(verb, states[0].job, settings)):
            state = states[result_count]
            state.add(_without_needless_password(verb, outcome, state.job, settings), time.monotonic() - started)
            result_count += 1
            started = time.monotonic()
    return result_count


def _without_needless_password(
    verb: Command, outcome: Inspection | Verification | Plan | Exception, job: Job, settings: Settings
) -> Inspection | Verification | Plan | Exception:
    """Return the result without the password, if the program refused the backup because it has no password.

    The column `encrypted` of the row says that the backup has no password.
    """
    is_refused = isinstance(outcome, KeyhaulError) and outcome.code == 14
    if not is_refused or job.password is None or verb == "inspect":
        return outcome
    job_without_password = dataclasses.replace(job, password=None)
    try:
        if _run_for_one("inspect", job_without_password, settings).encrypted is not False:  # type: ignore[union-attr]
            return outcome
        return _run_for_one(verb, job_without_password, settings)
    except Exception as error:  # noqa: BLE001 - becomes the row
        return error


def _run_for_one(verb: Command, job: Job, settings: Settings) -> Inspection | Verification | Plan:
    """Make one call for one backup, and return its result."""
    arguments = _call_arguments(verb, job, settings)
    match verb:
        case "inspect":
            return _commands.inspect(job.path, **arguments)
        case "verify":
            return _commands.verify(job.path, **arguments)
        case "plan":
            return _commands.plan(job.path, **arguments)


def _call_arguments(verb: Command, job: Job, settings: Settings) -> dict[str, Any]:
    """Return the arguments of a call for one backup or for many."""
    arguments: dict[str, Any] = {"home": settings.home, "program": settings.program, "timeout": settings.timeout}
    if verb != "inspect":
        # A password would make `inspect` derive the key again, and the plan has the same information.
        arguments |= {"password": job.password, "device_key": settings.device_key}
    if verb == "plan":
        arguments["to"] = settings.to
    return arguments


def _question(settings: Settings, password: Sendable | None) -> str:
    """Return as JSON everything that a row depends on, except the backup and the password."""
    question = {
        "program": _version(find_program(settings.program)),
        "verbs": settings.verbs,
        "names": settings.names,
        "to": settings.to,
        "home": settings.home,
        # A new device has a different UDID, and every change increases its revision.
        "devices": _devices(find_program(settings.program), settings.home, settings.to, settings.run),
        "device_key": settings.device_key,
        "device_key_digest": _file_digest(settings.device_key, settings.run),
        # Identifies the source without naming it.
        "password": None if password is None else hashlib.sha256(repr(password).encode("utf-8")).hexdigest()[:12],
    }
    return json.dumps(question, sort_keys=True)


def _is_current(job: Job, current_stamp: str, question: str, settings: Settings) -> bool:
    """Whether the earlier row has the same question, and the backup and the password are the same as then."""
    earlier = job.earlier_row
    if earlier is None or (earlier.stamp, earlier.question) != (current_stamp, question):
        return False
    if job.password is None or earlier.is_plain:
        return True
    if isinstance(job.password, PasswordList):
        # The proof checks only one password of the list.
        return False
    return earlier.mark is not None and _is_proven(earlier.proof, job.password, settings)


@functools.cache
def _is_proven(proof: tuple[str, str] | None, password: Sendable, settings: Settings) -> bool:
    """Whether the password is the same as in the earlier run. It is tried once for each proof, not for each backup.

    An unchanged source may have a changed password. But a password that still decrypts the backup of the proof has not
    changed. Therefore the tables need neither the password nor its digest.
    """
    if proof is None:
        return False
    path, earlier_stamp = proof
    if stamp(path) != earlier_stamp:
        return False
    try:
        result = _commands.inspect(
            path,
            password=password,
            items=True,
            home=settings.home,
            program=settings.program,
            timeout=settings.timeout,
        )
    except KeyhaulError:
        return False
    return any(item.readable for item in result.items or ())


@functools.cache
def _mark(run: str, password: Sendable) -> str:
    """Return a random mark for a password source, in this worker and run."""
    return uuid.uuid4().hex


@functools.cache
def _devices(program: str, home: str | None, to: str | None, run: str) -> list[dict[str, Any]]:
    """Return the identities and revisions of the devices in the device folder, and of the target."""
    devices = _commands.devices(program, home)
    if to is not None:
        try:
            devices.append(_commands.device(to, program, home))
        except KeyhaulError as error:
            # The command that needs the device reports the error.
            devices.append({"name": to, "revision": error.id})
    return [{name: device.get(name) for name in ("name", "udid", "revision")} for device in devices]


@functools.cache
def _file_digest(path: str | None, run: str) -> str | None:
    """Return a digest of a device key. The key is random, so the digest does not reveal it."""
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read(4096)).hexdigest()
    except OSError:
        return None


@functools.cache
def _version(program: str) -> str:
    """Return the program's version. It is called once for each worker."""
    return _commands.version(program)


def _worker() -> str:
    """Return the host name and the PID of this worker. A restarted worker has a different value."""
    return f"{socket.gethostname()}:{os.getpid()}"
