#!/usr/bin/env python3
"""Runs every command that reads a keychain database while another process writes it, and counts how the commands end.

    check_database_writers.py PROGRAM [--seconds 60]

The writer creates and removes journals and logs, with no, short and long pauses. It never changes an item. Every command must
therefore exit with 0 and the result of a database that nothing changes, or with 11. Exit 1 if a check fails.
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
# Times of runs, and lines that depend on the state of the log.
FLEETING = {"made", "digest", "log", "journal", "database", "warnings", "checksum"}


def write(paths, pause, is_over):
    turn = 0
    while not is_over.is_set():
        for path in paths:
            base = sqlite3.connect(path, isolation_level=None, timeout=30)
            base.execute("PRAGMA journal_mode = " + ("WAL", "DELETE", "TRUNCATE", "PERSIST")[turn % 4])
            for _ in range(1 + turn % 3):
                base.execute("UPDATE genp SET labl = labl")
            base.close()
        turn += 1
        time.sleep(pause)


def items(output):
    """Returns every object in a command's document that has a kind: the items."""
    found = []

    def walk(value):
        if isinstance(value, dict):
            if "kind" in value and ("access_group" in value or "attributes" in value):
                found.append(json.dumps({name: part for name, part in value.items() if name not in FLEETING}, sort_keys=True))
            value = list(value.values())
        for part in value if isinstance(value, list) else []:
            walk(part)

    walk(json.loads(output) if output.strip() else None)
    return sorted(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=60)
    arguments = parser.parse_args()
    program, checks, codes = str(arguments.program.resolve()), Checks(), collections.Counter()
    with tempfile.TemporaryDirectory(prefix="keyhaul-writers-") as name:
        folder = pathlib.Path(name)

        def run(*words):
            done = subprocess.run(
                [program, *words, "--home", "home", "--no-input", "--json"], cwd=folder, stdin=subprocess.DEVNULL,
                capture_output=True, timeout=120, env=dict(os.environ, COLUMNS="200"))
            return done.returncode, done.stdout, done.stderr.decode("utf-8", "replace").strip()[-400:]

        (folder / "simulators" / "one").mkdir(parents=True)
        run("device", "create", "phone", "--from", "old-phone")
        run("device", "create", "new-phone", "--from", "new-phone")
        for path in ("sim.db", "rest.db", "simulators/one/keychain-2-debug.db"):
            run("device", "export", "phone", "-o", path, "--yes")
        at_rest = [run(*words) for words in READERS]
        for words, (code, _, said) in zip(READERS, at_rest):
            checks.check(code == 0, f"{' '.join(words)} at rest ended with {code}: {said}")
        for pause in PAUSES:
            is_over = multiprocessing.Event()
            paths = [folder / "sim.db", folder / "simulators/one/keychain-2-debug.db"]
            writer = multiprocessing.Process(target=write, args=(paths, pause, is_over))
            writer.start()
            end, turn = time.perf_counter() + arguments.seconds / len(PAUSES), 0
            while time.perf_counter() < end:
                words, rest = READERS[turn % len(READERS)], at_rest[turn % len(READERS)]
                code, output, said = run(*words)
                codes[code] += 1
                where = f"{' '.join(words)} beside a writer that pauses {pause} s"
                # A list of Simulators gives the reason for each that cannot be read, and exits with 3.
                is_list = words[:2] == ["simulator", "list"] and code == 3 and b"it changed each time" in output
                checks.check(code in (0, 11) or is_list, f"{where} ended with {code}: {said}")
                if code == 0:
                    checks.check(items(output) == items(rest[1]), f"{where} gave other items")
                turn += 1
            is_over.set()
            writer.join()
    print(f"{sum(codes.values())} commands beside a writer: " + ", ".join(f"{code}: {count}" for code, count in sorted(codes.items())))
    checks.check(codes[0] > 0, "commands read the database between two changes")
    return checks.conclude()


if __name__ == "__main__":
    sys.exit(main())
