"""Write and read keychain databases of Simulators and devices: items of versions 7 and 8.

The format follows published sources. A database depends only on its seed. A Simulator's keys are followed by eight
equal bytes. A device's keys are wrapped (RFC 3394) under its class keys.
"""

import hashlib
import plistlib
import random
import sqlite3

from . import apple_der, crypto
from . import items as backup_items
from .dumps import CLASS_NUMBERS, TABLES, encrypted_archive

_FIRST_COLUMNS = {"genp": "cdat mdat desc icmt crtr type scrp labl alis invi nega cusi prot acct svce gena",
         "inet": "cdat mdat desc icmt crtr type scrp labl alis invi nega cusi prot acct sdmn srvr ptcl atyp port path",
         "cert": "cdat mdat ctyp cenc labl alis subj issr slnr skid pkhh",
         "keys": "cdat mdat kcls labl alis perm priv modi klbl atag crtr type bsiz esiz sdat edat sens asen extr next "
                 "encr decr drve sign vrfy snrc vyrc wrap unwp"}
_COMMON_COLUMNS = "data agrp pdmn sync tomb sha1 vwht tkid musr UUID sysb pcss pcsk pcsi persistref clip ggrp"
COLUMNS = {table: f"{names} {_COMMON_COLUMNS}".split() for table, names in _FIRST_COLUMNS.items()}
# Columns that have the SHA-1 digest of the attribute.
HASHED_COLUMNS = set(
    "desc icmt labl alis prot acct svce gena sdmn srvr atyp path subj issr slnr skid kcls atag pcsk pcsi".split()
)
# Columns that cannot be NULL. An absent attribute is 0, an empty value, or the hash of an empty value.
_NUMBER_COLUMNS = {"genp": "", "inet": "ptcl port", "cert": "ctyp", "keys": "kcls crtr type bsiz esiz sdat edat"}
_HASHED_KEY_COLUMNS = {"genp": "acct svce", "inet": "acct sdmn srvr atyp path", "cert": "issr slnr",
                       "keys": "kcls atag"}
_NEVER_NULL = "agrp musr vwht tkid ggrp persistref".split()
VERSIONS = (7, 8)
# The plaintext of a secret is padded to a multiple of this.
PADDING_SIZE = 20


def _column(table, code, value):
    """Return the value that a column has for an attribute."""
    if value is None:
        if code in _HASHED_KEY_COLUMNS[table].split():
            return hashlib.sha1(bytes(4) if code == "kcls" else b"").digest()
        if code in _NUMBER_COLUMNS[table].split() or code in ("sync", "tomb", "clip"):
            return 0
        return "" if code in _NEVER_NULL or code == "klbl" else None
    if isinstance(value, apple_der.Moment):
        return float(value.seconds)
    if code in HASHED_COLUMNS:
        return hashlib.sha1(_hashed_bytes(value)).digest()
    return "" if value == b"" else value


def _hashed_bytes(value):
    """Return the bytes of an attribute that its digest covers."""
    if isinstance(value, int):
        return value.to_bytes(4, "little")
    return value.encode() if isinstance(value, str) else value


def encode_field(number, body):
    """Return an encoded Protocol Buffers field."""
    if isinstance(body, int):
        return bytes([number << 3]) + _encode_varint(body)
    return bytes([number << 3 | 2]) + _encode_varint(len(body)) + body


def _encode_varint(value):
    """Return a number in groups of seven bits. Each byte but the last has its highest bit set."""
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes(encoded + bytes([value]))


