#!/usr/bin/env python3
"""Run Keyhaul on dumps in other tools' formats, and compare the results with the items that Python wrote.

    check_dumps.py --keyhaul .build/release/keyhaul

`keychain_backup.dumps` writes the dumps from a seed, without Keyhaul's code. Each format is checked with `inspect`,
`export`, `diff` and `plan`, including exports as genp-plist and cxf. Malformed dumps have to be rejected. Exit 1 if a
check fails.
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
from keychain_backup import apple_der, dumps
from keychain_backup import items as backup_items

KINDS = dict(zip(dumps.TABLES, ("generic-password", "internet-password", "certificate", "key")))
THIS_DEVICE_ONLY = {"aku", "cku", "dku"}
SYSTEM_GROUPS = {"lockdown-identities", "com.apple.security.sos"}
SEED = 20_261_123
ROOT = pathlib.Path(__file__).resolve().parents[2]


class Program:
    """The built program, with a device folder of its own."""

    def __init__(self, path, folder):
        self.path, self.folder = pathlib.Path(path).resolve(), folder

    def run(self, *arguments):
        """Run a command and return the finished process."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KEYHAUL_")}
        return subprocess.run(
            [str(self.path), *map(str, arguments), "--home", str(self.folder / "home"), "--no-input"], cwd=self.folder,
            env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)

    def json(self, *arguments):
        """Run a command with --json. Return its exit code and its document."""
        result = self.run(*arguments, "--json")
        return result.returncode, json.loads(result.stdout or b"null")


def decoded_value(value):
    """Return an attribute value of a document, with base64 decoded."""
    return base64.b64decode(value["base64"]) if isinstance(value, dict) else value


def expected_value(value):
    """Return an attribute value as Keyhaul prints it."""
    return value.strftime("%Y-%m-%dT%H:%M:%SZ") if isinstance(value, datetime.datetime) else value


def expected_outcome(attributes):
    """Return the outcome and reason for an item of an encrypted backup that is restored to another device."""
    if attributes["pdmn"] == "akpu":
        return "stays-behind", "passcode-only"
    if attributes["agrp"] in SYSTEM_GROUPS:
        return "stays-behind", "system-bound"
    if attributes["pdmn"] in THIS_DEVICE_ONLY:
        return "stays-behind", "device-bound"
    return "migrates", None


def check_format(checks, program, dump_format):
    """Check one dump with every command."""
    contents, expected = dumps.make_dump(dump_format, SEED)
    name = f"{dump_format}.dump"
    (program.folder / name).write_bytes(contents)
    check_inspection(checks, program, dump_format, name, expected)
    check_export(checks, program, dump_format, name, expected)
    check_plan(checks, program, dump_format, name, expected)
    code, document = program.json("diff", name, name, "--exit-code")
    checks.check(
        (code, document["same"], document["added"], document["removed"], document["changed"])
        == (0, len(expected), [], [], []),
        f"{dump_format}: a diff with itself finds no difference, {code}")
    for arguments in (
        ("restore", name, "--to", "target"), ("verify", name), ("convert", name, "x.tar"), ("rekey", name)
    ):
        checks.check(program.run(*arguments).returncode in (14, 64), f"{dump_format}: {arguments[0]} rejects it")
    checks.check(program.run("verify", name).returncode == 14, f"{dump_format}: verify rejects it with 14")


def check_inspection(checks, program, dump_format, name, expected):
    """Check that `inspect` lists and counts the items."""
    absent_count = sum(secret is None for _, _, secret in expected)
    code, document = program.json("inspect", name, "--list")
    checks.check(
        code == 0 and document["dump"]["form"] == dump_format, f"{dump_format}: inspect recognizes the format, {code}"
    )
    checks.check(
        [item["kind"] for item in document["items"]] == [KINDS[table] for table, _, _ in expected],
        f"{dump_format}: inspect --list has the items of all tables in the order of a backup")
    checks.check(
        [(item["account"], item["protection"], item["secret_readable"]) for item in document["items"]]
        == [(attributes.get("acct"), attributes["pdmn"], secret is not None) for _, attributes, secret in expected],
        f"{dump_format}: inspect --list has the accounts, classes and readable secrets")
    checks.check(
        document["dump"]["secrets"] == {"open": len(expected) - absent_count, "absent": absent_count, "shut": 0},
        f"{dump_format}: the secrets are counted")


