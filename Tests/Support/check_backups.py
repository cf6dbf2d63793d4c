#!/usr/bin/env python3
"""Run Keyhaul on backups of every layout and on backups with one fault, and check the results.

    check_backups.py --keyhaul .build/release/keyhaul [--only NAME] [--verbs inspect,verify,export,plan,convert]

`backup_cases` and `backup_faults` make the backups without Keyhaul's code. Each run also has to end by itself, print no
secret, and leave no temporary files.
"""

import argparse
import base64
import collections
import concurrent.futures
import contextlib
import dataclasses
import hashlib
import html
import json
import os
import pathlib
import plistlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

from backup_cases import CASES, FIXTURES, write_device_backups
from backup_faults import FAULTS
from faults import DAMAGED, NOT_FOUND, PARTIAL, REFUSED, SUCCESS, WRONG_PASSWORD, Fault, flip_bit
from keychain_backup import apple_der, mbfile
from keychain_backup.options import KEYCHAIN, NOTES

COMMANDS = ("inspect", "verify", "export", "plan", "convert")
TIMEOUT_SECONDS = 120
DATES = {"cdat", "mdat", "sdat", "edat"}
# Internal attributes of the keychain. They are compared if both sides have them.
BOOKKEEPING = {"sha1", "UUID", "persistref", "musr", "tomb", "sync"}
SECRETS = (b"hunter2", b"correct horse", b"plum-orchard-42", b"push-9f2c71d0a4", b"tr0ub4dor&3")


class Result:
    """The exit code and the output of one command."""

    def __init__(self, code, output, errors):
        self.code, self.output, self.errors = code, output, errors

    @property
    def text_output(self):
        """The standard output and standard error."""
        return (self.output + self.errors).decode("utf-8", "replace")

    @property
    def last_message(self):
        """The lines on standard error that are not progress messages."""
        lines = [line.strip() for line in self.errors.decode("utf-8", "replace").splitlines()]
        return " / ".join(line for line in lines if line and '"message_type":"status"' not in line)[:300]

    @property
    def json(self):
        """The document on standard output, or None if there is none."""
        try:
            return json.loads(self.output)
        except ValueError:
            return None


