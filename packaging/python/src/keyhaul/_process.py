"""Run the program once, and return its exit code and its output."""

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

# How many bytes of a stream are copied at a time. A remote file system may read ahead more.
CHUNK_SIZE = 1 << 20
# The capacity of a pipe by default, in bytes.
PIPE_SIZE = 1 << 16
# The interval at which a run checks whether it was canceled, in seconds.
POLL_INTERVAL = 0.1
# The time in seconds between SIGTERM and SIGKILL.
TERMINATION_TIMEOUT = 2.0
# The largest size of a password, in bytes. A pipe holds it until the program runs and reads it.
MAX_PASSWORD_SIZE = 4096


class Readable(Protocol):
    """An object that a stream can be read from."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class CompletedRun:
    """The result of a run. If a signal ended the program, `code` is 128 plus the signal's number."""

    code: int
    out: bytes
    err: bytes
    seconds: float


class _StreamCopier:
    """Copies a stream into a pipe, in chunks, on its own thread."""

    def __init__(self, source: Readable) -> None:
        self.failure: Exception | None = None
        self._source = source
        self.read_end, self._write_end = os.pipe()
        self._thread = threading.Thread(target=self._copy, daemon=True)

    def start(self) -> None:
        """Start copying, after the program has inherited its end of the pipe."""
        os.close(self.read_end)
        self._thread.start()

    def close(self) -> None:
        """Close the pipe, if the program did not start."""
        os.close(self.read_end)
        os.close(self._write_end)

    def _copy(self) -> None:
        try:
            while chunk := self._source.read(CHUNK_SIZE):
                remaining_bytes = memoryview(chunk)
                while remaining_bytes:
                    remaining_bytes = remaining_bytes[os.write(self._write_end, remaining_bytes) :]
        except BrokenPipeError:
            pass  # The program has read enough.
        except Exception as error:  # noqa: BLE001 - a file system can raise any error, which the waiting thread reports
            self.failure = error
        finally:
            with contextlib.suppress(OSError):
                os.close(self._write_end)


def run(
    program: str,
    arguments: Sequence[str],
    *,
    stream: Readable | None = None,
    secret: bytes | None = None,
    timeout: float | None = None,
    cancel: threading.Event | None = None,
) -> CompletedRun:
    """Run the program until it ends.

    The program reads `secret` as its password. If the wait ends before the program does (`timeout`, `cancel`, a failing
    stream, an exception in this thread), the program and its child processes are stopped. They are one session.
    """
    started = time.monotonic()
    process, copier = _start(program, arguments, stream, secret, subprocess.PIPE)
    try:
        out, err = _wait(process, started, timeout, cancel, copier)
    except BaseException:
        _terminate(process)
        raise
    if copier and copier.failure:
        raise stream_error(copier.failure)
    code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    return CompletedRun(code, out, err, time.monotonic() - started)


def lines(
    program: str,
    arguments: Sequence[str],
    *,
    stream: Readable,
    secret: bytes | None = None,
    timeout: float | None = None,
) -> Generator[bytes, None, None]:
    """Run the program, and yield each complete line of its standard output as soon as it is printed.

    `timeout` applies to each line. If a signal ends the program, an incomplete line is dropped. If the wait ends before
    the program does (`timeout`, or the caller stops), the program and its child processes are stopped.
    """
    process, _ = _start(program, arguments, stream, secret, subprocess.DEVNULL)
    assert process.stdout is not None
    try:
        with process.stdout as out:
            yield from _lines(out.fileno(), timeout)
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        pass  # All of its output was read.
    finally:
        if process.poll() is None:
            _terminate(process)


def stream_error(failure: Exception) -> KeyhaulError:
    """Return the error for an unreadable stream. The backup itself may be intact."""
    return KeyhaulError(
        10 if isinstance(failure, FileNotFoundError) else 1,
        "not-found" if isinstance(failure, FileNotFoundError) else "failed",
        "the stream could not be read",
        f"{type(failure).__name__}: {failure}",
        "check the address and the worker's access to it",
    )


