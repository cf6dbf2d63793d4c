#!/usr/bin/env python3
"""Write valid backups in every layout that iOS, Finder, iTunes and idevicebackup2 create, with the expected results.

    backup_cases.py FOLDER [--only NAME]      writes FOLDER/NAME/… and FOLDER/NAME.json
    backup_cases.py --list

The expectations (format backup-case/1) list the files, the exit code of each command, and the items with their
contents: for each item, whether the password decrypts it, and whether the device's key does. Two runs write the same
bytes, except for SQLite's version number in Manifest.db.
"""

import argparse
import base64
import hashlib
import json
import pathlib
import sys
from dataclasses import dataclass, field, replace
from typing import Callable, Dict, Optional

from keychain_backup import crypto, items, packing, typed_json
from keychain_backup.builder import BackupBuilder
from keychain_backup.keybag import KEYCHAIN_CLASSES
from keychain_backup.options import CHAT, RECORDS, BackupOptions, File, ordinary_files
from keychain_backup_writer import leaves_device

FIXTURES = pathlib.Path(__file__).resolve().parent.parent.parent / "Fixtures"
SYSTEM_GROUPS = {"com.apple.security.sos", "lockdown-identities"}
MBDB_UDID = "0f1e2d3c4b5a69788796a5b4c3d2e1f000112233"
COMMANDS = ("inspect", "inspect-password", "verify", "verify-quick")
THIS_DEVICE_ONLY = {"aku", "cku", "dku"}
PARTIAL = 3
# Bits of the column `flags` in Manifest.db, which a device sets while it uploads a file.
CHANGED_WHILE_UPLOADING = 16
UPLOAD_FLAGS = 8 | 32


def described_items():
    """Return the descriptions of the items that old-phone would put into a backup."""
    description = json.loads((FIXTURES / "devices" / "old-phone.json").read_text(encoding="utf-8"))
    return [
        item for item in description["items"]
        if leaves_device(item) and item["attributes"]["agrp"] not in SYSTEM_GROUPS
    ]


@dataclass
class Case:
    """A valid backup: its options, how it is packed, and its expected results if they are unusual.

    `password` is the typed password if it differs from the one in the options. `prefix` is the folder in an archive.
    """

    name: str
    options: BackupOptions
    summary: str
    suffix: Optional[str] = None
    prefix: Optional[str] = None
    folder: str = "backup"
    edits: Dict[str, Callable] = field(default_factory=dict)
    exit_code: int = 0
    password: Optional[bytes] = None
    missing_file_count: int = 0

    @property
    def typed_password(self):
        """The password as the user types it, which may be normalized differently."""
        return self.options.password if self.password is None else self.password

    def build(self):
        """Build the backup. Return its builder, which has the files and the written items."""
        return BackupBuilder(self.options, described_items(), self.edits, seed=self.name).build()

    def write(self, folder):
        """Write the backup below `folder`. Return its path and its expectations."""
        builder = self.build()
        folder = pathlib.Path(folder)
        if self.suffix is None:
            path = folder / self.folder
            builder.write(path)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{self.folder}.{self.suffix}"
            path.write_bytes(packing.pack(builder.entries(self.prefix), self.suffix))
        return path, self.expectations(builder)

    def expectations(self, builder):
        """Return the expected results (format backup-case/1)."""
        options = self.options
        files = [
            file for file in options.files if file.is_regular and file.listed_flags != CHANGED_WHILE_UPLOADING
        ]
        # An unencrypted empty file has no bytes that a digest could protect.
        files_without_digest = [
            file for file in files
            if not file.has_digest and file.is_stored and (options.is_encrypted or file.content)
        ]
        expected_items = [self._expected_item(index, *item) for index, item in enumerate(builder.written)]
        return {
            "format": "backup-case/1",
            "name": self.name,
            "what": self.summary,
            "layout": options.layout,
            "encrypted": options.is_encrypted,
            "password": None if options.password is None else typed_json.secret_to_json(self.typed_password),
            "device_key": builder.device_key.hex(),
            "device": {"udid": options.udid, "product_version": options.product_version},
            "keybag": {
                "version": options.keybag_version,
                "rounds": options.iteration_counts,
                "classes": len(options.class_order),
            },
            "keychain": options.has_keychain,
            "missing": self.missing_file_count,
            "without_digest": len(files_without_digest),
            "files": [self._expected_file(file) for file in files],
            "items": expected_items if options.has_keychain else [],
            "codes": {command: self._expected_exit_code(command) for command in COMMANDS},
        }

    @staticmethod
    def _expected_file(file):
        return {
            "domain": file.domain,
            "path": file.path,
            "base64": base64.b64encode(file.content).decode("ascii"),
            "stored": file.is_stored,
        }

    def _expected_exit_code(self, command):
        # Without Status.plist, nothing shows that the device finished the backup, so `verify` reports a partial result.
        is_unconfirmed = (
            self.exit_code == 0 and "Status.plist" in self.options.omitted_files and command.startswith("verify")
        )
        return PARTIAL if is_unconfirmed else self.exit_code

    def _expected_item(self, index, table, protection, dictionary):
        # The reason why the password does not decrypt the item, or None if it does. The device's key decrypts every
        # item.
        reason = None
        if KEYCHAIN_CLASSES[protection] in self.options.device_classes:
            reason = "device-bound" if protection in THIS_DEVICE_ONLY else "backup-not-encrypted"
        expectation = {
            "index": index,
            "table": table,
            "kind": items.KIND_OF_TABLE[table],
            "protection": protection,
            "with_password": reason,
            "with_device_key": None,
            "attributes": {
                code: typed_json.to_plain_json(value)
                for code, value in sorted(dictionary.items())
                if code != "v_Data"
            },
        }
        if "v_Data" in dictionary:
            expectation["secret"] = typed_json.encode_bytes(dictionary["v_Data"])
        return expectation


