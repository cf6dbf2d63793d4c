"""Manifest.mbdb, the list of files in backups of iOS 4 to 9: record after record, all numbers big-endian."""

import struct
from dataclasses import dataclass, field
from typing import List, Optional, Tuple

from . import FormatError

MAGIC = b"mbdb\x05\x00"
ABSENT = 0xFFFF
_FIXED = struct.Struct(">HQIIiiiqBB")


@dataclass
class Record:
    """One file, folder or link. None stands for a string that is absent, which is not an empty one."""

    domain: Optional[bytes]
    path: Optional[bytes]
    target: Optional[bytes] = None
    digest: Optional[bytes] = None
    key: Optional[bytes] = None
    mode: int = 0
    inode: int = 12345
    user: int = 501
    group: int = 501
    modified: int = 0
    changed: int = 0
    born: int = 0
    size: int = 0
    protection_class: int = 0
    properties: List[Tuple[bytes, bytes]] = field(default_factory=list)

    def pieces(self):
        """The record's bytes in named parts, in order."""
        strings = [(name, _string(getattr(self, name))) for name in ("domain", "path", "target", "digest", "key")]
        fixed = _FIXED.pack(
            self.mode, self.inode, self.user, self.group, self.modified, self.changed, self.born, self.size,
            self.protection_class, len(self.properties))
        pairs = [(part, _string(text)) for pair in self.properties for part, text in zip(("name", "value"), pair)]
        return [*strings, ("numbers", fixed), *pairs]

    def encoded(self):
        return b"".join(content for _, content in self.pieces())


def _string(value):
    return struct.pack(">H", ABSENT) if value is None else struct.pack(">H", len(value)) + value


def encode(records):
    return MAGIC + b"".join(record.encoded() for record in records)


def parse(data):
    if not data.startswith(MAGIC):
        raise FormatError("Manifest.mbdb doesn't start with its mark")
    position = len(MAGIC)

    def take(count):
        nonlocal position
        if count > len(data) - position:
            raise FormatError("Manifest.mbdb ends inside a record")
        position += count
        return data[position - count:position]

    def string():
        size = int.from_bytes(take(2), "big")
        return None if size == ABSENT else take(size)

    records = []
    while position < len(data):
        strings = [string() for _ in range(5)]
        *numbers, count = _FIXED.unpack(take(_FIXED.size))
        records.append(Record(*strings, *numbers, [(string(), string()) for _ in range(count)]))
    return records
