"""Test streams and time limits, and that a stopped program leaves no processes."""

from __future__ import annotations

import gzip
import io
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from conftest import SECRET, Sample, write_script

import keyhaul
from keyhaul import _commands, _process

# A program with two child processes that all ignore SIGTERM. One child has its own process group, as a password
# command has.
STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child_in_group = subprocess.Popen(["sleep", "600"])
child_with_own_group = subprocess.Popen(["sleep", "600"], preexec_fn=os.setpgrp)
with open(os.environ["PIDS"] + ".part", "w") as file:
    file.write(f"{os.getpid()} {child_in_group.pid} {child_with_own_group.pid}")
os.rename(os.environ["PIDS"] + ".part", os.environ["PIDS"])
time.sleep(600)
"""


def is_running(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        # PID (NAME) STATE …
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.fixture
def stubborn(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, pathlib.Path]:
    """Return the stubborn program, and the path of the file that it writes its PIDs to."""
    monkeypatch.setattr(_process, "TERMINATION_TIMEOUT", 0.2)
    monkeypatch.setenv("PIDS", str(tmp_path / "pids"))
    return write_script(tmp_path / "program", STUBBORN), tmp_path / "pids"


def all_ended(pid_file: pathlib.Path) -> bool:
    """Wait until the stubborn program and its child processes have ended. Return False after 30 seconds."""
    pids = [int(text) for text in pid_file.read_text().split()]
    assert len(pids) == 3
    deadline = time.monotonic() + 30
    while any(map(is_running, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(map(is_running, pids))


def test_a_program_that_exceeds_its_time_is_stopped_with_its_children(stubborn: tuple[str, pathlib.Path]) -> None:
    program, pid_file = stubborn
    # On a busy machine, the program may not start in time. The call is then repeated with more time.
    for seconds in (2, 10, 50):
        with pytest.raises(keyhaul.TimedOut, match=f"longer than {seconds} seconds"):
            keyhaul.verify("x", program=program, timeout=seconds)
        if pid_file.exists():
            break
    assert all_ended(pid_file)


def test_a_canceled_call_is_stopped_with_its_children(stubborn: tuple[str, pathlib.Path]) -> None:
    program, pid_file = stubborn
    cancel = threading.Event()

    def cancel_call() -> None:
        while not pid_file.exists():
            time.sleep(0.01)
        cancel.set()

    threading.Thread(target=cancel_call).start()
    with pytest.raises(keyhaul.TimedOut, match="canceled"):
        keyhaul.verify("x", program=program, cancel=cancel)
    assert all_ended(pid_file)


@pytest.mark.parametrize(
    ("paths", "ids"),
    [(["a.tar"], ["refused"]), (["a.tar", "b.tar", "c.tar"], ["refused", "timed-out"])],
)
def test_a_program_that_does_not_end_in_time_adds_an_error_only_for_a_path_without_a_result(
    monkeypatch: pytest.MonkeyPatch, paths: list[str], ids: list[str]
) -> None:
    error = {"message": "a.tar is not a backup"}
    result = {"format": "backup-answer/1", "path": "a.tar", "code": 14, "id": "refused", "error": error}

    def lines(*_arguments: object, **_options: object) -> Iterator[bytes]:
        yield json.dumps(result).encode("utf-8")
        raise keyhaul.TimedOut("the program was stopped")

    monkeypatch.setattr(_process, "lines", lines)
    outcomes = _commands.stream_results("verify", paths, program=sys.executable, timeout=1)
    assert [outcome.id for outcome in outcomes if isinstance(outcome, keyhaul.KeyhaulError)] == ids


class FailingStream(io.RawIOBase):
    """A stream that fails at the first read."""

    def read(self, size: int = -1, /) -> bytes:
        raise ConnectionError("the connection was lost")


def test_a_failed_stream_is_not_reported_as_a_truncated_backup(stubborn: tuple[str, pathlib.Path]) -> None:
    with pytest.raises(keyhaul.KeyhaulError, match="ConnectionError: the connection was lost") as caught:
        keyhaul.verify(FailingStream(), program=stubborn[0])
    assert caught.value.id == "failed"


def test_a_stream_is_read_in_chunks(sample: Sample) -> None:
    sizes: list[int] = []

    class RecordingStream(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            sizes.append(size or -1)
            return super().read(size)

    stream = RecordingStream(pathlib.Path(sample.file).read_bytes())
    result = keyhaul.verify(stream, password=sample.password)
    assert result.code == 0 and {unchecked.id for unchecked in result.unchecked} >= {"files"}
    assert sizes and set(sizes) == {_process.CHUNK_SIZE}


def test_the_stream_ends_when_the_program_exits(tmp_path: pathlib.Path) -> None:
    class EndlessStream:
        def read(self, size: int, /) -> bytes:
            return bytes(size)

    short_reader = write_script(tmp_path / "program", "import sys\nsys.stdin.buffer.read(10)\nsys.exit(14)\n")
    with pytest.raises(keyhaul.KeyhaulError) as caught:
        keyhaul.verify(EndlessStream(), program=short_reader, timeout=60)
    assert caught.value.code == 14


# A script that cannot write to files, and calls a function of the package.
SCRIPT_WITHOUT_FILES = """
import os, resource, sys, keyhaul
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
try:
    with open("probe", "w") as file: file.write("x")
    sys.exit("the limit has no effect")
