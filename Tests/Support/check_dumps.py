#!/usr/bin/env python3
"""Runs Keyhaul over dumps of other tools and compares what it says with what our Python side has put into them.

    check_dumps.py --keyhaul .build/release/keyhaul

The dumps are rewritten by `keychain_backup.dumps`, for a seed, and know nothing of Keyhaul's code: for each form
inspect, export, diff and plan; then what is exported as genp-plist, read with Python's own plistlib, and as cxf; then what others might
write, which has to end with a code of ours. Exit 1 where a check fails.
"""

import argparse
import base64
import csv
import datetime
import io
import json
import os
import pathlib
import plistlib
import subprocess
import sys
import tempfile

import jsonschema

from checks import Checks
from keychain_backup import apple_der, dumps, items

KINDS = dict(zip(dumps.TABLES, ("generic-password", "internet-password", "certificate", "key")))
BOUND = {"aku", "cku", "dku"}
SYSTEM_GROUPS = {"lockdown-identities", "com.apple.security.sos"}
SEED = 20_261_123
ROOT = pathlib.Path(__file__).resolve().parents[2]


class Program:
    def __init__(self, path, folder):
        self.path, self.folder = pathlib.Path(path).resolve(), folder

    def run(self, *arguments):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KEYHAUL_")}
        return subprocess.run(
            [str(self.path), *map(str, arguments), "--home", str(self.folder / "home"), "--no-input"], cwd=self.folder,
            env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)

    def json(self, *arguments):
        result = self.run(*arguments, "--json")
        return result.returncode, json.loads(result.stdout or b"null")


def value(shown):
    return base64.b64decode(shown["base64"]) if isinstance(shown, dict) else shown


def expected_value(made):
    return made.strftime("%Y-%m-%dT%H:%M:%SZ") if isinstance(made, datetime.datetime) else made


def fate(attributes):
    """What a backup with a password brings of an item to another device, by the published rules."""
    if attributes["pdmn"] == "akpu":
        return "stays-behind", "passcode-only"
    if attributes["agrp"] in SYSTEM_GROUPS:
        return "stays-behind", "system-bound"
    if attributes["pdmn"] in BOUND:
        return "stays-behind", "device-bound"
    return "migrates", None


def check_form(checks, program, form):
    contents, expected = dumps.written(form, SEED)
    name = f"{form}.dump"
    (program.folder / name).write_bytes(contents)
    absent = sum(secret is None for _, _, secret in expected)

    code, found = program.json("inspect", name, "--list")
    checks.check(code == 0 and found["dump"]["form"] == form, f"{form}: inspect recognizes it, {code}")
    checks.check(
        [item["kind"] for item in found["items"]] == [KINDS[table] for table, _, _ in expected],
        f"{form}: inspect --list has the items of all tables in the order of a backup")
    checks.check(
        [(item["account"], item["protection"], item["secret_readable"]) for item in found["items"]]
        == [(attributes.get("acct"), attributes["pdmn"], secret is not None) for _, attributes, secret in expected],
        f"{form}: names, classes and which secrets there are")
    checks.check(
        found["dump"]["secrets"] == {"open": len(expected) - absent, "absent": absent, "shut": 0},
        f"{form}: the secrets are counted")

    code, found = program.json("export", name, "-o", "-", "--reveal")
    checks.check(code == 0 and len(found["items"]) == len(expected), f"{form}: export has every item")
    for (table, attributes, secret), entry in zip(expected, found["items"]):
        shown = {name: value(part) for name, part in entry["attributes"].items()}
        wanted = {name: expected_value(part) for name, part in attributes.items()}
        checks.check(shown == wanted, f"{form}: item {entry['index']}: expected {wanted!r}, found {shown!r}")
        checks.check(
            (base64.b64decode(entry["secret"]["base64"]) if "secret" in entry else None) == secret,
            f"{form}: the secret of item {entry['index']}")

    result = program.run("export", name, "-o", f"{form}.csv", "--reveal")
    rows = list(csv.DictReader(io.StringIO((program.folder / f"{form}.csv").read_text(encoding="utf-8"))))
    passwords = [secret for table, _, secret in expected if table in ("genp", "inet") and secret and is_text(secret)]
    checks.check(
        result.returncode == 0 and [row["Password"].encode() for row in rows] == passwords, f"{form}: its passwords as CSV")

    code, found = program.json("plan", name, "--to", "target")
    wanted = [fate(attributes) for _, attributes, _ in expected]
    checks.check(
        code == 0 and [(item["outcome"], item.get("reason")) for item in found["items"]] == wanted,
        f"{form}: what a backup would carry, {code}")
    checks.check(
        found["source"]["kind"] == "dump" and found["dump"]["form"] == form and found["target"]["same_device"] is None,
        f"{form}: the plan says what it was made of")

    code, found = program.json("diff", name, name, "--exit-code")
    checks.check(
        (code, found["same"], found["added"], found["removed"], found["changed"]) == (0, len(expected), [], [], []),
        f"{form}: nothing differs from itself, {code}")
    for verb in (("restore", name, "--to", "target"), ("verify", name), ("convert", name, "x.tar"), ("rekey", name)):
        checks.check(program.run(*verb).returncode in (14, 64), f"{form}: {verb[0]} refuses it")
    checks.check(program.run("verify", name).returncode == 14, f"{form}: with 14")
    return expected


