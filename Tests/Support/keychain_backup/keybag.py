"""Read and write keybags: the class keys of a backup, wrapped with the password and with the device's key."""

import struct
import uuid as uuids
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

from . import FormatError, WrongPassword, crypto

WRAPPED_WITH_DEVICE, WRAPPED_WITH_PASSWORD = 1, 2
KEYCHAIN_CLASSES = {"ak": 6, "ck": 7, "dk": 8, "aku": 9, "cku": 10, "dku": 11, "akpu": 12}
PROTECTION_OF_CLASS = {number: code for code, number in KEYCHAIN_CLASSES.items()}
MAX_ITERATIONS = 20_000_000


@dataclass
class ClassKey:
    """The records of one class key."""

    records: Dict[bytes, bytes]

    def number(self, tag, default=None):
        """Return the number in a record, or the default if the record is absent."""
        value = self.records.get(tag)
        return default if value is None else _number(value)

    @property
    def key_class(self):
        return self.number(b"CLAS")

    @property
    def wrap(self):
        return self.number(b"WRAP", 0)

    @property
    def is_curve(self):
        return self.number(b"KTYP", 0) == 1

    @property
    def wrapped(self):
        return self.records.get(b"WPKY")

    @property
    def public(self):
        return self.records.get(b"PBKY")


@dataclass
class UnlockedClass:
    """The result of unlocking one class key. `key` is set if the state is "available"."""

    state: str
    source: Optional[ClassKey] = None
    key: Optional[bytes] = None

    def unwrap(self, wrapped):
        """Return the key that is wrapped under this class key."""
        if self.source.is_curve and len(wrapped) == 72:
            return crypto.curve_unwrap(self.key, self.source.public, wrapped)
        if not self.source.is_curve and len(wrapped) == 40:
            return crypto.unwrap(self.key, wrapped)
        raise FormatError(f"a wrapped key has {len(wrapped)} bytes, which does not match its class")


def _number(value):
    if len(value) != 4:
        raise FormatError("a number in the keybag does not have 4 bytes")
    return int.from_bytes(value, "big")


@dataclass
class Keybag:
    """A keybag, as its records in order, and grouped into the header and the class keys."""

    records: List[Tuple[bytes, bytes]]
    header: Dict[bytes, bytes] = field(default_factory=dict)
    classes: List[ClassKey] = field(default_factory=list)

    @classmethod
    def parse(cls, data):
        """Return the keybag that the bytes encode."""
        records, position = [], 0
        while len(data) - position >= 8:
            tag, size = struct.unpack_from(">4sI", data, position)
            position += 8
            if size > len(data) - position:
                raise FormatError(f"the keybag ends inside the record {tag!r}")
            records.append((tag, bytes(data[position:position + size])))
            position += size
        if position != len(data):
            raise FormatError("the keybag has bytes after its last record")
        bag = cls(records)
        current, seen_uuid = bag.header, False
        for tag, value in records:
            if tag == b"UUID" and seen_uuid:
                bag.classes.append(ClassKey({}))
                current = bag.classes[-1].records
            seen_uuid = seen_uuid or tag == b"UUID"
            current.setdefault(tag, value)
        return bag

    def serialized(self):
        """Return the encoded keybag."""
        return b"".join(struct.pack(">4sI", tag, len(value)) + value for tag, value in self.records)

    def number(self, tag, default=None):
        """Return the number in a record of the header, or the default if the record is absent."""
        value = self.header.get(tag)
        return default if value is None else _number(value)

    @property
    def uuid_text(self):
        if len(self.header.get(b"UUID", b"")) != 16:
            raise FormatError("the keybag has no UUID of 16 bytes")
        return str(uuids.UUID(bytes=self.header[b"UUID"]))

    @property
    def iterations(self):
        """The numbers of SHA-256 and SHA-1 iterations."""
        has_sha256_step = b"DPSL" in self.header and self.number(b"DPIC", 0) > 0
        return (self.number(b"DPIC") if has_sha256_step else 0), self.number(b"ITER", 0)

    def passcode_key(self, password, max_iterations=MAX_ITERATIONS):
        """Return the key that is derived from the password."""
        sha256_count, sha1_count = self.iterations
        if sha1_count < 1 or b"SALT" not in self.header:
            raise FormatError("the keybag has no salt or no iteration count")
        count = sha256_count + sha1_count
        if count > max_iterations:
            raise FormatError(f"the keybag asks for {count} iterations; at most {max_iterations} are accepted")
        return crypto.passcode_key(
            password, self.header[b"SALT"], sha1_count, self.header.get(b"DPSL") if sha256_count else None,
            sha256_count)

    def unlock(self, password, device_key=None):
        """Return an UnlockedClass for each class number. Raise WrongPassword if the password unwraps no key."""
        key = self.passcode_key(password)
        unlocked, unwrapped = {}, 0
        for entry in self.classes:
            number, value = entry.key_class, entry.wrapped
            if number is None or value is None:
                continue
            if entry.wrap & WRAPPED_WITH_PASSWORD:
                try:
                    value = crypto.unwrap(key, value)
                    unwrapped += 1
                except (crypto.TagMismatch, ValueError):
                    unlocked[number] = UnlockedClass("damaged", entry)
                    continue
            if entry.wrap & WRAPPED_WITH_DEVICE:
                if device_key is None:
                    unlocked[number] = UnlockedClass("device-bound", entry)
                    continue
                value = crypto.cbc_decrypt(device_key, value)
            unlocked[number] = UnlockedClass("available", entry, value)
        if unwrapped == 0:
            raise WrongPassword("no class key unwraps with this password")
        return unlocked


def make(
    random, password, device_key, version=4, sha256_iterations=10_000_000, sha1_iterations=10_000, is_ascending=False,
    is_encrypted=True
):
    """Return a new backup keybag and its class keys.

    If `is_encrypted` is false, the keybag is that of an unencrypted backup.
    """
    def number(value):
        return value.to_bytes(4, "big")

    salt, sha256_salt = random.bytes(20), random.bytes(20)
    records = [
        (b"VERS", number(version)), (b"TYPE", number(1)), (b"UUID", random.bytes(16)), (b"HMCK", bytes(40)),
        (b"WRAP", number(0)), (b"SALT", salt), (b"ITER", number(sha1_iterations))]
    has_sha256_step = is_encrypted and sha256_iterations > 0
    if has_sha256_step:
        records += [(b"DPWT", number(1)), (b"DPIC", number(sha256_iterations)), (b"DPSL", sha256_salt)]
    key = crypto.passcode_key(
        password, salt, sha1_iterations, sha256_salt if has_sha256_step else None, sha256_iterations)
    keys = {}
    device_bound = {5, 9, 10, 11} if is_encrypted else {5, 6, 7, 8, 9, 10, 11}
    for key_class in (range(1, 12) if is_ascending else range(11, 0, -1)):
        keys[key_class] = random.bytes(32)
        inner = crypto.cbc_encrypt(device_key, keys[key_class]) if key_class in device_bound else keys[key_class]
        records += [
            (b"UUID", random.bytes(16)), (b"CLAS", number(key_class)),
            (b"WRAP", number(3 if key_class in device_bound else 2)), (b"KTYP", number(0)),
            (b"WPKY", crypto.wrap(key, inner)),
        ]
    return Keybag.parse(Keybag(records).serialized()), keys