def _with_shuffled_classes(options):
    return replace(options, class_order=(7, 1, 11, 4, 9, 2, 6, 10, 3, 5, 8))


def _add_row_without_domain(rows):
    rows.append(["ab" * 20, None, None, CHANGED_WHILE_UPLOADING, None])


def _replace_array_with_dictionary(root):
    root["keys"] = root["keys"][0]


def _add_unknown_tables(root):
    root.update(xtra=[{"v_Data": b"?", "v_PersistentRef": b"?"}], note="a value that is not an array")


SALT = bytes(range(8))
RECORD_IV = bytes(range(16))
RECORD_COLUMN = 4


def ios_10_0_rows(encode, password=None):
    """Return an edit that encrypts each record with AES-128-CBC. The key is derived from the password and the salt.

    `encode` converts an encrypted record to the stored value.
    """
    def encrypt(rows):
        key = hashlib.sha1((password or BackupOptions().password) + SALT).digest()[:16]
        for row in rows:
            record = row[RECORD_COLUMN]
            if record is not None:
                row[RECORD_COLUMN] = encode(crypto.cbc_encrypt(key, crypto.pad(record), iv=RECORD_IV))
    return encrypt


def in_base64(encrypted_record):
    """Return an encrypted record as base64 text, which is how iOS 10.0 stores it."""
    return base64.b64encode(encrypted_record).decode("ascii")


def ios_10_0_properties(password=None, salt=SALT):
    """Return an edit that adds the salt and the digest of the password to the database."""
    def insert(connection):
        digest = hashlib.sha256((password or BackupOptions().password) + SALT).digest()
        connection.execute("INSERT INTO Properties VALUES ('salt', ?)", (salt,))
        connection.execute("INSERT INTO Properties VALUES ('passwordHash', ?)", (digest,))
    return insert


def _files_with_recorded_size(size):
    """Return the ordinary files with this size in the manifest instead of the size of their contents."""
    return [replace(file, size=size) if file.is_regular and file.content else file for file in ordinary_files()]


MODERN = BackupOptions()
PLAIN = replace(MODERN, password=None)
MBDB = replace(
    MODERN, layout=RECORDS, product_version="9.3.6", udid=MBDB_UDID, keybag_version=3, sha256_iterations=0,
    has_row_references=True, has_bookkeeping=False, keychain_class=1)
MBDB_PLAIN = replace(MBDB, password=None)
IOS_10_0 = replace(MODERN, product_version="10.0.2", encrypts_database=False, sha256_iterations=0)
IOS_10_1 = replace(IOS_10_0, product_version="10.1.1")
NEWEST = replace(MODERN, keybag_version=5, class_order=tuple(range(1, 12)))
ACCENTED = "pässwörd"
COMPOSED, DECOMPOSED = "p\u00e4ssw\u00f6rd".encode(), "pa\u0308sswo\u0308rd".encode()


