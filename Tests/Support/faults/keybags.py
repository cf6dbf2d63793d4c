"""Faults of the keybag, field by field."""

import struct

from keychain_backup.builder import encoded_number

from . import DAMAGED, REFUSED, SUCCESS, WRONG_PASSWORD, Fault, flip_bit, partial_loss, verify_and_plan

# The largest sum of both iteration counts that is accepted by default.
LIMIT = 20_000_000


def edit_record(name, change):
    """Return an edit of the first record with this tag.

    `change` returns the new value, or None to remove the record.
    """

    def edit(records):
        position = next(index for index, record in enumerate(records) if record[0] == name)
        value = change(records[position][1])
        records[position:position + 1] = [] if value is None else [[name, value]]
    return edit


def add_record(name, change):
    """Return an edit that adds a second record with this tag."""
    def edit(records):
        position = next(index for index, record in enumerate(records) if record[0] == name)
        records.insert(position + 1, [name, change(records[position][1])])
    return edit


def edit_class(key_class, edit):
    """Return an edit of one class's records."""
    def change(groups):
        edit(next(group for group in groups if [b"CLAS", encoded_number(key_class)] in group))
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
        return [records for records in groups if [b"CLAS", encoded_number(key_class)] not in records]
    return change


def with_second_key(key_class):
    """Return an edit that adds a second, damaged key for a class."""
    def change(groups):
        position = next(i for i, records in enumerate(groups) if [b"CLAS", encoded_number(key_class)] in records)
        records = [list(record) for record in groups[position]]
        edit_record(b"WPKY", flip_middle)(records)
        groups.insert(position + 1, records)
    return change


def last_record(keybag):
    """Return the offset of the last record."""
    position = start = 0
    while position < len(keybag):
        start = position
        position += 8 + struct.unpack_from(">I", keybag, position + 4)[0]
    return start


def with_longer_record(more):
    """Return an edit that makes the length of the last record too large. Up to 1,000 is added to the length."""
    def change(keybag):
        start = last_record(keybag)
        size = more if more > 1000 else struct.unpack_from(">I", keybag, start + 4)[0] + more
        return keybag[:start + 4] + struct.pack(">I", size) + keybag[start + 8:]
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
    yield header_fault("dpic-over-the-limit", "the sum of DPIC and ITER exceeds the limit by one", REFUSED,
                       edit_record(b"DPIC", replace_with(encoded_number(LIMIT - 4))), "rounds")
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


