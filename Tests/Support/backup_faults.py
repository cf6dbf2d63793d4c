#!/usr/bin/env python3
"""Backups with exactly one thing wrong, each with the one exit code that answers it.

    backup_faults.py FOLDER [--only NAME]     writes FOLDER/NAME/backup (or backup.tar …)
    backup_faults.py --publish [--check]      writes Fixtures/backup-faults.json, or compares it

The codes follow from the formats and from the program's contract, never from what the program answers.
"""

import argparse
import json
import pathlib
import sys

import faults.costly
import faults.keybags
import faults.keychains
import faults.lists
import faults.manifests
import faults.parts
import faults.payloads
import faults.sealed
from backup_cases import FIXTURES, MODERN

PUBLISHED = FIXTURES / "backup-faults.json"
FAULTS = [
    fault
    for part in (
        faults.manifests, faults.keybags, faults.lists, faults.payloads, faults.keychains, faults.sealed, faults.costly,
        faults.parts,
    )
    for fault in part.faults()
]


def published():
    listed = {
        "format": "backup-faults/1",
        "about": "Single faults of iPhone backups: what is wrong, and the exit code of each verb that is judged by it. "
                 "Bases: encrypted and plain (Manifest.db), ios-10.0 (its rows sealed), mbdb and mbdb-plain "
                 "(Manifest.mbdb).",
        "password": MODERN.password.decode("utf-8"), "made_by": "Tests/Support/backup_faults.py",
        "faults": [fault.described() for fault in FAULTS],
    }
    return json.dumps(listed, indent=1, ensure_ascii=False) + "\n"


def main():
    parser = argparse.ArgumentParser(description="Write backups with one fault each.")
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("--only", metavar="NAME")
    parser.add_argument("--publish", action="store_true", help=f"write {PUBLISHED.name}")
    parser.add_argument("--check", action="store_true", help="with --publish: compare instead; exit 1 on a difference")
    arguments = parser.parse_args()
    if arguments.publish:
        if arguments.check:
            is_current = PUBLISHED.is_file() and PUBLISHED.read_text(encoding="utf-8") == published()
            print(f"{PUBLISHED.name}: {len(FAULTS)} faults, {'current' if is_current else 'not what the recipe makes'}")
            return 0 if is_current and FAULTS else 1
        PUBLISHED.write_text(published(), encoding="utf-8")
        print(f"Wrote {len(FAULTS)} faults to {PUBLISHED.name}")
        return 0
    if arguments.folder is None:
        parser.error("a folder to write to is missing")
    chosen = [fault for fault in FAULTS if arguments.only in (None, fault.name)]
    if not chosen:
        parser.error(f"no fault is named {arguments.only}")
    for fault in chosen:
        fault.write(arguments.folder / fault.name)
    print(f"Wrote {len(chosen)} faulty backups to {arguments.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
