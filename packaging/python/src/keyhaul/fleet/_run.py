"""Run a fleet: send out jobs, and collect one row for each backup."""

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

from .._commands import Command
from ..passwords import PasswordCommand, PasswordFile, PasswordList, PasswordName, Sendable
from . import _tables
from ._paths import Paths, listed
from ._task import EarlierRow, Job, JobResult, Settings, batches, failed_result, run_jobs, run_single_job

if TYPE_CHECKING:
    from distributed import Client, Future

Passwords: TypeAlias = "Sendable | Mapping[str, Sendable | None] | Callable[[str], Sendable | None] | None"

# The exit codes that depend only on the backup. The next run examines backups with other codes again, for example after
# a wrong password.
FINAL_CODES = frozenset({0, 2, 3, 13, 14})
# The exit codes of rows whose password decrypted the backup.
DECRYPTED_CODES = frozenset({0, 2, 3})
# The number of times that a backup is sent to workers that are lost before they start it.
MAX_UNSTARTED_ATTEMPTS = 16


@dataclass(frozen=True)
class Outcome:
    """The tables, in the order of the paths, and counts of the run.

    `kept` rows are from the earlier run, `looked_at` rows are new. `again` is the number of times that this run sent a
    backup out again. It does not count the tasks that Dask moved from a lost worker to another.
    """

    backups: pa.Table
    items: pa.Table
    kept: int
    looked_at: int
    again: int
    seconds: float

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the backups."""
        rows: list[dict[str, Any]] = self.backups.to_pylist()
        return rows

    def failures(self) -> list[dict[str, Any]]:
        """Return the rows whose code is not 0."""
        return [row for row in self.rows() if row["code"] != 0]


def run(
    paths: Paths,
    client: Client,
    *,
    verbs: Sequence[Command] = ("verify", "plan"),
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
    """Run `verbs` on every backup, on the workers of `client`, and return one row for each, in the order of the paths.

    - `paths`: a folder, an address, or a list of paths and addresses, as the workers see them. Repeated paths count
      once.
    - `passwords`: one source for all backups, a source for each path pattern (the first match is used), or a function
      of the path. A `Password` is rejected, because the scheduler would receive it.
    - `out`: the folder for `backups.parquet` and `items.parquet`. They are written every `checkpoint` seconds and at
      the end, even if an exception ends the run.
    - `resume`: keep a row in `out` if these are unchanged: the program, the commands, the options, the device key, the
      devices, and the sizes and times of the backup's files. The password must also still decrypt a backup that it
      decrypted before.
    - `names`: write each item's label, account, service, server and access group. Otherwise no name leaves the worker.
    - `to`, `device_key`, `home`, `program`, `timeout`: as in `keyhaul.plan`, on the worker. `timeout` is in seconds for
      each command.
    - `retries`: the number of further attempts, with no other task running, for a backup that Dask gave up after it
      lost several workers with it. An attempt does not count if the worker is lost before it starts the backup. A
      backup without a result gets a row with the id `worker-lost`.
    - `batch`: the number of backups in a task and in a call of the program. By default, the first tasks have many
      backups, and the last tasks have one.
    - `progress`: called with the number of finished backups and the total.
    """
    started = time.monotonic()
    settings = Settings(tuple(verbs), names, program, home, to, device_key, timeout, uuid.uuid4().hex)
    if not settings.verbs or set(settings.verbs) - {"inspect", "verify", "plan"}:
        raise ValueError("verbs are inspect, verify and plan, and at least one of them")
    earlier_rows = _EarlierRows(out, names) if out is not None and resume else None
    jobs = [
        Job(index, path, _source(passwords, path), earlier_rows.row(path) if earlier_rows else None)
        for index, path in enumerate(listed(paths))
    ]
    results = _Results(jobs, names, earlier_rows)
    resent_total = 0
    last_save = time.monotonic()
    try:
        with contextlib.closing(_collect_results(client, jobs, settings, retries, batch)) as batches_of_results:
            for job_results, resent_count in batches_of_results:
                resent_total += resent_count
                for result in job_results:
                    results.add(result)
                if progress:
                    progress(len(results), len(jobs))
                if out is not None and time.monotonic() - last_save >= checkpoint:
                    _tables.write(out, *results.tables(complete=False))
                    last_save = time.monotonic()
    except BaseException:
        # An interrupted run writes its rows. A run without rows keeps the earlier tables.
        if out is not None and len(results):
            _tables.write(out, *results.tables(complete=False))
        raise
    backups, items = results.tables(complete=True)
    if out is not None:
        _tables.write(out, backups, items)
    return Outcome(backups, items, results.kept, len(jobs) - results.kept, resent_total, time.monotonic() - started)


def _source(passwords: Passwords, path: str) -> Sendable | None:
    """Return the source of a backup's password. Raise TypeError if it is a password itself."""
    source: object
    if isinstance(passwords, Mapping):
        source = next((passwords[pattern] for pattern in passwords if fnmatch.fnmatchcase(path, pattern)), None)
    elif callable(passwords):
        source = passwords(path)
    else:
        source = passwords
    if source is None or isinstance(source, (PasswordFile, PasswordCommand, PasswordName, PasswordList)):
        return source
    # The message omits the value, which may be the password.
    raise TypeError(
        f"a fleet's password comes from a PasswordFile, PasswordCommand, PasswordName or PasswordList, not {type(source)}"
    )


