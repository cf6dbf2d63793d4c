"""Write the files in which authenticator apps keep their accounts, as the apps' published sources describe them."""

import base64
import pathlib
import plistlib
import sqlite3
import tempfile

from . import crypto
from .databases import encode_field
from .options import File

PROTON_SERVICE, PROTON_GROUP = "me.proton.authenticator", "2SB5Z68H26.group.me.proton.authenticator"
PROTON_DOMAIN = "AppDomainGroup-group.me.proton.authenticator"
FREEOTP = "org.fedorahosted.freeotp"
# protonpass/ios-authenticator, EncryptedEntryEntity.swift; Core Data adds the prefix Z and the first three columns.
PROTON_SCHEMA = """
CREATE TABLE ZENCRYPTEDENTRYENTITY (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER,
  ZCONTENTFORMATVERSION INTEGER, ZFLAGS INTEGER, ZORDER INTEGER, ZREVISION INTEGER, ZCREATIONDATE FLOAT,
  ZMODIFIEDTIME FLOAT, ZID VARCHAR, ZKEYID VARCHAR, ZREMOTEID VARCHAR, ZENCRYPTEDDATA BLOB);
CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER);
"""


def proton_entry(content, name, number):
    """Return an account as Proton Authenticator serializes it: `content` is (1, address) or (2, Steam secret)."""
    field, text = content
    metadata = encode_field(1, name.encode()) + encode_field(2, b"") + encode_field(3, f"id {number}".encode())
    return encode_field(1, metadata) + encode_field(2, encode_field(field, encode_field(1, text.encode())))


def proton_box(entry, key, nonce):
    """Encrypt an account. Return the nonce, the ciphertext and the tag."""
    ciphertext, tag = crypto.gcm_seal(key, entry, nonce, b"entrycontent")
    return nonce + ciphertext + tag


def proton_key(key):
    """Return a key as the app's keychain item has it: JSON, in which Foundation escapes a slash."""
    return b'"' + base64.b64encode(key).replace(b"/", b"\\/") + b'"'


def proton_item(key_id, key):
    """Return the keychain item with a key."""
    return {
        "kind": "generic-password", "protection": "ck",
        "attributes": {"acct": key_id, "svce": PROTON_SERVICE, "agrp": PROTON_GROUP, "sync": 1},
        "secret": {"base64": base64.b64encode(proton_key(key)).decode()}}


def proton_files(rows, logged_count):
    """Return the database with rows of (key name, encrypted account).

    The last `logged_count` rows are only in its log.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "default.store"
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.executescript(PROTON_SCHEMA)

        def insert(numbers):
            for number in numbers:
                key_id, encrypted_account = rows[number]
                connection.execute(
                    "INSERT INTO ZENCRYPTEDENTRYENTITY VALUES (?, 1, 1, 1, 0, ?, 0, 1.5, 2.5, ?, ?, '', ?)",
                    (number + 1, number, f"id {number}", key_id, encrypted_account))
            connection.commit()

        first_logged = len(rows) - logged_count
        insert(range(first_logged))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        insert(range(first_logged, len(rows)))
        # Closing the connection would remove the log.
        database, log = path.read_bytes(), pathlib.Path(f"{path}-wal").read_bytes()
        connection.close()
    name = "Library/Application Support/default.store"
    return [File(PROTON_DOMAIN, ""), File(PROTON_DOMAIN, name, database), File(PROTON_DOMAIN, f"{name}-wal", log)]


def freeotp_files(addresses):
    """Return the preferences of FreeOTP's first versions."""
    names = [f"Issuer {number}:name" for number in range(len(addresses))]
    values = {"tokenOrder": names, **dict(zip(names, addresses)), "other": 1}
    domain = f"AppDomain-{FREEOTP}"
    return [File(domain, ""),
            File(domain, f"Library/Preferences/{FREEOTP}.plist", plistlib.dumps(values, fmt=plistlib.FMT_BINARY))]


def unreadable_files():
    """Return files of apps whose codes cannot be read."""
    return [
        File("AppDomain-io.ente.auth", "Documents/ente.authenticator.db", b"SQLite format 3\0"),
        File("AppDomain-com.finnwea.Raivo", ""),
        File("AppDomainGroup-group.twofas.com", "TwoFAS.sqlite", b"SQLite"),
        File("AppDomain-com.google.Authenticator", ""),
    ]
