#!/usr/bin/env python3
"""Compare the time of a complete cold `keyhaul export` with two published readers that only extract the keychain file.

    bench_export.py PROGRAM [--rounds 5]

The backup has 200 items, a password and real iteration counts. Each run is a new process. The programs take turns, so
that other load on the machine affects all of them. The figures are ratios of medians. Exit 1 if a goal is missed.
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

from bench_files import text_problem, timed
from figures import Figures

ITEM_COUNT = 200
PASSWORD = b"correct horse"
KEYCHAIN = ("KeychainDomain", "keychain-backup.plist")
MAX_RATIOS = {"iphone_backup_decrypt": 0.85, "dissect.target": 0.40}


def write_backup(backup_path):
    """Write an encrypted backup with ITEM_COUNT passwords."""
    from backup_cases import MODERN, described_items
    from keychain_backup.builder import BackupBuilder

    passwords = [
        entry for entry in described_items()
        if entry["kind"].endswith("password") and entry["protection"] in ("ak", "ck", "dk")
    ]
    items_with_unique_accounts = [
        dict(entry, attributes=dict(entry["attributes"], acct=f"account {number}"))
        for number, entry in enumerate((passwords * ITEM_COUNT)[:ITEM_COUNT])
    ]
    items_with_unique_accounts.sort(key=lambda entry: entry["kind"] != "generic-password")
    options = replace(MODERN, password=PASSWORD, sha256_iterations=10_000_000, sha1_iterations=10_000)
    BackupBuilder(options, items_with_unique_accounts, seed="bench").build().write(backup_path)


def read_with(reader, backup_path):
    """Return the keychain file as a published reader extracts it."""
    if reader == "iphone_backup_decrypt":
        import iphone_backup_decrypt

        backup = iphone_backup_decrypt.EncryptedBackup(backup_directory=str(backup_path), passphrase=PASSWORD)
        return backup.extract_file_as_bytes(KEYCHAIN[1], domain_like=KEYCHAIN[0])
    from dissect.target.loaders.itunes import ITunesBackup

    backup = ITunesBackup(backup_path)
    backup.open(PASSWORD.decode("utf-8"))
    file = next(file for file in backup.files() if (file.domain, file.relative_path) == KEYCHAIN)
    return file.create_cipher().decrypt(file.get().read_bytes())[:file.size]


def expected_digest(backup_path):
    """Return the digest of the keychain file, as the Python reader extracts it. That reader is not timed."""
    from keychain_backup_reader import Backup

    return hashlib.sha256(Backup(backup_path, PASSWORD).keychain_file()).hexdigest()


def export_problem(target):
    """Return the problem with an export that should have the secret of every item, or an empty string."""
    items = json.loads(target.read_bytes())["items"] if target.is_file() else []
    count = sum("secret" in item for item in items)
    return "" if count == len(items) == ITEM_COUNT else f"{count} of {ITEM_COUNT} items have their secret"


def main():
    parser = argparse.ArgumentParser(description="Compare the time of keyhaul export with published readers.")
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5, help="runs of each, in turns")
    parser.add_argument("--reader", nargs=2, metavar=("NAME", "ARCHIVE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.reader:
        reader, backup_path = arguments.reader
        print(hashlib.sha256(read_with(reader, pathlib.Path(backup_path))).hexdigest())
        return 0
    with tempfile.TemporaryDirectory(prefix="keyhaul-bench-") as folder:
        target, backup_path, password_file = (
            pathlib.Path(folder) / name for name in ("items.json", "backup", "password"))
        write_backup(backup_path)
        password_file.touch(mode=0o600)
        password_file.write_bytes(PASSWORD)
        export = [
            str(arguments.program.resolve()), "export", str(backup_path), "--password-file", str(password_file),
            "--format", "json", "--reveal", "-o", str(target), "--no-input"]
        times = {"keyhaul": [], **{reader: [] for reader in MAX_RATIOS}}
        digest = expected_digest(backup_path)
        for _ in range(arguments.rounds):
            times["keyhaul"].append(timed(export, check=lambda _: export_problem(target)).seconds)
            target.unlink()
            for reader in MAX_RATIOS:
                reading = [sys.executable, __file__, str(arguments.program), "--reader", reader, str(backup_path)]
                times[reader].append(timed(reading, check=lambda printed: text_problem(printed, digest)).seconds)
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    figures = Figures()
    for reader, limit in MAX_RATIOS.items():
        figures.at_most(
            f"export of {ITEM_COUNT} items, cold: time compared with {reader} {importlib.metadata.version(reader)}, "
            "which only extracts the file",
            medians["keyhaul"] / medians[reader], limit, "×",
            f"{medians['keyhaul']:.2f} s (Keyhaul), {medians[reader]:.2f} s ({reader})")
    return figures.finish()


if __name__ == "__main__":
    sys.exit(main())
