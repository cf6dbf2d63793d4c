"""Detect whether a backup has changed, without reading its contents."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator

from .._streams import is_address


def stamp(path: str) -> str | None:
    """Return a digest of the sizes and times of a backup's files.

    For an address, it is a digest of the metadata of the storage (such as the ETag). The digest changes after any
    write, even if no byte changed. It is None if the path cannot be read.
    """
    try:
        lines = [_line_for_address(path)] if is_address(path) else list(_lines(path))
    except Exception:  # noqa: BLE001 - a file system can raise any error, and the program reports the reason
        return None
    return "sha256:" + hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _lines(path: str) -> Iterator[str]:
    """Yield a line for a file, or for a folder and everything in it."""
    yield _line("", os.stat(path))
    folders = [path] if os.path.isdir(path) else []
    while folders:
        folder = folders.pop()
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                yield _line(os.path.relpath(entry.path, path), entry.stat(follow_symlinks=False))
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)


def _line(name: str, status: os.stat_result) -> str:
    """Return the properties that change when a file changes: its mode, size and times."""
    return f"{name}\0{status.st_mode}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_ctime_ns}"


def _line_for_address(address: str) -> str:
    """Return the key that a remote storage changes when the file at an address changes."""
    import fsspec

    system, path_in_system = fsspec.core.url_to_fs(address)
    return str(system.ukey(path_in_system))
