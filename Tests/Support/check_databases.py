#!/usr/bin/env python3
"""Run Keyhaul on random keychain databases, and compare the items that it reads with the items that Python wrote.

    check_databases.py --keyhaul .build/release/keyhaul [--count 200]

A database depends only on its number. It has items of all tables in versions 7 and 8, and the keys of an old or new
Simulator, or keys wrapped under class keys. Some have their last items in the write-ahead log. Python's reader also
reads the Simulator databases. `verify` has to find no fault, `export` has to return every item, and no file may change.
Then single faults are checked: changed bytes and columns, a trigger, and a missing table. Exit 1 if a check fails.
"""

import argparse
import base64
import json
import pathlib
import random
import sqlite3
import sys
import tempfile

from check_dumps import Program, decoded_value, expected_outcome, expected_value
from checks import Checks
from keychain_backup import apple_der, databases, dumps

# A new and an old Simulator, named for the byte that each appends to its keys, and a device with class keys.
STORES = ("ff", "08", "class")
# Attributes that the keychain sets itself.
BOOKKEEPING = ("persistref", "musr", "sync", "tomb", "sha1")


def snapshot(folder):
    """Return the contents and modification time of each file in a folder."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def key_options(writer, folder, name):
    """Return the options with the class keys of a device's database."""
    if writer.store != "class":
        return []
    path = folder / f"{name}.keys"
    path.write_text(json.dumps({str(number): key.hex() for number, key in writer.class_keys.items()}))
    path.chmod(0o600)
    return ["--class-keys-file", str(path)]


def printed_value(value):
    """Return a value as Keyhaul prints it."""
    return value.rfc3339 if isinstance(value, apple_der.Moment) else expected_value(value)