def _layouts():
    return [
        Case("db-encrypted", MODERN, "iOS 10.2 or newer with a password"),
        Case("db-plain", PLAIN, "iOS 10.2 or newer without a password"),
        Case("mbdb-encrypted", MBDB, "iOS 4 to 9 with a password: Manifest.mbdb, payloads in the root"),
        Case("mbdb-plain", MBDB_PLAIN, "iOS 4 to 9 without a password"),
        Case(
            "mbdb-ios-4",
            replace(
                MBDB, product_version="4.3.5", keybag_version=2, has_key_types=False, has_keybag_uuid=False,
                blob_versions=(0,)),
            "iOS 4: keybag 2, no key types, no keybag named in the keychain, items of version 0",
        ),
        *_ios_10_0(),
        Case(
            "ios-10.1", IOS_10_1,
            "iOS 10.1 with a password: Manifest.db and its rows unencrypted, no ManifestKey, no SHA-256 derivation"),
        Case("ios-10.1-zip", IOS_10_1, "iOS 10.1 in a zip file", suffix="zip"),
        Case("db-plain-without-is-encrypted", replace(PLAIN, has_is_encrypted=False), "IsEncrypted is absent"),
        Case("mbdb-plain-without-is-encrypted", replace(MBDB_PLAIN, has_is_encrypted=False), "IsEncrypted is absent"),
        Case("no-keychain", replace(MODERN, has_keychain=False), "no keychain file"),
    ]


def _ios_10_0():
    def case(name, summary, options=IOS_10_0, encode=in_base64, **fields):
        edits = {"rows": ios_10_0_rows(encode, options.password), "sql": ios_10_0_properties(options.password)}
        return Case(name, options, summary, edits=edits, **fields)

    return [
        case("ios-10.0", "iOS 10.0 with a password: Manifest.db unencrypted, its rows encrypted, no ManifestKey"),
        case("ios-10.0-data", "iOS 10.0, the base64 of its rows stored as data", encode=base64.b64encode),
        case("ios-10.0-raw", "iOS 10.0, its rows not in base64", encode=bytes),
        case("ios-10.0-zip", "iOS 10.0 in a zip file", suffix="zip"),
        case(
            "ios-10.0-accents", "iOS 10.0, its password typed decomposed", replace(IOS_10_0, password=COMPOSED),
            password=DECOMPOSED),
        case(
            "ios-10.0-named-18.1", "iOS 10.0 that records its version as iOS 18.1",
            replace(IOS_10_0, product_version="18.1")),
    ]


def _keybags():
    known_classes = tuple(range(1, 12))
    unknown_tags = replace(
        MODERN, header_extra=[(b"GRCE", bytes(4)), (b"XYZW", b"seven b")], class_extra=[(b"ABCD", b"kept as it is")])
    return [
        Case(f"keybag-{version}", replace(MODERN, keybag_version=version), f"a keybag of version {version}")
        for version in (2, 3, 5, 6)
    ] + [
        Case("keybag-ascending", NEWEST, "class keys in ascending order, as in version 5"),
        Case("keybag-shuffled", _with_shuffled_classes(MODERN), "class keys in random order"),
        Case("keybag-shuffled-mbdb", _with_shuffled_classes(MBDB), "class keys in random order, iOS 4 to 9"),
        Case("keybag-one-round", replace(MODERN, sha256_iterations=0), "no DPIC and DPSL: no SHA-256 derivation"),
        Case("keybag-unknown-tags", unknown_tags, "unknown tags in the header and in each class"),
        Case("keybag-class-16", replace(MODERN, class_order=known_classes + (16,)),
             "an unknown class of number 16, which is not 0"),
        Case("keybag-class-13", replace(MODERN, class_order=known_classes + (13,)), "an unknown class of number 13"),
        Case("keybag-few-classes", replace(MODERN, class_order=(11, 10, 9, 8, 7, 6, 4, 3, 1)),
             "classes that nothing needs are absent"),
        Case("keybag-curve", replace(MODERN, curve_classes=frozenset({2, 6, 7, 8, 9, 10, 11})),
             "Curve25519 keychain classes, item keys of 72 bytes"),
        Case("keybag-curve-everywhere", replace(MODERN, curve_classes=frozenset(range(1, 12))),
             "Curve25519 for all classes, also those of files and of the manifest"),
        Case("keybag-class-4-manifest", replace(MODERN, manifest_class=4), "ManifestKey in class 4"),
    ]


