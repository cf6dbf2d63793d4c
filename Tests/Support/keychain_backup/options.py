"""The options of a test backup: layout, keybag, items and files.

`builder` makes the backup. The defaults make an encrypted backup of iOS 18; each option changes one property of it.
"""

import plistlib
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

from . import mbfile

# The layouts. DATABASE lists the files in Manifest.db (iOS 10 and later), RECORDS in Manifest.mbdb (iOS 4 to 9).
DATABASE, RECORDS = "manifest-db", "mbdb"
# The domain and path of the keychain file.
KEYCHAIN = ("KeychainDomain", "keychain-backup.plist")
CHAT, HOME = "AppDomain-org.example.chat", "HomeDomain"
# The domains and paths of files that tests refer to.
NOTES = (CHAT, "Documents/notes.txt")
SETTINGS = (HOME, "Library/Preferences/org.example.settings.plist")
STORE = (CHAT, "Library/store.sqlite")
# The values of the column `flags` in Manifest.db.
FILE_FLAG, DIRECTORY_FLAG, LINK_FLAG = 1, 2, 4


@dataclass
class File:
    """An entry of the manifest. With a target it is a link, with content a regular file, and otherwise a directory."""

    domain: str
    path: str
    content: Optional[bytes] = None
    """The plaintext of a regular file."""
    target: Optional[str] = None
    """The path to which a link leads."""
    protection_class: int = 3
    """The protection class in the record. In an encrypted backup, its key wraps the key of the file."""
    size: Optional[int] = None
    """The size in the record, or None for the size of the content."""
    is_stored: bool = True
    """Whether the backup contains the payload of a regular file. If not, only the manifest lists the file."""
    has_digest: bool = True
    """Whether the record of a regular file contains the SHA-1 digest of the stored bytes."""
    flags: Optional[int] = None
    """The flags in the row of Manifest.db, or None for the flag of the entry's type."""
    has_record: bool = True
    """Whether the row of Manifest.db contains a record."""

    @property
    def mode(self):
        """The type and the permissions of the entry, as `stat` returns them."""
        if self.target is not None:
            return mbfile.LINK | 0o755
        return mbfile.DIRECTORY | 0o755 if self.content is None else mbfile.REGULAR | 0o644

    @property
    def is_regular(self):
        return self.content is not None

    @property
    def listed_flags(self):
        """The flags in the row of Manifest.db."""
        if self.flags is not None:
            return self.flags
        if self.target is not None:
            return LINK_FLAG
        return FILE_FLAG if self.is_regular else DIRECTORY_FLAG

    @property
    def identifier(self):
        """The fileID, which is also the name of the payload."""
        return mbfile.file_id(self.domain or "", self.path or "")


def ordinary_files():
    """Return the default files of a test backup, with directories, a link and regular files.

    The regular files include an empty file, a file of exactly one cipher block, a file that is not stored, a file
    without a digest, and a file with an outdated size.
    """
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
    """The options of one test backup."""

    password: Optional[bytes] = b"correct horse"
    """The password of the backup, or None for an unencrypted backup."""
    layout: str = DATABASE
    """DATABASE or RECORDS."""
    product_version: str = "18.1"
    """The iOS version in Manifest.plist and Info.plist. It has no effect on the format."""
    udid: str = "00008120-001A2B3C4D5E6F70"
    """The identifier of the source device."""

    # Keybag

    keybag_version: int = 4
    """The version in the header (VERS). It has no effect on the other records."""
    sha256_iterations: int = 7
    """The number of SHA-256 iterations (DPIC), or 0 to omit this step, as before iOS 10.2."""
    sha1_iterations: int = 5
    """The number of SHA-1 iterations (ITER)."""
    class_order: Tuple[int, ...] = tuple(range(11, 0, -1))
    """The classes with a class key, in the order of the keybag."""
    curve_classes: frozenset = frozenset()
    """The classes with a Curve25519 key pair (KTYP 1) instead of an AES key."""
    header_extra: List[Tuple[bytes, bytes]] = field(default_factory=list)
    """Additional records (tag and value) at the end of the header."""
    class_extra: List[Tuple[bytes, bytes]] = field(default_factory=list)
    """Additional records (tag and value) at the end of each class key."""
    unbound_classes: Tuple[int, ...] = ()
    """Classes whose keys are wrapped only with the password, although every device also wraps them with its key."""
    has_key_types: bool = True
    """Whether each class key has a key type (KTYP)."""

    # Keychain

    has_keychain: bool = True
    """Whether the backup has a keychain file."""
    keychain_class: int = 3
    """The protection class of the keychain file."""
    has_keybag_uuid: bool = True
    """Whether the keychain file contains the UUID of the keybag."""
    blob_versions: Tuple[int, ...] = (3,)
    """The versions of the encrypted items (0, 2 or 3). The first item has the first version, and so on in rotation."""
    uses_static_iv: Tuple[bool, ...] = (False,)
    """Whether each item is encrypted with the fixed IV, in rotation like `blob_versions`. Version 0 ignores it."""
    has_row_references: bool = False
    """Whether persistent references contain row numbers. If not, they contain UUIDs."""
    has_bookkeeping: bool = True
    """Whether items contain `musr` and `sha1`, which iOS adds and no app sets."""

    # Manifest and files

    files: List[File] = field(default_factory=ordinary_files)
    """The entries of the manifest, without the keychain file."""
    encrypts_database: bool = True
    """Whether an encrypted backup also encrypts Manifest.db, as since iOS 10.2."""
    manifest_class: int = 3
    """The class whose key wraps the key of Manifest.db."""
    pads_database: bool = True
    """Whether the encrypted Manifest.db is padded."""

    # Property lists and other files

    has_is_encrypted: bool = True
    """Whether Manifest.plist contains `IsEncrypted`."""
    plist_formats: Dict[str, str] = field(default_factory=lambda: {"Info.plist": "xml"})
    """The format of each property list: "xml" or "binary". A property list without an entry is binary."""
    omitted_files: Tuple[str, ...] = ()
    """The names of files that are removed from the finished backup."""
    extra_files: Dict[str, bytes] = field(default_factory=dict)
    """The contents of additional files that the manifest does not list, by path."""

    @property
    def is_encrypted(self):
        return self.password is not None

    @property
    def device_classes(self):
        """The classes whose keys are also wrapped with the device's key.

        In an unencrypted backup, they include every class of keychain items.
        """
        bound = {5, 9, 10, 11} if self.is_encrypted else {5, 6, 7, 8, 9, 10, 11}
        return bound - set(self.unbound_classes)

    @property
    def iteration_counts(self):
        """The SHA-256 and SHA-1 iteration counts that `inspect` reports."""
        return [self.sha256_iterations if self.is_encrypted and self.sha256_iterations else 0, self.sha1_iterations]
