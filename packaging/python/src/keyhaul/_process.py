"""Runs the program once and returns its output, errors and exit code."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

from ._errors import KeyhaulError, TimedOut

# How much of a stream is in memory at a time, in bytes, without what a remote file system reads ahead.
PORTION = 1 << 20
# The capacity of a pipe by default, in bytes.
PIPE = 1 << 16
# The interval at which a run checks whether it was canceled, in seconds.
GLANCE = 0.1
# How long the program may take to end after SIGTERM, in seconds, before SIGKILL.
GRACE = 2.0


class Readable(Protocol):
    """An object that a stream can be read from."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class Ended:
    """The result of a run. `code` is 128 plus the signal's number if a signal ended the program."""

    code: int
    out: bytes
    err: bytes
    seconds: float


class _Feeder:
    """Copies a stream into a pipe, in portions, on its own thread."""

    def __init__(self, source: Readable) -> None:
        self.failure: Exception | None = None
        self.failed = threading.Event()
        self._source = source
        self.end, self._pipe = os.pipe()
        self._thread = threading.Thread(target=self._copy, daemon=True)

    def start(self) -> None:
        """Starts to copy. Call it when the program has its end of the pipe."""
        os.close(self.end)
        self._thread.start()

    def abandon(self) -> None:
        """Closes the pipe. Call it if the program did not start."""
        os.close(self.end)
        os.close(self._pipe)

    def _copy(self) -> None:
        try:
            while portion := self._source.read(PORTION):
                rest = memoryview(portion)
                while rest:
                    rest = rest[os.write(self._pipe, rest) :]
        except BrokenPipeError:
            pass  # The program has read enough.
        except Exception as error:  # noqa: BLE001 - the waiting thread reports whatever a file system raises
            self.failure = error
            self.failed.set()
        finally:
            with contextlib.suppress(OSError):
                os.close(self._pipe)


def run(
    program: str,
    arguments: Sequence[str],
    *,
    stream: Readable | None = None,
    secret: bytes | None = None,
    timeout: float | None = None,
    cancel: threading.Event | None = None,
) -> Ended:
    """Runs the program to its end.

    The program reads `secret` as its password. If the wait ends before the program does (`timeout`, `cancel`, a failing
    stream, an exception in this thread), the program and its child processes are stopped; they are one process group.
    """
    started = time.monotonic()
    child, feeder = _begun(program, arguments, stream, secret, subprocess.PIPE)
    try:
        out, err = _wait(child, started, timeout, cancel, feeder)
    except BaseException:
        _end(child)
        raise
    if feeder and feeder.failure:
        raise unreadable(feeder.failure)
    code = child.returncode if child.returncode >= 0 else 128 - child.returncode
    return Ended(code, out, err, time.monotonic() - started)


def lines(
    program: str,
    arguments: Sequence[str],
    *,
    stream: Readable,
    secret: bytes | None = None,
    timeout: float | None = None,
) -> Generator[bytes, None, None]:
    """Runs the program and yields each complete line of its standard output as soon as it is printed.

    `timeout` applies to each line. If a signal ends the program, an incomplete line is dropped. If the wait ends before the
    program does (`timeout`, or the caller stops), the program and its child processes are stopped.
    """
    child, _ = _begun(program, arguments, stream, secret, subprocess.DEVNULL)
    assert child.stdout is not None
    try:
        with child.stdout as out:
            yield from _lines(out.fileno(), timeout)
        child.wait(timeout)
    except subprocess.TimeoutExpired:
        pass  # All its output was read.
    finally:
        if child.poll() is None:
            _end(child)


def unreadable(failure: Exception) -> KeyhaulError:
    """Returns the error for a stream that failed. It says nothing about the backup."""
    return KeyhaulError(
        10 if isinstance(failure, FileNotFoundError) else 1,
        "not-found" if isinstance(failure, FileNotFoundError) else "failed",
        "the stream could not be read",
        f"{type(failure).__name__}: {failure}",
        "check the address and the worker's access to it",
    )