def is_text(secret):
    try:
        return "\0" not in secret.decode()
    except UnicodeDecodeError:
        return False


def check_differences(checks, program):
    """A dump against another with one secret changed, one item gone and one new."""
    made = dumps.items(SEED)
    other = [list(item) for item in made]
    other[4][2] = b"changed"
    gone = other.pop(1)
    other.append(["genp", dict(made[0][1], acct="new"), b"new"])
    (program.folder / "a.dump").write_bytes(dumps.tables(made))
    (program.folder / "b.dump").write_bytes(dumps.tables(other, binary=True))
    code, found = program.json("diff", "a.dump", "b.dump", "--exit-code")
    checks.check(code == 2, f"differences end with {code}")
    checks.check([item["account"] for item in found["added"]] == ["new"], "what is new")
    checks.check([item["server"] for item in found["removed"]] == [gone[1]["srvr"]], "what is gone")
    checks.check(
        [(item["secret_changed"], item["attributes"]) for item in found["changed"]] == [(True, [])], "what is changed")
    # A form that leaves attributes and the types of values out says nothing else of what both have.
    (program.folder / "c.dump").write_bytes(dumps.tables(made, typed=False))
    code, found = program.json("diff", "a.dump", "c.dump", "--exit-code")
    checks.check((code, found["same"]) == (0, len(made)), f"the same without types: {code}, {found['same']}")


