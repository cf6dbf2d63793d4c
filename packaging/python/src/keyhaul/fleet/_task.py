"""The work of one task, for a few backups. Only its rows leave the worker."""

from __future__ import annotations

import contextlib
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

from .. import _verbs
from .._errors import KeyhaulError
from .._program import find_program
from .._verbs import Verb
from ..passwords import Sendable
from ..results import Futures, Inspection, MigrationPlan, Plan, Verification
from . import _rows
from ._stamps import stamp
from ._tables import plain

# The most backups in a task. The work of a lost worker is done again.
MOST = 16
# The codes with which all other commands would end too.
ENDS_ALL = frozenset({10, 11, 12, 124, 127})


@dataclass(frozen=True)
class Settings:
    """The settings for every backup. `run` is different for every run."""

    verbs: tuple[Verb, ...]
    names: bool
    program: str | None
    home: str | None
    to: str | None
    device_key: str | None
    timeout: float | None
    run: str = ""


@dataclass(frozen=True)
class Known:
    """What an existing row answers. The row is valid if the password still opens `proof`, a backup with its stamp.

    `mark` is the same in all rows that one worker made in one run with one password source. `proof` is a backup that this
    password opened. Both are None if there was no password; `proof` alone is None if the password opened no backup.
    """

    stamp: str
    asked: str
    mark: str | None = None
    proof: tuple[str, str] | None = None


@dataclass(frozen=True)
class Job:
    """One backup, and what its existing row answers."""

    index: int
    path: str
    password: Sendable | None
    known: Known | None


@dataclass(frozen=True)
class Found:
    """The result for one backup; `row` is None if the known row is still valid."""

    index: int
    row: dict[str, Any] | None
    items: pa.Table | None


def portions(jobs: Sequence[Job], threads: int, batch: int | None) -> list[Sequence[Job]]:
    """Divides the backups into tasks: large ones first, since one call is cheaper, small ones last, so all workers end together.

    If no worker has joined yet, each task gets one backup, so that a late worker still finds work.
    """
    found: list[Sequence[Job]] = []
    start = 0
    while start < len(jobs):
        left = len(jobs) - start
        size = batch or min(MOST, math.ceil(left / (2 * threads or left)))
        found.append(jobs[start : start + size])
        start += size
    return found


def examine(jobs: Sequence[Job], settings: Settings) -> list[Found]:
    """Runs one task for a few backups. Every error becomes a row."""
    looks = [_Look(job, settings) for job in jobs]
    for verb in settings.verbs:
        for some in _by_password([look for look in looks if look.is_open]):
            _ask(verb, some, settings)
    return [look.found() for look in looks]


def examine_alone(job: Job, settings: Settings, mark: str) -> list[Found]:
    """Runs one backup alone. The mark tells the scheduler, before anything is read, that a worker has started on it."""
    from distributed import Event

    Event(mark).set()
    return examine([job], settings)


def failed(job: Job, code: int, id: str, error: str, why: str) -> Found:
    """Returns the row of a backup for which no worker has a result."""
    return Found(job.index, {"path": plain(job.path), "code": code, "id": id, "error": error, "why": plain(why)}, None)


class _Look:
    """The state of one backup while the commands run one after the other."""

    def __init__(self, job: Job, settings: Settings) -> None:
        self.job = job
        self.is_open = True
        self._names = settings.names
        self._row: dict[str, Any] | None = {"path": plain(job.path)}
        self._items: pa.Table | None = None
        self._seconds = 0.0
        with self._own():
            # Before anything is read, so the next run notices a later change.
            now = stamp(job.path)
            asked = _asked(settings, job.password)
            if now is not None and _is_answered(job, now, asked, settings):
                self._row, self.is_open = None, False
            else:
                mark = None if job.password is None else _mark(settings.run, job.password)
                self._row |= {"stamp": now, "asked": asked, "password_mark": mark, "code": 0, "id": "ok"}

    def take(self, outcome: Inspection | Verification | Plan | Exception, seconds: float) -> None:
        """Adds the result of a command and how long it took."""
        self._seconds += seconds
        with self._own():
            if isinstance(outcome, KeyhaulError):
                ending = _rows.ending(outcome)
            elif isinstance(outcome, Exception):
                raise outcome
            else:
                ending = self._told(outcome)
            assert self._row is not None
            if self._row["code"] == 0:
                self._row.update(ending)
            self.is_open = ending["code"] not in ENDS_ALL

    def found(self) -> Found:
        """Returns the result."""
        if self._row is not None and "stamp" in self._row:
            self._row["worker"] = _worker()
            self._row["finished"] = datetime.datetime.now(datetime.timezone.utc)
            self._row["seconds"] = self._seconds
        return Found(self.job.index, self._row, self._items)

    def _told(self, answer: Inspection | Verification | Plan) -> dict[str, Any]:
        assert self._row is not None
        self._row.update({name: value for name, value in _rows.columns(answer).items() if value is not None})
        if isinstance(answer, (Futures, MigrationPlan)):
            self._items = _rows.items(answer, self._row["path"], self._row["stamp"], self._names)
        return _rows.ending(answer.error) if answer.error else _rows.partial(answer)

    @contextlib.contextmanager
    def _own(self) -> Iterator[None]:
        """Limits an unexpected error to this backup."""
        try:
            yield
        except KeyhaulError as error:
            self._end(_rows.ending(error))
        except Exception as error:  # noqa: BLE001 - any error becomes a row
            self._end(
                {
                    "code": 1,
                    "id": "failed",
                    "error": "the worker could not look at it",
                    "why": plain(f"{type(error).__name__}: {error}"),
                }
            )

    def _end(self, ending: dict[str, Any]) -> None:
        self._row, self._items, self.is_open = {"path": plain(self.job.path), **ending}, None, False


