#!/usr/bin/env python3
"""Write an iOS backup with a keychain from a JSON description of items (format device-fixture/1).

    keychain_backup_writer.py DESCRIPTION FOLDER --password-file F [--device-key-file K] [variants]
    keychain_backup_writer.py DESCRIPTION FOLDER --no-password --device-key-file K

The same description, options and seed give the same bytes, except for SQLite's version number in Manifest.db. Items
that never leave a device are omitted: class akpu, tokens, and items with an access control.
"""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import plistlib
import sqlite3
import sys
import tempfile
import uuid
from dataclasses import dataclass

from keychain_backup import FormatError, apple_der, crypto, items, keybag, mbfile, typed_json
from keychain_backup_reader import KEYCHAIN_DOMAIN, KEYCHAIN_PATH, read_password

SCHEMA = """
CREATE TABLE Files (fileID TEXT PRIMARY KEY, domain TEXT, relativePath TEXT, flags INTEGER, file BLOB);
CREATE INDEX FilesDomainIdx ON Files(domain);
CREATE INDEX FilesRelativePathIdx ON Files(relativePath);
CREATE INDEX FilesFlagsIdx ON Files(flags);
CREATE TABLE Properties (key TEXT PRIMARY KEY, value BLOB);
"""
# The class of the keychain file and of Manifest.db.
FILE_CLASS = 3
SECONDS_FROM_1970_TO_2001 = 978_307_200


@dataclass
class Options:
    """The options of a backup. Each field is a way in which real backups differ."""

    password: object = None
    device_key: object = None
    keybag_version: int = 4
    sha256_iterations: int = 10_000_000
    sha1_iterations: int = 10_000
    is_ascending: bool = False
    blob_version: int = 3
    uses_static_iv: bool = False
    has_row_references: bool = False
    is_manifest_padded: bool = True
    has_digests: bool = True


def leaves_device(item):
    """Return whether an item can be part of a backup."""
    return item["protection"] != "akpu" and "token" not in item and "access_control" not in item


def _to_microseconds(value):
    """Return a value that Python can write exactly: dates in property lists (blobs of version 2) have microseconds."""
    if not isinstance(value, apple_der.Moment):
        return value
    return apple_der.Moment.from_datetime(apple_der.EPOCH + datetime.timedelta(seconds=value.seconds))


