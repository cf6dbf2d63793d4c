"""Read and write iOS backups with a keychain, independently of Keyhaul's Swift code.

The package follows docs/Format.md. It needs Python 3.9 or newer and the package `cryptography`.
"""


class FormatError(Exception):
    """The data does not conform to its format."""


class WrongPassword(Exception):
    """The password does not unwrap any class key."""


class NotABackup(Exception):
    """Manifest.plist is missing, or the kind of backup is not supported."""
