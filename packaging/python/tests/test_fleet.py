"""Many backups over a cluster."""

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
from conftest import SECRET, Sample, script
from distributed import Client, Event, LocalCluster

import keyhaul
from keyhaul import fleet
from keyhaul.fleet import _run, _task
from keyhaul.fleet._stamps import stamp


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Two workers in this process; the trial of `make -C Tests fleet` has real ones."""
    one_process = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0")
    with one_process as cluster, Client(cluster) as client:
        yield client


def test_each_backup_has_one_row_in_the_order_of_the_paths(
    client: Client, sample: Sample, folder: pathlib.Path
) -> None:
    done = fleet.run(folder, client, passwords=sample.password, out=folder.parent / "out")
    names = [pathlib.Path(row["path"]).name for row in done.rows()]
    assert names == ["0.tar", "1.tar", "2.tar", "3.tar", "4.tar", "folder", "none.tar"]
    assert [row["id"] for row in done.rows()] == ["ok"] * 6 + ["refused"]
    [failure] = done.failures()
    assert failure["error"].endswith("none.tar is not a backup") and failure["why"] and failure["advice"]
    assert done.items.num_rows == 6 * 18 and (done.kept, done.looked_at) == (0, 7)
    row = done.rows()[0]
    assert (row["whole"], row["items"], row["arrives_new_device"], row["arrives_same_device"]) == (True, 18, 14, 14)
    assert row["device_name"] == "old-phone" and row["encrypted"] and row["digest"].startswith("sha256:")
    for name, made in (("backups", done.backups), ("items", done.items)):
        place = folder.parent / "out" / f"{name}.parquet"
        assert pq.read_table(place).equals(made) and place.stat().st_mode & 0o077 == 0
    assert {path.name for path in (folder.parent / "out").iterdir()} == {"backups.parquet", "items.parquet"}


def test_a_row_says_what_a_single_call_says(client: Client, sample: Sample) -> None:
    done = fleet.run([sample.file], client, verbs=["inspect", "plan"], passwords=sample.password)
    single = keyhaul.plan(sample.file, password=sample.password)
    inspected = keyhaul.inspect(sample.file)
    [row] = done.rows()
    assert (row["digest"], row["made"]) == (single.source.digest, single.source.made)
    assert (row["product_type"], row["files"]) == (inspected.device.product_type, inspected.files)
    assert isinstance(single, keyhaul.results.Futures)
    for found, item in zip(done.items.to_pylist(), single.items, strict=True):
        assert (found["index"], found["kind"], found["protection"]) == (item.index, item.kind, item.protection)
        assert (found["outcome"], found["reason"]) == (item.outcomes[0].outcome, item.outcomes[0].reason)


def test_names_are_in_the_table_only_where_they_are_asked_for(client: Client, sample: Sample) -> None:
    for names in (False, True):
        done = fleet.run([sample.file], client, verbs=["plan"], passwords=sample.password, names=names)
        assert ("AirPort" in str(done.items.to_pylist())) is names
        assert (set(fleet.NAMES) <= set(done.items.schema.names)) is names


def test_a_password_itself_is_refused_before_anything_is_sent(sample: Sample) -> None:
    nobody: Any = None
    for source in (keyhaul.Password(SECRET), SECRET, {"*": keyhaul.Password(SECRET)}, lambda path: SECRET):
        with pytest.raises(TypeError) as caught:
            fleet.run([sample.file], nobody, passwords=source)  # type: ignore[arg-type]
        assert SECRET not in str(caught.value)
    settings = _task.Settings(("verify",), False, None, None, None, None, None)
    sent = pickle.dumps((_task.examine, [_task.Job(0, "p", keyhaul.PasswordName("family"), None)], settings))
    assert b"family" in sent and SECRET.encode() not in sent


def test_passwords_are_chosen_by_path(client: Client, sample: Sample, tmp_path: pathlib.Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("wrong")
    passwords = {"*/family.tar": sample.password, "*": keyhaul.PasswordFile(str(wrong))}
    done = fleet.run([sample.folder, sample.file], client, verbs=["plan"], passwords=passwords)
    assert [row["code"] for row in done.rows()] == [12, 0]


def test_a_second_run_keeps_what_did_not_change(client: Client, sample: Sample, folder: pathlib.Path) -> None:
    out = folder.parent / "out"
    paths = fleet.backups_in(str(folder))
    fleet.run(paths[:3], client, passwords=sample.password, out=out)
    first = fleet.run(paths, client, passwords=sample.password, out=out)
    assert (first.kept, first.looked_at, first.backups.num_rows, first.items.num_rows) == (3, 4, 7, 108)
    os.utime(folder / "1.tar")
    (folder / "folder" / "Info.plist").touch()
    second = fleet.run(paths, client, passwords=sample.password, out=out)
    # What was refused is settled too, if the password is the same; a wrong password would not be.
    assert (second.kept, second.looked_at) == (5, 2)
    other = fleet.run(paths, client, passwords=sample.password, out=out, verbs=["verify"])
    assert other.kept == 0 and other.items.num_rows == 0
    wrong = fleet.run(paths[:2], client, passwords=keyhaul.PasswordFile("/nowhere"), out=out, verbs=["verify"])
    again = fleet.run(paths[:2], client, passwords=keyhaul.PasswordFile("/nowhere"), out=out, verbs=["verify"])
    assert wrong.rows()[0]["code"] not in (0, 13) and again.kept == 0
    assert fleet.run(paths, client, passwords=sample.password, out=out, resume=False).kept == 0


def test_rows_of_another_password_target_or_key_are_not_kept(
    client: Client, program: str, sample: Sample, folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """A run that keeps rows gives what a run without rows gives."""
    paths = fleet.backups_in(str(folder))[:4]
    source = tmp_path / "password"
    home = tmp_path / "home"
    key = tmp_path / "key"

    def made(name: str, fixture: str) -> None:
        for arguments in (["delete", name, "--confirm", name], ["create", name, "--from", fixture]):
            subprocess.run([program, "device", *arguments, "--home", home, "-q"], check=False, capture_output=True)

    def same(**how: Any) -> int:
        """Runs with and without the rows of earlier runs; returns how many of them were kept."""
        password = keyhaul.PasswordFile(str(source))
        kept, fresh = (
            fleet.run(
                paths, client, passwords=password, out=folder.parent / "out", home=str(home), resume=resume, **how
            )
            for resume in (True, False)
        )
        left_out = {"finished", "seconds", "password_mark", "worker", "asked"}
        plain = [
            [{name: row[name] for name in row if name not in left_out} for row in run.rows()] for run in (kept, fresh)
        ]
        assert plain[0] == plain[1]
        return kept.kept

    for secret, count in ((SECRET, 0), (SECRET, 4), ("wrong", 0), (SECRET, 0), (SECRET, 4)):
        source.write_text(secret)
        source.chmod(0o600)
        assert same() == count, secret
    made("target", "new-phone")
    for fixture, count in ((None, 0), (None, 4), ("new-phone", 0), ("old-phone", 0), (None, 4)):
        if fixture:
            made("target", fixture)
        assert same(to="target") == count, fixture
    made("other", "new-phone")
    assert same(to="other") == 0 and same(to="other") == 4
    for byte, count in ((7, 0), (7, 4), (8, 0)):
        key.write_bytes(bytes([byte]) * 16)
        key.chmod(0o600)
        assert same(device_key=str(key)) == count, byte


def test_a_password_is_tried_once_for_many_rows(
    client: Client, program: str, sample: Sample, folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    calls = tmp_path / "calls"
    text = f"""