def check_export(checks, program, dump_format, name, expected):
    """Check the items of the JSON export, and the passwords of the CSV export."""
    code, document = program.json("export", name, "-o", "-", "--reveal")
    checks.check(code == 0 and len(document["items"]) == len(expected), f"{dump_format}: export has every item")
    for (table, attributes, secret), entry in zip(expected, document["items"]):
        exported_attributes = {attribute: decoded_value(value) for attribute, value in entry["attributes"].items()}
        expected_attributes = {attribute: expected_value(value) for attribute, value in attributes.items()}
        checks.check(
            exported_attributes == expected_attributes,
            f"{dump_format}: item {entry['index']}: expected {expected_attributes!r}, found {exported_attributes!r}")
        checks.check(
            (base64.b64decode(entry["secret"]["base64"]) if "secret" in entry else None) == secret,
            f"{dump_format}: the secret of item {entry['index']}")

    result = program.run("export", name, "-o", f"{dump_format}.csv", "--reveal")
    rows = list(csv.DictReader(io.StringIO((program.folder / f"{dump_format}.csv").read_text(encoding="utf-8"))))
    passwords = [secret for table, _, secret in expected if table in ("genp", "inet") and secret and is_text(secret)]
    checks.check(
        result.returncode == 0 and [row["Password"].encode() for row in rows] == passwords,
        f"{dump_format}: the CSV export has its passwords")


def check_plan(checks, program, dump_format, name, expected):
    """Check the outcome of each item."""
    code, document = program.json("plan", name, "--to", "target")
    expected_outcomes = [expected_outcome(attributes) for _, attributes, _ in expected]
    checks.check(
        code == 0 and [(item["outcome"], item.get("reason")) for item in document["items"]] == expected_outcomes,
        f"{dump_format}: the plan has the expected outcomes, {code}")
    checks.check(
        document["source"]["kind"] == "dump"
        and document["dump"]["form"] == dump_format
        and document["target"]["same_device"] is None,
        f"{dump_format}: the plan names the dump as its source",
    )


def is_text(secret):
    """Return whether a secret is UTF-8 text without NUL."""
    try:
        return "\0" not in secret.decode()
    except UnicodeDecodeError:
        return False


def check_differences(checks, program):
    """Compare a dump with one that has a changed secret, a missing item and a new item."""
    items = dumps.make_items(SEED)
    changed_items = [list(item) for item in items]
    changed_items[4][2] = b"changed"
    removed = changed_items.pop(1)
    changed_items.append(["genp", dict(items[0][1], acct="new"), b"new"])
    (program.folder / "a.dump").write_bytes(dumps.table_dump(items))
    (program.folder / "b.dump").write_bytes(dumps.table_dump(changed_items, is_binary=True))
    code, document = program.json("diff", "a.dump", "b.dump", "--exit-code")
    checks.check(code == 2, f"differences end with {code}")
    checks.check([item["account"] for item in document["added"]] == ["new"], "diff lists the new item")
    checks.check(
        [item["server"] for item in document["removed"]] == [removed[1]["srvr"]], "diff lists the removed item")
    checks.check(
        [(item["secret_changed"], item["attributes"]) for item in document["changed"]] == [(True, [])],
        "diff lists the changed item")
    # A dump without value types is equal in all attributes that both dumps contain.
    (program.folder / "c.dump").write_bytes(dumps.table_dump(items, is_typed=False))
    code, document = program.json("diff", "a.dump", "c.dump", "--exit-code")
    checks.check(
        (code, document["same"]) == (0, len(items)), f"a dump without types is equal: {code}, {document['same']}")


def counts_by_table(items):
    """Return the number of items in each table."""
    return {table: sum(item[0] == table for item in items) for table in dumps.TABLES}


