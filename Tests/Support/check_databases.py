#!/usr/bin/env python3
"""Runs Keyhaul over keychain databases that our Python side has written and compares what it reads with what is in them.

    check_databases.py --keyhaul .build/release/keyhaul [--count 200]

Each database is random for its number: items of all tables, versions 7 and 8, keys as a Simulator of either generation
leaves them or wrapped under class keys, with the last items in the log or not. It is read by Python's own reader first,
where it is a Simulator's; then `verify` has to call it whole, `export` to give every item, and nothing beside it may have
changed. A changed byte of a row, a column that says something else and a log of another database follow. Exit 1 where a check fails.
"""

import argparse
import base64
import json
import pathlib
import random
import sqlite3
import sys
import tempfile

from check_dumps import Program, expected_value, fate, value
from checks import Checks
from keychain_backup import apple_der, databases, dumps

STORES = ("ff", "08", "class")


def contents(folder):
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def keys_argument(writer, folder, name):
    if writer.store != "class":
        return []
    path = folder / f"{name}.keys"
    path.write_text(json.dumps({str(number): key.hex() for number, key in writer.class_keys.items()}))
    path.chmod(0o600)
    return ["--class-keys-file", str(path)]


def shown_value(made):
    return made.rfc3339() if isinstance(made, apple_der.Moment) else expected_value(made)


def check_database(checks, program, folder, number):
    source = random.Random(f"check {number}")
    made = dumps.items(number, count=source.randrange(1, 30))
    expected = dumps.in_order(made)
    writer = databases.Writer(number, STORES[number % len(STORES)])
    log = source.choice((0, 1, len(made) // 2))
    place = folder / f"db{number}"
    place.mkdir()
    path = place / "keychain-2-debug.db"
    writer.write(str(path), made, log)
    name = f"database {number} ({writer.store}, {len(made)} items, {log} in the log)"
    before = contents(place)
    keys = keys_argument(writer, folder, number)

    code, found = program.json("verify", path, *keys)
    checks.check(code == 0 and found["whole"] and found["rows"] == found["open"] == len(made), f"{name}: verify, {code} {found}")
    checks.check(found["log"] == ("applied" if log else "none"), f"{name}: its log is {found['log']}")
    code, found = program.json("export", place, "-o", "-", "--reveal", *keys)
    checks.check(code == 0 and len(found["items"]) == len(made), f"{name}: export, {code}")
    for (_, attributes, secret), entry in zip(expected, found["items"]):
        shown = {code: value(part) for code, part in entry["attributes"].items()
                 if code not in ("persistref", "musr", "sync", "tomb", "sha1")}
        wanted = {code: shown_value(part) for code, part in attributes.items()}
        checks.check(shown == wanted, f"{name}: item {entry['index']}: expected {wanted!r}, found {shown!r}")
        checks.check((base64.b64decode(entry["secret"]["base64"]) if "secret" in entry else None) == secret,
                     f"{name}: the secret of item {entry['index']}")
    if keys:
        code, found = program.json("inspect", path)
        checks.check(code == 3 and found["dump"]["secrets"]["shut"] == len(made) and found["dump"]["database"]["keys"] == "absent",
                     f"{name}: without its keys nothing opens, {code}")
    if number % 10 == 0:
        code, found = program.json("plan", path, "--to", "target", *keys)
        checks.check(
            code == 0 and [(item["outcome"], item.get("reason")) for item in found["items"]]
            == [fate(attributes) for _, attributes, _ in expected], f"{name}: what a backup would carry, {code}")
    checks.check(contents(place) == before, f"{name}: nothing beside it changed")
    if writer.store != "class" and log == 0:
        read = databases.read(str(path))
        checks.check([(table, secret) for table, _, secret in read] == [(table, secret) for table, _, secret in expected],
                     f"{name}: Python's reader finds the same")
    return path, writer


def check_faults(checks, program, folder):
    writer = databases.Writer("faults")
    path = folder / "faults.db"
    made = dumps.items(7)
    writer.write(str(path), made)
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

    blob = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True).execute("SELECT data FROM genp WHERE rowid = 1").fetchone()[0]
    source = random.Random("bits")
    for place in sorted(source.sample(range(len(blob)), 60)):
        damaged = bytearray(blob)
        damaged[place] ^= 1 << source.randrange(8)
        code, found = changed("UPDATE genp SET data = ? WHERE rowid = 1", bytes(damaged))
        # A changed byte is found, or it changes nothing of the item: then all of it still fits.
        checks.check(code in (0, 3, 13) and (code == 0) == found["whole"], f"byte {place} of a row: {code}")
        if code == 0:
            _, exported = program.json("export", path, "-o", "-", "--reveal")
            entry = exported["items"][0]
            checks.check(base64.b64decode(entry["secret"]["base64"]) == dumps.in_order(made)[0][2]
                         and entry["attributes"]["svce"] == dumps.in_order(made)[0][1]["svce"], f"byte {place} changes nothing")
    for sql, check in (("UPDATE genp SET sha1 = zeroblob(20) WHERE rowid = 1", "digests"),
                       ("UPDATE inet SET port = 1 WHERE rowid = 1", "columns"),
                       ("UPDATE genp SET data = (SELECT data FROM genp WHERE rowid = 2) WHERE rowid = 1", "columns"),
                       ("UPDATE metadatakeys SET data = zeroblob(40) WHERE keyclass = '6'", "items")):
        code, found = changed(sql)
        checks.check(code in (3, 13) and check in {fault["check"] for fault in found["faults"]}, f"{sql}: {code} {found}")
    code, found = changed("CREATE TRIGGER t AFTER INSERT ON genp BEGIN DELETE FROM genp; END")
    checks.check(code == 0, f"a trigger is not run and changes nothing: {code} {found}")
    code, found = changed("ALTER TABLE genp RENAME TO old")
    failed = [check["id"] for check in found["checks"] if not check["ok"]]
    checks.check(code == 13 and not found["whole"] and failed == ["tables"], f"a table is missing: {code} {found}")


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
    return checks.conclude()


if __name__ == "__main__":
    sys.exit(main())