class Writer:
    """The writer of one backup. Afterwards, `written` has the table and the complete dictionary of each item."""

    def __init__(self, description, options):
        if description.get("format") != "device-fixture/1":
            raise FormatError("the description is not of format device-fixture/1")
        self.description, self.options = description, options
        self.random = crypto.SeededRandom(f"{description['seed']} {description['device']['name']}")
        self.is_encrypted = options.password is not None
        self.device_key = options.device_key or self.random.bytes(16)
        udid = self.random.bytes(12).hex().upper()
        self.udid = f"{udid[:8]}-{udid[8:]}"
        self.created = apple_der.Moment.from_rfc3339(description["created"])
        self.bag, self.class_keys = keybag.make(
            self.random, options.password or b"", self.device_key, options.keybag_version, options.sha256_iterations,
            options.sha1_iterations, options.is_ascending, self.is_encrypted)
        self.written = []

    def item_entry(self, item, number):
        """Return the entry of the keychain file for one item."""
        table = items.TABLE_OF_KIND[item["kind"]]
        attributes = {code: typed_json.from_json(value) for code, value in item["attributes"].items()}
        dictionary = {"cdat": self.created, "mdat": self.created, "sync": 0, "tomb": 0, "musr": b""}
        reference = items.Reference(table, row=number)
        if not self.options.has_row_references:
            reference = items.Reference(table, identifier=self.random.bytes(16))
            dictionary["persistref"] = reference.identifier
            dictionary["UUID"] = str(uuid.UUID(bytes=self.random.bytes(16))).upper()
        dictionary.update(attributes)
        dictionary["pdmn"] = item["protection"]
        if self.options.blob_version == 2:
            dictionary = {code: _to_microseconds(value) for code, value in dictionary.items()}
        if "secret" in item:
            dictionary["v_Data"] = typed_json.from_json(item["secret"])
        dictionary["sha1"] = items.digest(table, dictionary)
        key_class = keybag.KEYCHAIN_CLASSES[item["protection"]]
        blob = items.encrypt_item(
            items.encode_dictionary(dictionary, self.options.blob_version), key_class, self.class_keys[key_class],
            self.random.bytes(32), self.options.blob_version, self.options.uses_static_iv)
        self.written.append((table, dictionary))
        return table, {"v_Data": blob, "v_PersistentRef": reference.serialized()}

    def keychain_file(self):
        """Return the keychain file."""
        root = {"keybag-uuid": self.bag.uuid_text}
        for number, item in enumerate(filter(leaves_device, self.description["items"]), start=1):
            table, entry = self.item_entry(item, number)
            root.setdefault(table, []).append(entry)
        return plistlib.dumps(root, fmt=plistlib.FMT_BINARY)

    def wrapped_key(self, key_class):
        """Return a new key, and the same key wrapped under a class key."""
        key = self.random.bytes(32)
        return key, crypto.wrap(self.class_keys[key_class], key)

    def manifest_database(self, rows):
        """Return Manifest.db with these rows."""
        handle, path = tempfile.mkstemp(suffix=".db")
        os.close(handle)
        try:
            connection = sqlite3.connect(path)
            connection.execute("PRAGMA page_size = 4096")
            connection.execute("PRAGMA auto_vacuum = 2")
            connection.execute("PRAGMA user_version = 2")
            connection.executescript(SCHEMA)
            connection.executemany("INSERT INTO Files VALUES (?, ?, ?, ?, ?)", rows)
            connection.commit()
            connection.close()
            return pathlib.Path(path).read_bytes()
        finally:
            pathlib.Path(path).unlink()

    def write(self, folder):
        """Write the backup to a folder that is empty or does not exist. Return the contents of the keychain file."""
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise FormatError("the target folder is not empty")
        content = self.keychain_file()
        stored, record = self.stored_keychain_file(content)
        manifest = self.manifest()
        database = self.stored_database(record, manifest)
        identifier = mbfile.file_id(KEYCHAIN_DOMAIN, KEYCHAIN_PATH)
        (folder / identifier[:2]).mkdir()
        (folder / identifier[:2] / identifier).write_bytes(stored)
        (folder / "Manifest.db").write_bytes(database)
        (folder / "Manifest.plist").write_bytes(plistlib.dumps(manifest, fmt=plistlib.FMT_BINARY))
        (folder / "Status.plist").write_bytes(plistlib.dumps(self.status(manifest["Date"]), fmt=plistlib.FMT_BINARY))
        (folder / "Info.plist").write_bytes(plistlib.dumps(self.info(manifest["Date"])))
        return content

    def stored_keychain_file(self, content):
        """Return the bytes that are stored for the keychain file, and its record in the manifest."""
        record = mbfile.FileRecord(
            KEYCHAIN_PATH, mbfile.REGULAR | 0o600, size=len(content), protection_class=FILE_CLASS,
            modified=self.unix_time)
        stored = content
        if self.is_encrypted:
            key, record.wrapped_key = self.wrapped_key(FILE_CLASS)
            record.key_class = FILE_CLASS
            stored = crypto.cbc_encrypt(key, crypto.pad(content))
        if self.options.has_digests:
            record.digest = hashlib.sha1(stored).digest()
        return stored, record

    def stored_database(self, record, manifest):
        """Return Manifest.db as it is stored. If it is encrypted, add its key to Manifest.plist."""
        directory = mbfile.FileRecord("", mbfile.DIRECTORY | 0o700, modified=self.unix_time)
        database = self.manifest_database([
            (mbfile.file_id(KEYCHAIN_DOMAIN, ""), KEYCHAIN_DOMAIN, "", 2, directory.encode()),
            (mbfile.file_id(KEYCHAIN_DOMAIN, KEYCHAIN_PATH), KEYCHAIN_DOMAIN, KEYCHAIN_PATH, 1, record.encode())])
        if self.is_encrypted:
            key, wrapped = self.wrapped_key(FILE_CLASS)
            manifest["ManifestKey"] = FILE_CLASS.to_bytes(4, "little") + wrapped
            database = crypto.cbc_encrypt(key, crypto.pad(database) if self.options.is_manifest_padded else database)
        return database

    @property
    def unix_time(self):
        """The date of the backup in seconds since 1970."""
        return int(self.created.seconds) + SECONDS_FROM_1970_TO_2001

    def manifest(self):
        return {
            "Version": "10.0", "Date": apple_der.EPOCH + datetime.timedelta(seconds=int(self.created.seconds)),
            "SystemDomainsVersion": "24.0", "WasPasscodeSet": True, "IsEncrypted": self.is_encrypted,
            "BackupKeyBag": self.bag.serialized(), "Lockdown": self.lockdown(), "Applications": {},
        }

    def lockdown(self):
        device = self.description["device"]
        return {
            "DeviceName": device["name"], "ProductType": device["product_type"],
            "ProductVersion": device["product_version"], "BuildVersion": "22B83", "SerialNumber": "EXAMPLE00001",
            "UniqueDeviceID": self.udid,
        }

    def status(self, date):
        return {
            "Version": "3.3", "UUID": str(uuid.UUID(bytes=self.random.bytes(16))).upper(), "Date": date,
            "BackupState": "new", "SnapshotState": "finished", "IsFullBackup": True,
        }

    def info(self, date):
        device = self.description["device"]
        return {
            "Device Name": device["name"], "Display Name": device["name"], "Product Type": device["product_type"],
            "Product Version": device["product_version"], "Build Version": "22B83", "Last Backup Date": date,
            "Serial Number": "EXAMPLE00001", "Target Identifier": self.udid, "Target Type": "Device",
            "Unique Identifier": self.udid.upper(), "Installed Applications": [], "Applications": {},
            "GUID": self.random.bytes(16).hex().upper(),
        }


