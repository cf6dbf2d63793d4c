#!/usr/bin/env python3
"""Read the keychain in an iOS backup (folder, tar or zip).

    keychain_backup_reader.py BACKUP [--password-file F] [--device-key-file K] --json

Prints every item with its typed attributes and its secret. The code follows docs/Format.md and not Keyhaul's
code, so that the results can be compared.
"""

import argparse
import base64
import hashlib
import json
import os
import pathlib
import plistlib
import sqlite3
import sys
import tempfile
from typing import NamedTuple, Optional

from keychain_backup import FormatError, NotABackup, WrongPassword, crypto, items, mbdb, typed_json
from keychain_backup.keybag import Keybag
from keychain_backup.mbfile import FileRecord, file_id
from keychain_backup.source import open_source

SQLITE_MAGIC = b"SQLite format 3\x00"
KEYCHAIN_DOMAIN, KEYCHAIN_PATH = "KeychainDomain", "keychain-backup.plist"
KEY_FIELD_SIZES = (44, 76)
# The exit codes that Keyhaul has for these errors.
WRONG_PASSWORD_CODE, DAMAGED_CODE, NOT_A_BACKUP_CODE = 12, 13, 14


class ListedFile(NamedTuple):
    """A file that the manifest lists. `record` is None if the manifest has no record of it."""

    identifier: str
    flags: int
    record: Optional[FileRecord]


