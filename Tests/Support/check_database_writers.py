#!/usr/bin/env python3
"""Run every command that reads a keychain database while another process writes it, and count the exit codes.

    check_database_writers.py PROGRAM [--seconds 60]

The writer creates and removes journals and logs, with no, short and long pauses. It never changes an item. Every
command therefore has to exit with 0 and the result for an unchanged database, or with 11. Exit 1 if a check fails.
"""

import argparse
import collections
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
PAUSES = (0, 0.001, 0.03, 0.2)
# Members with the time of the run, or with the state of the log.
VOLATILE_MEMBERS = {"made", "digest", "log", "journal", "database", "warnings", "checksum"}


def write(paths, pause, stop):
    """Write to the databases until the event is set."""
    round_number = 0
    while not stop.is_set():
        for path in paths:
            connection = sqlite3.connect(path, isolation_level=None, timeout=30)
            connection.execute("PRAGMA journal_mode = " + ("WAL", "DELETE", "TRUNCATE", "PERSIST")[round_number % 4])
            for _ in range(1 + round_number % 3):
                connection.execute("UPDATE genp SET labl = labl")
            connection.close()
        round_number += 1
        time.sleep(pause)


def items(output):
    """Return the items in a command's document, as JSON texts."""
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=60)
    arguments = parser.parse_args()
    program, checks, codes = str(arguments.program.resolve()), Checks(), collections.Counter()
    with tempfile.TemporaryDirectory(prefix="keyhaul-writers-") as folder_name:
        folder = pathlib.Path(folder_name)

        def run(*arguments_of_command):
            process = subprocess.run(
                [program, *arguments_of_command, "--home", "home", "--no-input", "--json"], cwd=folder,
                stdin=subprocess.DEVNULL, capture_output=True, timeout=120, env=dict(os.environ, COLUMNS="200"))
            return process.returncode, process.stdout, process.stderr.decode("utf-8", "replace").strip()[-400:]

        (folder / "simulators" / "one").mkdir(parents=True)
        run("device", "create", "phone", "--from", "old-phone")
        run("device", "create", "new-phone", "--from", "new-phone")
        for path in ("sim.db", "rest.db", "simulators/one/keychain-2-debug.db"):
            run("device", "export", "phone", "-o", path, "--yes")
        results_at_rest = [run(*arguments_of_command) for arguments_of_command in READERS]
        for arguments_of_command, (code, _, error_output) in zip(READERS, results_at_rest):
            checks.check(code == 0, f"{' '.join(arguments_of_command)} at rest ended with {code}: {error_output}")
        for pause in PAUSES:
            stop = multiprocessing.Event()
            paths = [folder / "sim.db", folder / "simulators/one/keychain-2-debug.db"]
            writer = multiprocessing.Process(target=write, args=(paths, pause, stop))
            writer.start()
            end, round_number = time.perf_counter() + arguments.seconds / len(PAUSES), 0
            while time.perf_counter() < end:
                arguments_of_command, result_at_rest = (
                    READERS[round_number % len(READERS)], results_at_rest[round_number % len(READERS)])
                code, output, error_output = run(*arguments_of_command)
                codes[code] += 1
                context = f"{' '.join(arguments_of_command)} while a writer pauses {pause} s"
                # A list of Simulators has the reason for each that cannot be read, and exits with 3.
                is_list = (
                    arguments_of_command[:2] == ["simulator", "list"]
                    and code == 3
                    and b"it changed each time" in output
                )
                checks.check(code in (0, 11) or is_list, f"{context} ended with {code}: {error_output}")
                if code == 0:
                    checks.check(items(output) == items(result_at_rest[1]), f"{context} returned different items")
                round_number += 1
            stop.set()
            writer.join()
    print(
        f"{sum(codes.values())} commands during writes: "
        + ", ".join(f"{code}: {count}" for code, count in sorted(codes.items()))
    )
    checks.check(codes[0] > 0, "commands read the database between two changes")
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
