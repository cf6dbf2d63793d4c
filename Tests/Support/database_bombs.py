"""Keychain databases, with what lies beside them, that name far more than they hold."""

import itertools
import pathlib
import sqlite3
import struct
import tempfile

PAGE = 4_096
# As many pages as the largest database that is read has.
FAR = (256 << 20) // PAGE
MAGIC = bytes.fromhex("d9d505f920a163d7")


def database():
    """A keychain's tables of passwords, and nothing in them."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "k.db"
        connection = sqlite3.connect(path)
        connection.execute(f"PRAGMA page_size = {PAGE}")
        for table in ("genp", "inet"):
            connection.execute(f"CREATE TABLE {table}(rowid INTEGER PRIMARY KEY AUTOINCREMENT, data BLOB, sha1 BLOB, acct BLOB)")
        connection.commit()
        connection.close()
        return path.read_bytes()


def summed(content, first=0, second=0):
    """The check sum of a log, of big-endian words."""
    words = iter(struct.unpack(f">{len(content) // 4}I", content))
    for one, other in zip(words, words):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return first, second


def log(frames):
    """Of frames as page, pages after the commit and content."""
    head = struct.pack(">6I", 0x377F0683, 3_007_000, PAGE, 0, 1, 2)
    sums = summed(head)
    parts = [head, struct.pack(">2I", *sums)]
    for page, count, content in frames:
        start = struct.pack(">2I", page, count)
        sums = summed(content, *summed(start, *sums))
        parts += [start, struct.pack(">4I", 1, 2, *sums), content]
    return b"".join(parts)


def header(records, pages, sector=512, size=PAGE):
    return (MAGIC + struct.pack(">5I", records, 7, pages, sector, size)).ljust(sector, b"\0")


def record(page, content):
    """With the check sum of a journal, whose first number is 7."""
    return struct.pack(">I", page) + content + struct.pack(">I", 7 + sum(content[place] for place in range(PAGE - 200, 0, -200)))


def database_bombs():
    """Name, and the files by what they are called: a database, and what is beside it."""
    whole, empty = database(), bytes(PAGE)
    journals = {
        "one-far-page": header(1, FAR - 1) + record(FAR - 2, empty),
        "far-pages": header(0xFFFFFFFF, FAR - 1) + b"".join(record(FAR - 1 - number * 300, empty) for number in range(100)),
        "only-headers": header(0, 2, sector=32) * 14_000,
        "one-page-often": header(0xFFFFFFFF, 2) + record(2, empty) * 100,
        "large-sectors": header(0, 2, sector=65_536) * 6,
        "no-pages": header(0, 0),
        "all-pages": header(0, 0xFFFFFFFF),
    }
    logs = {
        "one-far-page": log([(FAR - 1, FAR - 1, empty)]),
        "far-pages": log([(FAR - 1 - number * 300, FAR - 1, empty) for number in range(100)]),
        "one-page-often": log([(2, 2, empty)] * 100),
        "all-pages": log([(2, 0xFFFFFFFF, empty)]),
    }
    for name, content in journals.items():
        yield f"keychain-database-journal-of-{name}", {"k.db": whole, "k.db-journal": content}
    for name, content in logs.items():
        yield f"keychain-database-log-of-{name}", {"k.db": whole, "k.db-wal": content}
    for (first, one), (second, other) in itertools.product(logs.items(), journals.items()):
        yield f"keychain-database-log-of-{first}-and-journal-of-{second}", {"k.db": whole, "k.db-wal": one, "k.db-journal": other}
