#!/usr/bin/env python3
"""Holds everything that the program prints as JSON against the schemas of docs/schemas, with an independent validator.

    check_schemas.py --keyhaul PROGRAM

Runs a story in a temporary folder, every verb in every form that has JSON, and validates standard output and each line
of standard error; then breaks documents on purpose, which the schemas have to notice. Exit 1 where a check fails.
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
ENDINGS = {0: None, 2: "differs", 3: "partial", 4: "no-match", 5: "done-but", 10: "not-found", 11: "busy",
           12: "wrong-password", 13: "damaged", 14: "refused", 15: "locked", 16: "stale-plan", 64: "usage", 1: "failed"}

formats = FormatChecker(formats=())


@formats.checks("date-time")
def is_moment(value):
    """RFC 3339 in UTC, as every report writes it."""
    return not isinstance(value, str) or re.fullmatch(
        r"\d{4}-(0\d|1[0-2])-([0-2]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?Z", value) is not None


class Schemas:
    def __init__(self):
        self.documents = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in SCHEMAS.items()}
        registry = Registry().with_resources(
            (name, Resource.from_contents(schema)) for name, schema in self.documents.items())
        self.validators = {
            name: Draft202012Validator({"$ref": name}, registry=registry, format_checker=formats)
            for name in self.documents}

    def faults(self, name, document):
        """What is wrong with a document, the deepest fault first; empty where nothing is."""
        if name not in self.validators:
            return [f"there is no schema {name}"]
        errors = sorted(self.validators[name].iter_errors(document), key=lambda error: -len(error.absolute_path))
        return [f"{'/'.join(map(str, error.absolute_path)) or 'the document'}: {error.message[:200]}" for error in errors]

    @staticmethod
    def name_of(document):
        text = document.get("format") if isinstance(document, dict) else None
        return text.replace("/", "-") + ".schema.json" if isinstance(text, str) else "none"


def verbs_with_json(program):
    """Every verb that takes --json, as the program itself lists them."""
    dump = subprocess.run([program, "--experimental-dump-help"], stdout=subprocess.PIPE, check=True).stdout

    def leaves(command, words):
        below = [each for each in command.get("subcommands", []) if each["commandName"] != "help"]
        for each in below:
            yield from leaves(each, [*words, each["commandName"]])
        flags = {name["name"] for argument in command.get("arguments", []) for name in argument.get("names", [])}
        if not below and "json" in flags:
            yield " ".join(words)

    # The demonstration takes the flags of all verbs, and says of this one that it has no such form.
    return set(leaves(json.loads(dump)["command"], [])) - {"demo"}


class Story(Checks):
    """Runs the program and validates what it says."""

    def __init__(self, program, folder, schemas):
        super().__init__()
        self.program, self.folder, self.schemas = program, folder, schemas
        self.seen = {}
        # The verbs that have a form in JSON, and those that have printed a document.
        self.verbs, self.answered = verbs_with_json(program), set()
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("KEYHAUL_")}
        self.environment["KEYHAUL_HOME"] = "devices"
        self.environment["LC_ALL"] = "C.UTF-8"

    def valid(self, document, where):
        name = self.schemas.name_of(document)
        self.seen.setdefault(name, []).append(document)
        faults = self.schemas.faults(name, document)
        self.check(not faults, f"{where}: {name}: {'; '.join(faults[:3])}")

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)

    def run(self, line, *, ends=0, plain=False, documents=True):
        """One command; its document, which every ending but an early failure has.

        plain: without --json, for what has no form in it. documents: whether it prints one, not only writes a file.
        """
        arguments = line.split() + ([] if plain else ["--json", "--no-input"])
        done = subprocess.run(
            [self.program, *arguments], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        errors = done.stderr.decode("utf-8", "replace")
        self.check(done.returncode == ends, f"{line}: ends with {done.returncode}, not {ends}: {errors.strip()[-300:]}")
        if plain:
            return None
        for text in errors.splitlines():
            try:
                message = json.loads(text)
            except ValueError:
                self.check(False, f"{line}: not JSON on standard error: {text[:100]}")
                continue
            self.seen.setdefault(MESSAGE, []).append(message)
            faults = self.schemas.faults(MESSAGE, message)
            self.check(not faults, f"{line}: {text[:100]}: {faults[:2]}")
            if message.get("message_type") == "exit_error":
                self.check((message["code"], message["id"]) == (done.returncode, ENDINGS.get(done.returncode)),
                           f"{line}: says {message['code']} {message['id']} and ends with {done.returncode}")
        if not done.stdout:
            self.check(not documents or ends not in (0, 2, 3, 4), f"{line}: no document")
            return None
        try:
            document = json.loads(done.stdout)
        except ValueError as error:
            self.check(False, f"{line}: not one JSON document: {error}")
            return None
        self.valid(document, line)
        self.answered.add(max((verb for verb in self.verbs if f"{line} ".startswith(f"{verb} ")), key=len, default=line))
        return document

    def rows(self, line, table, *fields, ends=0):
        """Chosen fields of a table: what the whole document, which a schema holds for, has of each row."""
        whole = self.run(line, ends=ends) or {}
        done = subprocess.run(
            [self.program, *line.split(), "--no-input", "--fields", ",".join(fields)], cwd=self.folder, env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        expected = [{field: row.get("attributes", {}).get(field, row.get(field)) for field in fields}
                    for row in whole.get(table, [])]
        self.check(done.returncode == ends and expected and json.loads(done.stdout) == expected,
                   f"{line} --fields {','.join(fields)}: not the document's rows: {done.stdout[:200]}")

    def document(self, name):
        return json.loads((self.folder / name).read_text(encoding="utf-8"))


def devices(story):
    for name, text in (("old.pin", "135790\n"), ("new.pin", "2468\n"), ("password", "correct horse\n"), ("wrong", "no\n")):
        story.write(name, text)
    run = story.run
    run("device list")
    run("device create old-phone --from old-phone --passcode-file old.pin -n")
    run("device create old-phone --from old-phone --passcode-file old.pin")
    run("device create new-phone --from new-phone --passcode-file new.pin")
    run("device create hostile --from hostile-names")
    run("device create bare")
    run("device create bare", ends=64)
    run("device fixture every-rule")
    run("device fixture nothing", ends=10)
    run("device show nobody", ends=10)
    story.rows("device list", "devices", "name", "items", "last_backup")
    run("device show old-phone")
    run("device lock old-phone")
    run("item find old-phone", ends=15)
    run("device unlock old-phone --passcode-file wrong", ends=12)
    run("device unlock old-phone --passcode-file old.pin")
    run("device restart new-phone")
    run("device unlock new-phone --passcode-file new.pin")
    run("device passcode set bare --new-passcode-file old.pin -n")
    run("device passcode set bare --new-passcode-file old.pin")
    run("device passcode change bare --passcode-file old.pin --new-passcode-file new.pin")
    run("device passcode remove bare --passcode-file new.pin -n")
    run("device passcode remove bare --passcode-file new.pin")
    run("device lock", ends=64)


def items(story):
    run = story.run
    story.write("secret", "hunter2")
    run("item add bare --service chat.example --account anna --secret-file secret -n")
    run("item add bare --service chat.example --account anna --secret-file secret")
    run("item add bare --service chat.example --account anna --secret-file secret", ends=1)
    run("item find bare")
    run("item find bare --service nowhere", ends=4)
    run("item find old-phone --reveal")
    story.rows("item find hostile --reveal", "items", "kind", "acct", "secret")
    run("item update bare --service chat.example --new-account bertha -n --yes")
    run("item update bare --service chat.example --new-account bertha --yes")
    run("item delete bare --service chat.example -n")
    run("item delete bare --service chat.example", ends=64)
    run("item delete bare --service chat.example --yes")
    run("item delete bare --service chat.example --yes", ends=4)


def backups(story):
    run = story.run
    run("backup old-phone -o family.backup --password-file password --rounds 1 -n")
    run("backup old-phone -o family.backup --password-file password --rounds 1")
    run("backup old-phone -o plain.backup/ --no-password")
    run("backup hostile -o hostile.backup --password-file password --rounds 1")
    run("inspect family.backup")
    run("inspect family.backup --password-file password")
    run("inspect family.backup --list --password-file wrong", ends=12)
    run("inspect plain.backup/")
    (story.folder / "photos").mkdir()
    run("inspect photos/", ends=14)
    run("inspect devices/old-phone", ends=64)
    run("inspect nowhere.backup", ends=10)
    for part in ("--list", "--keybag", "--tree", "--tree -v"):
        run(f"inspect family.backup {part} --password-file password")
    story.rows("inspect family.backup --list --password-file password", "items", "account", "reason")
    story.rows("verify family.backup plain.backup --password-file password", "backups", "code", "name", ends=3)
    run("inspect family.backup --password-file password -o inspection.json", documents=False)
    story.valid(story.document("inspection.json"), "inspect -o")
    run("verify family.backup --password-file password")
    run("verify family.backup --quick")
    run("verify plain.backup/")
    run("diff family.backup family.backup --password-file password")
    run("diff old-phone new-phone --exit-code", ends=2)
    run("diff family.backup old-phone --password-file password -o difference.json", documents=False)
    story.valid(story.document("difference.json"), "diff -o")
    (story.folder / "shelf").mkdir()
    for name in ("one", "two"):
        run(f"backup bare -o shelf/{name}/ --no-password")
    run("inspect shelf")
    run("plan shelf --to new-phone")
    run("verify shelf family.backup --passwords nowhere", ends=10)
    story.write("passwords", "family* file:password\n")
    run("verify shelf family.backup nowhere/.. --passwords passwords --resume answers.ndjson", ends=64)
    (story.folder / "shelf/cut.tar").write_bytes((story.folder / "family.backup").read_bytes()[:2000])
    run("verify shelf family.backup --passwords passwords --resume answers.ndjson", ends=3)
    run("verify shelf family.backup --passwords passwords --resume answers.ndjson", ends=3)
    for line in (story.folder / "answers.ndjson").read_text(encoding="utf-8").splitlines():
        answer = json.loads(line)
        story.valid(answer, "--resume")
        if answer["document"]:
            story.valid(answer["document"], "a document in --resume")
    run("export family.backup --password-file password -o names.json -n")
    run("export family.backup --password-file password -o names.json")
    run("export family.backup --password-file password -o names.csv --reveal", ends=64)
    story.valid(story.document("names.json"), "export -o")
    run("export family.backup --password-file password -o -")
    run("export old-phone --reveal -o -")
    run("convert family.backup --decrypted -o clear/ -n --password-file password")
    run("convert family.backup --decrypted --reveal -o clear/ --password-file password")
    story.valid(story.document("clear.keychain.json"), "convert --decrypted --reveal")
    run("inspect clear")
    run("inspect clear --list --password-file password")
    run("export family.backup --files files -n --password-file password")
    run("export family.backup --files files --password-file password")
    lines = [json.loads(line) for line in (story.folder / "files/keyhaul-files.jsonl").read_text().splitlines()]
    story.valid(lines[0], "export --files")
    for line in lines[1:]:
        faults = story.schemas.faults("exported-files-1.schema.json", line)
        story.check(not faults, f"export --files: {line.get('path')}: {faults[:2]}")
    run("export family.backup --domain KeychainDomain --path keychain-backup.plist --password-file password -o keychain")
    run("convert family.backup -o family.zip -n")
    run("convert family.backup -o family.zip")
    run("convert family.backup -o family.zip")
    run("rekey family.zip --password-file password --new-password-file wrong --rounds 2 -n")
    run("rekey family.zip --password-file password --new-password-file wrong --rounds 2")
    run("seal family.zip --password-file wrong")
    with zipfile.ZipFile(story.folder / "family.zip") as source:
        with zipfile.ZipFile(story.folder / "foreign.zip", "w") as foreign:
            for name in source.namelist():
                if not name.endswith("Keyhaul.seal"):
                    foreign.writestr(name, source.read(name))
    run("verify foreign.zip --password-file wrong")
    run("seal foreign.zip --password-file wrong -n")
    run("seal foreign.zip --password-file wrong")


def moves(story):
    run = story.run
    secret = "--password-file password"
    run(f"plan family.backup --to new-phone {secret}")
    run(f"plan family.backup --to new-phone {secret} --existing merge --exit-code", ends=2)
    run(f"plan family.backup --to old-phone {secret}")
    run("plan plain.backup/ --to new-phone")
    run(f"plan hostile.backup --to new-phone {secret}")
    futures(story, secret)
    run("plan family.backup --to new-phone --password-file wrong", ends=12)
    run(f"plan family.backup --to new-phone {secret} -o move.plan")
    story.valid(story.document("move.plan"), "plan -o")
    damaged(story)
    run(f"restore family.backup --to new-phone {secret} -n")
    run(f"restore family.backup --to new-phone {secret}", ends=64)
    run(f"restore family.backup --to new-phone --plan move.plan {secret} --yes")
    run(f"restore family.backup --to new-phone --plan move.plan {secret} --yes", ends=16)
    run("restore plain.backup/ --to new-phone", ends=14)
    run("restore plain.backup/ --to old-phone --yes --existing replace", ends=3)
    for flag in ("--compare", "--by-app", "--audit", "--redact"):
        run(f"plan family.backup --to new-phone {secret} {flag}")
    story.write("expected.json", json.dumps({"format": "plan-expectations/1", "expectations": [
        {"service": "chat.example", "account": "anna", "expect": "migrates"},
        {"kind": "key", "label": "nobody's", "expect": "absent"}]}))
    story.valid(story.document("expected.json"), "expectations")
    run(f"plan family.backup --to new-phone {secret} --expect expected.json")
    story.write("missed.json", json.dumps({"format": "plan-expectations/1", "expectations": [
        {"service": "chat.example", "account": "anna", "expect": "absent"},
        {"service": "nowhere", "expect": "migrates"}]}))
    run(f"plan family.backup --to new-phone {secret} --expect missed.json", ends=2)
    story.write("settings.json", json.dumps({"format": "plan-expectations/1", "expectations": [
        {"service": "chat.example", "account": "anna", "expect": "migrates", "password": True},
        {"service": "chat.example", "account": "anna", "expect": "stays-behind", "same_device": False},
        {"service": "chat.example", "account": "anna", "expect": "absent", "same_device": True}]}))
    story.valid(story.document("settings.json"), "expectations for some restores")
    run(f"plan family.backup --to new-phone {secret} --expect settings.json", ends=2)
    run(f"plan family.backup --to new-phone {secret} --compare --expect settings.json", ends=2)
    run(f"why family.backup --service chat.example {secret}")
    run(f"why family.backup --service nowhere {secret}", ends=4)
    run("why old-phone --kind key")


def other_sources(story):
    """What other tools write of a keychain, and a keychain's own database: with a log, changed, without its keys."""
    run, made = story.run, dumps.items(5)
    for form in dumps.FORMS:
        (story.folder / form).write_bytes(dumps.written(form, 5)[0])
        run(f"inspect {form} --list")
    databases.Writer(1).write(str(story.folder / "simulator.db"), made, log=3)
    databases.Writer(1, "class").write(str(story.folder / "device.db"), made)
    for line in ("inspect simulator.db", "inspect simulator.db --list", "verify simulator.db",
                 "plan simulator.db --to new-phone", "why simulator.db --item 0 --to new-phone", "diff simulator.db new-phone", "diff simulator.db simulator.db",
                 "export simulator.db -o -"):
        run(line)
    (story.folder / "simulators/UDID").mkdir(parents=True)
    (story.folder / "simulators/UDID/keychain-2-debug.db").write_bytes((story.folder / "simulator.db").read_bytes())
    (story.folder / "simulators/broken").mkdir()
    (story.folder / "simulators/broken/keychain-2-debug.db").write_bytes(b"SQLite format 3\0")
    story.rows("simulator list simulators", "simulators", "fault", "name", ends=3)
    for line in ("seed simulators/UDID --from old-phone -n", "seed simulators/UDID --from every-rule --yes",
                 "seed simulators/UDID --from family.backup --keep --yes --password-file password",
                 "snapshot simulators/UDID -o saved.db --yes", "reset simulators/UDID --app apple -n",
                 "reset simulators/UDID --app apple --yes"):
        run(f"simulator {line}")
    run("simulator reset simulators/UDID --app apple --yes", ends=4)
    run("restore family.backup --to simulators/UDID --existing merge --password-file password -n")
    run("restore family.backup --to simulators/UDID --existing merge --password-file password --yes")
    run("device export old-phone -o exported.db --yes")
    run("device create twin --import exported.db --passcode-file old.pin")
    for line in ("find simulators/UDID", "find family.backup --password-file password", "find exported.db",
                 "update family.backup --password-file password --service chat.example --new-label Chat -n",
                 "delete family.backup --password-file password --service chat.example -n",
                 "delete exported.db --kind generic -n"):
        run(f"item {line}")
    run("simulator reset device.db --app apple --yes", ends=14)
    for line in ("inspect device.db", "inspect device.db --list", "verify device.db"):
        run(line, ends=3)
    connection = sqlite3.connect(story.folder / "device.db")
    connection.execute("UPDATE genp SET data = x'00' WHERE rowid = 1")
    connection.commit()
    connection.close()
    run("verify device.db", ends=13)


