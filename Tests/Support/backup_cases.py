#!/usr/bin/env python3
"""Writes good backups in every layout that iOS, Finder, iTunes and idevicebackup2 leave behind, each with its answers.

    backup_cases.py FOLDER [--only NAME]      writes FOLDER/NAME/… and FOLDER/NAME.json
    backup_cases.py --list

The answers (format backup-case/1) say which items open with the password and which with the device's key too, what
they contain, which files there are, and how each verb has to end. The same bytes every time, but for SQLite's own
version number in Manifest.db.
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
from keychain_backup.forge import Forge
from keychain_backup.keybag import KEYCHAIN_CLASSES
from keychain_backup.recipe import CHAT, RECORDS, File, Recipe, ordinary_files
from keychain_backup_writer import leaves_device

FIXTURES = pathlib.Path(__file__).resolve().parent.parent.parent / "Fixtures"
SYSTEM_GROUPS = {"com.apple.security.sos", "lockdown-identities"}
OLD_UDID = "0f1e2d3c4b5a69788796a5b4c3d2e1f000112233"
VERBS = ("inspect", "inspect-password", "verify", "verify-quick")
THIS_DEVICE_ONLY = {"aku", "cku", "dku"}
PARTIAL = 3


def described_items():
    """What old-phone would put into a backup."""
    description = json.loads((FIXTURES / "devices" / "old-phone.json").read_text(encoding="utf-8"))
    return [
        described for described in description["items"]
        if leaves_device(described) and described["attributes"]["agrp"] not in SYSTEM_GROUPS
    ]


@dataclass
class Case:
    """A good backup: how it is made, how it is packed, and what differs in its answers."""

    name: str
    recipe: Recipe
    what: str
    suffix: Optional[str] = None
    prefix: Optional[str] = None
    folder: str = "backup"
    edits: Dict[str, Callable] = field(default_factory=dict)
    code: int = 0
    password: Optional[bytes] = None
    missing: int = 0

    @property
    def typed_password(self):
        return self.recipe.password if self.password is None else self.password

    def forge(self):
        return Forge(self.recipe, described_items(), self.edits, seed=self.name).build()

    def write(self, folder):
        """Writes the backup below `folder`; gives its path and its answers."""
        forge = self.forge()
        folder = pathlib.Path(folder)
        if self.suffix is None:
            path = folder / self.folder
            forge.write(path)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{self.folder}.{self.suffix}"
            path.write_bytes(packing.pack(forge.entries(self.prefix), self.suffix))
        return path, self.answers(forge)

    def answers(self, forge):
        recipe = self.recipe
        files = [file for file in recipe.files if file.is_regular and file.listed_flags != 16]
        described = [self._item(index, *item) for index, item in enumerate(forge.written)]
        return {
            "format": "backup-case/1", "name": self.name, "what": self.what, "layout": recipe.layout,
            "encrypted": recipe.is_encrypted, "password": None if recipe.password is None else typed_json.secret(
                self.typed_password),
            "device_key": forge.device_key.hex(),
            "device": {"udid": recipe.udid, "product_version": recipe.product_version},
            "keybag": {
                "version": recipe.keybag_version, "rounds": recipe.shown_rounds,
                "classes": len(recipe.class_order),
            },
            "keychain": recipe.has_keychain, "missing": self.missing,
            "without_digest": sum(
                not file.has_digest and file.is_stored and bool(file.content or recipe.is_encrypted) for file in files),
            "files": [
                {"domain": file.domain, "path": file.path, "base64": base64.b64encode(file.content).decode("ascii"),
                 "stored": file.is_stored}
                for file in files
            ],
            "items": described if recipe.has_keychain else [],
            "codes": {verb: self._code(verb) for verb in VERBS},
        }

    def _code(self, verb):
        # Nothing says whether the device finished a backup without Status.plist: it is not called whole.
        unconfirmed = self.code == 0 and "Status.plist" in self.recipe.left_out and verb.startswith("verify")
        return PARTIAL if unconfirmed else self.code

    def _item(self, index, table, protection, dictionary):
        reason = None
        if KEYCHAIN_CLASSES[protection] in self.recipe.device_classes:
            reason = "device-bound" if protection in THIS_DEVICE_ONLY else "backup-not-encrypted"
        answer = {"index": index, "table": table, "kind": items.KIND_OF_TABLE[table], "protection": protection,
                  "with_password": reason, "with_device_key": None}
        answer["attributes"] = {
            code: typed_json.plain(value) for code, value in sorted(dictionary.items()) if code != "v_Data"}
        if "v_Data" in dictionary:
            answer["secret"] = typed_json.data(dictionary["v_Data"])
        return answer


def _shuffled(recipe):
    return replace(recipe, class_order=(7, 1, 11, 4, 9, 2, 6, 10, 3, 5, 8))


def _files_with(*more):
    return ordinary_files() + list(more)


def _rows_without_domain(rows):
    rows.append(["ab" * 20, None, None, 16, None])


def _single_dictionary(root):
    root["keys"] = root["keys"][0]


def _unknown_tables(root):
    root.update(xtra=[{"v_Data": b"?", "v_PersistentRef": b"?"}], note="a value that is not an array")


SALT = bytes(range(8))


def ios_10_0_rows(form, password=None):
    """Each record sealed: AES-128-CBC, the key from password and salt, the IV 00 01 … 0F; `form` makes what is stored."""
    def seal(rows):
        key = hashlib.sha1((password or Recipe().password) + SALT).digest()[:16]
        for row in rows:
            if row[4] is not None:
                row[4] = form(crypto.cbc_encrypt(key, crypto.pad(row[4]), iv=bytes(range(16))))
    return seal


def in_base64(sealed):
    return base64.b64encode(sealed).decode("ascii")


def ios_10_0_properties(password=None, salt=SALT):
    def insert(connection):
        digest = hashlib.sha256((password or Recipe().password) + SALT).digest()
        connection.execute("INSERT INTO Properties VALUES ('salt', ?)", (salt,))
        connection.execute("INSERT INTO Properties VALUES ('passwordHash', ?)", (digest,))
    return insert


def _size_said(said):
    """Files whose recorded size is not that of their content."""
    return [replace(file, size=said) if file.is_regular and file.content else file for file in ordinary_files()]


MODERN = Recipe()
PLAIN = replace(MODERN, password=None)
OLD = replace(
    MODERN, layout=RECORDS, product_version="9.3.6", udid=OLD_UDID, keybag_version=3, double_rounds=0,
    row_references=True, with_bookkeeping=False, keychain_class=1)
OLD_PLAIN = replace(OLD, password=None)
IOS_10_0 = replace(MODERN, product_version="10.0.2", encrypts_database=False, double_rounds=0)
NEWEST = replace(MODERN, keybag_version=5, class_order=tuple(range(1, 12)))
TWO_FORMS = "pässwörd"
COMPOSED, DECOMPOSED = "p\u00e4ssw\u00f6rd".encode(), "pa\u0308sswo\u0308rd".encode()


def _layouts():
    return [
        Case("db-encrypted", MODERN, "iOS 10.2 or newer with a password"),
        Case("db-plain", PLAIN, "iOS 10.2 or newer without a password"),
        Case("mbdb-encrypted", OLD, "iOS 4 to 9 with a password: Manifest.mbdb, payloads in the root"),
        Case("mbdb-plain", OLD_PLAIN, "iOS 4 to 9 without a password"),
        Case("mbdb-ios-4", replace(
            OLD, product_version="4.3.5", keybag_version=2, has_key_types=False, names_keybag=False,
            blob_versions=(0,)), "iOS 4: keybag 2, no key types, no keybag named in the keychain, items of version 0"),
        Case("ios-10.0", IOS_10_0, "iOS 10.0 with a password: Manifest.db in clear, its rows sealed, no ManifestKey",
             edits={"rows": ios_10_0_rows(in_base64), "sql": ios_10_0_properties()}),
        Case("ios-10.0-data", IOS_10_0, "the same with the base64 of its rows as data",
             edits={"rows": ios_10_0_rows(base64.b64encode), "sql": ios_10_0_properties()}),
        Case("ios-10.0-raw", IOS_10_0, "the same with rows that are not in base64",
             edits={"rows": ios_10_0_rows(bytes), "sql": ios_10_0_properties()}),
        Case("ios-10.0-zip", IOS_10_0, "the same in a zip", suffix="zip",
             edits={"rows": ios_10_0_rows(in_base64), "sql": ios_10_0_properties()}),
        Case("ios-10.0-accents", replace(IOS_10_0, password=COMPOSED), "the same, its password typed decomposed",
             password=DECOMPOSED,
             edits={"rows": ios_10_0_rows(in_base64, COMPOSED), "sql": ios_10_0_properties(COMPOSED)}),
        Case("ios-10.0-named-18.1", replace(IOS_10_0, product_version="18.1"), "the same, and calls itself iOS 18.1",
             edits={"rows": ios_10_0_rows(in_base64), "sql": ios_10_0_properties()}),
        Case("ios-10.1", replace(MODERN, product_version="10.1.1", encrypts_database=False, double_rounds=0),
             "iOS 10.1 with a password: Manifest.db and its rows in clear, no ManifestKey, one round of derivation"),
        Case("ios-10.1-zip", replace(MODERN, product_version="10.1.1", encrypts_database=False, double_rounds=0),
             "the same in a zip", suffix="zip"),
        Case("db-plain-without-is-encrypted", replace(PLAIN, says_encrypted=False), "IsEncrypted is absent"),
        Case("mbdb-plain-without-is-encrypted", replace(OLD_PLAIN, says_encrypted=False), "IsEncrypted is absent"),
        Case("no-keychain", replace(MODERN, has_keychain=False), "no keychain file is listed and none is stored"),
    ]


def _keybags():
    order = tuple(range(1, 12)) + (16,)
    unknown = replace(
        MODERN, header_extra=[(b"GRCE", bytes(4)), (b"XYZW", b"seven b")], class_extra=[(b"ABCD", b"kept as it is")])
    return [
        Case(f"keybag-{version}", replace(MODERN, keybag_version=version), f"a keybag of version {version}")
        for version in (2, 3, 5, 6)
    ] + [
        Case("keybag-ascending", NEWEST, "class keys in ascending order, as in version 5"),
        Case("keybag-shuffled", _shuffled(MODERN), "class keys in no order"),
        Case("keybag-shuffled-mbdb", _shuffled(OLD), "class keys in no order, iOS 4 to 9"),
        Case("keybag-one-round", replace(MODERN, double_rounds=0), "no DPIC and DPSL: one round of derivation"),
        Case("keybag-unknown-tags", unknown, "tags that nobody knows, in the header and in each class"),
        Case("keybag-class-16", replace(MODERN, class_order=order), "an unknown class of number 16, which is not 0"),
        Case("keybag-class-13", replace(MODERN, class_order=order[:-1] + (13,)), "an unknown class of number 13"),
        Case("keybag-few-classes", replace(MODERN, class_order=(11, 10, 9, 8, 7, 6, 4, 3, 1)),
             "classes that nothing needs are absent"),
        Case("keybag-curve", replace(MODERN, curve_classes=frozenset({2, 6, 7, 8, 9, 10, 11})),
             "Curve25519 keychain classes, item keys of 72 bytes"),
        Case("keybag-curve-everywhere", replace(MODERN, curve_classes=frozenset(range(1, 12))),
             "Curve25519 for all classes, also those of files and of the manifest"),
        Case("keybag-class-4-manifest", replace(MODERN, manifest_class=4), "ManifestKey in class 4"),
    ]


def _passwords():
    def with_password(name, password, what, typed=None):
        return Case(f"password-{name}", replace(MODERN, password=password), what, password=typed)

    return [
        with_password("64-bytes", b"0123456789abcdef" * 4, "a password of 64 bytes, which is no key in hexadecimal"),
        with_password("65-bytes", b"0123456789abcdef" * 4 + b"!", "a password longer than SHA-1's block"),
        with_password("exclamation-mark", b"secret!", "a password that ends in !"),
        with_password("space", b" in front and behind ", "a password with spaces at its ends"),
        with_password("newline", b"two lines\n", "a password that ends in a newline"),
        with_password("carriage-return", b"line\r", "a password that ends in a carriage return"),
        with_password("not-utf-8", b"\xff\xfe raw \x80", "a password that is not text"),
        with_password("composed", COMPOSED, f"{TWO_FORMS} was set composed and is typed composed"),
        with_password("decomposed", DECOMPOSED, f"{TWO_FORMS} was set decomposed and is typed decomposed"),
        with_password(
            "typed-decomposed", COMPOSED, f"{TWO_FORMS} was set composed and is typed decomposed", DECOMPOSED),
        with_password("typed-composed", DECOMPOSED, f"{TWO_FORMS} was set decomposed and is typed composed", COMPOSED),
    ]


def _items():
    return [
        Case("items-version-2", replace(MODERN, blob_versions=(2,)), "items of version 2"),
        Case("items-static-iv", replace(MODERN, static_iv=(True,)), "items in the form of device databases"),
        Case("items-mixed", replace(MODERN, blob_versions=(3, 2, 0), static_iv=(False, True)),
             "items of versions 0, 2 and 3 and both forms of the IV in one file"),
        Case("items-row-references", replace(MODERN, row_references=True), "persistent references by row number"),
        Case("items-without-bookkeeping", replace(MODERN, with_bookkeeping=False, row_references=True),
             "items without sha1, musr, UUID and persistref"),
        Case("items-version-0-plain", replace(PLAIN, blob_versions=(0,)), "items of version 0 without a password"),
        Case("items-single-dictionary", MODERN, "a table that is one dictionary instead of an array",
             edits={"keychain": _single_dictionary}),
        Case("items-unknown-table", MODERN, "tables that nobody knows", edits={"keychain": _unknown_tables}),
        Case("items-keybag-unnamed", replace(MODERN, names_keybag=False), "keybag-uuid is absent"),
        Case("items-keybag-number", MODERN, "keybag-uuid is not a string, so it counts as absent",
             edits={"keychain": lambda root: root.update({"keybag-uuid": 7})}),
    ]


def _lists():
    marked = File(
        CHAT, "Documents/uploading.txt", b"changed while uploading", flags=16, is_stored=False, has_record=False)
    uploaded = [replace(file, flags=file.listed_flags | 8 | 32) for file in ordinary_files()]
    return [
        Case("list-null-rows", MODERN, "a row with no domain, no path and no record",
             edits={"rows": _rows_without_domain}),
        Case("list-flags-16", replace(MODERN, files=_files_with(marked)),
             "a row of a file that changed while uploading"),
        Case("list-flags-40", replace(MODERN, files=uploaded), "rows that still carry the upload's marks"),
        Case("list-flags-0", replace(MODERN, files=[replace(file, flags=0) for file in ordinary_files()]),
             "rows whose flags are 0, so that the mode decides"),
        Case("list-unpadded", replace(MODERN, pads_database=False), "Manifest.db encrypted without padding"),
        Case("list-sizes-too-small", replace(MODERN, files=_size_said(1)), "recorded sizes smaller than the content"),
        Case("list-sizes-too-large", replace(MODERN, files=_size_said(1 << 40)),
             "recorded sizes larger than the content"),
        Case("list-sizes-mbdb", replace(OLD, files=_size_said(1 << 40)), "recorded sizes larger than the content"),
        Case("list-sizes-plain", replace(PLAIN, files=_size_said(1)), "recorded sizes smaller than the content"),
        Case("list-no-digests", replace(MODERN, files=[replace(f, has_digest=False) for f in ordinary_files()]),
             "no file has a digest"),
        Case("list-keychain-class-1", replace(MODERN, keychain_class=1), "the keychain file in class 1, as on devices"),
    ]


def _folders():
    xml = {"Manifest.plist": "xml", "Status.plist": "xml", "Info.plist": "xml"}
    binary = {"Info.plist": "binary"}
    extras = {
        ".DS_Store": b"\x00\x00\x00\x01Bud1", "Snapshot/Manifest.db": b"half a database", "desktop.ini": b"[x]\r\n",
        "Manifest.mbdx": b"mbdx\x02\x00",
    }
    return [
        Case("plists-xml", replace(MODERN, formats=xml), "all property lists in XML"),
        Case("plists-xml-mbdb", replace(OLD, formats=xml), "all property lists in XML, iOS 4 to 9"),
        Case("plists-binary", replace(MODERN, formats=binary), "all property lists binary"),
        Case("no-info", replace(MODERN, left_out=("Info.plist",)), "no Info.plist, as idevicebackup2 may leave it"),
        Case("no-status", replace(MODERN, left_out=("Status.plist",)), "no Status.plist"),
        Case("no-info-no-status", replace(PLAIN, left_out=("Info.plist", "Status.plist")), "neither of the two"),
        Case("extra-files", replace(MODERN, added=extras), "files of other programs beside the backup"),
        Case("date-suffix", MODERN, "an archived copy with its date", folder=f"{MODERN.udid}-20261120-180410"),
        Case("udid-folder", OLD, "a folder named after the device, 40 digits", folder=OLD_UDID),
    ] + [
        Case(f"packed-{suffix}", MODERN, f"one {suffix} file with the folder's name in front", suffix=suffix)
        for suffix in packing.SUFFIXES
    ] + [
        Case(f"packed-{suffix}-bare", OLD, f"one {suffix} file without a leading folder", suffix=suffix, prefix="")
        for suffix in packing.SUFFIXES
    ] + [Case("packed-tar-dot", PLAIN, "a tar whose names begin with ./", suffix="tar", prefix="./"),
         Case("packed-wrong-suffix", MODERN, "a zip that calls itself a tar", suffix="zip", folder="family.tar")]


CASES = [*_layouts(), *_keybags(), *_passwords(), *_items(), *_lists(), *_folders()]


def write_parent(folder):
    """A folder with several devices in it, as MobileSync/Backup is; gives the cases by the folder's name."""
    cases = {OLD_UDID: OLD, MODERN.udid: MODERN, f"{MODERN.udid}-20251224-120000": PLAIN}
    for name, recipe in cases.items():
        Case(name, recipe, "", folder=name).write(folder)
    return sorted(cases)


def main():
    parser = argparse.ArgumentParser(description="Write good backups of every layout, with their answers.")
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("--only", metavar="NAME")
    parser.add_argument("--list", action="store_true", help="print names and descriptions")
    arguments = parser.parse_args()
    chosen = [case for case in CASES if arguments.only in (None, case.name)]
    if not chosen:
        parser.error(f"no case is named {arguments.only}")
    if arguments.list:
        print("\n".join(f"{case.name:32}{case.what}" for case in chosen))
        return 0
    if arguments.folder is None:
        parser.error("a folder to write to is missing")
    for case in chosen:
        _, answers = case.write(arguments.folder / case.name)
        text = json.dumps(answers, indent=1, ensure_ascii=False)
        (arguments.folder / f"{case.name}.json").write_text(text + "\n", encoding="utf-8")
    print(f"Wrote {len(chosen)} backups to {arguments.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