def _passwords():
    def with_password(name, password, summary, typed=None):
        return Case(f"password-{name}", replace(MODERN, password=password), summary, password=typed)

    return [
        with_password("64-bytes", b"0123456789abcdef" * 4, "a password of 64 bytes, which is not a hexadecimal key"),
        with_password("65-bytes", b"0123456789abcdef" * 4 + b"!", "a password longer than SHA-1's block"),
        with_password("exclamation-mark", b"secret!", "a password that ends in !"),
        with_password("space", b" in front and behind ", "a password with spaces at its ends"),
        with_password("newline", b"two lines\n", "a password that ends in a newline"),
        with_password("carriage-return", b"line\r", "a password that ends in a carriage return"),
        with_password("not-utf-8", b"\xff\xfe raw \x80", "a password that is not text"),
        with_password("composed", COMPOSED, f"{ACCENTED} was set composed and is typed composed"),
        with_password("decomposed", DECOMPOSED, f"{ACCENTED} was set decomposed and is typed decomposed"),
        with_password(
            "typed-decomposed", COMPOSED, f"{ACCENTED} was set composed and is typed decomposed", DECOMPOSED),
        with_password("typed-composed", DECOMPOSED, f"{ACCENTED} was set decomposed and is typed composed", COMPOSED),
    ]


def _items():
    return [
        Case("items-version-2", replace(MODERN, blob_versions=(2,)), "items of version 2"),
        Case(
            "items-static-iv", replace(MODERN, uses_static_iv=(True,)),
            "items with the static IV, as in device databases"),
        Case(
            "items-mixed", replace(MODERN, blob_versions=(3, 2, 0), uses_static_iv=(False, True)),
            "items of versions 0, 2 and 3 and both kinds of IV in one file"),
        Case("items-row-references", replace(MODERN, has_row_references=True), "persistent references by row number"),
        Case(
            "items-without-bookkeeping", replace(MODERN, has_bookkeeping=False, has_row_references=True),
            "items without sha1, musr, UUID and persistref"),
        Case("items-version-0-plain", replace(PLAIN, blob_versions=(0,)), "items of version 0 without a password"),
        Case(
            "items-single-dictionary", MODERN, "a table that is one dictionary instead of an array",
            edits={"keychain": _replace_array_with_dictionary}),
        Case("items-unknown-table", MODERN, "unknown tables", edits={"keychain": _add_unknown_tables}),
        Case("items-keybag-unnamed", replace(MODERN, has_keybag_uuid=False), "keybag-uuid is absent"),
        Case(
            "items-keybag-number", MODERN, "keybag-uuid is not a string, so it is ignored",
            edits={"keychain": lambda root: root.update({"keybag-uuid": 7})}),
    ]


def _manifests():
    uploading_file = File(
        CHAT, "Documents/uploading.txt", b"changed while uploading", flags=CHANGED_WHILE_UPLOADING, is_stored=False,
        has_record=False)
    with_upload_flags = [replace(file, flags=file.listed_flags | UPLOAD_FLAGS) for file in ordinary_files()]
    return [
        Case(
            "list-null-rows", MODERN, "a row with no domain, no path and no record",
            edits={"rows": _add_row_without_domain}),
        Case(
            "list-flags-16", replace(MODERN, files=[*ordinary_files(), uploading_file]),
            "a row of a file that changed while uploading"),
        Case("list-flags-40", replace(MODERN, files=with_upload_flags), "rows that still have the upload's flags"),
        Case(
            "list-flags-0", replace(MODERN, files=[replace(file, flags=0) for file in ordinary_files()]),
            "rows whose flags are 0, so that the mode decides"),
        Case("list-unpadded", replace(MODERN, pads_database=False), "Manifest.db encrypted without padding"),
        Case(
            "list-sizes-too-small", replace(MODERN, files=_files_with_recorded_size(1)),
            "recorded sizes smaller than the content"),
        Case(
            "list-sizes-too-large", replace(MODERN, files=_files_with_recorded_size(1 << 40)),
            "recorded sizes larger than the content"),
        Case(
            "list-sizes-mbdb", replace(MBDB, files=_files_with_recorded_size(1 << 40)),
            "recorded sizes larger than the content"),
        Case(
            "list-sizes-plain", replace(PLAIN, files=_files_with_recorded_size(1)),
            "recorded sizes smaller than the content"),
        Case(
            "list-no-digests", replace(MODERN, files=[replace(f, has_digest=False) for f in ordinary_files()]),
            "no file has a digest"),
        Case("list-keychain-class-1", replace(MODERN, keychain_class=1), "the keychain file in class 1, as on devices"),
    ]


