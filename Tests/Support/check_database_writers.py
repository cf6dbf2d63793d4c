#!/usr/bin/env python3
"""Run every command that reads a keychain database while another process writes it, and count the exit codes.

    check_database_writers.py PROGRAM [--seconds 60]

The writer creates and removes journals and logs, with no, short and long pauses. It never changes an item. Every
command therefore has to exit with 0 and the result for an unchanged database, or with 11. Exit 1 if a check fails.
"""

import argparse
import collections
import itertools
import json
import multiprocessing
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import time

from checks import Checks

READERS = (
    ["inspect", "sim.db"], ["inspect", "sim.db", "--list"], ["item", "find", "sim.db"], ["verify", "sim.db"],
    ["export", "sim.db", "-o", "-"], ["plan", "sim.db", "--to", "new-phone"], ["diff", "sim.db", "rest.db"],
    ["why", "sim.db", "--item", "0", "--to", "new-phone"], ["simulator", "list", "simulators"],
    ["simulator", "seed", "sim.db", "--from", "rest.db", "--dry-run"], ["inspect", "simulators/one"],
)
WRITTEN_DATABASES = ("sim.db", "simulators/one/keychain-2-debug.db")
# The seconds between two writes.
PAUSES = (0, 0.001, 0.03, 0.2)
JOURNAL_MODES = ("WAL", "DELETE", "TRUNCATE", "PERSIST")
# Members with the time of the run, or with the state of the log.
VOLATILE_MEMBERS = {"made", "digest", "log", "journal", "database", "warnings", "checksum"}


def write(paths, pause, stop):
    """Write to the databases until the event is set."""
    round_number = 0
    while not stop.is_set():
        for path in paths:
            connection = sqlite3.connect(path, isolation_level=None, timeout=30)
            connection.execute(f"PRAGMA journal_mode = {JOURNAL_MODES[round_number % len(JOURNAL_MODES)]}")
            for _ in range(1 + round_number % 3):
                connection.execute("UPDATE genp SET labl = labl")
            connection.close()
        round_number += 1
        time.sleep(pause)


def items(output):
    """Return the items in a command's document, as JSON strings."""
    found = []

    def collect(value):
        """Add the items in a value of the document."""
        if isinstance(value, dict):
            if "kind" in value and ("access_group" in value or "attributes" in value):
                members = {name: member for name, member in value.items() if name not in VOLATILE_MEMBERS}
                found.append(json.dumps(members, sort_keys=True))
            value = list(value.values())
        for element in value if isinstance(value, list) else []:
            collect(element)

    collect(json.loads(output) if output.strip() else None)
    return sorted(found)


class WriterTest:
    """Commands that read databases, alone and while another process writes the databases."""

    def __init__(self, program, folder):
        self.program, self.folder = str(program.resolve()), folder
        self.checks, self.codes = Checks(), collections.Counter()
        (folder / "simulators" / "one").mkdir(parents=True)
        self.run("device", "create", "phone", "--from", "old-phone")
        self.run("device", "create", "new-phone", "--from", "new-phone")
        for path in (*WRITTEN_DATABASES, "rest.db"):
            self.run("device", "export", "phone", "-o", path, "--yes")
        self.items_at_rest = [self.read_at_rest(command) for command in READERS]

    def run(self, *command):
        """Run a command. Return its exit code, its output, and the end of its error output."""
        process = subprocess.run(
            [self.program, *command, "--home", "home", "--no-input", "--json"], cwd=self.folder,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=120, env=dict(os.environ, COLUMNS="200"))
        return process.returncode, process.stdout, process.stderr.decode("utf-8", "replace").strip()[-400:]

    def read_at_rest(self, command):
        """Return the items that a command reads while no process writes."""
        code, output, error_output = self.run(*command)
        self.checks.check(code == 0, f"{' '.join(command)} at rest ended with {code}: {error_output}")
        return items(output)

    def read_during_writes(self, pause, seconds):
        """Run the commands in turn for some seconds, while another process writes with this pause."""
        stop = multiprocessing.Event()
        paths = [self.folder / name for name in WRITTEN_DATABASES]
        writer = multiprocessing.Process(target=write, args=(paths, pause, stop))
        writer.start()
        end = time.perf_counter() + seconds
        for command, expected_items in itertools.cycle(zip(READERS, self.items_at_rest)):
            if time.perf_counter() >= end:
                break
            self.check_command(command, expected_items, f"{' '.join(command)} while a writer pauses {pause} s")
        stop.set()
        writer.join()

    def check_command(self, command, expected_items, context):
        """Check the result of one command during writes."""
        code, output, error_output = self.run(*command)
        self.codes[code] += 1
        # `simulator list` prints the reason for each Simulator that cannot be read, and exits with 3.
        is_partial_list = (
            command[:2] == ["simulator", "list"] and code == 3 and b"it changed each time" in output
        )
        self.checks.check(code in (0, 11) or is_partial_list, f"{context} ended with {code}: {error_output}")
        if code == 0:
            self.checks.check(items(output) == expected_items, f"{context} returned different items")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=60)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="keyhaul-writers-") as folder:
        test = WriterTest(arguments.program, pathlib.Path(folder))
        for pause in PAUSES:
            test.read_during_writes(pause, arguments.seconds / len(PAUSES))
    counts = ", ".join(f"{code}: {count}" for code, count in sorted(test.codes.items()))
    print(f"{sum(test.codes.values())} commands during writes: {counts}")
    test.checks.check(test.codes[0] > 0, "commands read the database between two changes")
    return test.checks.finish()


if __name__ == "__main__":
    sys.exit(main())
