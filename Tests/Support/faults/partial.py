"""Backups with one damaged or missing part. The other parts are usable, and the output lists what was skipped.

The exit codes follow from three rules. `inspect` needs no password here. It ends with PARTIAL if it cannot show
something, and otherwise with SUCCESS. `plan` ends with PARTIAL if an item is lost or a restore would refuse the backup,
and with DAMAGED if nothing of the keychain can be read. `verify` ends with DAMAGED if bytes were changed, and with
PARTIAL if only the confirmation that the backup was finished is missing.
"""

import plistlib
import struct

from keychain_backup import mbfile
from keychain_backup.options import KEYCHAIN, File

from . import DAMAGED, PARTIAL, SUCCESS, Fault

KEYCHAIN_IDENTIFIER = mbfile.file_id(*KEYCHAIN)
PAGE_SIZE = 4096
# The first byte of a page of a table's b-tree in SQLite.
INTERIOR_PAGE, LEAF_PAGE = 0x05, 0x0D


def part_fault(name, summary, inspect, verify, plan, *messages, base="encrypted", **edits):
    """Return a fault with the exit codes of `inspect`, `verify` and `plan`.

    `edits` maps stages of the builder to one edit, or to several. A hyphen in a stage's name is an underscore here.
    """
    stages = {stage.replace("_", "-"): _combined(edit) for stage, edit in edits.items()}
    return Fault(
        f"part-{name}", summary, {"inspect": inspect, "verify": verify, "plan": plan}, messages, base, edits=stages
    )


def _combined(edit):
    """Return one edit that applies all edits."""
    if callable(edit):
        return edit

    def apply_all(value):
        for change in edit:
            # An edit that returns nothing has changed the value itself.
            changed = change(value)
            value = value if changed is None else changed
        return value
    return apply_all


# Edits


def remove_version(manifest):
    del manifest["Version"]


def remove_keybag(manifest):
    del manifest["BackupKeyBag"]


def set_keybag_text(manifest):
    manifest["BackupKeyBag"] = "a bag"


def truncate_keybag(manifest):
    manifest["BackupKeyBag"] = manifest["BackupKeyBag"][:-7]


def remove_state(status):
    del status["SnapshotState"]


def remove_keychain(stored):
    del stored[KEYCHAIN_IDENTIFIER]


def replace_with_sentence(data):
    return b"once upon a time there was a keychain"


def set_newer_version(data):
    return b"bplist16" + data[8:]


def convert_to_xml(data):
    return plistlib.dumps(plistlib.loads(data), fmt=plistlib.FMT_XML)


def add_unknown_tables(root):
    root.update(xtra=[{"v_Data": b"?", "v_PersistentRef": b"?"}], note="a value that is not an array")


def append_bytes(count):
    return lambda data: data + b"\x5a" * count


def with_more_files(files):
    """Return the files and 120 more, so that the rows need several pages before and after the keychain's row."""
    return [
        File("AppDomain-org.example.many", f"Documents/{index:04}.txt", f"number {index}\n".encode(), has_digest=False)
        for index in range(120)
    ] + files


def _page(data, number):
    """Return a page of a database. The first page has the number 1."""
    return data[(number - 1) * PAGE_SIZE:number * PAGE_SIZE]


def _leaf_pages(data, number):
    """Return the numbers of the leaf pages below a page of a table's b-tree.

    An interior page has its type (5) at 0, the cell count at 3, its last child at 8, and the offsets of the cells from
    12. Each cell begins with the number of a child. The type of a leaf is 13.
    Source: SQLite, "Database File Format", section 1.6.
    """
    page = _page(data, number)
    if page[0] == LEAF_PAGE:
        return [number]
    assert page[0] == INTERIOR_PAGE, page[0]
    cell_count, = struct.unpack_from(">H", page, 3)
    cell_offsets = struct.unpack_from(f">{cell_count}H", page, 12)
    children = [struct.unpack_from(">I", page, offset)[0] for offset in [*cell_offsets, 8]]
    return [leaf for child in children for leaf in _leaf_pages(data, child)]