class BackupChecker:
    """The checks of one backup, with the program, a folder, and the failures so far."""

    def __init__(self, program, folder, commands):
        self.program, self.commands = program, commands
        self.folder, self.home = folder, folder.parent / "home"
        self.passed, self.failures = 0, []
        self.temporary = folder / "temporary"
        self.temporary.mkdir(parents=True)

    def check(self, condition, message):
        """Count a check. Record the message if the condition is false."""
        if condition:
            self.passed += 1
        else:
            self.failures.append(message)
        return condition

    def check_equal(self, found, expected, context):
        return self.check(found == expected, f"{context}: expected {expected!r}, got {found!r}")

    def run(self, *arguments, reveals_secrets=False):
        """Run a command, and check that it ends by itself, prints no secret and leaves no temporary file."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KEYHAUL_")}
        environment["TMPDIR"] = str(self.temporary)
        name = str(arguments[0])
        command = [str(self.program), *map(str, arguments), "--home", str(self.home), "--no-input"]
        try:
            process = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_SECONDS, env=environment)
        except subprocess.TimeoutExpired:
            self.check(False, f"{name}: did not end within {TIMEOUT_SECONDS} s")
            return Result(None, b"", b"")
        result = Result(process.returncode, process.stdout, process.stderr)
        self.check(result.code >= 0, f"{name}: ended by signal {-result.code}")
        if not reveals_secrets:
            printed_secrets = [secret for secret in SECRETS if secret in process.stdout or secret in process.stderr]
            self.check(not printed_secrets, f"{name}: prints a secret")
        leftover = sorted(path.name for path in self.temporary.iterdir())
        self.check(not leftover, f"{name}: leaves the temporary files {leftover}")
        shutil.rmtree(self.temporary)
        self.temporary.mkdir()
        return result

    def check_exit(self, result, exit_code, context, messages=()):
        """Check the exit code of a result, and that its output contains the messages."""
        matches = self.check(
            result.code == exit_code, f"{context}: expected {exit_code}, got {result.code}  ({result.last_message})")
        output = " ".join(result.text_output.lower().split())
        for message in messages if matches else ():
            self.check(message.lower() in output, f"{context}: does not print {message!r}  ({result.last_message})")
        return matches

    def password(self, password, name="password"):
        """Return the options for a password. The newline in the file is not part of the password."""
        if password is None:
            return []
        path = self.folder / name
        path.write_bytes(password + (b"" if password.endswith(b"\r") else b"\n"))
        path.chmod(0o600)
        return ["--password-file", path]


# Valid backups

def check_case(checker, case):
    """Check the commands on a valid backup."""
    path, expectations = case.write(checker.folder / "written")
    password = checker.password(case.typed_password)
    if "inspect" in checker.commands:
        check_inspection(checker, checker.run("inspect", path, "--json"), expectations, with_password=False)
        check_inspection(checker, checker.run("inspect", path, "--json", *password), expectations, with_password=True)
        if password and case.exit_code == 0:
            wrong = checker.run("inspect", path, "--json", *checker.password(b"not the password", "wrong"))
            checker.check_exit(wrong, WRONG_PASSWORD, "inspect with a wrong password", ("password",))
    if "verify" in checker.commands:
        check_verification(checker, checker.run("verify", path, "--json", *password), expectations)
        quick = checker.run("verify", path, "--quick", "--json")
        checker.check_exit(quick, expectations["codes"]["verify-quick"], "verify --quick")
    if "export" in checker.commands and case.exit_code == 0:
        if expectations["keychain"]:
            check_export(checker, path, expectations, password, "with_password")
            key = checker.folder / "device-key"
            key.write_bytes(bytes.fromhex(expectations["device_key"]))
            key.chmod(0o600)
            check_export(checker, path, expectations, [*password, "--device-key-file", key], "with_device_key")
        for file in expectations["files"]:
            check_exported_file(checker, path, file, password)


def without_zeros(counts):
    """Return the iteration counts without zeros. A count of zero means that the derivation is skipped."""
    return [count for count in counts or [] if count]


def check_inspection(checker, result, expectations, with_password):
    """Check the document of `inspect`."""
    name = "inspect with the password" if with_password else "inspect"
    code = expectations["codes"]["inspect-password" if with_password else "inspect"]
    if not checker.check_exit(result, code, name) or code != 0:
        return
    document = result.json
    if not checker.check(isinstance(document, dict), f"{name}: prints no JSON document"):
        return
    checker.check_equal(document.get("format"), "backup-inspection/1", f"{name}: format")
    for field in ("layout", "encrypted"):
        checker.check_equal(document.get(field), expectations[field], f"{name}: {field}")
    for field, expected in expectations["device"].items():
        checker.check_equal((document.get("device") or {}).get(field), expected, f"{name}: device.{field}")
    keybag = document.get("keybag") or {}
    checker.check_equal(keybag.get("version"), expectations["keybag"]["version"], f"{name}: keybag.version")
    checker.check_equal(
        without_zeros(keybag.get("rounds")), without_zeros(expectations["keybag"]["rounds"]), f"{name}: keybag.rounds")
    checker.check_equal(len(keybag.get("classes") or []), expectations["keybag"]["classes"], f"{name}: keybag.classes")
    keychain = document.get("keychain") or {}
    checker.check_equal(keychain.get("present"), expectations["keychain"], f"{name}: keychain.present")
    if not expectations["keychain"]:
        return
    if expectations["encrypted"] and not with_password:
        checker.check_equal(
            (keychain.get("items"), keychain.get("by_protection")), (None, None), f"{name}: keychain's items"
        )
        return
    checker.check_equal(document.get("missing"), expectations["missing"], f"{name}: missing")
    for field, item_member in (("items", "table"), ("by_protection", "protection")):
        expected_counts = dict(collections.Counter(item[item_member] for item in expectations["items"]))
        counts = {name_or_class: count for name_or_class, count in (keychain.get(field) or {}).items() if count}
        checker.check_equal(counts, expected_counts, f"{name}: keychain.{field}")


def check_verification(checker, result, expectations):
    """Check the document of `verify`."""
    code = expectations["codes"]["verify"]
    if not checker.check_exit(result, code, "verify") or code != 0:
        return
    document = result.json or {}
    checker.check_equal(document.get("format"), "backup-verification/1", "verify: format")
    item_count = len(expectations["items"])
    bound_count = sum(item["with_password"] is not None for item in expectations["items"])
    # A change in a file without a digest cannot be detected.
    is_proven = expectations["without_digest"] == 0
    checker.check_equal(document.get("whole"), is_proven, "verify: whole")
    needs_device_for_all_items = expectations["keychain"] and 0 < item_count == bound_count
    if needs_device_for_all_items:
        verdict = "foreign"
    else:
        verdict = "whole" if is_proven else "unproven"
    checker.check_equal(document.get("verdict"), verdict, "verify: verdict")
    checker.check_equal(
        (document.get("files") or {}).get("without_digest"), expectations["without_digest"], "verify: without a digest"
    )
    if expectations["keychain"]:
        checker.check_equal(
            document.get("items"), {"readable": item_count - bound_count, "device_bound": bound_count, "damaged": 0},
            "verify: items")
    failed = [check.get("id") for check in document.get("checks", []) if not check.get("ok")]
    checker.check_equal(failed, [], "verify: failed checks")


def check_export(checker, path, expectations, key_options, state):
    """Check the items that `export` writes.

    `state` is the name of a member of the expected items: the reason why this export cannot read the item, or None.
    """
    name = f"export {state.replace('_', ' ')}"
    target = checker.folder / f"{state}.json"
    result = checker.run(
        "export", path, *key_options, "--format", "json", "--reveal", "-o", target, reveals_secrets=True
    )
    if not checker.check_exit(result, 0, name):
        return
    if not checker.check(target.is_file(), f"{name}: writes no file"):
        return
    checker.check_equal(target.stat().st_mode & 0o777, 0o600, f"{name}: the file's mode")
    document = json.loads(target.read_bytes())
    checker.check_equal(document.get("format"), "keychain-items/1", f"{name}: format")
    entries = {entry["index"]: entry for entry in document.get("items", [])}
    checker.check_equal(
        sorted(entries), [item["index"] for item in expectations["items"]], f"{name}: the items' indexes"
    )
    for item in expectations["items"]:
        entry = entries.get(item["index"], {})
        context = f"{name}: item {item['index']}"
        for field in ("kind", "table", "protection"):
            checker.check_equal(entry.get(field), item[field], f"{context}: {field}")
        checker.check_equal((entry.get("readable"), entry.get("reason")), (item[state] is None, item[state]), context)
        if item[state] is not None:
            checker.check("secret" not in entry, f"{context}: has a secret although it cannot be decrypted")
            continue
        checker.check_equal(decode_secret(entry), decode_secret(item), f"{context}: secret")
        checker.check_equal(
            differing_attributes(item["attributes"], entry.get("attributes", {})), [], f"{context}: attributes"
        )


def decode_secret(entry):
    """Return the secret of an entry, or no bytes if it has none."""
    secret = entry.get("secret") or {}
    return base64.b64decode(secret.get("base64", ""))


def differing_attributes(expected, found):
    """Return the codes of the attributes that differ. Items of version 0 have no attributes to compare."""
    def comparable(code, value):
        return apple_der.Moment.from_rfc3339(value).seconds if code in DATES else value

    if not expected:
        return []
    different = []
    for code in sorted(set(expected) | set(found)):
        is_in_both = code in expected and code in found
        if is_in_both:
            is_different = comparable(code, expected[code]) != comparable(code, found[code])
        else:
            is_different = code not in BOOKKEEPING
        if is_different:
            different.append(code)
    return different


def check_exported_file(checker, path, file, password):
    """Check that `export` writes the contents of one file."""
    target = checker.folder / "exported"
    result = checker.run(
        "export", path, *password, "--domain", file["domain"], "--path", file["path"], "-o", target)
    name = f"export --path {file['path']}"
    if checker.check_exit(result, 0, name):
        content = target.read_bytes() if target.is_file() else None
        checker.check(content == base64.b64decode(file["base64"]), f"{name}: the content differs")
    target.unlink(missing_ok=True)


def check_several_devices(checker):
    """Check that Keyhaul lists a folder of several devices without choosing one, and that it reads each by its name."""
    if "inspect" not in checker.commands:
        return
    names = write_device_backups(checker.folder / "devices")
    result = checker.run("inspect", checker.folder / "devices")
    checker.check_exit(result, 0, "inspect of several devices")
    for name in names:
        checker.check(
            name in result.text_output, f"inspect of several devices: does not list {name}  ({result.last_message})"
        )
        checker.check_exit(checker.run("inspect", checker.folder / "devices" / name), 0, f"inspect of {name}")
    shortened = checker.run("inspect", checker.folder / "devices" / names[0][:8])
    checker.check_exit(shortened, NOT_FOUND, "inspect of a part of a device's name")


# Faulty backups

def check_fault(checker, fault):
    """Check the commands on a backup with one fault."""
    path = fault.write(checker.folder / "written")
    password = checker.password(fault.options.password)
    for command, code in fault.exit_codes.items():
        if command not in checker.commands:
            continue
        arguments = {
            "inspect": ["inspect", path], "verify": ["verify", path, *password],
            "plan": ["plan", path, "--to", "new-phone", *password],
        }[command]
        checker.check_exit(checker.run(*arguments), code, command, fault.messages if command == "verify" else ())
    if "convert" in checker.commands and fault.base == "encrypted":
        check_decrypted_copy(checker, fault, path, password)
    if "plan" in checker.commands and fault.name.startswith("part-decrypted"):
        check_password_claims(checker, path)


def check_password_claims(checker, path):
    """Check that no plan claims that a partly decrypted backup has no password.

    Its manifest states that there is a password, but its stored files are decrypted. So the password is uncertain.
    """
    page = checker.folder / "outlook.html"
    for flags in ([], ["--format", "html", "-o", page], ["--to", "new-phone"]):
        page.unlink(missing_ok=True)
        result = checker.run("plan", path, *flags)
        output = result.text_output + (page.read_text(encoding="utf-8") if page.is_file() else "")
        output = re.sub(r"\b(?:and|but) no passwords\b", "", " ".join(output.split()))
        claims = [claim for claim in ("no password", "without a password") if claim in output]
        checker.check_equal(
            claims, [], f"plan for a new device {' '.join(map(str, flags[:2]))}: claims that there is no password"
        )


# The exit codes of a call that writes no copy.
NO_COPY_CODES = {64, NOT_FOUND, WRONG_PASSWORD, DAMAGED, REFUSED}


def check_decrypted_copy(checker, fault, path, password):
    """Check that `convert --decrypted` of a faulty backup copies everything readable, or leaves no files.

    The exit code is 3 if a file is missing or changed. The result lists each changed file, and the file's digest in the
    copied manifest does not match.
    """
    target = checker.folder / "clear"
    result = checker.run("convert", path, "--decrypted", "-o", f"{target}/", *password, "--json")
    name = "convert --decrypted"
    checker.check(
        result.code in NO_COPY_CODES | {SUCCESS, PARTIAL}, f"{name}: ended with {result.code}  ({result.last_message})"
    )
    checker.check_equal(
        target.exists(), result.code in (SUCCESS, PARTIAL), f"{name}: whether there is a copy after {result.code}"
    )
    leftover = {path.name for path in checker.folder.iterdir()} - {"written", "temporary", "password", "clear"}
    checker.check(not leftover, f"{name}: leaves {sorted(leftover)} next to the copy")
    if not target.exists():
        return
    manifest = plistlib.loads((target / "Manifest.plist").read_bytes())
    checker.check(not manifest["IsEncrypted"], f"{name}: its Manifest.plist claims that it is encrypted")
    missing, differing = compare_payloads(target, fault.options.files)
    checker.check(
        not missing or result.code == PARTIAL, f"{name}: {missing} is missing in the copy, and it ended with 0"
    )
    records = file_records(checker, target / "Manifest.db", result.code, name)
    if checker.check(isinstance(result.json, dict), f"{name}: prints no JSON document"):
        check_differing_files(checker, name, result, differing, records)


def check_differing_files(checker, name, result, differing, records):
    """Check that the result and the manifest of a copy show each file that differs from the original."""
    listed_identifiers = {entry["file_id"] for entry in result.json["differing"]}
    for file, content in differing:
        checker.check_equal(result.code, PARTIAL, f"{name}: {file.path} differs")
        checker.check(file.identifier in listed_identifiers, f"{name}: {file.path} differs, and is not listed")
        # As in the original, the digest in the manifest shows that the file was changed.
        record = mbfile.FileRecord.parse(records.get((file.domain, file.path)) or b"")
        checker.check(
            record.digest is not None and record.digest != hashlib.sha1(content).digest(),
            f"{name}: {file.path} differs, and its digest does not show it")


def file_records(checker, path, code, name):
    """Return the file records of a manifest by domain and path. A manifest may be unreadable after exit code 3."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        try:
            return {
                (domain, file): record
                for domain, file, record in database.execute("SELECT domain, relativePath, file FROM Files")
            }
        except sqlite3.DatabaseError as error:
            checker.check(
                code == PARTIAL, f"{name}: sqlite3 cannot read its manifest ({error}), and it ended with 0"
            )
            return {}


