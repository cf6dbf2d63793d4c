"""Faults of stored files, and of the single file a backup can be packed into."""

import gzip
import os
import tarfile

from keychain_backup import mbfile
from keychain_backup.recipe import KEYCHAIN, NOTES

from . import DAMAGED, OK, PARTIAL, REFUSED, Fault, both, flipped

IDENTIFIERS = {name: mbfile.file_id(*name) for name in (KEYCHAIN, NOTES)}


def stored(name, wrong, codes, change, of=KEYCHAIN, base="encrypted", says=()):
    def edit(contents):
        content = change(contents[IDENTIFIERS[of]])
        if content is None:
            del contents[IDENTIFIERS[of]]
        else:
            contents[IDENTIFIERS[of]] = content
    return Fault(f"payload-{name}", wrong, codes, says, base, edits={"stored": edit})


def without_digest(entries):
    return [(file, key, None) for file, key, _ in entries]


def undigested(name, wrong, codes, change, of=KEYCHAIN):
    """A fault that no digest tells."""
    fault = stored(f"{name}-no-digest", f"{wrong}, and there is no digest", codes, change, of)
    fault.edits["listed"] = without_digest
    return fault


def path_of(folder, name, base="encrypted"):
    identifier = IDENTIFIERS[name]
    return folder / identifier if base.startswith("mbdb") else folder / identifier[:2] / identifier


def on_disk(name, wrong, codes, make, of=KEYCHAIN, says=()):
    def change(folder):
        target, elsewhere = path_of(folder, of), folder.parent / "elsewhere"
        target.rename(elsewhere)
        make(target, elsewhere)
    return Fault(f"payload-{name}", wrong, codes, says, on_disk=change)


def payloads():
    for base in ("encrypted", "plain", "mbdb", "mbdb-plain"):
        mark = "" if base == "encrypted" else f"-{base}"
        yield stored(f"keychain-absent{mark}", "the keychain file is listed and not stored", both(DAMAGED),
                     lambda data: None, base=base, says=("keychain",))
        yield stored(f"notes-absent{mark}", "an ordinary file is listed and not stored",
                     {"verify": PARTIAL, "plan": OK}, lambda data: None, NOTES, base)
        yield stored(f"notes-flip{mark}", "one bit of an ordinary file's first block is flipped", {"verify": DAMAGED},
                     lambda data: flipped(data, 3), NOTES, base)
    yield stored("keychain-empty", "the keychain file is stored with no byte", both(DAMAGED), lambda data: b"")
    yield stored("keychain-cut-by-one", "the keychain file's last byte is absent", both(DAMAGED),
                 lambda data: data[:-1])
    yield stored("keychain-cut-by-block", "the keychain file's last block is absent", both(DAMAGED),
                 lambda data: data[:-16])
    yield stored("keychain-block-more", "the keychain file has a block more", both(DAMAGED),
                 lambda data: data + bytes(16))
    yield stored("keychain-first-block", "one bit of the keychain file's first block is flipped", both(DAMAGED),
                 lambda data: flipped(data, 3))
    yield stored("keychain-padding", "the keychain file's padding is broken", both(DAMAGED),
                 lambda data: flipped(data, -17, 7))
    yield undigested("keychain-padding", "the keychain file's padding is broken", both(DAMAGED),
                     lambda data: flipped(data, -17, 7))
    yield undigested("notes-padding", "an ordinary file's padding is broken", {"verify": DAMAGED},
                     lambda data: flipped(data, -17, 7), NOTES)
    yield undigested("notes-cut-by-one", "an ordinary file is not a whole number of blocks", {"verify": DAMAGED},
                     lambda data: data[:-1], NOTES)
    yield undigested("notes-empty", "an ordinary file is stored with no byte", {"verify": DAMAGED},
                     lambda data: b"", NOTES)
    yield on_disk("keychain-symlink", "the keychain file is a symbolic link to outside", both(REFUSED),
                  lambda target, source: target.symlink_to(source))
    yield on_disk("keychain-fifo", "the keychain file is a pipe that nobody fills", both(REFUSED),
                  lambda target, _: os.mkfifo(target))
    yield on_disk("notes-symlink", "an ordinary file is a symbolic link to outside", {"verify": REFUSED},
                  lambda target, source: target.symlink_to(source), NOTES)
    yield on_disk("notes-fifo", "an ordinary file is a pipe that nobody fills", {"verify": REFUSED},
                  lambda target, _: os.mkfifo(target), NOTES)


def packed(name, wrong, code, suffix, change, *says, base="encrypted"):
    return Fault(f"packed-{name}", wrong, both(code), says, base, suffix=suffix, packed=change)


def entries(name, wrong, code, change, *says, suffix="tar"):
    return Fault(f"packed-{name}", wrong, both(code), says, suffix=suffix, entries=change)


def member(kind, target=""):
    info = tarfile.TarInfo()
    info.type, info.linkname = kind, target
    return info


def with_entry(name, content=b"evil"):
    return lambda found: found + [(name, content)]


def behind_link(found):
    prefix = found[0][0].split("/")[0]
    return found + [(f"{prefix}/ab", member(tarfile.SYMTYPE, "/etc")), (f"{prefix}/ab/passwd", b"evil")]