class FilesTable:
    """The leaf pages of the Files table. `find_root` is an edit of the stage `sql`, and must run first."""

    def find_root(self, connection):
        """Record the root page of the table."""
        self.root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'Files'").fetchone()[0]

    def leaves(self, data):
        """Return the leaf pages that have the keychain's row, and all other leaf pages."""
        name = KEYCHAIN[1].encode()
        leaves = _leaf_pages(data, self.root)
        with_keychain = [number for number in leaves if name in _page(data, number)]
        return with_keychain, [number for number in leaves if number not in with_keychain]


def overwrite_leaf(has_keychain=False):
    """Return edits that overwrite a leaf page of the Files table, with or without the keychain's row."""
    table = FilesTable()

    def overwrite(data):
        with_keychain, without_keychain = table.leaves(data)
        number = with_keychain[0] if has_keychain else without_keychain[0]
        start = (number - 1) * PAGE_SIZE
        return data[:start] + b"\xff" * 16 + data[start + 16:]

    return {"files": with_more_files, "sql": table.find_root, "database": overwrite}


def truncate_manifest():
    """Return edits that remove the last pages of Manifest.db. The pages with the keychain's row and its index stay."""
    table = FilesTable()

    def with_more_files_at_end(files):
        return files + with_more_files([])

    def cut(data):
        with_keychain, _ = table.leaves(data)
        last_needed_page = max(with_keychain)
        assert last_needed_page < len(data) // PAGE_SIZE, "there is no page after the keychain's page"
        return data[:last_needed_page * PAGE_SIZE]

    return {"files": with_more_files_at_end, "sql": table.find_root, "database": cut}


# Copies that `mvt-ios decrypt-backup` wrote


class DecryptedCopy:
    """A copy whose stored files are decrypted. The manifest, the keybag and the records are unchanged.

    Each method is an edit of a stage. Two methods note the unencrypted contents, and two store them in place of the
    encrypted contents.
    """

    def note_files(self, entries):
        self.plaintexts = {file.identifier: file.content for file, _, _ in entries if file.is_regular}

    def decrypt_files(self, contents):
        return {identifier: self.plaintexts[identifier] for identifier in contents}

    def note_database(self, data):
        self.plaintext_database = data

    def decrypt_database(self, encrypted):
        return self.plaintext_database

    @property
    def edits(self):
        return {"listed": self.note_files, "stored": self.decrypt_files, "database": self.note_database,
                "database-stored": self.decrypt_database}


def decrypted_copy_fault(name, summary, inspect, verify, plan, *messages, **extra_edits):
    """Return a fault of a decrypted copy, with the exit codes of `inspect`, `verify` and `plan`."""
    stages = DecryptedCopy().edits
    for stage, edit in extra_edits.items():
        stage = stage.replace("_", "-")
        stages[stage] = _combined([stages[stage], edit]) if stage in stages else edit
    return Fault(f"part-{name}", summary, {"inspect": inspect, "verify": verify, "plan": plan}, messages, edits=stages)


def property_list_faults():
    """Return faults of Manifest.plist and Status.plist in every layout."""
    for base in ("encrypted", "plain", "mbdb", "mbdb-plain"):
        name_suffix = "" if base == "encrypted" else f"-{base}"
        yield part_fault(
            f"version-absent{name_suffix}", "Manifest.plist has no Version", SUCCESS, DAMAGED, PARTIAL, "version",
            base=base, manifest=remove_version)
        yield part_fault(
            f"state-absent{name_suffix}", "Status.plist has no SnapshotState", SUCCESS, PARTIAL, PARTIAL,
            "status.plist", base=base, status=remove_state)


