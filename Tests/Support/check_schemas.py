#!/usr/bin/env python3
"""Validate all JSON that the program prints against docs/schemas, with an independent validator.

    check_schemas.py --keyhaul PROGRAM

Run each command that has JSON in a temporary folder, and validate standard output and each line of standard error.
Then break some of the printed documents, and check that the schemas reject them. Exit 1 if a check fails.
"""

import argparse
import contextlib
import copy
import hashlib
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile
import zipfile

from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource

from checks import Checks
from keychain_backup import databases, dumps

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMAS = {path.name: path for path in sorted((ROOT / "docs" / "schemas").glob("*.schema.json"))}
MESSAGE = "message.schema.json"
EXIT_IDS = {
    0: None,
    2: "differs",
    3: "partial",
    4: "no-match",
    5: "done-but",
    10: "not-found",
    11: "busy",
    12: "wrong-password",
    13: "damaged",
    14: "refused",
    15: "locked",
    16: "stale-plan",
    64: "usage",
    1: "failed",
}

DATE = re.compile(r"\d{4}-(0\d|1[0-2])-([0-2]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?Z")

formats = FormatChecker(formats=())


@formats.checks("date-time")
def is_date(value):
    """Return whether a value is a date in RFC 3339 and UTC, as in every report.

    A format applies only to strings, so other values are accepted.
    """
    return not isinstance(value, str) or DATE.fullmatch(value) is not None


class Schemas:
    """The schemas in docs/schemas."""

    def __init__(self):
        self.documents = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in SCHEMAS.items()}
        registry = Registry().with_resources(
            (name, Resource.from_contents(schema)) for name, schema in self.documents.items())
        self.validators = {
            name: Draft202012Validator({"$ref": name}, registry=registry, format_checker=formats)
            for name in self.documents}

    def faults(self, name, document):
        """Return the faults that a schema finds in a document, the most deeply nested first."""
        if name not in self.validators:
            return [f"there is no schema {name}"]
        errors = sorted(self.validators[name].iter_errors(document), key=lambda error: -len(error.absolute_path))
        return [
            f"{'/'.join(map(str, error.absolute_path)) or 'the document'}: {error.message[:200]}" for error in errors
        ]

    @staticmethod
    def schema_name(document):
        """Return the name of the schema for a document's format."""
        format_id = document.get("format") if isinstance(document, dict) else None
        return format_id.replace("/", "-") + ".schema.json" if isinstance(format_id, str) else "none"


def commands_with_json(program):
    """Return every command with --json, as the program lists them."""
    dump = subprocess.run([program, "--experimental-dump-help"], stdout=subprocess.PIPE, check=True).stdout

    def collect(command, names):
        subcommands = [
            subcommand for subcommand in command.get("subcommands", []) if subcommand["commandName"] != "help"
        ]
        for subcommand in subcommands:
            yield from collect(subcommand, [*names, subcommand["commandName"]])
        flags = {name["name"] for argument in command.get("arguments", []) for name in argument.get("names", [])}
        if not subcommands and "json" in flags:
            yield " ".join(names)

    # These two commands accept the flags of all commands, but reject --json.
    return set(collect(json.loads(dump)["command"], [])) - {"demo", "device serve"}


