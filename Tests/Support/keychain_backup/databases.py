"""A keychain's own database, written and read: items of versions 7 and 8 and of 3, as a Simulator's or a device's.

Written from what is published of the format, for a given seed. Keys of a Simulator have eight equal bytes behind them;
those of a device are wrapped (RFC 3394) under the keys of its classes.
"""

import hashlib
import plistlib
import random
import sqlite3

from . import apple_der, crypto, items as sealed_items
from .dumps import CLASS_NUMBERS, TABLES, _box

_HEAD = {"genp": "cdat mdat desc icmt crtr type scrp labl alis invi nega cusi prot acct svce gena",
         "inet": "cdat mdat desc icmt crtr type scrp labl alis invi nega cusi prot acct sdmn srvr ptcl atyp port path",
         "cert": "cdat mdat ctyp cenc labl alis subj issr slnr skid pkhh",
         "keys": "cdat mdat kcls labl alis perm priv modi klbl atag crtr type bsiz esiz sdat edat sens asen extr next "
                 "encr decr drve sign vrfy snrc vyrc wrap unwp"}
_TAIL = "data agrp pdmn sync tomb sha1 vwht tkid musr UUID sysb pcss pcsk pcsi persistref clip ggrp"
COLUMNS = {table: f"{head} {_TAIL}".split() for table, head in _HEAD.items()}
HASHED = set("desc icmt labl alis prot acct svce gena sdmn srvr atyp path subj issr slnr skid kcls atag pcsk pcsi".split())
# What an absent attribute leaves in a column that may not be NULL: of hashed data the hash of nothing.
_NUMBERS = {"genp": "", "inet": "ptcl port", "cert": "ctyp", "keys": "kcls crtr type bsiz esiz sdat edat"}
_HASHED_KEYS = {"genp": "acct svce", "inet": "acct sdmn srvr atyp path", "cert": "issr slnr", "keys": "kcls atag"}
_NEVER_NULL = "agrp musr vwht tkid ggrp persistref".split()


def _column(table, code, value):
    if value is None:
        if code in _HASHED_KEYS[table].split():
            return hashlib.sha1(bytes(4) if code == "kcls" else b"").digest()
        if code in _NUMBERS[table].split() or code in ("sync", "tomb", "clip"):
            return 0
        return "" if code in _NEVER_NULL or code == "klbl" else None
    if isinstance(value, apple_der.Moment):
        return float(value.seconds)
    if code in HASHED:
        return hashlib.sha1(value.to_bytes(4, "little") if isinstance(value, int) else
                            value.encode() if isinstance(value, str) else value).digest()
    return "" if value == b"" else value


def _field(number, body):
    if isinstance(body, int):
        return bytes([number << 3]) + _varint(body)
    return bytes([number << 3 | 2]) + _varint(len(body)) + body


def _varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


class Writer:
    """Writes databases. `store` is "ff" or "08" of Simulators, or "class" for keys that are wrapped under class keys."""

    def __init__(self, seed, store="ff"):
        self.source, self.store = random.Random(f"database {seed} {store}"), store
        self.class_keys = {number: self.source.randbytes(32) for number in CLASS_NUMBERS.values()}
        self.metadata_keys = {number: self.source.randbytes(32) for number in CLASS_NUMBERS.values()}

    def wrap(self, number, key):
        if self.store == "class":
            return crypto.wrap(self.class_keys[number], key)
        return key + bytes.fromhex(self.store) * 8

    def blob(self, attributes, secret, digest, version):
        source, number = self.source, CLASS_NUMBERS[attributes["pdmn"]]
        check = f"{source.randrange(2**32):08X}-0000-4000-8000-{source.randrange(2**48):012X}"
        metadata_key, secret_key = source.randbytes(32), source.randbytes(32)
        control = apple_der.encode({"prot": attributes["pdmn"]})
        shown = apple_der.encode(attributes | {"sha1": digest, "TamperCheck": check, "SecAccessControl": control})
        hidden = apple_der.encode({"TamperCheck": check} | ({} if secret is None else {"v_Data": secret}))
        fill = 20 - len(hidden) % 20
        wrapped = _field(1, self.wrap(number, secret_key)) + _field(3, 0)
        secret_part = (_field(1, _box(source, secret_key, hidden + bytes([fill]) * fill)) + _field(2, wrapped)
                       + _field(3, check.encode()))
        shown_part = (_field(1, _box(source, metadata_key, shown))
                      + _field(2, _box(source, self.metadata_keys[number], metadata_key)) + _field(3, check.encode()))
        return version.to_bytes(4, "little") + _field(1, secret_part) + _field(2, shown_part) + _field(3, number)

    def write(self, path, made, log=0):
        """Writes items; the last `log` of them stay in the log beside it."""
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA page_size = 4096")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        for table in TABLES:
            names = ", ".join(f'"{name}"' for name in COLUMNS[table])
            connection.execute(f"CREATE TABLE {table}(rowid INTEGER PRIMARY KEY AUTOINCREMENT, {names})")
        connection.execute("CREATE TABLE tversion(version INTEGER, minor INTEGER)")
        connection.execute("INSERT INTO tversion VALUES (12, 11)")
        connection.execute("CREATE TABLE metadatakeys(keyclass TEXT NOT NULL, actualKeyclass TEXT, data BLOB, UNIQUE(keyclass))")
        for number, key in self.metadata_keys.items():
            connection.execute(
                "INSERT INTO metadatakeys VALUES (?, ?, ?)", (str(number), str(number), self.wrap(number, key)))
        for number, (table, attributes, secret) in enumerate(made):
            if number == len(made) - log:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._insert(connection, table, attributes, secret, 7 + number % 2)
        if not log:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        files = [open(path + ending, "rb").read() for ending in ("", "-wal")]
        connection.close()
        # Closing would take the log in.
        for ending, content in zip(("", "-wal"), files):
            with open(path + ending, "wb") as file:
                file.write(content)

    def _insert(self, connection, table, attributes, secret, version):
        attributes = {code: apple_der.Moment.from_datetime(value) if hasattr(value, "year") else value
                      for code, value in attributes.items()}
        attributes = {"sync": 0, "tomb": 0, "musr": b"", "persistref": self.source.randbytes(16)} | attributes
        digest = sealed_items.digest(table, attributes | ({} if secret is None else {"v_Data": secret}))
        blob = self.blob(attributes, secret, digest, version)
        values = {name: _column(table, name, attributes.get(name)) for name in COLUMNS[table]}
        values |= {"data": blob, "sha1": digest}
        names = ", ".join(f'"{name}"' for name in values)
        connection.execute(
            f"INSERT INTO {table}({names}) VALUES ({', '.join('?' * len(values))})", tuple(values.values()))


