"""Make Keyhaul.seal for a backup folder, after docs/Format.md and independently of Keyhaul's code."""

import hashlib
import hmac
import pathlib
import re

NAME = "Keyhaul.seal"
METADATA_FILES = {"Manifest.plist", "Status.plist", "Info.plist"}
PAYLOAD_PATHS = {
    "manifest-db": re.compile(r"([0-9a-f]{2})/\1[0-9a-f]{38}"),
    "mbdb": re.compile(r"[0-9a-f]{40}"),
}
MANIFESTS = {"manifest-db": "Manifest.db", "mbdb": "Manifest.mbdb"}


def is_covered(path, layout):
    """Return whether the seal covers a file."""
    return path in METADATA_FILES or path == MANIFESTS[layout] or PAYLOAD_PATHS[layout].fullmatch(path) is not None


def file_lines(folder, layout):
    """Yield the lines of the covered files, in the order of their paths."""
    folder = pathlib.Path(folder)
    paths = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    for path in sorted((path for path in paths if is_covered(path, layout)), key=str.encode):
        content = (folder / path).read_bytes()
        yield f"{hashlib.sha256(content).hexdigest()} {len(content)} {path}\n"


def make_seal(folder, layout="manifest-db", key=None):
    """Return the contents of the seal.

    `key` is the unwrapped key of the manifest, or None for an unencrypted backup.
    """
    algorithm = "sha256" if key is None else "hmac-sha256"
    body = f"keyhaul-seal 1 {algorithm}\n".encode() + "".join(file_lines(folder, layout)).encode()
    if key is None:
        checksum = hashlib.sha256(body).hexdigest()
    else:
        seal_key = hmac.new(key, b"keyhaul seal 1", hashlib.sha256).digest()
        checksum = hmac.new(seal_key, body, hashlib.sha256).hexdigest()
    return body + checksum.encode() + b"\n"
