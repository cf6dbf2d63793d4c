"""Which backups: a folder, an address, a list."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeAlias

from .._streams import check_address, is_address

Paths: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]"


def listed(paths: Paths) -> list[str]:
    """Each backup once, in the order that they are named in.

    A text is one folder or one address: of a folder that is not a backup itself, and of an address that ends in a slash or has a
    star, what is in it. A list is taken as it is, since its paths may exist on the workers alone.
    """
    if isinstance(paths, (str, os.PathLike)):
        found = backups_in(os.fspath(paths))
    else:
        found = [os.fspath(path) for path in paths]
    for path in found:
        if not path:
            raise ValueError("an empty path")
        if is_address(path):
            check_address(path)
    return list(dict.fromkeys(found))


def backups_in(place: str) -> list[str]:
    """What is in a folder, sorted; what is not a backup is for the program to say. Hidden names are passed over."""
    if is_address(place):
        check_address(place)
        return _at_address(place)
    if not os.path.isdir(place) or os.path.exists(os.path.join(place, "Manifest.plist")):
        return [place]
    return [os.path.join(place, name) for name in sorted(os.listdir(place)) if not name.startswith(".")]


def _at_address(address: str) -> list[str]:
    if not (address.endswith("/") or "*" in address):
        return [address]
    import fsspec

    system, place = fsspec.core.url_to_fs(address)
    found = system.glob(place) if "*" in address else system.ls(place, detail=False)
    return [system.unstrip_protocol(each) for each in sorted(found) if not each.rpartition("/")[2].startswith(".")]