def compare_payloads(folder, files):
    """Return the paths of files that a copy lacks, and each file that differs, with its contents in the copy."""
    missing, differing = [], []
    for file in files:
        if not file.is_regular or not file.is_stored:
            continue
        payload = folder / file.identifier[:2] / file.identifier
        if not payload.is_file():
            missing.append(file.path)
        elif payload.read_bytes() != file.content:
            differing.append((file, payload.read_bytes()))
    return missing, differing


# Reports on changed backups

CLAIM = re.compile(
    r"\bis (?:whole|intact)\b|nothing is damaged|nothing in .{0,300}? is damaged|\"verdict\": ?\"whole\""
    r"|\"whole\": ?true", re.I)


# Sentences that ask the user to check, or that state that it is unknown.
UNCERTAIN = re.compile(r"\b(?:check that|whether|nothing shows)\b[^.:;]{0,100}? is (?:whole|intact)\b", re.I)


def intact_claims(output):
    """Return the claims in a report that the whole backup is intact. Line breaks and markup are ignored."""
    text = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", output)).split())
    return CLAIM.findall(UNCERTAIN.sub("", text))


def changed_backup(base, suffix, variant):
    """Return a fault that changes one byte of a file.

    The variants are a file without a digest ("no digest"), a change of a file's padding ("padding"), and a file with a
    digest of its plaintext instead of its stored bytes ("other form").
    """
    identifier = mbfile.file_id(*NOTES)

    def digest_in_manifest(file, digest):
        if variant == "no digest":
            return digest if file.domain == KEYCHAIN[0] else None
        if variant == "other form" and file.identifier == identifier:
            return hashlib.sha1(file.content).digest()
        return None if file.identifier == identifier else digest

    def change_digests(entries):
        return [(file, key, digest_in_manifest(file, digest)) for file, key, digest in entries]

    def change_contents(contents):
        # In CBC, a change 17 bytes before the end inverts bits of the last plaintext byte, the padding's length.
        contents[identifier] = flip_bit(contents[identifier], -17 if variant == "padding" else 3)

    return Fault(f"changed {variant}", "one byte of a file is changed", {}, (), base,
                 edits={"listed": change_digests, "stored": change_contents}, suffix=suffix)