def futures(story, secret):
    """Plans without a target: of backups, with and without their device at hand, and of a device."""
    for line in (f"plan family.backup {secret}", f"plan family.backup {secret} --redact", "plan plain.backup/",
                 f"plan family.backup {secret} --source old-phone", "plan old-phone", "plan old-phone --no-password"):
        document = story.run(line)
        for future in (document or {"futures": [{"total": 0}]})["futures"]:
            counts = [future.get(name) or 0 for name in (
                "arrives", "expected", "stays_behind", "unreadable", "never_in_backup", "not_in_this_backup")]
            story.check(future["total"] == 22 == sum(counts), f"{line}: each of 22 items is counted once")
    story.run(f"plan family.backup {secret} --exit-code", ends=2)
    story.run("plan family.backup --existing merge", ends=64)
    for flag in ("--compare", "--by-app", "--audit"):
        story.run(f"plan family.backup {secret} {flag}")


def damaged(story):
    """A plan with an item that cannot be read: one bit of it in a backup without a password, digest and all."""
    folder = next(iter((story.folder / "plain.backup").glob("**/Manifest.db"))).parent
    # As if another program had written it; that a seal shows the change has tests of its own.
    (folder / "Keyhaul.seal").unlink()
    for path in sorted(folder.glob("[0-9a-f][0-9a-f]/*")):
        content = path.read_bytes()
        if not content.startswith(b"bplist00") or b"v_Data" not in content:
            continue
        changed = bytearray(content)
        # Far behind the header of the first item and far before its tag: version 3, stored with its least byte first.
        changed[content.index(b"\x03\x00\x00\x00") + 120] ^= 1
        path.write_bytes(changed)
        digests = [hashlib.sha1(version).digest() for version in (content, bytes(changed))]
        with contextlib.closing(sqlite3.connect(folder / "Manifest.db")) as database, database:
            for key, record in database.execute("SELECT fileID, file FROM Files").fetchall():
                database.execute("UPDATE Files SET file = ? WHERE fileID = ?", (record.replace(*digests), key))
        document = story.run("plan plain.backup/ --to old-phone", ends=3)
        story.check(document is not None and document["summary"]["unreadable"] == 1, "one item cannot be read")
        document = story.run("plan plain.backup/", ends=3)
        story.check(document is not None and document["futures"][1]["unreadable"] == 1, "it is lost on the same device")
        return
    story.check(False, "plain.backup has no keychain file that could be damaged")


