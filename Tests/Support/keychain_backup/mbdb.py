"""Read and write Manifest.mbdb, the manifest of backups made by iOS 4 to 9. All numbers are big-endian."""

import struct
from dataclasses import dataclass, field
from typing import List, Optional, Tuple

from . import FormatError

MAGIC = b"mbdb\x05\x00"
# The length of an absent string.
ABSENT = 0xFFFF
# The numbers in the middle of a record, as `encoded_parts` packs them.
_FIXED = struct.Struct(">HQIIiiiqBB")


@dataclass
class Record:
    """A file, folder or link. None is an absent string, which differs from an empty string."""

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
    created: int = 0
    size: int = 0
    protection_class: int = 0
    properties: List[Tuple[bytes, bytes]] = field(default_factory=list)

    def encoded_parts(self):
        """Return the encoded parts of the record as (name, bytes), in order."""
        names = ("domain", "path", "target", "digest", "key")
        strings = [(name, _encode_string(getattr(self, name))) for name in names]
        fixed = _FIXED.pack(
            self.mode, self.inode, self.user, self.group, self.modified, self.changed, self.created, self.size,
            self.protection_class, len(self.properties))
        pairs = [
            (part, _encode_string(text)) for pair in self.properties for part, text in zip(("name", "value"), pair)]
        return [*strings, ("numbers", fixed), *pairs]

    def encoded(self):
        """Return the encoded record."""
        return b"".join(content for _, content in self.encoded_parts())


def _encode_string(value):
    """Return a string with its length in front."""
    return struct.pack(">H", ABSENT) if value is None else struct.pack(">H", len(value)) + value


def encode(records):
    """Return the file with its header and all records."""
    return MAGIC + b"".join(record.encoded() for record in records)


def parse(data):
    """Return the records of a file."""
    if not data.startswith(MAGIC):
        raise FormatError("Manifest.mbdb does not start with its signature")
    position = len(MAGIC)

    def read_bytes(count):
        nonlocal position
        if count > len(data) - position:
            raise FormatError("Manifest.mbdb ends inside a record")
        position += count
        return data[position - count:position]

    def read_string():
        size = int.from_bytes(read_bytes(2), "big")
        return None if size == ABSENT else read_bytes(size)

    records = []
    while position < len(data):
        strings = [read_string() for _ in range(5)]
        *numbers, count = _FIXED.unpack(read_bytes(_FIXED.size))
        records.append(Record(*strings, *numbers, [(read_string(), read_string()) for _ in range(count)]))
    return records