import os, sys
open({str(calls)!r}, "a").write(sys.argv[1] + "\\n")
os.execv({program!r}, [{program!r}, *sys.argv[1:]])
"""
    counted = script(tmp_path / "program", text)
    paths = fleet.backups_in(str(folder))[:5]
    out = folder.parent / "out"
    for batch in (None, 1):
        fleet.run(paths, client, passwords=sample.password, out=out, program=counted, batch=5)
        calls.write_text("")
        assert fleet.run(paths, client, passwords=sample.password, out=out, program=counted, batch=batch).kept == 5
        # Once for each of the two workers at most, which are threads of one process here.
        assert 1 <= calls.read_text().split().count("inspect") <= 2
        assert "verify" not in calls.read_text()
    table = (out / "backups.parquet").read_bytes()
    assert SECRET.encode() not in table


def test_tables_of_another_form_are_not_kept(client: Client, sample: Sample, folder: pathlib.Path) -> None:
    out = folder.parent / "out"
    for spoil in (
        lambda: (out / "items.parquet").unlink(),
        lambda: (out / "backups.parquet").write_bytes(b"PAR1 nothing"),
        lambda: pq.write_table(pq.read_table(out / "items.parquet").slice(1), out / "items.parquet"),
    ):
        fleet.run([sample.file], client, passwords=sample.password, out=out, resume=False)
        spoil()
        assert fleet.run([sample.file], client, passwords=sample.password, out=out).kept == 0


def test_a_run_that_is_broken_off_has_left_what_it_had(client: Client, sample: Sample, folder: pathlib.Path) -> None:
    out = folder.parent / "out"

    def stop(done: int, total: int) -> None:
        if done >= 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fleet.run(folder, client, passwords=sample.password, out=out, batch=1, progress=stop)
    left = pq.read_table(out / "backups.parquet").num_rows
    assert 3 <= left < 7
    done = fleet.run(folder, client, passwords=sample.password, out=out)
    assert (done.kept, done.backups.num_rows, done.items.num_rows) == (left, 7, 108)


def test_addresses_are_streamed(client: Client, sample: Sample) -> None:
    address = pathlib.Path(sample.file).as_uri()
    out = pathlib.Path(sample.file).parent / "streamed"
    done = fleet.run([address, sample.file, address], client, passwords=sample.password, out=out)
    streamed, read = done.rows()
    assert (streamed["path"], streamed["digest"]) == (address, read["digest"])
    assert (streamed["verdict"], read["verdict"]) == ("unproven", "whole")
    assert fleet.run([address], client, passwords=sample.password, out=out).kept == 1


def test_what_is_in_an_address_is_listed(folder: pathlib.Path) -> None:
    assert fleet.listed(folder.as_uri() + "/") == [path.as_uri() for path in sorted(folder.iterdir())[1:]]
    assert fleet.listed(f"{folder.as_uri()}/*.tar") == [path.as_uri() for path in sorted(folder.glob("[0-9n]*.tar"))]
    assert fleet.listed(str(folder / "folder")) == [str(folder / "folder")]
    for wrong in ("https://a:b@h/x/", ["simplecache::s3://b/x"], [""]):
        with pytest.raises(ValueError):
            fleet.listed(wrong)


def test_a_name_that_is_no_unicode_stays_a_name(client: Client, sample: Sample, tmp_path: pathlib.Path) -> None:
    hostile = [
        os.fsdecode(os.fsencode(tmp_path) + name) for name in (b"/\xe9.tar", b"/\x1b[2J\n.tar", b"/<script>.tar")
    ]
    for path in hostile:
        shutil.copyfile(sample.file, path)
    done = fleet.run(hostile, client, passwords=sample.password, out=tmp_path / "out")
    # The program takes arguments in UTF-8 alone, and does not find the first.
    assert [row["code"] for row in done.rows()] == [10, 0, 0]
    assert done.rows()[0]["path"].endswith("\\udce9.tar")
    assert fleet.run(hostile, client, passwords=sample.password, out=tmp_path / "out").kept == 2


@pytest.mark.parametrize("change", ["content", "new", "gone", "mode"])
def test_a_stamp_shows_a_change(sample: Sample, tmp_path: pathlib.Path, change: str) -> None:
    place = tmp_path / "b"
    shutil.copytree(sample.folder, place)
    before = stamp(str(place))
    assert before is not None and before == stamp(str(place))
    file = next(path for path in place.rglob("*") if len(path.name) == 40)
    if change == "content":
        found = file.stat()
        file.write_bytes(bytes(found.st_size))
        # The time of the last change of the file's own record stays behind.
        os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))
    elif change == "new":
        (file.parent / "new").touch()
    elif change == "gone":
        file.unlink()
    else:
        file.chmod(0o400)
    assert stamp(str(place)) not in (before, None)
    assert stamp(str(tmp_path / "nowhere")) is None and stamp("file:///nowhere/x.tar") is None


@pytest.mark.parametrize("batch", [1, 4])
def test_a_surprise_of_one_backup_is_its_own(
    client: Client, sample: Sample, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    plainly: Callable[..., Any] = _task._Look._told

    def surprising(look: Any, answer: Any) -> Any:
        if look.job.path.endswith("1.tar"):
            raise OSError("no more files")
        return plainly(look, answer)

    monkeypatch.setattr(_task._Look, "_told", surprising)
    done = fleet.run(folder, client, passwords=sample.password, batch=batch)
    assert [(row["id"], row["why"]) for row in done.failures()[:-1]] == [("failed", "OSError: no more files")]
    assert done.items.num_rows == 5 * 18


def test_a_backup_that_ends_its_workers_has_a_row_as_the_others_have(
    program: str, sample: Sample, tmp_path: pathlib.Path
) -> None:
    text = f"""