class Backup:
    """An unlocked backup. `password` is bytes; an unencrypted backup is unlocked with the empty password.

    `files` maps (domain, path) to a ListedFile.
    """

    def __init__(self, path, password=b"", device_key=None):
        self._source = open_source(path)
        self.manifest = self._read_plist("Manifest.plist")
        if self.manifest is None:
            raise NotABackup("there is no Manifest.plist")
        self.status = self._read_plist("Status.plist") or {}
        self.info = self._read_plist("Info.plist") or {}
        self.is_encrypted = bool(self.manifest.get("IsEncrypted", False))
        self._password = password
        self.keybag = Keybag.parse(self.manifest["BackupKeyBag"])
        self.classes = self.keybag.unlock(password if self.is_encrypted else b"", device_key)
        self.warnings = []
        mbdb_content = self._source.read("Manifest.mbdb")
        if self._source.read("Manifest.db") is not None or mbdb_content is None:
            self.layout = "manifest-db"
            self.files = self._read_database_rows(self._decrypt_database())
        else:
            self.layout = "mbdb"
            self.files = self._read_mbdb_records(mbdb_content)

    def _read_plist(self, name):
        content = self._source.read(name)
        try:
            return None if content is None else plistlib.loads(content)
        except Exception as error:
            raise FormatError(f"{name} is not a property list") from error

    def _unwrap(self, key_class, wrapped):
        unlocked = self.classes.get(key_class)
        if unlocked is None or unlocked.state != "available":
            raise FormatError(f"class {key_class} has no usable key")
        return unlocked.unwrap(wrapped)

    def _decrypt_database(self):
        content = self._source.read("Manifest.db")
        if content is None:
            raise NotABackup("there is neither Manifest.db nor Manifest.mbdb")
        key_field = self.manifest.get("ManifestKey")
        self.manifest_key = None
        if self.is_encrypted and key_field is not None:
            if len(key_field) not in KEY_FIELD_SIZES:
                raise FormatError("ManifestKey has an invalid length")
            self.manifest_key = self._unwrap(*split_key_field(key_field))
            content = crypto.cbc_decrypt(self.manifest_key, content)
            if crypto.has_padding(content):
                content = crypto.unpad(content)
            else:
                self.warnings.append("Manifest.db is encrypted without padding")
        if not content.startswith(SQLITE_MAGIC):
            raise FormatError("Manifest.db is not a SQLite database")
        return content

    def _read_database_rows(self, database):
        handle, path = tempfile.mkstemp(suffix=".db")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(database)
            connection = sqlite3.connect(path)
            try:
                rows = connection.execute("SELECT fileID, domain, relativePath, flags, file FROM Files").fetchall()
                salts = connection.execute("SELECT value FROM Properties WHERE key = 'salt'").fetchall()
            finally:
                connection.close()
        finally:
            pathlib.Path(path).unlink()
        files = {}
        for identifier, domain, path, flags, stored in rows:
            record = None if stored is None else FileRecord.parse(self._decrypt_row(stored, salts))
            files[domain, path] = ListedFile(identifier, flags, record)
        return files

    def _decrypt_row(self, stored, salts):
        """Return the plaintext of a record. Only iOS 10.0 encrypted records one by one, in base64."""
        stored = stored.encode("utf-8") if isinstance(stored, str) else stored
        if not self.is_encrypted or stored.startswith(b"bplist00"):
            return stored
        if len(salts) != 1:
            raise FormatError("the rows are encrypted, and there is no salt for them")
        try:
            stored = base64.b64decode(stored, validate=True)
        except ValueError:
            pass
        if not stored or len(stored) % 16:
            raise FormatError("an encrypted row is not a whole number of blocks")
        key = hashlib.sha1(self._password + salts[0][0]).digest()[:16]
        plaintext = crypto.cbc_decrypt(key, stored, iv=bytes(range(16)))
        if not crypto.has_padding(plaintext):
            raise FormatError("an encrypted row cannot be decrypted")
        return crypto.unpad(plaintext)

    def _read_mbdb_records(self, content):
        files = {}
        for record in mbdb.parse(content):
            domain, path = ((text or b"").decode("utf-8") for text in (record.domain, record.path))
            key_class, wrapped_key = 0, None
            if record.key is not None:
                if len(record.key) not in KEY_FIELD_SIZES:
                    raise FormatError("a file's key has an invalid length")
                key_class, wrapped_key = split_key_field(record.key)
            file_record = FileRecord(
                path, record.mode, record.size, record.protection_class, key_class, wrapped_key, record.digest,
                record.modified, record.target)
            # The flags that Manifest.db has for a file and for a folder.
            flags = 1 if file_record.is_regular else 2
            files[domain, path] = ListedFile(file_id(domain, path), flags, file_record)
        return files

    def read_file(self, domain, path):
        """Return the decrypted contents of a file."""
        if (domain, path) not in self.files:
            raise FormatError(f"the manifest does not list {domain} {path}")
        identifier, _, record = self.files[domain, path]
        if identifier != file_id(domain, path):
            raise FormatError(f"the fileID of {domain} {path} is not the digest of its name")
        content = self._source.read(f"{identifier[:2]}/{identifier}" if self.layout == "manifest-db" else identifier)
        if content is None and record is not None and record.size == 0:
            return b""
        if content is None:
            raise FormatError(f"the content of {domain} {path} is missing")
        if not self.is_encrypted:
            return content
        if record is None or record.wrapped_key is None:
            raise FormatError(f"{domain} {path} has no key")
        plaintext = crypto.unpad(crypto.cbc_decrypt(self._unwrap(record.key_class, record.wrapped_key), content))
        if len(plaintext) != record.size:
            self.warnings.append(f"{domain} {path} has {len(plaintext)} bytes, {record.size} were recorded")
        return plaintext

    def keychain_file(self):
        """Return the decrypted keychain file."""
        return self.read_file(KEYCHAIN_DOMAIN, KEYCHAIN_PATH)

    def keychain_items(self):
        """Return all items, numbered as Keyhaul numbers them: genp, inet, cert, keys."""
        root = plistlib.loads(self.keychain_file(), fmt=plistlib.FMT_BINARY)
        keybag_uuid = root.get("keybag-uuid")
        if isinstance(keybag_uuid, str) and keybag_uuid != self.keybag.uuid_text:
            raise FormatError("the keychain file belongs to another keybag")
        tables = {table: root.get(table, []) for table in items.TABLES}
        entries = [
            (table, entry) for table, entries in tables.items()
            for entry in ([entries] if isinstance(entries, dict) else entries)
        ]
        return [items.read_item(index, table, entry, self.classes) for index, (table, entry) in enumerate(entries)]