class Session(Checks):
    """Commands of the program in one folder, and the documents that they printed."""

    def __init__(self, program, folder, schemas):
        super().__init__()
        self.program, self.folder, self.schemas = program, folder, schemas
        self.documents = {}
        # The commands with --json, and the commands whose documents were validated.
        self.commands, self.validated_commands = commands_with_json(program), set()
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("KEYHAUL_")}
        self.environment["KEYHAUL_HOME"] = "devices"
        self.environment["LC_ALL"] = "C.UTF-8"

    def validate(self, document, where):
        """Validate a document."""
        name = self.schemas.schema_name(document)
        self.documents.setdefault(name, []).append(document)
        faults = self.schemas.faults(name, document)
        self.check(not faults, f"{where}: {name}: {'; '.join(faults[:3])}")

    def write(self, name, text):
        """Write a file that only the user can read."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)

    def run(self, line, *, exit_code=0, adds_json=True, prints_document=True):
        """Run a command, and return the document on its standard output, or None if there is none.

        `adds_json` states whether --json is added. `prints_document` states whether the document is on standard output,
        and not only in a file.
        """
        arguments = line.split() + (["--json", "--no-input"] if adds_json else [])
        process = subprocess.run(
            [self.program, *arguments], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        error_output = process.stderr.decode("utf-8", "replace")
        self.check(
            process.returncode == exit_code,
            f"{line}: ends with {process.returncode}, not {exit_code}: {error_output.strip()[-300:]}")
        if not adds_json:
            return None
        for message_line in error_output.splitlines():
            self.check_message(line, message_line, process.returncode)
        if not process.stdout:
            self.check(not prints_document or exit_code not in (0, 2, 3, 4), f"{line}: no document")
            return None
        try:
            document = json.loads(process.stdout)
        except ValueError as error:
            self.check(False, f"{line}: not one JSON document: {error}")
            return None
        self.validate(document, line)
        # The longest name, because `device` and `device list` are both commands.
        commands = [command for command in self.commands if f"{line} ".startswith(f"{command} ")]
        self.validated_commands.add(max(commands, key=len, default=line))
        return document

    def check_message(self, line, message_line, exit_code):
        """Validate a line of standard error, and compare the code of an error with the exit code."""
        try:
            message = json.loads(message_line)
        except ValueError:
            self.check(False, f"{line}: not JSON on standard error: {message_line[:100]}")
            return
        self.documents.setdefault(MESSAGE, []).append(message)
        faults = self.schemas.faults(MESSAGE, message)
        self.check(not faults, f"{line}: {message_line[:100]}: {faults[:2]}")
        if message.get("message_type") == "exit_error":
            ids = {EXIT_IDS.get(exit_code)} | ({"needs-password"} if exit_code == 12 else set())
            self.check(
                message["code"] == exit_code and message["id"] in ids,
                f"{line}: reports {message['code']} {message['id']}, but ends with {exit_code}")

    def check_rows(self, line, table, *fields, exit_code=0):
        """Check that --fields prints the same values as the rows of the complete document."""
        document = self.run(line, exit_code=exit_code) or {}
        process = subprocess.run(
            [self.program, *line.split(), "--no-input", "--fields", ",".join(fields)], cwd=self.folder,
            env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            check=False)
        expected = [{field: row.get("attributes", {}).get(field, row.get(field)) for field in fields}
                    for row in document.get(table, [])]
        self.check(process.returncode == exit_code and expected and json.loads(process.stdout) == expected,
                   f"{line} --fields {','.join(fields)}: not the rows of the document: {process.stdout[:200]}")

    def document(self, name):
        """Return the document in a file."""
        return json.loads((self.folder / name).read_text(encoding="utf-8"))


def device_commands(session):
    """Run the commands on devices and passcodes."""
    for name, text in (
        ("old.pin", "135790\n"), ("new.pin", "2468\n"), ("password", "correct horse\n"), ("wrong", "no\n")
    ):
        session.write(name, text)
    run = session.run
    run("device list")
    run("device create old-phone --from old-phone --passcode-file old.pin -n")
    run("device create old-phone --from old-phone --passcode-file old.pin")
    run("device create new-phone --from new-phone --passcode-file new.pin")
    run("device create hostile --from hostile-names")
    run("device create bare")
    run("device create bare", exit_code=64)
    run("device fixture every-rule")
    run("device fixture nothing", exit_code=10)
    run("device show nobody", exit_code=10)
    session.check_rows("device list", "devices", "name", "items", "last_backup")
    run("device show old-phone")
    run("device lock old-phone")
    run("item find old-phone", exit_code=15)
    run("device unlock old-phone --passcode-file wrong", exit_code=12)
    run("device unlock old-phone --passcode-file old.pin")
    run("device restart new-phone")
    run("device unlock new-phone --passcode-file new.pin")
    run("device passcode set bare --new-passcode-file old.pin -n")
    run("device passcode set bare --new-passcode-file old.pin")
    run("device passcode change bare --passcode-file old.pin --new-passcode-file new.pin")
    run("device passcode remove bare --passcode-file new.pin -n")
    run("device passcode remove bare --passcode-file new.pin")
    run("device lock", exit_code=64)


def item_commands(session):
    """Run the commands that find and change items of a device."""
    run = session.run
    session.write("secret", "hunter2")
    run("item add bare --service chat.example --account anna --secret-file secret -n")
    run("item add bare --service chat.example --account anna --secret-file secret")
    run("item add bare --service chat.example --account anna --secret-file secret", exit_code=1)
    run("item find bare")
    run("item find bare --service nowhere", exit_code=4)
    run("item find old-phone --reveal")
    session.check_rows("item find hostile --reveal", "items", "kind", "acct", "secret")
    run("item update bare --service chat.example --new-account bertha -n --yes")
    run("item update bare --service chat.example --new-account bertha --yes")
    run("item delete bare --service chat.example -n")
    run("item delete bare --service chat.example", exit_code=64)
    run("item delete bare --service chat.example --yes")
    run("item delete bare --service chat.example --yes", exit_code=4)


def backup_commands(session):
    """Run the commands on backups."""
    make_and_inspect_backups(session)
    verify_and_compare_backups(session)
    examine_many_backups(session)
    export_and_convert_backups(session)
    rekey_and_seal_backups(session)


def make_and_inspect_backups(session):
    run = session.run
    run("backup old-phone -o family.backup --password-file password --rounds 1 -n")
    run("backup old-phone -o family.backup --password-file password --rounds 1")
    run("backup old-phone -o plain.backup/ --no-password")
    run("backup hostile -o hostile.backup --password-file password --rounds 1")
    run("inspect family.backup")
    run("inspect family.backup --password-file password")
    run("inspect family.backup --list --password-file wrong", exit_code=12)
    run("inspect plain.backup/")
    (session.folder / "photos").mkdir()
    run("inspect photos/", exit_code=14)
    run("inspect devices/old-phone", exit_code=64)
    run("inspect nowhere.backup", exit_code=10)
    for part in ("--list", "--keybag", "--tree", "--tree -v"):
        run(f"inspect family.backup {part} --password-file password")
    session.check_rows("inspect family.backup --list --password-file password", "items", "account", "reason")
    session.check_rows(
        "verify family.backup plain.backup --password-file password", "backups", "code", "name",
        exit_code=3)
    run("inspect family.backup --password-file password -o inspection.json", prints_document=False)
    session.validate(session.document("inspection.json"), "inspect -o")


def verify_and_compare_backups(session):
    run = session.run
    run("verify family.backup --password-file password")
    run("verify family.backup --quick")
    run("verify plain.backup/")
    run("diff family.backup family.backup --password-file password")
    run("diff old-phone new-phone --exit-code", exit_code=2)
    run("diff family.backup old-phone --password-file password -o difference.json", prints_document=False)
    session.validate(session.document("difference.json"), "diff -o")


def examine_many_backups(session):
    """Run commands on a folder of backups, with a password list, a results file, and a case report."""
    run = session.run
    (session.folder / "shelf").mkdir()
    for name in ("one", "two"):
        run(f"backup bare -o shelf/{name}/ --no-password")
    run("inspect shelf")
    run("plan shelf --to new-phone")
    run("verify shelf family.backup --passwords nowhere", exit_code=10)
    session.write("passwords", "family* file:password\n")
    run("verify shelf family.backup nowhere/.. --passwords passwords --resume answers.ndjson", exit_code=64)
    (session.folder / "shelf/cut.tar").write_bytes((session.folder / "family.backup").read_bytes()[:2000])
    run("verify shelf family.backup --passwords passwords --resume answers.ndjson", exit_code=3)
    run("verify shelf family.backup --passwords passwords --resume answers.ndjson", exit_code=3)
    for line in (session.folder / "answers.ndjson").read_text(encoding="utf-8").splitlines():
        answer = json.loads(line)
        session.validate(answer, "--resume")
        if answer["document"]:
            session.validate(answer["document"], "a document in --resume")
    run("item find shelf --service chat.example --passwords passwords", exit_code=3)
    run("verify shelf family.backup --passwords passwords --case 1 --examiner A -o case.json", exit_code=3)
    session.validate(session.document("case.json"), "--case")
    run("inspect family.backup --case 1 --examiner A -o inspected.json")


def export_and_convert_backups(session):
    run = session.run
    session.check_rows("plan family.backup --password-file password", "items", "index", "outcomes")
    run("export family.backup --password-file password -o names.json -n")
    run("export family.backup --password-file password -o names.json")
    run("export family.backup --password-file password -o names.csv --reveal", exit_code=64)
    session.validate(session.document("names.json"), "export -o")
    run("export family.backup --password-file password -o -")
    run("export old-phone --reveal -o -")
    run("convert family.backup --decrypted -o clear/ -n --password-file password")
    run("convert family.backup --decrypted --reveal -o clear/ --password-file password")
    session.validate(session.document("clear.keychain.json"), "convert --decrypted --reveal")
    run("inspect clear")
    run("inspect clear --list --password-file password")
    run("export family.backup --files files -n --password-file password")
    run("export family.backup --files files --password-file password")
    lines = [json.loads(line) for line in (session.folder / "files/keyhaul-files.jsonl").read_text().splitlines()]
    session.validate(lines[0], "export --files")
    for line in lines[1:]:
        faults = session.schemas.faults("exported-files-1.schema.json", line)
        session.check(not faults, f"export --files: {line.get('path')}: {faults[:2]}")
    run(
        "export family.backup --domain KeychainDomain --path keychain-backup.plist --password-file password -o keychain"
    )
    run("convert family.backup -o family.zip -n")
    run("convert family.backup -o family.zip")
    run("convert family.backup -o family.zip")


def rekey_and_seal_backups(session):
    """Change a password, and seal a backup that has lost its seal."""
    run = session.run
    run("rekey family.zip --password-file password --new-password-file wrong --rounds 2 -n")
    run("rekey family.zip --password-file password --new-password-file wrong --rounds 2")
    run("seal family.zip --password-file wrong")
    with zipfile.ZipFile(session.folder / "family.zip") as source:
        with zipfile.ZipFile(session.folder / "foreign.zip", "w") as foreign:
            for name in source.namelist():
                if not name.endswith("Keyhaul.seal"):
                    foreign.writestr(name, source.read(name))
    run("verify foreign.zip --password-file wrong")
    run("seal foreign.zip --password-file wrong -n")
    run("seal foreign.zip --password-file wrong")


PASSWORD_OPTION = "--password-file password"


def plans_and_restores(session):
    """Run plans with and without expectations, and restores."""
    run, password_option = session.run, PASSWORD_OPTION
    run(f"plan family.backup --to new-phone {password_option}")
    run(f"plan family.backup --to new-phone {password_option} --existing merge --exit-code", exit_code=2)
    run(f"plan family.backup --to old-phone {password_option}")
    run("plan plain.backup/ --to new-phone")
    run(f"plan hostile.backup --to new-phone {password_option}")
    plans_without_target(session)
    run("plan family.backup --to new-phone --password-file wrong", exit_code=12)
    run(f"plan family.backup --to new-phone {password_option} -o move.plan")
    session.validate(session.document("move.plan"), "plan -o")
    plan_with_damaged_item(session)
    run(f"restore family.backup --to new-phone {password_option} -n")
    run(f"restore family.backup --to new-phone {password_option}", exit_code=64)
    run(f"restore family.backup --to new-phone --plan move.plan {password_option} --yes")
    run(f"restore family.backup --to new-phone --plan move.plan {password_option} --yes", exit_code=16)
    run("restore plain.backup/ --to new-phone", exit_code=14)
    run("restore plain.backup/ --to old-phone --yes --existing replace", exit_code=3)
    for flag in ("--compare", "--by-app", "--audit", "--redact"):
        run(f"plan family.backup --to new-phone {password_option} {flag}")
    plans_with_expectations(session)
    run(f"why family.backup --service chat.example {password_option}")
    run(f"why family.backup --service nowhere {password_option}", exit_code=4)
    run("why old-phone --kind key")


def plans_with_expectations(session):
    """Run plans with expectations that are met, that are missed, and that apply to some restores."""
    def write_expectations(name, *expectations):
        session.write(name, json.dumps({"format": "plan-expectations/1", "expectations": expectations}))
        session.validate(session.document(name), name)

    anna = {"service": "chat.example", "account": "anna"}
    plan = f"plan family.backup --to new-phone {PASSWORD_OPTION}"
    write_expectations(
        "expected.json", {**anna, "expect": "migrates"}, {"kind": "key", "label": "nobody's", "expect": "absent"})
    session.run(f"{plan} --expect expected.json")
    write_expectations("missed.json", {**anna, "expect": "absent"}, {"service": "nowhere", "expect": "migrates"})
    session.run(f"{plan} --expect missed.json", exit_code=2)
    write_expectations(
        "settings.json", {**anna, "expect": "migrates", "password": True},
        {**anna, "expect": "stays-behind", "same_device": False}, {**anna, "expect": "absent", "same_device": True})
    session.run(f"{plan} --expect settings.json", exit_code=2)
    session.run(f"{plan} --compare --expect settings.json", exit_code=2)


def other_sources(session):
    """Check dumps of other tools, Simulators, and keychain databases."""
    for dump_format in dumps.FORMATS:
        contents, _ = dumps.make_dump(dump_format, 5)
        (session.folder / dump_format).write_bytes(contents)
        session.run(f"inspect {dump_format} --list")
    databases.Writer(1).write(str(session.folder / "simulator.db"), dumps.make_items(5), wal_count=3)
    simulator_commands(session)
    databases_as_sources(session)
    database_without_keys(session)


def simulator_commands(session):
    """Run the commands that read and change a Simulator's database."""
    run = session.run
    for line in (
        "inspect simulator.db", "inspect simulator.db --list", "verify simulator.db",
        "plan simulator.db --to new-phone", "why simulator.db --item 0 --to new-phone", "diff simulator.db new-phone",
        "diff simulator.db simulator.db", "export simulator.db -o -"
    ):
        run(line)
    (session.folder / "simulators/UDID").mkdir(parents=True)
    (session.folder / "simulators/UDID/keychain-2-debug.db").write_bytes((session.folder / "simulator.db").read_bytes())
    (session.folder / "simulators/broken").mkdir()
    (session.folder / "simulators/broken/keychain-2-debug.db").write_bytes(b"SQLite format 3\0")
    session.check_rows("simulator list simulators", "simulators", "fault", "name", exit_code=3)
    for line in ("seed simulators/UDID --from old-phone -n", "seed simulators/UDID --from every-rule --yes",
                 "seed simulators/UDID --from family.backup --keep --yes --password-file password",
                 "snapshot simulators/UDID -o saved.db --yes", "restore simulators/UDID saved.db -n",
                 "restore simulators/UDID saved.db --yes", "reset simulators/UDID --app apple -n",
                 "reset simulators/UDID --app apple --yes"):
        run(f"simulator {line}")
    run("simulator reset simulators/UDID --app apple --yes", exit_code=4)
    run("restore family.backup --to simulators/UDID --existing merge --password-file password -n")
    run("restore family.backup --to simulators/UDID --existing merge --password-file password --yes")