VERIFICATIONS = ([], ["-v"], ["--json"], ["--quick"], ["--quick", "--json"])


def check_changed_backups(checker):
    """Check that no report calls a backup with a changed byte intact, whether or not a check can detect the change."""
    for base in ("encrypted", "plain", "mbdb", "mbdb-plain"):
        for suffix in (None, "tar", "zip"):
            for variant in ("no digest", "padding", "other form") if suffix is None else ("no digest",):
                # Unencrypted files have no padding, and only one kind of digest.
                if variant == "no digest" or "plain" not in base:
                    fault = changed_backup(base, suffix, variant)
                    name = f"{variant}, {base} {suffix or 'folder'}"
                    ReportTest(checker, fault, name, is_detectable=variant != "no digest").check()


class ReportTest:
    """The checks of all reports on one changed backup. A change is detectable if a digest or padding shows it."""

    def __init__(self, checker, fault, name, is_detectable):
        self.checker, self.name, self.is_detectable = checker, name, is_detectable
        self.folder = checker.folder / name.replace(" ", "-").replace(",", "")
        self.path = fault.write(self.folder)
        self.unchanged_backup = dataclasses.replace(fault, edits={}).write(self.folder / "good")
        self.password = checker.password(fault.options.password)

    def check(self):
        """Check the reports of all commands. Archives are only verified."""
        if "verify" in self.checker.commands:
            self.check_verifications()
        if self.path.is_dir():
            self.check_pages()
            self.check_copies()

    def check_report(self, *arguments, page=None, codes=None):
        """Run a command. Check its exit code, and that neither its output nor its page calls the backup intact."""
        result = self.checker.run(*arguments)
        shown_arguments = [str(argument) for argument in arguments if not str(argument).startswith("/")]
        context = f"{' '.join(shown_arguments)} ({self.name})"
        if codes is not None:
            self.checker.check(
                result.code in codes, f"{context}: expected {codes}, got {result.code}  ({result.last_message})")
        output = result.text_output
        if page is not None and page.is_file():
            output += page.read_text(encoding="utf-8")
        self.checker.check_equal(intact_claims(output), [], f"{context}: claims that the backup is intact")
        return result

    def check_verifications(self):
        for flags in VERIFICATIONS:
            is_quick = "--quick" in flags
            # Without the password, the files are not compared with an encrypted manifest.
            codes = {SUCCESS, DAMAGED} if is_quick else {DAMAGED if self.is_detectable else SUCCESS}
            password = [] if is_quick else self.password
            result = self.check_report("verify", self.path, *flags, *password, codes=codes)
            if "--json" in flags:
                self.checker.check_equal(
                    (result.json or {}).get("whole"), False, f"verify {' '.join(flags)} ({self.name}): whole"
                )

    def check_pages(self):
        """Check the text, the JSON and the HTML of the commands that only read the backup."""
        commands = [["plan", self.path], ["diff", self.unchanged_backup, self.path]]
        if "plan" in self.checker.commands:
            commands.insert(0, ["plan", self.path, "--to", "new-phone"])
        if "inspect" in self.checker.commands:
            commands.insert(0, ["inspect", self.path])
        page = self.folder / "page.html"
        for command in commands:
            for flags in ([], ["--json"], ["--format", "html", "-o", page]):
                self.check_report(*command, *flags, *self.password, page=page)
                page.unlink(missing_ok=True)

    def check_copies(self):
        """Check the text and the JSON of the commands that write a copy or files."""
        result_code = PARTIAL if self.is_detectable else SUCCESS
        copy, decrypted_copy, files = (self.folder / name for name in ("copy", "clear", "files"))
        for flags in ([], ["--json"]):
            if "convert" in self.checker.commands:
                self.check_report("convert", self.path, "-o", f"{copy}/", *flags)
                self.check_report(
                    "convert", self.path, "--decrypted", "-o", f"{decrypted_copy}/", *flags, *self.password,
                    codes={result_code, *NO_COPY_CODES})
            if "export" in self.checker.commands:
                self.check_report(
                    "export", self.path, "--files", files, *flags, *self.password, codes={result_code})
            for target in (copy, decrypted_copy, files):
                shutil.rmtree(target, ignore_errors=True)