def unencrypted_part_faults():
    """Return faults of the keybag and the keychain file in unencrypted backups, whose files need no keybag."""
    for base in ("plain", "mbdb-plain"):
        name_suffix = "" if base == "plain" else f"-{base}"
        yield part_fault(
            f"keybag-absent{name_suffix}", "there is no BackupKeyBag, and none is needed for files", PARTIAL, DAMAGED,
            PARTIAL, "keybag", base=base, manifest=remove_keybag)
        yield part_fault(
            f"keybag-text{name_suffix}", "BackupKeyBag is a string, and none is needed for files", PARTIAL, DAMAGED,
            PARTIAL, "keybag", base=base, manifest=set_keybag_text)
        yield part_fault(
            f"keybag-cut{name_suffix}", "BackupKeyBag is cut short, and none is needed for files", PARTIAL, DAMAGED,
            PARTIAL, "keybag", base=base, manifest=truncate_keybag)
        yield part_fault(
            f"keychain-absent{name_suffix}", "the keychain file is listed and not stored", PARTIAL, DAMAGED, DAMAGED,
            "keychain", base=base, stored=remove_keychain)
        yield part_fault(
            f"keychain-sentence{name_suffix}", "the keychain file is a sentence", PARTIAL, DAMAGED, DAMAGED, "keychain",
            base=base, keychain_bytes=replace_with_sentence)
        yield part_fault(
            f"keychain-unknown{name_suffix}", "the keychain file is a property list of an unknown version", PARTIAL,
            DAMAGED, DAMAGED, "keychain", base=base, keychain_bytes=set_newer_version)
        yield part_fault(
            f"keychain-xml{name_suffix}", "nothing is lost: the keychain file is a property list in XML", SUCCESS,
            SUCCESS, SUCCESS, base=base, keychain_bytes=convert_to_xml)


def encrypted_part_faults():
    """Return faults of the keybag and the keychain file in an encrypted backup."""
    yield part_fault(
        "keybag-absent-encrypted", "there is no BackupKeyBag, so nothing can be decrypted", PARTIAL, DAMAGED, DAMAGED,
        "keybag", manifest=remove_keybag)
    yield part_fault(
        "keychain-sentence-encrypted", "the keychain file is a sentence", SUCCESS, DAMAGED, DAMAGED, "keychain",
        keychain_bytes=replace_with_sentence)
    yield part_fault(
        "keychain-xml-encrypted", "nothing is lost: the keychain file is a property list in XML", SUCCESS, SUCCESS,
        SUCCESS, keychain_bytes=convert_to_xml)
    yield part_fault(
        "keychain-tables", "nothing is lost: the keychain file has keys that are not a table's", SUCCESS, SUCCESS,
        SUCCESS, keychain=add_unknown_tables)


def manifest_faults():
    """Return faults of Manifest.db that leave some of its rows readable."""
    for base in ("encrypted", "plain"):
        name_suffix = "" if base == "encrypted" else f"-{base}"
        inspect = SUCCESS if base == "encrypted" else PARTIAL
        yield part_fault(
            f"list-tail{name_suffix}", "seven bytes follow Manifest.db", SUCCESS, DAMAGED, PARTIAL, "7 bytes",
            base=base, database_stored=append_bytes(7))
        yield part_fault(
            f"list-pages-more{name_suffix}", "three pages follow those that Manifest.db counts", SUCCESS, DAMAGED,
            SUCCESS, "12,288 bytes follow", base=base, database=append_bytes(3 * PAGE_SIZE))
        yield part_fault(
            f"list-zeros-more{name_suffix}", "pages of zeros follow those that Manifest.db counts", SUCCESS,
            DAMAGED, SUCCESS, "8,192 bytes follow", base=base, database=lambda data: data + bytes(2 * PAGE_SIZE))
        yield part_fault(
            f"list-pages-less{name_suffix}", "Manifest.db lacks its last pages, which have no row of the keychain",
            inspect, DAMAGED, PARTIAL, "bytes; ", "can be read", base=base, **truncate_manifest())
        yield part_fault(
            f"list-leaf{name_suffix}", "a page of Manifest.db's rows, without the keychain's row, is garbled", inspect,
            DAMAGED, PARTIAL, "can be read", base=base, **overwrite_leaf())
        yield part_fault(
            f"list-keychain-leaf{name_suffix}", "the page of Manifest.db that has the keychain's row is garbled",
            inspect, DAMAGED, DAMAGED, "can be read", base=base, **overwrite_leaf(has_keychain=True))
    yield part_fault("list-no-database", "Manifest.db is text, so only an overview of the unencrypted backup remains",
                     PARTIAL, DAMAGED, DAMAGED, "manifest.db", base="plain",
                     database_stored=lambda data: b"once upon a time" * 300)