def databases_as_sources(session):
    """Export a device's database, and run the commands that find and change items in databases and backups."""
    run = session.run
    run("device export old-phone -o exported.db --yes")
    run("device create twin --import exported.db --passcode-file old.pin")
    for line in ("find simulators/UDID", "find family.backup --password-file password", "find exported.db",
                 "update family.backup --password-file password --service chat.example --new-label Chat -n",
                 "delete family.backup --password-file password --service chat.example -n",
                 "delete exported.db --kind generic -n"):
        run(f"item {line}")


def database_without_keys(session):
    """Run commands on a device's database without its class keys, also after a change of an item."""
    run = session.run
    databases.Writer(1, "class").write(str(session.folder / "device.db"), dumps.make_items(5))
    run("simulator reset device.db --app apple --yes", exit_code=14)
    for line in ("inspect device.db", "inspect device.db --list", "verify device.db"):
        run(line, exit_code=3)
    connection = sqlite3.connect(session.folder / "device.db")
    connection.execute("UPDATE genp SET data = x'00' WHERE rowid = 1")
    connection.commit()
    connection.close()
    run("verify device.db", exit_code=13)


def plans_without_target(session):
    """Check plans without a target: of backups, with and without their source device, and of a device."""
    with_password = f"plan family.backup {PASSWORD_OPTION}"
    for line in (with_password, f"{with_password} --redact", "plan plain.backup/",
                 f"{with_password} --source old-phone", "plan old-phone", "plan old-phone --no-password"):
        document = session.run(line)
        for future in (document or {"futures": [{"total": 0}]})["futures"]:
            counts = [future.get(name) or 0 for name in (
                "arrives", "expected", "stays_behind", "unreadable", "never_in_backup", "not_in_this_backup")]
            session.check(future["total"] == 22 == sum(counts), f"{line}: each of 22 items is counted once")
    session.run(f"{with_password} --exit-code", exit_code=2)
    session.run("plan family.backup --existing merge", exit_code=64)
    for flag in ("--compare", "--by-app", "--audit"):
        session.run(f"{with_password} {flag}")