def _collect_results(
    client: Client, jobs: Sequence[Job], settings: Settings, retries: int, batch: int | None
) -> Generator[tuple[list[JobResult], int], None, None]:
    """Yield results as they arrive, each with the number of backups that were sent out again for it.

    Dask moves the tasks of a lost worker to another one. It gives up a task if several workers were lost with it,
    although another task of the same worker may be the cause. Such backups are sent out again at the end, one at a time
    and with no other task running.
    """
    from distributed import as_completed

    name = f"keyhaul-{uuid.uuid4().hex[:12]}"
    unfinished: dict[Future, Sequence[Job]] = {}
    given_up: list[Job] = []

    def submit(group: Sequence[Job]) -> Future:
        future = client.submit(run_jobs, group, settings, key=f"{name}-{group[0].index}", pure=False)
        unfinished[future] = group
        return future

    thread_count = sum(client.nthreads().values())
    try:
        futures = map(submit, batches(jobs, thread_count, batch))
        for future, results in as_completed(futures, with_results=True, raise_errors=False):
            group = unfinished.pop(future)
            if future.status == "finished":
                yield results, 0
            else:
                given_up += group
            future.release()
        for job in given_up:
            yield _run_alone(client, job, settings, retries, name)
    finally:
        # If the run ends early, tasks that have not started are canceled.
        if unfinished:
            client.cancel(list(unfinished))


def _run_alone(client: Client, job: Job, settings: Settings, retries: int, name: str) -> tuple[list[JobResult], int]:
    """Run one backup while no other task runs. Return the result, and the number of times that the backup was sent out.

    An attempt counts as one of the `retries` only if the worker had started the backup. Otherwise, another backup may
    have ended the worker.
    """
    from distributed import Event

    cause: BaseException | None = None
    started_count = sent_count = 0
    while started_count < retries and sent_count - started_count < MAX_UNSTARTED_ATTEMPTS:
        sent_count += 1
        key = f"{name}-{job.index}-{sent_count}"
        future = client.submit(run_single_job, job, settings, key, key=key, pure=False)
        try:
            cause = future.exception()
            if cause is None:
                return future.result(), sent_count
        finally:
            future.cancel()
            event = Event(key, client=client)
            started_count += event.is_set()
            event.clear()
    if cause is None:
        why = "its worker was lost"
    elif started_count == 0:
        why = f"{type(cause).__name__}: each worker ended before it started this backup"
    else:
        why = f"{type(cause).__name__}: the worker process ended while it ran this backup"
    return [failed_result(job, 1, "worker-lost", "no worker returned a result", why)], sent_count


