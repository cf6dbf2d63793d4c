"""Runs a fleet: sends out jobs and collects one row for each backup."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import time
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from .._verbs import Verb
from ..passwords import PasswordCommand, PasswordFile, PasswordName, Sendable
from . import _tables
from ._paths import Paths, listed
from ._task import Found, Job, Known, Settings, examine, examine_alone, failed, portions

if TYPE_CHECKING:
    from distributed import Client, Future

Passwords: TypeAlias = "Sendable | Mapping[str, Sendable | None] | Callable[[str], Sendable | None] | None"

# The exit codes that are results about the backup. The next run tries the others again, such as a wrong password.
SETTLED = frozenset({0, 2, 3, 13, 14})
# The exit codes of rows whose password opened the backup.
OPENED = frozenset({0, 2, 3})
# How often a backup is sent to workers that are lost before they start on it.
UNBEGUN = 16


@dataclass(frozen=True)
class Outcome:
    """The tables, in the order of the paths, and counts of the run.

    `kept` rows come from the earlier run; `looked_at` rows are new. `again` counts the backups that this run sent out once
    more. It does not include those that Dask moved from a lost worker to another.
    """

    backups: pa.Table
    items: pa.Table
    kept: int
    looked_at: int
    again: int
    seconds: float

    def rows(self) -> list[dict[str, Any]]:
        """Returns the rows of the backups."""
        rows: list[dict[str, Any]] = self.backups.to_pylist()
        return rows

    def failures(self) -> list[dict[str, Any]]:
        """Returns the rows whose code is not 0."""
        return [row for row in self.rows() if row["code"] != 0]


def run(
    paths: Paths,
    client: Client,
    *,
    verbs: Sequence[Verb] = ("verify", "plan"),
    passwords: Passwords = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = True,
    names: bool = False,
    to: str | None = None,
    device_key: str | None = None,
    home: str | None = None,
    program: str | None = None,
    timeout: float | None = 3600.0,
    retries: int = 1,
    batch: int | None = None,
    checkpoint: float = 60.0,
    progress: Callable[[int, int], None] | None = None,
) -> Outcome:
    """Runs `verbs` on every backup, on the workers of `client`, and returns one row for each, in the order of the paths.

    - `paths`: a folder, an address, or a list of paths and addresses, as the workers see them. Repeated paths count once.
    - `passwords`: one source for all backups, a source for each path pattern (the first match is used), or a function of the
      path. A `Password` is rejected, because it would pass through the scheduler.
    - `out`: the folder for `backups.parquet` and `items.parquet`. They are written every `checkpoint` seconds and at the end,
      even if an exception ends the run.
    - `resume`: keep the rows in `out` that have the same question, whose backup has the same stamp, and whose password still
      opens a backup that it opened before.
    - `names`: write each item's label, account, service, server and access group. Otherwise no name leaves the worker.
    - `to`, `device_key`, `home`, `program`, `timeout`: as in `keyhaul.plan`, on the worker. `timeout` is in seconds for each
      command.
    - `retries`: how often to start a backup again, alone, after Dask gave it up because several workers were lost with it. A
      backup without a result gets a row with the id `worker-lost`. A worker that is lost before it starts does not count.
    - `batch`: the number of backups in a task and in a call of the program. By default, tasks start large and end with one.
    - `progress`: called with the number of finished backups and the total.
    """
    started = time.monotonic()
    settings = Settings(tuple(verbs), names, program, home, to, device_key, timeout, uuid.uuid4().hex)
    if not settings.verbs or set(settings.verbs) - {"inspect", "verify", "plan"}:
        raise ValueError("verbs are inspect, verify and plan, and at least one of them")
    names_of_paths = listed(paths)
    known = _Known(out, names) if out is not None and resume else None
    jobs = [
        Job(index, path, _source(passwords, path), known.answer(path) if known else None)
        for index, path in enumerate(names_of_paths)
    ]
    results = _Results(jobs, names, known)
    again = 0
    saved = time.monotonic()
    try:
        with contextlib.closing(_answers(client, jobs, settings, retries, batch)) as answers:
            for found, times in answers:
                again += times
                for each in found:
                    results.add(each)
                if progress:
                    progress(len(results), len(jobs))
                if out is not None and time.monotonic() - saved >= checkpoint:
                    _tables.write(out, *results.tables(complete=False))
                    saved = time.monotonic()
    except BaseException:
        # An interrupted run writes the rows it has. A run without any rows keeps the earlier tables.
        if out is not None and len(results):
            _tables.write(out, *results.tables(complete=False))
        raise
    backups, items = results.tables(complete=True)
    if out is not None:
        _tables.write(out, backups, items)
    return Outcome(backups, items, results.kept, len(jobs) - results.kept, again, time.monotonic() - started)


def _source(passwords: Passwords, path: str) -> Sendable | None:
    source: object
    if isinstance(passwords, Mapping):
        source = next((passwords[pattern] for pattern in passwords if fnmatch.fnmatchcase(path, pattern)), None)
    elif callable(passwords):
        source = passwords(path)
    else:
        source = passwords
    if source is None or isinstance(source, (PasswordFile, PasswordCommand, PasswordName)):
        return source
    # Without its value, which may be the password.
    raise TypeError(
        f"a fleet's password comes from a PasswordFile, PasswordCommand or PasswordName, not {type(source)}"
    )


def _answers(
    client: Client, jobs: Sequence[Job], settings: Settings, retries: int, batch: int | None
) -> Generator[tuple[list[Found], int], None, None]:
    """Yields results as they arrive, each with how many backups were sent out again for it.

    Dask moves the tasks of a lost worker to another one. It gives up a task if several workers were lost with it, although
    another task of the same worker may be the cause. Such backups are sent out again at the end, one at a time and with
    nothing else running.
    """
    from distributed import as_completed

    name = f"keyhaul-{uuid.uuid4().hex[:12]}"
    sent: dict[Future, Sequence[Job]] = {}
    suspects: list[Job] = []

    def send(some: Sequence[Job]) -> Future:
        future = client.submit(examine, some, settings, key=f"{name}-{some[0].index}", pure=False)
        sent[future] = some
        return future

    try:
        for future, result in as_completed(
            map(send, portions(jobs, sum(client.nthreads().values()), batch)), with_results=True, raise_errors=False
        ):
            some = sent.pop(future)
            if future.status == "finished":
                yield result, 0
            else:
                suspects += some
            future.release()
        for job in suspects:
            yield _alone(client, job, settings, retries, name)
    finally:
        # If the run ends early, tasks that have not started are canceled.
        if sent:
            client.cancel(list(sent))


def _alone(client: Client, job: Job, settings: Settings, retries: int, name: str) -> tuple[list[Found], int]:
    """Runs one backup with nothing else running. Returns the result, and how often the backup was sent out.

    A backup can only have ended a worker that started on it. If the worker was already ending because of another backup,
    this one is sent out once more, whatever `retries` is.
    """
    from distributed import Event

    cause: BaseException | None = None
    begun = sent = 0
    while begun < retries and sent - begun < UNBEGUN:
        sent += 1
        mark = f"{name}-{job.index}-{sent}"
        future = client.submit(examine_alone, job, settings, mark, key=mark, pure=False)
        try:
            cause = future.exception()
            if cause is None:
                return future.result(), sent
        finally:
            future.cancel()
            event = Event(mark, client=client)
            begun += event.is_set()
            event.clear()
    why = f"{type(cause).__name__}: it ends the process that looks at it" if cause else "its worker was lost"
    if cause and not begun:
        why = f"{type(cause).__name__}: no worker lived until it began"
    return [failed(job, 1, "worker-lost", "no worker has an answer", why)], sent


class _Known:
    """The rows of an earlier run that are results about their backups."""

    def __init__(self, folder: str | os.PathLike[str], names: bool) -> None:
        self._rows: dict[str, dict[str, Any]] = {}
        self._items: dict[str, pa.Table] = {}
        # A backup and its stamp for each mark of a password that opened it.
        self._proofs: dict[str, tuple[str, str]] = {}
        found = _tables.read(folder, names)
        if found is None:
            return
        backups, items = found
        places = _slices(items)
        for row in backups.to_pylist():
            start, count = places.get(row["path"], (0, 0))
            own = items.slice(start, count)
            stamps = set(own["stamp"].unique().to_pylist())
            settled = row["code"] in SETTLED and row["stamp"] is not None
            if settled and stamps <= {row["stamp"]} and count == (row["items"] or 0):
                self._rows[row["path"]], self._items[row["path"]] = row, own
                # A name with escaped bytes is not the path itself.
                if row["password_mark"] and row["code"] in OPENED and "\\" not in row["path"]:
                    self._proofs.setdefault(row["password_mark"], (row["path"], row["stamp"]))

    def answer(self, path: str) -> Known | None:
        row = self._rows.get(_tables.plain(path))
        if row is None:
            return None
        mark = row["password_mark"]
        return Known(row["stamp"], row["asked"], mark, self._proofs.get(mark) if mark else None)

    def found(self, job: Job) -> Found | None:
        """Returns the known row."""
        path = _tables.plain(job.path)
        row = self._rows.get(path)
        return Found(job.index, row, self._items[path]) if row else None


def _slices(items: pa.Table) -> dict[str, tuple[int, int]]:
    """Returns the position of each path's items. They are adjacent, as they were written."""
    if items.num_rows == 0:
        return {}
    encoded = pc.run_end_encode(items["path"].combine_chunks())
    ends = encoded.run_ends.to_pylist()
    places: dict[str, tuple[int, int]] = {}
    start = 0
    for path, end in zip(encoded.values.to_pylist(), ends, strict=True):
        places[path], start = (start, end - start), end
    return places