def plan_with_damaged_item(session):
    """Check a plan with an undecryptable item.

    One bit of the item is changed in an unencrypted backup, and the file's digest is updated.
    """
    folder = next(iter((session.folder / "plain.backup").glob("**/Manifest.db"))).parent
    # Without the seal, the change cannot be detected.
    (folder / "Keyhaul.seal").unlink()
    for path in sorted(folder.glob("[0-9a-f][0-9a-f]/*")):
        content = path.read_bytes()
        if not content.startswith(b"bplist00") or b"v_Data" not in content:
            continue
        changed = bytearray(content)
        # A byte in the ciphertext of the first item, whose blob starts with version 3 in little-endian order.
        changed[content.index(b"\x03\x00\x00\x00") + 120] ^= 1
        path.write_bytes(changed)
        digests = [hashlib.sha1(version).digest() for version in (content, bytes(changed))]
        with contextlib.closing(sqlite3.connect(folder / "Manifest.db")) as database, database:
            for key, record in database.execute("SELECT fileID, file FROM Files").fetchall():
                database.execute("UPDATE Files SET file = ? WHERE fileID = ?", (record.replace(*digests), key))
        document = session.run("plan plain.backup/ --to old-phone", exit_code=3)
        session.check(document is not None and document["summary"]["unreadable"] == 1, "one item cannot be read")
        document = session.run("plan plain.backup/", exit_code=3)
        session.check(
            document is not None and document["futures"][1]["unreadable"] == 1, "one item is lost on the same device"
        )
        return
    session.check(False, "plain.backup has no keychain file")


