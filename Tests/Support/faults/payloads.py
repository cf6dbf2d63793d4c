"""Faults of stored files, and of the archive that a backup can be packed into."""

import gzip
import os
import tarfile

from keychain_backup import mbfile
from keychain_backup.options import KEYCHAIN, NOTES

from . import DAMAGED, PARTIAL, REFUSED, SUCCESS, Fault, flip_bit, verify_and_plan

IDENTIFIERS = {name: mbfile.file_id(*name) for name in (KEYCHAIN, NOTES)}
# The start of an entry in a zip file's central directory.
ZIP_DIRECTORY_SIGNATURE = b"PK\x01\x02"


def stored_fault(name, summary, exit_codes, change, file_name=KEYCHAIN, base="encrypted", messages=()):
    """Return a fault of a file's stored contents. A change that returns None deletes the file."""
    def edit(contents):
        content = change(contents[IDENTIFIERS[file_name]])
        if content is None:
            del contents[IDENTIFIERS[file_name]]
        else:
            contents[IDENTIFIERS[file_name]] = content
    return Fault(f"payload-{name}", summary, exit_codes, messages, base, edits={"stored": edit})


def without_digest(entries):
    """Return the manifest's entries without digests."""
    return [(file, key, None) for file, key, _ in entries]


def undigested_fault(name, summary, exit_codes, change, file_name=KEYCHAIN):
    """Return a fault that no digest reveals."""
    fault = stored_fault(f"{name}-no-digest", f"{summary}, and there is no digest", exit_codes, change, file_name)
    fault.edits["listed"] = without_digest
    return fault


def disk_fault(name, summary, exit_codes, make, file_name=KEYCHAIN):
    """Return a fault that moves a stored file away, and calls `make` to put something else in its place."""
    def change(folder):
        identifier = IDENTIFIERS[file_name]
        target, elsewhere = folder / identifier[:2] / identifier, folder.parent / "elsewhere"
        target.rename(elsewhere)
        make(target, elsewhere)
    return Fault(f"payload-{name}", summary, exit_codes, edit_on_disk=change)


def break_padding(data):
    """Flip the highest bit of the last byte before the last block, which changes the decrypted padding."""
    return flip_bit(data, -17, 7)


def content_faults():
    """Return faults of the contents of stored files."""
    for base in ("encrypted", "plain", "mbdb", "mbdb-plain"):
        name_suffix = "" if base == "encrypted" else f"-{base}"
        yield stored_fault(
            f"keychain-absent{name_suffix}", "the keychain file is listed and not stored", verify_and_plan(DAMAGED),
            lambda data: None, base=base, messages=("keychain",))
        yield stored_fault(f"notes-absent{name_suffix}", "an ordinary file is listed and not stored",
                           {"verify": PARTIAL, "plan": SUCCESS}, lambda data: None, NOTES, base)
        yield stored_fault(
            f"notes-flip{name_suffix}", "one bit of an ordinary file's first block is flipped", {"verify": DAMAGED},
            lambda data: flip_bit(data, 3), NOTES, base)
    yield stored_fault(
        "keychain-empty", "the stored keychain file is empty", verify_and_plan(DAMAGED), lambda data: b""
    )
    yield stored_fault("keychain-cut-by-one", "the keychain file's last byte is absent", verify_and_plan(DAMAGED),
                       lambda data: data[:-1])
    yield stored_fault("keychain-cut-by-block", "the keychain file's last block is absent", verify_and_plan(DAMAGED),
                       lambda data: data[:-16])
    yield stored_fault("keychain-block-more", "the keychain file has an extra block", verify_and_plan(DAMAGED),
                       lambda data: data + bytes(16))
    yield stored_fault(
        "keychain-first-block", "one bit of the keychain file's first block is flipped", verify_and_plan(DAMAGED),
        lambda data: flip_bit(data, 3))
    yield stored_fault("keychain-padding", "the keychain file's padding is broken", verify_and_plan(DAMAGED),
                       break_padding)


def undigested_faults():
    """Return faults of the contents of stored files that have no digest."""
    yield undigested_fault("keychain-padding", "the keychain file's padding is broken", verify_and_plan(DAMAGED),
                           break_padding)
    yield undigested_fault("notes-padding", "an ordinary file's padding is broken", {"verify": DAMAGED},
                           break_padding, NOTES)
    yield undigested_fault("notes-cut-by-one", "an ordinary file's size is not a multiple of 16", {"verify": DAMAGED},
                           lambda data: data[:-1], NOTES)
    yield undigested_fault("notes-empty", "an ordinary stored file is empty", {"verify": DAMAGED},
                           lambda data: b"", NOTES)


