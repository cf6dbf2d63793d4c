"""Faults of the keybag, field by field.

A keybag is a list of records: a tag of 4 bytes, the length of the value in 4 bytes, and the value. The first records
are the header. Each UUID after the first one begins the records of a class key.
"""

import struct

from backup_cases import MODERN
from keychain_backup.keybag import encoded_number

from . import DAMAGED, PARTIAL, REFUSED, SUCCESS, WRONG_PASSWORD, Fault, flip_bit, partial_loss, verify_and_plan

# The largest sum of both iteration counts that Keyhaul accepts by default.
MAX_ITERATIONS = 20_000_000
NUMBER_OF_3_BYTES = b"\x00\x00\x07"


def edit_record(tag, change):
    """Return an edit of the first record with this tag.

    `change` returns the new value, or None to remove the record.
    """

    def edit(records):
        position = next(index for index, record in enumerate(records) if record[0] == tag)
        value = change(records[position][1])
        records[position:position + 1] = [] if value is None else [[tag, value]]
    return edit


def add_record(tag, change):
    """Return an edit that adds a second record with this tag. `change` returns its value, given the first value."""
    def edit(records):
        position = next(index for index, record in enumerate(records) if record[0] == tag)
        records.insert(position + 1, [tag, change(records[position][1])])
    return edit


def is_class(records, key_class):
    """Return whether the records are those of a class."""
    return [b"CLAS", encoded_number(key_class)] in records


def edit_class(key_class, edit):
    """Return an edit of one class's records."""
    def change(groups):
        edit(next(records for records in groups if is_class(records, key_class)))
    return change


