"""Passes a backup to the program: as a path, or on standard input."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ._errors import KeyhaulError
from ._process import Readable, unreadable

if TYPE_CHECKING:
    from ._verbs import Backup

ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?:://|::)")
# File systems that write what they read to the local disk.
ON_DISK = frozenset({"filecache", "simplecache", "blockcache"})
# Signatures and keys in an address.
SIGNED = re.compile(
    r"[?&](?:x-amz-(?:signature|security-token)|x-goog-signature|signature|sig|token|access_token|key|password)=",
    re.IGNORECASE,
)
USER = re.compile(r"://[^/?#@]*:[^/?#@]*@")


def is_address(text: str) -> bool:
    """Whether the text is an address for `fsspec`, not a path."""
    return ADDRESS.match(text) is not None


def check_address(address: str) -> None:
    """Rejects an address that would write a backup to disk, or that contains a secret.

    The address appears in tables, errors and the scheduler's state.
    """
    if ON_DISK & {part.partition("://")[0] for part in address.split("::")}:
        raise ValueError("an address that caches files on the disk: nothing of a backup is to be written there")
    if USER.search(address) or SIGNED.search(address):
        # Without the address itself.
        raise ValueError("an address with a secret in it: give it to fsspec's configuration on the machine that reads")


@contextlib.contextmanager
def opened(backup: Backup) -> Iterator[tuple[str, Readable | None]]:
    """Returns the program's argument, and the stream for its standard input."""
    if not isinstance(backup, (str, os.PathLike)):
        yield "-", backup
        return
    path = os.fspath(backup)
    if not is_address(path):
        yield "./-" if path == "-" else path, None
        return
    check_address(path)
    try:
        import fsspec
    except ImportError:
        raise KeyhaulError(
            1, "failed", f"cannot open {path}", "fsspec is not installed", "pip install 'keyhaul[fleet]'"
        ) from None
    with contextlib.ExitStack() as stack:
        try:
            system, place = fsspec.core.url_to_fs(path)
            stream: Readable = stack.enter_context(system.open(place, "rb"))
        except Exception as error:
            raise unreadable(error) from error
        yield "-", stream
