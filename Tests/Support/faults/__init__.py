"""Backups with exactly one fault, and the exit codes that Keyhaul has to return. backup_faults.py writes them."""

import pathlib
from dataclasses import dataclass, field, replace
from typing import Callable, Dict, Optional, Tuple

from backup_cases import IOS_10_0, MBDB, MBDB_PLAIN, MODERN, PLAIN, described_items
from keychain_backup import packing
from keychain_backup.builder import BackupBuilder
from keychain_backup.options import ordinary_files

SUCCESS, PARTIAL, NOT_FOUND, WRONG_PASSWORD, DAMAGED, REFUSED = 0, 3, 10, 12, 13, 14
# Only small files, because hundreds of faulty backups are written.
FILES = [file for file in ordinary_files() if len(file.content or b"") < 10_000]
VALID_OPTIONS = {
    "encrypted": MODERN,
    "plain": PLAIN,
    "mbdb": MBDB,
    "mbdb-plain": MBDB_PLAIN,
    "ios-10.0": IOS_10_0,
    "plain-unbound": replace(PLAIN, unbound_classes=(6, 7, 8)),
    "encrypted-unbound": replace(MODERN, unbound_classes=(9, 10, 11)),
}
BASES = {name: replace(options, files=FILES) for name, options in VALID_OPTIONS.items()}
"""The options of the backups that are changed, by the name of the base in `Fault`."""
ITEM_COUNT = 6
"""The number of items in a faulty backup: generic passwords of the classes 7, 7, 6, 10, 9 and 6."""
DAMAGED_ITEM = 2
"""The index of the item that faults of items damage. It is in class 6, so the password is enough to decrypt it."""


@dataclass
class Fault:
    """A fault of a valid backup, with the expected exit code of each command.

    `messages` are texts that the output has to contain, regardless of case. `edits` change stages of the builder. In an
    archive, `edit_entries` changes the entries and `edit_archive` the bytes. `edit_on_disk` changes the written backup.
    """

    name: str
    summary: str
    exit_codes: Dict[str, int]
    messages: Tuple[str, ...] = ()
    base: str = "encrypted"
    edits: Dict[str, Callable] = field(default_factory=dict)
    suffix: Optional[str] = None
    edit_entries: Optional[Callable] = None
    edit_archive: Optional[Callable] = None
    edit_on_disk: Optional[Callable] = None

    @property
    def options(self):
        return BASES[self.base]

    def write(self, folder):
        """Write the backup below `folder`, and return its path."""
        builder = BackupBuilder(self.options, described_items()[:ITEM_COUNT], self.edits, seed="fault").build()
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        if self.suffix is None:
            path = folder / "backup"
            builder.write(path)
        else:
            path = folder / f"backup.{self.suffix}"
            entries = builder.entries()
            content = packing.pack(self.edit_entries(entries) if self.edit_entries else entries, self.suffix)
            path.write_bytes(self.edit_archive(content) if self.edit_archive else content)
        if self.edit_on_disk is not None:
            self.edit_on_disk(path)
        return path

    def to_json(self):
        return {
            "name": self.name,
            "wrong": self.summary,
            "base": self.base,
            "packed": self.suffix,
            "codes": self.exit_codes,
            "says": list(self.messages),
        }


def verify_and_plan(exit_code):
    """Return the same exit code for `verify` and `plan`, which decrypt the backup."""
    return {"verify": exit_code, "plan": exit_code}


def partial_loss(exit_code=DAMAGED):
    """Return the exit codes for a damaged part that `plan` can do without."""
    return {"verify": exit_code, "plan": PARTIAL if exit_code == DAMAGED else exit_code}


def flip_bit(data, position, bit=0):
    """Return the data with one bit inverted."""
    changed = bytearray(data)
    changed[position] ^= 1 << bit
    return bytes(changed)
