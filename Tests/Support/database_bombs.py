"""Make keychain databases whose journals and logs declare far more data than they contain."""

import itertools
import pathlib
import sqlite3
import struct
import tempfile

PAGE_SIZE = 4_096
# The number of pages in the largest database that Keyhaul reads.
PAGE_COUNT = (256 << 20) // PAGE_SIZE
JOURNAL_MAGIC, JOURNAL_NONCE = bytes.fromhex("d9d505f920a163d7"), 7
# Source: SQLite, "Database File Format", sections 3 and 4.
LOG_MAGIC, SALTS = 0x377F0683, (1, 2)


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
    # The signature, the version, the page size, the number of checkpoints, two salts, and the checksum.
    header = struct.pack(">6I", LOG_MAGIC, 3_007_000, PAGE_SIZE, 0, *SALTS)
    checksum = wal_checksum(header)
    parts = [header, struct.pack(">2I", *checksum)]
    for page, page_count, content in frames:
        frame_header = struct.pack(">2I", page, page_count)
        checksum = wal_checksum(content, *wal_checksum(frame_header, *checksum))
        parts += [frame_header, struct.pack(">4I", *SALTS, *checksum), content]
    return b"".join(parts)


def journal_header(record_count, page_count, sector_size=512):
    """Return the header of a rollback journal, which fills a sector."""
    numbers = struct.pack(">5I", record_count, JOURNAL_NONCE, page_count, sector_size, PAGE_SIZE)
    return (JOURNAL_MAGIC + numbers).ljust(sector_size, b"\0")


def journal_record(page, content):
    """Return a record of a rollback journal: the page, its contents, and a checksum of every 200th byte."""
    checksum = JOURNAL_NONCE + sum(content[offset] for offset in range(PAGE_SIZE - 200, 0, -200))
    return struct.pack(">I", page) + content + struct.pack(">I", checksum)


def database_bombs():
    """Yield the name of each case, and its files by name: a database with a journal, a log, or both."""
    valid_database, empty = empty_database(), bytes(PAGE_SIZE)
    journals = {
        "one-far-page": journal_header(1, PAGE_COUNT - 1) + journal_record(PAGE_COUNT - 2, empty),
        "far-pages": journal_header(0xFFFFFFFF, PAGE_COUNT - 1)
        + b"".join(journal_record(PAGE_COUNT - 1 - number * 300, empty) for number in range(100)),
        "only-headers": journal_header(0, 2, sector_size=32) * 14_000,
        "one-page-often": journal_header(0xFFFFFFFF, 2) + journal_record(2, empty) * 100,
        "large-sectors": journal_header(0, 2, sector_size=65_536) * 6,
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