def _folders():
    all_xml = {"Manifest.plist": "xml", "Status.plist": "xml", "Info.plist": "xml"}
    # The other property lists are binary by default.
    all_binary = {"Info.plist": "binary"}
    unrelated_files = {
        ".DS_Store": b"\x00\x00\x00\x01Bud1", "Snapshot/Manifest.db": b"half a database", "desktop.ini": b"[x]\r\n",
        "Manifest.mbdx": b"mbdx\x02\x00",
    }
    return [
        Case("plists-xml", replace(MODERN, plist_formats=all_xml), "all property lists in XML"),
        Case("plists-xml-mbdb", replace(MBDB, plist_formats=all_xml), "all property lists in XML, iOS 4 to 9"),
        Case("plists-binary", replace(MODERN, plist_formats=all_binary), "all property lists binary"),
        Case(
            "no-info", replace(MODERN, omitted_files=("Info.plist",)), "no Info.plist, as idevicebackup2 may leave it"),
        Case("no-status", replace(MODERN, omitted_files=("Status.plist",)), "no Status.plist"),
        Case(
            "no-info-no-status", replace(PLAIN, omitted_files=("Info.plist", "Status.plist")),
            "neither Info.plist nor Status.plist"),
        Case("extra-files", replace(MODERN, extra_files=unrelated_files), "unrelated files in the backup's folder"),
        Case(
            "date-suffix", MODERN, "an archived copy with its date in the folder's name",
            folder=f"{MODERN.udid}-20261120-180410"),
        Case("udid-folder", MBDB, "a folder named after the device, 40 digits", folder=MBDB_UDID),
    ]


def _archives():
    with_folder = [
        Case(f"packed-{suffix}", MODERN, f"one {suffix} file with the folder's name in front", suffix=suffix)
        for suffix in packing.SUFFIXES
    ]
    without_folder = [
        Case(f"packed-{suffix}-bare", MBDB, f"one {suffix} file without a leading folder", suffix=suffix, prefix="")
        for suffix in packing.SUFFIXES
    ]
    return [
        *with_folder,
        *without_folder,
        Case("packed-tar-dot", PLAIN, "a tar whose names begin with ./", suffix="tar", prefix="./"),
        Case("packed-wrong-suffix", MODERN, "a zip file whose name ends in .tar", suffix="zip", folder="family.tar"),
    ]


CASES = [*_layouts(), *_keybags(), *_passwords(), *_items(), *_manifests(), *_folders(), *_archives()]


def write_device_backups(folder):
    """Write a folder with the backups of several devices, like MobileSync/Backup. Return the names of the backups."""
    cases = {MBDB_UDID: MBDB, MODERN.udid: MODERN, f"{MODERN.udid}-20251224-120000": PLAIN}
    for name, options in cases.items():
        Case(name, options, "", folder=name).write(folder)
    return sorted(cases)


def main():
    parser = argparse.ArgumentParser(description="Write valid backups of every layout, with their expectations.")
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("--only", metavar="NAME")
    parser.add_argument("--list", action="store_true", help="print names and descriptions")
    arguments = parser.parse_args()
    selected = [case for case in CASES if arguments.only in (None, case.name)]
    if not selected:
        parser.error(f"there is no case named {arguments.only}")
    if arguments.list:
        print("\n".join(f"{case.name:32}{case.summary}" for case in selected))
        return 0
    if arguments.folder is None:
        parser.error("specify a folder, or use --list")
    for case in selected:
        _, expectations = case.write(arguments.folder / case.name)
        text = json.dumps(expectations, indent=1, ensure_ascii=False)
        (arguments.folder / f"{case.name}.json").write_text(text + "\n", encoding="utf-8")
    print(f"Wrote {len(selected)} backups to {arguments.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
