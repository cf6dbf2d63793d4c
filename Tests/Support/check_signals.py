#!/usr/bin/env python3
"""Send a signal to the program while it waits or works. It must end within two seconds and change nothing.

    check_signals.py PROGRAM [--only WAIT] [--signals TERM,INT,HUP]

The waits are for:

- a device or device folder that another process has locked, and a database that another process writes;
- a password command that prints nothing, does not end, or ignores SIGTERM;
- a terminal, standard input, and named pipes without a writer;
- a reader of standard output or standard error, and a terminal that was stopped with Ctrl-S;
- the key derivation.

The program must still be running when the signal is sent. Exit 1 if a check fails.
"""

import argparse
import contextlib
import dataclasses
import fcntl
import os
import pathlib
import pty
import signal
import subprocess
import sys
import tempfile
import termios
import time

from bench_data import write_description
from checks import Checks
from kill_commands import files

MAX_SECONDS = 2
# The time after which the program has begun to wait.
SECONDS_UNTIL_WAIT = 0.6
# Linux: F_SETPIPE_SZ, for a pipe that is full after one write.
SET_PIPE_SIZE, PIPE_SIZE = 1031, 4096
PASSWORD_OPTIONS = ["--password-file", "password"]


class SignalTester:
    """The folder of the tests, the counts, and the checks."""

    def __init__(self, program, folder, prints_results):
        self.program, self.folder, self.checks, self.prints_results = (
            str(program.resolve()), folder, Checks(), prints_results)
        self.count, self.longest = 0, (0.0, "")
        for name, text in (("password", "a password\n"), ("secret", "x")):
            (folder / name).touch(mode=0o600)
            (folder / name).write_text(text, encoding="utf-8")
        write_description(folder / "many.json", 3_000)
        for command in (["device", "create", "phone", "--from", "old-phone"], ["device", "create", "other"],
                        ["device", "create", "many", "--from", "many.json"],
                        ["backup", "phone", "-o", "b/", *PASSWORD_OPTIONS, "--rounds", "1", "--yes"],
                        ["backup", "many", "-o", "many.tar", *PASSWORD_OPTIONS, "--rounds", "1", "--yes"]):
            subprocess.run(
                [self.program, *command, "--home", "home", "--no-input"], cwd=folder, check=True, capture_output=True
            )
        for name in ("password.fifo", "paths.fifo"):
            os.mkfifo(folder / name, 0o600)

    def send(self, signal_number, wait, streams):
        """Start the program, send the signal while it waits, and check how it ends."""
        context = f"{wait.name}, {signal.Signals(signal_number).name}"
        files_before = files_without_locks(self.folder)
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | streams
        process = subprocess.Popen([self.program, *wait.command, "--home", "home"], cwd=self.folder, **streams)
        time.sleep(SECONDS_UNTIL_WAIT)
        check = self.checks.check
        check(process.poll() is None, f"{context}: it did not wait, but ended with {process.poll()}")
        started = time.perf_counter()
        process.send_signal(signal_number)
        try:
            code = process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
            check(False, f"{context}: did not end")
        seconds = time.perf_counter() - started
        self.count += 1
        self.longest = max(self.longest, (seconds, context))
        if self.prints_results:
            print(f"{context}: {code} after {seconds:.2f} s")
        check(seconds <= MAX_SECONDS, f"{context}: ended after {seconds:.1f} s")
        check(code in (128 + signal_number, -signal_number, *wait.codes), f"{context}: ended with {code}")
        check(files_without_locks(self.folder) == files_before, f"{context}: changed something")


@contextlib.contextmanager
def locked_file(path):
    """Lock a file or folder."""
    file = os.open(path, os.O_RDONLY)
    fcntl.flock(file, fcntl.LOCK_EX)
    yield {}
    os.close(file)