def check_genp_plist(checks, program):
    contents, expected = dumps.written("keychain-tables", SEED)
    (program.folder / "all.dump").write_bytes(contents)
    result = program.run("export", "all.dump", "-o", "keys.genp.plist", "--reveal")
    said = " ".join(result.stdout.decode().split())
    root = plistlib.loads((program.folder / "keys.genp.plist").read_bytes())
    passwords = [(attributes, secret) for table, attributes, secret in expected if table == "genp" and secret]
    checks.check(
        list(root) == ["genp"] and [dict(entry) for entry in root["genp"]]
        == [attributes | {"v_Data": secret} for attributes, secret in passwords], "genp-plist by plistlib")
    left = {table: sum(item[0] == table for item in expected) for table in dumps.TABLES}
    formless = left["genp"] - len(passwords)
    others = len(expected) - left["genp"]
    kinds = f"{left['inet']} internet passwords, {left['cert']} certificates and {left['keys']} keys"
    sentence = f"Of {len(expected)} items, {len(passwords)} are in it"
    checks.check(
        result.returncode == 0 and sentence in said and f"{others} are of other kinds ({kinds})" in said,
        f"its balance: {said}")
    checks.check(f"{formless} cannot be written as genp-plist" in said or formless == 0, f"items without a secret: {said}")
    for form, own in (("genp-plist", ("genp",)), ("csv", ("genp", "inet")), ("pem", ("cert", "keys"))):
        result = program.run("export", "all.dump", "-o", f"x.{form}", "--format", form, "--reveal", "--dry-run", "--json")
        if form == "pem":
            checks.check(result.returncode == 4, f"made-up certificates cannot be written as pem: {result.returncode}")
            continue
        found = json.loads(result.stdout)
        balance, kinds = found["balance"], {table: left[table] for table in dumps.TABLES if table not in own}
        written = sum(table in own and bool(secret) and (form != "csv" or is_text(secret)) for table, _, secret in expected)
        wanted = {
            "total": len(expected), "written": written, "other_kinds": kinds, "other": 0, "asking": 0, "unreadable": 0,
            "without_form": len(expected) - written - sum(kinds.values())}
        checks.check(balance == wanted, f"the balance of {form}: expected {wanted}, found {balance}")
    code, found = program.json("export", "keys.genp.plist", "-o", "-", "--reveal")
    checks.check(
        code == 0 and [base64.b64decode(entry["secret"]["base64"]) for entry in found["items"]]
        == [secret for _, secret in passwords], "our reader reads it again")


def check_credential_exchange(checks, program):
    """Every form that can be read, as password managers exchange it: by the schema, and each secret there that is text."""
    schema = json.loads((ROOT / "Tests/Support/credential-exchange.schema.json").read_text(encoding="utf-8"))
    for form in dumps.FORMS:
        contents, expected = dumps.written(form, SEED)
        (program.folder / "exchanged").write_bytes(contents)
        result = program.run("export", "exchanged", "-o", "-", "--format", "cxf", "--reveal", "-q")
        checks.check(result.returncode == 0, f"{form}: export --format cxf ends with {result.returncode}")
        document = json.loads(result.stdout)
        faults = [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(document)]
        checks.check(not faults, f"{form}: {faults[:3]}")
        entries = document["accounts"][0]["items"]
        checks.check(len({entry["id"] for entry in entries}) == len(entries), f"{form}: two of one identifier")
        texts = [
            secret.decode() for table, _, secret in expected
            if table in ("genp", "inet") and secret and is_text(secret)
            and not secret.startswith(b"otpauth://")]
        found = [
            credential[name]["value"] for entry in entries for credential in entry["credentials"]
            for name in ("password", "passphrase") if name in credential]
        checks.check(sorted(found) == sorted(texts), f"{form}: {len(found)} secrets, not {len(texts)}")


def check_sealed(checks, program):
    """Sealed entries: the same without tables, then without the key of a class, and with parts of entries exchanged."""
    made = dumps.items(SEED)
    (program.folder / "untold.dump").write_bytes(dumps.sealed(made, names_table=False, binary=True))
    code, found = program.json("inspect", "untold.dump", "--list")
    checks.check(
        code == 0 and [item["kind"] for item in found["items"]] == [KINDS[table] for table, _, _ in dumps.in_order(made)],
        f"sealed entries without tables: the attributes tell them, {code}")

    without = dumps.CLASS_NUMBERS["dku"]
    shut = [attributes["pdmn"] == "dku" for _, attributes, _ in dumps.in_order(made)]
    (program.folder / "keyless.dump").write_bytes(dumps.sealed(made, without={without}))
    code, found = program.json("inspect", "keyless.dump", "--list")
    checks.check(
        any(shut) and found["dump"]["secrets"]["shut"] == sum(shut) and code == 3,
        f"sealed entries without a key: {found['dump']['secrets']}, {code}")
    checks.check(
        [item.get("reason") for item in found["items"]] == ["no-class-key" if is_shut else None for is_shut in shut],
        "sealed entries without a key: each is listed with its reason")

    root = plistlib.loads(dumps.sealed(made))
    first, second = root["keychainEntries"][:2]
    first["data"], second["data"] = second["data"], first["data"]
    (program.folder / "exchanged.dump").write_bytes(plistlib.dumps(root))
    code, found = program.json("inspect", "exchanged.dump")
    checks.check(found["dump"]["secrets"]["shut"] == 2, f"secrets of two entries exchanged: both are shut, {code}")

    root = plistlib.loads(dumps.sealed(made))
    for entry in root["keychainEntries"][:2]:
        entry["data"]["unwrappedKey"] = bytes(32)
    (program.folder / "wrong-keys.dump").write_bytes(plistlib.dumps(root))
    code, plan = program.json("plan", "wrong-keys.dump", "--to", "target")
    checks.check(
        any(sentence.startswith("2 items whose secret cannot be decrypted here") for sentence in plan["dump"]["unknown"]),
        f"wrong keys of two secrets: a plan says that it takes them as readable on the device, {code}")