def ends(story):
    run = story.run
    run("demo", ends=64)
    run("explain")
    run("explain device-bound")
    run("explain 13")
    run("explain nothing-known", ends=64)
    for shell in ("bash", "zsh", "fish"):
        run(f"completions {shell}")
    run("device erase old-phone -n")
    run("device erase old-phone", ends=64)
    run("device erase old-phone --yes")
    run("device delete bare --confirm bare -n")
    run("device delete bare --confirm bare")
    run("version")
    run("--version", plain=True)


def broken(seen):
    """Documents with one fault each: the schema's name, what is wrong, the document."""
    def changed(name, what, change, choose=lambda document: True):
        for document in seen.get(name, []):
            if choose(document):
                copied = copy.deepcopy(document)
                change(copied)
                return [(name, what, copied)]
        return [(name, f"{what} (nothing to break)", None)]

    plan, result = "migration-plan-1.schema.json", "restore-result-1.schema.json"

    def first(decided, **fields):
        def change(document):
            item = next(item for item in document["items"] if item["outcome"] == decided)
            for key, value in fields.items():
                item.pop(key) if value is None else item.update({key: value})
        return change

    def having(outcome):
        return lambda document: any(item["outcome"] == outcome for item in document["items"])

    cases = [
        (plan, "a moving item with a reason", first("migrates", reason="device-bound"), having("migrates")),
        (plan, "a moving item without a change", first("migrates", change=None), having("migrates")),
        (plan, "a staying item without a reason", first("stays-behind", reason=None), having("stays-behind")),
        (plan, "a staying item with a change", first("stays-behind", change="new"), having("stays-behind")),
        (plan, "a staying item that is damaged", first("stays-behind", reason="tag-mismatch"), having("stays-behind")),
        (plan, "an unreadable item by a rule", first("unreadable", reason="device-bound"), having("unreadable")),
        (plan, "an unknown outcome", first("migrates", outcome="moves"), having("migrates")),
        (plan, "an unknown class", first("migrates", protection="xx"), having("migrates")),
        (plan, "a field of an item that nobody knows", first("migrates", secret="x"), having("migrates")),
        (plan, "a digest that is none", lambda document: document["source"].update(digest="4f0c"), None),
        (plan, "a date that is none", lambda document: document.update(made="yesterday"), None),
        (plan, "another format", lambda document: document.update(format="migration-plan/2"), None),
        (plan, "a negative count", lambda document: document["summary"].update(total=-1), None),
        (plan, "an unknown reason in the summary", lambda document: document["summary"].update(by_reason={"x": 1}), None),
        (result, "no revision", lambda document: document.pop("revision"), None),
        ("backup-inspection-1.schema.json", "an unknown table",
         lambda document: document["keychain"].update(items={"x": 1}), None),
        ("keychain-items-1.schema.json", "a readable item with a reason",
         lambda document: document["items"][0].update(reason="malformed"), lambda document: document["items"]),
        ("keychain-items-1.schema.json", "a secret that is not base64",
         lambda document: document["items"][0].update(secret={"base64": "hunter 2"}), lambda document: document["items"]),
        ("device-1.schema.json", "an unknown state", lambda document: document.update(state="open"), None),
        ("backup-result-1.schema.json", "something left out for no reason",
         lambda document: document["left_out"][0].pop("reason"), lambda document: document["left_out"]),
        (MESSAGE, "an error without a code", lambda document: document.pop("code"),
         lambda document: document["message_type"] == "exit_error"),
        (MESSAGE, "an unknown kind of message", lambda document: document.update(message_type="note"), None),
    ]
    found = [case for name, what, change, choose in cases for case in changed(name, what, change, choose or (lambda _: True))]
    expectations = "plan-expectations-1.schema.json"

    def expecting(**fields):
        return {"format": "plan-expectations/1", "expectations": [fields]}

    return found + [
        (expectations, "an expectation of nothing", expecting(service="x")),
        (expectations, "an expectation of no item", expecting(expect="migrates")),
        (expectations, "a setting that is a text", expecting(service="x", expect="migrates", password="true")),
        (expectations, "a mistyped member", expecting(servise="x", service="x", expect="migrates")),
        (expectations, "a reason for what migrates", expecting(service="x", expect="migrates", reason="device-bound")),
    ]


