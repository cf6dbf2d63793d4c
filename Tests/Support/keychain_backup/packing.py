"""Pack a backup's files into one tar, tar.gz, tar.zst or zip file. The same files give the same bytes."""

import gzip
import io
import struct
import tarfile
import zipfile

SUFFIXES = ("tar", "tar.gz", "tar.zst", "zip")


def tar_archive(entries):
    """Return a tar archive of (name, contents) pairs. For non-regular files, the contents are a TarInfo."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, contents in entries:
            if isinstance(contents, tarfile.TarInfo):
                contents.name = name
                archive.addfile(contents)
                continue
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(contents), 0o600
            archive.addfile(member, io.BytesIO(contents))
    return stream.getvalue()


def zip_archive(entries):
    """Return a zip archive of (name, contents) pairs."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, contents in entries:
            archive.writestr(zipfile.ZipInfo(name, (2026, 11, 20, 18, 4, 0)), contents, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def zstandard_frame(data):
    """Return a Zstandard frame (RFC 8878) with raw blocks, which needs no compressor."""
    # The signature, a descriptor (the size has 8 bytes, and the data is one segment), and the size.
    frame = struct.pack("<IBQ", 0xFD2FB528, 0b1110_0000, len(data))
    blocks = [data[start:start + 100_000] for start in range(0, len(data), 100_000)] or [b""]
    for number, block in enumerate(blocks, start=1):
        # A block's header has 3 bytes: a bit that marks the last block, the type 0 in two bits, and the size.
        is_last = number == len(blocks)
        frame += struct.pack("<I", len(block) << 3 | is_last)[:3] + block
    return frame


def pack(entries, suffix):
    """Return the entries packed in the format of a file name suffix."""
    if suffix == "zip":
        return zip_archive(entries)
    archive = tar_archive(entries)
    if suffix == "tar.gz":
        return gzip.compress(archive, mtime=0)
    return zstandard_frame(archive) if suffix == "tar.zst" else archive
