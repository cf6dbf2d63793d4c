"""Faults of the keychain file and its items."""

import plistlib
import struct

from keychain_backup import apple_der, items

from . import DAMAGED, DAMAGED_ITEM, PARTIAL, SUCCESS, Fault, flip_bit, partial_loss, verify_and_plan


def blob_fault(name, summary, change, *messages):
    """Return a fault of one item's blob. Only that item is lost."""
    def edit(root):
        entry = root["genp"][DAMAGED_ITEM]
        entry["v_Data"] = change(entry["v_Data"])
    return Fault(f"item-{name}", summary, {"verify": DAMAGED, "plan": PARTIAL}, (f"item {DAMAGED_ITEM}", *messages),
                 edits={"keychain": edit})


def entry_fault(name, summary, change, exit_code=DAMAGED, plan_exit_code=PARTIAL, messages=()):
    """Return a fault of one item's entry."""
    def edit(root):
        change(root["genp"][DAMAGED_ITEM])

    return Fault(
        f"item-{name}", summary, {"verify": exit_code, "plan": plan_exit_code}, messages, edits={"keychain": edit}
    )


def plaintext_fault(name, summary, change, is_lost=True):
    """Return a fault of an item's plaintext, which is encrypted correctly."""
    def edit(plaintexts):
        plaintexts[DAMAGED_ITEM][0] = change(plaintexts[DAMAGED_ITEM][0])
    exit_codes = {"verify": DAMAGED, "plan": PARTIAL} if is_lost else verify_and_plan(SUCCESS)
    return Fault(
        f"item-{name}", summary, exit_codes, (f"item {DAMAGED_ITEM}",) if is_lost else (), edits={"items": edit}
    )


def root_fault(name, summary, exit_code, change, *messages, exit_codes=None):
    """Return a fault of the keychain file's root dictionary."""
    return Fault(
        f"keychain-{name}", summary, exit_codes or verify_and_plan(exit_code), messages, edits={"keychain": change}
    )


def content_fault(name, summary, exit_code, change, *messages, base="encrypted"):
    """Return a fault of the keychain file's bytes."""
    return Fault(
        f"keychain-{name}", summary, verify_and_plan(exit_code), messages, base, edits={"keychain-bytes": change}
    )


def set_number(offset, value):
    """Return an edit that sets a 32-bit number."""
    return lambda data: data[:offset] + struct.pack("<I", value) + data[offset + 4:]


def with_attributes(**changed):
    """Return an edit that sets attributes of an item, or removes attributes whose new value is None."""
    def change(plaintext):
        dictionary = {**apple_der.decode(plaintext), **changed}
        return apple_der.encode({name: value for name, value in dictionary.items() if value is not None})
    return change


def with_date(text):
    """Return an edit that sets the text of the modification date."""
    return with_attributes(mdat=apple_der.Moment(0, der_text=text))


def with_indefinite_length(plaintext):
    """Return the dictionary with an indefinite length, which DER forbids."""
    # If the length is 128 or more, its first byte is the number of the bytes that follow.
    has_long_length = plaintext[1] & 0x80
    content_start = 2 + (plaintext[1] & 0x7F if has_long_length else 0)
    return plaintext[:1] + b"\x80" + plaintext[content_start:] + b"\x00\x00"


def blob_faults():
    """Return faults of the encrypted blob of an item.

    A blob begins with three 32-bit numbers: the version at 0, the class at 4, and the length of the wrapped key at 8.
    The wrapped key, the ciphertext and a tag of 16 bytes follow.
    """
    yield blob_fault("tag-flip", "one bit of the tag is flipped", lambda data: flip_bit(data, -1), "tag")
    yield blob_fault("ciphertext-flip", "one bit of the ciphertext is flipped", lambda data: flip_bit(data, 60), "tag")
    yield blob_fault("wrapped-key-flip", "one bit of the wrapped key is flipped", lambda data: flip_bit(data, 20))
    yield blob_fault("cut-by-one", "the blob's last byte is absent", lambda data: data[:-1])
    yield blob_fault("byte-more", "the blob has an extra byte", lambda data: data + b"\x00")
    # The header, the wrapped key, and fewer bytes than a tag has.
    yield blob_fault("cut-in-tag", "the blob ends before its tag could", lambda data: data[:12 + 40 + 15])
    yield blob_fault("cut-in-wrapped-key", "the blob ends inside the wrapped key", lambda data: data[:30])
    yield blob_fault("cut-in-header", "the blob ends inside its header", lambda data: data[:11])
    yield blob_fault("cut-in-version", "the blob ends inside its version", lambda data: data[:3])
    yield blob_fault("empty", "the blob is empty", lambda data: b"")
    for version in (1, 4, 5, 6, 7, 8, 9, 0x7FFFFFFF):
        yield blob_fault(f"version-{version}", f"the blob has version {version}", set_number(0, version))
    yield blob_fault("version-2", "the blob has version 2 and contains DER", set_number(0, 2))
    yield blob_fault(
        "static-iv-flag", "the blob has the flag of the static IV", set_number(0, 3 | items.STATIC_IV_FLAG), "tag"
    )
    for key_class, summary in ((8, "another class"), (0, "class 0"), (12, "the class that is in no backup"),
                               (15, "an unknown class"), (3, "a class of files")):
        yield blob_fault(f"class-{key_class}", f"the blob names {summary}", set_number(4, key_class))
    for length in (0, 39, 41, 72, 0xFFFFFFFF, 0x80000000):
        yield blob_fault(f"key-length-{length}", f"the length of the wrapped key is {length}", set_number(8, length))


