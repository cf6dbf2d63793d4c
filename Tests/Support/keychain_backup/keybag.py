"""Keybags: the records that hold a backup's class keys, wrapped with the password and with the device's key."""

import struct
import uuid as uuids
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

from . import FormatError, WrongPassword, crypto

WRAPPED_WITH_DEVICE, WRAPPED_WITH_PASSWORD = 1, 2
KEYCHAIN_CLASSES = {"ak": 6, "ck": 7, "dk": 8, "aku": 9, "cku": 10, "dku": 11, "akpu": 12}
PROTECTION_OF_CLASS = {number: code for code, number in KEYCHAIN_CLASSES.items()}
MAX_ROUNDS = 20_000_000


@dataclass
class ClassKey:
    records: Dict[bytes, bytes]

    def number(self, tag, default=None):
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
class OpenedClass:
    """What became of one class key; `key` is there where state is "available"."""

    state: str
    source: Optional[ClassKey] = None
    key: Optional[bytes] = None

    def unwrap(self, wrapped):
        if self.source.is_curve and len(wrapped) == 72:
            return crypto.curve_unwrap(self.key, self.source.public, wrapped)
        if not self.source.is_curve and len(wrapped) == 40:
            return crypto.unwrap(self.key, wrapped)
        raise FormatError(f"a wrapped key has {len(wrapped)} bytes, which doesn't suit its class")


def _number(value):
    if len(value) != 4:
        raise FormatError("a keybag record that should hold a number doesn't have 4 bytes")
    return int.from_bytes(value, "big")


@dataclass
class Keybag:
    records: List[Tuple[bytes, bytes]]
    header: Dict[bytes, bytes] = field(default_factory=dict)
    classes: List[ClassKey] = field(default_factory=list)

    @classmethod
    def parse(cls, data):
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
        return b"".join(struct.pack(">4sI", tag, len(value)) + value for tag, value in self.records)

    def number(self, tag, default=None):
        value = self.header.get(tag)
        return default if value is None else _number(value)

    @property
    def uuid_text(self):
        if len(self.header.get(b"UUID", b"")) != 16:
            raise FormatError("the keybag has no UUID of 16 bytes")
        return str(uuids.UUID(bytes=self.header[b"UUID"]))

    @property
    def rounds(self):
        """SHA-256 rounds and SHA-1 rounds."""
        two = b"DPSL" in self.header and self.number(b"DPIC", 0) > 0
        return (self.number(b"DPIC") if two else 0), self.number(b"ITER", 0)

    def passcode_key(self, password, max_rounds=MAX_ROUNDS):
        double, single = self.rounds
        if single < 1 or b"SALT" not in self.header:
            raise FormatError("the keybag has no salt or no rounds")
        if double + single > max_rounds:
            raise FormatError(f"the keybag asks for {double + single} rounds; at most {max_rounds} are accepted")
        return crypto.passcode_key(
            password, self.header[b"SALT"], single, self.header.get(b"DPSL") if double else None, double)

    def unlock(self, password, device_key=None):
        """Class number to OpenedClass. The password is right where at least one class key unwraps with it."""
        key = self.passcode_key(password)
        opened, unwrapped = {}, 0
        for entry in self.classes:
            number, value = entry.key_class, entry.wrapped
            if number is None or value is None:
                continue
            if entry.wrap & WRAPPED_WITH_PASSWORD:
                try:
                    value = crypto.unwrap(key, value)
                    unwrapped += 1
                except (crypto.TagMismatch, ValueError):
                    opened[number] = OpenedClass("damaged", entry)
                    continue
            if entry.wrap & WRAPPED_WITH_DEVICE:
                if device_key is None:
                    opened[number] = OpenedClass("device-bound", entry)
                    continue
                value = crypto.cbc_decrypt(device_key, value)
            opened[number] = OpenedClass("available", entry, value)
        if unwrapped == 0:
            raise WrongPassword("no class key unwraps with this password")
        return opened


def make(
    random, password, device_key, version=4, double_rounds=10_000_000, rounds=10_000, ascending=False, encrypted=True
):
    """A new backup keybag and its class keys; without `encrypted` it is that of a backup without a password."""
    def number(value):
        return value.to_bytes(4, "big")

    salt, double_salt = random.bytes(20), random.bytes(20)
    records = [
        (b"VERS", number(version)), (b"TYPE", number(1)), (b"UUID", random.bytes(16)), (b"HMCK", bytes(40)),
        (b"WRAP", number(0)), (b"SALT", salt), (b"ITER", number(rounds)),
    ]
    two_rounds = encrypted and double_rounds > 0
    if two_rounds:
        records += [(b"DPWT", number(1)), (b"DPIC", number(double_rounds)), (b"DPSL", double_salt)]
    key = crypto.passcode_key(password, salt, rounds, double_salt if two_rounds else None, double_rounds)
    keys = {}
    device_bound = {5, 9, 10, 11} if encrypted else {5, 6, 7, 8, 9, 10, 11}
    for key_class in (range(1, 12) if ascending else range(11, 0, -1)):
        keys[key_class] = random.bytes(32)
        inner = crypto.cbc_encrypt(device_key, keys[key_class]) if key_class in device_bound else keys[key_class]
        records += [
            (b"UUID", random.bytes(16)), (b"CLAS", number(key_class)),
            (b"WRAP", number(3 if key_class in device_bound else 2)), (b"KTYP", number(0)),
            (b"WPKY", crypto.wrap(key, inner)),
        ]
    return Keybag.parse(Keybag(records).serialized()), keys
