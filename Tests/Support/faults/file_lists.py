"""Faults of the manifest: Manifest.db's rows, records, schema and pages, and Manifest.mbdb's records."""

import struct

from keychain_backup import mbfile
from keychain_backup.options import KEYCHAIN, NOTES

from . import DAMAGED, PARTIAL, REFUSED, SUCCESS, Fault, flip_bit, partial_loss, verify_and_plan


# Columns of a row in Manifest.db: [fileID, domain, relativePath, flags, file].
FILE_ID, RECORD = 0, 4
# Members of an entry: (file, key field, digest). A key field is a class number in 4 bytes, and the wrapped key.
KEY_FIELD, DIGEST = 1, 2
DATABASE_PAGE_SIZE = 4096
# The size of the header at the start of a SQLite database.
DATABASE_HEADER_SIZE = 100


def exit_codes_for(exit_code, commands):
    """Return the expected exit codes of the commands that the fault affects."""
    return {command: exit_code for command, exit_code in verify_and_plan(exit_code).items() if command in commands}


def row_fault(
    name, summary, exit_code, change, *messages, file_name=KEYCHAIN, base="encrypted", commands=("verify", "plan")
):
    """Return a fault of one row of Manifest.db."""
    def edit(rows):
        change(next(row for row in rows if tuple(row[1:3]) == file_name))
    return Fault(f"list-{name}", summary, exit_codes_for(exit_code, commands), messages, base, edits={"rows": edit})


def entry_fault(name, summary, exit_code, change, file_name=KEYCHAIN, base="encrypted", commands=("verify", "plan")):
    """Return a fault of one file's entry in the manifest."""
    def edit(entries):
        entry_index = next(
            index for index, (file, _, _) in enumerate(entries) if (file.domain, file.path) == file_name)
        entry = list(entries[entry_index])
        change(entry)
        entries[entry_index] = tuple(entry)
    return Fault(f"list-{name}", summary, exit_codes_for(exit_code, commands), (), base, edits={"listed": edit})


def set_name(domain, path):
    """Return an edit that renames a row, with the fileID of the new name."""
    def change(row):
        row[:3] = mbfile.file_id(domain, path), domain, path
    return change


def set_value(index, value):
    """Return an edit that sets one value of a row or an entry."""
    def change(values):
        values[index] = value
    return change


def change_value(index, transform):
    """Return an edit that transforms one value of a row or an entry."""
    def change(values):
        values[index] = transform(values[index])
    return change


def with_class_99(key_field):
    """Return the key field with a class number that does not exist."""
    return struct.pack("<I", 99) + key_field[4:]


def name_faults():
    """Return faults of a file's domain and path."""
    for name, summary, domain, path in (
        ("path-escape", "leads out of its domain", NOTES[0], "../../.ssh/authorized_keys"),
        ("path-escape-inside", "leads out of its domain from a subfolder", NOTES[0], "Documents/../../../evil"),
        ("path-escape-end", "ends in ..", NOTES[0], "Documents/.."),
        ("path-absolute", "is absolute", NOTES[0], "/etc/passwd"),
        ("path-dot", "has a component .", NOTES[0], "Documents/./notes.txt"),
        ("path-empty-component", "has an empty component", NOTES[0], "Documents//notes.txt"),
        ("path-nul", "contains a NUL", NOTES[0], "Documents/no\x00tes.txt"),
        ("domain-escape", "has a domain that leads out of the backup", "../HomeDomain", "notes.txt"),
        ("domain-slash", "has a domain that is a path", "/etc", "passwd")
    ):
        shows_path = name.startswith("path-escape")
        messages = (path,) if shows_path else ()
        yield row_fault(
            name, f"a file's name {summary}", REFUSED, set_name(domain, path), *messages, file_name=NOTES,
            commands=("verify",))
        if name in ("path-escape", "path-absolute", "path-nul", "domain-escape"):
            yield record_fault(
                name, f"a file's name {summary}", REFUSED, set_record_name(domain, path), file_name=NOTES,
                commands=("verify",))


