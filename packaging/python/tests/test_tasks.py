"""Test the calls that a worker makes, and how the backups are divided into tasks."""

from __future__ import annotations

import json
import pathlib
import subprocess
from typing import Any

import pytest
from conftest import Sample, write_script

import keyhaul
from keyhaul import fleet
from keyhaul._commands import Command
from keyhaul.fleet import _task


def batch_sizes(job_count: int, threads: int, batch: int | None = None) -> list[int]:
    """Divide jobs into batches, and return the sizes. Every job has to be in one batch, in the same order."""
    jobs = [_task.Job(index, "", None, None) for index in range(job_count)]
    batches = _task.batches(jobs, threads, batch)
    assert [job for batch in batches for job in batch] == jobs
    return [len(batch) for batch in batches]


@pytest.mark.parametrize(
    ("job_count", "threads", "batch", "sizes"),
    [
        (0, 4, None, []),
        (8, 4, None, [1] * 8),
        (40, 4, None, [5, 5, 4, 4, 3, 3, 2, 2, 2, 2] + [1] * 8),
        # Before a worker has joined, each task has one backup, so that late workers have work.
        (1, 0, None, [1]),
        (48, 0, None, [1] * 48),
        (5, 1, 2, [2, 2, 1]),
    ],
)
def test_tasks_are_large_at_first_and_small_at_the_end(
    job_count: int, threads: int, batch: int | None, sizes: list[int]
) -> None:
    assert batch_sizes(job_count, threads, batch) == sizes


def test_the_tasks_of_many_backups_have_the_largest_size_until_few_remain() -> None:
    sizes = batch_sizes(1000, 4)
    assert sizes[:55] == [_task.MAX_BATCH_SIZE] * 55
    assert sizes[-7:] == [1] * 7
    assert sizes == sorted(sizes, reverse=True)


# Replaces the program. For each call, it appends a line of JSON to a file: the command, and the names of the backups.
# The name of a backup decides how the call ends. The results of the backups before it are already printed then.
FAKE_PROGRAM = """
import json, os, sys, time
command = sys.argv[1]
many = sys.argv[-2:] == ["--paths-from", "-"]
paths = sys.stdin.read().split("\\0")[:-1] if many else sys.argv[-1:]
names = [os.path.basename(path) for path in paths]
with open({log!r}, "a") as file: file.write(json.dumps([command, names]) + "\\n")
if command in ("version", "device"): os.execv({program!r}, [{program!r}, *sys.argv[1:]])
for path in paths:
    name = os.path.basename(path)
    if name == "ends.tar": os.kill(os.getpid(), 11)
    if name == "waits.tar": time.sleep(600)
    result = {{"format": "backup-answer/1", "path": path, "code": 14, "id": "refused", "document": None}}
    result["error"] = {{"message": name + " is not a backup", "why": "w", "try": "t"}}
    if name == "other.tar" and many: result["path"] = "/another"
    if name == "large.tar" and many: result |= {{"code": 0, "id": "ok", "error": None}}
    if name == "cut.tar" and many:
        print(json.dumps(result), end="")
        sys.exit(0)
    if many: print(json.dumps(result), flush=True)
    else:
        exit_error = {{"message_type": "exit_error", "code": 14, "id": "refused", **result["error"]}}
        print(json.dumps(exit_error), file=sys.stderr)
        sys.exit(14)
"""


