#!/usr/bin/env python3
"""Write backups with exactly one fault, each with the exit code that a command has to return.

    backup_faults.py FOLDER [--only NAME]     writes FOLDER/NAME/backup (or backup.tar …)
    backup_faults.py --publish [--check]      writes Fixtures/backup-faults.json, or compares it

The exit codes follow from the formats and from the program's documentation, never from the program's output.
"""

import argparse
import json
import pathlib
import sys

import faults.bombs
import faults.encrypted_rows
import faults.file_lists
import faults.keybags
import faults.keychain_files
import faults.partial
import faults.payloads
import faults.property_lists
from backup_cases import FIXTURES, MODERN

PUBLISHED_PATH = FIXTURES / "backup-faults.json"
FAULTS = [
    fault
    for module in (
        faults.property_lists, faults.keybags, faults.file_lists, faults.payloads, faults.keychain_files,
        faults.encrypted_rows, faults.bombs, faults.partial
    )
    for fault in module.faults()
]


def published_json():
    """Return the contents of backup-faults.json."""
    document = {
        "format": "backup-faults/1",
        "about": "Single faults of iPhone backups: what is wrong, and the exit code of each command that is judged by "
                 "it. Bases: encrypted and plain (Manifest.db), ios-10.0 (its rows encrypted), mbdb and mbdb-plain "
                 "(Manifest.mbdb).",
        "password": MODERN.password.decode("utf-8"), "made_by": "Tests/Support/backup_faults.py",
        "faults": [fault.to_json() for fault in FAULTS],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def publish(compares_only):
    """Write backup-faults.json, or only compare it. Return the exit code."""
    if compares_only:
        is_current = PUBLISHED_PATH.is_file() and PUBLISHED_PATH.read_text(encoding="utf-8") == published_json()
        print(f"{PUBLISHED_PATH.name}: {len(FAULTS)} faults, {'current' if is_current else 'out of date'}")
        return 0 if is_current and FAULTS else 1
    PUBLISHED_PATH.write_text(published_json(), encoding="utf-8")
    print(f"Wrote {len(FAULTS)} faults to {PUBLISHED_PATH.name}")
    return 0


def main():
    parser = argparse.ArgumentParser(description="Write backups with one fault each.")
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("--only", metavar="NAME")
    parser.add_argument("--publish", action="store_true", help=f"write {PUBLISHED_PATH.name}")
    parser.add_argument("--check", action="store_true", help="with --publish: compare instead; exit 1 on a difference")
    arguments = parser.parse_args()
    if arguments.publish:
        return publish(compares_only=arguments.check)
    if arguments.folder is None:
        parser.error("specify a folder, or use --publish")
    selected = [fault for fault in FAULTS if arguments.only in (None, fault.name)]
    if not selected:
        parser.error(f"there is no fault named {arguments.only}")
    for fault in selected:
        fault.write(arguments.folder / fault.name)
    print(f"Wrote {len(selected)} faulty backups to {arguments.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
