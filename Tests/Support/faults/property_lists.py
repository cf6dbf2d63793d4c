"""Faults of Manifest.plist and Status.plist, and of the folder that contains them."""

import os
import plistlib
import struct

from . import DAMAGED, NOT_FOUND, PARTIAL, REFUSED, SUCCESS, Fault, flip_bit
from .bombs import binary_plist


def exit_codes_of_all_commands(exit_code):
    """Return the exit codes for a fault that is found without a password.

    `inspect` shows the rest of a damaged backup.
    """
    return {"inspect": PARTIAL if exit_code == DAMAGED else exit_code, "verify": exit_code, "plan": exit_code}


# Without Manifest.plist, `inspect` has nothing to show.
NOTHING_READABLE = {"inspect": DAMAGED, "verify": DAMAGED, "plan": DAMAGED}


def value_fault(name, summary, exit_code, change, *messages, base="encrypted"):
    """Return a fault of a value in Manifest.plist."""
    return Fault(
        f"manifest-{name}", summary, {"verify": exit_code, "plan": exit_code}, messages, base,
        edits={"manifest": change})


def manifest_fault(name, summary, exit_code, change, *messages, base="encrypted"):
    """Return a fault of the bytes of Manifest.plist. A change that returns None deletes the file.

    `exit_code` is the code of `verify`, or a dictionary with the codes of all commands.
    """
    def edit(parts):
        changed = change(parts["Manifest.plist"])
        if changed is None:
            del parts["Manifest.plist"]
        else:
            parts["Manifest.plist"] = changed
    exit_codes = exit_code if isinstance(exit_code, dict) else exit_codes_of_all_commands(exit_code)
    return Fault(f"manifest-{name}", summary, exit_codes, messages or ("manifest.plist",), base, edits={"parts": edit})


def as_xml(change):
    """Return an edit that converts a property list to XML, and then applies a change to it."""
    return lambda data: change(plistlib.dumps(plistlib.loads(data)))


def edit_manifest_key(change):
    """Return an edit of ManifestKey."""
    return lambda manifest: manifest.update(ManifestKey=change(manifest["ManifestKey"]))


def with_entity(declared, reference=b"&e;"):
    """Return an edit that replaces the device's name with an entity that the XML declares."""
    def change(text):
        start, end = text.index(b"<!DOCTYPE"), text.index(b"<plist")
        declaration = b"<!DOCTYPE plist [<!ENTITY " + declared + b">]>\n"
        return text[:start] + declaration + text[end:].replace(b"old-phone", reference)
    return as_xml(change)


def nested_arrays(depth):
    """Return a binary property list of nested arrays, each in the previous array."""
    arrays = [b"\xa1" + struct.pack(">H", index + 1) for index in range(depth)]
    return binary_plist([*arrays, b"\x09"], reference_size=2)


