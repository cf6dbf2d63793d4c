"""iOS backups with a keychain, read and written from the format's description, without any of Keyhaul's Swift code.

Standard library and the package `cryptography`; Python 3.9 or newer.
"""


class FormatError(Exception):
    """The bytes are not what the format asks for."""


class WrongPassword(Exception):
    """No class key unwraps with the password."""


class NotABackup(Exception):
    """There is no Manifest.plist, or the backup is of an unsupported kind."""
