#!/usr/bin/env python3
"""Sends a signal during each wait of the program and during long work. It must end within two seconds and change nothing.

    check_signals.py PROGRAM [--only WAIT] [--signals TERM,INT,HUP]

The waits are for:

- a device or device folder that another process locks, and a database that another process writes;
- a password command that prints nothing, does not end, or ignores SIGTERM;
- a terminal, standard input, and named pipes without a writer;
- a reader of standard output or standard error, and a terminal that was stopped with Ctrl-S;
- the key of a password.

The program must still run when the signal is sent. Exit 1 if a check fails.
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

from bench_shop import describe
from checks import Checks
from kill_verbs import files

SECONDS = 2
# Linux: F_SETPIPE_SZ, for a pipe that is full at once.
SET_PIPE_SIZE, PIPE_SIZE = 1031, 4096
KEY = ["--password-file", "password"]


class Waits:
    def __init__(self, program, folder, shows):
        self.program, self.folder, self.checks, self.shows = str(program.resolve()), folder, Checks(), shows
        self.count, self.longest = 0, (0.0, "")
        for name, text in (("password", "a password\n"), ("secret", "x")):
            (folder / name).touch(mode=0o600)
            (folder / name).write_text(text, encoding="utf-8")
        describe(folder / "many.json", 3_000)
        for words in (["device", "create", "phone", "--from", "old-phone"], ["device", "create", "other"],
                      ["device", "create", "many", "--from", "many.json"],
                      ["backup", "phone", "-o", "b/", *KEY, "--rounds", "1", "--yes"],
                      ["backup", "many", "-o", "many.tar", *KEY, "--rounds", "1", "--yes"]):
            subprocess.run([self.program, *words, "--home", "home", "--no-input"], cwd=folder, check=True, capture_output=True)
        for name in ("password.fifo", "paths.fifo"):
            os.mkfifo(folder / name, 0o600)

    def send(self, number, name, words, before=0.6, codes=(), **streams):
        """Starts the program, sends the signal during its wait, and checks how it ends."""
        where = f"{name}, {signal.Signals(number).name}"
        seen = files_without_locks(self.folder)
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | streams
        process = subprocess.Popen([self.program, *map(str, words), "--home", "home"], cwd=self.folder, **streams)
        time.sleep(before)
        check = self.checks.check
        check(process.poll() is None, f"{where}: it did not wait, and ended with {process.poll()}")
        started = time.perf_counter()
        process.send_signal(number)
        try:
            code = process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
            check(False, f"{where}: does not end")
        seconds = time.perf_counter() - started
        self.count += 1
        self.longest = max(self.longest, (seconds, where))
        if self.shows:
            print(f"{where}: {code} after {seconds:.2f} s")
        check(seconds <= SECONDS, f"{where}: ended after {seconds:.1f} s")
        check(code in (128 + number, -number, *codes), f"{where}: ended with {code}")
        check(files_without_locks(self.folder) == seen, f"{where}: changed something")

    def waits(self):
        """Yields the name of each wait, the code that creates it, and the command."""
        folder = self.folder

        @contextlib.contextmanager
        def locked(path):
            file = os.open(folder / path, os.O_RDONLY)
            fcntl.flock(file, fcntl.LOCK_EX)
            yield {}
            os.close(file)

        @contextlib.contextmanager
        def written():
            # In its own process, because a process that opens and closes a locked file loses its lock.
            text = ("import sqlite3, sys; d = sqlite3.connect(sys.argv[1], isolation_level=None); d.execute('BEGIN EXCLUSIVE'); "
                    "print(flush=True); sys.stdin.read()")
            other = subprocess.Popen(
                [sys.executable, "-c", text, folder / "home/phone/keychain-2.db"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            other.stdout.readline()
            yield {}
            other.communicate()

        @contextlib.contextmanager
        def silent(stream):
            """An open pipe without data."""
            reading, writing = os.pipe()
            yield {stream: reading} if stream == "stdin" else {"pass_fds": [reading]}
            os.close(reading)
            os.close(writing)

        @contextlib.contextmanager
        def full(stream):
            """A full pipe."""
            reading, writing = os.pipe()
            fcntl.fcntl(writing, SET_PIPE_SIZE, PIPE_SIZE)
            os.set_blocking(writing, False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(writing, b"x" * PIPE_SIZE)
            os.set_blocking(writing, True)
            yield {stream: writing}
            os.close(writing)
            os.close(reading)

        @contextlib.contextmanager
        def terminal(stops=False):
            outer, inner = pty.openpty()
            if stops:
                termios.tcflow(inner, termios.TCOOFF)

            def own():
                os.setsid()
                fcntl.ioctl(inner, termios.TIOCSCTTY, 0)

            yield {"stderr": inner, "preexec_fn": own}
            os.close(inner)
            os.close(outer)

        @contextlib.contextmanager
        def nothing():
            yield {}

        add = ["item", "add", "phone", "--service", "s", "--account", "a", "--access-group", "ABCDE12345.org.example.x",
               "--secret-file", "secret", "--no-input"]
        verify = ["verify", "b", "--no-input"]
        yield "a device that another process holds", locked("home/phone/lock"), [*add, "--wait", "60s"], {}
        yield "a folder of devices that another process holds", locked("home"), ["device", "create", "new", "--no-input"], {}
        # The result is "in use". A device's revision increases before its first change.
        yield "a database that another process writes", written(), add, {"codes": (11,)}
        for name, command in (("says nothing", "sleep 60"), ("ignores SIGTERM", "trap '' TERM; sleep 60; sleep 60"),
                              ("has closed its output", "exec >&-; sleep 60"),
                              ("ignores SIGTERM with its output closed", "trap '' TERM; exec >&-; sleep 60; sleep 60")):
            yield f"a password command that {name}", nothing(), [*verify, "--password-command", command], {}
        yield "a password on a terminal", terminal(), ["verify", "b"], {}
        yield "an answer on a terminal", terminal(), ["device", "erase", "phone"], {}
        yield "a terminal that was stopped", terminal(stops=True), ["verify", "b"], {}
        yield "progress on a terminal that was stopped", terminal(stops=True), ["backup", "phone", "-o", "new/", *KEY, "--yes"], {}
        yield "a pipe with a name for the password", nothing(), [*verify, "--password-file", "password.fifo"], {}
        yield "a pipe with a name for the list of paths", nothing(), ["verify", "--paths-from", "paths.fifo", "--no-input"], {}
        yield "standard input for the password", silent("stdin"), [*verify, "--password-file", "-"], {}
        yield "standard input for the list of paths", silent("stdin"), ["verify", "--paths-from", "-", "--no-input"], {}
        yield "standard input for a backup", silent("stdin"), ["inspect", "-", "--no-input"], {}
        yield "standard input for a backup to verify", silent("stdin"), ["verify", "-", "--no-input"], {}
        yield "standard input for expectations", silent("stdin"), ["plan", "b", "--to", "other", "--expect", "-", "--no-input", *KEY], {}
        yield "a reader of the result", full("stdout"), ["explain", "device-bound"], {}
        yield "a reader of a long result", full("stdout"), ["inspect", "many.tar", "--list", "--json", "--no-input", *KEY], {}
        yield "a reader of a backup", full("stdout"), ["convert", "b", "-o", "-", "--no-input"], {}
        yield "a reader of a backup in one file", full("stdout"), ["convert", "many.tar", "-o", "-", "--no-input"], {}
        yield "a reader of the result about many", full("stdout"), ["verify", "b", "many.tar", "--format", "csv", "--no-input", *KEY], {}
        yield "a reader of the messages", full("stderr"), ["verify", "missing", "--no-input"], {"codes": (10,)}
        yield "the key of a password", nothing(), ["backup", "phone", "-o", "new/", "--no-input", "--yes", *KEY], {}


def files_without_locks(folder):
    """Returns digests of all files but pipes, a device's lock and record, and a database's two SQLite files."""
    return {name: content for name, content in files(folder).items() if not name.endswith(("/lock", "/device.json", "-wal", "-shm"))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--only", default="", help="waits whose names begin so")
    parser.add_argument("--signals", default="TERM,INT,HUP")
    parser.add_argument("--show", action="store_true", help="name each with its exit code and its seconds")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="keyhaul-signals-") as name:
        waits = Waits(arguments.program, pathlib.Path(name).resolve(), arguments.show)
        for number in (signal.Signals[f"SIG{word}"] for word in arguments.signals.split(",")):
            for wait, made, words, more in waits.waits():
                if wait.startswith(arguments.only):
                    with made as streams:
                        waits.send(number, wait, words, **streams, **more)
    print(f"{waits.count} signals; the longest wait ended after {waits.longest[0]:.2f} s ({waits.longest[1]})")
    return waits.checks.conclude()


if __name__ == "__main__":
    sys.exit(main())
