#!/usr/bin/env python3
"""Changes items inside backups at random, and reads after every change with others what is in them then.

    check_edits.py --keyhaul .build/release/keyhaul [--count 60] [--seed 1]

Each change is one call of `item add`, `update` or `delete` on a backup as a folder, a zip or a tar, made without the key of
its device, and done as well to a list that Python keeps. After it `verify` has to find nothing, our Python reader has to
give the list, sealed items have to be what they were to the byte, and so does every other file; of folders
iphone_backup_decrypt and pyiosbackup have to take out the same keychain file. Exit 1 where a check fails.
"""

import argparse
import pathlib
import random
import shutil
import sys
import tempfile

import keyhaul_seal
from checks import Checks
from interop import KEYCHAIN_DOMAIN, KEYCHAIN_PATH, PASSWORD, READERS, Program
from keychain_backup_reader import Backup

KEYCHAIN_FILE = "51a4616e576dd33cd2abadfea874eb8ff246bf0e"
CHANGED = {"Manifest.db", f"51/{KEYCHAIN_FILE}", keyhaul_seal.NAME}
GROUP = "ABCDE12345.org.example.edits"


def names(attributes):
    return tuple(attributes.get(code) or "" for code in ("svce", "acct", "agrp"))


def of_backup(path):
    """What a backup holds: readable items by table and names, and the bytes of the others."""
    backup = Backup(path, PASSWORD.encode())
    open_items, sealed = {}, []
    for item in backup.keychain_items():
        if item.readable:
            attributes = dict(item.attributes)
            key = (item.table, *names(attributes), repr(sorted((code, repr(attributes.get(code))) for code in (
                "srvr", "ptcl", "port", "path", "klbl", "slnr", "atag"))))
            open_items[key] = (attributes.get("labl"), item.secret)
        else:
            sealed.append((item.table, item.reason))
    return open_items, sorted(sealed), backup.keychain_file()


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class Editing:
    """One backup, what should be in it, and the calls that change both."""

    def __init__(self, program, work, path, source):
        self.program, self.work, self.path, self.source = program, work, path, source
        self.items, self.sealed, _ = of_backup(path)
        self.mine = []
        self.number = 0

    def call(self, *arguments, expect=(0,)):
        self.program.run("item", *arguments, "--password-file", self.work / "password", expect=expect)

    def secret(self):
        content = self.source.randbytes(self.source.choice((0, 1, 15, 16, 40, 3000)))
        path = self.work / "secret"
        path.write_bytes(content)
        path.chmod(0o600)
        return content, path

    def key(self, service, account):
        nothing = repr(sorted((code, repr(None)) for code in ("srvr", "ptcl", "port", "path", "klbl", "slnr", "atag")))
        return "genp", service, account, GROUP, nothing

    def step(self):
        """One change; returns what it was."""
        self.number += 1
        kind = self.source.choice(("add", "add", "update", "rename", "delete", "again", "n"))
        if kind in ("add", "n") or not self.mine:
            service, account = f"service {self.number}", self.source.choice(("", "anna", "zoë", "*", "x" * 300))
            content, path = self.secret()
            label = self.source.choice(([], ["--label", f"label {self.number}"]))
            dry = ["-n"] if kind == "n" else []
            self.call(
                "add", self.path, "--service", service, "--account", account, "--access-group", GROUP, "--secret-file",
                path, "--protection", self.source.choice(("when-unlocked", "after-first-unlock", "always")), *label, *dry)
            if not dry:
                self.mine.append((service, account))
                self.items[self.key(service, account)] = (label[1] if label else None, content)
            return "add" + "".join(dry)
        service, account = self.source.choice(self.mine)
        chosen = ["--service", service, "--access-group", GROUP]
        old = self.items[self.key(service, account)]
        if kind == "again":
            self.call(
                "add", self.path, *chosen, "--account", account, "--secret-file", self.secret()[1], expect=(1,))
        elif kind == "update":
            content, path = self.secret()
            self.call("update", self.path, *chosen, "--new-secret-file", path, "--new-label", f"to {self.number}", "--yes")
            self.items[self.key(service, account)] = (f"to {self.number}", content)
        elif kind == "rename":
            self.call("update", self.path, *chosen, "--new-account", f"name {self.number}", "--yes")
            del self.items[self.key(service, account)]
            self.mine.remove((service, account))
            self.mine.append((service, f"name {self.number}"))
            self.items[self.key(service, f"name {self.number}")] = old
        else:
            self.call("delete", self.path, *chosen, "--yes")
            del self.items[self.key(service, account)]
            self.mine.remove((service, account))
        return kind


def run(checks, program, work, form, count, seed):
    source = random.Random(f"edits {seed} {form}")
    path = work / f"edited{form}"
    backup = work / f"original{form}"
    if form == "/":
        shutil.copytree(backup, path)
    else:
        shutil.copy(backup, path)
    editing = Editing(program, work, path, source)
    before = files(path) if form == "/" else {}
    done = {}
    for number in range(count):
        kind = editing.step()
        done[kind] = done.get(kind, 0) + 1
        name = f"{form} {number} ({kind})"
        found = program.json("verify", path, "--password-file", work / "password", expect=(0,))
        checks.check(found["verdict"] == "whole" and found["whole"] and not found["faults"], f"{name}: verify, {found['verdict']}")
        items, sealed, keychain = of_backup(path)
        checks.check(items == editing.items, f"{name}: {len(items)} items, expected {len(editing.items)}")
        checks.check(sealed == editing.sealed, f"{name}: sealed items")
        if form != "/":
            continue
        after = files(path)
        checks.check(after.keys() == before.keys() and {key for key in after if after[key] != before[key]} <= CHANGED,
                     f"{name}: another file changed")
        key = Backup(path, PASSWORD.encode()).manifest_key
        checks.check(after[keyhaul_seal.NAME] == keyhaul_seal.made(path, key=key), f"{name}: its seal is Python's too")
        for reader, read in READERS.items():
            try:
                content = read(path, PASSWORD, KEYCHAIN_DOMAIN, KEYCHAIN_PATH)
            except Exception as error:
                checks.check(False, f"{name}: {reader}: {type(error).__name__}: {error}")
                continue
            checks.check(content == keychain, f"{name}: {reader} reads another keychain file")
    print(f"{form}: {count} changes: " + ", ".join(f"{done[kind]} {kind}" for kind in sorted(done)))


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
        maker = Program(arguments.keyhaul, work / "makers")
        maker.run("device", "create", "old-phone", "--from", "old-phone")
        for form in ("/", ".zip", ".tar"):
            maker.run("backup", "old-phone", "-o", f"{work}/original{form}", "--password-file", work / "password",
                      "--rounds", "10")
        program = Program(arguments.keyhaul, work / "home")
        for form, share in (("/", 2), (".zip", 4), (".tar", 4)):
            run(checks, program, work, form, arguments.count // share, arguments.seed)
    sys.exit(checks.conclude())


if __name__ == "__main__":
    main()
