"""What a worker does for a few backups: nothing here is sent anywhere but its rows."""

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

# The most backups of one task: what a lost worker takes along is done again.
MOST = 16
# What the other verbs would end with as well.
ENDS_ALL = frozenset({10, 11, 12, 124, 127})


@dataclass(frozen=True)
class Settings:
    """What is asked of every backup."""

    verbs: tuple[Verb, ...]
    names: bool
    program: str | None
    home: str | None
    to: str | None
    device_key: str | None
    timeout: float | None


@dataclass(frozen=True)
class Job:
    """One backup. `known` is the stamp of a row that stands already, and what was asked for it."""

    index: int
    path: str
    password: Sendable | None
    known: tuple[str, str] | None


@dataclass(frozen=True)
class Found:
    """What came out for one backup; `row` is None where the row that is known still holds."""

    index: int
    row: dict[str, Any] | None
    items: pa.Table | None


def portions(jobs: Sequence[Job], threads: int, batch: int | None) -> list[Sequence[Job]]:
    """The backups of each task: many at first, since one call about them is cheaper, and one at the end, so that all end together.

    Where no worker has joined yet, nobody knows how many will share them: one each, so that the last to come has something to do.
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
    """One task: a few backups. An error is a row, whatever it is."""
    looks = [_Look(job, settings) for job in jobs]
    for verb in settings.verbs:
        for some in _by_password([look for look in looks if look.is_open]):
            _ask(verb, some, settings)
    return [look.found() for look in looks]


def examine_alone(job: Job, settings: Settings, mark: str) -> list[Found]:
    """One backup alone. The scheduler knows by the mark, before anything is read, that a worker has begun with it."""
    from distributed import Event

    Event(mark).set()
    return examine([job], settings)


def failed(job: Job, code: int, id: str, error: str, why: str) -> Found:
    """A row of a backup that no worker has an answer for."""
    return Found(job.index, {"path": plain(job.path), "code": code, "id": id, "error": error, "why": plain(why)}, None)


class _Look:
    """What is known of one backup, while the verbs are asked one after the other."""

    def __init__(self, job: Job, settings: Settings) -> None:
        self.job = job
        self.is_open = True
        self._names = settings.names
        self._row: dict[str, Any] | None = {"path": plain(job.path)}
        self._items: pa.Table | None = None
        self._seconds = 0.0
        with self._own():
            # Before anything is read: what changes from here on is seen the next time.
            now = stamp(job.path)
            asked = _asked(settings, job.password)
            if now is not None and job.known == (now, asked):
                self._row, self.is_open = None, False
            else:
                self._row |= {"stamp": now, "asked": asked, "code": 0, "id": "ok"}

    def take(self, outcome: Inspection | Verification | Plan | Exception, seconds: float) -> None:
        """What a verb has said, and how long it took."""
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
        """What came out."""
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
        """One backup's surprise is not another's."""
        try:
            yield
        except KeyhaulError as error:
            self._end(_rows.ending(error))
        except Exception as error:  # noqa: BLE001 - whatever it is
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
    """Those that one call of the program can be about, together."""
    groups: dict[Sendable | None, list[_Look]] = {}
    for look in looks:
        groups.setdefault(look.job.password, []).append(look)
    return list(groups.values())


def _ask(verb: Verb, looks: Sequence[_Look], settings: Settings) -> None:
    """Each has an answer at the end.

    What ended a call about many is asked alone, as what has no place in a list: its ending is then its own, and the others are
    in the next call. A call that has no answer at all has something else to say, to each.
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
        except Exception as error:  # noqa: BLE001 - its look knows what it is
            outcome = error
        look.take(outcome, time.monotonic() - started)


def _ask_together(verb: Verb, looks: Sequence[_Look], settings: Settings) -> int:
    """One call about all of them; how many of them, from the first on, have an answer."""
    answered = 0
    started = time.monotonic()
    paths = [look.job.path for look in looks]
    # Why it ended is learned from the call about the next one alone.
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
    """How a verb is asked, about one backup or about many."""
    how: dict[str, Any] = {"home": settings.home, "program": settings.program, "timeout": settings.timeout}
    if verb != "inspect":
        # What a password adds to an inspection is in the plan, and it would derive the key once more.
        how |= {"password": job.password, "device_key": settings.device_key}
    if verb == "plan":
        how["to"] = settings.to
    return how


def _asked(settings: Settings, password: Sendable | None) -> str:
    """What a row answers: the question, and the program that was asked."""
    question = {
        "program": _version(find_program(settings.program)),
        "verbs": settings.verbs,
        "names": settings.names,
        "to": settings.to,
        "home": settings.home,
        "device_key": settings.device_key,
        # That it is the same source, without saying which.
        "password": None if password is None else hashlib.sha256(repr(password).encode("utf-8")).hexdigest()[:12],
    }
    return json.dumps(question, sort_keys=True)


@functools.cache
def _version(program: str) -> str:
    """Asked once in a worker's life."""
    return _verbs.version(program)


def _worker() -> str:
    """Which process it was; a worker that starts again is another one."""
    return f"{socket.gethostname()}:{os.getpid()}"