def other_commands(session):
    """Run the remaining commands. They delete the devices, so they run last."""
    run = session.run
    run("demo", exit_code=64)
    run("explain")
    run("explain device-bound")
    run("explain 13")
    run("explain -25300")
    run("explain MBErrorDomain/205")
    run("explain nothing-known", exit_code=64)
    for shell in ("bash", "zsh", "fish"):
        run(f"completions {shell}")
    run("device erase old-phone -n")
    run("device erase old-phone", exit_code=64)
    run("device erase old-phone --yes")
    run("device delete bare --confirm bare -n")
    run("device delete bare --confirm bare")
    run("version")
    run("--version", adds_json=False)


PLAN, ITEMS, EXPECTATIONS = (
    "migration-plan-1.schema.json", "keychain-items-1.schema.json", "plan-expectations-1.schema.json")


def broken_documents(documents):
    """Yield documents with one fault each, as (name of the schema, fault, document)."""
    for name, fault, change, is_suitable in document_faults():
        document = next((document for document in documents.get(name, []) if is_suitable(document)), None)
        if document is None:
            yield name, f"{fault} (there is no document to break)", None
            continue
        broken_document = copy.deepcopy(document)
        change(broken_document)
        yield name, fault, broken_document
    for fault, expectation in (
        ("an expectation without an outcome", {"service": "x"}),
        ("an expectation without an item", {"expect": "migrates"}),
        ("a text instead of a boolean", {"service": "x", "expect": "migrates", "password": "true"}),
        ("a mistyped member", {"servise": "x", "service": "x", "expect": "migrates"}),
        ("a reason for an item that migrates", {"service": "x", "expect": "migrates", "reason": "device-bound"}),
    ):
        yield EXPECTATIONS, fault, {"format": "plan-expectations/1", "expectations": [expectation]}