def class_faults():
    """Return faults of the class keys: absent, repeated and damaged records, and wrong wrapping."""
    for key_class in (3, 5, 7, 9):
        yield class_fault(
            f"wpky-{key_class}-flip", f"one bit of class {key_class}'s WPKY is flipped", DAMAGED, key_class,
            edit_record(b"WPKY", flip_middle), "10 of 11")
    yield Fault(
        "keybag-wpky-all-flipped", "one bit of every WPKY is flipped", verify_and_plan(WRONG_PASSWORD), ("password",),
        edits={"classes": edit_all_classes(edit_record(b"WPKY", flip_middle))})
    for size, value in (("empty", lambda _: b""), ("32", lambda v: v[:32]), ("39", lambda v: v[:39]),
                        ("41", lambda v: v + b"\x00"), ("72", lambda v: v + bytes(32))):
        count = "no" if size == "empty" else size
        yield class_fault(f"wpky-{size}", f"class 7's WPKY has {count} bytes", DAMAGED, 7, edit_record(b"WPKY", value))
    yield class_fault("wpky-absent", "class 7 has no WPKY", DAMAGED, 7, edit_record(b"WPKY", remove))
    yield class_fault(
        "wpky-twice", "class 7 has two WPKYs, the second damaged", DAMAGED, 7, add_record(b"WPKY", flip_middle)
    )
    yield class_fault("clas-absent", "a class key has no class number", DAMAGED, 7, edit_record(b"CLAS", remove))
    yield class_fault(
        "clas-short", "a class number has 3 bytes", DAMAGED, 7, edit_record(b"CLAS", replace_with(b"\x00\x00\x07")),
        "keybag")
    yield class_fault("clas-23", "class 7 has the number 23, an unknown class", DAMAGED, 7,
                      edit_record(b"CLAS", replace_with(encoded_number(0x17))))
    yield Fault(
        "keybag-class-7-absent", "the key of class 7 is absent, so its items cannot be decrypted",
        {"verify": DAMAGED, "plan": 3}, ("item 0",), edits={"classes": without_class(7)})
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
    yield class_fault(
        "wrap-7-says-3", "class 7 is marked as also wrapped with the device key", DAMAGED, 7,
        edit_record(b"WRAP", replace_with(encoded_number(3))), "class 7")
    yield class_fault("wrap-10-says-2", "class 10 is marked as wrapped only with the password", DAMAGED, 10,
                      edit_record(b"WRAP", replace_with(encoded_number(2))), "item 3")
    yield Fault("keybag-open-to-everybody", "no password, and classes 6 to 8 are wrapped only with the empty password",
                {"inspect": SUCCESS, "verify": REFUSED, "plan": REFUSED},
                ("classes 6, 7 and 8", "not wrapped with a device's hardware key"), base="plain-unbound")
    yield Fault(
        "keybag-bound-to-no-device", "classes 9 to 11 are wrapped only with the password",
        {"inspect": SUCCESS, "verify": DAMAGED, "plan": SUCCESS},
        ("classes 9, 10 and 11", "not wrapped with a device's hardware key"), base="encrypted-unbound")
    yield class_fault("wrap-7-says-1", "class 7 is marked as wrapped only with the device key", DAMAGED, 7,
                      edit_record(b"WRAP", replace_with(encoded_number(1))))
    yield class_fault(
        "wrap-7-says-0", "class 7 is marked as not wrapped", DAMAGED, 7,
        edit_record(b"WRAP", replace_with(encoded_number(0)))
    )
    yield class_fault(
        "wrap-short", "a class key's WRAP has 3 bytes", DAMAGED, 7, edit_record(b"WRAP", replace_with(b"\x00\x00\x02")),
        "keybag")
    yield class_fault("ktyp-1-without-pbky", "class 7 has the key type Curve25519 and no public key", DAMAGED, 7,
                      edit_record(b"KTYP", replace_with(encoded_number(1))))
    yield class_fault(
        "ktyp-9", "class 7 has an unknown key type", DAMAGED, 7, edit_record(b"KTYP", replace_with(encoded_number(9)))
    )


def keybag_faults():
    """Return faults of the encoding: an empty or truncated keybag, and wrong lengths."""
    yield keybag_fault("empty", "the keybag is empty", DAMAGED, lambda keybag: b"", "keybag")
    yield keybag_fault("no-classes", "the keybag has no class keys", DAMAGED,
                       lambda keybag: keybag[:keybag.index(b"UUID", keybag.index(b"UUID") + 4)], "keybag")
    yield keybag_fault(
        "cut-in-tag", "the keybag ends inside a tag", DAMAGED, lambda k: k[: last_record(k) + 2], "keybag"
    )
    yield keybag_fault(
        "cut-in-length", "the keybag ends inside a length", DAMAGED, lambda k: k[: last_record(k) + 6], "keybag"
    )
    yield keybag_fault("cut-in-value", "the keybag ends inside a value", DAMAGED, lambda k: k[:-7], "keybag", "byte")
    yield keybag_fault("cut-by-one", "the keybag's last byte is absent", DAMAGED, lambda k: k[:-1], "keybag", "byte")
    yield keybag_fault("cut-by-half", "half of the keybag is absent", DAMAGED, lambda k: k[:len(k) // 2 + 3], "keybag")
    yield keybag_fault(
        "length-plus-one", "the last record's length is one too large", DAMAGED, with_longer_record(1), "keybag"
    )
    yield keybag_fault(
        "length-maximal", "the last record's length is 4,294,967,295", DAMAGED, with_longer_record(0xFFFFFFFF), "keybag"
    )
    yield keybag_fault(
        "length-negative", "the last record's length is negative as a signed number", DAMAGED,
        with_longer_record(0x80000000), "keybag")


def faults():
    """Return all faults of this module."""
    return [*derivation_faults(), *header_faults(), *class_faults(), *keybag_faults()]