def check_genp_plist(checks, program):
    """Check the export as genp-plist with Python's plistlib and with Keyhaul, and the counts that it prints."""
    contents, expected = dumps.make_dump("keychain-tables", SEED)
    (program.folder / "all.dump").write_bytes(contents)
    result = program.run("export", "all.dump", "-o", "keys.genp.plist", "--reveal")
    output = " ".join(result.stdout.decode().split())
    root = plistlib.loads((program.folder / "keys.genp.plist").read_bytes())
    passwords = [(attributes, secret) for table, attributes, secret in expected if table == "genp" and secret]
    checks.check(
        list(root) == ["genp"]
        and [dict(entry) for entry in root["genp"]]
        == [attributes | {"v_Data": secret} for attributes, secret in passwords],
        "plistlib reads the exported genp-plist",
    )
    code, document = program.json("export", "keys.genp.plist", "-o", "-", "--reveal")
    checks.check(
        code == 0 and [base64.b64decode(entry["secret"]["base64"]) for entry in document["items"]]
        == [secret for _, secret in passwords], "Keyhaul reads the exported genp-plist")

    counts = counts_by_table(expected)
    without_secret_count = counts["genp"] - len(passwords)
    other_kind_count = len(expected) - counts["genp"]
    kinds = f"{counts['inet']} internet passwords, {counts['cert']} certificates and {counts['keys']} keys"
    sentence = f"Of {len(expected)} items, {len(passwords)} are in it"
    checks.check(
        result.returncode == 0 and sentence in output and f"{other_kind_count} are of other kinds ({kinds})" in output,
        f"the counts of the export: {output}")
    checks.check(
        f"{without_secret_count} cannot be written as genp-plist" in output or without_secret_count == 0,
        f"the count of items without a secret: {output}")


def check_export_counts(checks, program):
    """Check the counts of exported items in the formats that have only some kinds of items."""
    contents, items = dumps.make_dump("keychain-tables", SEED)
    (program.folder / "all.dump").write_bytes(contents)
    counts = counts_by_table(items)

    def export(export_format):
        return program.run(
            "export", "all.dump", "-o", f"x.{export_format}", "--format", export_format, "--reveal", "--dry-run",
            "--json")

    for export_format, supported_tables in (("genp-plist", ("genp",)), ("csv", ("genp", "inet"))):
        export_counts = json.loads(export(export_format).stdout)["balance"]
        other_kinds = {table: counts[table] for table in dumps.TABLES if table not in supported_tables}
        written_count = sum(
            table in supported_tables and bool(secret) and (export_format != "csv" or is_text(secret))
            for table, _, secret in items
        )
        expected_counts = {
            "total": len(items), "written": written_count, "other_kinds": other_kinds, "other": 0, "asking": 0,
            "unreadable": 0, "without_form": len(items) - written_count - sum(other_kinds.values())}
        checks.check(
            export_counts == expected_counts,
            f"the counts of {export_format}: expected {expected_counts}, found {export_counts}")
    code = export("pem").returncode
    checks.check(code == 4, f"made-up certificates cannot be written as pem: {code}")


def check_credential_exchange(checks, program):
    """Check the export in the Credential Exchange Format: it is valid, and has every secret that is text."""
    schema = json.loads((ROOT / "Tests/Support/credential-exchange.schema.json").read_text(encoding="utf-8"))
    for dump_format in dumps.FORMATS:
        contents, expected = dumps.make_dump(dump_format, SEED)
        (program.folder / "exchanged").write_bytes(contents)
        result = program.run("export", "exchanged", "-o", "-", "--format", "cxf", "--reveal", "-q")
        checks.check(result.returncode == 0, f"{dump_format}: export --format cxf ends with {result.returncode}")
        document = json.loads(result.stdout)
        faults = [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(document)]
        checks.check(not faults, f"{dump_format}: {faults[:3]}")
        entries = document["accounts"][0]["items"]
        checks.check(
            len({entry["id"] for entry in entries}) == len(entries),
            f"{dump_format}: two items have the same identifier")
        texts = [
            secret.decode() for table, _, secret in expected
            if table in ("genp", "inet") and secret and is_text(secret)
            and not secret.startswith(b"otpauth://")]
        exported_secrets = [
            credential[name]["value"] for entry in entries for credential in entry["credentials"]
            for name in ("password", "passphrase") if name in credential]
        checks.check(
            sorted(exported_secrets) == sorted(texts),
            f"{dump_format}: {len(exported_secrets)} secrets, not {len(texts)}")