import os, sys
listed = sys.stdin.buffer.read() if sys.argv[-1] == "-" else b""
if b"poison.tar" in listed or sys.argv[-1].endswith("poison.tar"): os.kill(os.getppid(), 9)
os.execv({program!r}, [{program!r}, *sys.argv[1:]])
"""
    poisonous = script(tmp_path / "program", text)
    paths = [str(tmp_path / name) for name in ("a.tar", "poison.tar", "b.tar")]
    for path in paths:
        shutil.copyfile(sample.file, path)
    # A worker's death counts at once; three are allowed otherwise.
    strict = {"allowed_failures": 0}
    one = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0", scheduler_kwargs=strict)
    with one as cluster, Client(cluster) as client:
        done = fleet.run(
            paths, client, verbs=["verify"], passwords=sample.password, program=poisonous, retries=1, batch=3
        )
    first, poison, last = done.rows()
    assert (first["id"], poison["id"], last["id"]) == ("ok", "worker-lost", "ok")
    assert poison["why"] == "KilledWorker: it ends the process that looks at it" and done.again >= 3


class LostFirst:
    """A client whose workers are lost with a backup so many times, before or after they have begun with it."""

    def __init__(self, client: Client, times: int, begun: bool) -> None:
        self.client, self.times, self.begun = client, times, begun

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def submit(self, function: Callable[..., Any], job: Any, settings: Any, mark: str = "", **options: Any) -> Any:
        if function is not _task.examine_alone or self.times == 0:
            return self.client.submit(function, *filter(None, (job, settings, mark)), **options)
        self.times -= 1
        if self.begun:
            Event(mark, client=self.client).set()
        return self.client.submit(_lost, **options)


def _lost() -> None:
    raise RuntimeError("lost")


@pytest.mark.parametrize(
    ("times", "begun", "answer"),
    [
        (3, False, ("ok", None, 4)),
        (1, True, ("worker-lost", "RuntimeError: it ends the process that looks at it", 1)),
        (100, False, ("worker-lost", "RuntimeError: no worker lived until it began", _run.UNBEGUN)),
    ],
)
def test_a_backup_is_charged_only_with_a_worker_that_had_begun_with_it(
    client: Client, sample: Sample, times: int, begun: bool, answer: tuple[str, str | None, int]
) -> None:
    job = _task.Job(0, sample.file, sample.password, None)
    settings = _task.Settings(("verify",), False, None, None, None, None, None)
    losing: Any = LostFirst(client, times, begun)
    [found], sent = _run._alone(losing, job, settings, 1, f"lost-{times}-{begun}")
    assert found.row is not None and (found.row["id"], found.row.get("why"), sent) == answer


def test_verbs_are_checked() -> None:
    nobody: Any = None
    for verbs in ([], ["restore"]):
        with pytest.raises(ValueError, match="verbs are"):
            fleet.run([], nobody, verbs=verbs)  # type: ignore[arg-type]


def test_a_shell_runs_it_on_this_machine(program: str, sample: Sample, tmp_path: pathlib.Path) -> None:
    plain = tmp_path / "plain.tar"
    plain.write_bytes(b"nothing")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "keyhaul.fleet",
            sample.file,
            str(plain),
            "--out",
            str(tmp_path / "out"),
            "--workers",
            "1",
        ]
        + ["--password-file", sample.password.path, "--plain", "*/plain*"],
        env={**os.environ, "KEYHAUL_PROGRAM": program},
        stdout=subprocess.PIPE,
        check=False,
        text=True,
    )
    assert done.returncode == 3
    [failure, last] = done.stdout.splitlines()
    assert failure.startswith(f"{str(plain)!r}: refused: ")
    assert last.startswith("2 backups, 1 with an error; 0 kept; ")
    assert pq.read_table(tmp_path / "out/backups.parquet")["code"].to_pylist() == [0, 14]


def test_every_column_is_described() -> None:
    page = pathlib.Path(__file__).resolve().parents[3] / "docs/Fleet.md"
    described = set(re.findall(r"`(\w+)`", page.read_text(encoding="utf-8")))
    assert {*fleet.BACKUPS.names, *fleet.ITEMS.names} <= described
