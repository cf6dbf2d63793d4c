"""Faults of the keychain file and of the items in it."""

import plistlib
import struct

from keychain_backup import apple_der, items

from . import DAMAGED, OK, PARTIAL, VICTIM, Fault, both, flipped, in_part


def blob(name, wrong, change, *says):
    """A fault of one item's blob: it is lost, the others are safe."""
    def edit(root):
        entry = root["genp"][VICTIM]
        entry["v_Data"] = change(entry["v_Data"])
    return Fault(f"item-{name}", wrong, {"verify": DAMAGED, "plan": PARTIAL}, (f"item {VICTIM}", *says),
                 edits={"keychain": edit})


def entry(name, wrong, change, code=DAMAGED, plan=PARTIAL, says=()):
    def edit(root):
        change(root["genp"][VICTIM])
    return Fault(f"item-{name}", wrong, {"verify": code, "plan": plan}, says, edits={"keychain": edit})


def inside(name, wrong, change, is_lost=True):
    """A fault of what an item's blob holds, sealed as it should be."""
    def edit(sealable):
        sealable[VICTIM][0] = change(sealable[VICTIM][0])
    codes = {"verify": DAMAGED, "plan": PARTIAL} if is_lost else both(OK)
    return Fault(f"item-{name}", wrong, codes, (f"item {VICTIM}",) if is_lost else (), edits={"items": edit})


def root(name, wrong, code, change, *says, codes=None):
    return Fault(f"keychain-{name}", wrong, codes or both(code), says, edits={"keychain": change})


def content(name, wrong, code, change, *says, base="encrypted"):
    return Fault(f"keychain-{name}", wrong, both(code), says, base, edits={"keychain-bytes": change})


def word(position, value):
    return lambda data: data[:position] + struct.pack("<I", value) + data[position + 4:]


def with_attributes(**changed):
    def change(plaintext):
        dictionary = dict(apple_der.decode(plaintext))
        dictionary.update(changed)
        return apple_der.encode({code: value for code, value in dictionary.items() if value is not None})
    return change


def with_date(text):
    """The item with this text as its modification date."""
    return with_attributes(mdat=apple_der.Moment(0, der_text=text))


def indefinite(plaintext):
    """The dictionary with the length form that DER forbids."""
    start = 2 + (plaintext[1] & 0x7F if plaintext[1] & 0x80 else 0)
    return plaintext[:1] + b"\x80" + plaintext[start:] + b"\x00\x00"


def blobs():
    yield blob("tag-flip", "one bit of the tag is flipped", lambda data: flipped(data, -1), "tag")
    yield blob("ciphertext-flip", "one bit of the ciphertext is flipped", lambda data: flipped(data, 60), "tag")
    yield blob("wrapped-key-flip", "one bit of the wrapped key is flipped", lambda data: flipped(data, 20))
    yield blob("cut-by-one", "the blob's last byte is absent", lambda data: data[:-1])
    yield blob("byte-more", "the blob has a byte more", lambda data: data + b"\x00")
    yield blob("cut-in-tag", "the blob ends before its tag could", lambda data: data[:12 + 40 + 15])
    yield blob("cut-in-wrapped-key", "the blob ends inside the wrapped key", lambda data: data[:30])
    yield blob("cut-in-header", "the blob ends inside its header", lambda data: data[:11])
    yield blob("cut-in-version", "the blob ends inside its version", lambda data: data[:3])
    yield blob("empty", "the blob is empty", lambda data: b"")
    for version in (1, 4, 5, 6, 7, 8, 9, 0x7FFFFFFF):
        yield blob(f"version-{version}", f"the blob says version {version}", word(0, version))
    yield blob("version-2", "the blob says version 2 and holds DER", word(0, 2))
    yield blob("static-iv-flag", "the blob says that it has the static IV", word(0, 3 | items.STATIC_IV_FLAG), "tag")
    for key_class, wrong in ((8, "another class"), (0, "class 0"), (12, "the class that is in no backup"),
                             (15, "an unknown class"), (3, "a class of files")):
        yield blob(f"class-{key_class}", f"the blob names {wrong}", word(4, key_class))
    for length in (0, 39, 41, 72, 0xFFFFFFFF, 0x80000000):
        yield blob(f"key-length-{length}", f"the wrapped key says {length} bytes", word(8, length))


