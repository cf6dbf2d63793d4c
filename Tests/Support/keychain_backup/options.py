"""The options of a test backup: layout, keybag, items and files. Each field is a way in which real backups differ."""

import plistlib
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

from . import mbfile

DATABASE, RECORDS = "manifest-db", "mbdb"
KEYCHAIN = ("KeychainDomain", "keychain-backup.plist")
CHAT, HOME = "AppDomain-org.example.chat", "HomeDomain"
NOTES = (CHAT, "Documents/notes.txt")
SETTINGS = (HOME, "Library/Preferences/org.example.settings.plist")
STORE = (CHAT, "Library/store.sqlite")


@dataclass
class File:
    """A file, a folder (no content) or a link (with a target).

    `size` is the size that the manifest records; None is the actual size.
    """

    domain: str
    path: str
    content: Optional[bytes] = None
    target: Optional[str] = None
    protection_class: int = 3
    size: Optional[int] = None
    is_stored: bool = True
    has_digest: bool = True
    flags: Optional[int] = None
    has_record: bool = True

    @property
    def mode(self):
        if self.target is not None:
            return mbfile.LINK | 0o755
        return mbfile.DIRECTORY | 0o755 if self.content is None else mbfile.REGULAR | 0o644

    @property
    def is_regular(self):
        return self.content is not None

    @property
    def listed_flags(self):
        if self.flags is not None:
            return self.flags
        return 4 if self.target is not None else 1 if self.is_regular else 2

    @property
    def identifier(self):
        return mbfile.file_id(self.domain or "", self.path or "")


def ordinary_files():
    """Return the files that apps leave in a backup, with each shape that a file can have."""
    settings = plistlib.dumps({"theme": "dark", "launches": 42}, fmt=plistlib.FMT_BINARY)
    return [
        File(HOME, ""), File(HOME, "Library"), File(HOME, "Library/Preferences"), File(*SETTINGS, settings),
        File(HOME, "Library/media", target="/var/mobile/Media", protection_class=0),
        File(CHAT, ""), File(CHAT, "Documents"), File(*NOTES, "Milk, eggs, Brötchen\n".encode()),
        File(CHAT, "Documents/block.bin", bytes(range(16)), protection_class=4),
        File(CHAT, "Documents/empty.txt", b"", protection_class=4),
        File(CHAT, "Documents/absent.txt", b"", protection_class=4, is_stored=False, has_digest=False),
        File(CHAT, "Documents/long.bin", bytes(index * 31 % 251 for index in range(70_000)), has_digest=False),
        File(CHAT, "Library"),
        File(*STORE, b"a database that grew after its size was taken", protection_class=1, size=17)]


@dataclass
class BackupOptions:
    """The options of one test backup. A password of None makes an unencrypted backup."""

    password: Optional[bytes] = b"correct horse"
    layout: str = DATABASE
    product_version: str = "18.1"
    udid: str = "00008120-001A2B3C4D5E6F70"
    keybag_version: int = 4
    sha256_iterations: int = 7
    sha1_iterations: int = 5
    class_order: Tuple[int, ...] = tuple(range(11, 0, -1))
    curve_classes: frozenset = frozenset()
    header_extra: List[Tuple[bytes, bytes]] = field(default_factory=list)
    class_extra: List[Tuple[bytes, bytes]] = field(default_factory=list)
    unbound_classes: Tuple[int, ...] = ()
    """Classes whose keys are wrapped only with the password, although every device also wraps them with its key."""
    has_key_types: bool = True
    has_keybag_uuid: bool = True
    blob_versions: Tuple[int, ...] = (3,)
    uses_static_iv: Tuple[bool, ...] = (False,)
    has_row_references: bool = False
    has_bookkeeping: bool = True
    keychain_class: int = 3
    manifest_class: int = 3
    files: List[File] = field(default_factory=ordinary_files)
    has_keychain: bool = True
    encrypts_database: bool = True
    pads_database: bool = True
    has_is_encrypted: bool = True
    plist_formats: Dict[str, str] = field(default_factory=lambda: {"Info.plist": "xml"})
    omitted_files: Tuple[str, ...] = ()
    extra_files: Dict[str, bytes] = field(default_factory=dict)

    @property
    def is_encrypted(self):
        return self.password is not None

    @property
    def device_classes(self):
        """The classes whose keys are also wrapped with the device's key."""
        bound = {5, 9, 10, 11} if self.is_encrypted else {5, 6, 7, 8, 9, 10, 11}
        return bound - set(self.unbound_classes)

    @property
    def iteration_counts(self):
        """The SHA-256 and SHA-1 iteration counts that `inspect` reports."""
        return [self.sha256_iterations if self.is_encrypted and self.sha256_iterations else 0, self.sha1_iterations]
