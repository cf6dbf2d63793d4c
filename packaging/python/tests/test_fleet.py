"""Test runs over many backups on a cluster."""

from __future__ import annotations

import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow.parquet as pq
import pytest
from conftest import SECRET, Sample, write_script
from distributed import Client, Event, LocalCluster

import keyhaul
from keyhaul import fleet
from keyhaul.fleet import _run, _task
from keyhaul.fleet._stamps import stamp


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Yield a client of two workers in this process. `make -C Tests fleet` uses worker processes."""
    local_cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0")
    with local_cluster as cluster, Client(cluster) as client:
        yield client


def test_each_backup_has_one_row_in_the_order_of_the_paths(
    client: Client, sample: Sample, folder: pathlib.Path
) -> None:
    outcome = fleet.run(folder, client, passwords=sample.password, out=folder.parent / "out")
    names = [pathlib.Path(row["path"]).name for row in outcome.rows()]
    assert names == ["0.tar", "1.tar", "2.tar", "3.tar", "4.tar", "folder", "none.tar"]
    assert [row["id"] for row in outcome.rows()] == ["ok"] * 6 + ["refused"]
    [failure] = outcome.failures()
    assert failure["error"].endswith("none.tar is not a backup") and failure["why"] and failure["advice"]
    # Each of the six valid backups has 18 items, and 14 of them arrive.
    assert outcome.items.num_rows == 6 * 18 and (outcome.kept, outcome.looked_at) == (0, 7)
    row = outcome.rows()[0]
    assert (row["whole"], row["items"], row["arrives_new_device"], row["arrives_same_device"]) == (True, 18, 14, 14)
    assert row["device_name"] == "old-phone" and row["encrypted"] and row["digest"].startswith("sha256:")
    for name, table in (("backups", outcome.backups), ("items", outcome.items)):
        path = folder.parent / "out" / f"{name}.parquet"
        assert pq.read_table(path).equals(table) and path.stat().st_mode & 0o077 == 0
    assert {path.name for path in (folder.parent / "out").iterdir()} == {"backups.parquet", "items.parquet"}


def test_a_row_has_the_values_of_a_single_call(client: Client, sample: Sample) -> None:
    outcome = fleet.run([sample.file], client, verbs=["inspect", "plan"], passwords=sample.password)
    single = keyhaul.plan(sample.file, password=sample.password)
    inspection = keyhaul.inspect(sample.file)
    [row] = outcome.rows()
    assert (row["digest"], row["made"]) == (single.source.digest, single.source.made)
    assert (row["product_type"], row["files"]) == (inspection.device.product_type, inspection.files)
    assert isinstance(single, keyhaul.results.Futures)
    for item_row, item in zip(outcome.items.to_pylist(), single.items, strict=True):
        assert (item_row["index"], item_row["kind"], item_row["protection"]) == (item.index, item.kind, item.protection)
        assert (item_row["outcome"], item_row["reason"]) == (item.outcomes[0].outcome, item.outcomes[0].reason)


def test_the_table_has_item_names_only_on_request(client: Client, sample: Sample) -> None:
    for names in (False, True):
        outcome = fleet.run([sample.file], client, verbs=["plan"], passwords=sample.password, names=names)
        assert ("AirPort" in str(outcome.items.to_pylist())) is names
        assert (set(fleet.NAMES) <= set(outcome.items.schema.names)) is names


def test_a_plain_password_is_refused_before_anything_is_sent(sample: Sample) -> None:
    no_client: Any = None
    for source in (keyhaul.Password(SECRET), SECRET, {"*": keyhaul.Password(SECRET)}, lambda path: SECRET):
        with pytest.raises(TypeError) as caught:
            fleet.run([sample.file], no_client, passwords=source)  # type: ignore[arg-type]
        assert SECRET not in str(caught.value)
    settings = _task.Settings(("verify",), False, None, None, None, None, None)
    sent = pickle.dumps((_task.run_jobs, [_task.Job(0, "p", keyhaul.PasswordName("family"), None)], settings))
    assert b"family" in sent and SECRET.encode() not in sent


def test_passwords_are_chosen_by_path(client: Client, sample: Sample, tmp_path: pathlib.Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("wrong")
    passwords = {"*/family.tar": sample.password, "*": keyhaul.PasswordFile(str(wrong))}
    outcome = fleet.run([sample.folder, sample.file], client, verbs=["plan"], passwords=passwords)
    assert [row["code"] for row in outcome.rows()] == [12, 0]


def _create_backups_with_different_passwords(
    program: str, sample: Sample, folder: pathlib.Path
) -> tuple[list[str], pathlib.Path]:
    """Create three backups: with the sample's password, with another one, and without one.

    Return their paths, and the path of a list of their passwords.
    """
    other_password = folder / "other-password"
    other_password.write_text("plum-orchard-42\n")
    other_password.chmod(0o600)
    family, other, plain = paths = [str(folder / f"{name}.tar") for name in ("family", "other", "plain")]
    shutil.copyfile(sample.file, family)
    common = ["--home", sample.home, "--no-input", "--quiet"]
    for path, flags in ((other, ["--rounds", "1", "--password-file", str(other_password)]), (plain, ["--no-password"])):
        subprocess.run([program, "backup", "old-phone", "-o", path, *flags, *common], check=True, capture_output=True)
    password_list = folder / "passwords"
    password_list.write_text(f"*/other.tar file:{other_password}\n* file:{sample.password.path}\n")
    password_list.chmod(0o600)
    return paths, password_list


@pytest.mark.parametrize("batch", [1, 3])
def test_a_list_of_passwords_works_for_backups_with_different_passwords_and_without_one(
    client: Client, program: str, sample: Sample, tmp_path: pathlib.Path, batch: int
) -> None:
    paths, password_list = _create_backups_with_different_passwords(program, sample, tmp_path)
    passwords, out = keyhaul.PasswordList(str(password_list)), tmp_path / "out"
    outcome = fleet.run(paths, client, passwords=passwords, out=out, batch=batch)
    rows = outcome.rows()
    assert [row["code"] for row in rows] == [0, 0, 0]
    assert [row["encrypted"] for row in rows] == [True, True, False]
    assert [row["verdict"] for row in rows] == [keyhaul.verify(path, password=passwords).verdict for path in paths]
    # Only the row of the backup without a password is kept: a decrypted backup proves only one password of the list.
    assert fleet.run(paths, client, passwords=passwords, out=out, batch=batch).kept == 1


@pytest.mark.parametrize("batch", [1, 3])
def test_a_backup_without_a_password_has_a_result_although_a_password_is_given(
    client: Client, program: str, sample: Sample, tmp_path: pathlib.Path, batch: int
) -> None:
    (family, _, plain), _ = _create_backups_with_different_passwords(program, sample, tmp_path)
    paths, out = [family, plain], tmp_path / "out"
    rows = fleet.run(paths, client, passwords=sample.password, out=out, batch=batch).rows()
    assert [(row["code"], row["encrypted"], row["error"]) for row in rows] == [(0, True, None), (0, False, None)]
    assert fleet.run(paths, client, passwords=sample.password, out=out, batch=batch).kept == 2


def test_a_list_of_passwords_does_not_work_with_a_stream(sample: Sample) -> None:
    with open(sample.file, "rb") as file:
        for stream in (file, "s3://bucket/family.tar"):
            with pytest.raises(TypeError, match="not with streams"):
                keyhaul.verify(stream, password=keyhaul.PasswordList("list"))


def test_a_second_run_keeps_the_rows_of_unchanged_backups(client: Client, sample: Sample, folder: pathlib.Path) -> None:
    out = folder.parent / "out"
    paths = fleet.backups_in(str(folder))
    fleet.run(paths[:3], client, passwords=sample.password, out=out)
    outcome = fleet.run(paths, client, passwords=sample.password, out=out)
    assert (outcome.kept, outcome.looked_at, outcome.backups.num_rows, outcome.items.num_rows) == (3, 4, 7, 6 * 18)
    os.utime(folder / "1.tar")
    (folder / "folder" / "Info.plist").touch()
    outcome = fleet.run(paths, client, passwords=sample.password, out=out)
    # The row of the file that is not a backup is kept too.
    assert (outcome.kept, outcome.looked_at) == (5, 2)
    assert fleet.run(paths, client, passwords=sample.password, out=out, resume=False).kept == 0


def test_rows_of_other_commands_are_not_kept(client: Client, sample: Sample, folder: pathlib.Path) -> None:
    out = folder.parent / "out"
    fleet.run(folder, client, passwords=sample.password, out=out)
    outcome = fleet.run(folder, client, passwords=sample.password, out=out, verbs=["verify"])
    assert outcome.kept == 0 and outcome.items.num_rows == 0


def test_rows_with_a_password_error_are_not_kept(client: Client, sample: Sample, folder: pathlib.Path) -> None:
    out = folder.parent / "out"
    missing = keyhaul.PasswordFile("/nowhere")
    outcome = fleet.run([sample.file], client, passwords=missing, out=out, verbs=["verify"])
    assert outcome.rows()[0]["code"] not in (0, 13)
    assert fleet.run([sample.file], client, passwords=missing, out=out, verbs=["verify"]).kept == 0


def test_rows_for_another_password_target_or_key_are_not_kept(
    client: Client, program: str, sample: Sample, folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """A run that keeps rows also returns the same rows as a run that keeps none."""
    paths = fleet.backups_in(str(folder))[:4]
    source = tmp_path / "password"
    home = tmp_path / "home"
    key = tmp_path / "key"

    def create_device(name: str, fixture: str) -> None:
        for arguments in (["delete", name, "--confirm", name], ["create", name, "--from", fixture]):
            subprocess.run([program, "device", *arguments, "--home", home, "-q"], check=False, capture_output=True)

    def run(resume: bool, options: dict[str, Any]) -> fleet.Outcome:
        password = keyhaul.PasswordFile(str(source))
        out = folder.parent / "out"
        return fleet.run(paths, client, passwords=password, out=out, home=str(home), resume=resume, **options)

    def comparable_rows(outcome: fleet.Outcome) -> list[dict[str, Any]]:
        ignored_columns = {"finished", "seconds", "password_mark", "worker", "asked"}
        return [{name: row[name] for name in row if name not in ignored_columns} for row in outcome.rows()]

    def count_kept(**options: Any) -> int:
        """Run with and without the rows of earlier runs, and return how many rows were kept."""
        resumed = run(resume=True, options=options)
        fresh = run(resume=False, options=options)
        assert comparable_rows(resumed) == comparable_rows(fresh)
        return resumed.kept

    for secret, count in ((SECRET, 0), (SECRET, 4), ("wrong", 0), (SECRET, 0), (SECRET, 4)):
        source.write_text(secret)
        source.chmod(0o600)
        assert count_kept() == count, secret
    create_device("target", "new-phone")
    for fixture, count in ((None, 0), (None, 4), ("new-phone", 0), ("old-phone", 0), (None, 4)):
        if fixture:
            create_device("target", fixture)
        assert count_kept(to="target") == count, fixture
    create_device("other", "new-phone")
    assert count_kept(to="other") == 0 and count_kept(to="other") == 4
    for byte, count in ((7, 0), (7, 4), (8, 0)):
        key.write_bytes(bytes([byte]) * 16)
        key.chmod(0o600)
        assert count_kept(device_key=str(key)) == count, byte


def test_a_password_is_checked_once_for_many_rows(
    client: Client, program: str, sample: Sample, folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    calls = tmp_path / "calls"
    text = f"""
