"""Faults of the list of files: Manifest.db's rows, records, schema and pages, and Manifest.mbdb's records."""

import struct

from keychain_backup import mbfile
from keychain_backup.recipe import KEYCHAIN, NOTES

from . import DAMAGED, OK, PARTIAL, REFUSED, Fault, both, flipped, in_part


def judged(code, verbs):
    return {verb: found for verb, found in both(code).items() if verb in verbs}


def row(name, wrong, code, change, *says, of=KEYCHAIN, base="encrypted", verbs=("verify", "plan")):
    """A fault of one row: [fileID, domain, relativePath, flags, file]."""
    def edit(rows):
        change(next(found for found in rows if tuple(found[1:3]) == of))
    return Fault(f"list-{name}", wrong, judged(code, verbs), says, base, edits={"rows": edit})


def listed(name, wrong, code, change, of=KEYCHAIN, base="encrypted", verbs=("verify", "plan")):
    """A fault of what the list says of a file: [file, key field, digest]."""
    def edit(entries):
        position = next(i for i, entry in enumerate(entries) if (entry[0].domain, entry[0].path) == of)
        entry = list(entries[position])
        change(entry)
        entries[position] = tuple(entry)
    return Fault(f"list-{name}", wrong, judged(code, verbs), (), base, edits={"listed": edit})


def named(domain, path):
    """The row under this name, with the fileID that goes with it."""
    def change(found):
        found[0], found[1], found[2] = mbfile.file_id(domain, path), domain, path
    return change


def hostile_names():
    for name, wrong, domain, path in (
        ("path-escape", "climbs out of its domain", NOTES[0], "../../.ssh/authorized_keys"),
        ("path-escape-inside", "climbs out from further in", NOTES[0], "Documents/../../../evil"),
        ("path-escape-end", "ends in ..", NOTES[0], "Documents/.."),
        ("path-absolute", "is absolute", NOTES[0], "/etc/passwd"),
        ("path-dot", "has a component .", NOTES[0], "Documents/./notes.txt"),
        ("path-empty-component", "has an empty component", NOTES[0], "Documents//notes.txt"),
        ("path-nul", "holds a NUL", NOTES[0], "Documents/no\x00tes.txt"),
        ("domain-escape", "has a domain that climbs out", "../HomeDomain", "notes.txt"),
        ("domain-slash", "has a domain that is a path", "/etc", "passwd"),
    ):
        says = (path.split("\x00")[0],) if "escape" in name and domain == NOTES[0] else ()
        yield row(name, f"a file's name {wrong}", REFUSED, named(domain, path), *says, of=NOTES, verbs=("verify",))
        if name in ("path-escape", "path-absolute", "path-nul", "domain-escape"):
            yield record(name, f"a file's name {wrong}", REFUSED, renamed(domain, path), of=NOTES, verbs=("verify",))


