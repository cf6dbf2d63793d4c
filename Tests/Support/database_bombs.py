"""Make keychain databases whose journals and logs declare far more data than they contain."""

import itertools
import pathlib
import sqlite3
import struct
import tempfile

PAGE_SIZE = 4_096
# The number of pages in the largest database that Keyhaul reads.
PAGE_COUNT = (256 << 20) // PAGE_SIZE
JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")


def empty_database():
    """Return an empty keychain database with the tables of passwords."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "k.db"
        connection = sqlite3.connect(path)
        connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
        for table in ("genp", "inet"):
            connection.execute(
                f"CREATE TABLE {table}(rowid INTEGER PRIMARY KEY AUTOINCREMENT, data BLOB, sha1 BLOB, acct BLOB)"
            )
        connection.commit()
        connection.close()
        return path.read_bytes()


def wal_checksum(content, first=0, second=0):
    """Return the checksum of data in a write-ahead log, as two numbers."""
    numbers = iter(struct.unpack(f">{len(content) // 4}I", content))
    for even, odd in zip(numbers, numbers):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second


def write_ahead_log(frames):
    """Return a write-ahead log with frames of (page, page count after the commit, contents)."""
    head = struct.pack(">6I", 0x377F0683, 3_007_000, PAGE_SIZE, 0, 1, 2)
    sums = wal_checksum(head)
    parts = [head, struct.pack(">2I", *sums)]
    for page, count, content in frames:
        header = struct.pack(">2I", page, count)
        sums = wal_checksum(content, *wal_checksum(header, *sums))
        parts += [header, struct.pack(">4I", 1, 2, *sums), content]
    return b"".join(parts)


def journal_header(records, pages, sector=512, size=PAGE_SIZE):
    """Return the header of a rollback journal."""
    return (JOURNAL_MAGIC + struct.pack(">5I", records, 7, pages, sector, size)).ljust(sector, b"\0")


def journal_record(page, content):
    """Return a record of a rollback journal. The checksum starts at 7, the nonce in the header."""
    return (
        struct.pack(">I", page)
        + content
        + struct.pack(">I", 7 + sum(content[offset] for offset in range(PAGE_SIZE - 200, 0, -200)))
    )


def database_bombs():
    """Return the name of each case, and its files by name: a database with a journal, a log, or both."""
    valid_database, empty = empty_database(), bytes(PAGE_SIZE)
    journals = {
        "one-far-page": journal_header(1, PAGE_COUNT - 1) + journal_record(PAGE_COUNT - 2, empty),
        "far-pages": journal_header(0xFFFFFFFF, PAGE_COUNT - 1)
        + b"".join(journal_record(PAGE_COUNT - 1 - number * 300, empty) for number in range(100)),
        "only-headers": journal_header(0, 2, sector=32) * 14_000,
        "one-page-often": journal_header(0xFFFFFFFF, 2) + journal_record(2, empty) * 100,
        "large-sectors": journal_header(0, 2, sector=65_536) * 6,
        "no-pages": journal_header(0, 0),
        "all-pages": journal_header(0, 0xFFFFFFFF),
    }
    logs = {
        "one-far-page": write_ahead_log([(PAGE_COUNT - 1, PAGE_COUNT - 1, empty)]),
        "far-pages": write_ahead_log([(PAGE_COUNT - 1 - number * 300, PAGE_COUNT - 1, empty) for number in range(100)]),
        "one-page-often": write_ahead_log([(2, 2, empty)] * 100),
        "all-pages": write_ahead_log([(2, 0xFFFFFFFF, empty)]),
    }
    for name, content in journals.items():
        yield f"keychain-database-journal-of-{name}", {"k.db": valid_database, "k.db-journal": content}
    for name, content in logs.items():
        yield f"keychain-database-log-of-{name}", {"k.db": valid_database, "k.db-wal": content}
    for (log_name, log), (journal_name, journal) in itertools.product(logs.items(), journals.items()):
        yield (
            f"keychain-database-log-of-{log_name}-and-journal-of-{journal_name}",
            {"k.db": valid_database, "k.db-wal": log, "k.db-journal": journal})