def _start(
    program: str, arguments: Sequence[str], stream: Readable | None, secret: bytes | None, stderr: int
) -> tuple[subprocess.Popen[bytes], _StreamCopier | None]:
    """Start the program, and return it with the copier of its stream."""
    arguments = list(arguments)
    copier = _StreamCopier(stream) if stream is not None else None
    password_fd = _password_pipe(secret) if secret is not None else None
    if password_fd is not None:
        arguments[1:1] = ["--password-fd", str(password_fd)]
    try:
        process = subprocess.Popen(
            [program, *arguments],
            stdin=copier.read_end if copier else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            pass_fds=() if password_fd is None else (password_fd,),
            start_new_session=True,
        )
    except BaseException:
        if copier:
            copier.close()
        raise
    finally:
        if password_fd is not None:
            os.close(password_fd)
    if copier:
        try:
            copier.start()
        except BaseException:
            _terminate(process)
            raise
    return process, copier


def _lines(out: int, timeout: float | None) -> Generator[bytes, None, None]:
    """Yield the lines of a pipe until it ends."""
    poller = select.poll()
    poller.register(out, select.POLLIN)
    parts: list[bytes] = []
    started = time.monotonic()
    while True:
        remaining = None if timeout is None else started + timeout - time.monotonic()
        if remaining is not None and (remaining <= 0 or not poller.poll(1000 * remaining)):
            raise _timeout_error(timeout)
        chunk = os.read(out, PIPE_SIZE)
        if not chunk:
            return
        *complete_lines, remaining_bytes = chunk.split(b"\n")
        for line in complete_lines:
            yield b"".join((*parts, line))
            parts, started = [], time.monotonic()
        parts.append(remaining_bytes)


def _timeout_error(timeout: float | None) -> TimedOut:
    """Return the error for a run that took too long."""
    return TimedOut("the program was stopped", f"it took longer than {timeout:g} seconds")


def _wait(
    process: subprocess.Popen[bytes],
    started: float,
    timeout: float | None,
    cancel: threading.Event | None,
    copier: _StreamCopier | None,
) -> tuple[bytes, bytes]:
    """Wait for the program to end. Return its standard output and its standard error."""
    can_end_early = cancel is not None or copier is not None
    while True:
        remaining = None if timeout is None else started + timeout - time.monotonic()
        if remaining is not None and remaining <= 0:
            raise _timeout_error(timeout)
        if cancel is not None and cancel.is_set():
            raise TimedOut("the program was stopped", "it was canceled")
        if copier is not None and copier.failure:
            raise stream_error(copier.failure)
        try:
            interval = min(POLL_INTERVAL, remaining or POLL_INTERVAL) if can_end_early else remaining
            return process.communicate(timeout=interval)
        except subprocess.TimeoutExpired:
            continue


def _terminate(process: subprocess.Popen[bytes]) -> None:
    """Stop the program and its child processes with SIGTERM, and with SIGKILL if they do not end in time."""
    # Until the process is reaped, its PID cannot belong to another process.
    _send_signal_to_group(process.pid, signal.SIGTERM)
    _wait_without_reaping(process, TERMINATION_TIMEOUT)
    # A password command runs in its own process group. Usually the program ends it, but not if the program itself
    # ignored SIGTERM.
    for pid in _session_pids(process.pid):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    _send_signal_to_group(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe:
            pipe.close()


def _send_signal_to_group(group_id: int, signal_number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group_id, signal_number)


def _session_pids(session_id: int) -> list[int]:
    """Return the PIDs of a session from /proc, or an empty list if there is no /proc."""
    pids = []
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{entry}/stat", "rb") as file:
            # PID (NAME) STATE PARENT GROUP SESSION …, where the name may contain anything.
            fields_after_name = file.read().rpartition(b")")[2].split()
            if int(fields_after_name[3]) == session_id:
                pids.append(int(entry))
    return pids


def _wait_without_reaping(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait for the end of a process without reaping it, so that no other process gets its process group ID."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return
        time.sleep(0.01)


def _password_pipe(secret: bytes) -> int:
    """Return the read end of a pipe that contains the password."""
    if len(secret) > MAX_PASSWORD_SIZE:
        raise ValueError("a password has at most 4,096 bytes")
    read_end, write_end = os.pipe()
    try:
        os.write(write_end, secret)
    finally:
        os.close(write_end)
    return read_end
