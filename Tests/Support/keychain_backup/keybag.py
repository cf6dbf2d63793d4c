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
    def wrap_flags(self):
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

    @property
    def is_password_right(self):
        """Whether the password unwrapped the key. A key that the password does not wrap shows nothing."""
        return self.state != "damaged" and bool(self.source.wrap_flags & WRAPPED_WITH_PASSWORD)

    def unwrap(self, wrapped):
        """Return the key that is wrapped under this class key."""
        if self.source.is_curve and len(wrapped) == 72:
            return crypto.curve_unwrap(self.key, self.source.public, wrapped)
        if not self.source.is_curve and len(wrapped) == 40:
            return crypto.unwrap(self.key, wrapped)
        raise FormatError(f"a wrapped key has {len(wrapped)} bytes, which does not match its class")


def encoded_number(value):
    """Return a number as a record of a keybag stores it."""
    return value.to_bytes(4, "big")


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
        """Return the keybag that the bytes encode.

        The first records are the header. Each UUID after the first one begins the records of a class key.
        """
        bag = cls(_parse_records(data))
        group, has_header_uuid = bag.header, False
        for tag, value in bag.records:
            if tag == b"UUID":
                if has_header_uuid:
                    bag.classes.append(ClassKey({}))
                    group = bag.classes[-1].records
                has_header_uuid = True
            group.setdefault(tag, value)
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
        passcode_key = self.passcode_key(password)
        results = [
            _unlock_class(class_key, passcode_key, device_key)
            for class_key in self.classes
            if class_key.key_class is not None and class_key.wrapped is not None
        ]
        if not any(result.is_password_right for result in results):
            raise WrongPassword("no class key unwraps with this password")
        return {result.source.key_class: result for result in results}


def _parse_records(data):
    """Return the records of a keybag: a tag of 4 bytes, the size of the value in 4 bytes, and the value."""
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
    return records


def _unlock_class(class_key, passcode_key, device_key):
    """Return the result of unlocking one class key.

    A class key is wrapped with the device's key first, and then with the key of the password.
    """
    key = class_key.wrapped
    if class_key.wrap_flags & WRAPPED_WITH_PASSWORD:
        try:
            key = crypto.unwrap(passcode_key, key)
        except (crypto.TagMismatch, ValueError):
            return UnlockedClass("damaged", class_key)
    if class_key.wrap_flags & WRAPPED_WITH_DEVICE:
        if device_key is None:
            return UnlockedClass("device-bound", class_key)
        key = crypto.cbc_decrypt(device_key, key)
    return UnlockedClass("available", class_key, key)


def make(
    random, password, device_key, version=4, sha256_iterations=10_000_000, sha1_iterations=10_000, is_ascending=False,
    is_encrypted=True
):
    """Return a new backup keybag and its class keys.

    If `is_encrypted` is false, the keybag is that of an unencrypted backup.
    """
    salt, sha256_salt = random.bytes(20), random.bytes(20)
    records = [
        (b"VERS", encoded_number(version)), (b"TYPE", encoded_number(1)), (b"UUID", random.bytes(16)),
        (b"HMCK", bytes(40)), (b"WRAP", encoded_number(0)), (b"SALT", salt), (b"ITER", encoded_number(sha1_iterations))]
    has_sha256_step = is_encrypted and sha256_iterations > 0
    if has_sha256_step:
        records += [(b"DPWT", encoded_number(1)), (b"DPIC", encoded_number(sha256_iterations)), (b"DPSL", sha256_salt)]
    passcode_key = crypto.passcode_key(
        password, salt, sha1_iterations, sha256_salt if has_sha256_step else None, sha256_iterations)
    keys = {}
    device_bound = {5, 9, 10, 11} if is_encrypted else {5, 6, 7, 8, 9, 10, 11}
    for key_class in (range(1, 12) if is_ascending else range(11, 0, -1)):
        key = keys[key_class] = random.bytes(32)
        flags = WRAPPED_WITH_PASSWORD
        if key_class in device_bound:
            key = crypto.cbc_encrypt(device_key, key)
            flags |= WRAPPED_WITH_DEVICE
        records += [
            (b"UUID", random.bytes(16)), (b"CLAS", encoded_number(key_class)), (b"WRAP", encoded_number(flags)),
            (b"KTYP", encoded_number(0)), (b"WPKY", crypto.wrap(passcode_key, key)),
        ]
    return Keybag.parse(Keybag(records).serialized()), keys
