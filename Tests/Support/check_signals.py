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

    def send(self, number, name, command, delay=0.6, codes=(), **streams):
        """Start the program, send the signal while it waits, and check how it ends."""
        context = f"{name}, {signal.Signals(number).name}"
        files_before = files_without_locks(self.folder)
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | streams
        process = subprocess.Popen([self.program, *map(str, command), "--home", "home"], cwd=self.folder, **streams)
        time.sleep(delay)
        check = self.checks.check
        check(process.poll() is None, f"{context}: it did not wait, but ended with {process.poll()}")
        started = time.perf_counter()
        process.send_signal(number)
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
        check(code in (128 + number, -number, *codes), f"{context}: ended with {code}")
        check(files_without_locks(self.folder) == files_before, f"{context}: changed something")

    def waits(self):
        """Yield each wait: its name, a context manager that creates it, the command, and arguments of `send`."""
        folder = self.folder

        @contextlib.contextmanager
        def locked_file(path):
            file = os.open(folder / path, os.O_RDONLY)
            fcntl.flock(file, fcntl.LOCK_EX)
            yield {}
            os.close(file)

        @contextlib.contextmanager
        def written_database():
            # In another process, because a process loses its lock if it opens and closes the locked file.
            script = (
                "import sqlite3, sys; d = sqlite3.connect(sys.argv[1], isolation_level=None); d.execute('BEGIN EXCLUSIVE'); "
                "print(flush=True); sys.stdin.read()"
            )
            writer = subprocess.Popen(
                [sys.executable, "-c", script, folder / "home/phone/keychain-2.db"], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE)
            writer.stdout.readline()
            yield {}
            writer.communicate()

        @contextlib.contextmanager
        def silent_pipe(stream):
            """Pass an open pipe without data."""
            read_end, write_end = os.pipe()
            yield {stream: read_end} if stream == "stdin" else {"pass_fds": [read_end]}
            os.close(read_end)
            os.close(write_end)

        @contextlib.contextmanager
        def full_pipe(stream):
            """Pass a full pipe."""
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
            outer, inner = pty.openpty()
            if is_stopped:
                termios.tcflow(inner, termios.TCOOFF)

            def take_terminal():
                os.setsid()
                fcntl.ioctl(inner, termios.TIOCSCTTY, 0)

            yield {"stderr": inner, "preexec_fn": take_terminal}
            os.close(inner)
            os.close(outer)

        @contextlib.contextmanager
        def no_context():
            yield {}

        add = ["item", "add", "phone", "--service", "s", "--account", "a", "--access-group", "ABCDE12345.org.example.x",
               "--secret-file", "secret", "--no-input"]
        verify = ["verify", "b", "--no-input"]
        yield "a device that another process has locked", locked_file("home/phone/lock"), [*add, "--wait", "60s"], {}
        yield (
            "a device folder that another process has locked", locked_file("home"),
            ["device", "create", "new", "--no-input"], {})
        # Exit code 11 is also possible: the device is busy.
        yield "a database that another process writes", written_database(), add, {"codes": (11,)}
        for name, command in (("prints nothing", "sleep 60"), ("ignores SIGTERM", "trap '' TERM; sleep 60; sleep 60"),
                              ("has closed its output", "exec >&-; sleep 60"),
                              ("ignores SIGTERM with its output closed", "trap '' TERM; exec >&-; sleep 60; sleep 60")):
            yield f"a password command that {name}", no_context(), [*verify, "--password-command", command], {}
        yield "a password on a terminal", terminal(), ["verify", "b"], {}
        yield "an answer on a terminal", terminal(), ["device", "erase", "phone"], {}
        yield "a terminal that was stopped", terminal(is_stopped=True), ["verify", "b"], {}
        yield (
            "progress on a terminal that was stopped", terminal(is_stopped=True),
            ["backup", "phone", "-o", "new/", *PASSWORD_OPTIONS, "--yes"], {})
        yield "a named pipe for the password", no_context(), [*verify, "--password-file", "password.fifo"], {}
        yield (
            "a named pipe for the list of paths", no_context(), ["verify", "--paths-from", "paths.fifo", "--no-input"],
            {})
        yield "standard input for the password", silent_pipe("stdin"), [*verify, "--password-file", "-"], {}
        yield (
            "standard input for the list of paths", silent_pipe("stdin"), ["verify", "--paths-from", "-", "--no-input"],
            {})
        yield "standard input for a backup", silent_pipe("stdin"), ["inspect", "-", "--no-input"], {}
        yield "standard input for a backup to verify", silent_pipe("stdin"), ["verify", "-", "--no-input"], {}
        yield (
            "standard input for expectations", silent_pipe("stdin"),
            ["plan", "b", "--to", "other", "--expect", "-", "--no-input", *PASSWORD_OPTIONS], {})
        yield "a reader of the result", full_pipe("stdout"), ["explain", "device-bound"], {}
        yield (
            "a reader of a long result", full_pipe("stdout"),
            ["inspect", "many.tar", "--list", "--json", "--no-input", *PASSWORD_OPTIONS], {})
        yield "a reader of a backup", full_pipe("stdout"), ["convert", "b", "-o", "-", "--no-input"], {}
        yield "a reader of a tar file", full_pipe("stdout"), ["convert", "many.tar", "-o", "-", "--no-input"], {}
        yield (
            "a reader of the results for many backups", full_pipe("stdout"),
            ["verify", "b", "many.tar", "--format", "csv", "--no-input", *PASSWORD_OPTIONS], {})
        yield "a reader of the messages", full_pipe("stderr"), ["verify", "missing", "--no-input"], {"codes": (10,)}
        yield (
            "the key derivation", no_context(),
            ["backup", "phone", "-o", "new/", "--no-input", "--yes", *PASSWORD_OPTIONS], {})


def files_without_locks(folder):
    """Return the digests of all files, except for pipes, locks, device records and SQLite's own files."""
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
        for number in (signal.Signals[f"SIG{name}"] for name in arguments.signals.split(",")):
            for wait, context_manager, command, options in tester.waits():
                if wait.startswith(arguments.only):
                    with context_manager as streams:
                        tester.send(number, wait, command, **streams, **options)
    print(f"{tester.count} signals; the longest wait ended after {tester.longest[0]:.2f} s ({tester.longest[1]})")
    return tester.checks.finish()


if __name__ == "__main__":
    sys.exit(main())
