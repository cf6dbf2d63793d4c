"""One file made from a backup's folder: tar, tar.gz, tar.zst, zip, always the same bytes for the same parts."""

import gzip
import io
import struct
import tarfile
import zipfile

SUFFIXES = ("tar", "tar.gz", "tar.zst", "zip")


def tar(entries):
    """`entries` are names with their content, or with a finished TarInfo for what is no plain file."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in entries:
            if isinstance(content, tarfile.TarInfo):
                content.name = name
                archive.addfile(content)
                continue
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o600
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def zipped(entries):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in entries:
            archive.writestr(zipfile.ZipInfo(name, (2026, 11, 20, 18, 4, 0)), content, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def zstandard(data):
    """A Zstandard frame (RFC 8878) whose blocks are raw, so that no compressor is needed."""
    frame = struct.pack("<IBQ", 0xFD2FB528, 0b1110_0000, len(data))
    pieces = [data[start:start + 100_000] for start in range(0, len(data), 100_000)] or [b""]
    for number, piece in enumerate(pieces, start=1):
        frame += struct.pack("<I", len(piece) << 3 | (number == len(pieces)))[:3] + piece
    return frame


def pack(entries, suffix):
    if suffix == "zip":
        return zipped(entries)
    stream = tar(entries)
    if suffix == "tar.gz":
        return gzip.compress(stream, mtime=0)
    return zstandard(stream) if suffix == "tar.zst" else stream