def check_encrypted_entries(checks, program):
    """Check encrypted entries without tables, and without the key of a class."""
    items = dumps.make_items(SEED)
    (program.folder / "tableless.dump").write_bytes(dumps.encrypted_dump(items, has_tables=False, is_binary=True))
    code, document = program.json("inspect", "tableless.dump", "--list")
    checks.check(
        code == 0
        and [item["kind"] for item in document["items"]] == [KINDS[table] for table, _, _ in dumps.report_order(items)],
        f"encrypted entries without tables: the kind follows from the attributes, {code}",
    )

    omitted_class = dumps.CLASS_NUMBERS["dku"]
    are_undecryptable = [attributes["pdmn"] == "dku" for _, attributes, _ in dumps.report_order(items)]
    (program.folder / "keyless.dump").write_bytes(dumps.encrypted_dump(items, omitted_classes={omitted_class}))
    code, document = program.json("inspect", "keyless.dump", "--list")
    checks.check(
        any(are_undecryptable) and document["dump"]["secrets"]["shut"] == sum(are_undecryptable) and code == 3,
        f"encrypted entries without a key: {document['dump']['secrets']}, {code}")
    checks.check(
        [item.get("reason") for item in document["items"]]
        == ["no-class-key" if is_undecryptable else None for is_undecryptable in are_undecryptable],
        "encrypted entries without a key: each is listed with its reason",
    )


def check_damaged_entries(checks, program):
    """Check encrypted entries with swapped secrets and with wrong keys."""
    items = dumps.make_items(SEED)
    root = plistlib.loads(dumps.encrypted_dump(items))
    entry, next_entry = root["keychainEntries"][:2]
    entry["data"], next_entry["data"] = next_entry["data"], entry["data"]
    (program.folder / "swapped.dump").write_bytes(plistlib.dumps(root))
    code, document = program.json("inspect", "swapped.dump")
    checks.check(
        document["dump"]["secrets"]["shut"] == 2, f"swapped secrets of two entries: neither can be decrypted, {code}"
    )

    root = plistlib.loads(dumps.encrypted_dump(items))
    for entry in root["keychainEntries"][:2]:
        entry["data"]["unwrappedKey"] = bytes(32)
    (program.folder / "wrong-keys.dump").write_bytes(plistlib.dumps(root))
    code, plan = program.json("plan", "wrong-keys.dump", "--to", "target")
    checks.check(
        any(
            sentence.startswith("2 items whose secret cannot be decrypted here") for sentence in plan["dump"]["unknown"]
        ),
        f"wrong keys of two secrets: the plan states what it assumes, {code}",
    )


def check_digests(checks, program):
    """Check that wrong digests are reported, although the items are encrypted correctly."""
    items = []
    for number, (table, attributes, secret) in enumerate(dumps.make_items(SEED)):
        has_wrong_digest = number < 3
        digest = bytes(20) if has_wrong_digest else backup_items.digest(table, values_for_digest(attributes, secret))
        items.append((table, dict(attributes, sha1=digest), secret))
    (program.folder / "digests.dump").write_bytes(dumps.encrypted_dump(items))
    code, document = program.json("inspect", "digests.dump")
    remarks = [remark for remark in document["dump"]["remarks"] if "sha1" in remark]
    checks.check(
        code == 0 and remarks and remarks[0].startswith("3 items have digests"),
        f"wrong digests of three entries: {remarks}, {code}")


def values_for_digest(attributes, secret):
    """Return attributes with dates as Moment, and the secret as v_Data."""
    values = {code: apple_der.Moment.from_datetime(value) if isinstance(value, datetime.datetime) else value
              for code, value in attributes.items()}
    return values | ({} if secret is None else {"v_Data": secret})


