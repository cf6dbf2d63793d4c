"""Faults of Manifest.plist and Status.plist, and of what lies in their place."""

import os
import plistlib
import struct

from . import DAMAGED, NOT_FOUND, OK, PARTIAL, REFUSED, Fault, flipped


def everywhere(code):
    """What shows itself without a password. Of what is damaged `inspect` shows the rest."""
    return {"inspect": PARTIAL if code == DAMAGED else code, "verify": code, "plan": code}


# Without Manifest.plist there is nothing for `inspect` to show either.
NOTHING_LEFT = {"inspect": DAMAGED, "verify": DAMAGED, "plan": DAMAGED}


def value(name, wrong, code, change, *says, base="encrypted"):
    return Fault(f"manifest-{name}", wrong, {"verify": code, "plan": code}, says, base, edits={"manifest": change})


def part(name, wrong, code, change, *says, base="encrypted"):
    def edit(parts):
        changed = change(parts["Manifest.plist"])
        if changed is None:
            del parts["Manifest.plist"]
        else:
            parts["Manifest.plist"] = changed
    codes = code if isinstance(code, dict) else everywhere(code)
    return Fault(f"manifest-{name}", wrong, codes, says or ("manifest.plist",), base, edits={"parts": edit})


def as_xml(change):
    return lambda data: change(plistlib.dumps(plistlib.loads(data)))


def key(change):
    return lambda manifest: manifest.update(ManifestKey=change(manifest["ManifestKey"]))


def with_entity(declared, reference=b"&e;"):
    """The property list in XML, its device's name taken from an entity that it declares."""
    def change(text):
        start, end = text.index(b"<!DOCTYPE"), text.index(b"<plist")
        declaration = b"<!DOCTYPE plist [<!ENTITY " + declared + b">]>\n"
        return text[:start] + declaration + text[end:].replace(b"old-phone", reference)
    return as_xml(change)


def nested(depth):
    """A binary property list of arrays, each in the one before."""
    objects = [b"\xa1" + struct.pack(">H", index + 1) for index in range(depth)] + [b"\x09"]
    offsets, body = [], b"bplist00"
    for encoded in objects:
        offsets.append(len(body))
        body += encoded
    table = b"".join(struct.pack(">I", offset) for offset in offsets)
    return body + table + bytes(6) + bytes([4, 2]) + struct.pack(">QQQ", len(objects), 0, len(body))


