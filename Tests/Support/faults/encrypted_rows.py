"""Faults of a Manifest.db whose records are encrypted one by one. Only iOS 10.0 wrote them."""

from backup_cases import RECORD_COLUMN, SALT, in_base64, ios_10_0_properties, ios_10_0_rows
from keychain_backup.options import KEYCHAIN, NOTES

from . import DAMAGED, SUCCESS, Fault, flip_bit, verify_and_plan


def encrypted_row_fault(
    name, summary, exit_codes, *messages, change=None, domain_and_path=KEYCHAIN, encode=in_base64, salt=SALT,
    properties=None
):
    """Return a fault of a backup with encrypted records.

    `change` is applied to one file's record after encryption. `properties` fills the table that has the salt.
    """
    encrypt_rows = ios_10_0_rows(encode)

    def edit(rows):
        encrypt_rows(rows)
        if change is not None:
            # Columns 1 and 2 are the domain and the path.
            row = next(row for row in rows if tuple(row[1:3]) == domain_and_path)
            row[RECORD_COLUMN] = change(row[RECORD_COLUMN])
    return Fault(f"ios-10.0-{name}", summary, exit_codes, messages, "ios-10.0",
                 edits={"rows": edit, "sql": properties or ios_10_0_properties(salt=salt)})


def salt_faults():
    """Return faults of the salt, which make all records unreadable."""
    # `inspect` succeeds, because names of files are not encrypted.
    exit_codes = {"inspect": SUCCESS, **verify_and_plan(DAMAGED)}
    yield encrypted_row_fault("no-salt", "the rows are encrypted, and there is no salt", exit_codes, "no salt",
                              properties=lambda connection: None)
    yield encrypted_row_fault("salt-empty", "the salt is empty", exit_codes, "a salt of 0 bytes", salt=b"")
    yield encrypted_row_fault(
        "salt-number", "the salt is a number", exit_codes, "a salt", "neither data nor text", salt=7
    )
    yield encrypted_row_fault("salt-long", "the salt has a million bytes", exit_codes, "1,000,000",
                              salt=bytes(1_000_000))
    yield encrypted_row_fault(
        "salt-flip", "one bit of the salt is flipped, so no record can be decrypted", exit_codes,
        "password and salt do not decrypt it", salt=flip_bit(SALT, 3))


def record_faults():
    """Return faults of one encrypted record."""
    yield encrypted_row_fault(
        "record-cut", "the size of the keychain's record is not a multiple of 16", verify_and_plan(DAMAGED),
        "not a multiple of 16", change=lambda record: record[:-5], encode=bytes)
    yield encrypted_row_fault(
        "record-padding", "the keychain's record does not end in its padding", verify_and_plan(DAMAGED),
        "password and salt do not decrypt it", change=lambda record: flip_bit(record, -17, 7), encode=bytes)
    yield encrypted_row_fault(
        "record-no-base64", "the keychain's record is not base64", verify_and_plan(DAMAGED), "not a multiple of 16",
        change=lambda record: "*" + record[1:-1])
    # This fault has no message to expect.
    yield encrypted_row_fault(
        "record-empty", "the keychain's record is empty", verify_and_plan(DAMAGED), change=lambda record: b""
    )
    yield encrypted_row_fault(
        "notes-record-cut", "the size of an ordinary file's record is not a multiple of 16",
        {"verify": DAMAGED, "plan": SUCCESS}, "not a multiple of 16", change=lambda record: record[:-5], encode=bytes,
        domain_and_path=NOTES)


def faults():
    """Return all faults of this module."""
    return [*salt_faults(), *record_faults()]