def split_key_field(field):
    """Return the class and the wrapped key in a key field: the class in 4 bytes, then 40 or 72 bytes."""
    return int.from_bytes(field[:4], "little"), field[4:]


def describe_item(item):
    """Return the JSON object of an item."""
    entry = {
        "index": item.index, "kind": item.kind, "table": item.table, "protection": item.protection,
        "readable": item.is_readable,
    }
    if item.blob:
        entry["blob"] = {
            "version": item.blob.version, "static_iv": item.blob.has_static_iv, "class": item.blob.key_class}
    if item.reference:
        entry["persistent_reference"] = typed_json.encode_bytes(item.reference.serialized())
    if item.is_readable:
        entry["attributes"] = {code: typed_json.to_json(value) for code, value in sorted(item.attributes.items())}
        if item.secret is not None:
            entry["secret"] = typed_json.secret_to_json(item.secret)
    else:
        entry.update(reason=item.reason, detail=item.detail)
    return entry


def describe(backup):
    """Return the contents of a backup as a JSON document (format keychain-backup-contents/1)."""
    lockdown = backup.manifest.get("Lockdown", {})
    item_entries = [describe_item(item) for item in backup.keychain_items()]
    sha256_iterations, sha1_iterations = backup.keybag.iterations
    return {
        "format": "keychain-backup-contents/1",
        "device": {
            "udid": lockdown.get("UniqueDeviceID"),
            "name": lockdown.get("DeviceName"),
            "product_type": lockdown.get("ProductType"),
            "product_version": lockdown.get("ProductVersion"),
        },
        "encrypted": backup.is_encrypted,
        "keybag": {
            "uuid": backup.keybag.uuid_text,
            "version": backup.keybag.number(b"VERS"),
            "rounds": [sha256_iterations, sha1_iterations],
            "classes": [
                {"class": entry.key_class, "wrap": entry.wrap_flags, "state": backup.classes[entry.key_class].state}
                for entry in backup.keybag.classes
            ],
        },
        "files": [
            {"domain": domain, "path": path, "flags": file.flags} for (domain, path), file in backup.files.items()
        ],
        "warnings": backup.warnings,
        "items": item_entries,
    }


def read_password(path):
    """Return the password in a file, without a trailing newline."""
    content = sys.stdin.buffer.read() if path == "-" else pathlib.Path(path).read_bytes()
    for newline in (b"\r\n", b"\n"):
        if content.endswith(newline):
            return content[:-len(newline)]
    return content


def main():
    parser = argparse.ArgumentParser(description="Read the keychain in an iOS backup.")
    parser.add_argument("backup")
    parser.add_argument("--password-file", help="- for standard input")
    parser.add_argument("--device-key-file", help="16 bytes: the device's key 0x835")
    parser.add_argument("--json", action="store_true", help="print all items with their secrets")
    arguments = parser.parse_args()
    password = read_password(arguments.password_file) if arguments.password_file else b""
    device_key = pathlib.Path(arguments.device_key_file).read_bytes() if arguments.device_key_file else None
    if device_key is not None and len(device_key) != 16:
        parser.error("the device key has 16 bytes")
    try:
        contents = describe(Backup(arguments.backup, password, device_key))
    except (FormatError, NotABackup, WrongPassword) as error:
        print(f"error: {error}", file=sys.stderr)
        if isinstance(error, WrongPassword):
            return WRONG_PASSWORD_CODE
        return NOT_A_BACKUP_CODE if isinstance(error, NotABackup) else DAMAGED_CODE
    if arguments.json:
        json.dump(contents, sys.stdout, indent=2, ensure_ascii=False)
        print()
    else:
        readable_count = sum(entry["readable"] for entry in contents["items"])
        print(f"{len(contents['items'])} items, {readable_count} readable")
    return 0


if __name__ == "__main__":
    sys.exit(main())
