#!/usr/bin/env python3
"""Change items inside backups at random, and read the backup with other readers after each change.

    check_edits.py --keyhaul .build/release/keyhaul [--count 60] [--seed 1]

Each change is a call of `item add`, `update` or `delete` on a folder, a zip or a tar, without the key of the source
device. The same change is made to a list in Python. Then `verify` has to find no fault, and Python's reader has to
return that list. Undecrypted items and all other files must be unchanged. In folders, iphone_backup_decrypt and
pyiosbackup have to extract the same keychain file. Exit 1 if a check fails.
"""

import argparse
import collections
import pathlib
import random
import shutil
import sys
import tempfile

import keyhaul_seal
from checks import Checks
from interop import KEYCHAIN_DOMAIN, KEYCHAIN_PATH, PASSWORD, READERS, Program
from keychain_backup_reader import Backup

# Attributes that identify items of other kinds than generic passwords.
OTHER_IDENTIFYING_ATTRIBUTES = ("srvr", "ptcl", "port", "path", "klbl", "slnr", "atag")
KEYCHAIN_FILE = "51a4616e576dd33cd2abadfea874eb8ff246bf0e"
# The files that a change of an item may change.
CHANGEABLE_FILES = {"Manifest.db", f"51/{KEYCHAIN_FILE}", keyhaul_seal.NAME}
GROUP = "ABCDE12345.org.example.edits"


def identity(table, attributes):
    """Return a value that differs for two different items."""
    service, account, group = (attributes.get(code) or "" for code in ("svce", "acct", "agrp"))
    other_attributes = repr([(code, attributes.get(code)) for code in OTHER_IDENTIFYING_ATTRIBUTES])
    return table, service, account, group, other_attributes


def read_backup(path):
    """Return the readable items of a backup by identity, the undecrypted items, and the keychain file."""
    backup = Backup(path, PASSWORD.encode())
    readable_items, undecrypted = {}, []
    for item in backup.keychain_items():
        if item.is_readable:
            attributes = dict(item.attributes)
            readable_items[identity(item.table, attributes)] = (attributes.get("labl"), item.secret)
        else:
            undecrypted.append((item.table, item.reason))
    return readable_items, sorted(undecrypted), backup.keychain_file()


def files(folder):
    """Return the contents of all files below a folder, by path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class BackupEditor:
    """A backup, the items that it should contain, and the commands that change both."""

    def __init__(self, program, work, path, rng):
        self.program, self.work, self.path, self.rng = program, work, path, rng
        self.items, self.undecrypted, _ = read_backup(path)
        self.added = []
        self.number = 0

    def call(self, *arguments, expect=(0,)):
        """Run a command on items, and check its exit code."""
        self.program.run("item", *arguments, "--password-file", self.work / "password", expect=expect)

    def write_secret(self):
        """Write a random secret to a file. Return the secret and the file's path."""
        content = self.rng.randbytes(self.rng.choice((0, 1, 15, 16, 40, 3000)))
        path = self.work / "secret"
        path.write_bytes(content)
        path.chmod(0o600)
        return content, path

    def added_identity(self, service, account):
        """Return the identity of an added item."""
        return identity("genp", {"svce": service, "acct": account, "agrp": GROUP})

    def change_item(self):
        """Make one change, and return its kind."""
        self.number += 1
        kind = self.rng.choice(("add", "add", "update", "rename", "delete", "add duplicate", "dry run"))
        if kind in ("add", "dry run") or not self.added:
            is_dry_run = kind == "dry run"
            self.add_item(is_dry_run)
            return "dry run" if is_dry_run else "add"
        self.change_added_item(kind)
        return kind

    def add_item(self, is_dry_run):
        """Add an item, or do so only as a dry run."""
        service, account = f"service {self.number}", self.rng.choice(("", "anna", "zoë", "*", "x" * 300))
        content, path = self.write_secret()
        label = self.rng.choice((None, f"label {self.number}"))
        options = ([] if label is None else ["--label", label]) + (["-n"] if is_dry_run else [])
        protection = self.rng.choice(("when-unlocked", "after-first-unlock", "always"))
        self.call(
            "add", self.path, "--service", service, "--account", account, "--access-group", GROUP, "--secret-file",
            path, "--protection", protection, *options)
        if not is_dry_run:
            self.added.append((service, account))
            self.items[self.added_identity(service, account)] = (label, content)

    def change_added_item(self, kind):
        """Change an item that was added before."""
        service, account = self.rng.choice(self.added)
        item_options = ["--service", service, "--access-group", GROUP]
        old_item = self.items[self.added_identity(service, account)]
        if kind == "add duplicate":
            _, secret_path = self.write_secret()
            self.call(
                "add", self.path, *item_options, "--account", account, "--secret-file", secret_path, expect=(1,))
        elif kind == "update":
            content, path = self.write_secret()
            self.call(
                "update", self.path, *item_options, "--new-secret-file", path, "--new-label", f"to {self.number}",
                "--yes")
            self.items[self.added_identity(service, account)] = (f"to {self.number}", content)
        elif kind == "rename":
            self.call("update", self.path, *item_options, "--new-account", f"name {self.number}", "--yes")
            del self.items[self.added_identity(service, account)]
            self.added.remove((service, account))
            self.added.append((service, f"name {self.number}"))
            self.items[self.added_identity(service, f"name {self.number}")] = old_item
        else:
            self.call("delete", self.path, *item_options, "--yes")
            del self.items[self.added_identity(service, account)]
            self.added.remove((service, account))


