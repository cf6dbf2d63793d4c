#!/usr/bin/env python3
"""Compare how many rows per second a restore writes, and how many SQLite writes without Keyhaul.

    bench_restore.py PROGRAM [--items 100000] [--rounds 3] [--before PROGRAM]

Keyhaul runs a whole `keyhaul restore` to a new device: it decrypts each item, decides about it, and encrypts it for the
device. SQLite writes the same rows to the same tables and indexes, from memory, in one transaction, with the journal
mode and syncs of a device. The programs take turns. The figures are CPU times. Exit 1 if a goal is missed.
"""

import argparse
import contextlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

from bench_data import Workspace, parser, programs
from bench_files import timed
from figures import Figures

MIN_ROWS, MIN_RATIO = 35_000, 0.70
TABLES = ("genp", "inet", "cert", "keys")


def load(source, target):
    """Write the rows of one database to another.

    Return the CPU seconds and the number of rows. The number is 0 if the written rows differ.
    """
    source_database = sqlite3.connect(source)
    schema_query = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
    database = sqlite3.connect(target, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    database.execute("PRAGMA secure_delete = ON")
    for statement, in source_database.execute(schema_query):
        database.execute(statement)
    rows = {table: source_database.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}
    started = time.process_time()
    database.execute("BEGIN IMMEDIATE")
    for table, table_rows in rows.items():
        if table_rows:
            database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(table_rows[0]))})", table_rows)
    database.execute("COMMIT")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    seconds = time.process_time() - started
    database.close()
    # Read the rows back, to check that they were written.
    with contextlib.closing(sqlite3.connect(target)) as loaded:
        is_same = all(
            loaded.execute(f"SELECT * FROM {table}").fetchall() == table_rows for table, table_rows in rows.items()
        )
    return seconds, sum(map(len, rows.values())) if is_same else 0


def load_in_other_process(arguments, source, target):
    """Write the rows of a database with SQLite. Return the CPU seconds. End the benchmark if rows are missing."""
    command = [sys.executable, __file__, str(arguments.program), "--load", source, target]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    seconds, row_count = output.split()
    if int(row_count) != arguments.items:
        sys.exit(f"error: SQLite wrote {row_count} rows of the restored database, not {arguments.items}")
    return float(seconds)


def measure(arguments, workspace):
    """Return the CPU seconds of each restore by each build, and of SQLite."""
    workspace.create_backup(arguments.items)
    seconds = {}
    for _ in range(arguments.rounds):
        for name, program in programs(arguments).items():
            workspace.run("device", "create", "target")
            command = workspace.command(
                "restore", *workspace.backup_arguments("backup"), "--to", "target", "--yes",
                program=str(program.resolve()))
            seconds.setdefault(name, []).append(timed(command).cpu_seconds)
            if name == "keyhaul":
                restored, loaded = workspace.path("home/target/keychain-2.db"), workspace.path("loaded.db")
                seconds.setdefault("SQLite", []).append(load_in_other_process(arguments, restored, loaded))
            workspace.remove("home/target", "loaded.db", "loaded.db-wal", "loaded.db-shm")
    return seconds


def main():
    argument_parser = parser("Compare the speed of keyhaul restore with SQLite alone.", rounds=3, items=100_000)
    argument_parser.add_argument("--load", nargs=2, metavar=("SOURCE", "TARGET"), help=argparse.SUPPRESS)
    arguments = argument_parser.parse_args()
    if arguments.load:
        print(*load(*arguments.load))
        return 0
    with tempfile.TemporaryDirectory(prefix="keyhaul-bench-") as folder:
        seconds = measure(arguments, Workspace(arguments.program, folder))
    rates = {name: arguments.items / statistics.median(values) for name, values in seconds.items()}
    figures = Figures()
    comparison = f"SQLite alone: {rates['SQLite']:,.0f}"
    if "before" in rates:
        comparison += f"; before {rates['before']:,.0f}"
    figures.at_least(
        f"restore, {arguments.items:,} items: rows per second of CPU time", rates["keyhaul"], MIN_ROWS, "rows",
        comparison)
    figures.at_least(
        f"restore, {arguments.items:,} items: rows per second compared with SQLite alone",
        rates["keyhaul"] / rates["SQLite"], MIN_RATIO, "×", comparison)
    return figures.finish()


if __name__ == "__main__":
    sys.exit(main())
