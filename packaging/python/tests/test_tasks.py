"""Test the calls that a worker makes, and how the backups are divided into tasks."""

from __future__ import annotations

import json
import pathlib
import subprocess

import pytest
from conftest import Sample, script

import keyhaul
from keyhaul import fleet
from keyhaul._commands import Command
from keyhaul.fleet import _task


def test_tasks_are_large_at_first_and_end_together() -> None:
    def sizes(count: int, threads: int, batch: int | None = None) -> list[int]:
        jobs = [_task.Job(index, "", None, None) for index in range(count)]
        batches = _task.batches(jobs, threads, batch)
        assert [job for batch in batches for job in batch] == jobs
        return [len(batch) for batch in batches]

    assert sizes(0, 4) == [] and sizes(1, 0) == [1] and sizes(8, 4) == [1] * 8
    # Before a worker has joined, each task has one backup, so that late workers have work.
    assert sizes(48, 0) == [1] * 48
    assert sizes(40, 4) == [5, 5, 4, 4, 3, 3, 2, 2, 2, 2] + [1] * 8
    large = sizes(1000, 4)
    assert large[:55] == [16] * 55 and large[-7:] == [1] * 7 and large == sorted(large, reverse=True)
    assert sizes(5, 1, batch=2) == [2, 2, 1]


# Replaces the program. It appends the arguments and paths of each call to a file, as one line of JSON. The name of a
# backup decides how the call ends; the results of the backups before it are already printed.
FAKE_PROGRAM = """
import json, os, sys, time
many = sys.argv[-2:] == ["--paths-from", "-"]
paths = sys.stdin.read().split("\\0")[:-1] if many else sys.argv[-1:]
names = [os.path.basename(path) for path in paths]
with open({log!r}, "a") as file: file.write(json.dumps([sys.argv[1], many, names]) + "\\n")
if sys.argv[1] in ("version", "device"): os.execv({program!r}, [{program!r}, *sys.argv[1:]])
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
        last = {{"message_type": "exit_error", "code": 14, "id": "refused", **result["error"]}}
        print(json.dumps(last), file=sys.stderr)
        sys.exit(14)
"""


@pytest.mark.parametrize(
    ("bad_name", "expected_error", "calls"),
    [
        # The first call has all backups. A backup that ends it gets its own call, and the rest are in another one.
        ("a.tar", ("refused", "a.tar is not a backup"), [5]),
        ("ends.tar", ("signal", "the program ended with 139 without a result"), [5, 2, 1]),
        ("waits.tar", ("timed-out", "the program was stopped"), [5, 1, 1]),
        ("other.tar", ("refused", "other.tar is not a backup"), [5, 2, 1]),
        ("cut.tar", ("refused", "cut.tar is not a backup"), [5, 2, 1]),
        # In the list, this backup's result has no document. The backup gets its own call, which fails.
        ("large.tar", ("refused", "large.tar is not a backup"), [5, 2, 1]),
    ],
)
def test_a_backup_that_ends_a_call_for_many_gets_a_call_of_its_own(
    program: str, tmp_path: pathlib.Path, bad_name: str, expected_error: tuple[str, str], calls: list[int]
) -> None:
    names = ["1.tar", "2.tar", bad_name, "3.tar", "4.tar"]
    for name in names:
        (tmp_path / name).write_text("nothing")
    log = tmp_path / "log"
    fake_program = script(tmp_path / "program", FAKE_PROGRAM.format(log=str(log), program=program))
    settings = _task.Settings(("plan",), False, fake_program, None, None, None, 3.0)
    jobs = [_task.Job(index, str(tmp_path / name), None, None) for index, name in enumerate(names)]
    rows = [found.row for found in _task.run_jobs(jobs, settings)]
    expected = [("refused", f"{name} is not a backup", "w", "t") for name in names]
    found = [(row["id"], row["error"], row["why"], row["advice"]) for row in rows if row is not None]
    assert [each for each in found if each[1] != expected_error[1]] == [
        each for each in expected if not each[1].startswith(bad_name)
    ]
    assert found[2][:2] == expected_error
    calls_made = [
        json.loads(line) for line in log.read_text().splitlines() if json.loads(line)[0] not in ("version", "device")
    ]
    assert sorted((len(paths) for _, _, paths in calls_made), reverse=True) == calls


def test_a_task_for_many_backups_has_the_results_of_single_calls(
    program: str, sample: Sample, folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    log = tmp_path / "log"
    logging = f"""
import os, sys
with open({str(log)!r}, "a") as file: file.write(" ".join(sys.argv[1:]) + "\\n")
os.execv({program!r}, [{program!r}, *sys.argv[1:]])
"""
    (folder / "2.tar").write_bytes(pathlib.Path(sample.file).read_bytes()[:-20000])
    (folder / "folder" / "Manifest.plist").unlink()
    # A keychain dump: inspect accepts it, but it is not a backup.
    dump = tmp_path / "dump.plist"
    secret = ["--password-file", sample.password.path, "--home", sample.home]
    export = ["export", sample.file, "--format", "genp-plist", "--reveal", "--yes", "-o", str(dump), *secret]
    subprocess.run([program, *export], check=True, capture_output=True)
    wrong = tmp_path / "wrong"
    wrong.write_text("wrong")
    paths = [*fleet.backups_in(str(folder)), str(tmp_path / "nowhere"), pathlib.Path(sample.file).as_uri(), str(dump)]
    sources = [sample.password if not path.endswith("3.tar") else keyhaul.PasswordFile(str(wrong)) for path in paths]
    jobs = [
        _task.Job(index, path, source, None) for index, (path, source) in enumerate(zip(paths, sources, strict=True))
    ]
    commands: tuple[Command, ...] = ("inspect", "verify", "plan")
    settings = _task.Settings(commands, True, script(tmp_path / "program", logging), sample.home, None, None, 60.0)
    together = _task.run_jobs(jobs, settings)
    calls = [line for line in log.read_text().splitlines() if "--paths-from" in line]
    assert [line.split()[0] for line in calls] == ["inspect", "verify", "plan"]
    run_columns = ("finished", "seconds")
    for job, found in zip(jobs, together, strict=True):
        [single] = _task.run_jobs([job], settings)
        assert found.row is not None and single.row is not None
        for name in run_columns:
            found.row.pop(name, None), single.row.pop(name, None)
        assert found.row == single.row
        assert (found.items is None) == (single.items is None) and (
            found.items is None or found.items.equals(single.items)
        )
    codes = [found.row["code"] for found in together if found.row]
    assert codes[:2] == [0, 0] and 12 in codes and 10 in codes and 14 in codes
