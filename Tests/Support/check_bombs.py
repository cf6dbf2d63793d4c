#!/usr/bin/env python3
"""Check the cost of small inputs that expand enormously or take long, and inputs with malicious names and links.

    check_bombs.py PROGRAM [--only NAME] [--show]

Every input is below 1 MB.

- Bombs exist for every kind of archive and for every part of a backup. Each command that reads a backup runs on each
  bomb, and on the published faults that are below 1 MB.
- Documents are JSON and property lists, used as a plan, expectations, a device description and a dump.
- Databases are keychain databases with a log or a journal that declares more than it contains.
- Time bombs have items or expectations that are all compared with each other. A command must take less than 2 s, take
  at most three times as long if the input is doubled, and end within 2 s of a SIGINT.
- Crafted archives have names and links that lead out of the target. They are also copied and exported, and files
  outside of the target must not change.

No command may crash, use more than 10 s of CPU time, or use more memory than 64 MB plus twice the size of the largest
part. For a compressed part, its unpacked size counts, up to the limit for unpacking. Exit 1 if a check fails.
"""

import argparse
import io
import json
import pathlib
import plistlib
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib

import backup_faults
from checks import Checks
from database_bombs import database_bombs
from faults.bombs import binary_plist, nested_arrays
from kill_commands import files
from processes import Launcher

MAX_SECONDS = 10
# Sizes in bytes. Keyhaul unpacks at most MAX_UNPACKED bytes of a compressed file.
BASE_MEMORY, MAX_UNPACKED, MAX_INPUT_BYTES = 64 << 20, 64 << 20, 1_000_000
MEBIBYTE, GIBIBYTE = 1 << 20, 1 << 30
# A tar file is in blocks of this size, and ends in two blocks of zeros.
TAR_BLOCK = 512
ZSTANDARD_BLOCK = 1 << 17
READING_COMMANDS = (
    ["inspect"], ["verify"], ["verify", "--quick"], ["item", "find"], ["convert", "-o", "copy/"],
    ["export", "--files", "out"])
DATABASE_COMMANDS = (["inspect"], ["verify"], ["item", "find"], ["plan", "--to", "phone"])
UDID = "X"
# A stored file that the manifest does not list.
EXTRA_FILE = f"{UDID}/aa/{'a' * 40}"
KEYCHAIN_FILE = "51/51a4616e576dd33cd2abadfea874eb8ff246bf0e"


def tar_header(name, size, kind=b"0", link="", mode=0o600):
    """Return a header in the ustar format. Sizes of more than eleven octal digits are in base 256."""
    size_field = b"%011o\0" % size if size < 8 ** 11 else b"\x80" + size.to_bytes(11, "big")
    name = name if isinstance(name, bytes) else name.encode()
    # Name, mode, user, group, size, time, checksum, type, link, "ustar", version, names, device numbers, prefix.
    block = bytearray(
        struct.pack(
            "100s8s8s8s12s12s8sc100s6s2s32s32s8s8s155s12x", name[:100], b"%07o\0" % mode, b"0000000\0", b"0000000\0",
            size_field, b"00000000000\0", b" " * 8, kind, link.encode(), b"ustar\0", b"00", b"", b"", b"", b"", b"")
    )
    # The checksum is computed with spaces in its place.
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def tar_entry(name, content):
    """Return the header and the padded contents of a small file."""
    return tar_header(name, len(content)) + content + bytes(-len(content) % TAR_BLOCK)


def tar_archive(parts, *extra_blocks):
    """Return a tar with the files of a backup and further blocks."""
    body = b"".join(tar_entry(f"{UDID}/{name}", content) for name, content in parts.items())
    return body + b"".join(extra_blocks) + bytes(2 * TAR_BLOCK)


def unfinished_tar_archive(parts, name, size):
    """Return a tar without its end, after the header of a last file. The caller adds the `size` bytes of that file."""
    return tar_archive(parts)[:-2 * TAR_BLOCK] + tar_header(name, size)