def entry_faults():
    """Return faults of the entry that contains an item's blob."""
    yield entry_fault(
        "no-blob", "the entry has no v_Data", lambda entry: entry.pop("v_Data"), messages=(f"item {DAMAGED_ITEM}",)
    )
    yield entry_fault(
        "text-blob", "v_Data is a string", lambda entry: entry.update(v_Data="text"), messages=(f"item {DAMAGED_ITEM}",)
    )
    yield entry_fault("reference-malformed", "v_PersistentRef has 7 bytes: the item gets a new one",
                      lambda entry: entry.update(v_PersistentRef=b"genp\x00\x00\x01"), SUCCESS, SUCCESS)
    yield entry_fault("reference-of-inet", "v_PersistentRef names another table: the item gets a new one",
                      lambda entry: entry.update(v_PersistentRef=b"inet" + bytes(16)), SUCCESS, SUCCESS)
    yield entry_fault(
        "no-reference", "the entry has no v_PersistentRef", lambda entry: entry.pop("v_PersistentRef"), SUCCESS, SUCCESS
    )


def plaintext_faults():
    """Return faults of an item's attributes, which are visible only after decryption."""
    yield plaintext_fault("trailing-byte", "a byte follows the dictionary", lambda plain: plain + b"\x00")
    yield plaintext_fault("der-cut", "the dictionary's last byte is absent", lambda plain: plain[:-1])
    yield plaintext_fault("der-empty", "the item's plaintext is empty", lambda plain: b"")
    yield plaintext_fault(
        "der-indefinite-length", "the dictionary has an indefinite length", with_indefinite_length
    )
    yield plaintext_fault("der-string", "the item's plaintext is a string", lambda plain: apple_der.encode("text"))
    yield plaintext_fault("der-number-key", "an attribute's name is a number",
                          lambda plain: plain.replace(apple_der.encode("sync"), b"\x02\x04\x01\x02\x03\x04"))
    yield plaintext_fault(
        "protection-of-another-class", "pdmn names another class than the blob", with_attributes(pdmn="dk")
    )
    yield plaintext_fault("protection-unknown", "pdmn names no class", with_attributes(pdmn="zz"))
    yield plaintext_fault("protection-absent", "pdmn is absent", with_attributes(pdmn=None))
    yield plaintext_fault("date-malformed", "a date's text is malformed and is repaired, as Apple does",
                          with_date("2026-11-19 000Z"), is_lost=False)
    yield plaintext_fault(
        "date-impossible", "a date is well-formed, but is February 30", with_date("20260230000000Z")
    )


def root_faults():
    """Return faults of the values in the keychain file's root dictionary."""
    def set_uuid(change):
        return lambda root: root.update({"keybag-uuid": change(root["keybag-uuid"])})

    other_uuid = "00112233-4455-6677-8899-aabbccddeeff"
    yield root_fault(
        "other-keybag", "keybag-uuid names another keybag", DAMAGED, set_uuid(lambda _: other_uuid), "keybag",
        exit_codes=partial_loss())
    yield root_fault(
        "keybag-upper-case", "keybag-uuid is written in upper case", DAMAGED, set_uuid(str.upper), "keybag",
        exit_codes=partial_loss())
    yield root_fault("idnt", "there is a table idnt, which fails the whole import", DAMAGED,
                     lambda root: root.update(idnt=[]))
    yield root_fault(
        "member-no-dictionary", "a member of genp is not a dictionary, which fails the whole import", DAMAGED,
        lambda root: root["genp"].append("text"))
    yield root_fault("array", "the file's root is an array", DAMAGED,
                     lambda _: plistlib.dumps([], fmt=plistlib.FMT_BINARY))


def content_faults():
    """Return faults of the keychain file's bytes.

    A binary property list ends in a trailer of 32 bytes: the size of an offset at -26, the object count at -24, the
    root's index at -16, and the position of the offset table at -8.
    """
    for base in ("encrypted", "plain", "mbdb"):
        name_suffix = "" if base == "encrypted" else f"-{base}"
        yield content_fault(f"magic-flip{name_suffix}", "the file doesn't start as a property list", DAMAGED,
                            lambda data: flip_bit(data, 0), base=base)
        yield content_fault(
            f"cut{name_suffix}", "half of the file is absent", DAMAGED, lambda data: data[: len(data) // 2], base=base
        )
    yield content_fault("empty", "the file is empty", DAMAGED, lambda data: b"")
    yield content_fault("offset-table", "the offset table begins after the end", DAMAGED,
                        lambda data: data[:-8] + struct.pack(">Q", len(data) + 1))
    yield content_fault("root-index", "the root object is not one of the file's objects", DAMAGED,
                        lambda data: data[:-16] + struct.pack(">Q", 1 << 40) + data[-8:])
    yield content_fault(
        "offset-size-0", "an offset has 0 bytes", DAMAGED, lambda data: data[:-26] + b"\x00" + data[-25:]
    )
    yield content_fault("object-count", "there are 2^60 objects", DAMAGED,
                        lambda data: data[:-24] + struct.pack(">Q", 1 << 60) + data[-16:])


def faults():
    """Return all faults of this module."""
    return [*blob_faults(), *entry_faults(), *plaintext_faults(), *root_faults(), *content_faults()]
