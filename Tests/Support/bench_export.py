#!/usr/bin/env python3
"""How long a whole cold `keyhaul export` takes, beside two published readers that only take the keychain file out.

    bench_export.py PROGRAM [--rounds 5]

The backup is made again: 200 items, a password, real round counts. Each run is a process of its own, in turns, so that
all see the same machine; the figures are ratios of medians. Exit 1 where a target is missed.
"""

import argparse
import hashlib
import importlib.metadata
import json
import pathlib
import statistics
import sys
import tempfile
from dataclasses import replace

from bench_files import other_text, timed
from figures import Figures

ITEMS = 200
PASSWORD = b"correct horse"
KEYCHAIN = ("KeychainDomain", "keychain-backup.plist")
TARGETS = {"iphone_backup_decrypt": 0.85, "dissect.target": 0.40}


def make(archive):
    from backup_cases import MODERN, described_items
    from keychain_backup.forge import Forge

    passwords = [
        entry for entry in described_items()
        if entry["kind"].endswith("password") and entry["protection"] in ("ak", "ck", "dk")
    ]
    described = [
        dict(entry, attributes=dict(entry["attributes"], acct=f"account {number}"))
        for number, entry in enumerate((passwords * ITEMS)[:ITEMS])
    ]
    described.sort(key=lambda entry: entry["kind"] != "generic-password")
    recipe = replace(MODERN, password=PASSWORD, double_rounds=10_000_000, rounds=10_000)
    Forge(recipe, described, seed="bench").build().write(archive)


def read_with(reader, archive):
    """What a published reader does at least: derive the key, open the list, decrypt the keychain file."""
    if reader == "iphone_backup_decrypt":
        import iphone_backup_decrypt

        backup = iphone_backup_decrypt.EncryptedBackup(backup_directory=str(archive), passphrase=PASSWORD)
        return backup.extract_file_as_bytes(KEYCHAIN[1], domain_like=KEYCHAIN[0])
    from dissect.target.loaders.itunes import ITunesBackup

    backup = ITunesBackup(archive)
    backup.open(PASSWORD.decode("utf-8"))
    found = next(file for file in backup.files() if (file.domain, file.relative_path) == KEYCHAIN)
    return found.create_cipher().decrypt(found.get().read_bytes())[:found.size]


def expected_digest(archive):
    """Of the keychain file, as the reader beside this file takes it out, which is none of those that are timed."""
    from keychain_backup_reader import Backup

    return hashlib.sha256(Backup(archive, PASSWORD).keychain_file()).hexdigest()


def missing_items(target):
    """What is wrong with an export in which every item has its secret."""
    items = json.loads(target.read_bytes())["items"] if target.is_file() else []
    opened = sum("secret" in item for item in items)
    return "" if opened == len(items) == ITEMS else f"{opened} of {ITEMS} items have their secret"


def main():
    parser = argparse.ArgumentParser(description="Time keyhaul export beside published readers.")
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5, help="runs of each, in turns")
    parser.add_argument("--reader", nargs=2, metavar=("NAME", "ARCHIVE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.reader:
        reader, archive = arguments.reader
        print(hashlib.sha256(read_with(reader, pathlib.Path(archive))).hexdigest())
        return 0
    with tempfile.TemporaryDirectory(prefix="keyhaul-bench-") as folder:
        target, archive, secret = (pathlib.Path(folder) / name for name in ("items.json", "backup", "password"))
        make(archive)
        secret.touch(mode=0o600)
        secret.write_bytes(PASSWORD)
        export = [
            str(arguments.program.resolve()), "export", str(archive), "--password-file", str(secret), "--format",
            "json", "--reveal", "-o", str(target), "--no-input"]
        times = {"keyhaul": [], **{reader: [] for reader in TARGETS}}
        digest = expected_digest(archive)
        for _ in range(arguments.rounds):
            times["keyhaul"].append(timed(export, check=lambda _: missing_items(target)).seconds)
            target.unlink()
            for reader in TARGETS:
                reading = [sys.executable, __file__, str(arguments.program), "--reader", reader, str(archive)]
                times[reader].append(timed(reading, check=lambda printed: other_text(printed, digest)).seconds)
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    figures = Figures()
    for reader, most in TARGETS.items():
        figures.at_most(
            f"export of {ITEMS} items, cold: time compared with {reader} {importlib.metadata.version(reader)}, which only extracts the file",
            medians["keyhaul"] / medians[reader], most, "×", f"{medians['keyhaul']:.2f} s (Keyhaul), {medians[reader]:.2f} s ({reader})")
    return figures.conclude()


if __name__ == "__main__":
    sys.exit(main())
