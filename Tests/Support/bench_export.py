#!/usr/bin/env python3
"""How long a whole cold `keyhaul export` takes, beside two published readers that only take the keychain file out.

    bench_export.py PROGRAM [--rounds 5]

The backup is made again: 200 items, a password, real round counts. Each run is a process of its own, in turns, so that
all see the same machine; the figures are ratios of medians. Exit 1 where a target is missed.
"""

import argparse
import importlib.metadata
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace

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


def timed(command):
    started = time.perf_counter()
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    taken = time.perf_counter() - started
    if ended.returncode != 0:
        said = ended.stderr.decode("utf-8", "replace").strip()[-300:]
        sys.exit(f"error: {command[0]} ended with {ended.returncode}: {said}")
    return taken, ended.stdout


def main():
    parser = argparse.ArgumentParser(description="Time keyhaul export beside published readers.")
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5, help="runs of each, in turns")
    parser.add_argument("--reader", nargs=2, metavar=("NAME", "ARCHIVE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.reader:
        reader, archive = arguments.reader
        print(len(read_with(reader, pathlib.Path(archive))))
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
        sizes = set()
        for _ in range(arguments.rounds):
            times["keyhaul"].append(timed(export)[0])
            items = json.loads(target.read_bytes())["items"]
            if sum("secret" in item for item in items) == 0:
                sys.exit("error: the export holds no secret, so there is nothing to compare")
            target.unlink()
            for reader in TARGETS:
                taken, size = timed([
                    sys.executable, __file__, str(arguments.program), "--reader", reader, str(archive)])
                times[reader].append(taken)
                sizes.add(size)
    if len(sizes) != 1:
        sys.exit("error: the readers don't agree on the keychain file")
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    figures = Figures()
    for reader, most in TARGETS.items():
        figures.at_most(
            f"export of {len(items)} items, cold, to {reader} {importlib.metadata.version(reader)}, which takes out the file alone",
            medians["keyhaul"] / medians[reader], most, "times", f"{medians['keyhaul']:.2f} s and {medians[reader]:.2f} s")
    return figures.conclude()


if __name__ == "__main__":
    sys.exit(main())
