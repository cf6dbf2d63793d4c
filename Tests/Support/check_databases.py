#!/usr/bin/env python3
"""Run Keyhaul on random keychain databases that Python wrote, and compare the items that it reads with those written.

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

STORES = ("ff", "08", "class")


def snapshot(folder):
    """Return the contents and modification time of each file in a folder."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def keys_argument(writer, folder, name):
    """Return the options with the class keys of a device's database."""
    if writer.store != "class":
        return []
    path = folder / f"{name}.keys"
    path.write_text(json.dumps({str(number): key.hex() for number, key in writer.class_keys.items()}))
    path.chmod(0o600)
    return ["--class-keys-file", str(path)]


def printed_value(value):
    """Return a value as Keyhaul prints it."""
    return value.rfc3339() if isinstance(value, apple_der.Moment) else expected_value(value)


def check_database(checks, program, folder, number):
    """Write the database with a number, and check it with `verify`, `export`, `inspect` and `plan`."""
    rng = random.Random(f"check {number}")
    items = dumps.make_items(number, count=rng.randrange(1, 30))
    expected = dumps.report_order(items)
    writer = databases.Writer(number, STORES[number % len(STORES)])
    wal_count = rng.choice((0, 1, len(items) // 2))
    database_folder = folder / f"db{number}"
    database_folder.mkdir()
    path = database_folder / "keychain-2-debug.db"
    writer.write(str(path), items, wal_count)
    name = f"database {number} ({writer.store}, {len(items)} items, {wal_count} in the log)"
    before = snapshot(database_folder)
    keys = keys_argument(writer, folder, number)

    code, document = program.json("verify", path, *keys)
    checks.check(
        code == 0 and document["whole"] and document["rows"] == document["open"] == len(items),
        f"{name}: verify, {code} {document}"
    )
    checks.check(
        document["log"] == ("applied" if wal_count else "none"), f"{name}: its log is reported as {document['log']}")
    code, document = program.json("export", database_folder, "-o", "-", "--reveal", *keys)
    checks.check(code == 0 and len(document["items"]) == len(items), f"{name}: export, {code}")
    for (_, attributes, secret), entry in zip(expected, document["items"]):
        shown = {code: decoded_value(value) for code, value in entry["attributes"].items()
                 if code not in ("persistref", "musr", "sync", "tomb", "sha1")}
        expected_attributes = {code: printed_value(value) for code, value in attributes.items()}
        checks.check(
            shown == expected_attributes,
            f"{name}: item {entry['index']}: expected {expected_attributes!r}, found {shown!r}")
        checks.check((base64.b64decode(entry["secret"]["base64"]) if "secret" in entry else None) == secret,
                     f"{name}: the secret of item {entry['index']}")
    if keys:
        code, document = program.json("inspect", path)
        checks.check(
            code == 3
            and document["dump"]["secrets"]["shut"] == len(items)
            and document["dump"]["database"]["keys"] == "absent",
            f"{name}: without its keys, no secret can be decrypted, {code}",
        )
    if number % 10 == 0:
        code, document = program.json("plan", path, "--to", "target", *keys)
        checks.check(
            code == 0
            and [(item["outcome"], item.get("reason")) for item in document["items"]]
            == [expected_outcome(attributes) for _, attributes, _ in expected],
            f"{name}: the plan has the expected outcomes, {code}",
        )
    checks.check(snapshot(database_folder) == before, f"{name}: no file changed")
    if writer.store != "class" and wal_count == 0:
        python_items = databases.read(str(path))
        checks.check(
            [(table, secret) for table, _, secret in python_items]
            == [(table, secret) for table, _, secret in expected],
            f"{name}: Python's reader returns the same items",
        )
    return path, writer


def check_faults(checks, program, folder):
    """Check a database after single changes."""
    writer = databases.Writer("faults")
    path = folder / "faults.db"
    items = dumps.make_items(7)
    writer.write(str(path), items)
    clean = path.read_bytes()
    (folder / "faults.db-wal").unlink()

    def changed(sql, *values):
        path.write_bytes(clean)
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute(sql, values)
        connection.commit()
        connection.close()
        return program.json("verify", path)

    blob = (
        sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
        .execute("SELECT data FROM genp WHERE rowid = 1")
        .fetchone()[0]
    )
    rng = random.Random("bits")
    for position in sorted(rng.sample(range(len(blob)), 60)):
        damaged = bytearray(blob)
        damaged[position] ^= 1 << rng.randrange(8)
        code, document = changed("UPDATE genp SET data = ? WHERE rowid = 1", bytes(damaged))
        # A changed byte is detected, or it does not affect the item.
        checks.check(code in (0, 3, 13) and (code == 0) == document["whole"], f"byte {position} of a row: {code}")
        if code == 0:
            _, exported = program.json("export", path, "-o", "-", "--reveal")
            entry = exported["items"][0]
            checks.check(
                base64.b64decode(entry["secret"]["base64"]) == dumps.report_order(items)[0][2]
                and entry["attributes"]["svce"] == dumps.report_order(items)[0][1]["svce"],
                f"byte {position} of a row does not affect the item",
            )
    for sql, check in (("UPDATE genp SET sha1 = zeroblob(20) WHERE rowid = 1", "digests"),
                       ("UPDATE inet SET port = 1 WHERE rowid = 1", "columns"),
                       ("UPDATE genp SET data = (SELECT data FROM genp WHERE rowid = 2) WHERE rowid = 1", "columns"),
                       ("UPDATE metadatakeys SET data = zeroblob(40) WHERE keyclass = '6'", "items")):
        code, document = changed(sql)
        checks.check(
            code in (3, 13) and check in {fault["check"] for fault in document["faults"]}, f"{sql}: {code} {document}"
        )
    code, document = changed("CREATE TRIGGER t AFTER INSERT ON genp BEGIN DELETE FROM genp; END")
    checks.check(code == 0, f"a trigger is not run: {code} {document}")
    code, document = changed("ALTER TABLE genp RENAME TO old")
    failed = [check["id"] for check in document["checks"] if not check["ok"]]
    checks.check(
        code == 13 and not document["whole"] and failed == ["tables"], f"a table is missing: {code} {document}")


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
            check_database(checks, program, folder, number)
        check_faults(checks, program, folder)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