except OSError:
    os.unlink("probe")
result = keyhaul.{command}(sys.argv[1], password=keyhaul.PasswordFile(sys.argv[2]))
sys.exit(result.code)
"""


@pytest.mark.parametrize("command", ["inspect", "verify", "plan"])
@pytest.mark.parametrize("extension", ["tar", "tar.gz"])
def test_a_backup_at_an_address_is_never_written_to_disk(
    sample: Sample, program: str, tmp_path: pathlib.Path, command: str, extension: str
) -> None:
    """The process limit on file sizes is 0, and the home and temporary folders are empty afterwards."""
    backup, empty = tmp_path / f"backup.{extension}", tmp_path / "empty"
    empty.mkdir()
    content = pathlib.Path(sample.file).read_bytes()
    backup.write_bytes(gzip.compress(content) if extension == "tar.gz" else content)
    folders = dict.fromkeys(("TMPDIR", "HOME", "XDG_DATA_HOME"), str(empty))
    environment = {**os.environ, **folders, "KEYHAUL_PROGRAM": program, "PYTHONDONTWRITEBYTECODE": "1"}
    completed = subprocess.run(
        [sys.executable, "-c", SCRIPT_WITHOUT_FILES.format(command=command), backup.as_uri(), sample.password.path],
        cwd=empty,
        env=environment,
        check=False,
    )
    assert completed.returncode == 0
    assert list(empty.iterdir()) == []


def test_a_password_is_passed_through_a_pipe(tmp_path: pathlib.Path) -> None:
    text = """
import os, sys
fd = int(sys.argv[sys.argv.index("--password-fd") + 1])
message = (os.read(fd, 99).decode(), "horse" in str(sys.argv))
print('{"message_type":"exit_error","code":9,"id":"x","message":"%s %s"}' % message, file=sys.stderr)
sys.exit(9)
"""
    with pytest.raises(keyhaul.KeyhaulError, match=f"^{SECRET} False$"):
        keyhaul.verify("x", program=write_script(tmp_path / "program", text), password=keyhaul.Password(SECRET))


@pytest.mark.parametrize(
    "address",
    [
        "simplecache::s3://b/x.tar",
        "filecache::http://h/x",
        "https://anna:secret@h/x.tar",
        "https://h/x.tar?X-Amz-Signature=secret",
        "https://h/x.tar?a=1&token=secret",
    ],
)
def test_an_address_with_a_secret_or_a_cache_on_the_disk_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="an address") as caught:
        keyhaul.verify(address)
    assert "secret@" not in str(caught.value) and "=secret" not in str(caught.value)


def test_a_missing_file_at_an_address_is_not_found(tmp_path: pathlib.Path, program: str) -> None:
    with pytest.raises(keyhaul.KeyhaulError) as caught:
        keyhaul.verify((tmp_path / "gone.tar").as_uri(), program=program)
    assert (caught.value.code, caught.value.id) == (10, "not-found")
