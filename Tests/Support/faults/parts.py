"""Backups of which a part is not as a device leaves it: the rest opens all the same, and what was gone around is named.

How each verb ends follows from three rules. `inspect` needs no password here and ends with PARTIAL where something that
it shows is lost, else with OK. `plan` ends with PARTIAL where an item is lost or a restore would refuse the backup, and
with DAMAGED where nothing of the keychain can be read. `verify` ends with DAMAGED where bytes are not what was written, and with
PARTIAL where nothing but the word that the backup was finished is missing.
"""

import plistlib
import struct

from keychain_backup import mbfile
from keychain_backup.recipe import KEYCHAIN, File

from . import DAMAGED, OK, PARTIAL, Fault, flipped

KEYCHAIN_IDENTIFIER = mbfile.file_id(*KEYCHAIN)
PAGE = 4096


def form(name, wrong, inspect, verify, plan, *says, base="encrypted", **edits):
    """`edits` are stages of the forge, or more than one function of a stage's value."""
    stages = {stage.replace("_", "-"): _one(edit) for stage, edit in edits.items()}
    return Fault(f"part-{name}", wrong, {"inspect": inspect, "verify": verify, "plan": plan}, says, base, edits=stages)


def _one(edit):
    if callable(edit):
        return edit

    def every(value):
        for change in edit:
            changed = change(value)
            value = value if changed is None else changed
        return value
    return every


# Single changes.

def without_version(manifest):
    del manifest["Version"]


def without_keybag(manifest):
    del manifest["BackupKeyBag"]


def keybag_as_text(manifest):
    manifest["BackupKeyBag"] = "a bag"


def keybag_cut(manifest):
    manifest["BackupKeyBag"] = manifest["BackupKeyBag"][:-7]


def says_encrypted(manifest):
    manifest["IsEncrypted"] = True


def without_state(status):
    del status["SnapshotState"]


def without_keychain(stored):
    del stored[KEYCHAIN_IDENTIFIER]


def keychain_flipped(stored):
    stored[KEYCHAIN_IDENTIFIER] = flipped(stored[KEYCHAIN_IDENTIFIER], 3)