# Faults that the program does not detect, each with the reason. A fault that it detects must not be listed here.
UNDETECTED_FAULTS = {}


def tasks(only):
    """Return the kind, name, summary and check of each backup and fault, or only of the one named `only`."""
    selected = [
        ("backup", case.name, case.summary, lambda checker, case=case: check_case(checker, case)) for case in CASES
    ]
    selected.append(("backup", "several-devices", "a folder with several devices", check_several_devices))
    selected.append(("backup", "changed-bytes", "reports on a backup with a changed byte", check_changed_backups))
    selected += [
        ("fault", fault.name, fault.summary, lambda checker, fault=fault: check_fault(checker, fault))
        for fault in FAULTS
    ]
    return [task for task in selected if only in (None, task[1])]


def run_task(program, work, commands, number, task):
    """Run a task in its own folder. Return the task, and the checker with its failures."""
    kind, name, _, check = task
    checker = BackupChecker(program, work / f"{number:04}", commands)
    try:
        check(checker)
    except Exception as error:
        checker.check(False, f"the check itself failed: {type(error).__name__}: {error}")
    shutil.rmtree(checker.folder, ignore_errors=True)
    return task, checker


def print_result(kind, name, summary, checker):
    """Print the failures of a task. Return whether it has the expected result."""
    if name in UNDETECTED_FAULTS and "verify" in checker.commands:
        if checker.failures:
            print(f"known {kind} {name}: {UNDETECTED_FAULTS[name]}")
            return True
        print(f"FAIL  {kind} {name}: is detected now, and has to be removed from UNDETECTED_FAULTS")
        return False
    if checker.failures:
        print(f"FAIL  {kind} {name}: {summary}")
        print("\n".join(f"        {failure}" for failure in checker.failures), flush=True)
    return not checker.failures