def special_file_faults():
    """Return links and pipes in the place of stored files."""
    yield disk_fault("keychain-symlink", "the keychain file is a symbolic link to outside", verify_and_plan(REFUSED),
                     lambda target, source: target.symlink_to(source))
    yield disk_fault("keychain-fifo", "the keychain file is a pipe without a writer", verify_and_plan(REFUSED),
                     lambda target, _: os.mkfifo(target))
    yield disk_fault("notes-symlink", "an ordinary file is a symbolic link to outside", {"verify": REFUSED},
                     lambda target, source: target.symlink_to(source), NOTES)
    yield disk_fault("notes-fifo", "an ordinary file is a pipe without a writer", {"verify": REFUSED},
                     lambda target, _: os.mkfifo(target), NOTES)


def archive_fault(name, summary, exit_code, suffix, change, *messages, base="encrypted"):
    """Return a fault of an archive's bytes."""
    return Fault(
        f"packed-{name}", summary, verify_and_plan(exit_code), messages, base, suffix=suffix, edit_archive=change
    )


def entries_fault(name, summary, exit_code, change, *messages, suffix="tar"):
    """Return a fault of an archive's entries."""
    return Fault(f"packed-{name}", summary, verify_and_plan(exit_code), messages, suffix=suffix, edit_entries=change)


def special_entry(kind, target=""):
    """Return a tar entry that is not a regular file."""
    info = tarfile.TarInfo()
    info.type, info.linkname = kind, target
    return info


def with_entry(name, content=b"evil"):
    """Return an edit that adds an entry."""
    return lambda entries: entries + [(name, content)]


def name_in_folder(entries, name):
    """Return the name of an entry in the folder of the backup."""
    folder = entries[0][0].split("/")[0]
    return f"{folder}/{name}"


def with_special_entry(name, kind, target=""):
    """Return an edit that adds an entry that is not a regular file to the folder of the backup."""
    return lambda entries: [*entries, (name_in_folder(entries, name), special_entry(kind, target))]


def with_file_behind_link(entries):
    """Return the entries with a symbolic link, and a file whose path goes through it."""
    link = (name_in_folder(entries, "ab"), special_entry(tarfile.SYMTYPE, "/etc"))
    return [*entries, link, (name_in_folder(entries, "ab/passwd"), b"evil")]


def without_manifest(entries):
    """Return the entries without Manifest.plist, which is the first one."""
    return entries[1:]


def without_keychain_file(entries):
    """Return the entries without the keychain file."""
    return [entry for entry in entries if not entry[0].endswith(IDENTIFIERS[KEYCHAIN])]


def three_members(archive, damaged=None):
    """Return a tar.gz as three gzip members. The member with the index `damaged` has a wrong checksum."""
    content = gzip.decompress(archive)
    third = len(content) // 3
    parts = [content[:third], content[third:2 * third], content[2 * third:]]
    members = [gzip.compress(part, mtime=0) for part in parts]
    if damaged is not None:
        # A member ends in its checksum and its uncompressed length, of 4 bytes each.
        members[damaged] = flip_bit(members[damaged], -8)
    return b"".join(members)