def rows():
    def identifier(value):
        return lambda found: found.__setitem__(0, value)

    def column(index, value):
        return lambda found: found.__setitem__(index, value)

    yield row("file-id-of-another", "the keychain's fileID is not the hash of its name", REFUSED, identifier("ab" * 20))
    yield row("file-id-of-another-notes", "a file's fileID is not the hash of its name", REFUSED, identifier("ab" * 20),
              of=NOTES, verbs=("verify",))
    yield row("file-id-upper-case", "a fileID is written in upper case", REFUSED,
              lambda found: found.__setitem__(0, found[0].upper()), of=NOTES, verbs=("verify",))
    yield row("file-id-escape", "a fileID is a path", REFUSED, identifier("../" + "a" * 37), of=NOTES,
              verbs=("verify",))
    yield row("file-id-short", "a fileID has 39 digits", REFUSED, lambda found: found.__setitem__(0, found[0][:-1]),
              of=NOTES, verbs=("verify",))
    yield row("record-null", "the keychain's record is NULL", DAMAGED, column(4, None))
    yield row("record-text", "the keychain's record is a string", DAMAGED, column(4, "text"))
    yield row("record-empty", "the keychain's record is empty", DAMAGED, column(4, b""))
    yield row("record-cut", "half of the keychain's record is absent", DAMAGED,
              lambda found: found.__setitem__(4, found[4][:len(found[4]) // 2]))
    yield row("record-magic-flip", "the keychain's record doesn't start as a property list", DAMAGED,
              lambda found: found.__setitem__(4, flipped(found[4], 0)))
    yield listed("key-absent", "the keychain file has no key", DAMAGED, lambda entry: entry.__setitem__(1, None))
    yield listed("key-43", "the keychain file's key has 43 bytes", DAMAGED, lambda e: e.__setitem__(1, e[1][:-1]))
    yield listed("key-flip", "one bit of the keychain file's key is flipped", DAMAGED,
                 lambda entry: entry.__setitem__(1, flipped(entry[1], 20)))
    yield listed("key-class-99", "the keychain file's key names class 99", DAMAGED,
                 lambda entry: entry.__setitem__(1, struct.pack("<I", 99) + entry[1][4:]))
    for base in ("encrypted", "plain", "mbdb", "mbdb-plain"):
        mark = "" if base == "encrypted" else f"-{base}"
        yield listed(f"digest-flip{mark}", "one bit of an ordinary file's digest is flipped", DAMAGED,
                     lambda entry: entry.__setitem__(2, flipped(entry[2], 7)), NOTES, base, ("verify",))
    yield listed("digest-flip-keychain", "one bit of the keychain file's digest is flipped", DAMAGED,
                 lambda entry: entry.__setitem__(2, flipped(entry[2], 7)), verbs=("verify",))


def sql(name, wrong, code, *statements, base="encrypted", codes=None):
    def edit(connection):
        for statement in statements:
            connection.execute(statement)
    return Fault(f"database-{name}", wrong, codes or both(code), (), base, edits={"sql": edit})


def pages(name, wrong, code, change, base="encrypted", codes=None):
    return Fault(f"database-{name}", wrong, codes or both(code), (), base, edits={"database": change})


def stored(name, wrong, change, codes=None):
    return Fault(f"database-{name}", wrong, codes or both(DAMAGED), edits={"database-stored": change})


def garbled_index():
    """The root page of one index becomes a page of no kind."""
    root = []

    def find(connection):
        found = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'FilesFlagsIdx'").fetchone()
        root[:] = found

    def garble(data):
        return data[:(root[0] - 1) * 4096] + b"\xff" + data[(root[0] - 1) * 4096 + 1:]

    return Fault("database-index-garbled", "an index's page is of no kind", {"verify": DAMAGED},
                 edits={"sql": find, "database": garble})


def schemas():
    for base in ("encrypted", "plain"):
        mark = "" if base == "encrypted" else f"-{base}"
        yield sql(f"trigger{mark}", "Manifest.db has a trigger", REFUSED,
                  "CREATE TRIGGER hostile AFTER INSERT ON Files BEGIN DELETE FROM Files; END", base=base)
        yield sql(f"view{mark}", "Files is a view", REFUSED, "ALTER TABLE Files RENAME TO Others",
                  "CREATE VIEW Files AS SELECT * FROM Others", base=base)
    yield sql("extra-view", "Manifest.db has a view beside its tables", REFUSED, "CREATE VIEW More AS SELECT 1")
    yield sql("temp-trigger", "Manifest.db has a trigger on its properties", REFUSED,
              "CREATE TRIGGER hostile AFTER INSERT ON Properties BEGIN DELETE FROM Files; END")
    yield sql("no-files", "there is no Files table", DAMAGED, "DROP TABLE Files")
    yield sql("column-renamed", "Files has no column file", DAMAGED, "ALTER TABLE Files RENAME COLUMN file TO film")
    yield sql("keychain-unlisted", "the keychain file is stored and not listed", DAMAGED,
              "DELETE FROM Files WHERE relativePath = 'keychain-backup.plist'", codes=both(DAMAGED))


def bytes_of_databases():
    for base in ("encrypted", "plain"):
        mark = "" if base == "encrypted" else f"-{base}"
        yield pages(f"magic-flip{mark}", "one bit of the database's first byte is flipped", DAMAGED,
                    lambda data: flipped(data, 0), base)
        yield pages(f"page-size-3{mark}", "the database says pages of 3 bytes", DAMAGED,
                    lambda data: data[:16] + b"\x00\x03" + data[18:], base)
        yield pages(f"page-size-0{mark}", "the database says pages of 0 bytes", DAMAGED,
                    lambda data: data[:16] + b"\x00\x00" + data[18:], base)
        yield pages(f"cut{mark}", "the database's second half is absent", DAMAGED,
                    lambda data: data[:len(data) // 8192 * 4096], base)
        yield pages(f"first-page{mark}", "the database's first page is random after its header", DAMAGED,
                    lambda data: data[:100] + bytes(i * 89 + 7 & 0xFF for i in range(3996)) + data[4096:], base)
    yield pages("empty-inside", "the database has no byte", DAMAGED, lambda data: b"")
    yield pages("free-list", "the database says that it has five free pages", DAMAGED,
                lambda data: data[:36] + struct.pack(">I", 5) + data[40:], codes=in_part())
    yield garbled_index()
    yield stored("empty", "Manifest.db is empty", lambda data: b"")
    # Of both every page is there: what is behind the last one is no block of padding.
    yield stored("cut-by-one", "Manifest.db's last byte is absent", lambda data: data[:-1], in_part())
    yield stored("cut-by-32", "Manifest.db's last two blocks are absent", lambda data: data[:-32])
    yield stored("cut-by-half", "Manifest.db's second half is absent", lambda data: data[:len(data) // 2 // 16 * 16])
    yield stored("block-more", "Manifest.db has a block more", lambda data: data + bytes(16), in_part())
    yield stored("first-block", "one bit of Manifest.db's first block is flipped", lambda data: flipped(data, 3))
    for base in ("encrypted", "plain", "mbdb"):
        name = "Manifest.mbdb" if base == "mbdb" else "Manifest.db"
        yield Fault(f"database-absent-{base}", f"there is no {name}", {"inspect": PARTIAL, **both(DAMAGED)}, (name.lower()[:11],), base,
                    edits={"parts": lambda parts, name=name: parts.pop(name) and None})

    def planted(path):
        (path / "Manifest.db-wal").write_bytes(b"\x37\x7f\x06\x82" + bytes(4096))
        (path / "Manifest.db-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(512))

    yield Fault("database-journals-planted", "Manifest.db has a log and a journal that do not fit it", in_part(),
                ("manifest.db-journal",), "plain", on_disk=planted)


# Manifest.mbdb.

def record(name, wrong, code, change, *says, of=KEYCHAIN, base="mbdb", verbs=("verify", "plan"), is_readable=True):
    """A fault of one record. An unreadable record ends the list, and only reading it shows that."""
    def edit(records):
        change(record_of(records, of))
    codes = judged(code, verbs) if is_readable else {verb: code for verb in verbs}
    return Fault(f"mbdb-{name}", wrong, codes, says, base, edits={"records": edit})


def record_of(records, name):
    """Returns the record of a domain and path."""
    return next(found for found in records if (found.domain.decode(), found.path.decode()) == name)


def renamed(domain, path):
    def change(found):
        found.domain, found.path = domain.encode(), path.encode()
    return change


def setting(**values):
    def change(found):
        for name, value in values.items():
            setattr(found, name, value(found) if callable(value) else value)
    return change


def stream(name, wrong, code, change, *says, base="mbdb"):
    return Fault(f"mbdb-{name}", wrong, both(code), says, base, edits={"mbdb": change})


def cut_inside(part, name, wrong):
    """The list ends in the middle of one part of its last record, the keychain file's."""
    pieces = []

    def keep(records):
        records[-1].target = b"/var/Keychains/elsewhere"
        records[-1].properties = [(b"com.example.attribute", b"an attribute's value")]
        pieces[:] = records[-1].pieces()

    def cut(content):
        position = len(content) - sum(len(piece) for _, piece in pieces)
        for found, piece in pieces:
            if found == part:
                return content[:position + (1 if name.endswith("-length") else len(piece) // 2 + 1)]
            position += len(piece)
        raise ValueError(f"a record has no part {part}")

    return Fault(f"mbdb-cut-in-{name}", f"Manifest.mbdb ends inside {wrong}", both(DAMAGED), ("manifest.mbdb",),
                 "mbdb", edits={"records": keep, "mbdb": cut})


def overflowing(part):
    """A string of the last record says that it is longer than the file."""
    pieces = []

    def keep(records):
        pieces[:] = records[-1].pieces()

    def cut(content):
        position = len(content) - sum(len(piece) for _, piece in pieces)
        for found, piece in pieces:
            if found == part:
                return content[:position] + b"\xff\xfe" + content[position + 2:]
            position += len(piece)
        raise ValueError(f"a record has no part {part}")

    return Fault(f"mbdb-{part}-too-long", f"a record's {part} says 65,534 bytes", both(DAMAGED), ("manifest.mbdb",),
                 "mbdb", edits={"records": keep, "mbdb": cut})


def streams():
    parts = {"domain": "a domain", "path": "a path", "target": "a link's target", "digest": "a digest",
             "key": "a file's key", "name": "an attribute's name", "value": "an attribute's value"}
    for part, wrong in parts.items():
        yield cut_inside(part, part, wrong)
        yield cut_inside(part, f"{part}-length", f"the length of {wrong}")
    yield cut_inside("numbers", "numbers", "a record's numbers")
    for part in ("domain", "path", "digest", "key"):
        yield overflowing(part)
    yield stream("magic-flip", "one bit of Manifest.mbdb's first byte is flipped", DAMAGED,
                 lambda data: flipped(data, 0))
    yield stream("version-6", "Manifest.mbdb says version 6", REFUSED, lambda data: b"mbdb\x06\x00" + data[6:])
    yield stream("empty", "Manifest.mbdb is empty", DAMAGED, lambda data: b"")
    yield stream("cut-in-magic", "Manifest.mbdb ends inside its mark", DAMAGED, lambda data: data[:5])
    yield stream("byte-more", "Manifest.mbdb has a byte more", DAMAGED, lambda data: data + b"\x00")


def records():
    # The name is read, and its hash finds no file: that of the old name is stored.
    yield Fault("mbdb-path-not-utf-8", "a path was changed to one that is not UTF-8", {"verify": PARTIAL, "plan": OK},
                ("documents/%ff%fe.txt", "listed but not stored"), "mbdb",
                edits={"records": lambda records: setting(path=b"Documents/\xff\xfe.txt")(record_of(records, NOTES))})
    yield record("key-absent", "the keychain file has no key", DAMAGED, setting(key=None))
    yield record("key-43", "the keychain file's key has 43 bytes", DAMAGED, setting(key=lambda found: found.key[:-1]),
                 is_readable=False)
    yield record("key-flip", "one bit of the keychain file's key is flipped", DAMAGED,
                 setting(key=lambda found: flipped(found.key, 20)))
    yield record("key-class-99", "the keychain file's key names class 99", DAMAGED,
                 setting(key=lambda found: struct.pack("<I", 99) + found.key[4:]))
    yield record("digest-short", "a digest has 19 bytes", DAMAGED, setting(digest=lambda found: found.digest[:-1]),
                 of=NOTES, verbs=("verify",))
    yield Fault("mbdb-attribute-count", "the last record says one attribute and has none", both(DAMAGED),
                ("manifest.mbdb",), "mbdb", edits={"mbdb": lambda data: data[:-1] + b"\x01"})


def journals():
    def beside(name, contents):
        return lambda path: (path / name).write_bytes(contents)

    for base in ("encrypted", "plain"):
        mark = "" if base == "encrypted" else f"-{base}"
        for name in ("wal", "journal"):
            yield Fault(f"list-{name}{mark}", f"a Manifest.db-{name} that is not SQLite's lies beside Manifest.db",
                        {"inspect": OK, **in_part()}, (f"manifest.db-{name}",), base,
                        on_disk=beside(f"Manifest.db-{name}", b"once upon a time" * 300))
        # SQLite leaves such a journal after a finished change (journal_mode PERSIST).
        yield Fault(f"list-journal-finished{mark}", "nothing is lost: a Manifest.db-journal has a header of zeros",
                    {"inspect": OK, **both(OK)}, (), base, on_disk=beside("Manifest.db-journal", bytes(5_000)))


def faults():
    return [*hostile_names(), *rows(), *journals(), *schemas(), *bytes_of_databases(), *streams(), *records()]