def decrypted_copy_faults():
    """Return decrypted copies, also with a second fault."""
    yield decrypted_copy_fault(
        "decrypted", "everything is stored unencrypted, as mvt-ios decrypt-backup leaves it", PARTIAL, DAMAGED, PARTIAL,
        "stored unencrypted")
    yield decrypted_copy_fault(
        "decrypted-no-state", "a decrypted copy whose Status.plist has no SnapshotState", PARTIAL, DAMAGED, PARTIAL,
        "stored unencrypted", status=remove_state)
    yield decrypted_copy_fault(
        "decrypted-no-version", "a decrypted copy whose Manifest.plist has no Version", PARTIAL, DAMAGED, PARTIAL,
        "stored unencrypted", "version", manifest=remove_version)
    yield decrypted_copy_fault(
        "decrypted-keychain-absent", "a decrypted copy without the keychain file", PARTIAL, DAMAGED, DAMAGED,
        "stored unencrypted", stored=remove_keychain)
    yield decrypted_copy_fault(
        "decrypted-no-keybag", "a decrypted copy without a BackupKeyBag", PARTIAL, DAMAGED, PARTIAL,
        "stored unencrypted", "keybag", manifest=remove_keybag)


def pair_faults():
    """Return backups with two faulty parts."""
    yield part_fault(
        "version-and-state", "there is neither a Version nor a SnapshotState", SUCCESS, DAMAGED, PARTIAL, "version",
        manifest=remove_version, status=remove_state)
    yield part_fault("version-and-keybag", "there is neither a Version nor a BackupKeyBag", PARTIAL, DAMAGED, PARTIAL,
                     "version", "keybag", base="plain", manifest=[remove_version, remove_keybag])
    yield part_fault(
        "version-and-keychain", "there is no Version, and the keychain file is not stored", SUCCESS, DAMAGED, DAMAGED,
        "version", "keychain", manifest=remove_version, stored=remove_keychain)
    yield part_fault(
        "state-and-keychain", "there is no SnapshotState, and the keychain file is not stored", SUCCESS, DAMAGED,
        DAMAGED, "keychain", status=remove_state, stored=remove_keychain)
    yield part_fault(
        "state-and-xml", "there is no SnapshotState, and the keychain file is XML", SUCCESS, PARTIAL, PARTIAL,
        "status.plist", status=remove_state, keychain_bytes=convert_to_xml)
    yield part_fault(
        "keybag-and-keychain", "there is no BackupKeyBag, and the keychain file is not stored", PARTIAL, DAMAGED,
        DAMAGED, "keybag", base="plain", manifest=remove_keybag, stored=remove_keychain)
    yield part_fault(
        "keybag-and-xml", "there is no BackupKeyBag, and the keychain file is XML", PARTIAL, DAMAGED, PARTIAL, "keybag",
        base="plain", manifest=remove_keybag, keychain_bytes=convert_to_xml)
    yield part_fault(
        "tables-and-xml", "nothing is lost: the keychain file is XML with keys that are not a table's", SUCCESS,
        SUCCESS, SUCCESS, keychain=add_unknown_tables, keychain_bytes=convert_to_xml)
    yield part_fault(
        "tail-and-keychain", "bytes follow Manifest.db, and the keychain file is not stored", SUCCESS, DAMAGED, DAMAGED,
        "7 bytes", "keychain", database_stored=append_bytes(7), stored=remove_keychain)
    yield part_fault("tail-and-version", "bytes follow Manifest.db, and there is no Version", SUCCESS, DAMAGED, PARTIAL,
                     "7 bytes", "version", database_stored=append_bytes(7), manifest=remove_version)
    yield part_fault(
        "leaf-and-tail", "a page of rows is garbled, and bytes follow Manifest.db", SUCCESS, DAMAGED, PARTIAL,
        "7 bytes", "can be read", database_stored=append_bytes(7), **overwrite_leaf())
    yield part_fault(
        "leaf-and-keybag", "a page of rows is garbled, and there is no BackupKeyBag", PARTIAL, DAMAGED, PARTIAL,
        "keybag", "can be read", base="plain", manifest=remove_keybag, **overwrite_leaf())
    yield part_fault(
        "leaf-and-state", "a page of rows is garbled, and there is no SnapshotState", SUCCESS, DAMAGED, PARTIAL,
        "can be read", status=remove_state, **overwrite_leaf())


def faults():
    """Return all faults of this module."""
    return [
        *property_list_faults(), *unencrypted_part_faults(), *encrypted_part_faults(), *manifest_faults(),
        *decrypted_copy_faults(), *pair_faults()]