import os, sys
open({str(calls)!r}, "a").write(sys.argv[1] + "\\n")
os.execv({program!r}, [{program!r}, *sys.argv[1:]])
"""
    counting_program = write_script(tmp_path / "program", text)
    paths = fleet.backups_in(str(folder))[:5]
    out = folder.parent / "out"
    for batch in (None, 1):
        fleet.run(paths, client, passwords=sample.password, out=out, program=counting_program, batch=5)
        calls.write_text("")
        outcome = fleet.run(paths, client, passwords=sample.password, out=out, program=counting_program, batch=batch)
        assert outcome.kept == 5
        # At most once for each of the two workers, which are threads of one process here.
        assert 1 <= calls.read_text().split().count("inspect") <= 2
        assert "verify" not in calls.read_text()
    table = (out / "backups.parquet").read_bytes()
    assert SECRET.encode() not in table


def test_damaged_or_missing_tables_are_not_used(client: Client, sample: Sample, folder: pathlib.Path) -> None:
    out = folder.parent / "out"
    for damage in (
        lambda: (out / "items.parquet").unlink(),
        lambda: (out / "backups.parquet").write_bytes(b"PAR1 nothing"),
        lambda: pq.write_table(pq.read_table(out / "items.parquet").slice(1), out / "items.parquet"),
    ):
        fleet.run([sample.file], client, passwords=sample.password, out=out, resume=False)
        damage()
        assert fleet.run([sample.file], client, passwords=sample.password, out=out).kept == 0


def test_an_interrupted_run_has_written_its_finished_rows(client: Client, sample: Sample, folder: pathlib.Path) -> None:
    out = folder.parent / "out"

    def interrupt(finished: int, total: int) -> None:
        if finished >= 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fleet.run(folder, client, passwords=sample.password, out=out, batch=1, progress=interrupt)
    written_row_count = pq.read_table(out / "backups.parquet").num_rows
    assert 3 <= written_row_count < 7
    outcome = fleet.run(folder, client, passwords=sample.password, out=out)
    assert (outcome.kept, outcome.backups.num_rows, outcome.items.num_rows) == (written_row_count, 7, 6 * 18)


def test_backups_at_addresses_are_streamed(client: Client, sample: Sample) -> None:
    address = pathlib.Path(sample.file).as_uri()
    out = pathlib.Path(sample.file).parent / "streamed"
    outcome = fleet.run([address, sample.file, address], client, passwords=sample.password, out=out)
    row_of_address, row_of_path = outcome.rows()
    assert (row_of_address["path"], row_of_address["digest"]) == (address, row_of_path["digest"])
    assert (row_of_address["verdict"], row_of_path["verdict"]) == ("unproven", "whole")
    assert fleet.run([address], client, passwords=sample.password, out=out).kept == 1


def test_listed_returns_the_files_at_an_address(folder: pathlib.Path) -> None:
    assert fleet.listed(folder.as_uri() + "/") == [path.as_uri() for path in sorted(folder.iterdir())[1:]]
    assert fleet.listed(f"{folder.as_uri()}/*.tar") == [path.as_uri() for path in sorted(folder.glob("[0-9n]*.tar"))]
    assert fleet.listed(str(folder / "folder")) == [str(folder / "folder")]
    for wrong in ("https://a:b@h/x/", ["simplecache::s3://b/x"], [""]):
        with pytest.raises(ValueError):
            fleet.listed(wrong)


def test_a_path_that_is_not_unicode_has_a_row(client: Client, sample: Sample, tmp_path: pathlib.Path) -> None:
    paths = [os.fsdecode(os.fsencode(tmp_path) + name) for name in (b"/\xe9.tar", b"/\x1b[2J\n.tar", b"/<script>.tar")]
    for path in paths:
        shutil.copyfile(sample.file, path)
    outcome = fleet.run(paths, client, passwords=sample.password, out=tmp_path / "out")
    # The program accepts only arguments in UTF-8, so it does not find the first file.
    assert [row["code"] for row in outcome.rows()] == [10, 0, 0]
    assert outcome.rows()[0]["path"].endswith("\\udce9.tar")
    assert fleet.run(paths, client, passwords=sample.password, out=tmp_path / "out").kept == 2


@pytest.mark.parametrize("change", ["content", "new", "deleted", "mode"])
def test_a_stamp_changes_with_the_backup(sample: Sample, tmp_path: pathlib.Path, change: str) -> None:
    backup = tmp_path / "backup"
    shutil.copytree(sample.folder, backup)
    stamp_before = stamp(str(backup))
    assert stamp_before is not None and stamp_before == stamp(str(backup))
    # The name of a file in a backup is a SHA-1 of 40 digits.
    file = next(path for path in backup.rglob("*") if len(path.name) == 40)
    if change == "content":
        status = file.stat()
        file.write_bytes(bytes(status.st_size))
        # Only the change time (ctime) is different now.
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    elif change == "new":
        (file.parent / "new").touch()
    elif change == "deleted":
        file.unlink()
    else:
        file.chmod(0o400)
    assert stamp(str(backup)) not in (stamp_before, None)


def test_a_backup_that_cannot_be_read_has_no_stamp(tmp_path: pathlib.Path) -> None:
    assert stamp(str(tmp_path / "nowhere")) is None and stamp("file:///nowhere/x.tar") is None


@pytest.mark.parametrize("batch", [1, 4])
def test_an_unexpected_error_affects_only_its_backup(
    client: Client, sample: Sample, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    fill_row: Callable[..., Any] = _task._BackupState._fill_row

    def failing_fill_row(state: Any, result: Any) -> Any:
        if state.job.path.endswith("1.tar"):
            raise OSError("no more files")
        return fill_row(state, result)

    monkeypatch.setattr(_task._BackupState, "_fill_row", failing_fill_row)
    outcome = fleet.run(folder, client, passwords=sample.password, batch=batch)
    assert [(row["id"], row["why"]) for row in outcome.failures()[:-1]] == [("failed", "OSError: no more files")]
    assert outcome.items.num_rows == 5 * 18


def test_a_backup_that_kills_its_workers_has_a_row(program: str, sample: Sample, tmp_path: pathlib.Path) -> None:
    text = f"""