def in_folder(found, name):
    return f"{found[0][0].split('/')[0]}/{name}"


def members(packed, wrong=None):
    """The same tar as three members of a gzip, of which one has a wrong checksum."""
    content = gzip.decompress(packed)
    third = len(content) // 3
    parts = [content[:third], content[third:2 * third], content[2 * third:]]
    found = [gzip.compress(part, mtime=0) for part in parts]
    return b"".join(flipped(part, -8) if index == wrong else part for index, part in enumerate(found))


def containers():
    for suffix in ("tar", "tar.gz", "tar.zst", "zip"):
        name = suffix.replace(".", "-")
        yield packed(f"{name}-cut-by-half", f"half of a {suffix} file is absent", DAMAGED, suffix,
                     lambda data: data[:len(data) // 2])
    yield packed("tar-cut-in-last-payload", "a tar ends inside its last file", DAMAGED, "tar",
                 lambda data: data[:len(data.rstrip(b"\x00")) - 40])
    yield packed("tar-cut-in-header", "a tar ends inside its second header", DAMAGED, "tar",
                 lambda data: data[:data.index(b"Status.plist") + 100])
    yield packed("tar-checksum", "the checksum of a later header is wrong", DAMAGED, "tar",
                 lambda data: flipped(data, data.index(b"Manifest.db") + 100))
    yield packed("gz-checksum", "the checksum of a tar.gz is wrong", DAMAGED, "tar.gz", lambda data: flipped(data, -6))
    yield packed("gz-flip", "one bit in the middle of a tar.gz is flipped", DAMAGED, "tar.gz",
                 lambda data: flipped(data, len(data) // 2))
    yield packed("gz-length", "a tar.gz says that it becomes one byte more", DAMAGED, "tar.gz",
                 lambda data: flipped(data, -4), "checksum")
    yield packed("gz-no-trailer", "the checksum and the length of a tar.gz are absent", DAMAGED, "tar.gz",
                 lambda data: data[:-8])
    yield packed("gz-members", "nothing is wrong: a tar.gz of three members", OK, "tar.gz", members)
    yield packed("gz-earlier-member", "the checksum of the first of three members is wrong", DAMAGED, "tar.gz",
                 lambda data: members(data, wrong=0), "checksum")
    yield packed("gz-twice", "a tar.gz is compressed twice", REFUSED, "tar.gz", gzip.compress, "more than once")
    yield packed("zip-checksum", "the checksum of a zipped file is wrong", DAMAGED, "zip",
                 lambda data: flipped(data, data.index(b"PK\x01\x02") + 16))
    yield packed("zip-no-directory", "a zip has no directory", DAMAGED, "zip",
                 lambda data: data[:data.index(b"PK\x01\x02")])
    yield packed("zip-cut-by-one", "a zip's last byte is absent", DAMAGED, "zip", lambda data: data[:-1])
    yield packed("zip-flip", "one bit of a zipped file is flipped", DAMAGED, "zip",
                 lambda data: flipped(data, data.index(b"Manifest.db") + 400))
    yield entries("no-manifest", "a tar has no Manifest.plist", REFUSED, lambda found: found[1:], "manifest.plist")
    yield entries("no-manifest-zip", "a zip has no Manifest.plist", REFUSED, lambda found: found[1:], "manifest.plist",
                  suffix="zip")
    yield entries("empty", "a tar has no entry", REFUSED, lambda found: [])
    for suffix in ("tar", "zip"):
        mark = "" if suffix == "tar" else "-zip"
        yield entries(f"path-escape{mark}", f"a {suffix} entry's name climbs out", REFUSED,
                      with_entry("../../.ssh/authorized_keys"), "../../.ssh/authorized_keys", suffix=suffix)
        yield entries(f"path-absolute{mark}", f"a {suffix} entry's name is absolute", REFUSED,
                      with_entry("/etc/passwd"), "/etc/passwd", suffix=suffix)
    yield entries("symlink", "a tar entry is a symbolic link to outside", REFUSED,
                  lambda found: found + [(in_folder(found, "ab"), member(tarfile.SYMTYPE, "/etc"))])
    yield entries("behind-symlink", "a tar entry lies behind a symbolic link of the same tar", REFUSED, behind_link)
    yield entries("hard-link", "a tar entry is a hard link to outside", REFUSED,
                  lambda found: found + [(in_folder(found, "ab"), member(tarfile.LNKTYPE, "/etc/passwd"))])
    yield entries("fifo", "a tar entry is a pipe", REFUSED,
                  lambda found: found + [(in_folder(found, "pipe"), member(tarfile.FIFOTYPE))])
    yield entries("device", "a tar entry is a device", REFUSED,
                  lambda found: found + [(in_folder(found, "null"), member(tarfile.CHRTYPE))])
    yield Fault("packed-keychain-absent", "a tar lacks the keychain file that is listed", both(DAMAGED), suffix="tar",
                entries=lambda found: [e for e in found if not e[0].endswith(IDENTIFIERS[KEYCHAIN])])


def faults():
    return [*payloads(), *containers()]
