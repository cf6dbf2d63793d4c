"""Backups with exactly one thing wrong, and how Keyhaul has to answer. See backup_faults.py for the command."""

import pathlib
from dataclasses import dataclass, field, replace
from typing import Callable, Dict, Optional, Tuple

from backup_cases import IOS_10_0, MODERN, OLD, OLD_PLAIN, PLAIN, described_items
from keychain_backup import packing
from keychain_backup.forge import Forge
from keychain_backup.recipe import ordinary_files

OK, PARTIAL, NOT_FOUND, WRONG_PASSWORD, DAMAGED, REFUSED = 0, 3, 10, 12, 13, 14
FILES = [file for file in ordinary_files() if len(file.content or b"") < 10_000]
BASES = {
    name: replace(recipe, files=FILES)
    for name, recipe in {"encrypted": MODERN, "plain": PLAIN, "mbdb": OLD, "mbdb-plain": OLD_PLAIN,
                         "ios-10.0": IOS_10_0,
                         "plain-unbound": replace(PLAIN, unbound_classes=(6, 7, 8)),
                         "encrypted-unbound": replace(MODERN, unbound_classes=(9, 10, 11))}.items()
}
ITEMS = 6
"""How many items a faulty backup holds: generic passwords of the classes 7, 7, 6, 10, 9, 6."""
VICTIM = 2
"""The item that a fault of an item meets: class 6, so that the password alone opens it."""


@dataclass
class Fault:
    """One deviation from a good backup. `codes` says by which verbs it is judged and how each has to end.

    `says` are words that the verb's output must hold, in any case. `edits` change stages of the forge; for a single
    file `entries` changes what is packed and `packed` its bytes; `on_disk` changes the written backup.
    """

    name: str
    wrong: str
    codes: Dict[str, int]
    says: Tuple[str, ...] = ()
    base: str = "encrypted"
    edits: Dict[str, Callable] = field(default_factory=dict)
    suffix: Optional[str] = None
    entries: Optional[Callable] = None
    packed: Optional[Callable] = None
    on_disk: Optional[Callable] = None

    @property
    def recipe(self):
        return BASES[self.base]

    def write(self, folder):
        forge = Forge(self.recipe, described_items()[:ITEMS], self.edits, seed="fault").build()
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        if self.suffix is None:
            path = folder / "backup"
            forge.write(path)
        else:
            path = folder / f"backup.{self.suffix}"
            entries = forge.entries()
            content = packing.pack(self.entries(entries) if self.entries else entries, self.suffix)
            path.write_bytes(self.packed(content) if self.packed else content)
        if self.on_disk is not None:
            self.on_disk(path)
        return path

    def described(self):
        return {
            "name": self.name, "wrong": self.wrong, "base": self.base, "packed": self.suffix, "codes": self.codes,
            "says": list(self.says),
        }


def both(code):
    """What stops every verb that opens the backup."""
    return {"verify": code, "plan": code}


def in_part(code=DAMAGED):
    """What meets a part that a plan goes around. Without the keychain itself nothing is known that could be planned."""
    return {"verify": code, "plan": PARTIAL if code == DAMAGED else code}


def flipped(data, position, bit=0):
    changed = bytearray(data)
    changed[position] ^= 1 << bit
    return bytes(changed)