def _begun(
    program: str, arguments: Sequence[str], stream: Readable | None, secret: bytes | None, errors: int
) -> tuple[subprocess.Popen[bytes], _Feeder | None]:
    """Starts the program, and returns it with its feeder."""
    arguments = list(arguments)
    feeder = _Feeder(stream) if stream is not None else None
    password = _password_pipe(secret) if secret is not None else None
    if password is not None:
        arguments[1:1] = ["--password-fd", str(password)]
    try:
        child = subprocess.Popen(
            [program, *arguments],
            stdin=feeder.end if feeder else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            pass_fds=() if password is None else (password,),
            start_new_session=True,
        )
    except BaseException:
        if feeder:
            feeder.abandon()
        raise
    finally:
        if password is not None:
            os.close(password)
    if feeder:
        try:
            feeder.start()
        except BaseException:
            _end(child)
            raise
    return child, feeder


def _lines(out: int, timeout: float | None) -> Generator[bytes, None, None]:
    """Yields the lines of a pipe, to its end."""
    waiting = select.poll()
    waiting.register(out, select.POLLIN)
    parts: list[bytes] = []
    started = time.monotonic()
    while True:
        left = None if timeout is None else started + timeout - time.monotonic()
        if left is not None and (left <= 0 or not waiting.poll(1000 * left)):
            raise _too_long(timeout)
        portion = os.read(out, PIPE)
        if not portion:
            return
        *whole, rest = portion.split(b"\n")
        for line in whole:
            yield b"".join((*parts, line))
            parts, started = [], time.monotonic()
        parts.append(rest)


def _too_long(timeout: float | None) -> TimedOut:
    return TimedOut("the program was stopped", f"it took longer than {timeout:g} seconds")


def _wait(
    child: subprocess.Popen[bytes],
    started: float,
    timeout: float | None,
    cancel: threading.Event | None,
    feeder: _Feeder | None,
) -> tuple[bytes, bytes]:
    glances = cancel is not None or feeder is not None
    while True:
        left = None if timeout is None else started + timeout - time.monotonic()
        if left is not None and left <= 0:
            raise _too_long(timeout)
        if cancel is not None and cancel.is_set():
            raise TimedOut("the program was stopped", "it was called off")
        if feeder is not None and feeder.failed.is_set() and feeder.failure:
            raise unreadable(feeder.failure)
        try:
            return child.communicate(timeout=left if not glances else min(GLANCE, left or GLANCE))
        except subprocess.TimeoutExpired:
            continue


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ends the program and what it started: with SIGTERM, and with SIGKILL if it does not end in time."""
    for number, patience in ((signal.SIGTERM, GRACE), (signal.SIGKILL, None)):
        # The child is not waited for yet, so its number cannot belong to another process.
        if number == signal.SIGKILL:
            # The program ends a password command, which has its own group, unless it cannot act on the first signal.
            for member in _session(child.pid):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(member, number)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            if patience is not None:
                _sleep_until_ended(child, patience)
            else:
                child.wait()
    for pipe in (child.stdout, child.stderr):
        if pipe:
            pipe.close()


def _session(leader: int) -> list[int]:
    """Returns the processes of a session, as Linux lists them; none where there is no such list."""
    members = []
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{entry}/stat", "rb") as file:
            # The name in parentheses may contain anything; the session is the fourth field after it.
            if int(file.read().rpartition(b")")[2].split()[3]) == leader:
                members.append(int(entry))
    return members


def _sleep_until_ended(child: subprocess.Popen[bytes], patience: float) -> None:
    """Waits for the end but does not collect the exit code; otherwise another process could get the group's number."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return
        time.sleep(0.01)


def _password_pipe(secret: bytes) -> int:
    """Returns the reading end of a pipe that already contains the password."""
    if len(secret) > 4096:
        raise ValueError("a password has at most 4,096 bytes")
    reading, writing = os.pipe()
    try:
        os.write(writing, secret)
    finally:
        os.close(writing)
    return reading
