"""Find the backups in a folder, at an address or in a list."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeAlias

from .._streams import check_address, is_address

Paths: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]"


def listed(paths: Paths) -> list[str]:
    """Return each backup once, in the given order.

    A string is a folder or an address. A folder that is not itself a backup stands for the backups in it, and so does
    an address that ends in a slash. An address with a star stands for the backups that match it. The paths of a list
    are not looked up, because they may exist only on the workers.
    """
    if isinstance(paths, (str, os.PathLike)):
        backups = backups_in(os.fspath(paths))
    else:
        backups = [os.fspath(path) for path in paths]
    for path in backups:
        if not path:
            raise ValueError("an empty path")
        if is_address(path):
            check_address(path)
    return list(dict.fromkeys(backups))


def backups_in(place: str) -> list[str]:
    """Return the entries of a folder, sorted, without hidden ones. If the path is a backup or a file, return only it.

    The program reports the entries that are not backups.
    """
    if is_address(place):
        check_address(place)
        return _at_address(place)
    if not os.path.isdir(place) or os.path.exists(os.path.join(place, "Manifest.plist")):
        return [place]
    return [os.path.join(place, name) for name in sorted(os.listdir(place)) if not name.startswith(".")]


def _at_address(address: str) -> list[str]:
    """Return the addresses in a folder, or the addresses that match a star: sorted, without hidden ones."""
    if not (address.endswith("/") or "*" in address):
        return [address]
    import fsspec

    file_system, pattern = fsspec.core.url_to_fs(address)
    entries = file_system.glob(pattern) if "*" in address else file_system.ls(pattern, detail=False)
    visible_entries = [entry for entry in sorted(entries) if not entry.rpartition("/")[2].startswith(".")]
    return [file_system.unstrip_protocol(entry) for entry in visible_entries]