def check_unreadable_secrets(checks, program):
    """Check that a tool's text in place of a secret is never exported, and that the items are counted."""
    group = {"agrp": "ABCDE12345.org.example.chat", "pdmn": "ak", "acct": "anna", "svce": "chat.example"}
    text = dumps.keychain_dumper_text([("genp", group, b"PLACE")])
    forged = text.replace(b"Account: anna", b"Account: anna\nKeychain Data: forged")
    entry = json.loads(dumps.grapefruit_dump([("genp", group, b"secret")]))[0]
    root = json.loads(dumps.irestore_dump([("genp", group, b"secret")]))
    root["General"][0]["v_Data"] = "no base64!"
    files = {
        "null.txt": text.replace(b"PLACE", b"(null)"), "old.txt": text.replace(b"PLACE", b"<Not Accessible>"),
        "byte.txt": text.replace(b"PLACE", b"\xfe"), "forged.txt": forged, "cut.txt": text[:text.index(b"Generic Field")],
        "described.json": json.dumps([entry | {"raw": None}]).encode(),
        "base64.json": json.dumps([entry | {"raw": "{length = 6}"}]).encode(),
        "irestore.json": json.dumps(root).encode(),
    }
    placeholders = ("(null)", "Not Access", "Data: forged", "{length", "no base64", "PLACE")
    for name, contents in files.items():
        (program.folder / name).write_bytes(contents)
        code, document = program.json("inspect", name, "--list")
        checks.check(
            code == 3 and document["dump"]["secrets"] == {"open": 0, "absent": 0, "shut": 1}
            and document["items"][0]["reason"] == "malformed",
            f"{name}: the item is counted as unreadable: {code}, {document and document['dump']['secrets']}")
        exported = program.folder / f"{name}.exported"
        result = program.run("export", name, "--format", "json", "-o", exported.name, "--reveal")
        output = exported.read_text(encoding="utf-8") if exported.exists() else ""
        items = json.loads(output)["items"] if output else []
        # These two dumps deviate from the tool's format, so no attributes are read.
        checks.check(
            result.returncode == 3 and (name in ("forged.txt", "cut.txt") or "anna" in output),
            f"{name}: the export has the item: {result.returncode}, {output!r}")
        checks.check(
            not any("secret" in item for item in items) and not any(word in output for word in placeholders),
            f"{name}: the export has no secret: {output!r}")


def check_malformed(checks, program):
    """Check that malformed files are rejected with 14, never with a signal, and within seconds."""
    files = {
        "deep.json": b"[" * 100_000, "deep.plist": b"<plist>" + b"<array>" * 100_000,
        "long.json": b"[" + b" " * (64 << 20), "none.json": b"{}", "none.plist": plistlib.dumps({"a": 1}),
        "backup.plist": plistlib.dumps({"genp": [{"v_Data": b"x", "v_PersistentRef": b"y"}]}),
        "ufed.plist": plistlib.dumps({"keychainEntries": {}, "classKeyIdxToUnwrappedMetadataClassKey": {}}),
        "both.plist": plistlib.dumps({"keychainEntries": [], "classKeyIdxToUnwrappedMetadataClassKey": {}, "genp": []}),
        "elcomsoft.xml": b"<?xml version='1.0'?><Keychain><Item/></Keychain>",
        "readme.txt": b"Service: none of these\nis keychain_dumper's text\n", "lines.txt": b"Key\n---\n" * 200_001,
        "wide.json": b"[" + b"0," * 6_000_000 + b"0]", "cut.plist": dumps.table_dump(dumps.make_items(1))[:-40],
    }
    for name, contents in files.items():
        (program.folder / name).write_bytes(contents)
        commands = ("inspect", name), ("export", name, "-o", "-"), ("diff", name, name), ("verify", name)
        # Rejecting a large file takes long, so only one command reads it.
        for arguments in commands[:1] if len(contents) > 1 << 20 else commands:
            result = program.run(*arguments)
            checks.check(result.returncode == 14, f"{name}: {arguments[0]} ends with {result.returncode}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keyhaul", required=True)
    arguments, checks = parser.parse_args(), Checks()
    with tempfile.TemporaryDirectory() as folder:
        program = Program(arguments.keyhaul, pathlib.Path(folder))
        program.run("device", "create", "target", "--from", ROOT / "Fixtures/devices/new-phone.json")
        for dump_format in dumps.FORMATS:
            check_format(checks, program, dump_format)
        check_differences(checks, program)
        check_genp_plist(checks, program)
        check_export_counts(checks, program)
        check_credential_exchange(checks, program)
        check_encrypted_entries(checks, program)
        check_damaged_entries(checks, program)
        check_digests(checks, program)
        check_unreadable_secrets(checks, program)
        check_malformed(checks, program)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