class Writer:
    """A writer of keychain databases.

    `store` selects the keys. "ff" and "08" are the keys of Simulators, named for the byte that follows each key.
    "class" is for the keys of a device.
    """

    def __init__(self, seed, store="ff"):
        self.rng, self.store = random.Random(f"database {seed} {store}"), store
        self.class_keys = {number: self.rng.randbytes(32) for number in CLASS_NUMBERS.values()}
        self.metadata_keys = {number: self.rng.randbytes(32) for number in CLASS_NUMBERS.values()}

    def wrap(self, number, key):
        """Return the key of a class as the database stores it."""
        if self.store == "class":
            return crypto.wrap(self.class_keys[number], key)
        return key + bytes.fromhex(self.store) * 8

    def blob(self, attributes, secret, digest, version):
        """Return the encrypted blob of an item.

        It is the version in 4 bytes, and a Protocol Buffers message: 1 is the secret, 2 the metadata, 3 the class.
        In the secret and the metadata, 1 is the ciphertext, 2 the wrapped key, and 3 the tamper check.
        """
        rng, number = self.rng, CLASS_NUMBERS[attributes["pdmn"]]
        tamper_check = f"{rng.randrange(2**32):08X}-0000-4000-8000-{rng.randrange(2**48):012X}"
        metadata_key, secret_key = rng.randbytes(32), rng.randbytes(32)
        control = apple_der.encode({"prot": attributes["pdmn"]})
        metadata = apple_der.encode(
            attributes | {"sha1": digest, "TamperCheck": tamper_check, "SecAccessControl": control}
        )
        data_plaintext = apple_der.encode(
            {"TamperCheck": tamper_check} | ({} if secret is None else {"v_Data": secret})
        )
        padding = PADDING_SIZE - len(data_plaintext) % PADDING_SIZE
        wrapped = encode_field(1, self.wrap(number, secret_key)) + encode_field(3, 0)
        secret_part = (
            encode_field(1, encrypted_archive(rng, secret_key, data_plaintext + bytes([padding]) * padding))
            + encode_field(2, wrapped)
            + encode_field(3, tamper_check.encode())
        )
        metadata_part = (
            encode_field(1, encrypted_archive(rng, metadata_key, metadata))
            + encode_field(2, encrypted_archive(rng, self.metadata_keys[number], metadata_key))
            + encode_field(3, tamper_check.encode())
        )
        return (
            version.to_bytes(4, "little")
            + encode_field(1, secret_part)
            + encode_field(2, metadata_part)
            + encode_field(3, number)
        )

    def write(self, path, items, wal_count=0):
        """Write items to a database. The last `wal_count` of them stay in the write-ahead log."""
        connection = sqlite3.connect(path, isolation_level=None)
        self._create_tables(connection)
        for number, (table, attributes, secret) in enumerate(items):
            if number == len(items) - wal_count:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._insert(connection, table, attributes, secret, VERSIONS[number % 2])
        if not wal_count:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        # Closing the connection checkpoints the log, so the files are read before and written again.
        contents = {suffix: open(path + suffix, "rb").read() for suffix in ("", "-wal")}
        connection.close()
        for suffix, content in contents.items():
            with open(path + suffix, "wb") as file:
                file.write(content)

    def _create_tables(self, connection):
        """Create the tables, and insert the keys of the metadata."""
        connection.execute("PRAGMA page_size = 4096")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        for table in TABLES:
            names = ", ".join(f'"{name}"' for name in COLUMNS[table])
            connection.execute(f"CREATE TABLE {table}(rowid INTEGER PRIMARY KEY AUTOINCREMENT, {names})")
        connection.execute("CREATE TABLE tversion(version INTEGER, minor INTEGER)")
        connection.execute("INSERT INTO tversion VALUES (12, 11)")
        connection.execute(
            "CREATE TABLE metadatakeys(keyclass TEXT NOT NULL, actualKeyclass TEXT, data BLOB, UNIQUE(keyclass))"
        )
        for number, key in self.metadata_keys.items():
            connection.execute(
                "INSERT INTO metadatakeys VALUES (?, ?, ?)", (str(number), str(number), self.wrap(number, key)))

    def _insert(self, connection, table, attributes, secret, version):
        attributes = {code: apple_der.Moment.from_datetime(value) if hasattr(value, "year") else value
                      for code, value in attributes.items()}
        attributes = {"sync": 0, "tomb": 0, "musr": b"", "persistref": self.rng.randbytes(16)} | attributes
        digest = backup_items.digest(table, attributes | ({} if secret is None else {"v_Data": secret}))
        blob = self.blob(attributes, secret, digest, version)
        values = {name: _column(table, name, attributes.get(name)) for name in COLUMNS[table]}
        values |= {"data": blob, "sha1": digest}
        names = ", ".join(f'"{name}"' for name in values)
        connection.execute(
            f"INSERT INTO {table}({names}) VALUES ({', '.join('?' * len(values))})", tuple(values.values()))