def property_lists():
    yield part("absent", "there is no Manifest.plist", NOTHING_LEFT, lambda data: None)
    yield part("absent-mbdb", "there is no Manifest.plist beside Manifest.mbdb", NOTHING_LEFT, lambda data: None,
               base="mbdb")
    yield part("absent-plain", "there is no Manifest.plist beside an unencrypted Manifest.db", DAMAGED,
               lambda data: None, base="plain")
    yield part("empty", "Manifest.plist is empty", DAMAGED, lambda data: b"")
    yield part("text", "Manifest.plist is a sentence", DAMAGED, lambda data: b"once upon a time")
    yield part("cut", "half of Manifest.plist is absent", DAMAGED, lambda data: data[:len(data) // 2])
    yield part("cut-by-one", "Manifest.plist's last byte is absent", DAMAGED, lambda data: data[:-1])
    yield part("magic-flip", "one bit of Manifest.plist's first byte is flipped", DAMAGED,
               lambda data: flipped(data, 0))
    yield part("array", "Manifest.plist holds an array", DAMAGED,
               lambda data: plistlib.dumps([], fmt=plistlib.FMT_BINARY))
    yield part("nested", "Manifest.plist nests 10,000 deep", REFUSED, lambda data: nested(10_000))
    yield part("offset-table", "the offset table begins after the end", DAMAGED,
               lambda data: data[:-8] + struct.pack(">Q", len(data) + 1))
    yield part("xml-cut", "Manifest.plist is XML and half of it is absent", DAMAGED,
               as_xml(lambda text: text[:len(text) // 2]))
    yield part("xml-base64", "Manifest.plist is XML and its keybag is not base64", DAMAGED,
               as_xml(lambda text: text.replace(b"<data>", b"<data>*", 1)))
    yield part("xml-not-utf-8", "Manifest.plist is XML and a string in it is not UTF-8", DAMAGED,
               as_xml(lambda text: text.replace(b"old-phone", b"old\xff\xfephone")))
    yield part("xml-entity", "Manifest.plist is XML and declares an entity", REFUSED,
               with_entity(b'e "old-phone"'))
    yield part("xml-external-entity", "Manifest.plist is XML and declares an entity that is a file", REFUSED,
               with_entity(b'e SYSTEM "file:///etc/hostname"'))
    yield part("xml-parameter-entity", "Manifest.plist is XML and fetches its declarations", REFUSED,
               with_entity(b'% p SYSTEM "http://example.invalid/p.dtd"> %p; <!ENTITY q "q"', b"old-phone"))


def values():
    yield value("no-keybag", "BackupKeyBag is absent", DAMAGED, lambda found: found.pop("BackupKeyBag") and None,
                "keybag")
    yield value("keybag-text", "BackupKeyBag is a string", DAMAGED, lambda found: found.update(BackupKeyBag="bag"),
                "keybag")
    yield value("key-43", "ManifestKey has 43 bytes", DAMAGED, key(lambda data: data[:-1]))
    yield value("key-45", "ManifestKey has 45 bytes", DAMAGED, key(lambda data: data + b"\x00"))
    yield value("key-text", "ManifestKey is a string", DAMAGED, key(lambda data: "key"))
    yield value("key-flip", "one bit of ManifestKey is flipped", DAMAGED, key(lambda data: flipped(data, 20)))
    yield value("key-class-99", "ManifestKey names class 99", DAMAGED,
                key(lambda data: struct.pack("<I", 99) + data[4:]))
    yield value("key-class-4", "ManifestKey names class 4 and is wrapped for 3", DAMAGED,
                key(lambda data: struct.pack("<I", 4) + data[4:]))
    yield value("says-not-encrypted", "IsEncrypted is false though everything is encrypted", REFUSED,
                lambda found: found.update(IsEncrypted=False))
    yield value("says-not-encrypted-mbdb", "IsEncrypted is false though everything is encrypted", REFUSED,
                lambda found: found.update(IsEncrypted=False), base="mbdb")
    # What is in it can be read; no device wrote it so, and what it was nobody can tell.
    yield Fault("manifest-says-encrypted", "IsEncrypted is true though everything is in clear",
                {"inspect": OK, "verify": DAMAGED, "plan": PARTIAL}, ("says that it is encrypted",), base="plain",
                edits={"manifest": lambda found: found.update(IsEncrypted=True)})


def unfinished(state):
    return lambda status: status.update(SnapshotState=state)


def status():
    for state in ("uploading", "moving"):
        # What is there can be read; devices restore no such backup.
        yield Fault(f"status-{state}", f"the backup was not finished: {state}",
                    {"inspect": OK, "verify": DAMAGED, "plan": DAMAGED},
                    edits={"status": unfinished(state)})
    yield Fault("status-cut", "half of Status.plist is absent", {"verify": DAMAGED}, ("status.plist",), edits={
        "parts": lambda parts: parts.update({"Status.plist": parts["Status.plist"][:40]})})


def replaced(name, make):
    def change(path):
        target = path / name
        target.rename(path.parent / "elsewhere")
        make(target, path.parent / "elsewhere")
    return change


def folders():
    def emptied(path):
        for member in sorted(path.rglob("*"), reverse=True):
            member.rmdir() if member.is_dir() else member.unlink()

    def removed(path):
        emptied(path)
        path.rmdir()

    def one_file(content):
        def change(path):
            removed(path)
            path.write_bytes(content)
        return change

    yield Fault("folder-absent", "there is nothing of that name", everywhere(NOT_FOUND), on_disk=removed)
    yield Fault("folder-empty", "the folder is empty", everywhere(REFUSED), ("manifest.plist",), on_disk=emptied)
    yield Fault("file-of-text", "the file is a letter", everywhere(REFUSED), on_disk=one_file(b"Dear Anna,\n" * 200))
    yield Fault("file-of-database", "the file is a database", everywhere(REFUSED),
                on_disk=one_file(b"SQLite format 3\x00" + bytes(4080)))
    yield Fault("manifest-symlink", "Manifest.plist is a symbolic link to outside", everywhere(REFUSED),
                on_disk=replaced("Manifest.plist", lambda target, source: target.symlink_to(source)))
    yield Fault("manifest-fifo", "Manifest.plist is a pipe that nobody fills", everywhere(REFUSED),
                on_disk=replaced("Manifest.plist", lambda target, _: os.mkfifo(target)))
    yield Fault("database-symlink", "Manifest.db is a symbolic link to outside", {"verify": REFUSED, "plan": REFUSED},
                on_disk=replaced("Manifest.db", lambda target, source: target.symlink_to(source)))


def faults():
    return [*property_lists(), *values(), *status(), *folders()]
