"""Read and write keychain items: their encrypted blobs, the dictionary inside, and its digest.

Source: Apple's SecItemDb.c, SecDbKeychainItem.m and SecItemSchema.c.
"""

import datetime
import hashlib
import plistlib
import struct
import uuid
from dataclasses import dataclass

from . import FormatError, apple_der, crypto, keybag

TABLES = ("genp", "inet", "cert", "keys")
KIND_OF_TABLE = dict(zip(TABLES, ("generic-password", "internet-password", "certificate", "key")))
TABLE_OF_KIND = {kind: table for table, kind in KIND_OF_TABLE.items()}

# The bits of a blob's class number that name the class.
CLASS_MASK = 0xF
STATIC_IV_FLAG = 0x80000000
STATIC_IV = hashlib.sha256(b"keychainblobstaticiv\n").digest()[:12]

_COMMON = "cdat mdat labl alis agrp pdmn sync tomb vwht tkid sysb pcss pcsk pcsi ggrp v_Data".split()
_PASSWORD = "desc icmt crtr type scrp invi nega cusi prot acct".split()
_DIGESTED = {
    "genp": _COMMON + _PASSWORD + "svce gena".split(),
    "inet": _COMMON + _PASSWORD + "sdmn srvr ptcl atyp port path".split(),
    "cert": _COMMON + "ctyp cenc subj issr slnr skid pkhh".split(),
    "keys": _COMMON + (
        "kcls perm priv modi klbl atag crtr type bsiz esiz sdat edat sens asen extr next encr decr drve sign vrfy "
        "snrc vyrc wrap unwp").split(),
}
_ZERO, _EMPTY, _START = 0, b"", apple_der.Moment(0)
_DEFAULTS = {
    "genp": {"acct": _EMPTY, "svce": _EMPTY},
    "inet": {"acct": _EMPTY, "sdmn": _EMPTY, "srvr": _EMPTY, "atyp": _EMPTY, "path": _EMPTY, "ptcl": _ZERO,
             "port": _ZERO},
    "cert": {"ctyp": _ZERO, "issr": _EMPTY, "slnr": _EMPTY},
    "keys": {"kcls": _ZERO, "klbl": _EMPTY, "atag": _EMPTY, "crtr": _ZERO, "type": _ZERO, "bsiz": _ZERO,
             "esiz": _ZERO, "sdat": _START, "edat": _START},
}


class UnsupportedVersion(FormatError):
    """The blob has a version that does not occur in backups."""


@dataclass
class ItemBlob:
    """The encrypted blob of an item.

    The bytes are the version with the flag of the static IV, the class and the length of the wrapped key in 4 bytes
    each, the wrapped key, the ciphertext, and a tag of 16 bytes. Version 0 has neither a length nor a tag.
    """

    version: int
    has_static_iv: bool
    key_class: int
    wrapped_key: bytes
    ciphertext: bytes
    tag: bytes

    @classmethod
    def parse(cls, data):
        """Return the parts of a blob."""
        if len(data) < 4:
            raise FormatError("an item's blob is shorter than its version")
        version_and_flag = struct.unpack_from("<I", data)[0]
        version = version_and_flag & ~STATIC_IV_FLAG
        if version == 0 and len(data) >= 64:
            return cls(0, False, int.from_bytes(data[4:8], "little"), data[8:48], data[48:], b"")
        if version not in (2, 3):
            raise UnsupportedVersion(f"an item's blob has version {version}")
        if len(data) < 12:
            raise FormatError("an item's blob ends inside its header")
        key_class, length = struct.unpack_from("<II", data, 4)
        if length not in (40, 72) or 12 + length + 16 > len(data):
            raise FormatError("an item's blob has a wrapped key of an invalid length")
        return cls(
            version, bool(version_and_flag & STATIC_IV_FLAG), key_class, data[12:12 + length], data[12 + length:-16],
            data[-16:])

    @property
    def header(self):
        version_and_flag = self.version | (STATIC_IV_FLAG if self.has_static_iv else 0)
        return struct.pack("<III", version_and_flag, self.key_class, len(self.wrapped_key))

    def serialized(self):
        """Return the encoded blob."""
        return self.header + self.wrapped_key + self.ciphertext + self.tag

    def decrypt(self, key):
        """Return the plaintext, given the item's own key. In version 0, the plaintext is only the secret."""
        if self.version == 0:
            return crypto.unpad(crypto.cbc_decrypt(key, self.ciphertext))
        if self.has_static_iv:
            return crypto.gcm_open(key, self.ciphertext, self.tag, STATIC_IV, self.header)
        return crypto.gcm_open(key, self.ciphertext, self.tag)


def encrypt_item(plaintext, key_class, class_key, key, version=3, static_iv=False):
    """Return the blob of an item, encrypted with a key that is wrapped under the class key."""
    blob = ItemBlob(version, static_iv, key_class, crypto.wrap(class_key, key), b"", b"")
    if static_iv:
        blob.ciphertext, blob.tag = crypto.gcm_seal(key, plaintext, STATIC_IV, blob.header)
    else:
        blob.ciphertext, blob.tag = crypto.gcm_seal(key, plaintext)
    return blob.serialized()