def manifest_faults():
    """Return faults of Manifest.plist as a file or as a binary property list."""
    yield manifest_fault("absent", "there is no Manifest.plist", NOTHING_READABLE, lambda data: None)
    yield manifest_fault(
        "absent-mbdb", "there is no Manifest.plist beside Manifest.mbdb", NOTHING_READABLE, lambda data: None,
        base="mbdb")
    yield manifest_fault("absent-plain", "there is no Manifest.plist beside an unencrypted Manifest.db", DAMAGED,
                         lambda data: None, base="plain")
    yield manifest_fault("empty", "Manifest.plist is empty", DAMAGED, lambda data: b"")
    yield manifest_fault("text", "Manifest.plist is a sentence", DAMAGED, lambda data: b"once upon a time")
    yield manifest_fault("cut", "half of Manifest.plist is absent", DAMAGED, lambda data: data[:len(data) // 2])
    yield manifest_fault("cut-by-one", "Manifest.plist's last byte is absent", DAMAGED, lambda data: data[:-1])
    yield manifest_fault("magic-flip", "one bit of Manifest.plist's first byte is flipped", DAMAGED,
                         lambda data: flip_bit(data, 0))
    yield manifest_fault("array", "Manifest.plist contains an array", DAMAGED,
                         lambda data: plistlib.dumps([], fmt=plistlib.FMT_BINARY))
    yield manifest_fault("nested", "Manifest.plist has 10,000 nested arrays", REFUSED,
                         lambda data: nested_arrays(10_000))
    yield manifest_fault("offset-table", "the offset table begins after the end", DAMAGED,
                         lambda data: data[:-8] + struct.pack(">Q", len(data) + 1))


def xml_manifest_faults():
    """Return faults of a Manifest.plist in XML."""
    yield manifest_fault("xml-cut", "Manifest.plist is XML and half of it is absent", DAMAGED,
                         as_xml(lambda text: text[:len(text) // 2]))
    yield manifest_fault("xml-base64", "Manifest.plist is XML and its keybag is not base64", DAMAGED,
                         as_xml(lambda text: text.replace(b"<data>", b"<data>*", 1)))
    yield manifest_fault("xml-not-utf-8", "Manifest.plist is XML and a string in it is not UTF-8", DAMAGED,
                         as_xml(lambda text: text.replace(b"old-phone", b"old\xff\xfephone")))
    yield manifest_fault("xml-entity", "Manifest.plist is XML and declares an entity", REFUSED,
                         with_entity(b'e "old-phone"'))
    yield manifest_fault("xml-external-entity", "Manifest.plist is XML and declares an entity that is a file", REFUSED,
                         with_entity(b'e SYSTEM "file:///etc/hostname"'))
    yield manifest_fault("xml-parameter-entity", "Manifest.plist is XML and loads its declarations from an address",
                         REFUSED,
                         with_entity(b'% p SYSTEM "http://example.invalid/p.dtd"> %p; <!ENTITY q "q"', b"old-phone"))


def value_faults():
    """Return faults of values in Manifest.plist."""
    def remove_keybag(manifest):
        del manifest["BackupKeyBag"]

    yield value_fault("no-keybag", "BackupKeyBag is absent", DAMAGED, remove_keybag, "keybag")
    yield value_fault(
        "keybag-text", "BackupKeyBag is a string", DAMAGED, lambda manifest: manifest.update(BackupKeyBag="bag"),
        "keybag")
    yield value_fault("key-43", "ManifestKey has 43 bytes", DAMAGED, edit_manifest_key(lambda data: data[:-1]))
    yield value_fault("key-45", "ManifestKey has 45 bytes", DAMAGED, edit_manifest_key(lambda data: data + b"\x00"))
    yield value_fault("key-text", "ManifestKey is a string", DAMAGED, edit_manifest_key(lambda data: "key"))
    yield value_fault(
        "key-flip", "one bit of ManifestKey is flipped", DAMAGED, edit_manifest_key(lambda data: flip_bit(data, 20))
    )
    yield value_fault("key-class-99", "ManifestKey names class 99", DAMAGED,
                      edit_manifest_key(lambda data: struct.pack("<I", 99) + data[4:]))
    yield value_fault("key-class-4", "ManifestKey names class 4, but is wrapped for class 3", DAMAGED,
                      edit_manifest_key(lambda data: struct.pack("<I", 4) + data[4:]))
    yield value_fault("says-not-encrypted", "IsEncrypted is false although everything is encrypted", REFUSED,
                      lambda manifest: manifest.update(IsEncrypted=False))
    yield value_fault("says-not-encrypted-mbdb", "IsEncrypted is false although everything is encrypted", REFUSED,
                      lambda manifest: manifest.update(IsEncrypted=False), base="mbdb")
    # The contents can be read. No device writes such a backup, so its history is unknown.
    yield Fault("manifest-says-encrypted", "IsEncrypted is true although nothing is encrypted",
                {"inspect": SUCCESS, "verify": DAMAGED, "plan": PARTIAL}, ("says that it is encrypted",), base="plain",
                edits={"manifest": lambda manifest: manifest.update(IsEncrypted=True)})


def set_snapshot_state(state):
    """Return an edit that sets the state of the snapshot."""
    return lambda status: status.update(SnapshotState=state)


def status_faults():
    """Return faults of Status.plist."""
    for state in ("uploading", "moving"):
        # The files can be read, but devices do not restore such a backup.
        yield Fault(f"status-{state}", f"the backup was not finished: {state}",
                    {"inspect": SUCCESS, "verify": DAMAGED, "plan": DAMAGED},
                    edits={"status": set_snapshot_state(state)})
    def truncate_status(parts):
        parts["Status.plist"] = parts["Status.plist"][:40]

    yield Fault("status-cut", "half of Status.plist is absent", {"verify": DAMAGED}, ("status.plist",),
                edits={"parts": truncate_status})


def replace_file(name, make):
    """Return an edit that moves a file out of the backup, and calls `make` to put something else in its place."""
    def change(folder):
        target, elsewhere = folder / name, folder.parent / "elsewhere"
        target.rename(elsewhere)
        make(target, elsewhere)
    return change


def folder_faults():
    """Return faults of the folder: absent, empty or special files."""
    def remove_contents(path):
        # The reverse order has the contents of a folder before the folder.
        for member in sorted(path.rglob("*"), reverse=True):
            if member.is_dir():
                member.rmdir()
            else:
                member.unlink()

    def remove_folder(path):
        remove_contents(path)
        path.rmdir()

    def replace_with_file(content):
        def change(path):
            remove_folder(path)
            path.write_bytes(content)
        return change

    yield Fault(
        "folder-absent", "there is no file with this name", exit_codes_of_all_commands(NOT_FOUND),
        edit_on_disk=remove_folder)
    yield Fault(
        "folder-empty", "the folder is empty", exit_codes_of_all_commands(REFUSED), ("manifest.plist",),
        edit_on_disk=remove_contents)
    yield Fault(
        "file-of-text", "the file is a letter", exit_codes_of_all_commands(REFUSED),
        edit_on_disk=replace_with_file(b"Dear Anna,\n" * 200))
    yield Fault("file-of-database", "the file is a database", exit_codes_of_all_commands(REFUSED),
                edit_on_disk=replace_with_file(b"SQLite format 3\x00" + bytes(4080)))
    yield Fault("manifest-symlink", "Manifest.plist is a symbolic link to outside", exit_codes_of_all_commands(REFUSED),
                edit_on_disk=replace_file("Manifest.plist", lambda target, source: target.symlink_to(source)))
    yield Fault("manifest-fifo", "Manifest.plist is a pipe without a writer", exit_codes_of_all_commands(REFUSED),
                edit_on_disk=replace_file("Manifest.plist", lambda target, _: os.mkfifo(target)))
    yield Fault("database-symlink", "Manifest.db is a symbolic link to outside", {"verify": REFUSED, "plan": REFUSED},
                edit_on_disk=replace_file("Manifest.db", lambda target, source: target.symlink_to(source)))


def faults():
    """Return all faults of this module."""
    return [*manifest_faults(), *xml_manifest_faults(), *value_faults(), *status_faults(), *folder_faults()]