def flip_middle(value):
    return flip_bit(value, len(value) // 2)


def remove(value):
    return None


def replace_with(value):
    return lambda _: value


def increment(value):
    return encoded_number(int.from_bytes(value, "big") + 1)


def header_fault(name, summary, exit_code, edit, *messages, exit_codes=None):
    """Return a fault of the header."""
    return Fault(f"keybag-{name}", summary, exit_codes or verify_and_plan(exit_code), messages, edits={"header": edit})


def class_fault(name, summary, exit_code, key_class, edit, *messages, commands=("verify",)):
    """Return a fault of one class's records."""
    return Fault(
        f"keybag-{name}", summary, {command: exit_code for command in commands}, messages,
        edits={"classes": edit_class(key_class, edit)})


def keybag_fault(name, summary, exit_code, edit, *messages):
    """Return a fault of the encoded keybag."""
    return Fault(f"keybag-{name}", summary, verify_and_plan(exit_code), messages, edits={"keybag": edit})


def edit_all_classes(edit):
    """Return an edit of every class's records."""
    def change(groups):
        for records in groups:
            edit(records)
    return change


def without_class(key_class):
    """Return an edit that removes a class."""
    def change(groups):
        return [records for records in groups if not is_class(records, key_class)]
    return change


def with_second_key(key_class):
    """Return an edit that adds a second, damaged key for a class."""
    def change(groups):
        position = next(index for index, records in enumerate(groups) if is_class(records, key_class))
        damaged_records = [list(record) for record in groups[position]]
        edit_record(b"WPKY", flip_middle)(damaged_records)
        groups.insert(position + 1, damaged_records)
    return change


def length_at(keybag, record_offset):
    """Return the length of a record's value."""
    return struct.unpack_from(">I", keybag, record_offset + 4)[0]


def last_record_offset(keybag):
    """Return the offset of the last record."""
    position = start = 0
    while position < len(keybag):
        start = position
        position += 8 + length_at(keybag, position)
    return start


def with_last_length(change_length):
    """Return an edit of the length of the last record, which keeps the record's value."""
    def change(keybag):
        start = last_record_offset(keybag)
        length = change_length(length_at(keybag, start))
        return keybag[:start + 4] + struct.pack(">I", length) + keybag[start + 8:]
    return change


def derivation_faults():
    """Return faults of the key derivation.

    A damaged salt or count looks like a wrong password. A count above the limit is rejected before any work.
    """
    for name in (b"SALT", b"DPSL"):
        lower_case_name = name.decode().lower()
        yield header_fault(
            f"{lower_case_name}-flip", f"one bit of {name.decode()} is flipped", WRONG_PASSWORD,
            edit_record(name, flip_middle), "password")
    for name in (b"ITER", b"DPIC"):
        lower_case_name = name.decode().lower()
        yield header_fault(
            f"{lower_case_name}-plus-one", f"{name.decode()} is one iteration too many", WRONG_PASSWORD,
            edit_record(name, increment), "password")
        yield header_fault(
            f"{lower_case_name}-maximal", f"{name.decode()} is 4,294,967,295", REFUSED,
            edit_record(name, replace_with(b"\xff" * 4)), "rounds")
        yield header_fault(
            f"{lower_case_name}-short", f"{name.decode()} has 3 bytes", DAMAGED,
            edit_record(name, replace_with(b"\x00\x00\x05")), "keybag")
    largest_dpic = MAX_ITERATIONS - MODERN.sha1_iterations
    yield header_fault("dpic-over-the-limit", "the sum of DPIC and ITER exceeds the limit by one", REFUSED,
                       edit_record(b"DPIC", replace_with(encoded_number(largest_dpic + 1))), "rounds")


def absent_and_repeated_faults():
    """Return faults of the key derivation in which a record is absent, 0 or repeated."""
    yield header_fault("dpic-zero", "DPIC is 0, so the key derivation has one stage", WRONG_PASSWORD,
                       edit_record(b"DPIC", replace_with(encoded_number(0))), "password")
    yield header_fault("dpsl-absent", "DPSL is absent, so the key derivation has one stage", WRONG_PASSWORD,
                       edit_record(b"DPSL", remove), "password")
    yield header_fault("dpic-absent", "DPIC is absent, so the key derivation has one stage", WRONG_PASSWORD,
                       edit_record(b"DPIC", remove), "password")
    yield header_fault("salt-absent", "SALT is absent", DAMAGED, edit_record(b"SALT", remove), "keybag")
    yield header_fault("iter-absent", "ITER is absent", DAMAGED, edit_record(b"ITER", remove), "keybag")
    yield header_fault(
        "salt-twice", "SALT occurs twice with different values", DAMAGED, add_record(b"SALT", flip_middle), "keybag"
    )
    yield header_fault(
        "iter-twice", "ITER occurs twice with different values", DAMAGED, add_record(b"ITER", increment), "keybag"
    )


def header_faults():
    """Return faults of the header's other records."""
    # The keychain then names another keybag, but its items can still be decrypted.
    yield header_fault(
        "uuid-flip", "one bit of the keybag's UUID is flipped", DAMAGED, edit_record(b"UUID", flip_middle), "keybag",
        exit_codes=partial_loss())
    yield header_fault(
        "uuid-short", "the keybag's UUID has 15 bytes", DAMAGED, edit_record(b"UUID", replace_with(bytes(15))), "keybag"
    )
    yield header_fault("uuid-absent", "the keybag's UUID is absent, so a class key's UUID is read instead", DAMAGED,
                       edit_record(b"UUID", remove), "keybag", exit_codes=partial_loss())
    for name in ("VERS", "TYPE", "HMCK", "DPWT"):
        yield header_fault(
            f"{name.lower()}-flip", f"one bit of {name} is flipped", SUCCESS, edit_record(name.encode(), flip_middle))


def wrapped_key_faults():
    """Return faults of the wrapped keys (WPKY): flipped bits, wrong sizes, and absent or repeated records."""
    for key_class in (3, 5, 7, 9):
        yield class_fault(
            f"wpky-{key_class}-flip", f"one bit of class {key_class}'s WPKY is flipped", DAMAGED, key_class,
            edit_record(b"WPKY", flip_middle), "10 of 11")
    yield Fault(
        "keybag-wpky-all-flipped", "one bit of every WPKY is flipped", verify_and_plan(WRONG_PASSWORD), ("password",),
        edits={"classes": edit_all_classes(edit_record(b"WPKY", flip_middle))})
    yield class_fault("wpky-empty", "class 7's WPKY has no bytes", DAMAGED, 7, edit_record(b"WPKY", replace_with(b"")))
    for size in (32, 39, 41, 72):
        yield class_fault(
            f"wpky-{size}", f"class 7's WPKY has {size} bytes", DAMAGED, 7,
            edit_record(b"WPKY", lambda value, size=size: value[:size].ljust(size, b"\x00")))
    yield class_fault("wpky-absent", "class 7 has no WPKY", DAMAGED, 7, edit_record(b"WPKY", remove))
    yield class_fault(
        "wpky-twice", "class 7 has two WPKYs, the second damaged", DAMAGED, 7, add_record(b"WPKY", flip_middle)
    )


def class_number_faults():
    """Return faults of the class numbers and of the set of classes."""
    yield class_fault("clas-absent", "a class key has no class number", DAMAGED, 7, edit_record(b"CLAS", remove))
    yield class_fault(
        "clas-short", "a class number has 3 bytes", DAMAGED, 7, edit_record(b"CLAS", replace_with(NUMBER_OF_3_BYTES)),
        "keybag")
    yield class_fault("clas-23", "class 7 has the number 23, an unknown class", DAMAGED, 7,
                      edit_record(b"CLAS", replace_with(encoded_number(23))))
    yield Fault(
        "keybag-class-7-absent", "the key of class 7 is absent, so its items cannot be decrypted",
        {"verify": DAMAGED, "plan": PARTIAL}, ("item 0",), edits={"classes": without_class(7)})
    yield Fault(
        "keybag-class-3-absent", "the key of class 3 is absent, which the manifest needs", verify_and_plan(DAMAGED),
        edits={"classes": without_class(3)})
    yield Fault("keybag-class-5-absent", "the key of class 5 is absent, which nothing needs", verify_and_plan(SUCCESS),
                edits={"classes": without_class(5)})
    yield Fault("keybag-class-7-twice", "class 7 occurs twice, the second time damaged", {"verify": DAMAGED},
                edits={"classes": with_second_key(7)})
    yield class_fault(
        "class-uuid-flip", "one bit of a class key's UUID is flipped", SUCCESS, 7, edit_record(b"UUID", flip_middle),
        commands=("verify", "plan"))


def wrapping_faults():
    """Return faults of the flags in WRAP: 1 is the device's key, 2 is the password, and 3 is both."""
    yield class_fault(
        "wrap-7-says-3", "class 7 is marked as also wrapped with the device key", DAMAGED, 7,
        edit_record(b"WRAP", replace_with(encoded_number(3))), "class 7")
    yield class_fault("wrap-10-says-2", "class 10 is marked as wrapped only with the password", DAMAGED, 10,
                      edit_record(b"WRAP", replace_with(encoded_number(2))), "item 3")
    yield Fault("keybag-open-to-everybody", "no password, and classes 6 to 8 are wrapped only with the empty password",
                {"inspect": SUCCESS, "verify": REFUSED, "plan": REFUSED},
                ("classes 6, 7 and 8", "not wrapped with a device key"), base="plain-unbound")
    yield Fault(
        "keybag-bound-to-no-device", "classes 9 to 11 are wrapped only with the password",
        {"inspect": SUCCESS, "verify": DAMAGED, "plan": SUCCESS},
        ("classes 9, 10 and 11", "not wrapped with a device key"), base="encrypted-unbound")
    yield class_fault("wrap-7-says-1", "class 7 is marked as wrapped only with the device key", DAMAGED, 7,
                      edit_record(b"WRAP", replace_with(encoded_number(1))))
    yield class_fault(
        "wrap-7-says-0", "class 7 is marked as not wrapped", DAMAGED, 7,
        edit_record(b"WRAP", replace_with(encoded_number(0)))
    )
    yield class_fault(
        "wrap-short", "a class key's WRAP has 3 bytes", DAMAGED, 7, edit_record(b"WRAP", replace_with(b"\x00\x00\x02")),
        "keybag")


def key_type_faults():
    """Return faults of the key types (KTYP)."""
    yield class_fault("ktyp-1-without-pbky", "class 7 has the key type Curve25519 and no public key", DAMAGED, 7,
                      edit_record(b"KTYP", replace_with(encoded_number(1))))
    yield class_fault(
        "ktyp-9", "class 7 has an unknown key type", DAMAGED, 7, edit_record(b"KTYP", replace_with(encoded_number(9)))
    )


def keybag_faults():
    """Return faults of the encoding: an empty or truncated keybag, and wrong lengths."""
    def without_classes(data):
        header_uuid = data.index(b"UUID")
        return data[:data.index(b"UUID", header_uuid + 4)]

    yield keybag_fault("empty", "the keybag is empty", DAMAGED, lambda data: b"", "keybag")
    yield keybag_fault("no-classes", "the keybag has no class keys", DAMAGED, without_classes, "keybag")
    yield keybag_fault(
        "cut-in-tag", "the keybag ends inside a tag", DAMAGED,
        lambda data: data[:last_record_offset(data) + 2], "keybag")
    yield keybag_fault(
        "cut-in-length", "the keybag ends inside a length", DAMAGED,
        lambda data: data[:last_record_offset(data) + 6], "keybag")
    yield keybag_fault(
        "cut-in-value", "the keybag ends inside a value", DAMAGED,
        lambda data: data[:-7], "keybag", "byte")
    yield keybag_fault(
        "cut-by-one", "the keybag's last byte is absent", DAMAGED,
        lambda data: data[:-1], "keybag", "byte")
    yield keybag_fault(
        "cut-by-half", "half of the keybag is absent", DAMAGED,
        lambda data: data[:len(data) // 2 + 3], "keybag")
    yield keybag_fault(
        "length-plus-one", "the last record's length is one too large", DAMAGED,
        with_last_length(lambda length: length + 1), "keybag")
    yield keybag_fault(
        "length-maximal", "the last record's length is 4,294,967,295", DAMAGED,
        with_last_length(lambda _: 0xFFFFFFFF), "keybag")
    yield keybag_fault(
        "length-negative", "the last record's length is negative as a signed number", DAMAGED,
        with_last_length(lambda _: 0x80000000), "keybag")


def faults():
    """Return all faults of this module."""
    return [
        *derivation_faults(), *absent_and_repeated_faults(), *header_faults(), *wrapped_key_faults(),
        *class_number_faults(), *wrapping_faults(), *key_type_faults(), *keybag_faults()]