def run(checks, program, work, layout, count, seed):
    """Make changes to one backup, and check it after each of them."""
    rng = random.Random(f"edits {seed} {layout}")
    path = work / f"edited{layout}"
    backup = work / f"original{layout}"
    if layout == "/":
        shutil.copytree(backup, path)
    else:
        shutil.copy(backup, path)
    editor = BackupEditor(program, work, path, rng)
    files_before = files(path) if layout == "/" else {}
    counts = collections.Counter()
    for number in range(count):
        kind = editor.change_item()
        counts[kind] += 1
        name = f"{layout} {number} ({kind})"
        document = program.json("verify", path, "--password-file", work / "password", expect=(0,))
        checks.check(
            document["verdict"] == "whole" and document["whole"] and not document["faults"],
            f"{name}: verify, {document['verdict']}")
        items, undecrypted, keychain = read_backup(path)
        checks.check(items == editor.items, f"{name}: {len(items)} items, expected {len(editor.items)}")
        checks.check(undecrypted == editor.undecrypted, f"{name}: the undecrypted items changed")
        if layout == "/":
            check_folder(checks, name, path, files_before, keychain)
    print(f"{layout}: {count} changes: " + ", ".join(f"{counts[kind]} {kind}" for kind in sorted(counts)))


def check_folder(checks, name, path, files_before, keychain):
    """Check that only the expected files changed, that the seal is valid, and that other readers agree."""
    files_after = files(path)
    checks.check(
        files_after.keys() == files_before.keys()
        and {file for file in files_after if files_after[file] != files_before[file]} <= CHANGEABLE_FILES,
        f"{name}: another file changed")
    key = Backup(path, PASSWORD.encode()).manifest_key
    checks.check(
        files_after[keyhaul_seal.NAME] == keyhaul_seal.make_seal(path, key=key),
        f"{name}: the seal differs from Python's")
    for reader, read in READERS.items():
        try:
            content = read(path, PASSWORD, KEYCHAIN_DOMAIN, KEYCHAIN_PATH)
        except Exception as error:
            checks.check(False, f"{name}: {reader}: {type(error).__name__}: {error}")
            continue
        checks.check(content == keychain, f"{name}: {reader} extracts a different keychain file")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keyhaul", required=True)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", default="1")
    arguments = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        (work / "password").write_text(PASSWORD + "\n", encoding="utf-8")
        (work / "password").chmod(0o600)
        source_device = Program(arguments.keyhaul, work / "source")
        source_device.run("device", "create", "old-phone", "--from", "old-phone")
        for layout in ("/", ".zip", ".tar"):
            source_device.run(
                "backup", "old-phone", "-o", f"{work}/original{layout}", "--password-file", work / "password",
                "--rounds", "10")
        program = Program(arguments.keyhaul, work / "home")
        for layout, divisor in (("/", 2), (".zip", 4), (".tar", 4)):
            run(checks, program, work, layout, arguments.count // divisor, arguments.seed)
    sys.exit(checks.finish())


if __name__ == "__main__":
    main()
