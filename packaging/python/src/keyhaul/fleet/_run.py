"""The run: jobs go out, rows come in, each backup once."""

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
from ._task import Found, Job, Settings, examine, examine_alone, failed, portions

if TYPE_CHECKING:
    from distributed import Client, Future

Passwords: TypeAlias = "Sendable | Mapping[str, Sendable | None] | Callable[[str], Sendable | None] | None"

# Endings that say something of the backup. The others, such as a wrong password, are tried again by the next run.
SETTLED = frozenset({0, 2, 3, 13, 14})
# How often a backup is sent out for nothing, to workers that are lost before they begin with it.
UNBEGUN = 16


@dataclass(frozen=True)
class Outcome:
    """The tables, in the order of the paths, and how they came about.

    `kept` rows were known from the run before, `looked_at` ones are new. `again` counts the backups that were sent out once
    more by this run itself; those of a lost worker that Dask moved to another one are not in it.
    """

    backups: pa.Table
    items: pa.Table
    kept: int
    looked_at: int
    again: int
    seconds: float

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the backups."""
        rows: list[dict[str, Any]] = self.backups.to_pylist()
        return rows

    def failures(self) -> list[dict[str, Any]]:
        """The rows whose code is not 0."""
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
    """Asks `verbs` of every backup, on the workers of `client`, and returns one row for each, in the order of the paths.

    - `paths`: a folder, an address, or a list of paths and addresses, as the workers see them. A path that stands twice is
      looked at once.
    - `passwords`: one source for all, one by pattern of the path (the first that fits), or a function of the path. A password
      itself is refused: it would pass through the scheduler.
    - `out`: a folder for `backups.parquet` and `items.parquet`, written every `checkpoint` seconds and at the end,
      also where an exception ends it.
    - `resume`: rows there that answer the same question of a backup that has the same stamp are kept.
    - `names`: items with label, account, service, server and access group. Without it no name leaves the worker.
    - `to`, `device_key`, `home`, `program`, `timeout`: as of `keyhaul.plan`, on the worker; `timeout` is in seconds for a verb.
    - `retries`: how often a backup that Dask gave up, because several workers were lost with it, is begun again, alone. What
      still has no answer then has a row with the id `worker-lost`. A worker that is lost before it begins does not count.
    - `batch`: how many backups a task has, and a call of the program is about; without it many at first and one at the end.
    - `progress`: called with how many of how many there are.
    """
    started = time.monotonic()
    settings = Settings(tuple(verbs), names, program, home, to, device_key, timeout)
    if not settings.verbs or set(settings.verbs) - {"inspect", "verify", "plan"}:
        raise ValueError("verbs are inspect, verify and plan, and at least one of them")
    names_of_paths = listed(paths)
    known = _Known(out, names) if out is not None and resume else None
    jobs = [
        Job(index, path, _source(passwords, path), known.stamp(path) if known else None)
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
        # Whoever breaks it off finds what there is; a run that came to nothing leaves what was there.
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
    # Not its value: it may be the password itself.
    raise TypeError(
        f"a fleet's password comes from a PasswordFile, PasswordCommand or PasswordName, not {type(source)}"
    )


def _answers(
    client: Client, jobs: Sequence[Job], settings: Settings, retries: int, batch: int | None
) -> Generator[tuple[list[Found], int], None, None]:
    """What comes in, as it comes in, each time with how many backups were sent out again for it.

    Dask moves the tasks of a lost worker to another one, and gives a task up with which several were lost. It may have been
    another task of the same worker that ended it: what was given up is sent out again at the end, one backup at a time and
    nothing else beside it.
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
        # Where it ends early, what is not begun is not begun any more.
        if sent:
            client.cancel(list(sent))


def _alone(client: Client, job: Job, settings: Settings, retries: int, name: str) -> tuple[list[Found], int]:
    """What comes out for one backup with nothing beside it, and how often it was sent out for it.

    Only the backup that a worker had begun can have ended it. One that was sent to a worker that was already ending, of
    what its neighbor did, is sent out once more, whatever `retries` is.
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
    """The rows of the run before that say something of their backups."""

    def __init__(self, folder: str | os.PathLike[str], names: bool) -> None:
        self._rows: dict[str, dict[str, Any]] = {}
        self._items: dict[str, pa.Table] = {}
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

    def stamp(self, path: str) -> tuple[str, str] | None:
        row = self._rows.get(_tables.plain(path))
        return (row["stamp"], row["asked"]) if row else None

    def found(self, job: Job) -> Found | None:
        """The row itself."""
        path = _tables.plain(job.path)
        row = self._rows.get(path)
        return Found(job.index, row, self._items[path]) if row else None


def _slices(items: pa.Table) -> dict[str, tuple[int, int]]:
    """Where each path's items are: they stand together, as they were written."""
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
    """What has come in, by its place among the paths."""

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
        """The rows in the order of the paths; of what is not looked at yet, where it is not complete, those of the run before."""
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
