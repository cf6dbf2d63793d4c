"""Pass a backup to the program, as a path or on standard input."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ._errors import KeyhaulError
from ._process import Readable, stream_error

if TYPE_CHECKING:
    from ._commands import Backup

ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?:://|::)")
# File systems that cache files on the local disk.
CACHING_FILE_SYSTEMS = frozenset({"filecache", "simplecache", "blockcache"})
# Signatures and keys in an address.
SECRET_PARAMETER = re.compile(
    r"[?&](?:x-amz-(?:signature|security-token)|x-goog-signature|signature|sig|token|access_token|key|password)=",
    re.IGNORECASE,
)
USER_PASSWORD = re.compile(r"://[^/?#@]*:[^/?#@]*@")


def is_address(text: str) -> bool:
    """Whether the text is an address for `fsspec`, not a path."""
    return ADDRESS.match(text) is not None


def check_address(address: str) -> None:
    """Reject an address that would write a backup to the disk, or that contains a secret.

    Addresses appear in tables, errors and the scheduler's state.
    """
    if CACHING_FILE_SYSTEMS & {part.partition("://")[0] for part in address.split("::")}:
        raise ValueError("an address that caches files on the disk: backups must not be written there")
    if USER_PASSWORD.search(address) or SECRET_PARAMETER.search(address):
        # The message omits the address, which contains the secret.
        raise ValueError(
            "an address that contains a secret: use fsspec's configuration on the machine that reads the backup"
        )


@contextlib.contextmanager
def open_backup(backup: Backup) -> Iterator[tuple[str, Readable | None]]:
    """Return the argument for the program, and the stream for its standard input."""
    if not isinstance(backup, (str, os.PathLike)):
        yield "-", backup
        return
    path = os.fspath(backup)
    if not is_address(path):
        # `-` alone would mean standard input.
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
            system, path_in_system = fsspec.core.url_to_fs(path)
            stream: Readable = stack.enter_context(system.open(path_in_system, "rb"))
        except Exception as error:
            raise stream_error(error) from error
        yield "-", stream
