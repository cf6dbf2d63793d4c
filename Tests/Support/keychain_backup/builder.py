"""Build a backup from options in stages, so that a test can change the result of any one stage.

An edit is a function of a stage's result. It returns the replacement, or None if it changed the result in place.
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
from .keybag import encoded_number
from .options import DATABASE, KEYCHAIN, File

SCHEMA = """
CREATE TABLE Files (fileID TEXT PRIMARY KEY, domain TEXT, relativePath TEXT, flags INTEGER, file BLOB);
CREATE INDEX FilesDomainIdx ON Files(domain);
CREATE INDEX FilesRelativePathIdx ON Files(relativePath);
CREATE INDEX FilesFlagsIdx ON Files(flags);
CREATE TABLE Properties (key TEXT PRIMARY KEY, value BLOB);
"""
DATE = datetime.datetime(2026, 11, 20, 18, 4, 10)
UNIX_TIME = int((DATE - datetime.datetime(1970, 1, 1)).total_seconds())


class BackupBuilder:
    """The builder of one backup.

    After `build`, `parts` maps the names of its files to their contents, and `written` lists the items as (table,
    protection, dictionary).
    """

    def __init__(self, options, item_descriptions, edits=None, seed="forge"):
        self.options, self.item_descriptions, self.edits = options, item_descriptions, dict(edits or {})
        self.random = crypto.SeededRandom(seed)
        self.device_key = self.random.bytes(16)
        self.keys, self.public_keys, self.written, self.parts = {}, {}, [], {}

    def stage(self, name, value):
        """Apply the edit of a stage to its result."""
        edit = self.edits.pop(name, None)
        if edit is None:
            return value
        changed = edit(value)
        return value if changed is None else changed

    def build(self):
        """Build all files of the backup."""
        options = self.options
        bag = self._keybag()
        files = list(options.files)
        if options.has_keychain:
            content = self._keychain(bag)
            files += [File(KEYCHAIN[0], "", protection_class=0),
                      File(*KEYCHAIN, content, protection_class=options.keychain_class)]
        files = self.stage("files", files)
        listed, stored = self._payloads(files)
        manifest = self._manifest(bag)
        if options.layout == DATABASE:
            self.parts["Manifest.db"] = self._database(listed, manifest)
        else:
            self.parts["Manifest.mbdb"] = self._records(listed)
        self._plists(manifest)
        self.parts.update(options.extra_files)
        for identifier, content in stored.items():
            self.parts[f"{identifier[:2]}/{identifier}" if options.layout == DATABASE else identifier] = content
        for name in options.omitted_files:
            del self.parts[name]
        self.parts = self.stage("parts", self.parts)
        if self.edits:
            raise ValueError(f"there is no stage named {sorted(self.edits)}")
        return self

    def write(self, folder):
        """Write the files of the backup to a folder."""
        folder = pathlib.Path(folder)
        for name, content in self.parts.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def entries(self, prefix=None):
        """Return the files in the order of an archive: first the small metadata files."""
        prefix = f"{self.options.udid}/" if prefix is None else prefix
        first = ("Manifest.plist", "Status.plist", "Info.plist", "Manifest.db", "Manifest.mbdb")
        names = [name for name in first if name in self.parts] + sorted(set(self.parts) - set(first))
        return [(prefix + name, self.parts[name]) for name in names]

    def _manifest(self, bag):
        """Return the values of Manifest.plist. The key of Manifest.db is added later."""
        options = self.options
        manifest = {
            "Version": "10.0" if options.layout == DATABASE else "9.1", "Date": DATE, "SystemDomainsVersion": "24.0",
            "WasPasscodeSet": True, "IsEncrypted": options.is_encrypted, "BackupKeyBag": bag, "Applications": {},
            "Lockdown": {
                "DeviceName": "old-phone", "ProductType": "iPhone15,2", "ProductVersion": options.product_version,
                "BuildVersion": "22B83", "SerialNumber": "EXAMPLE00001", "UniqueDeviceID": options.udid,
            },
        }
        if not options.has_is_encrypted:
            del manifest["IsEncrypted"]
        return manifest

    # Keybag

    def _keybag(self):
        """Create the class keys. Return the keybag."""
        options = self.options
        salt, sha256_salt = self.random.bytes(20), self.random.bytes(20)
        header = [
            [b"VERS", encoded_number(options.keybag_version)], [b"TYPE", encoded_number(1)],
            [b"UUID", self.random.bytes(16)], [b"HMCK", bytes(40)], [b"WRAP", encoded_number(0)], [b"SALT", salt],
            [b"ITER", encoded_number(options.sha1_iterations)]]
        has_sha256_step = options.is_encrypted and options.sha256_iterations > 0
        if has_sha256_step:
            header += [
                [b"DPWT", encoded_number(1)], [b"DPIC", encoded_number(options.sha256_iterations)],
                [b"DPSL", sha256_salt]]
        header += [list(record) for record in options.header_extra]
        self.bag_uuid = str(uuid.UUID(bytes=dict(map(tuple, header))[b"UUID"]))
        key = crypto.passcode_key(
            options.password or b"", salt, options.sha1_iterations, sha256_salt if has_sha256_step else None,
            options.sha256_iterations)
        # The keys are made from class 11 to class 1 in every keybag, so that their order does not change their bytes.
        groups_by_class = {
            key_class: self._class_group(key_class, key) for key_class in sorted(options.class_order, reverse=True)
        }
        groups = [groups_by_class[key_class] for key_class in options.class_order]
        header, groups = self.stage("header", header), self.stage("classes", groups)
        records = [record for group in [header, *groups] for record in group]
        return self.stage("keybag", b"".join(struct.pack(">4sI", tag, len(value)) + value for tag, value in records))

    def _class_group(self, key_class, passcode_key):
        """Create the key of a class. Return its records in the keybag."""
        options = self.options
        self.keys[key_class] = self.random.bytes(32)
        key, flags = self.keys[key_class], keybag.WRAPPED_WITH_PASSWORD
        if key_class in options.device_classes:
            key = crypto.cbc_encrypt(self.device_key, key)
            flags |= keybag.WRAPPED_WITH_DEVICE
        is_curve = key_class in options.curve_classes
        group = [
            [b"UUID", self.random.bytes(16)], [b"CLAS", encoded_number(key_class)], [b"WRAP", encoded_number(flags)]]
        if options.has_key_types:
            group.append([b"KTYP", encoded_number(1 if is_curve else 0)])
        group.append([b"WPKY", crypto.wrap(passcode_key, key)])
        if is_curve:
            self.public_keys[key_class] = crypto.curve_public(self.keys[key_class])
            group.append([b"PBKY", self.public_keys[key_class]])
        return group + [list(record) for record in options.class_extra]

    def wrap_key(self, key_class, key):
        """Wrap a key under a class key: 40 bytes, or 72 if the class has a key pair."""
        if key_class in self.public_keys:
            return crypto.curve_wrap(self.public_keys[key_class], key, self.random.bytes(32))
        return crypto.wrap(self.keys[key_class], key)

    # Keychain

    def encrypted_blob(self, plaintext, key_class, version=3, uses_static_iv=False):
        """Return the encrypted blob of an item."""
        key = self.random.bytes(32)
        wrapped_key = self.wrap_key(key_class, key)
        if version == 0:
            return struct.pack("<II", 0, key_class) + wrapped_key + crypto.cbc_encrypt(key, crypto.pad(plaintext))
        blob = items.ItemBlob(version, uses_static_iv, key_class, wrapped_key, b"", b"")
        if uses_static_iv:
            blob.ciphertext, blob.tag = crypto.gcm_seal(key, plaintext, items.STATIC_IV, blob.header)
        else:
            blob.ciphertext, blob.tag = crypto.gcm_seal(key, plaintext)
        return blob.serialized()

    def _dictionary(self, description, row, version):
        """Return the table, the dictionary and the persistent reference of a described item."""
        table = items.TABLE_OF_KIND[description["kind"]]
        dictionary = {"sync": 0, "tomb": 0, "pdmn": description["protection"]}
        reference = items.Reference(table, row=row)
        if self.options.has_bookkeeping:
            dictionary["musr"] = b""
        if not self.options.has_row_references:
            reference = items.Reference(table, identifier=self.random.bytes(16))
            dictionary.update(persistref=reference.identifier,
                              UUID=str(uuid.UUID(bytes=self.random.bytes(16))).upper())
        dictionary.update((code, typed_json.from_json(value)) for code, value in description["attributes"].items())
        if version == 2:
            # Python writes dates in property lists with microsecond precision.
            dictionary = {code: _with_microseconds(value) for code, value in dictionary.items()}
        if "secret" in description:
            dictionary["v_Data"] = typed_json.from_json(description["secret"])
        if self.options.has_bookkeeping:
            dictionary["sha1"] = items.digest(table, dictionary)
        return table, dictionary, reference.serialized()

    def _keychain(self, bag):
        """Return the keychain file with the encrypted items."""
        plaintexts = self.stage("items", [
            self._plaintext(row, description) for row, description in enumerate(self.item_descriptions, start=1)
        ])
        root = {"keybag-uuid": self.bag_uuid} if self.options.has_keybag_uuid else {}
        for *blob_arguments, table, reference in plaintexts:
            entry = {"v_Data": self.encrypted_blob(*blob_arguments), "v_PersistentRef": reference}
            root.setdefault(table, []).append(entry)
        root = self.stage("keychain", root)
        content = root if isinstance(root, bytes) else plistlib.dumps(root, fmt=plistlib.FMT_BINARY)
        return self.stage("keychain-bytes", content)

    def _plaintext(self, row, description):
        """Return [plaintext, class, version, uses static IV, table, reference] of an item.

        The first four are the arguments of `encrypted_blob`. The options' versions and IVs are used in turn.
        """
        options = self.options
        version = options.blob_versions[(row - 1) % len(options.blob_versions)]
        uses_static_iv = version != 0 and options.uses_static_iv[(row - 1) % len(options.uses_static_iv)]
        table, dictionary, reference = self._dictionary(description, row, version)
        if version == 0:
            # Version 0 contains only the secret.
            dictionary = {"v_Data": dictionary.get("v_Data", b"")}
        plaintext = dictionary["v_Data"] if version == 0 else items.encode_dictionary(dictionary, version)
        key_class = keybag.KEYCHAIN_CLASSES[description["protection"]]
        self.written.append((table, description["protection"], dictionary))
        return [plaintext, key_class, version, uses_static_iv, table, reference]

    # Files

    def _payloads(self, files):
        """Return the manifest's entries (file, key field, digest), and the stored contents by identifier."""
        listed, stored = [], {}
        for file in files:
            key_field = digest = None
            if file.is_regular:
                content = file.content
                if self.options.is_encrypted:
                    key = self.random.bytes(32)
                    key_field = struct.pack("<I", file.protection_class) + self.wrap_key(file.protection_class, key)
                    content = crypto.cbc_encrypt(key, crypto.pad(content))
                digest = hashlib.sha1(content).digest() if file.has_digest else None
                if file.is_stored:
                    stored[file.identifier] = content
            listed.append((file, key_field, digest))
        return self.stage("listed", listed), self.stage("stored", stored)

    def _encoded_record(self, file, key_field, digest):
        """Return the record of a file in Manifest.db, or None if it has none."""
        if not file.has_record:
            return None
        size = len(file.content or b"") if file.size is None else file.size
        record = mbfile.FileRecord(
            file.path or "", file.mode, size, file.protection_class, digest=digest, modified=UNIX_TIME,
            target=file.target)
        if key_field is not None:
            record.key_class, record.wrapped_key = int.from_bytes(key_field[:4], "little"), key_field[4:]
        return record.encode()

    def _database(self, listed, manifest):
        """Return Manifest.db as it is stored. If it is encrypted, add its key to Manifest.plist."""
        rows = self.stage("rows", [
            [file.identifier, file.domain, file.path, file.listed_flags, self._encoded_record(file, key_field, digest)]
            for file, key_field, digest in listed
        ])
        content = self.stage("database", manifest_database(rows, self.edits.pop("sql", None)))
        if self.options.is_encrypted and self.options.encrypts_database:
            key, key_class = self.random.bytes(32), self.options.manifest_class
            manifest["ManifestKey"] = struct.pack("<I", key_class) + self.wrap_key(key_class, key)
            content = crypto.cbc_encrypt(key, crypto.pad(content) if self.options.pads_database else content)
        return self.stage("database-stored", content)

    def _records(self, listed):
        """Return Manifest.mbdb."""
        records = self.stage("records", [
            mbdb.Record(
                _utf_8(file.domain), _utf_8(file.path), _utf_8(file.target), digest, key_field, file.mode,
                modified=UNIX_TIME, changed=UNIX_TIME, created=UNIX_TIME,
                size=len(file.content or b"") if file.size is None else file.size,
                protection_class=file.protection_class)
            for file, key_field, digest in listed
        ])
        return self.stage("mbdb", mbdb.encode(records))

    def _plists(self, manifest):
        """Add the property lists to the files of the backup."""
        options = self.options
        contents = {
            "Manifest.plist": self.stage("manifest", manifest),
            "Status.plist": self.stage("status", {
                "Version": "3.3" if options.layout == DATABASE else "2.4", "Date": DATE, "IsFullBackup": True,
                "UUID": str(uuid.UUID(bytes=self.random.bytes(16))).upper(), "BackupState": "new",
                "SnapshotState": "finished",
            }),
            "Info.plist": {
                "Device Name": "old-phone", "Display Name": "old-phone", "Product Type": "iPhone15,2",
                "Product Version": options.product_version, "Build Version": "22B83", "Last Backup Date": DATE,
                "Serial Number": "EXAMPLE00001", "Target Identifier": options.udid, "Target Type": "Device",
                "Unique Identifier": options.udid.upper(), "Installed Applications": ["org.example.chat"],
                "Applications": {}, "GUID": self.random.bytes(16).hex().upper(),
            },
        }
        for name, content in contents.items():
            is_xml = options.plist_formats.get(name) == "xml"
            self.parts[name] = plistlib.dumps(content, fmt=plistlib.FMT_XML if is_xml else plistlib.FMT_BINARY)


def manifest_database(rows, edit=None, schema=SCHEMA):
    """Return a Manifest.db with these rows. `edit` is called with the connection before it is closed."""
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


def _utf_8(text):
    return None if text is None else text.encode("utf-8")


def _with_microseconds(value):
    if not isinstance(value, apple_der.Moment):
        return value
    return apple_der.Moment.from_datetime(apple_der.EPOCH + datetime.timedelta(seconds=value.seconds))