def argument_parser():
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description="Write an iOS backup with a keychain from a description of items.")
    parser.add_argument("description", help="JSON, format device-fixture/1")
    parser.add_argument("folder", help="does not exist, or is empty")
    password_options = parser.add_mutually_exclusive_group(required=True)
    password_options.add_argument("--password-file", help="- for standard input")
    password_options.add_argument("--no-password", action="store_true")
    parser.add_argument("--device-key-file", help="16 bytes: key 0x835 of the source device")
    parser.add_argument("--keybag-version", type=int, choices=(3, 4, 5), default=4)
    parser.add_argument("--rounds", type=int, default=10_000_000, help="SHA-256 iterations; 0 for SHA-1 alone")
    parser.add_argument("--ascending", action="store_true", help="class keys 1 to 11 instead of 11 to 1")
    parser.add_argument("--blob-version", type=int, choices=(2, 3), default=3)
    parser.add_argument(
        "--static-iv", action="store_true", help="encrypt items with the static IV, as device databases do"
    )
    parser.add_argument("--row-references", action="store_true", help="persistent references by row number")
    parser.add_argument("--unpadded-manifest", action="store_true")
    parser.add_argument("--no-digests", action="store_true")
    return parser


def main():
    parser = argument_parser()
    arguments = parser.parse_args()
    device_key = pathlib.Path(arguments.device_key_file).read_bytes() if arguments.device_key_file else None
    if device_key is not None and len(device_key) != 16:
        parser.error("the device key has 16 bytes")
    options = Options(
        password=read_password(arguments.password_file) if arguments.password_file else None, device_key=device_key,
        keybag_version=arguments.keybag_version, sha256_iterations=arguments.rounds, is_ascending=arguments.ascending,
        blob_version=arguments.blob_version, uses_static_iv=arguments.static_iv,
        has_row_references=arguments.row_references, is_manifest_padded=not arguments.unpadded_manifest,
        has_digests=not arguments.no_digests)
    try:
        description = json.loads(pathlib.Path(arguments.description).read_text(encoding="utf-8"))
        writer = Writer(description, options)
        writer.write(arguments.folder)
    except FormatError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"Wrote {len(writer.written)} of {len(description['items'])} items to {arguments.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