def main():
    parser = argparse.ArgumentParser(description="Validate everything the program prints as JSON.")
    parser.add_argument("--keyhaul", required=True, type=pathlib.Path)
    program = str(parser.parse_args().keyhaul.resolve())
    schemas = Schemas()
    with tempfile.TemporaryDirectory() as name:
        story = Story(program, pathlib.Path(name), schemas)
        for file, schema in schemas.documents.items():
            Draft202012Validator.check_schema(schema)
            story.check(schema.get("$schema", "").endswith("2020-12/schema") and "title" in schema, f"{file}: no title")
        for path in sorted((ROOT / "Fixtures" / "devices").glob("*.json")):
            story.valid(json.loads(path.read_text(encoding="utf-8")), path.name)
        for part in (devices, items, backups, moves, other_sources, ends):
            part(story)
        for schema, what, document in broken(story.seen):
            story.check(document is not None and schemas.faults(schema, document), f"{schema} lets pass: {what}")
    for verb in sorted(story.verbs - story.answered):
        story.check(False, f"{verb} takes --json, and no document of it was held against a schema")
    story.check(len(story.verbs) > 20, f"the program lists {len(story.verbs)} verbs with JSON")
    unseen = sorted(set(SCHEMAS) - set(story.seen))
    print(f"{len(story.seen)} schemas met by {sum(map(len, story.seen.values()))} documents"
          + (f"; no document yet for {', '.join(name.removesuffix('.schema.json') for name in unseen)}" if unseen else ""))
    return story.conclude()


if __name__ == "__main__":
    sys.exit(main())