def main():
    parser = argparse.ArgumentParser(description="Run Keyhaul over backups of every layout and with single faults.")
    parser.add_argument("--keyhaul", type=pathlib.Path, required=True, help="the built program")
    parser.add_argument("--only", metavar="NAME", help="one backup or fault")
    parser.add_argument(
        "--verbs", default=",".join(COMMANDS), help=f"the commands to run (default: {','.join(COMMANDS)})"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    commands = arguments.verbs.split(",")
    if not arguments.keyhaul.is_file():
        parser.error("--keyhaul has to be the built program")
    if not set(commands) <= set(COMMANDS):
        parser.error(f"--verbs accepts {', '.join(COMMANDS)}")
    selected = tasks(arguments.only)
    if not selected:
        parser.error(f"there is no backup or fault named {arguments.only}")
    passed_checks, failed_tasks, counts = 0, 0, collections.Counter()
    with tempfile.TemporaryDirectory(prefix="keyhaul-backups-") as folder:
        work, program = pathlib.Path(folder), arguments.keyhaul.resolve()
        subprocess.run(
            [str(program), "device", "create", "new-phone", "--from", str(FIXTURES / "devices" / "new-phone.json"),
             "--home", str(work / "home"), "--no-input"], check=True, stdout=subprocess.DEVNULL)
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            running = [
                pool.submit(run_task, program, work, commands, number, task) for number, task in enumerate(selected)]
            for future in running:
                (kind, name, summary, _), checker = future.result()
                passed_checks += checker.passed
                counts[kind] += 1
                failed_tasks += not print_result(kind, name, summary, checker)
    print(f"{counts['backup']} backups, {counts['fault']} faults, {passed_checks} checks passed")
    print(f"{len(selected) - failed_tasks} passed, {failed_tasks} failed")
    return 0 if passed_checks and not failed_tasks else 1


if __name__ == "__main__":
    sys.exit(main())