def entries():
    yield entry("no-blob", "the entry has no v_Data", lambda found: found.pop("v_Data"), says=(f"item {VICTIM}",))
    yield entry("text-blob", "v_Data is a string", lambda found: found.update(v_Data="text"), says=(f"item {VICTIM}",))
    yield entry("reference-malformed", "v_PersistentRef has 7 bytes: the item gets a new one",
                lambda found: found.update(v_PersistentRef=b"genp\x00\x00\x01"), OK, OK)
    yield entry("reference-of-inet", "v_PersistentRef names another table: the item gets a new one",
                lambda found: found.update(v_PersistentRef=b"inet" + bytes(16)), OK, OK)
    yield entry("no-reference", "the entry has no v_PersistentRef", lambda found: found.pop("v_PersistentRef"), OK, OK)


def plaintexts():
    yield inside("trailing-byte", "a byte stands after the dictionary", lambda plain: plain + b"\x00")
    yield inside("der-cut", "the dictionary's last byte is absent", lambda plain: plain[:-1])
    yield inside("der-empty", "the item holds nothing", lambda plain: b"")
    yield inside("der-indefinite-length", "the dictionary has a length of no definite form", indefinite)
    yield inside("der-string", "the item holds a string", lambda plain: apple_der.encode("text"))
    yield inside("der-number-key", "an attribute's name is a number",
                 lambda plain: plain.replace(apple_der.encode("sync"), b"\x02\x04\x01\x02\x03\x04"))
    yield inside("protection-of-another-class", "pdmn names another class than the blob", with_attributes(pdmn="dk"))
    yield inside("protection-unknown", "pdmn names no class", with_attributes(pdmn="zz"))
    yield inside("protection-absent", "pdmn is absent", with_attributes(pdmn=None))
    yield inside("date-malformed", "a date's text is malformed and is repaired, as Apple does",
                 with_date("2026-11-19 000Z"), is_lost=False)
    yield inside("date-impossible", "a date is well-formed and names February 30", with_date("20260230000000Z"))


def files():
    def set_uuid(change):
        return lambda found: found.update({"keybag-uuid": change(found["keybag-uuid"])})

    other = "00112233-4455-6677-8899-aabbccddeeff"
    yield root("other-keybag", "keybag-uuid names another keybag", DAMAGED, set_uuid(lambda _: other), "keybag",
               codes=in_part())
    yield root("keybag-upper-case", "keybag-uuid is written in upper case", DAMAGED, set_uuid(str.upper), "keybag",
               codes=in_part())
    yield root("idnt", "there is a table idnt, which fails the whole import", DAMAGED,
               lambda found: found.update(idnt=[]))
    yield root("member-no-dictionary", "a member of genp is not a dictionary, which fails the whole import", DAMAGED,
               lambda found: found["genp"].append("text"))
    yield root("array", "the file's root is an array", DAMAGED,
               lambda found: plistlib.dumps([], fmt=plistlib.FMT_BINARY))
    for base in ("encrypted", "plain", "mbdb"):
        mark = "" if base == "encrypted" else f"-{base}"
        yield content(f"magic-flip{mark}", "the file doesn't start as a property list", DAMAGED,
                      lambda data: flipped(data, 0), base=base)
        yield content(f"cut{mark}", "half of the file is absent", DAMAGED, lambda data: data[:len(data) // 2],
                      base=base)
    yield content("empty", "the file is empty", DAMAGED, lambda data: b"")
    yield content("offset-table", "the offset table begins after the end", DAMAGED,
                  lambda data: data[:-8] + struct.pack(">Q", len(data) + 1))
    yield content("root-index", "the root object is none of those there are", DAMAGED,
                  lambda data: data[:-16] + struct.pack(">Q", 1 << 40) + data[-8:])
    yield content("offset-size-0", "an offset has 0 bytes", DAMAGED, lambda data: data[:-26] + b"\x00" + data[-25:])
    yield content("object-count", "there are 2^60 objects", DAMAGED,
                  lambda data: data[:-24] + struct.pack(">Q", 1 << 60) + data[-16:])


def faults():
    return [*blobs(), *entries(), *plaintexts(), *files()]