def _by_password(looks: Sequence[_Look]) -> list[list[_Look]]:
    """Groups the backups that one call of the program can read."""
    groups: dict[Sendable | None, list[_Look]] = {}
    for look in looks:
        groups.setdefault(look.job.password, []).append(look)
    return list(groups.values())


def _ask(verb: Verb, looks: Sequence[_Look], settings: Settings) -> None:
    """Runs a command on all backups; each has a result afterwards.

    A backup that ended a call for many, or that cannot be in a list, gets its own call. The others are in the next call for
    many. If a call has no result at all, every backup gets its own call.
    """
    together: list[_Look] = []
    alone: list[_Look] = []
    for look in looks:
        (together if _verbs.is_listable(look.job.path) else alone).append(look)
    while len(together) > 1:
        answered = _ask_together(verb, together, settings)
        end = answered + 1 if answered else len(together)
        alone += together[answered:end]
        together = together[end:]
    for look in alone + together:
        started = time.monotonic()
        outcome: Inspection | Verification | Plan | Exception
        try:
            outcome = _answer(verb, look.job, settings)
        except Exception as error:  # noqa: BLE001 - `take` handles it
            outcome = error
        look.take(outcome, time.monotonic() - started)


def _ask_together(verb: Verb, looks: Sequence[_Look], settings: Settings) -> int:
    """Makes one call for all of them. Returns how many have a result, counted from the first."""
    answered = 0
    started = time.monotonic()
    paths = [look.job.path for look in looks]
    # The call for the next one alone shows why it ended.
    with contextlib.suppress(Exception):
        for outcome in _verbs.listed(verb, paths, **_how(verb, looks[0].job, settings)):
            looks[answered].take(outcome, time.monotonic() - started)
            answered, started = answered + 1, time.monotonic()
    return answered


def _answer(verb: Verb, job: Job, settings: Settings) -> Inspection | Verification | Plan:
    how = _how(verb, job, settings)
    match verb:
        case "inspect":
            return _verbs.inspect(job.path, **how)
        case "verify":
            return _verbs.verify(job.path, **how)
        case "plan":
            return _verbs.plan(job.path, **how)


def _how(verb: Verb, job: Job, settings: Settings) -> dict[str, Any]:
    """Returns the arguments of a call for one backup or for many."""
    how: dict[str, Any] = {"home": settings.home, "program": settings.program, "timeout": settings.timeout}
    if verb != "inspect":
        # The plan contains what a password adds to an inspection, which would derive the key again.
        how |= {"password": job.password, "device_key": settings.device_key}
    if verb == "plan":
        how["to"] = settings.to
    return how


def _asked(settings: Settings, password: Sendable | None) -> str:
    """Returns the question that a row answers, with the program's version."""
    question = {
        "program": _version(find_program(settings.program)),
        "verbs": settings.verbs,
        "names": settings.names,
        "to": settings.to,
        "home": settings.home,
        # A new device has another UDID, and every change raises its revision.
        "devices": _devices(find_program(settings.program), settings.home, settings.to, settings.run),
        "device_key": settings.device_key,
        "device_key_digest": _file_digest(settings.device_key, settings.run),
        # Identifies the source without naming it.
        "password": None if password is None else hashlib.sha256(repr(password).encode("utf-8")).hexdigest()[:12],
    }
    return json.dumps(question, sort_keys=True)


def _is_answered(job: Job, now: str, asked: str, settings: Settings) -> bool:
    """Whether the existing row answers the question for the backup as it is now."""
    known = job.known
    if known is None or (known.stamp, known.asked) != (now, asked):
        return False
    if job.password is None:
        return True
    return known.mark is not None and _is_proven(known.proof, job.password, settings)


@functools.cache
def _is_proven(proof: tuple[str, str] | None, password: Sendable, settings: Settings) -> bool:
    """Whether the password is the one that made the row. It is tried once for each proof, not for each backup.

    A source names a password and does not show when it changes. A password that opens a backup which the earlier password
    opened is the same one. So neither the password nor a digest of it is in the tables.
    """
    if proof is None or stamp(proof[0]) != proof[1]:
        return False
    try:
        found = _verbs.inspect(
            proof[0],
            password=password,
            items=True,
            home=settings.home,
            program=settings.program,
            timeout=settings.timeout,
        )
    except KeyhaulError:
        return False
    return any(item.readable for item in found.items or ())


@functools.cache
def _mark(run: str, password: Sendable) -> str:
    """Returns a random mark for a source of passwords, in this worker and run."""
    return uuid.uuid4().hex


@functools.cache
def _devices(program: str, home: str | None, to: str | None, run: str) -> list[dict[str, Any]]:
    """Returns the identities and revisions of the devices in the home folder and of the target."""
    found = _verbs.devices(program, home)
    if to is not None:
        try:
            found.append(_verbs.device(to, program, home))
        except KeyhaulError as error:
            # The command that needs the device says more.
            found.append({"name": to, "revision": error.id})
    return [{name: device.get(name) for name in ("name", "udid", "revision")} for device in found]


@functools.cache
def _file_digest(path: str | None, run: str) -> str | None:
    """Returns a digest of a device key, which is random, so the digest does not reveal it."""
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read(4096)).hexdigest()
    except OSError:
        return None


@functools.cache
def _version(program: str) -> str:
    """Returns the program's version; called once for each worker."""
    return _verbs.version(program)


def _worker() -> str:
    """Returns the host and process; a restarted worker gets another value."""
    return f"{socket.gethostname()}:{os.getpid()}"