def every_document(_):
    return True


def has_items(document):
    return bool(document["items"])


def document_faults():
    """Yield each fault as (name of the schema, fault, function that causes it, function that selects documents)."""
    yield from plan_faults()
    yield "restore-result-1.schema.json", "no revision", lambda document: document.pop("revision"), every_document
    yield (
        "backup-inspection-1.schema.json", "an unknown table",
        lambda document: document["keychain"].update(items={"x": 1}), every_document)
    yield (
        ITEMS, "a readable item with a reason", lambda document: document["items"][0].update(reason="malformed"),
        has_items)
    yield (
        ITEMS, "a secret that is not base64",
        lambda document: document["items"][0].update(secret={"base64": "hunter 2"}), has_items)
    yield "device-1.schema.json", "an unknown state", lambda document: document.update(state="open"), every_document
    yield (
        "backup-result-1.schema.json", "an omitted item without a reason",
        lambda document: document["left_out"][0].pop("reason"), lambda document: document["left_out"])
    yield (
        MESSAGE, "an error without a code", lambda document: document.pop("code"),
        lambda document: document["message_type"] == "exit_error")
    yield MESSAGE, "an unknown kind of message", lambda document: document.update(message_type="note"), every_document


def plan_faults():
    """Yield the faults of a plan, in the form of `document_faults`."""
    for outcome, fault, members in (
        ("migrates", "an item that migrates with a reason", {"reason": "device-bound"}),
        ("migrates", "an item that migrates without a change", {"change": None}),
        ("stays-behind", "an item that stays behind without a reason", {"reason": None}),
        ("stays-behind", "an item that stays behind with a change", {"change": "new"}),
        ("stays-behind", "an item that stays behind that is damaged", {"reason": "tag-mismatch"}),
        ("unreadable", "an unreadable item by a rule", {"reason": "device-bound"}),
        ("migrates", "an unknown outcome", {"outcome": "moves"}),
        ("migrates", "an unknown class", {"protection": "xx"}),
        ("migrates", "an unknown field of an item", {"secret": "x"}),
    ):
        yield PLAN, fault, with_first_item(outcome, members), has_outcome(outcome)
    yield PLAN, "a malformed digest", lambda document: document["source"].update(digest="4f0c"), every_document
    yield PLAN, "a malformed date", lambda document: document.update(made="yesterday"), every_document
    yield PLAN, "another format", lambda document: document.update(format="migration-plan/2"), every_document
    yield PLAN, "a negative count", lambda document: document["summary"].update(total=-1), every_document
    yield (
        PLAN, "an unknown reason in the summary", lambda document: document["summary"].update(by_reason={"x": 1}),
        every_document)