def tar_faults():
    """Return archives that are cut in half, and faults of a tar's bytes."""
    for suffix in ("tar", "tar.gz", "tar.zst", "zip"):
        name = suffix.replace(".", "-")
        yield archive_fault(f"{name}-cut-by-half", f"half of a {suffix} file is absent", DAMAGED, suffix,
                            lambda data: data[:len(data) // 2])
    yield archive_fault("tar-cut-in-last-payload", "a tar ends inside its last file", DAMAGED, "tar",
                        lambda data: data[:len(data.rstrip(b"\x00")) - 40])
    yield archive_fault("tar-cut-in-header", "a tar ends inside its second header", DAMAGED, "tar",
                        lambda data: data[:data.index(b"Status.plist") + 100])
    yield archive_fault("tar-checksum", "the checksum of a later header is wrong", DAMAGED, "tar",
                        lambda data: flip_bit(data, data.index(b"Manifest.db") + 100))


def gzip_faults():
    """Return faults of a tar.gz."""
    yield archive_fault(
        "gz-checksum", "the checksum of a tar.gz is wrong", DAMAGED, "tar.gz", lambda data: flip_bit(data, -6)
    )
    yield archive_fault("gz-flip", "one bit in the middle of a tar.gz is flipped", DAMAGED, "tar.gz",
                        lambda data: flip_bit(data, len(data) // 2))
    yield archive_fault("gz-length", "the uncompressed length in a tar.gz is wrong by one", DAMAGED, "tar.gz",
                        lambda data: flip_bit(data, -4), "checksum")
    yield archive_fault("gz-no-trailer", "the checksum and the length of a tar.gz are absent", DAMAGED, "tar.gz",
                        lambda data: data[:-8])
    yield archive_fault("gz-members", "no fault: a tar.gz of three members", SUCCESS, "tar.gz", three_members)
    yield archive_fault("gz-earlier-member", "the checksum of the first of three members is wrong", DAMAGED, "tar.gz",
                        lambda data: three_members(data, damaged=0), "checksum")
    yield archive_fault("gz-twice", "a tar.gz is compressed twice", REFUSED, "tar.gz",
                        lambda data: gzip.compress(data, mtime=0), "more than once")


def zip_faults():
    """Return faults of a zip file."""
    # The checksum of a file is at offset 16 of its entry in the directory.
    yield archive_fault("zip-checksum", "the checksum of a zipped file is wrong", DAMAGED, "zip",
                        lambda data: flip_bit(data, data.index(ZIP_DIRECTORY_SIGNATURE) + 16))
    yield archive_fault("zip-no-directory", "a zip has no directory", DAMAGED, "zip",
                        lambda data: data[:data.index(ZIP_DIRECTORY_SIGNATURE)])
    yield archive_fault("zip-cut-by-one", "a zip's last byte is absent", DAMAGED, "zip", lambda data: data[:-1])
    yield archive_fault("zip-flip", "one bit of a zipped file is flipped", DAMAGED, "zip",
                        lambda data: flip_bit(data, data.index(b"Manifest.db") + 400))


def entries_faults():
    """Return archives with missing entries, dangerous names, and entries that are not regular files."""
    yield entries_fault(
        "no-manifest", "a tar has no Manifest.plist", REFUSED, without_manifest, "manifest.plist")
    yield entries_fault(
        "no-manifest-zip", "a zip has no Manifest.plist", REFUSED, without_manifest, "manifest.plist", suffix="zip")
    yield entries_fault("empty", "a tar has no entry", REFUSED, lambda entries: [])
    for suffix in ("tar", "zip"):
        name_suffix = "" if suffix == "tar" else "-zip"
        yield entries_fault(f"path-escape{name_suffix}", f"a {suffix} entry's name leads out of the target", REFUSED,
                            with_entry("../../.ssh/authorized_keys"), "../../.ssh/authorized_keys", suffix=suffix)
        yield entries_fault(f"path-absolute{name_suffix}", f"a {suffix} entry's name is absolute", REFUSED,
                            with_entry("/etc/passwd"), "/etc/passwd", suffix=suffix)
    yield entries_fault(
        "symlink", "a tar entry is a symbolic link to outside", REFUSED,
        with_special_entry("ab", tarfile.SYMTYPE, "/etc"))
    yield entries_fault(
        "behind-symlink", "the path of a tar entry goes through a symbolic link in the tar", REFUSED,
        with_file_behind_link)
    yield entries_fault(
        "hard-link", "a tar entry is a hard link to outside", REFUSED,
        with_special_entry("ab", tarfile.LNKTYPE, "/etc/passwd"))
    yield entries_fault(
        "fifo", "a tar entry is a pipe", REFUSED, with_special_entry("pipe", tarfile.FIFOTYPE))
    yield entries_fault(
        "device", "a tar entry is a device", REFUSED, with_special_entry("null", tarfile.CHRTYPE))
    yield entries_fault(
        "keychain-absent", "a tar lacks the keychain file that is listed", DAMAGED, without_keychain_file)


def faults():
    """Return all faults of this module."""
    return [
        *content_faults(), *undigested_faults(), *special_file_faults(), *tar_faults(), *gzip_faults(), *zip_faults(),
        *entries_faults()]
