"""Faults of a list of files whose records are sealed one by one, as iOS 10.0 alone wrote it."""

from backup_cases import SALT, in_base64, ios_10_0_properties, ios_10_0_rows
from keychain_backup.recipe import KEYCHAIN, NOTES

from . import DAMAGED, OK, Fault, both, flipped


def sealed(name, wrong, codes, *says, change=None, of=KEYCHAIN, form=in_base64, salt=SALT, properties=None):
    """The record of one file is changed after it was sealed; `properties` fills the table of the salt."""
    def rows(found):
        ios_10_0_rows(form)(found)
        if change is not None:
            row = next(row for row in found if tuple(row[1:3]) == of)
            row[4] = change(row[4])
    return Fault(f"ios-10.0-{name}", wrong, codes, says, "ios-10.0",
                 edits={"rows": rows, "sql": properties or ios_10_0_properties(salt=salt)})


def salts():
    everything = {"inspect": OK, **both(DAMAGED)}
    yield sealed("no-salt", "the rows are sealed and there is no salt", everything, "no salt",
                 properties=lambda connection: None)
    yield sealed("salt-empty", "the salt has no byte", everything, "a salt of 0 bytes", salt=b"")
    yield sealed("salt-number", "the salt is a number", everything, "a salt", "neither data nor text", salt=7)
    yield sealed("salt-long", "the salt has a million bytes", everything, "1,000,000",
                 salt=bytes(1_000_000))
    # The names of its files are not encrypted.
    yield sealed("salt-flip", "one bit of the salt is flipped, so that no record opens", {"inspect": OK, **both(DAMAGED)},
                 "password and salt do not decrypt it", salt=flipped(SALT, 3))


def records():
    yield sealed("record-cut", "the keychain's record is not a whole number of blocks", both(DAMAGED),
                 "not a multiple of 16", change=lambda record: record[:-5], form=bytes)
    yield sealed("record-padding", "the keychain's record does not end in its padding", both(DAMAGED),
                 "password and salt do not decrypt it", change=lambda record: flipped(record, -17, 7),
                 form=bytes)
    yield sealed("record-no-base64", "the keychain's record is not base64", both(DAMAGED), "not a multiple of 16",
                 change=lambda record: "*" + record[1:-1])
    yield sealed("record-empty", "the keychain's record is empty", both(DAMAGED), change=lambda record: b"")
    yield sealed("notes-record-cut", "an ordinary file's record is not a whole number of blocks", {"verify": DAMAGED, "plan": OK},
                 "not a multiple of 16", change=lambda record: record[:-5], form=bytes, of=NOTES)


def faults():
    return [*salts(), *records()]