# Reading


def _unboxed(key, archive):
    root = plistlib.loads(archive)
    objects = root["$objects"]
    box = objects[root["$top"]["root"].data]
    parts = [objects[box[name].data] for name in ("SFInitializationVector", "SFCiphertext", "SFAuthenticationCode")]
    return crypto.AESGCM(key).decrypt(parts[0], parts[1] + parts[2], None)


def _message(data):
    fields, place = {}, 0

    def varint():
        nonlocal place
        value = shift = 0
        while True:
            byte = data[place]
            place += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while place < len(data):
        tag = varint()
        if tag & 7 == 0:
            fields[tag >> 3] = varint()
        else:
            size = varint()
            fields[tag >> 3] = data[place:place + size]
            place += size
    return fields


def _simulator_key(wrapped):
    if wrapped[-8:] not in (b"\xff" * 8, b"\x08" * 8):
        raise ValueError("not a Simulator's wrap")
    return wrapped[:-8]


def read(path):
    """A Simulator's items as (table, attributes, secret), each tag, tamper check, digest and column checked."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    keys = {int(number): _simulator_key(data) for number, data in connection.execute("SELECT keyclass, data FROM metadatakeys")}
    found = []
    for table in TABLES:
        cursor = connection.execute(f"SELECT * FROM {table} ORDER BY rowid")
        names = [column[0] for column in cursor.description]
        for row in cursor:
            values = dict(zip(names, row))
            item = _message(values["data"][4:])
            assert int.from_bytes(values["data"][:4], "little") in (7, 8)
            secret, shown = _message(item[1]), _message(item[2])
            assert secret[3] == shown[3], "tamper checks"
            metadata_key = _unboxed(keys[item[3]], shown[2])
            attributes = apple_der.decode(_unboxed(metadata_key, shown[1]))
            padded = _unboxed(_simulator_key(_message(secret[2])[1]), secret[1])
            assert padded[-padded[-1]:] == bytes([padded[-1]]) * padded[-1] and len(padded) % 20 == 0, "padding"
            hidden = apple_der.decode(padded[:-padded[-1]])
            assert attributes.pop("TamperCheck") == hidden.pop("TamperCheck") == secret[3].decode(), "tamper checks"
            control = apple_der.decode(attributes.pop("SecAccessControl"))
            assert control["prot"] == attributes["pdmn"] and CLASS_NUMBERS[attributes["pdmn"]] == item[3], "classes"
            digest = attributes.pop("sha1")
            assert digest == values["sha1"] == sealed_items.digest(table, attributes | hidden), "digest"
            for name in COLUMNS[table]:
                if name in values and name not in ("data", "sha1", "clip"):
                    wanted = _column(table, name, attributes.get(name))
                    is_default = values[name] in (None, 0) and name not in attributes
                    assert values[name] == wanted or is_default, (name, values[name], wanted)
            found.append((table, attributes, hidden.get("v_Data")))
    connection.close()
    return found
