#!/usr/bin/env python3
"""Save, change and restore Simulators' keychains, and compare the files byte by byte.

    check_simulators.py PROGRAM [--count 50] [--seed WORD]

Python writes a Simulator's database at random, with or without a write-ahead log, and Keyhaul saves it with `simulator
snapshot`. Then the database changes at random: Keyhaul adds, changes or deletes items, Python deletes rows and leaves
them in a log, or another database takes its place. After `simulator restore`, the database has to have the bytes of the
snapshot, no log with frames may be left, and SQLite (in Python) has to read the rows of the saved state. A second
restore changes nothing. Exit 1 if a check fails.
"""

import argparse
import collections
import os
import pathlib
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile

from checks import Checks
from keychain_backup import databases, dumps

KEYCHAIN_FOLDER = pathlib.Path("Devices/UDID/data/Library/Keychains")
NAME = "keychain-2-debug.db"
STORES = ("ff", "08")


class Simulator:
    """A Simulator's folder, and the program."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.database = folder / KEYCHAIN_FOLDER / NAME
        self.database.parent.mkdir(parents=True)

    def run(self, *arguments):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KEYHAUL_")}
        return subprocess.run(
            [str(self.program), *arguments, "--home", str(self.folder / "home"), "--no-input"], cwd=self.folder,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, env=environment, check=False)

    @property
    def log(self):
        return self.database.with_name(NAME + "-wal")

    def journals(self):
        """Return the files beside the database that are not empty, except for the index of the log (-shm)."""
        return sorted(
            path.name for path in self.database.parent.iterdir()
            if path.name.startswith(NAME + "-") and not path.name.endswith("-shm") and path.stat().st_size)

    def files(self):
        """Return the contents of the database and the files beside it."""
        return {path: path.read_bytes() for path in self.database.parent.iterdir()}

    def rows(self):
        """Return every row of every table as SQLite reads it from a copy, with its log."""
        with tempfile.TemporaryDirectory() as copy:
            for path in self.database.parent.iterdir():
                if path.is_file() and not path.name.endswith("-shm"):
                    shutil.copy2(path, copy)
            connection = sqlite3.connect(pathlib.Path(copy) / NAME)
            try:
                tables = [name for (name,) in connection.execute(
                    "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
                return {name: connection.execute(f'SELECT rowid, * FROM "{name}" ORDER BY rowid').fetchall()
                        for name in tables}
            finally:
                connection.close()

    def write(self, number, rng, has_log):
        """Write a new database. With `has_log`, its last items are in a log. Return the number of items."""
        for path in list(self.database.parent.iterdir()):
            path.unlink()
        items = dumps.make_items(number, count=rng.randrange(2, 30))
        log_item_count = rng.randrange(1, len(items) + 1) if has_log else 0
        databases.Writer(number, STORES[rng.randrange(len(STORES))]).write(
            str(self.database), items, log_item_count)
        return len(items)

    def change(self, rng):
        """Change the database in a random way. Return the kind of change."""
        kind = rng.choice(("keyhaul adds", "keyhaul deletes", "python, with a log", "python", "another database"))
        if kind == "keyhaul adds":
            for count in range(rng.randrange(1, 4)):
                secret = self.folder / "secret"
                secret.write_text("plum-orchard\n", encoding="utf-8")
                secret.chmod(0o600)
                self.run("item", "add", "Devices/UDID", "--service", f"added {rng.random()} {count}", "--account", "anna",
                         "--access-group", "TEAM.org.example.chat", "--secret-file", "secret", "--yes")
        elif kind == "keyhaul deletes":
            for option in ("--service", "--server", "--label"):
                self.run("item", "delete", "Devices/UDID", option, "*", "--yes")
        elif kind == "another database":
            self.write(rng.randrange(10**6, 2 * 10**6), rng, rng.random() < 0.5)
        else:
            self._change_with_python(rng, leaves_log=kind != "python")
        return kind

    def _change_with_python(self, rng, leaves_log):
        """Delete random rows, and leave them in a log or not."""
        connection = sqlite3.connect(self.database)
        connection.execute(f"PRAGMA journal_mode = {'WAL' if leaves_log else 'DELETE'}")
        rows = [(table, row) for table in ("genp", "inet", "cert", "keys")
                for (row,) in connection.execute(f"SELECT rowid FROM {table}").fetchall()]
        for table, row in rng.sample(rows, rng.randrange(1, len(rows) + 1)):
            connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (row,))
        connection.commit()
        if leaves_log:
            # Closing the connection would write the log into the database, so the files are read now and written back.
            contents = {path: path.read_bytes() for path in (self.database, self.log) if path.is_file()}
            connection.close()
            for path, content in contents.items():
                path.write_bytes(content)
        else:
            connection.close()


def check_state(checks, program, folder, number, seed):
    """Save a random database, and change and restore it twice. Return the kinds of changes."""
    rng = random.Random(f"{seed} {number}")
    simulator = Simulator(program, folder)
    has_log = number % 2 == 1
    count = simulator.write(number, rng, has_log)
    name = f"state {number} ({count} items, {'a log' if has_log else 'no log'})"
    checks.check(bool(simulator.journals()) == has_log, f"{name}: the journals are {simulator.journals()}")
    saved_rows = simulator.rows()
    before = simulator.files()
    saved = simulator.run("simulator", "snapshot", "Devices/UDID", "-o", "saved.db")
    checks.check(saved.returncode == 0, f"{name}: snapshot: {saved.returncode} {saved.stderr[-300:]}")
    if saved.returncode != 0:
        return []
    checks.check(simulator.files() == before, f"{name}: snapshot changed the Simulator's files")
    snapshot_content = (folder / "saved.db").read_bytes()
    kinds = []
    for round_number in range(2):
        kinds.append(simulator.change(rng))
        context = f"{name}, changed by {kinds[-1]} (round {round_number})"
        checks.check(simulator.rows() != saved_rows, f"{context}: nothing changed before the restore")
        restored = simulator.run("simulator", "restore", "Devices/UDID", "saved.db", "--yes")
        checks.check(restored.returncode == 0, f"{context}: restore: {restored.returncode} {restored.stderr[-300:]}")
        checks.check(
            simulator.database.read_bytes() == snapshot_content, f"{context}: the database differs from the snapshot")
        checks.check(not simulator.journals(), f"{context}: left {simulator.journals()}")
        checks.check((folder / "saved.db").read_bytes() == snapshot_content, f"{context}: the snapshot itself changed")
        checks.check(simulator.rows() == saved_rows, f"{context}: SQLite reads other rows than before")
        again = simulator.run("simulator", "restore", "Devices/UDID", "saved.db", "--yes")
        checks.check(
            again.returncode == 0 and simulator.database.read_bytes() == snapshot_content,
            f"{context}: a second restore differs")
    checks.check(
        simulator.run("verify", "Devices/UDID").returncode == 0, f"{name}: verify finds a fault after the restore")
    return kinds


def main():
    parser = argparse.ArgumentParser(description="Compare Simulators' keychains with their snapshots after a restore.")
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=50, help="the number of random states (default: %(default)s)")
    parser.add_argument("--seed", default="simulators", help="another word selects other states")
    arguments = parser.parse_args()
    checks = Checks()
    kinds = collections.Counter()
    for number in range(arguments.count):
        with tempfile.TemporaryDirectory(prefix="keyhaul-simulator-") as folder:
            kinds.update(
                check_state(checks, arguments.program.resolve(), pathlib.Path(folder), number, arguments.seed))
    summary = ", ".join(f"{count} by {kind}" for kind, count in sorted(kinds.items()))
    print(f"{arguments.count} states, {arguments.count // 2} of them with a log; changes: {summary}")
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
