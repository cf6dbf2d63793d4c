#!/usr/bin/env python3
"""How many rows a second a restore writes, beside SQLite alone: the same rows into the same tables with the same indexes.

    bench_restore.py PROGRAM [--items 100000] [--rounds 3] [--before PROGRAM]

Ours is the whole `keyhaul restore` onto a new device: it opens each item, seals it for the device and decides about it. SQLite
gets the finished rows from memory in one transaction, its indexes kept row by row, with the device's journal and syncs. Runs are in turns; the figures are of
processor seconds. Exit 1 where a target is missed.
"""

import argparse
import contextlib
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

from bench_files import timed
from bench_shop import Shop, parser, programs
from figures import Figures

LEAST_ROWS, LEAST_RATIO = 35_000, 0.70
TABLES = ("genp", "inet", "cert", "keys")


def load(source, target):
    """Seconds of the processor for the rows of one database, written into another one."""
    finished = sqlite3.connect(source)
    own = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
    database = sqlite3.connect(target, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    database.execute("PRAGMA secure_delete = ON")
    for statement, in finished.execute(own):
        database.execute(statement)
    rows = {table: finished.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}
    started = time.process_time()
    database.execute("BEGIN IMMEDIATE")
    for table, of in rows.items():
        if of:
            database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(of[0]))})", of)
    database.execute("COMMIT")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    taken = time.process_time() - started
    database.close()
    # Read again: what was handed over says nothing of what was written.
    with contextlib.closing(sqlite3.connect(target)) as loaded:
        is_same = all(loaded.execute(f"SELECT * FROM {table}").fetchall() == of for table, of in rows.items())
    return taken, sum(map(len, rows.values())) if is_same else 0


def main():
    options = parser("Time keyhaul restore beside SQLite alone.", rounds=3, items=100_000)
    options.add_argument("--load", nargs=2, metavar=("SOURCE", "TARGET"), help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.load:
        print(*load(*arguments.load))
        return 0
    builds = programs(arguments)
    seconds = {}
    with tempfile.TemporaryDirectory(prefix="keyhaul-bench-") as folder:
        shop = Shop(arguments.program, folder)
        shop.stock(arguments.items)
        for _ in range(arguments.rounds):
            for name, program in builds.items():
                shop.run("device", "create", "target")
                command = shop.command("restore", *shop.opened("backup"), "--to", "target", "--yes", program=str(program.resolve()))
                seconds.setdefault(name, []).append(timed(command).processor)
                restored = shop.path("home/target/keychain-2.db")
                if name == "keyhaul":
                    loading = [sys.executable, __file__, str(arguments.program), "--load", restored, shop.path("loaded.db")]
                    said = subprocess.run(loading, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
                    if int(said[1]) != arguments.items:
                        sys.exit(f"error: of the restored database SQLite wrote {said[1]} rows, not {arguments.items}")
                    seconds.setdefault("SQLite", []).append(float(said[0]))
                shop.remove("home/target", "loaded.db", "loaded.db-wal", "loaded.db-shm")
    rates = {name: arguments.items / statistics.median(of) for name, of in seconds.items()}
    figures = Figures()
    beside = f"SQLite alone: {rates['SQLite']:,.0f}" + (f"; before {rates['before']:,.0f}" if "before" in rates else "")
    figures.at_least(
        f"restore, {arguments.items:,} items: rows per second of CPU time", rates["keyhaul"], LEAST_ROWS, "rows", beside)
    figures.at_least(
        f"restore, {arguments.items:,} items: rows per second compared with SQLite alone", rates["keyhaul"] / rates["SQLite"], LEAST_RATIO,
        "×", beside)
    return figures.conclude()


if __name__ == "__main__":
    sys.exit(main())