class _EarlierRows:
    """The rows of an earlier run that depend only on their backups."""

    def __init__(self, folder: str | os.PathLike[str], names: bool) -> None:
        self._rows: dict[str, dict[str, Any]] = {}
        self._items: dict[str, pa.Table] = {}
        # For each password's mark, the path and the stamp of one backup that the password decrypted.
        self._proofs: dict[str, tuple[str, str]] = {}
        tables = _tables.read(folder, names)
        if tables is None:
            return
        backups, items = tables
        slices = _slices(items)
        for row in backups.to_pylist():
            start, count = slices.get(row["path"], (0, 0))
            items_of_backup = items.slice(start, count)
            if not _is_reusable(row, items_of_backup):
                continue
            self._rows[row["path"]], self._items[row["path"]] = row, items_of_backup
            is_decrypted = row["encrypted"] is not False and row["code"] in DECRYPTED_CODES
            # A path with escaped bytes cannot be opened.
            if row["password_mark"] and is_decrypted and "\\" not in row["path"]:
                self._proofs.setdefault(row["password_mark"], (row["path"], row["stamp"]))

    def row(self, path: str) -> EarlierRow | None:
        """Return the earlier row of a path, or None."""
        row = self._rows.get(_tables.escape(path))
        if row is None:
            return None
        mark = row["password_mark"]
        proof = self._proofs.get(mark) if mark else None
        return EarlierRow(row["stamp"], row["asked"], mark, proof, is_plain=row["encrypted"] is False)

    def result(self, job: Job) -> JobResult | None:
        """Return the result that the earlier row of a job contains, or None."""
        path = _tables.escape(job.path)
        row = self._rows.get(path)
        return JobResult(job.index, row, self._items[path]) if row else None


def _is_reusable(row: Mapping[str, Any], items: pa.Table) -> bool:
    """Whether a row depends only on its backup, and all of its items are in the table with the same stamp."""
    is_final = row["code"] in FINAL_CODES and row["stamp"] is not None
    stamps = set(items["stamp"].unique().to_pylist())
    return is_final and stamps <= {row["stamp"]} and items.num_rows == (row["items"] or 0)


def _slices(items: pa.Table) -> dict[str, tuple[int, int]]:
    """Return, for each path, the index of its first item and the number of its items. A path's items are adjacent."""
    if items.num_rows == 0:
        return {}
    # Run-end encoding turns the paths a, a, a, b, b into the values a, b with the ends 3, 5.
    encoded = pc.run_end_encode(items["path"].combine_chunks())
    slices: dict[str, tuple[int, int]] = {}
    start = 0
    for path, end in zip(encoded.values.to_pylist(), encoded.run_ends.to_pylist(), strict=True):
        slices[path] = (start, end - start)
        start = end
    return slices


class _Results:
    """The results so far, by the index of their path."""

    def __init__(self, jobs: Sequence[Job], names: bool, earlier_rows: _EarlierRows | None) -> None:
        self._jobs = jobs
        self._schema = _tables.items_schema(names)
        self._earlier_rows = earlier_rows
        self._results: dict[int, JobResult] = {}
        self.kept = 0

    def __len__(self) -> int:
        return len(self._results)

    def add(self, result: JobResult) -> None:
        """Add a result, unless its path has one. A result without a row means that the earlier row is current."""
        if result.index in self._results:
            return
        if result.row is None:
            job = self._jobs[result.index]
            earlier_result = self._earlier_rows.result(job) if self._earlier_rows else None
            if earlier_result is None:
                raise AssertionError("a worker kept a row that does not exist")
            result, self.kept = earlier_result, self.kept + 1
        self._results[result.index] = result

    def tables(self, complete: bool) -> tuple[pa.Table, pa.Table]:
        """Return the rows in the order of the paths.

        If the run is not complete, missing rows are from the earlier run.
        """
        selected: list[JobResult] = []
        for job in self._jobs:
            result = self._results.get(job.index)
            if result is None and not complete and self._earlier_rows:
                result = self._earlier_rows.result(job)
            if result is not None:
                selected.append(result)
            elif complete:
                raise AssertionError(f"there is no row for {job.path}")
        backups = _tables.table([result.row or {} for result in selected], _tables.BACKUPS)
        parts = [result.items for result in selected if result.items is not None]
        return backups, pa.concat_tables([self._schema.empty_table(), *parts])