class DatabaseTest:
    """One random database, and the checks of the commands that read it."""

    def __init__(self, checks, program, folder, number):
        self.checks, self.program, self.number = checks, program, number
        rng = random.Random(f"check {number}")
        items = dumps.make_items(number, count=rng.randrange(1, 30))
        self.expected = dumps.report_order(items)
        self.writer = databases.Writer(number, STORES[number % len(STORES)])
        self.wal_count = rng.choice((0, 1, len(items) // 2))
        self.folder = folder / f"db{number}"
        self.folder.mkdir()
        self.path = self.folder / "keychain-2-debug.db"
        self.writer.write(str(self.path), items, self.wal_count)
        self.keys = key_options(self.writer, folder, number)
        self.name = f"database {number} ({self.writer.store}, {len(items)} items, {self.wal_count} in the log)"

    def check(self):
        """Check all commands, that no file changes, and that Python's reader returns the same items."""
        before = snapshot(self.folder)
        self.check_verification()
        self.check_export()
        if self.keys:
            self.check_inspection_without_keys()
        if self.number % 10 == 0:
            self.check_plan()
        self.checks.check(snapshot(self.folder) == before, f"{self.name}: no file changed")
        if self.writer.store != "class" and self.wal_count == 0:
            self.check_python_reader()

    def check_verification(self):
        code, document = self.program.json("verify", self.path, *self.keys)
        self.checks.check(
            code == 0 and document["whole"] and document["rows"] == document["open"] == len(self.expected),
            f"{self.name}: verify, {code} {document}"
        )
        log = "applied" if self.wal_count else "none"
        self.checks.check(document["log"] == log, f"{self.name}: its log is reported as {document['log']}")

    def check_export(self):
        code, document = self.program.json("export", self.folder, "-o", "-", "--reveal", *self.keys)
        self.checks.check(code == 0 and len(document["items"]) == len(self.expected), f"{self.name}: export, {code}")
        for (_, attributes, secret), entry in zip(self.expected, document["items"]):
            exported_attributes = {
                code: decoded_value(value) for code, value in entry["attributes"].items() if code not in BOOKKEEPING
            }
            expected_attributes = {code: printed_value(value) for code, value in attributes.items()}
            self.checks.check(
                exported_attributes == expected_attributes,
                f"{self.name}: item {entry['index']}: expected {expected_attributes!r}, found {exported_attributes!r}")
            exported_secret = base64.b64decode(entry["secret"]["base64"]) if "secret" in entry else None
            self.checks.check(exported_secret == secret, f"{self.name}: the secret of item {entry['index']}")

    def check_inspection_without_keys(self):
        code, document = self.program.json("inspect", self.path)
        self.checks.check(
            code == 3
            and document["dump"]["secrets"]["shut"] == len(self.expected)
            and document["dump"]["database"]["keys"] == "absent",
            f"{self.name}: without its keys, no secret can be decrypted, {code}",
        )

    def check_plan(self):
        code, document = self.program.json("plan", self.path, "--to", "target", *self.keys)
        outcomes = [(item["outcome"], item.get("reason")) for item in document["items"]]
        self.checks.check(
            code == 0 and outcomes == [expected_outcome(attributes) for _, attributes, _ in self.expected],
            f"{self.name}: the plan has the expected outcomes, {code}",
        )

    def check_python_reader(self):
        python_items = databases.read(str(self.path))
        self.checks.check(
            [(table, secret) for table, _, secret in python_items]
            == [(table, secret) for table, _, secret in self.expected],
            f"{self.name}: Python's reader returns the same items",
        )


class FaultTest:
    """The checks of one database after single changes."""

    def __init__(self, checks, program, folder):
        self.checks, self.program, self.path = checks, program, folder / "faults.db"
        items = dumps.make_items(7)
        _, self.first_attributes, self.first_secret = dumps.report_order(items)[0]
        databases.Writer("faults").write(str(self.path), items)
        self.unchanged_content = self.path.read_bytes()
        (folder / "faults.db-wal").unlink()

    def verify_after(self, sql, *values):
        """Change the database with a statement. Return the exit code and the document of `verify`."""
        self.path.write_bytes(self.unchanged_content)
        connection = sqlite3.connect(self.path)
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute(sql, values)
        connection.commit()
        connection.close()
        return self.program.json("verify", self.path)

    def check_changed_bytes(self):
        """Check that a changed byte of an item is detected, or does not affect the item."""
        connection = sqlite3.connect(f"file:{self.path}?mode=ro&immutable=1", uri=True)
        blob, = connection.execute("SELECT data FROM genp WHERE rowid = 1").fetchone()
        rng = random.Random("bits")
        for position in sorted(rng.sample(range(len(blob)), 60)):
            damaged = bytearray(blob)
            damaged[position] ^= 1 << rng.randrange(8)
            code, document = self.verify_after("UPDATE genp SET data = ? WHERE rowid = 1", bytes(damaged))
            self.checks.check(
                code in (0, 3, 13) and (code == 0) == document["whole"], f"byte {position} of a row: {code}")
            if code == 0:
                _, exported = self.program.json("export", self.path, "-o", "-", "--reveal")
                entry = exported["items"][0]
                self.checks.check(
                    base64.b64decode(entry["secret"]["base64"]) == self.first_secret
                    and entry["attributes"]["svce"] == self.first_attributes["svce"],
                    f"byte {position} of a row does not affect the item",
                )

    def check_changed_columns(self):
        """Check that `verify` reports changed columns and keys, each under the expected check."""
        for sql, expected_check in (
            ("UPDATE genp SET sha1 = zeroblob(20) WHERE rowid = 1", "digests"),
            ("UPDATE inet SET port = 1 WHERE rowid = 1", "columns"),
            ("UPDATE genp SET data = (SELECT data FROM genp WHERE rowid = 2) WHERE rowid = 1", "columns"),
            ("UPDATE metadatakeys SET data = zeroblob(40) WHERE keyclass = '6'", "items"),
        ):
            code, document = self.verify_after(sql)
            failed_checks = {fault["check"] for fault in document["faults"]}
            self.checks.check(code in (3, 13) and expected_check in failed_checks, f"{sql}: {code} {document}")

    def check_changed_schema(self):
        """Check that a trigger is not run, and that a missing table is detected."""
        code, document = self.verify_after("CREATE TRIGGER t AFTER INSERT ON genp BEGIN DELETE FROM genp; END")
        self.checks.check(code == 0, f"a trigger is not run: {code} {document}")
        code, document = self.verify_after("ALTER TABLE genp RENAME TO old")
        failed_checks = [check["id"] for check in document["checks"] if not check["ok"]]
        self.checks.check(
            code == 13 and not document["whole"] and failed_checks == ["tables"],
            f"a table is missing: {code} {document}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keyhaul", required=True)
    parser.add_argument("--count", type=int, default=200)
    arguments = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        program = Program(arguments.keyhaul, folder)
        program.run("device", "create", "target")
        for number in range(arguments.count):
            DatabaseTest(checks, program, folder, number).check()
        fault_test = FaultTest(checks, program, folder)
        fault_test.check_changed_bytes()
        fault_test.check_changed_columns()
        fault_test.check_changed_schema()
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