@pytest.mark.parametrize(
    ("bad_name", "expected_error", "backups_per_call"),
    [
        # All five backups are refused in one call.
        ("a.tar", ("refused", "a.tar is not a backup"), [5]),
        # The third backup ends the first call. It gets its own call, and another call has the two after it.
        ("ends.tar", ("signal", "the program ended with 139 without a result"), [5, 2, 1]),
        # The timeout is the result of the third backup. The next one gets its own call, because it has no result.
        ("waits.tar", ("timed-out", "the program was stopped"), [5, 1, 1]),
        ("other.tar", ("refused", "other.tar is not a backup"), [5, 2, 1]),
        ("cut.tar", ("refused", "cut.tar is not a backup"), [5, 2, 1]),
        # In the list, this backup's result has no document. The backup gets its own call, which fails.
        ("large.tar", ("refused", "large.tar is not a backup"), [5, 2, 1]),
    ],
)
def test_a_backup_that_ends_a_call_for_many_gets_its_own_call(
    program: str, tmp_path: pathlib.Path, bad_name: str, expected_error: tuple[str, str], backups_per_call: list[int]
) -> None:
    names = ["1.tar", "2.tar", bad_name, "3.tar", "4.tar"]
    for name in names:
        (tmp_path / name).write_text("nothing")
    log = tmp_path / "log"
    fake_program = write_script(tmp_path / "program", FAKE_PROGRAM.format(log=str(log), program=program))
    # Only one call is meant to exceed its time. A busy machine may need seconds to start the program.
    timeout = 10.0 if bad_name == "waits.tar" else 60.0
    settings = _task.Settings(("plan",), False, fake_program, None, None, None, timeout)
    jobs = [_task.Job(index, str(tmp_path / name), None, None) for index, name in enumerate(names)]
    rows = [result.row for result in _task.run_jobs(jobs, settings)]
    errors = [(row["id"], row["error"], row["why"], row["advice"]) for row in rows if row is not None]
    bad_error = errors.pop(names.index(bad_name))
    assert bad_error[:2] == expected_error
    assert errors == [("refused", f"{name} is not a backup", "w", "t") for name in names if name != bad_name]
    calls = [json.loads(line) for line in log.read_text().splitlines()]
    sizes = [len(paths) for command, paths in calls if command == "plan"]
    assert sorted(sizes, reverse=True) == backups_per_call


def create_unusual_backups(program: str, sample: Sample, folder: pathlib.Path) -> list[str]:
    """Damage two backups of the folder. Return its paths, a missing path, an address and the path of a dump."""
    (folder / "2.tar").write_bytes(pathlib.Path(sample.file).read_bytes()[:-20000])
    (folder / "folder" / "Manifest.plist").unlink()
    # A keychain dump: inspect accepts it, but it is not a backup.
    dump = folder.parent / "dump.plist"
    flags = ["--format", "genp-plist", "--reveal", "--yes", "--password-file", sample.password.path]
    export = ["export", sample.file, "-o", str(dump), "--home", sample.home, *flags]
    subprocess.run([program, *export], check=True, capture_output=True)
    missing = str(folder.parent / "nowhere")
    return [*fleet.backups_in(str(folder)), missing, pathlib.Path(sample.file).as_uri(), str(dump)]


def comparable_row(result: _task.JobResult) -> dict[str, Any]:
    """Return a row without the columns that differ in every run."""
    assert result.row is not None
    return {name: value for name, value in result.row.items() if name not in ("finished", "seconds")}


def test_a_task_for_many_backups_has_the_results_of_single_calls(
    program: str, sample: Sample, folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    log = tmp_path / "log"
    logging_program = f"""
import os, sys
with open({str(log)!r}, "a") as file: file.write(" ".join(sys.argv[1:]) + "\\n")
os.execv({program!r}, [{program!r}, *sys.argv[1:]])
"""
    wrong_password = tmp_path / "wrong"
    wrong_password.write_text("wrong")
    jobs = []
    for index, path in enumerate(create_unusual_backups(program, sample, folder)):
        password = keyhaul.PasswordFile(str(wrong_password)) if path.endswith("3.tar") else sample.password
        jobs.append(_task.Job(index, path, password, None))
    commands: tuple[Command, ...] = ("inspect", "verify", "plan")
    program_path = write_script(tmp_path / "program", logging_program)
    settings = _task.Settings(commands, True, program_path, sample.home, None, None, 60.0)
    results = _task.run_jobs(jobs, settings)
    calls_for_many = [line for line in log.read_text().splitlines() if "--paths-from" in line]
    assert [line.split()[0] for line in calls_for_many] == ["inspect", "verify", "plan"]
    for job, result in zip(jobs, results, strict=True):
        [single_result] = _task.run_jobs([job], settings)
        assert comparable_row(result) == comparable_row(single_result)
        if result.items is None:
            assert single_result.items is None
        else:
            assert result.items.equals(single_result.items)
    codes = [result.row["code"] for result in results if result.row]
    assert codes[:2] == [0, 0] and 12 in codes and 10 in codes and 14 in codes
