"""Makes a backup from a recipe, stage by stage, so that a fault can be put in at exactly one of them.

An edit is a function of a stage's value; what it returns takes the value's place, None means that it changed it.
"""

import datetime
import hashlib
import os
import pathlib
import plistlib
import sqlite3
import struct
import tempfile
import uuid

from . import apple_der, crypto, items, keybag, mbdb, mbfile, typed_json
from .recipe import DATABASE, KEYCHAIN, File

SCHEMA = """
CREATE TABLE Files (fileID TEXT PRIMARY KEY, domain TEXT, relativePath TEXT, flags INTEGER, file BLOB);
CREATE INDEX FilesDomainIdx ON Files(domain);
CREATE INDEX FilesRelativePathIdx ON Files(relativePath);
CREATE INDEX FilesFlagsIdx ON Files(flags);
CREATE TABLE Properties (key TEXT PRIMARY KEY, value BLOB);
"""
DATE = datetime.datetime(2026, 11, 20, 18, 4, 10)
UNIX_TIME = int((DATE - datetime.datetime(1970, 1, 1)).total_seconds())


def number(value):
    return value.to_bytes(4, "big")


class Forge:
    """One backup. After `build`, `parts` are its files by name and `written` the items as (table, dictionary, blob)."""

    def __init__(self, recipe, described_items, edits=None, seed="forge"):
        self.recipe, self.described, self.edits = recipe, described_items, dict(edits or {})
        self.random = crypto.SeededRandom(seed)
        self.device_key = self.random.bytes(16)
        self.keys, self.publics, self.written, self.parts = {}, {}, [], {}

    def stage(self, name, value):
        edit = self.edits.pop(name, None)
        if edit is None:
            return value
        changed = edit(value)
        return value if changed is None else changed

    def build(self):
        recipe = self.recipe
        bag = self._keybag()
        files = list(recipe.files)
        if recipe.has_keychain:
            content = self._keychain(bag)
            files += [File(KEYCHAIN[0], "", protection_class=0),
                      File(*KEYCHAIN, content, protection_class=recipe.keychain_class)]
        files = self.stage("files", files)
        listed, stored = self._payloads(files)
        manifest = {
            "Version": "10.0" if recipe.layout == DATABASE else "9.1", "Date": DATE, "SystemDomainsVersion": "24.0",
            "WasPasscodeSet": True, "IsEncrypted": recipe.is_encrypted, "BackupKeyBag": bag, "Applications": {},
            "Lockdown": {
                "DeviceName": "old-phone", "ProductType": "iPhone15,2", "ProductVersion": recipe.product_version,
                "BuildVersion": "22B83", "SerialNumber": "EXAMPLE00001", "UniqueDeviceID": recipe.udid,
            },
        }
        if not recipe.says_encrypted:
            del manifest["IsEncrypted"]
        if recipe.layout == DATABASE:
            self.parts["Manifest.db"] = self._database(listed, manifest)
        else:
            self.parts["Manifest.mbdb"] = self._records(listed)
        self._plists(manifest)
        self.parts.update(recipe.added)
        for identifier, content in stored.items():
            self.parts[f"{identifier[:2]}/{identifier}" if recipe.layout == DATABASE else identifier] = content
        for name in recipe.left_out:
            del self.parts[name]
        self.parts = self.stage("parts", self.parts)
        if self.edits:
            raise ValueError(f"no stage is named {sorted(self.edits)}")
        return self

    def write(self, folder):
        folder = pathlib.Path(folder)
        for name, content in self.parts.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def entries(self, prefix=None):
        """The parts as a container holds them, the small descriptions first."""
        prefix = f"{self.recipe.udid}/" if prefix is None else prefix
        first = ("Manifest.plist", "Status.plist", "Info.plist", "Manifest.db", "Manifest.mbdb")
        names = [name for name in first if name in self.parts] + sorted(set(self.parts) - set(first))
        return [(prefix + name, self.parts[name]) for name in names]

    # Keybag.

    def _keybag(self):
        recipe = self.recipe
        salt, double_salt = self.random.bytes(20), self.random.bytes(20)
        header = [
            [b"VERS", number(recipe.keybag_version)], [b"TYPE", number(1)], [b"UUID", self.random.bytes(16)],
            [b"HMCK", bytes(40)], [b"WRAP", number(0)], [b"SALT", salt], [b"ITER", number(recipe.rounds)],
        ]
        two_rounds = recipe.is_encrypted and recipe.double_rounds > 0
        if two_rounds:
            header += [[b"DPWT", number(1)], [b"DPIC", number(recipe.double_rounds)], [b"DPSL", double_salt]]
        header += [list(record) for record in recipe.header_extra]
        self.bag_uuid = str(uuid.UUID(bytes=dict(map(tuple, header))[b"UUID"]))
        key = crypto.passcode_key(
            recipe.password or b"", salt, recipe.rounds, double_salt if two_rounds else None, recipe.double_rounds)
        groups = [self._class_group(key_class, key) for key_class in sorted(recipe.class_order, reverse=True)]
        groups.sort(key=lambda group: recipe.class_order.index(int.from_bytes(group[1][1], "big")))
        header, groups = self.stage("header", header), self.stage("classes", groups)
        records = [record for group in [header, *groups] for record in group]
        return self.stage("keybag", b"".join(struct.pack(">4sI", tag, len(value)) + value for tag, value in records))

    def _class_group(self, key_class, passcode_key):
        recipe = self.recipe
        self.keys[key_class] = self.random.bytes(32)
        is_bound = key_class in recipe.device_classes
        inner = crypto.cbc_encrypt(self.device_key, self.keys[key_class]) if is_bound else self.keys[key_class]
        is_curve = key_class in recipe.curve_classes
        group = [
            [b"UUID", self.random.bytes(16)], [b"CLAS", number(key_class)], [b"WRAP", number(3 if is_bound else 2)]]
        if recipe.has_key_types:
            group.append([b"KTYP", number(1 if is_curve else 0)])
        group.append([b"WPKY", crypto.wrap(passcode_key, inner)])
        if is_curve:
            self.publics[key_class] = crypto.curve_public(self.keys[key_class])
            group.append([b"PBKY", self.publics[key_class]])
        return group + [list(record) for record in recipe.class_extra]

    def wrapped(self, key_class, key):
        """A key under a class key: 40 bytes, or 72 where the class has a key pair."""
        if key_class in self.publics:
            return crypto.curve_wrap(self.publics[key_class], key, self.random.bytes(32))
        return crypto.wrap(self.keys[key_class], key)

    # Keychain.

    def sealed(self, plaintext, key_class, version=3, static_iv=False):
        key = self.random.bytes(32)
        wrapped = self.wrapped(key_class, key)
        if version == 0:
            return struct.pack("<II", 0, key_class) + wrapped + crypto.cbc_encrypt(key, crypto.pad(plaintext))
        blob = items.ItemBlob(version, static_iv, key_class, wrapped, b"", b"")
        if static_iv:
            blob.ciphertext, blob.tag = crypto.gcm_seal(key, plaintext, items.STATIC_IV, blob.header)
        else:
            blob.ciphertext, blob.tag = crypto.gcm_seal(key, plaintext)
        return blob.serialized()

    def _dictionary(self, described, row, version):
        table = items.TABLE_OF_KIND[described["kind"]]
        dictionary = {"sync": 0, "tomb": 0, "pdmn": described["protection"]}
        reference = items.Reference(table, row=row)
        if self.recipe.with_bookkeeping:
            dictionary["musr"] = b""
        if not self.recipe.row_references:
            reference = items.Reference(table, identifier=self.random.bytes(16))
            dictionary.update(persistref=reference.identifier,
                              UUID=str(uuid.UUID(bytes=self.random.bytes(16))).upper())
        dictionary.update((code, typed_json.parse(value)) for code, value in described["attributes"].items())
        if version == 2:
            # The dates of a property list written by Python are no finer than a microsecond.
            dictionary = {code: _rounded(value) for code, value in dictionary.items()}
        if "secret" in described:
            dictionary["v_Data"] = typed_json.parse(described["secret"])
        if self.recipe.with_bookkeeping:
            dictionary["sha1"] = items.digest(table, dictionary)
        return table, dictionary, reference.serialized()

    def _keychain(self, bag):
        recipe = self.recipe
        sealable = []
        for row, described in enumerate(self.described, start=1):
            version = recipe.blob_versions[(row - 1) % len(recipe.blob_versions)]
            static_iv = version != 0 and recipe.static_iv[(row - 1) % len(recipe.static_iv)]
            table, dictionary, reference = self._dictionary(described, row, version)
            if version == 0:
                dictionary = {"v_Data": dictionary.get("v_Data", b"")}
            plaintext = dictionary["v_Data"] if version == 0 else items.encode_dictionary(dictionary, version)
            key_class = keybag.KEYCHAIN_CLASSES[described["protection"]]
            self.written.append((table, described["protection"], dictionary))
            sealable.append([plaintext, key_class, version, static_iv, table, reference])
        sealable = self.stage("items", sealable)
        root = {"keybag-uuid": self.bag_uuid} if recipe.names_keybag else {}
        for *sealing, table, reference in sealable:
            root.setdefault(table, []).append({"v_Data": self.sealed(*sealing), "v_PersistentRef": reference})
        root = self.stage("keychain", root)
        content = root if isinstance(root, bytes) else plistlib.dumps(root, fmt=plistlib.FMT_BINARY)
        return self.stage("keychain-bytes", content)

    # Files.

    def _payloads(self, files):
        """The list's entries (file, key field, digest), and what is stored by identifier."""
        listed, stored = [], {}
        for file in files:
            field = digest = None
            if file.is_regular:
                content = file.content
                if self.recipe.is_encrypted:
                    key = self.random.bytes(32)
                    field = struct.pack("<I", file.protection_class) + self.wrapped(file.protection_class, key)
                    content = crypto.cbc_encrypt(key, crypto.pad(content))
                digest = hashlib.sha1(content).digest() if file.has_digest else None
                if file.is_stored:
                    stored[file.identifier] = content
            listed.append((file, field, digest))
        return self.stage("listed", listed), self.stage("stored", stored)

    def _archived(self, file, field, digest):
        if not file.has_record:
            return None
        size = len(file.content or b"") if file.size is None else file.size
        record = mbfile.FileRecord(
            file.path or "", file.mode, size, file.protection_class, digest=digest, modified=UNIX_TIME,
            target=file.target)
        if field is not None:
            record.key_class, record.wrapped_key = int.from_bytes(field[:4], "little"), field[4:]
        return record.archived()

    def _database(self, listed, manifest):
        rows = self.stage("rows", [
            [file.identifier, file.domain, file.path, file.listed_flags, self._archived(file, field, digest)]
            for file, field, digest in listed
        ])
        content = self.stage("database", database_of(rows, self.edits.pop("sql", None)))
        if self.recipe.is_encrypted and self.recipe.encrypts_database:
            key, key_class = self.random.bytes(32), self.recipe.manifest_class
            manifest["ManifestKey"] = struct.pack("<I", key_class) + self.wrapped(key_class, key)
            content = crypto.cbc_encrypt(key, crypto.pad(content) if self.recipe.pads_database else content)
        return self.stage("database-stored", content)

    def _records(self, listed):
        records = self.stage("records", [
            mbdb.Record(
                _bytes(file.domain), _bytes(file.path), _bytes(file.target), digest, field, file.mode,
                modified=UNIX_TIME, changed=UNIX_TIME, born=UNIX_TIME,
                size=len(file.content or b"") if file.size is None else file.size,
                protection_class=file.protection_class)
            for file, field, digest in listed
        ])
        return self.stage("mbdb", mbdb.encode(records))

    def _plists(self, manifest):
        recipe = self.recipe
        contents = {
            "Manifest.plist": self.stage("manifest", manifest),
            "Status.plist": self.stage("status", {
                "Version": "3.3" if recipe.layout == DATABASE else "2.4", "Date": DATE, "IsFullBackup": True,
                "UUID": str(uuid.UUID(bytes=self.random.bytes(16))).upper(), "BackupState": "new",
                "SnapshotState": "finished",
            }),
            "Info.plist": {
                "Device Name": "old-phone", "Display Name": "old-phone", "Product Type": "iPhone15,2",
                "Product Version": recipe.product_version, "Build Version": "22B83", "Last Backup Date": DATE,
                "Serial Number": "EXAMPLE00001", "Target Identifier": recipe.udid, "Target Type": "Device",
                "Unique Identifier": recipe.udid.upper(), "Installed Applications": ["org.example.chat"],
                "Applications": {}, "GUID": self.random.bytes(16).hex().upper(),
            },
        }
        for name, content in contents.items():
            is_xml = recipe.formats.get(name) == "xml"
            self.parts[name] = plistlib.dumps(content, fmt=plistlib.FMT_XML if is_xml else plistlib.FMT_BINARY)


def database_of(rows, edit=None, schema=SCHEMA):
    """Manifest.db with these rows; `edit` gets the connection before it closes."""
    handle, path = tempfile.mkstemp(suffix=".db")
    os.close(handle)
    try:
        connection = sqlite3.connect(path)
        for setting in ("page_size = 4096", "auto_vacuum = 2", "user_version = 2"):
            connection.execute(f"PRAGMA {setting}")
        connection.executescript(schema)
        connection.executemany("INSERT INTO Files VALUES (?, ?, ?, ?, ?)", rows)
        connection.commit()
        if edit is not None:
            edit(connection)
            connection.commit()
        connection.close()
        return pathlib.Path(path).read_bytes()
    finally:
        pathlib.Path(path).unlink()


def _bytes(text):
    return None if text is None else text.encode("utf-8")


def _rounded(value):
    if not isinstance(value, apple_der.Moment):
        return value
    return apple_der.Moment.from_datetime(apple_der.EPOCH + datetime.timedelta(seconds=value.seconds))