class _Results:
    """The results so far, by the index of their path."""

    def __init__(self, jobs: Sequence[Job], names: bool, known: _Known | None) -> None:
        self._jobs = jobs
        self._schema = _tables.items_schema(names)
        self._known = known
        self._found: dict[int, Found] = {}
        self.kept = 0

    def __len__(self) -> int:
        return len(self._found)

    def add(self, found: Found) -> None:
        if found.index in self._found:
            return
        if found.row is None:
            before = self._known.found(self._jobs[found.index]) if self._known else None
            if before is None:
                raise AssertionError("a worker kept a row that nobody has")
            found, self.kept = before, self.kept + 1
        self._found[found.index] = found

    def tables(self, complete: bool) -> tuple[pa.Table, pa.Table]:
        """Returns the rows in the order of the paths. If not complete, missing rows come from the earlier run."""
        chosen: list[Found] = []
        for job in self._jobs:
            found = self._found.get(job.index)
            if found is None and not complete and self._known:
                found = self._known.found(job)
            if found is not None:
                chosen.append(found)
            elif complete:
                raise AssertionError(f"there is no row of {job.path}")
        backups = _tables.table([found.row or {} for found in chosen], _tables.BACKUPS)
        parts = [found.items for found in chosen if found.items is not None]
        return backups, pa.concat_tables([self._schema.empty_table(), *parts])
