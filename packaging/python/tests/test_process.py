"""Streams, times and the end of what was started."""

from __future__ import annotations

import io
import os
import pathlib
import subprocess
import sys
import threading
import time

import pytest
from conftest import SECRET, Sample, script

import keyhaul
from keyhaul import _process

# A program with two child processes, one of them in its own group as a password command is; all ignore a request to end.
STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "600"])
other = subprocess.Popen(["sleep", "600"], preexec_fn=os.setpgrp)
with open(os.environ["PIDS"] + ".part", "w") as file: file.write(f"{os.getpid()} {child.pid} {other.pid}")
os.rename(os.environ["PIDS"] + ".part", os.environ["PIDS"])
time.sleep(600)
"""


def is_running(number: int) -> bool:
    try:
        state = pathlib.Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.fixture
def stubborn(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, pathlib.Path]:
    monkeypatch.setattr(_process, "GRACE", 0.2)
    monkeypatch.setenv("PIDS", str(tmp_path / "pids"))
    return script(tmp_path / "program", STUBBORN), tmp_path / "pids"


def gone(pids: pathlib.Path) -> bool:
    numbers = [int(number) for number in pids.read_text().split()]
    until = time.monotonic() + 5
    while any(map(is_running, numbers)) and time.monotonic() < until:
        time.sleep(0.02)
    return len(numbers) == 3 and not any(map(is_running, numbers))


def test_after_its_time_a_program_is_stopped_with_what_it_started(stubborn: tuple[str, pathlib.Path]) -> None:
    program, pids = stubborn
    with pytest.raises(keyhaul.TimedOut, match="longer than 2 seconds"):
        keyhaul.verify("x", program=program, timeout=2)
    assert gone(pids)


def test_a_call_that_is_called_off_is_stopped_with_what_it_started(stubborn: tuple[str, pathlib.Path]) -> None:
    program, pids = stubborn
    cancel = threading.Event()

    def call_off() -> None:
        while not pids.exists():
            time.sleep(0.01)
        cancel.set()

    threading.Thread(target=call_off).start()
    with pytest.raises(keyhaul.TimedOut, match="called off"):
        keyhaul.verify("x", program=program, cancel=cancel)
    assert gone(pids)


class Failing(io.RawIOBase):
    """A stream that breaks off."""

    def read(self, size: int = -1, /) -> bytes:
        raise ConnectionError("the line was cut")


def test_a_stream_that_fails_is_not_taken_for_a_backup_that_is_cut_short(stubborn: tuple[str, pathlib.Path]) -> None:
    with pytest.raises(keyhaul.KeyhaulError, match="ConnectionError: the line was cut") as caught:
        keyhaul.verify(Failing(), program=stubborn[0])
    assert caught.value.id == "failed"


def test_a_stream_is_read_in_portions(sample: Sample) -> None:
    sizes: list[int] = []

    class Watched(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            sizes.append(size or -1)
            return super().read(size)

    stream = Watched(pathlib.Path(sample.file).read_bytes())
    answer = keyhaul.verify(stream, password=sample.password)
    assert answer.code == 0 and {unchecked.id for unchecked in answer.unchecked} >= {"files"}
    assert sizes and set(sizes) == {_process.PORTION}


def test_a_program_that_has_read_enough_ends_the_stream(tmp_path: pathlib.Path) -> None:
    class Endless:
        def read(self, size: int, /) -> bytes:
            return bytes(size)

    enough = script(tmp_path / "program", "import sys\nsys.stdin.buffer.read(10)\nsys.exit(14)\n")
    with pytest.raises(keyhaul.KeyhaulError) as caught:
        keyhaul.verify(Endless(), program=enough, timeout=60)
    assert caught.value.code == 14


LIMITED = """
import os, resource, sys, keyhaul
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
try:
    with open("proof", "w") as file: file.write("x")
    sys.exit("the limit does not hold")
except OSError:
    os.unlink("proof")
answer = keyhaul.{verb}(sys.argv[1], password=keyhaul.PasswordFile(sys.argv[2]))
sys.exit(answer.code)
"""


@pytest.mark.parametrize("verb", ["inspect", "verify", "plan"])
@pytest.mark.parametrize("form", ["tar", "tar.gz"])
def test_of_an_address_nothing_is_written_to_the_disk(
    sample: Sample, program: str, tmp_path: pathlib.Path, verb: str, form: str
) -> None:
    """Under a limit of no byte for any file; and nothing is left in the folders for temporary files, of this and of home."""
    place, empty = tmp_path / f"backup.{form}", tmp_path / "empty"
    empty.mkdir()
    content = pathlib.Path(sample.file).read_bytes()
    place.write_bytes(
        subprocess.run(["gzip"], input=content, stdout=subprocess.PIPE, check=True).stdout if form[3:] else content
    )
    folders = dict.fromkeys(("TMPDIR", "HOME", "XDG_DATA_HOME"), str(empty))
    environment = {**os.environ, **folders, "KEYHAUL_PROGRAM": program, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", LIMITED.format(verb=verb), place.as_uri(), sample.password.path],
        cwd=empty,
        env=environment,
        check=False,
    )
    assert done.returncode == 0
    assert list(empty.iterdir()) == []


def test_a_password_goes_through_a_pipe(tmp_path: pathlib.Path) -> None:
    text = """
import os, sys
fd = int(sys.argv[sys.argv.index("--password-fd") + 1])
print('{"message_type":"exit_error","code":9,"id":"x","message":"%s %s"}' % (os.read(fd, 99).decode(), "horse" in str(sys.argv)),
      file=sys.stderr)
sys.exit(9)
"""
    with pytest.raises(keyhaul.KeyhaulError, match=f"^{SECRET} False$"):
        keyhaul.verify("x", program=script(tmp_path / "program", text), password=keyhaul.Password(SECRET))


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


def test_an_address_that_is_not_there_is_not_found(tmp_path: pathlib.Path, program: str) -> None:
    with pytest.raises(keyhaul.KeyhaulError) as caught:
        keyhaul.verify((tmp_path / "gone.tar").as_uri(), program=program)
    assert (caught.value.code, caught.value.id) == (10, "not-found")