def keychain_cut(data):
    return data[:len(data) // 2]


def unlisted_keychain(connection):
    connection.execute("DELETE FROM Files WHERE relativePath = 'keychain-backup.plist'")


def as_sentence(data):
    return b"once upon a time there was a keychain"


def as_newer_list(data):
    return b"bplist16" + data[8:]


def as_xml(data):
    return plistlib.dumps(plistlib.loads(data), fmt=plistlib.FMT_XML)


def unknown_tables(root):
    root.update(xtra=[{"v_Data": b"?", "v_PersistentRef": b"?"}], note="a value that is not an array")


def followed_by(count):
    return lambda data: data + b"\x5a" * count


def without_listed_digests(entries):
    return [(file, key, None) for file, key, _ in entries]


def more_files(files):
    """So many that the rows of the table take several pages, before and behind the keychain's."""
    return [
        File("AppDomain-org.example.many", f"Documents/{index:04}.txt", f"number {index}\n".encode(), has_digest=False)
        for index in range(120)
    ] + files


class Leaf:
    """A page of the table's rows that does not have the keychain's row, garbled."""

    def __init__(self, wants_keychain=False):
        self.wants_keychain = wants_keychain
        self.pages = []

    def find(self, connection):
        """Nothing but the table's own b-tree is asked: which of its pages are leaves is in their first byte."""
        self.root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'Files'").fetchone()[0]

    def garble(self, data):
        leaves = [number for number in _leaves(data, self.root)]
        name = KEYCHAIN[1].encode()
        with_keychain = [number for number in leaves if name in data[(number - 1) * PAGE:number * PAGE]]
        chosen = with_keychain[0] if self.wants_keychain else next(n for n in leaves if n not in with_keychain)
        start = (chosen - 1) * PAGE
        return data[:start] + b"\xff" * 16 + data[start + 16:]


def _leaves(data, number):
    """The leaves below a page of a table's b-tree. Source: SQLite, "Database File Format", section 1.6."""
    page = data[(number - 1) * PAGE:number * PAGE]
    if page[0] == 0x0D:
        return [number]
    assert page[0] == 0x05, page[0]
    count, = struct.unpack_from(">H", page, 3)
    children = [struct.unpack_from(">I", page, struct.unpack_from(">H", page, 12 + 2 * cell)[0])[0]
                for cell in range(count)]
    children.append(struct.unpack_from(">I", page, 8)[0])
    return [leaf for child in children for leaf in _leaves(data, child)]


def damaged_leaf(wants_keychain=False):
    leaf = Leaf(wants_keychain)
    return {"files": more_files, "sql": leaf.find, "database": leaf.garble}


def cut_list():
    """The list without its last pages, as many as are no row's of the keychain, and not its index's."""
    leaf = Leaf()

    def cut(data):
        leaves = _leaves(data, leaf.root)
        name = KEYCHAIN[1].encode()
        needed = max(number for number in leaves if name in data[(number - 1) * PAGE:number * PAGE])
        assert needed < len(data) // PAGE, "there is nothing behind the keychain's page"
        return data[:needed * PAGE]

    return {"files": lambda files: more_files(files)[-len(files):] + more_files([]), "sql": leaf.find, "database": cut}


# What `mvt-ios decrypt-backup` leaves.

class Decrypted:
    """Everything that is stored is in clear under its name; manifest, keybag and the records stay as they were."""

    def listed(self, entries):
        self.plain = {file.identifier: file.content for file, _, _ in entries if file.is_regular}

    def stored(self, found):
        return {identifier: self.plain[identifier] for identifier in found}

    def database(self, data):
        self.content = data

    def database_stored(self, data):
        return self.content

    @property
    def edits(self):
        return {"listed": self.listed, "stored": self.stored, "database": self.database,
                "database-stored": self.database_stored}


def decrypted(name, wrong, inspect, verify, plan, *says, **more):
    stages = Decrypted().edits
    for stage, edit in more.items():
        stage = stage.replace("_", "-")
        stages[stage] = _one([stages[stage], edit]) if stage in stages else edit
    return Fault(f"part-{name}", wrong, {"inspect": inspect, "verify": verify, "plan": plan}, says, edits=stages)


def singles():
    for base in ("encrypted", "plain", "mbdb", "mbdb-plain"):
        mark = "" if base == "encrypted" else f"-{base}"
        yield form(f"version-absent{mark}", "Manifest.plist has no Version", OK, DAMAGED, PARTIAL, "version", base=base,
                   manifest=without_version)
        yield form(f"state-absent{mark}", "Status.plist has no SnapshotState", OK, PARTIAL, PARTIAL, "status.plist",
                   base=base, status=without_state)
    for base in ("plain", "mbdb-plain"):
        mark = "" if base == "plain" else f"-{base}"
        yield form(f"keybag-absent{mark}", "there is no BackupKeyBag, and none is needed for files", PARTIAL, DAMAGED,
                   PARTIAL, "keybag", base=base, manifest=without_keybag)
        yield form(f"keybag-text{mark}", "BackupKeyBag is a string, and none is needed for files", PARTIAL, DAMAGED,
                   PARTIAL, "keybag", base=base, manifest=keybag_as_text)
        yield form(f"keybag-cut{mark}", "BackupKeyBag is cut short, and none is needed for files", PARTIAL, DAMAGED,
                   PARTIAL, "keybag", base=base, manifest=keybag_cut)
        yield form(f"keychain-absent{mark}", "the keychain file is listed and not stored", PARTIAL, DAMAGED, DAMAGED,
                   "keychain", base=base, stored=without_keychain)
        yield form(f"keychain-sentence{mark}", "the keychain file is a sentence", PARTIAL, DAMAGED, DAMAGED, "keychain",
                   base=base, keychain_bytes=as_sentence)
        yield form(f"keychain-unknown{mark}", "the keychain file is a property list of an unknown version", PARTIAL,
                   DAMAGED, DAMAGED, "keychain", base=base, keychain_bytes=as_newer_list)
        yield form(f"keychain-xml{mark}", "nothing is lost: the keychain file is a property list in XML", OK, OK, OK,
                   base=base, keychain_bytes=as_xml)
    yield form("keybag-absent-encrypted", "there is no BackupKeyBag, without which nothing opens", PARTIAL, DAMAGED,
               DAMAGED, "keybag", manifest=without_keybag)
    yield form("keychain-sentence-encrypted", "the keychain file is a sentence", OK, DAMAGED, DAMAGED, "keychain",
               keychain_bytes=as_sentence)
    yield form("keychain-xml-encrypted", "nothing is lost: the keychain file is a property list in XML", OK, OK, OK,
               keychain_bytes=as_xml)
    yield form("keychain-tables", "nothing is lost: the keychain file has keys that are not a table's", OK, OK, OK,
               keychain=unknown_tables)


def lists():
    for base in ("encrypted", "plain"):
        mark = "" if base == "encrypted" else f"-{base}"
        inspect = OK if base == "encrypted" else PARTIAL
        yield form(f"list-tail{mark}", "seven bytes follow Manifest.db", OK, DAMAGED, PARTIAL, "7 bytes", base=base,
                   database_stored=followed_by(7))
        yield form(f"list-pages-more{mark}", "three whole pages follow those that Manifest.db counts", OK, DAMAGED,
                   OK, "12,288 bytes follow", base=base, database=followed_by(3 * PAGE))
        yield form(f"list-zeros-more{mark}", "whole pages of zeros follow those that Manifest.db counts", OK, DAMAGED,
                   OK, "8,192 bytes follow", base=base, database=lambda data: data + bytes(2 * PAGE))
        yield form(f"list-pages-less{mark}", "Manifest.db lacks its last pages, which have no row of the keychain",
                   inspect, DAMAGED, PARTIAL, "bytes; ", "can be read", base=base, **cut_list())
        yield form(f"list-leaf{mark}", "a page of Manifest.db's rows is garbled, not that of the keychain", inspect,
                   DAMAGED, PARTIAL, "can be read", base=base, **damaged_leaf())
        yield form(f"list-keychain-leaf{mark}", "the page of Manifest.db that has the keychain's row is garbled", inspect,
                   DAMAGED, DAMAGED, "can be read", base=base, **damaged_leaf(wants_keychain=True))
    yield form("list-no-database", "Manifest.db is a sentence: a plain backup's overview stays", PARTIAL, DAMAGED,
               DAMAGED, "manifest.db", base="plain", database_stored=lambda data: b"once upon a time" * 300)


def claims():
    yield decrypted("decrypted", "everything is stored unencrypted, as mvt-ios decrypt-backup leaves it", PARTIAL, DAMAGED,
                    PARTIAL, "stored unencrypted")
    yield decrypted("decrypted-no-state", "the same, and Status.plist has no SnapshotState", PARTIAL, DAMAGED, PARTIAL,
                    "stored unencrypted", status=without_state)
    yield decrypted("decrypted-no-version", "the same, and Manifest.plist has no Version", PARTIAL, DAMAGED, PARTIAL,
                    "stored unencrypted", "version", manifest=without_version)
    yield decrypted("decrypted-keychain-absent", "the same, and the keychain file is not stored", PARTIAL, DAMAGED,
                    DAMAGED, "stored unencrypted", stored=without_keychain)
    yield decrypted("decrypted-no-keybag", "the same, and there is no BackupKeyBag", PARTIAL, DAMAGED, PARTIAL,
                    "stored unencrypted", "keybag", manifest=without_keybag)


def pairs():
    yield form("version-and-state", "there is neither a Version nor a SnapshotState", OK, DAMAGED, PARTIAL, "version",
               manifest=without_version, status=without_state)
    yield form("version-and-keybag", "there is neither a Version nor a BackupKeyBag", PARTIAL, DAMAGED, PARTIAL,
               "version", "keybag", base="plain", manifest=[without_version, without_keybag])
    yield form("version-and-keychain", "there is no Version, and the keychain file is not stored", OK, DAMAGED, DAMAGED,
               "version", "keychain", manifest=without_version, stored=without_keychain)
    yield form("state-and-keychain", "there is no SnapshotState, and the keychain file is not stored", OK, DAMAGED,
               DAMAGED, "keychain", status=without_state, stored=without_keychain)
    yield form("state-and-xml", "there is no SnapshotState, and the keychain file is XML", OK, PARTIAL, PARTIAL,
               "status.plist", status=without_state, keychain_bytes=as_xml)
    yield form("keybag-and-keychain", "there is no BackupKeyBag, and the keychain file is not stored", PARTIAL, DAMAGED,
               DAMAGED, "keybag", base="plain", manifest=without_keybag, stored=without_keychain)
    yield form("keybag-and-xml", "there is no BackupKeyBag, and the keychain file is XML", PARTIAL, DAMAGED, PARTIAL,
               "keybag", base="plain", manifest=without_keybag, keychain_bytes=as_xml)
    yield form("tables-and-xml", "nothing is lost: the keychain file is XML with keys that are not a table's", OK, OK, OK,
               keychain=unknown_tables, keychain_bytes=as_xml)
    yield form("tail-and-keychain", "bytes follow Manifest.db, and the keychain file is not stored", OK, DAMAGED,
               DAMAGED, "7 bytes", "keychain", database_stored=followed_by(7), stored=without_keychain)
    yield form("tail-and-version", "bytes follow Manifest.db, and there is no Version", OK, DAMAGED, PARTIAL,
               "7 bytes", "version", database_stored=followed_by(7), manifest=without_version)
    yield form("leaf-and-tail", "a page of rows is garbled, and bytes follow Manifest.db", OK, DAMAGED, PARTIAL,
               "7 bytes", "can be read", database_stored=followed_by(7), **damaged_leaf())
    yield form("leaf-and-keybag", "a page of rows is garbled, and there is no BackupKeyBag", PARTIAL, DAMAGED, PARTIAL,
               "keybag", "can be read", base="plain", manifest=without_keybag, **damaged_leaf())
    yield form("leaf-and-state", "a page of rows is garbled, and there is no SnapshotState", OK, DAMAGED, PARTIAL,
               "can be read", status=without_state, **damaged_leaf())


def faults():
    return [*singles(), *lists(), *claims(), *pairs()]
