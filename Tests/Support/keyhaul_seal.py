"""Keyhaul.seal, made from a backup's directory and the key of its list of files: a second implementation, after
docs/Format.md alone.
"""

import hashlib
import hmac
import pathlib
import re

NAME = "Keyhaul.seal"
PARTS = {"Manifest.plist", "Status.plist", "Info.plist"}
PAYLOAD = {
    "manifest-db": re.compile(r"([0-9a-f]{2})/\1[0-9a-f]{38}"),
    "mbdb": re.compile(r"[0-9a-f]{40}"),
}
LISTS = {"manifest-db": "Manifest.db", "mbdb": "Manifest.mbdb"}


def is_sealed(path, layout):
    return path in PARTS or path == LISTS[layout] or PAYLOAD[layout].fullmatch(path) is not None


def listed(folder, layout):
    """The lines of the files, in the order of their paths."""
    folder = pathlib.Path(folder)
    paths = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    for path in sorted((path for path in paths if is_sealed(path, layout)), key=str.encode):
        content = (folder / path).read_bytes()
        yield f"{hashlib.sha256(content).hexdigest()} {len(content)} {path}\n"


def made(folder, layout="manifest-db", key=None):
    """The whole seal, as it has to stand there to the byte; `key` is that of the list of files, unwrapped."""
    form = "sha256" if key is None else "hmac-sha256"
    body = f"keyhaul-seal 1 {form}\n".encode() + "".join(listed(folder, layout)).encode()
    if key is None:
        code = hashlib.sha256(body).hexdigest()
    else:
        own = hmac.new(key, b"keyhaul seal 1", hashlib.sha256).digest()
        code = hmac.new(own, body, hashlib.sha256).hexdigest()
    return body + code.encode() + b"\n"