def row_faults():
    """Return faults of a row: its fileID and its record."""
    other_file_id = "ab" * 20
    yield row_fault(
        "file-id-of-another", "the keychain's fileID is not the hash of its name", REFUSED,
        set_value(FILE_ID, other_file_id))
    yield row_fault(
        "file-id-of-another-notes", "a file's fileID is not the hash of its name", REFUSED,
        set_value(FILE_ID, other_file_id), file_name=NOTES, commands=("verify",))
    yield row_fault("file-id-upper-case", "a fileID is written in upper case", REFUSED,
                    change_value(FILE_ID, str.upper), file_name=NOTES, commands=("verify",))
    yield row_fault("file-id-escape", "a fileID is a path", REFUSED, set_value(FILE_ID, "../" + "a" * 37),
                    file_name=NOTES, commands=("verify",))
    yield row_fault("file-id-short", "a fileID has 39 digits", REFUSED,
                    change_value(FILE_ID, lambda file_id: file_id[:-1]), file_name=NOTES, commands=("verify",))
    yield row_fault("record-null", "the keychain's record is NULL", DAMAGED, set_value(RECORD, None))
    yield row_fault("record-text", "the keychain's record is a string", DAMAGED, set_value(RECORD, "text"))
    yield row_fault("record-empty", "the keychain's record is empty", DAMAGED, set_value(RECORD, b""))
    yield row_fault("record-cut", "half of the keychain's record is absent", DAMAGED,
                    change_value(RECORD, lambda record: record[:len(record) // 2]))
    yield row_fault("record-magic-flip", "the keychain's record doesn't start as a property list", DAMAGED,
                    change_value(RECORD, lambda record: flip_bit(record, 0)))


def entry_faults():
    """Return faults of a file's key and digest."""
    def flip_digest(digest):
        return flip_bit(digest, 7)

    yield entry_fault("key-absent", "the keychain file has no key", DAMAGED, set_value(KEY_FIELD, None))
    yield entry_fault("key-43", "the keychain file's key has 43 bytes", DAMAGED,
                      change_value(KEY_FIELD, lambda key_field: key_field[:-1]))
    yield entry_fault("key-flip", "one bit of the keychain file's key is flipped", DAMAGED,
                      change_value(KEY_FIELD, lambda key_field: flip_bit(key_field, 20)))
    yield entry_fault("key-class-99", "the keychain file's key names class 99", DAMAGED,
                      change_value(KEY_FIELD, with_class_99))
    for base in ("encrypted", "plain", "mbdb", "mbdb-plain"):
        name_suffix = "" if base == "encrypted" else f"-{base}"
        yield entry_fault(f"digest-flip{name_suffix}", "one bit of an ordinary file's digest is flipped", DAMAGED,
                          change_value(DIGEST, flip_digest), NOTES, base, ("verify",))
    yield entry_fault("digest-flip-keychain", "one bit of the keychain file's digest is flipped", DAMAGED,
                      change_value(DIGEST, flip_digest), commands=("verify",))


def sql_fault(name, summary, exit_code, *statements, base="encrypted", exit_codes=None):
    """Return a fault that SQL statements make in Manifest.db."""
    def edit(connection):
        for statement in statements:
            connection.execute(statement)
    return Fault(f"database-{name}", summary, exit_codes or verify_and_plan(exit_code), (), base, edits={"sql": edit})


def page_fault(name, summary, exit_code, change, base="encrypted", exit_codes=None):
    """Return a fault of the bytes of Manifest.db before encryption."""
    return Fault(
        f"database-{name}", summary, exit_codes or verify_and_plan(exit_code), (), base, edits={"database": change}
    )


def stored_fault(name, summary, change, exit_codes=None):
    """Return a fault of the stored bytes of Manifest.db."""
    return Fault(f"database-{name}", summary, exit_codes or verify_and_plan(DAMAGED), edits={"database-stored": change})


def index_page_fault():
    """Return a fault that gives the root page of an index an invalid type."""
    root_page = None

    def find_root_page(connection):
        nonlocal root_page
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'FilesFlagsIdx'"
        root_page, = connection.execute(query).fetchone()

    def corrupt(data):
        # Pages are numbered from 1. The first byte of a page is its type.
        type_offset = (root_page - 1) * DATABASE_PAGE_SIZE
        return data[:type_offset] + b"\xff" + data[type_offset + 1:]

    return Fault("database-index-garbled", "an index's page has an invalid type", {"verify": DAMAGED},
                 edits={"sql": find_root_page, "database": corrupt})


def schema_faults():
    """Return faults of the schema of Manifest.db."""
    for base in ("encrypted", "plain"):
        name_suffix = "" if base == "encrypted" else f"-{base}"
        yield sql_fault(f"trigger{name_suffix}", "Manifest.db has a trigger", REFUSED,
                        "CREATE TRIGGER hostile AFTER INSERT ON Files BEGIN DELETE FROM Files; END", base=base)
        yield sql_fault(f"view{name_suffix}", "Files is a view", REFUSED, "ALTER TABLE Files RENAME TO Others",
                        "CREATE VIEW Files AS SELECT * FROM Others", base=base)
    yield sql_fault("extra-view", "Manifest.db has an additional view", REFUSED, "CREATE VIEW More AS SELECT 1")
    yield sql_fault("temp-trigger", "Manifest.db has a trigger on its properties", REFUSED,
                    "CREATE TRIGGER hostile AFTER INSERT ON Properties BEGIN DELETE FROM Files; END")
    yield sql_fault("no-files", "there is no Files table", DAMAGED, "DROP TABLE Files")
    yield sql_fault(
        "column-renamed", "Files has no column file", DAMAGED, "ALTER TABLE Files RENAME COLUMN file TO film"
    )
    yield sql_fault(
        "keychain-unlisted", "the keychain file is stored and not listed", DAMAGED,
        "DELETE FROM Files WHERE relativePath = 'keychain-backup.plist'", exit_codes=verify_and_plan(DAMAGED))


def with_page_size(size):
    """Return an edit that sets the page size in the header of a database."""
    return lambda data: data[:16] + struct.pack(">H", size) + data[18:]


def with_random_first_page(data):
    """Return a database whose first page has random bytes after the header."""
    random_bytes = bytes(index * 89 + 7 & 0xFF for index in range(DATABASE_PAGE_SIZE - DATABASE_HEADER_SIZE))
    return data[:DATABASE_HEADER_SIZE] + random_bytes + data[DATABASE_PAGE_SIZE:]


def first_half_of_pages(data):
    """Return the first half of a database, without a partial page."""
    return data[:len(data) // 2 // DATABASE_PAGE_SIZE * DATABASE_PAGE_SIZE]


def page_faults():
    """Return faults of the pages of Manifest.db before encryption."""
    for base in ("encrypted", "plain"):
        name_suffix = "" if base == "encrypted" else f"-{base}"
        yield page_fault(f"magic-flip{name_suffix}", "one bit of the database's first byte is flipped", DAMAGED,
                         lambda data: flip_bit(data, 0), base)
        yield page_fault(f"page-size-3{name_suffix}", "the database header gives a page size of 3", DAMAGED,
                         with_page_size(3), base)
        yield page_fault(f"page-size-0{name_suffix}", "the database header gives a page size of 0", DAMAGED,
                         with_page_size(0), base)
        yield page_fault(f"cut{name_suffix}", "the database's second half is missing", DAMAGED,
                         first_half_of_pages, base)
        yield page_fault(f"first-page{name_suffix}", "the database's first page is random after its header", DAMAGED,
                         with_random_first_page, base)
    yield page_fault("empty-inside", "the database is empty", DAMAGED, lambda data: b"")
    yield page_fault("free-list", "the database header counts five free pages", DAMAGED,
                     lambda data: data[:36] + struct.pack(">I", 5) + data[40:], exit_codes=partial_loss())
    yield index_page_fault()


def stored_database_faults():
    """Return faults of the stored bytes of Manifest.db, and of the files beside it."""
    yield stored_fault("empty", "Manifest.db is empty", lambda data: b"")
    # The next two faults keep every page. Only the padding after the last page is invalid.
    yield stored_fault("cut-by-one", "Manifest.db's last byte is missing", lambda data: data[:-1], partial_loss())
    yield stored_fault("cut-by-32", "Manifest.db's last two blocks are missing", lambda data: data[:-32])
    yield stored_fault(
        "cut-by-half", "Manifest.db's second half is missing", lambda data: data[: len(data) // 2 // 16 * 16]
    )
    yield stored_fault("block-more", "Manifest.db has an extra block", lambda data: data + bytes(16), partial_loss())
    yield stored_fault("first-block", "one bit of Manifest.db's first block is flipped", lambda data: flip_bit(data, 3))
    for base in ("encrypted", "plain", "mbdb"):
        name = "Manifest.mbdb" if base == "mbdb" else "Manifest.db"

        def remove_manifest(parts, name=name):
            del parts[name]

        yield Fault(
            f"database-absent-{base}", f"there is no {name}", {"inspect": PARTIAL, **verify_and_plan(DAMAGED)},
            (name.lower()[:11],), base, edits={"parts": remove_manifest})

    def add_journals(path):
        (path / "Manifest.db-wal").write_bytes(b"\x37\x7f\x06\x82" + bytes(4096))
        (path / "Manifest.db-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(512))

    yield Fault("database-journals-planted", "Manifest.db has a log and a journal of another database", partial_loss(),
                ("manifest.db-journal",), "plain", edit_on_disk=add_journals)


# Manifest.mbdb

def record_fault(
    name, summary, exit_code, change, *messages, file_name=KEYCHAIN, base="mbdb", commands=("verify", "plan"),
    is_readable=True
):
    """Return a fault of one record in Manifest.mbdb.

    An unreadable record ends the manifest. This is found only when the whole manifest is read.
    """
    def edit(records):
        change(find_record(records, file_name))
    exit_codes = exit_codes_for(exit_code, commands) if is_readable else {command: exit_code for command in commands}
    return Fault(f"mbdb-{name}", summary, exit_codes, messages, base, edits={"records": edit})


def find_record(records, name):
    """Return the record of a domain and path."""
    return next(record for record in records if (record.domain.decode(), record.path.decode()) == name)


def set_record_name(domain, path):
    """Return an edit that renames a record in Manifest.mbdb."""
    def change(record):
        record.domain, record.path = domain.encode(), path.encode()
    return change


def set_fields(**values):
    """Return an edit that sets attributes of a record. A function is called with the record, and returns the value."""
    def change(record):
        for name, value in values.items():
            setattr(record, name, value(record) if callable(value) else value)
    return change


def mbdb_fault(name, summary, exit_code, change, *messages, base="mbdb"):
    """Return a fault of the bytes of Manifest.mbdb."""
    return Fault(f"mbdb-{name}", summary, verify_and_plan(exit_code), messages, base, edits={"mbdb": change})


class LastRecord:
    """The last record in Manifest.mbdb, which is the keychain file's, and the positions of its parts."""

    def note(self, records):
        """Note the parts of the record."""
        self.parts = records[-1].encoded_parts()

    def complete_and_note(self, records):
        """Give the record a target and a property, so that it has every part. Note the parts."""
        records[-1].target = b"/var/Keychains/elsewhere"
        records[-1].properties = [(b"com.example.attribute", b"an attribute's value")]
        self.note(records)

    def find(self, name, content):
        """Return the position of a part in the file, and its size."""
        position = len(content) - sum(len(encoded) for _, encoded in self.parts)
        for part_name, encoded in self.parts:
            if part_name == name:
                return position, len(encoded)
            position += len(encoded)
        raise ValueError(f"a record has no part {name}")


def truncation_fault(name, part, summary, in_length=False):
    """Return a fault that ends Manifest.mbdb inside one part of its last record, or inside the length of the part."""
    record = LastRecord()

    def cut(content):
        position, size = record.find(part, content)
        return content[:position + (1 if in_length else size // 2 + 1)]

    return Fault(
        f"mbdb-cut-in-{name}", f"Manifest.mbdb ends inside {summary}", verify_and_plan(DAMAGED), ("manifest.mbdb",),
        "mbdb", edits={"records": record.complete_and_note, "mbdb": cut})


def oversized_string_fault(part):
    """Return a fault in which a string of the last record is longer than the file."""
    record = LastRecord()

    def set_length(content):
        position, _ = record.find(part, content)
        return content[:position] + struct.pack(">H", 65_534) + content[position + 2:]

    return Fault(
        f"mbdb-{part}-too-long", f"the length of a record's {part} is 65,534", verify_and_plan(DAMAGED),
        ("manifest.mbdb",), "mbdb", edits={"records": record.note, "mbdb": set_length})


def mbdb_faults():
    """Return faults of the encoding of Manifest.mbdb."""
    parts = {"domain": "a domain", "path": "a path", "target": "a link's target", "digest": "a digest",
             "key": "a file's key", "name": "an attribute's name", "value": "an attribute's value"}
    for part, summary in parts.items():
        yield truncation_fault(part, part, summary)
        yield truncation_fault(f"{part}-length", part, f"the length of {summary}", in_length=True)
    yield truncation_fault("numbers", "numbers", "a record's numbers")
    for part in ("domain", "path", "digest", "key"):
        yield oversized_string_fault(part)
    yield mbdb_fault("magic-flip", "one bit of Manifest.mbdb's first byte is flipped", DAMAGED,
                     lambda data: flip_bit(data, 0))
    yield mbdb_fault("version-6", "Manifest.mbdb has version 6", REFUSED, lambda data: b"mbdb\x06\x00" + data[6:])
    yield mbdb_fault("empty", "Manifest.mbdb is empty", DAMAGED, lambda data: b"")
    yield mbdb_fault("cut-in-magic", "Manifest.mbdb ends inside its magic number", DAMAGED, lambda data: data[:5])
    yield mbdb_fault("byte-more", "Manifest.mbdb has an extra byte", DAMAGED, lambda data: data + b"\x00")


def record_faults():
    """Return faults of a record in Manifest.mbdb: its path, key and digest."""
    def set_path_that_is_not_utf_8(records):
        find_record(records, NOTES).path = b"Documents/\xff\xfe.txt"

    # The manifest is readable, but no file is stored under the hash of the new name.
    yield Fault(
        "mbdb-path-not-utf-8", "a path was changed to one that is not UTF-8", {"verify": PARTIAL, "plan": SUCCESS},
        ("documents/%ff%fe.txt", "listed but not stored"), "mbdb", edits={"records": set_path_that_is_not_utf_8})
    yield record_fault("key-absent", "the keychain file has no key", DAMAGED, set_fields(key=None))
    yield record_fault(
        "key-43", "the keychain file's key has 43 bytes", DAMAGED, set_fields(key=lambda record: record.key[:-1]),
        is_readable=False)
    yield record_fault("key-flip", "one bit of the keychain file's key is flipped", DAMAGED,
                       set_fields(key=lambda record: flip_bit(record.key, 20)))
    yield record_fault("key-class-99", "the keychain file's key names class 99", DAMAGED,
                       set_fields(key=lambda record: with_class_99(record.key)))
    yield record_fault(
        "digest-short", "a digest has 19 bytes", DAMAGED, set_fields(digest=lambda record: record.digest[:-1]),
        file_name=NOTES, commands=("verify",))
    yield Fault("mbdb-attribute-count", "the last record declares one attribute and has none", verify_and_plan(DAMAGED),
                ("manifest.mbdb",), "mbdb", edits={"mbdb": lambda data: data[:-1] + b"\x01"})


def journal_faults():
    """Return faults of a log or journal beside Manifest.db."""
    def add_file(name, contents):
        return lambda path: (path / name).write_bytes(contents)

    for base in ("encrypted", "plain"):
        name_suffix = "" if base == "encrypted" else f"-{base}"
        for name in ("wal", "journal"):
            yield Fault(
                f"list-{name}{name_suffix}", f"there is a Manifest.db-{name} that SQLite did not write",
                {"inspect": SUCCESS, **partial_loss()}, (f"manifest.db-{name}",), base,
                edit_on_disk=add_file(f"Manifest.db-{name}", b"once upon a time" * 300))
        # SQLite leaves such a journal after a finished transaction (journal_mode PERSIST).
        yield Fault(
            f"list-journal-finished{name_suffix}", "nothing is lost: a Manifest.db-journal has a header of zeros",
            {"inspect": SUCCESS, **verify_and_plan(SUCCESS)}, (), base,
            edit_on_disk=add_file("Manifest.db-journal", bytes(5_000)))


def faults():
    """Return all faults of this module."""
    return [
        *name_faults(), *row_faults(), *entry_faults(), *journal_faults(), *schema_faults(), *page_faults(),
        *stored_database_faults(), *mbdb_faults(), *record_faults()]