def zip_archive(parts, *extra_entries, zeros=()):
    """Return a zip with the files of a backup and further entries.

    `zeros` lists the names and sizes of files of zeros.
    """
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(f"{UDID}/{name}", content)
        for name, count in zeros:
            with archive.open(f"{UDID}/{name}", "w") as entry:
                for _ in range(count // MEBIBYTE):
                    entry.write(bytes(MEBIBYTE))
        for name, content, mode in extra_entries:
            info = zipfile.ZipInfo("x")
            # System 3 is Unix, which has the mode in the upper 16 bits.
            info.filename, info.external_attr, info.create_system = name, mode << 16, 3
            archive.writestr(info, content)
    return target.getvalue()


def zeros_in_zstandard(head, count):
    """Return a frame with some data and then zeros, in runs of 128 kB that need four bytes each.

    A block has a header of 3 bytes: a bit that marks the last block, the type in two bits (0 is raw, 1 is a run), and
    the size.
    """
    # The magic number, the frame's flags, and the size of the window.
    frame = b"\x28\xb5\x2f\xfd\x00\x88"
    for position in range(0, len(head), ZSTANDARD_BLOCK):
        block = head[position:position + ZSTANDARD_BLOCK]
        frame += (len(block) << 3).to_bytes(3, "little") + block
    run = (ZSTANDARD_BLOCK << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    empty_last_block = b"\x01\0\0"
    return frame + run * (count // ZSTANDARD_BLOCK) + empty_last_block


def zeros_in_gzip(head, count):
    """Return a gzip file that starts with some data and continues with zeros."""
    # 31 selects the format of gzip and the largest window.
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    compressed = packer.compress(head)
    for _ in range(count // MEBIBYTE):
        compressed += packer.compress(bytes(MEBIBYTE))
    return compressed + packer.flush()


def property_lists():
    """Yield the name and contents of malicious property lists."""
    yield "nested", nested_arrays()
    yield "four-billion-elements", binary_plist([b"\xaf\x12\xff\xff\xff\xff"])
    yield "as-many-objects-as-a-number-holds", binary_plist([b"\x09"], count=(1 << 64) - 1)
    yield "wrapping-length", binary_plist([b"\x4f\x13\xff\xff\xff\xff\xff\xff\xff\xf0"])
    yield "cycle", binary_plist([b"\xa1\0\0\0\0"])
    yield (
        "shared-data",
        binary_plist(
            [
                b"\xaf\x12" + struct.pack(">I", 100_000) + struct.pack(">I", 1) * 100_000,
                b"\x4f\x12" + struct.pack(">I", 400_000) + bytes(400_000)]
        ),
    )
    yield "deep-in-binary", binary_plist(
        [b"\xa1" + struct.pack(">I", number + 1) for number in range(100_000)] + [b"\x09"])
    head = b'<?xml version="1.0"?><!DOCTYPE plist [%s]><plist version="1.0">%s</plist>'
    # Each entity, from b to m, consists of ten references to the previous one.
    entities = b'<!ENTITY a "aaaaaaaaaa">' + b"".join(
        b'<!ENTITY %c "%s">' % (98 + n, b"&%c;" % (97 + n) * 10) for n in range(12))
    yield "a-billion-laughs", head % (entities, b"<string>&m;</string>")
    yield "an-entity-of-a-file", head % (b'<!ENTITY x SYSTEM "file:///etc/passwd">', b"<string>&x;</string>")
    plain = b'<?xml version="1.0"?><plist version="1.0">%s</plist>'
    yield "deep-in-xml", plain % (b"<array>" * 60_000 + b"</array>" * 60_000)
    yield "many-in-xml", plain % (b"<array>" + b"<true/>" * 130_000 + b"</array>")
    yield "base64-in-xml", plain % (b"<data>" + b"A" * 900_000 + b"</data>")


def databases(original):
    """Yield the name and contents of malicious databases."""
    def with_bytes(position, value):
        return original[:position] + value + original[position + len(value):]
    # The header has the page size at 16, the page count at 28, and the free pages at 32. The first page has its number
    # of cells at 103.
    yield "four-billion-pages", with_bytes(28, b"\xff\xff\xff\xff")
    yield "pages-of-64-kB", with_bytes(16, b"\0\1")
    yield "pages-of-no-bytes", with_bytes(16, b"\0\0")
    yield "free-list-of-all", with_bytes(32, b"\0\0\0\1\xff\xff\xff\xff")
    yield "only-a-header", original[:100]
    yield "cells-of-a-page", with_bytes(103, b"\xff\xff")
    yield "negative-payload", original[:200] + b"\xff" * 9 + original[209:]
    yield "zeros", bytes(900_000)


def keybags(original):
    """Yield the name and contents of malicious keybags.

    A record of a keybag is its tag and its length, four bytes each, and its value.
    """
    yield "record-of-four-gigabytes", b"VERS\xff\xff\xff\xff" + original[8:]
    yield "a-megabyte-of-records", original + b"XXXX\0\0\0\0" * 80_000
    for tag in (b"ITER", b"DPIC"):
        position = original.index(tag) + 8
        yield f"all-rounds-{tag.decode()}", original[:position] + b"\xff" * 4 + original[position + 4:]
    position = original.index(b"SALT") + 4
    yield "salt-of-all", original[:position] + b"\x7f\xff\xff\xff" + original[position + 4:]
    yield "many-classes", original + original[original.index(b"CLAS") - 24:] * 200


def bombs(parts):
    """Yield the name of each bomb, its file name, and its contents: an archive, or the files of a folder."""
    yield from tar_bombs(parts)
    yield from compressed_bombs(parts)
    yield from zip_bombs(parts)
    yield from folder_bombs(parts)


def tar_bombs(parts):
    """Yield tar files with wrong sizes, many files or a long name."""
    terabyte = 1 << 40
    for name, size in (
        ("a-terabyte", terabyte), ("just-over", terabyte + 1), ("all-of-63-bits", (1 << 63) - 1),
        ("negative", (1 << 88) - 1)
    ):
        yield f"tar-{name}", "b.tar", tar_archive(parts, tar_header(EXTRA_FILE, size))
    empty_files = [tar_header(f"{UDID}/aa/{number:040x}", 0) for number in range(1700)]
    yield "tar-of-names", "b.tar", tar_archive(parts, *empty_files)
    yield "tar-long-name", "b.tar", tar_archive(parts, tar_header("././@LongLink", 800_000, b"L") + b"a" * 800_256)
    pax_header = tar_header("pax", TAR_BLOCK, b"x") + b"26 size=99999999999999999\n".ljust(TAR_BLOCK, b"\0")
    yield "tar-pax-of-nine-digits", "b.tar", tar_archive(parts, pax_header, tar_header("a", 0))


def compressed_bombs(parts):
    """Yield compressed archives that unpack to hundreds of megabytes, or to gigabytes."""
    for part in ("Manifest.plist", "Manifest.db", KEYCHAIN_FILE, "Info.plist"):
        other_parts = {name: content for name, content in parts.items() if name != part}
        name, size = part.rsplit("/", maxsplit=1)[-1][:12], 600 * MEBIBYTE
        head = unfinished_tar_archive(other_parts, f"{UDID}/{part}", size)
        yield f"zst-zeros-{name}", "b.tar.zst", zeros_in_zstandard(head, size + 2 * TAR_BLOCK)
        yield f"gz-zeros-{name}", "b.tar.gz", zeros_in_gzip(head, size)
        yield f"zip-zeros-{name}", "b.zip", zip_archive(other_parts, zeros=[(part, size)])
    size = 28 * GIBIBYTE
    head = unfinished_tar_archive(parts, EXTRA_FILE, size)
    yield "zst-of-tens-of-gigabytes", "b.tar.zst", zeros_in_zstandard(head, size)
    yield "zst-of-nothing", "b.tar.zst", zeros_in_zstandard(b"", 30 * GIBIBYTE)


def zip_bombs(parts):
    """Yield zip files whose directories declare too much."""
    archive = zip_archive(parts, zeros=[("aa/" + "a" * 40, MEBIBYTE)])
    # The end record has two counts of entries at 8, the size of the directory at 12, and its offset at 16.
    end_record_offset = archive.rindex(b"PK\5\6")
    counts_offset = end_record_offset + 8
    yield "zip-of-65535-entries", "b.zip", archive[:counts_offset] + b"\xff\xff\xff\xff" + archive[counts_offset + 4:]
    # An entry of the directory has both sizes of its file at 20.
    sizes_offset = archive.rindex(b"PK\1\2") + 20
    oversized = archive[:sizes_offset] + b"\xff\xff\xff\xfe" * 2 + archive[sizes_offset + 8:]
    yield "zip-declares-four-gigabytes", "b.zip", oversized
    directory_offset = archive.index(b"PK\1\2")
    repeated_entries = archive[directory_offset:end_record_offset] * 300
    changed_end_record = (
        archive[end_record_offset:counts_offset]
        + struct.pack("<HHII", 0xFFFF, 0xFFFF, len(repeated_entries), directory_offset)
        + b"\0\0"
    )
    yield "zip-entries-on-one-blob", "b.zip", archive[:directory_offset] + repeated_entries + changed_end_record


def folder_bombs(parts):
    """Yield backups with one malicious file."""
    for name, content in property_lists():
        for part in ("Manifest.plist", "Status.plist", "Info.plist", KEYCHAIN_FILE):
            yield f"{part.rsplit('/')[-1][:12]}-{name}", "b", {**parts, part: content}
    for name, content in databases(parts["Manifest.db"]):
        yield f"database-{name}", "b", {**parts, "Manifest.db": content}
    manifest = plistlib.loads(parts["Manifest.plist"])
    for name, content in keybags(manifest["BackupKeyBag"]):
        changed = plistlib.dumps({**manifest, "BackupKeyBag": content}, fmt=plistlib.FMT_BINARY)
        yield f"keybag-{name}", "b", {**parts, "Manifest.plist": changed}
    property_lists_only = {
        name: content for name, content in parts.items() if name in ("Manifest.plist", "Info.plist", "Status.plist")
    }
    for name, content in (
        ("strings-of-64-kB", b"mbdb\5\0" + b"\xff\xfe" * 100_000), ("none", b"mbdb\5\0"),
        ("records-of-nothing", b"mbdb\5\0" + bytes(900_000)),
        ("properties", b"mbdb\5\0" + (b"\xff\xff" * 5 + bytes(39) + b"\xff" + b"\0\0\0\0" * 255) * 800)
    ):
        yield f"mbdb-{name}", "b", {**property_lists_only, "Manifest.mbdb": content}
    for name, content in (("endless-line", b"keyhaul-seal 1 hmac-sha256\n" + b"a" * 900_000), ("zeros", bytes(900_000)),
                          ("lines", b"keyhaul-seal 1 hmac-sha256\n" + b"a" * 64 + b" 1 x\n" * 60_000)):
        yield f"seal-{name}", "b", {**parts, "Keyhaul.seal": content}


def json_bombs():
    """Yield the name and contents of malicious JSON."""
    yield "nested-arrays", b"[" * 900_000
    yield "nested-objects", b'{"a":' * 150_000
    yield "closed-arrays", b"[" * 400_000 + b"]" * 400_000
    yield "many-values", b"[" + b"1," * 450_000 + b"1]"
    yield "many-empty-objects", b"[" + b"{}," * 290_000 + b"{}]"
    yield "many-members", b"{" + b",".join(b'"%x":1' % number for number in range(80_000)) + b"}"
    yield "one-member-again-and-again", b"{" + b'"a":1,' * 140_000 + b'"a":1}'
    yield "endless-number", b"9" * 900_000
    yield "exponent", b"1e999999999"
    yield "escapes", b'"' + b"\\u0041" * 145_000 + b'"'
    yield "endless-text", b'"' + b"a" * 900_000
    yield "zeros", bytes(900_000)


PHONE = {"name": "x", "product_type": "iPhone15,2", "product_version": "18.1"}
PASSWORD_OPTIONS = ["--password-file", "../../password"]
# The kinds of documents: a valid document with BOMB in place of its last value, and the commands that read the file.
DOCUMENT_KINDS = {
    "plan": (
        b'{"format":"migration-plan/1","items":BOMB}',
        [["restore", "../../b", "--to", "phone", "--plan", "FILE", "--yes", *PASSWORD_OPTIONS]]),
    "expectations": (
        b'{"format":"plan-expectations/1","expectations":BOMB}',
        [["plan", "../../b", "--to", "phone", "--expect", "FILE", *PASSWORD_OPTIONS]]),
    "description": (
        b'{"format":"device-fixture/1","seed":7,"created":"2026-11-20T17:58:00Z","device":%s,"items":BOMB}'
        % json.dumps(PHONE).encode(),
        [["device", "create", "x", "--from", "FILE", "--dry-run"]]),
    "dump": (
        b'{"genp":BOMB}', [["inspect", "FILE"], ["item", "find", "FILE"], ["plan", "FILE", "--to", "phone"]]),
}


def documents():
    """Yield the name and contents of each document, and the commands that read it. FILE is replaced with its path."""
    for kind, (valid_document, commands) in DOCUMENT_KINDS.items():
        for name, content in json_bombs():
            yield f"{kind}-{name}", content, commands
            yield f"{kind}-with-a-head-{name}", valid_document.replace(b"BOMB", content), commands
        if kind == "dump":
            for name, content in property_lists():
                yield f"{kind}-{name}", content, commands
    # A device's record has a separate size limit, which many apps reach first.
    apps = [{"name": f"app {number}", "groups": [f"G.{number}"]} for number in range(20_000)]
    description = {
        "format": "device-fixture/1", "seed": 7, "created": "2026-11-20T17:58:00Z", "device": PHONE, "apps": apps,
        "items": [],
    }
    yield "description-of-20000-apps", json.dumps(description).encode(), [["device", "create", "x", "--from", "FILE"]]


def time_bombs(scale=1):
    """Yield the name, files and command of inputs whose parts are all compared with each other."""
    def dump(items):
        return plistlib.dumps({"genp": items}, fmt=plistlib.FMT_BINARY)

    def expected(members, count):
        return json.dumps({
            "format": "plan-expectations/1", "expectations": [members(number) for number in range(count)]}).encode()

    count = 8_000 * scale
    twins = {"agrp": "G", "svce": "s", "acct": "a"}
    yield (
        "items-of-one-key",
        {f"{letter}.plist": dump([twins | {"v_Data": letter.encode()} for _ in range(count)]) for letter in "xy"},
        ["diff", "x.plist", "y.plist"])
    # Every item has the same long text, which a binary property list contains once.
    for name, length in (("one-long-key", 92_000), ("one-long-key-within-the-limit", 2_000)):
        many = [twins | {"acct": "a" * length * scale} for _ in range(3_700)]
        yield (
            f"items-of-{name}",
            {f"{letter}.plist": dump([item | {"v_Data": letter.encode()} for item in many]) for letter in "xy"},
            ["diff", "x.plist", "y.plist"])
    unique_items = {"x.plist": dump([twins | {"acct": f"a{number}", "v_Data": b"x"} for number in range(count)])}
    plan = ["plan", "x.plist", "--to", "phone", "--expect", "expected.json"]
    for name, members in (
        ("expectations-of-one-item-each", lambda number: {"account": f"a{number}", "expect": "migrates"}),
        ("expectations-of-every-item", lambda number: {"service": "s", "expect": "migrates"}),
        (
            "expectations-that-no-item-meets",
            lambda number: {"service": "s", "account": f"b{number}", "expect": "absent"}),
        ("expectations-with-stars", lambda number: {"account": f"*{number}", "expect": "migrates"}),
        ("expectations-that-every-item-misses", lambda number: {"service": "s", "label": "*", "expect": "absent"}),
    ):
        yield name, {**unique_items, "expected.json": expected(members, count)}, plan


MALICIOUS_NAMES = [
    "../victim/x", "../../victim/x", "X/../../victim/x", "X/../victim/x", "/tmp-victim/x", "./../victim/x", "..",
    "X/..", "X/a/../../../victim/x", "X\\..\\..\\victim\\x", "..\\victim\\x", "C:x", "c:/x", "//server/share", "X//x",
    "X/a/./b", "X/a.", "X/a ", "X/./x", "X/manifest.plist", "X/Manifest.plist", "X/Manifest.plist.", "X/" + "a" * 1_500,
    "X/a\n../x"]
# The types of a tar's entries.
HARD_LINK, SYMBOLIC_LINK, CHARACTER_DEVICE, BLOCK_DEVICE, PIPE = b"1", b"2", b"3", b"4", b"6"
# The type, the target and the name of each entry.
MALICIOUS_LINKS = [
    (SYMBOLIC_LINK, "../victim", "X/link"), (SYMBOLIC_LINK, "/etc/passwd", "X/link"),
    (SYMBOLIC_LINK, "../victim/file", "X/Manifest.plist"), (SYMBOLIC_LINK, "Manifest.plist", "X/link"),
    (HARD_LINK, "../victim/file", "X/link"), (HARD_LINK, "/etc/passwd", "X/link"),
    (HARD_LINK, "X/Manifest.plist", "X/link"), (PIPE, "", "X/pipe"), (CHARACTER_DEVICE, "", "X/device"),
    (BLOCK_DEVICE, "", "X/disk"), (SYMBOLIC_LINK, "../victim", "X/aa"),
]


def crafted_archives(parts):
    """Yield the name, file name and contents of archives with malicious names and links."""
    for number, name in enumerate(MALICIOUS_NAMES):
        if len(name) <= 100:
            yield f"tar-name-{number}", "b.tar", tar_archive(parts, tar_entry(name, b"bad"))
        yield f"zip-name-{number}", "b.zip", zip_archive(parts, (name, b"bad", stat.S_IFREG | 0o600))
    for number, (kind, link, name) in enumerate(MALICIOUS_LINKS):
        file_behind_link = tar_entry(f"{name}/file", b"bad")
        yield f"tar-link-{number}", "b.tar", tar_archive(parts, tar_header(name, 0, kind, link), file_behind_link)
        if kind == SYMBOLIC_LINK:
            link_entry = (name, link.encode(), stat.S_IFLNK | 0o777)
            file_entry = (f"{name}/file", b"bad", stat.S_IFREG | 0o600)
            yield f"zip-link-{number}", "b.zip", zip_archive(parts, link_entry, file_entry)


def with_source(command, source):
    """Return a command with its source after its name."""
    name = command[:2] if command[0] == "item" else command[:1]
    return [*name, source, *command[len(name):]]


class InputTester:
    """The checks of single inputs, and the largest costs so far."""

    def __init__(self, program, launcher, work, prints_results):
        self.program, self.launcher, self.work, self.prints_results = program.resolve(), launcher, work, prints_results
        self.checks = Checks()
        # The program works in the input folder. Files next to it must not change.
        self.sandbox, self.input_folder = work / "sandbox", work / "sandbox" / "input"
        self.runs, self.slowest, self.largest = 0, (0, ""), (0, "")

    def run(self, command, folder):
        """Run a command. Return its exit code, CPU seconds and memory in bytes."""
        cost = self.launcher.run(
            [self.program, *command, "--home", self.work / "home", "--no-input", "--quiet"], folder, timeout_seconds=300
        )
        return cost.code, cost.cpu_seconds, cost.memory

    def measure(self, name, folder, archive, password, largest_size, commands=READING_COMMANDS):
        """Run each command on an archive or folder. Return the exit codes.

        `largest_size` is the size of the input's largest part in bytes.
        """
        allowed_memory = BASE_MEMORY + 2 * largest_size
        codes = []
        for command in commands:
            arguments = with_source(command, archive)
            if "--quick" not in command and command[0] not in ("inspect", "convert"):
                arguments += ["--password-file", str(password)]
            codes.append(self.check_run(f"{name}, {' '.join(command)}", arguments, folder, allowed_memory))
        if self.prints_results:
            print(name, codes)
        return codes

    def check_run(self, context, command, folder, allowed_memory):
        """Run a command, and check its exit code and its cost. Return the exit code."""
        code, seconds, memory = self.run(command, folder)
        self.runs += 1
        self.slowest, self.largest = max(self.slowest, (seconds, context)), max(self.largest, (memory, context))
        # A device description is rejected with 64.
        self.checks.check(code is not None and (0 <= code <= 16 or code == 64), f"{context}: ended with {code}")
        self.checks.check(seconds <= MAX_SECONDS, f"{context}: {seconds:.1f} s of CPU time")
        self.checks.check(
            memory <= allowed_memory, f"{context}: {memory >> 20} MB of memory, {allowed_memory >> 20} allowed")
        return code

    def measure_document(self, name, content, commands):
        """Check that a document is rejected, without a new device or file."""
        folder, total_size, largest_size = self.write("document", content)
        self.checks.check(total_size <= MAX_INPUT_BYTES, f"{name}: {total_size} bytes are too large for this test")
        before = self.files_without_locks()
        codes = [
            self.check_run(
                f"{name}, {' '.join(command[:2])}",
                ["document" if argument == "FILE" else argument for argument in command], folder,
                BASE_MEMORY + 2 * largest_size)
            for command in commands
        ]
        if self.prints_results:
            print(name, codes)
        self.checks.check(self.files_without_locks() == before, f"{name}: a file changed")
        self.checks.check(0 not in codes, f"{name}: a command accepted it ({codes})")

    def files_without_locks(self):
        """Return the digests of the files of the devices and the sandbox, except for lock files."""
        return [
            {path: digest for path, digest in files(folder).items() if not path.endswith("/lock")}
            for folder in (self.work / "home", self.sandbox)]

    def measure_database(self, name, content):
        """Check the commands on a keychain database."""
        folder, total_size, largest_size = self.write("database", content)
        self.checks.check(total_size <= MAX_INPUT_BYTES, f"{name}: {total_size} bytes are too large for this test")
        before = files(self.sandbox)
        codes = [
            self.check_run(
                f"{name}, {' '.join(command)}", with_source(command, "database/k.db"), folder,
                BASE_MEMORY + 2 * largest_size)
            for command in DATABASE_COMMANDS
        ]
        if self.prints_results:
            print(name, codes)
        self.checks.check(files(self.sandbox) == before, f"{name}: a file changed")

    def measure_time(self, name, parts, doubled, command, max_seconds):
        """Check the CPU time of an input and of a doubled input, and that SIGINT ends the run on the doubled input."""
        seconds = self.run_on_parts(name, parts, command)
        doubled_seconds = self.run_on_parts(name, doubled, command)
        self.checks.check(
            max(len(part) for part in parts.values()) <= MAX_INPUT_BYTES, f"{name}: it is too large for this test"
        )
        self.checks.check(seconds <= max_seconds, f"{name}: {seconds:.1f} s of CPU time")
        # Half a second is allowed for the start of the program.
        self.checks.check(
            doubled_seconds <= 3 * seconds + 0.5, f"{name}: {seconds:.2f} s, and doubled {doubled_seconds:.2f} s")
        longest = max(
            self.seconds_to_interrupt(command, delay) for delay in (0.1, 0.5 * doubled_seconds, 0.9 * doubled_seconds))
        self.checks.check(longest <= 2, f"{name}: SIGINT ends it after {longest:.1f} s")
        if self.prints_results:
            print(f"{name}: {seconds:.2f} s, doubled {doubled_seconds:.2f} s; SIGINT ends it after {longest:.2f} s")

    def run_on_parts(self, name, parts, command):
        """Write files to the input folder, and run a command there. Return its CPU seconds."""
        shutil.rmtree(self.input_folder, ignore_errors=True)
        self.input_folder.mkdir(parents=True)
        for path, part in parts.items():
            (self.input_folder / path).write_bytes(part)
        code, seconds, _ = self.run(command, self.input_folder)
        self.runs += 1
        self.checks.check(code is not None and 0 <= code <= 16, f"{name}: ended with {code}")
        return seconds

    def seconds_to_interrupt(self, command, delay):
        """Start a command in the input folder and send a SIGINT. Return the seconds until the command ends."""
        process = subprocess.Popen(
            [self.program, *command, "--home", self.work / "home", "--no-input", "--quiet"], cwd=self.input_folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        started = time.perf_counter()
        process.wait()
        return time.perf_counter() - started

    def write(self, archive, content):
        """Write an input and the files that must not change. Return the folder, the total size and the largest size."""
        folder = self.input_folder
        shutil.rmtree(self.sandbox, ignore_errors=True)
        for parent in (folder, self.sandbox):
            (parent / "victim").mkdir(parents=True)
            (parent / "victim" / "file").write_bytes(b"keep")
        if isinstance(content, bytes):
            (folder / archive).write_bytes(content)
            return folder, len(content), len(content)
        for name, part in content.items():
            (folder / archive / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / archive / name).write_bytes(part)
        return folder, sum(map(len, content.values())), max(map(len, content.values()))

    def measure_archive(self, kind, name, archive, content, password):
        """Check the commands on an archive or folder, and that they change no file outside of their targets."""
        folder, total_size, largest_size = self.write(archive, content)
        self.checks.check(total_size <= MAX_INPUT_BYTES, f"{name}: {total_size} bytes are too large for this test")
        before = files(self.sandbox)
        if "-zeros-" in name or "-of-tens" in name or "-of-nothing" in name:
            # Keyhaul unpacks this much before it stops at the limit for compressed files.
            largest_size = max(largest_size, MAX_UNPACKED)
        codes = self.measure(name, folder, archive, password, largest_size)
        after = {
            path: digest
            for path, digest in files(self.sandbox).items()
            if not path.startswith(("input/copy/", "input/out/"))
        }
        self.checks.check(after == before, f"{name}: a file outside of the target changed")
        if kind == "crafted archives":
            # `verify` is the second command.
            self.checks.check(0 not in codes[1:2], f"{name}: `verify` found no fault")

    def measure_fault(self, fault):
        """Check the commands on a published fault. Return whether it is small enough for this test."""
        target = self.work / "faults" / fault.name
        archive = fault.write(target)
        # The allocated sizes, without the holes of sparse files. `st_blocks` counts blocks of 512 bytes.
        sizes = [path.stat().st_blocks * 512 for path in [archive, *archive.rglob("*")] if path.is_file()]
        is_small = sum(sizes) <= MAX_INPUT_BYTES
        if is_small:
            password = self.work / "faults-password"
            password.write_bytes(backup_faults.MODERN.password)
            self.measure(fault.name, target, archive.name, password, max(sizes, default=0), READING_COMMANDS[:4])
        shutil.rmtree(target)
        return is_small

    def prepare(self, password):
        """Create a device and a backup of it. Return the files of the backup by path."""
        password.touch(mode=0o600)
        password.write_text("a password\n", encoding="utf-8")
        for command in (["device", "create", "phone", "--from", "old-phone"],
                        ["backup", "phone", "-o", "b/", "--password-file", str(password), "--rounds", "1", "--yes"]):
            code, _, _ = self.run(command, self.work)
            self.checks.check(code == 0, f"{' '.join(command)} ended with {code}")
        backup = self.work / "b"
        return {
            str(path.relative_to(backup)): path.read_bytes() for path in sorted(backup.rglob("*")) if path.is_file()}


def run_tests(tester, parts, password, arguments):
    """Check all selected inputs. Return the number of inputs of each kind."""
    counts = dict.fromkeys(
        ("bombs", "documents", "databases", "time bombs", "crafted archives", "published faults"), 0)
    for name, content, commands in documents():
        if name.startswith(arguments.only):
            tester.measure_document(name, content, commands)
            counts["documents"] += 1
    for name, content in database_bombs():
        if name.startswith(arguments.only):
            tester.measure_database(name, content)
            counts["databases"] += 1
    for (name, single, command), (_, doubled, _) in zip(time_bombs(), time_bombs(2)):
        if name.startswith(arguments.only):
            tester.measure_time(name, single, doubled, command, arguments.seconds)
            counts["time bombs"] += 1
    for kind, inputs in (("bombs", bombs(parts)), ("crafted archives", crafted_archives(parts))):
        for name, archive, content in inputs:
            if name.startswith(arguments.only):
                tester.measure_archive(kind, name, archive, content, password)
                counts[kind] += 1
    for fault in backup_faults.FAULTS:
        if fault.name.startswith(arguments.only):
            counts["published faults"] += tester.measure_fault(fault)
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--only", default="", help="inputs whose names begin with this")
    parser.add_argument("--show", action="store_true", help="print the exit codes of each")
    parser.add_argument(
        "--seconds", type=float, default=2, help="CPU time that a time bomb may take; a debug build needs more"
    )
    arguments = parser.parse_args()
    with Launcher() as launcher, tempfile.TemporaryDirectory(prefix="keyhaul-bombs-") as folder:
        work = pathlib.Path(folder)
        tester = InputTester(arguments.program, launcher, work, arguments.show)
        password = work / "password"
        parts = tester.prepare(password)
        counts = run_tests(tester, parts, password, arguments)
    print(
        ", ".join(f"{count} {kind}" for kind, count in counts.items()) + f"; {tester.runs} runs. The longest took "
        f"{tester.slowest[0]:.2f} s ({tester.slowest[1]}), "
        f"the largest {tester.largest[0] / 2**20:.0f} MB ({tester.largest[1]})"
    )
    return tester.checks.finish()


if __name__ == "__main__":
    sys.exit(main())