import os, sys
listed = sys.stdin.buffer.read() if sys.argv[-1] == "-" else b""
if b"poison.tar" in listed or sys.argv[-1].endswith("poison.tar"): os.kill(os.getppid(), 9)
os.execv({program!r}, [{program!r}, *sys.argv[1:]])
"""
    killing_program = write_script(tmp_path / "program", text)
    paths = [str(tmp_path / name) for name in ("a.tar", "poison.tar", "b.tar")]
    for path in paths:
        shutil.copyfile(sample.file, path)
    # Dask gives up a task after the first lost worker; by default it allows three.
    no_failures = {"allowed_failures": 0}
    local_cluster = LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0", scheduler_kwargs=no_failures
    )
    with local_cluster as cluster, Client(cluster) as client:
        outcome = fleet.run(
            paths, client, verbs=["verify"], passwords=sample.password, program=killing_program, retries=1, batch=3
        )
    rows = outcome.rows()
    assert [row["id"] for row in rows] == ["ok", "worker-lost", "ok"]
    assert rows[1]["why"] == "KilledWorker: the worker process ended while it ran this backup" and outcome.again >= 3


class WorkerLosingClient:
    """A client that loses the worker of a backup several times, before or after the worker has started the backup."""

    def __init__(self, client: Client, losses: int, after_start: bool) -> None:
        self.client = client
        self.remaining_losses = losses
        self.after_start = after_start

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def submit(self, function: Callable[..., Any], job: Any, settings: Any, event: str = "", **options: Any) -> Any:
        if function is not _task.run_single_job or self.remaining_losses == 0:
            return self.client.submit(function, *filter(None, (job, settings, event)), **options)
        self.remaining_losses -= 1
        if self.after_start:
            Event(event, client=self.client).set()
        return self.client.submit(_fail, **options)


def _fail() -> None:
    raise RuntimeError("lost")


@pytest.mark.parametrize(
    ("losses", "after_start", "expected_id", "expected_why", "expected_sent_count"),
    [
        (3, False, "ok", None, 4),
        (1, True, "worker-lost", "RuntimeError: the worker process ended while it ran this backup", 1),
        (
            100,
            False,
            "worker-lost",
            "RuntimeError: each worker ended before it started this backup",
            _run.MAX_UNSTARTED_ATTEMPTS,
        ),
    ],
)
def test_a_lost_worker_counts_only_if_it_had_started_the_backup(
    client: Client,
    sample: Sample,
    losses: int,
    after_start: bool,
    expected_id: str,
    expected_why: str | None,
    expected_sent_count: int,
) -> None:
    job = _task.Job(0, sample.file, sample.password, None)
    settings = _task.Settings(("verify",), False, None, None, None, None, None)
    losing_client: Any = WorkerLosingClient(client, losses, after_start)
    [result], sent_count = _run._run_alone(losing_client, job, settings, 1, f"lost-{losses}-{after_start}")
    assert result.row is not None
    assert (result.row["id"], result.row.get("why"), sent_count) == (expected_id, expected_why, expected_sent_count)


def test_verbs_are_checked() -> None:
    no_client: Any = None
    for verbs in ([], ["restore"]):
        with pytest.raises(ValueError, match="verbs are"):
            fleet.run([], no_client, verbs=verbs)  # type: ignore[arg-type]


def test_the_command_line_runs_a_local_cluster(program: str, sample: Sample, tmp_path: pathlib.Path) -> None:
    plain = tmp_path / "plain.tar"
    plain.write_bytes(b"nothing")
    arguments = [sample.file, str(plain), "--out", str(tmp_path / "out"), "--workers", "1"]
    arguments += ["--password-file", sample.password.path, "--plain", "*/plain*"]
    completed = subprocess.run(
        [sys.executable, "-m", "keyhaul.fleet", *arguments],
        env={**os.environ, "KEYHAUL_PROGRAM": program},
        stdout=subprocess.PIPE,
        check=False,
        text=True,
    )
    assert completed.returncode == 3
    [failure, summary] = completed.stdout.splitlines()
    assert failure.startswith(f"{str(plain)!r}: refused: ")
    assert summary.startswith("2 backups, 1 with an error; 0 kept; ")
    assert pq.read_table(tmp_path / "out/backups.parquet")["code"].to_pylist() == [0, 14]


def test_the_page_on_fleets_names_every_column() -> None:
    page = pathlib.Path(__file__).resolve().parents[3] / "docs/Fleet.md"
    described = set(re.findall(r"`(\w+)`", page.read_text(encoding="utf-8")))
    assert {*fleet.BACKUPS.names, *fleet.ITEMS.names} <= described