def check_digests(checks, program):
    """A digest that is not that of its item, sealed with the right keys: nothing else would tell."""
    made = [(table, dict(attributes, sha1=b"\0" * 20 if number < 3 else items.digest(table, moments(attributes, secret))), secret)
            for number, (table, attributes, secret) in enumerate(dumps.items(SEED))]
    (program.folder / "digests.dump").write_bytes(dumps.sealed(made))
    code, found = program.json("inspect", "digests.dump")
    told = [remark for remark in found["dump"]["remarks"] if "sha1" in remark]
    checks.check(code == 0 and told and told[0].startswith("3 items have digests"), f"digests of three entries: {told}, {code}")


def moments(attributes, secret):
    values = {code: apple_der.Moment.from_datetime(value) if isinstance(value, datetime.datetime) else value
              for code, value in attributes.items()}
    return values | ({} if secret is None else {"v_Data": secret})


def check_hostile(checks, program):
    """What is made up ends with 14 (never with a signal), and within seconds."""
    made = {
        "deep.json": b"[" * 100_000, "deep.plist": b"<plist>" + b"<array>" * 100_000,
        "long.json": b"[" + b" " * (64 << 20), "none.json": b"{}", "none.plist": plistlib.dumps({"a": 1}),
        "backup.plist": plistlib.dumps({"genp": [{"v_Data": b"x", "v_PersistentRef": b"y"}]}),
        "ufed.plist": plistlib.dumps({"keychainEntries": {}, "classKeyIdxToUnwrappedMetadataClassKey": {}}),
        "both.plist": plistlib.dumps({"keychainEntries": [], "classKeyIdxToUnwrappedMetadataClassKey": {}, "genp": []}),
        "wide.json": b"[" + b"0," * 6_000_000 + b"0]", "cut.plist": dumps.tables(dumps.items(1))[:-40],
    }
    for name, contents in made.items():
        (program.folder / name).write_bytes(contents)
        verbs = ("inspect", name), ("export", name, "-o", "-"), ("diff", name, name), ("verify", name)
        # What takes long to refuse is refused once.
        for verb in verbs[:1] if len(contents) > 1 << 20 else verbs:
            result = program.run(*verb)
            checks.check(result.returncode == 14, f"{name}: {verb[0]} ends with {result.returncode}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keyhaul", required=True)
    arguments, checks = parser.parse_args(), Checks()
    with tempfile.TemporaryDirectory() as folder:
        program = Program(arguments.keyhaul, pathlib.Path(folder))
        program.run("device", "create", "target", "--from", ROOT / "Fixtures/devices/new-phone.json")
        for form in dumps.FORMS:
            check_form(checks, program, form)
        check_differences(checks, program)
        check_genp_plist(checks, program)
        check_credential_exchange(checks, program)
        check_sealed(checks, program)
        check_digests(checks, program)
        check_hostile(checks, program)
    return checks.conclude()


if __name__ == "__main__":
    sys.exit(main())