def decode_dictionary(plaintext, version):
    """Return the attributes and the secret in an item's plaintext."""
    if version == 3:
        dictionary = apple_der.decode(plaintext, repair_dates=True)
    else:
        try:
            dictionary = _with_moments(plistlib.loads(plaintext))
        except Exception as error:
            raise FormatError("an item of version 2 is not a property list") from error
    if not isinstance(dictionary, dict) or not all(isinstance(code, str) for code in dictionary):
        raise FormatError("an item's plaintext is not a dictionary of attributes")
    return dictionary


def encode_dictionary(dictionary, version):
    """Return the plaintext for attributes and a secret."""
    if version == 3:
        return apple_der.encode(dictionary)
    return plistlib.dumps({code: _without_moment(value) for code, value in dictionary.items()}, fmt=plistlib.FMT_BINARY)


def _without_moment(value):
    if not isinstance(value, apple_der.Moment):
        return value
    return apple_der.EPOCH + datetime.timedelta(seconds=value.seconds)


def _with_moments(dictionary):
    return {
        code: apple_der.Moment.from_datetime(value) if isinstance(value, datetime.datetime) else value
        for code, value in dictionary.items()
    }


def digest(table, dictionary):
    """Return the value of `sha1`: SHA-1 of the attributes that count, with defaults for absent attributes."""
    counted = {"sync": 0, "tomb": 0, "agrp": ""}
    counted.update(_DEFAULTS[table])
    counted.update((code, dictionary[code]) for code in _DIGESTED[table] if dictionary.get(code) is not None)
    return hashlib.sha1(apple_der.encode(counted)).digest()


def record_name(primary_key):
    """Return the upper-case UUID that is derived from the attributes of an item's primary key."""
    return str(uuid.UUID(bytes=hashlib.sha256(apple_der.encode(primary_key)).digest()[:16])).upper()


@dataclass
class Reference:
    """A persistent reference, by row number or by the item's own identifier."""

    table: str
    row: int = 0
    identifier: bytes = b""

    @classmethod
    def parse(cls, data):
        table = data[:4].decode("ascii", "replace")
        if table not in TABLES or len(data) not in (12, 20):
            raise FormatError("a persistent reference has an unknown format")
        if len(data) == 12:
            return cls(table, row=int.from_bytes(data[4:], "big"))
        return cls(table, identifier=data[4:])

    def serialized(self):
        return self.table.encode("ascii") + (self.identifier or self.row.to_bytes(8, "big"))


@dataclass
class Item:
    """An entry of the keychain file: the unencrypted fields of its blob, and its contents if they can be decrypted."""

    index: int
    table: str
    blob: object = None
    reference: object = None
    attributes: object = None
    secret: object = None
    reason: object = None
    detail: str = ""

    @property
    def is_readable(self):
        return self.attributes is not None

    @property
    def kind(self):
        return KIND_OF_TABLE[self.table]

    @property
    def protection(self):
        return keybag.PROTECTION_OF_CLASS.get(self.blob.key_class & CLASS_MASK) if self.blob else None


def read_item(index, table, entry, classes):
    """Decrypt one entry. An error is recorded in the item, as `reason` and `detail`."""
    item = Item(index, table)
    if isinstance(entry.get("v_PersistentRef"), bytes):
        try:
            item.reference = Reference.parse(entry["v_PersistentRef"])
        except FormatError as error:
            item.detail = str(error)
    try:
        _decrypt_entry(item, entry, classes)
    except UnsupportedVersion as error:
        item.reason, item.detail = "unsupported-version", str(error)
    except crypto.TagMismatch as error:
        item.reason, item.detail = "tag-mismatch", str(error)
    except FormatError as error:
        item.reason, item.detail = "malformed", str(error)
    return item


def _decrypt_entry(item, entry, classes):
    """Decrypt the blob of an entry into the item. A missing class key is recorded in the item."""
    if not isinstance(entry.get("v_Data"), bytes):
        raise FormatError("the entry has no blob")
    item.blob = ItemBlob.parse(entry["v_Data"])
    key_class = item.blob.key_class & CLASS_MASK
    unlocked = classes.get(key_class)
    if unlocked is None or unlocked.state == "damaged":
        item.reason, item.detail = "no-class-key", f"class {key_class} has no key in the keybag"
        return
    if unlocked.state == "device-bound":
        item.reason, item.detail = "device-bound", "its class key also needs the device's key"
        return
    plaintext = item.blob.decrypt(unlocked.unwrap(item.blob.wrapped_key))
    if item.blob.version == 0:
        item.secret, item.attributes = plaintext, {}
        return
    dictionary = decode_dictionary(plaintext, item.blob.version)
    if keybag.KEYCHAIN_CLASSES.get(dictionary.get("pdmn")) != key_class:
        raise FormatError("the protection class in the dictionary differs from that of the blob")
    item.secret = dictionary.pop("v_Data", None)
    item.attributes = dictionary
