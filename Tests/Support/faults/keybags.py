"""Faults of the keybag, field by field."""

import struct

from keychain_backup.forge import number

from . import DAMAGED, OK, REFUSED, WRONG_PASSWORD, Fault, both, flipped, in_part

LIMIT = 20_000_000


def tag(name, change):
    """An edit of the first record with this tag; `change` gives the new value, or None to leave it out."""
    def edit(records):
        position = next(index for index, record in enumerate(records) if record[0] == name)
        value = change(records[position][1])
        records[position:position + 1] = [] if value is None else [[name, value]]
    return edit


def again(name, change):
    """An edit that adds a second record with this tag."""
    def edit(records):
        position = next(index for index, record in enumerate(records) if record[0] == name)
        records.insert(position + 1, [name, change(records[position][1])])
    return edit


def of_class(key_class, edit):
    def change(groups):
        edit(next(group for group in groups if [b"CLAS", number(key_class)] in group))
    return change


def first_bit(value):
    return flipped(value, len(value) // 2)


def absent(value):
    return None


def to(value):
    return lambda _: value


def plus_one(value):
    return number(int.from_bytes(value, "big") + 1)


def header(name, wrong, code, edit, *says, codes=None):
    return Fault(f"keybag-{name}", wrong, codes or both(code), says, edits={"header": edit})


def group(name, wrong, code, key_class, edit, *says, verbs=("verify",)):
    return Fault(
        f"keybag-{name}", wrong, {verb: code for verb in verbs}, says, edits={"classes": of_class(key_class, edit)})


def whole(name, wrong, code, edit, *says):
    return Fault(f"keybag-{name}", wrong, both(code), says, edits={"keybag": edit})


def all_groups(edit):
    def change(groups):
        for records in groups:
            edit(records)
    return change


def without_class(key_class):
    def change(groups):
        return [records for records in groups if [b"CLAS", number(key_class)] not in records]
    return change


def class_twice(key_class):
    def change(groups):
        position = next(i for i, records in enumerate(groups) if [b"CLAS", number(key_class)] in records)
        records = [list(record) for record in groups[position]]
        tag(b"WPKY", first_bit)(records)
        groups.insert(position + 1, records)
    return change


def last_record(keybag):
    """Where the last record starts."""
    position = start = 0
    while position < len(keybag):
        start = position
        position += 8 + struct.unpack_from(">I", keybag, position + 4)[0]
    return start


def greedy(more):
    def change(keybag):
        start = last_record(keybag)
        size = more if more > 1000 else struct.unpack_from(">I", keybag, start + 4)[0] + more
        return keybag[:start + 4] + struct.pack(">I", size) + keybag[start + 8:]
    return change


def derivation():
    """A damaged salt or count looks like a wrong password; a count over the limit is refused before any work."""
    for name in (b"SALT", b"DPSL"):
        text = name.decode().lower()
        yield header(f"{text}-flip", f"one bit of {name.decode()} is flipped", WRONG_PASSWORD, tag(name, first_bit),
                     "password")
    for name in (b"ITER", b"DPIC"):
        text = name.decode().lower()
        yield header(f"{text}-plus-one", f"{name.decode()} is one round too many", WRONG_PASSWORD, tag(name, plus_one),
                     "password")
        yield header(f"{text}-maximal", f"{name.decode()} is 4,294,967,295", REFUSED, tag(name, to(b"\xff" * 4)),
                     "rounds")
        yield header(f"{text}-short", f"{name.decode()} has 3 bytes", DAMAGED, tag(name, to(b"\x00\x00\x05")), "keybag")
    yield header("dpic-over-the-limit", "DPIC and ITER together are one over the limit", REFUSED,
                 tag(b"DPIC", to(number(LIMIT - 4))), "rounds")
    yield header("dpic-zero", "DPIC is 0, so there is one round of derivation", WRONG_PASSWORD,
                 tag(b"DPIC", to(number(0))), "password")
    yield header("dpsl-absent", "DPSL is absent, so there is one round of derivation", WRONG_PASSWORD,
                 tag(b"DPSL", absent), "password")
    yield header("dpic-absent", "DPIC is absent, so there is one round of derivation", WRONG_PASSWORD,
                 tag(b"DPIC", absent), "password")
    yield header("salt-absent", "SALT is absent", DAMAGED, tag(b"SALT", absent), "keybag")
    yield header("iter-absent", "ITER is absent", DAMAGED, tag(b"ITER", absent), "keybag")
    yield header("salt-twice", "SALT stands twice with two values", DAMAGED, again(b"SALT", first_bit), "keybag")
    yield header("iter-twice", "ITER stands twice with two values", DAMAGED, again(b"ITER", plus_one), "keybag")


def headers():
    # The keychain names another keybag then; its items open all the same.
    yield header("uuid-flip", "one bit of the keybag's UUID is flipped", DAMAGED, tag(b"UUID", first_bit), "keybag",
                 codes=in_part())
    yield header("uuid-short", "the keybag's UUID has 15 bytes", DAMAGED, tag(b"UUID", to(bytes(15))), "keybag")
    yield header("uuid-absent", "the keybag's UUID is absent, and a class key's takes its place", DAMAGED,
                 tag(b"UUID", absent), "keybag", codes=in_part())
    for name, wrong in ((b"VERS", "VERS, which decides nothing"), (b"TYPE", "TYPE"), (b"HMCK", "HMCK"),
                        (b"DPWT", "DPWT")):
        yield header(f"{name.decode().lower()}-flip", f"one bit of {wrong} is flipped", OK, tag(name, first_bit))


def classes():
    for key_class in (3, 5, 7, 9):
        yield group(f"wpky-{key_class}-flip", f"one bit of class {key_class}'s WPKY is flipped", DAMAGED, key_class,
                    tag(b"WPKY", first_bit), "10 of 11")
    yield Fault("keybag-wpky-all-flipped", "one bit of every WPKY is flipped", both(WRONG_PASSWORD), ("password",),
                edits={"classes": all_groups(tag(b"WPKY", first_bit))})
    for size, value in (("empty", lambda _: b""), ("32", lambda v: v[:32]), ("39", lambda v: v[:39]),
                        ("41", lambda v: v + b"\x00"), ("72", lambda v: v + bytes(32))):
        count = "no" if size == "empty" else size
        yield group(f"wpky-{size}", f"class 7's WPKY has {count} bytes", DAMAGED, 7, tag(b"WPKY", value))
    yield group("wpky-absent", "class 7 has no WPKY", DAMAGED, 7, tag(b"WPKY", absent))
    yield group("wpky-twice", "class 7 has two WPKYs, the second damaged", DAMAGED, 7, again(b"WPKY", first_bit))
    yield group("clas-absent", "a class key says no class", DAMAGED, 7, tag(b"CLAS", absent))
    yield group("clas-short", "a class number has 3 bytes", DAMAGED, 7, tag(b"CLAS", to(b"\x00\x00\x07")), "keybag")
    yield group("clas-23", "class 7 calls itself 23: an unknown class, never 7", DAMAGED, 7,
                tag(b"CLAS", to(number(0x17))))
    yield Fault("keybag-class-7-absent", "the key of class 7 is absent, its items have none", {"verify": DAMAGED,
                "plan": 3}, ("item 0",), edits={"classes": without_class(7)})
    yield Fault("keybag-class-3-absent", "the key of class 3 is absent, which the manifest needs", both(DAMAGED),
                edits={"classes": without_class(3)})
    yield Fault("keybag-class-5-absent", "the key of class 5 is absent, which nothing needs", both(OK),
                edits={"classes": without_class(5)})
    yield Fault("keybag-class-7-twice", "class 7 stands twice, the second damaged", {"verify": DAMAGED},
                edits={"classes": class_twice(7)})
    yield group("class-uuid-flip", "one bit of a class key's UUID is flipped", OK, 7, tag(b"UUID", first_bit),
                verbs=("verify", "plan"))
    yield group("wrap-7-says-3", "class 7 says that it needs the device's key too: its items stay shut", DAMAGED, 7,
                tag(b"WRAP", to(number(3))), "class 7")
    yield group("wrap-10-says-2", "class 10 says that the password is enough: its items stay shut", DAMAGED, 10,
                tag(b"WRAP", to(number(2))), "item 3")
    yield Fault("keybag-open-to-everybody", "no password, and classes 6 to 8 are wrapped with the empty one alone",
                {"inspect": OK, "verify": REFUSED, "plan": REFUSED},
                ("classes 6, 7 and 8", "not wrapped with a device's hardware key"), base="plain-unbound")
    yield Fault("keybag-bound-to-no-device", "classes 9 to 11 are wrapped with the password alone, and their items open",
                {"inspect": OK, "verify": DAMAGED, "plan": OK},
                ("classes 9, 10 and 11", "not wrapped with a device's hardware key"), base="encrypted-unbound")
    yield group("wrap-7-says-1", "class 7 says that the device's key alone wraps it", DAMAGED, 7,
                tag(b"WRAP", to(number(1))))
    yield group("wrap-7-says-0", "class 7 says that nothing wraps it", DAMAGED, 7, tag(b"WRAP", to(number(0))))
    yield group("wrap-short", "a class key's WRAP has 3 bytes", DAMAGED, 7, tag(b"WRAP", to(b"\x00\x00\x02")), "keybag")
    yield group("ktyp-1-without-pbky", "class 7 says Curve25519 and has no public key", DAMAGED, 7,
                tag(b"KTYP", to(number(1))))
    yield group("ktyp-9", "class 7 has an unknown type of key", DAMAGED, 7, tag(b"KTYP", to(number(9))))


def streams():
    yield whole("empty", "the keybag is empty", DAMAGED, lambda keybag: b"", "keybag")
    yield whole("no-classes", "the keybag has no class keys", DAMAGED,
                lambda keybag: keybag[:keybag.index(b"UUID", keybag.index(b"UUID") + 4)], "keybag")
    yield whole("cut-in-tag", "the keybag ends inside a tag", DAMAGED, lambda k: k[:last_record(k) + 2], "keybag")
    yield whole("cut-in-length", "the keybag ends inside a length", DAMAGED, lambda k: k[:last_record(k) + 6], "keybag")
    yield whole("cut-in-value", "the keybag ends inside a value", DAMAGED, lambda k: k[:-7], "keybag", "byte")
    yield whole("cut-by-one", "the keybag's last byte is absent", DAMAGED, lambda k: k[:-1], "keybag", "byte")
    yield whole("cut-by-half", "half of the keybag is absent", DAMAGED, lambda k: k[:len(k) // 2 + 3], "keybag")
    yield whole("length-plus-one", "the last record's length is one too large", DAMAGED, greedy(1), "keybag")
    yield whole("length-maximal", "the last record's length is 4,294,967,295", DAMAGED, greedy(0xFFFFFFFF), "keybag")
    yield whole("length-negative", "the last record's length is negative where signed", DAMAGED, greedy(0x80000000),
                "keybag")


def faults():
    return [*derivation(), *headers(), *classes(), *streams()]