@contextlib.contextmanager
def locked_database(path):
    """Lock a database in another process, because a process loses its lock if it opens and closes the locked file."""
    script = (
        "import sqlite3, sys; d = sqlite3.connect(sys.argv[1], isolation_level=None); d.execute('BEGIN EXCLUSIVE'); "
        "print(flush=True); sys.stdin.read()"
    )
    writer = subprocess.Popen([sys.executable, "-c", script, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    writer.stdout.readline()
    yield {}
    writer.communicate()


@contextlib.contextmanager
def silent_input():
    """Connect standard input to an open pipe without data."""
    read_end, write_end = os.pipe()
    yield {"stdin": read_end}
    os.close(read_end)
    os.close(write_end)


@contextlib.contextmanager
def full_pipe(stream):
    """Connect standard output or standard error to a full pipe."""
    read_end, write_end = os.pipe()
    fcntl.fcntl(write_end, SET_PIPE_SIZE, PIPE_SIZE)
    os.set_blocking(write_end, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write_end, b"x" * PIPE_SIZE)
    os.set_blocking(write_end, True)
    yield {stream: write_end}
    os.close(write_end)
    os.close(read_end)


@contextlib.contextmanager
def terminal(is_stopped=False):
    """Give the program a terminal of its own. A stopped terminal shows nothing, as after Ctrl-S."""
    outer, inner = pty.openpty()
    if is_stopped:
        termios.tcflow(inner, termios.TCOOFF)

    def take_terminal():
        os.setsid()
        fcntl.ioctl(inner, termios.TIOCSCTTY, 0)

    yield {"stderr": inner, "preexec_fn": take_terminal}
    os.close(inner)
    os.close(outer)


def no_streams():
    """Return a context without streams, for a wait that the command itself creates."""
    return contextlib.nullcontext({})


@dataclasses.dataclass
class Wait:
    """A command that waits, and the context that makes it wait."""

    name: str
    # A context manager that creates the reason to wait. Its value has the streams of the program.
    context: object
    command: list
    # The expected exit codes in addition to the code of the signal.
    codes: tuple = ()


def waits(folder):
    """Yield all waits."""
    yield from lock_waits(folder)
    yield from password_waits()
    yield from terminal_waits()
    yield from input_waits()
    yield from output_waits()
    yield Wait(
        "the key derivation", no_streams(),
        ["backup", "phone", "-o", "new/", "--no-input", "--yes", *PASSWORD_OPTIONS])


def lock_waits(folder):
    """Yield waits for another process that has locked a device, the device folder, or a database."""
    add_item = [
        "item", "add", "phone", "--service", "s", "--account", "a", "--access-group", "ABCDE12345.org.example.x",
        "--secret-file", "secret", "--no-input"]
    yield Wait(
        "a device that another process has locked", locked_file(folder / "home/phone/lock"),
        [*add_item, "--wait", "60s"])
    yield Wait(
        "a device folder that another process has locked", locked_file(folder / "home"),
        ["device", "create", "new", "--no-input"])
    # Exit code 11 is also possible: the device is busy.
    yield Wait(
        "a database that another process writes", locked_database(folder / "home/phone/keychain-2.db"), add_item,
        codes=(11,))


def password_waits():
    """Yield waits for a password command."""
    for name, command in (("prints nothing", "sleep 60"), ("ignores SIGTERM", "trap '' TERM; sleep 60; sleep 60"),
                          ("has closed its output", "exec >&-; sleep 60"),
                          ("ignores SIGTERM with its output closed", "trap '' TERM; exec >&-; sleep 60; sleep 60")):
        yield Wait(
            f"a password command that {name}", no_streams(),
            ["verify", "b", "--no-input", "--password-command", command])


def terminal_waits():
    """Yield waits for the user of a terminal."""
    yield Wait("a password on a terminal", terminal(), ["verify", "b"])
    yield Wait("an answer on a terminal", terminal(), ["device", "erase", "phone"])
    yield Wait("a terminal that was stopped", terminal(is_stopped=True), ["verify", "b"])
    yield Wait(
        "progress on a terminal that was stopped", terminal(is_stopped=True),
        ["backup", "phone", "-o", "new/", *PASSWORD_OPTIONS, "--yes"])


def input_waits():
    """Yield waits for the writer of a named pipe or of standard input."""
    verify, paths = ["verify", "b", "--no-input"], ["verify", "--no-input", "--paths-from"]
    yield Wait("a named pipe for the password", no_streams(), [*verify, "--password-file", "password.fifo"])
    yield Wait("a named pipe for the list of paths", no_streams(), [*paths, "paths.fifo"])
    yield Wait("standard input for the password", silent_input(), [*verify, "--password-file", "-"])
    yield Wait("standard input for the list of paths", silent_input(), [*paths, "-"])
    yield Wait("standard input for a backup", silent_input(), ["inspect", "-", "--no-input"])
    yield Wait("standard input for a backup to verify", silent_input(), ["verify", "-", "--no-input"])
    yield Wait(
        "standard input for expectations", silent_input(),
        ["plan", "b", "--to", "other", "--expect", "-", "--no-input", *PASSWORD_OPTIONS])


def output_waits():
    """Yield waits for the reader of standard output or standard error."""
    yield Wait("a reader of the result", full_pipe("stdout"), ["explain", "device-bound"])
    yield Wait(
        "a reader of a long result", full_pipe("stdout"),
        ["inspect", "many.tar", "--list", "--json", "--no-input", *PASSWORD_OPTIONS])
    yield Wait("a reader of a backup", full_pipe("stdout"), ["convert", "b", "-o", "-", "--no-input"])
    yield Wait("a reader of a tar file", full_pipe("stdout"), ["convert", "many.tar", "-o", "-", "--no-input"])
    yield Wait(
        "a reader of the results for many backups", full_pipe("stdout"),
        ["verify", "b", "many.tar", "--format", "csv", "--no-input", *PASSWORD_OPTIONS])
    # The backup does not exist, which the message states.
    yield Wait(
        "a reader of the messages", full_pipe("stderr"), ["verify", "missing", "--no-input"], codes=(10,))


def files_without_locks(folder):
    """Return the digests of all files, except for pipes, lock files, device records and SQLite's own files."""
    return {
        name: content
        for name, content in files(folder).items()
        if not name.endswith(("/lock", "/device.json", "-wal", "-shm"))
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--only", default="", help="waits whose names begin with this")
    parser.add_argument("--signals", default="TERM,INT,HUP")
    parser.add_argument("--show", action="store_true", help="print the exit code and the seconds of each")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="keyhaul-signals-") as name:
        tester = SignalTester(arguments.program, pathlib.Path(name).resolve(), arguments.show)
        for signal_number in (signal.Signals[f"SIG{name}"] for name in arguments.signals.split(",")):
            for wait in waits(tester.folder):
                if wait.name.startswith(arguments.only):
                    with wait.context as streams:
                        tester.send(signal_number, wait, streams)
    print(f"{tester.count} signals; the longest wait ended after {tester.longest[0]:.2f} s ({tester.longest[1]})")
    return tester.checks.finish()


if __name__ == "__main__":
    sys.exit(main())