def _decrypt_archive(key, archive):
    """Return the plaintext of a keyed archive that `encrypted_archive` made."""
    archive_root = plistlib.loads(archive)
    objects = archive_root["$objects"]
    box = objects[archive_root["$top"]["root"].data]
    iv, ciphertext, tag = (
        objects[box[name].data] for name in ("SFInitializationVector", "SFCiphertext", "SFAuthenticationCode"))
    return crypto.AESGCM(key).decrypt(iv, ciphertext + tag, None)


def message_fields(data):
    """Return the fields of a Protocol Buffers message, as pairs of a number and an integer or bytes."""
    fields, position = [], 0

    def read_varint():
        nonlocal position
        value = shift = 0
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while position < len(data):
        tag = read_varint()
        value = read_varint()
        is_integer = tag & 7 == 0
        if not is_integer:
            byte_count = value
            value = data[position:position + byte_count]
            position += byte_count
        fields.append((tag >> 3, value))
    return fields


def _parse_message(data):
    """Return the fields of a Protocol Buffers message, by number."""
    return dict(message_fields(data))


def _simulator_key(wrapped):
    """Return a Simulator's key without the eight bytes after it."""
    if wrapped[-8:] not in (b"\xff" * 8, b"\x08" * 8):
        raise ValueError("the key is not a Simulator's")
    return wrapped[:-8]


def read(path):
    """Return a Simulator's items as (table, attributes, secret).

    Check the authentication tags, tamper checks, digests and columns. Raise AssertionError if one of them is wrong.
    """
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    keys = {
        int(number): _simulator_key(data)
        for number, data in connection.execute("SELECT keyclass, data FROM metadatakeys")
    }
    items_read = []
    for table in TABLES:
        cursor = connection.execute(f"SELECT * FROM {table} ORDER BY rowid")
        names = [column[0] for column in cursor.description]
        for row in cursor:
            items_read.append(_read_row(table, dict(zip(names, row)), keys))
    connection.close()
    return items_read


def _read_row(table, columns, metadata_keys):
    """Return the item in a row of a Simulator's database, and check all its parts."""
    assert int.from_bytes(columns["data"][:4], "little") in VERSIONS
    blob = _parse_message(columns["data"][4:])
    secret_part, metadata_part, class_number = _parse_message(blob[1]), _parse_message(blob[2]), blob[3]
    metadata_key = _decrypt_archive(metadata_keys[class_number], metadata_part[2])
    attributes = apple_der.decode(_decrypt_archive(metadata_key, metadata_part[1]))
    secret_key = _simulator_key(_parse_message(secret_part[2])[1])
    secret_dictionary = apple_der.decode(_without_padding(_decrypt_archive(secret_key, secret_part[1])))

    assert secret_part[3] == metadata_part[3], "tamper checks"
    tamper_check = secret_part[3].decode()
    assert attributes.pop("TamperCheck") == secret_dictionary.pop("TamperCheck") == tamper_check, "tamper checks"
    protection = attributes["pdmn"]
    control = apple_der.decode(attributes.pop("SecAccessControl"))
    assert control["prot"] == protection and CLASS_NUMBERS[protection] == class_number, "classes"
    digest = attributes.pop("sha1")
    assert digest == columns["sha1"] == backup_items.digest(table, attributes | secret_dictionary), "digest"
    _check_columns(table, columns, attributes)
    return table, attributes, secret_dictionary.get("v_Data")


def _without_padding(padded):
    """Return the data without its padding. Each padding byte is the number of these bytes."""
    count = padded[-1]
    assert padded[-count:] == bytes([count]) * count and len(padded) % PADDING_SIZE == 0, "padding"
    return padded[:-count]


def _check_columns(table, columns, attributes):
    """Compare the unencrypted columns of a row with the decrypted attributes."""
    for name in COLUMNS[table]:
        if name in columns and name not in ("data", "sha1", "clip"):
            expected = _column(table, name, attributes.get(name))
            is_default = columns[name] in (None, 0) and name not in attributes
            assert columns[name] == expected or is_default, (name, columns[name], expected)