def with_first_item(outcome, members):
    """Return a function that changes members of a plan's first item with an outcome. None removes a member."""
    def change(document):
        item = next(item for item in document["items"] if item["outcome"] == outcome)
        for member, value in members.items():
            item.pop(member) if value is None else item.update({member: value})
    return change


def has_outcome(outcome):
    """Return a function that selects plans with an outcome."""
    return lambda document: any(item["outcome"] == outcome for item in document["items"])


def check_schemas(session):
    """Check that each schema is valid and has a title."""
    for name, schema in session.schemas.documents.items():
        Draft202012Validator.check_schema(schema)
        session.check(
            schema.get("$schema", "").endswith("2020-12/schema") and "title" in schema, f"{name}: no title")


def main():
    parser = argparse.ArgumentParser(description="Validate all JSON that the program prints.")
    parser.add_argument("--keyhaul", required=True, type=pathlib.Path)
    program = str(parser.parse_args().keyhaul.resolve())
    schemas = Schemas()
    with tempfile.TemporaryDirectory() as name:
        session = Session(program, pathlib.Path(name), schemas)
        check_schemas(session)
        for path in sorted((ROOT / "Fixtures" / "devices").glob("*.json")):
            session.validate(json.loads(path.read_text(encoding="utf-8")), path.name)
        for run_commands in (
            device_commands, item_commands, backup_commands, plans_and_restores, other_sources, other_commands
        ):
            run_commands(session)
        for schema, fault, document in broken_documents(session.documents):
            session.check(document is not None and schemas.faults(schema, document), f"{schema} accepts {fault}")
    for command in sorted(session.commands - session.validated_commands):
        session.check(False, f"no document of {command} was validated, although it has --json")
    session.check(len(session.commands) > 20, f"the program lists {len(session.commands)} commands with JSON")
    document_count = sum(map(len, session.documents.values()))
    summary = f"{len(session.documents)} schemas were used for {document_count} documents"
    unused_schemas = sorted(set(SCHEMAS) - set(session.documents))
    if unused_schemas:
        names = ", ".join(name.removesuffix(".schema.json") for name in unused_schemas)
        summary += f"; there was no document for {names}"
    print(summary)
    return session.finish()


if __name__ == "__main__":
    sys.exit(main())
