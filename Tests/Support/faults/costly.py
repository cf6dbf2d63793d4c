"""What made a reader crash or starve: small inputs that stand for far more than they hold, and names beyond ASCII."""

import os
import struct

from . import DAMAGED, OK, REFUSED, Fault

LEVELS, WIDTH = 23, 10
SPARSE = 40 << 30


def nested_arrays():
    """Arrays of ten references to the next one: 343 bytes for ten to the power of twenty-three values."""
    objects = [bytes([0xA0 | WIDTH]) + bytes([level] * WIDTH) for level in range(1, LEVELS + 1)] + [b"\x51a"]
    offsets, body = [], b"bplist00"
    for encoded in objects:
        offsets.append(len(body))
        body += encoded
    table = b"".join(struct.pack(">H", offset) for offset in offsets)
    return body + table + bytes(6) + bytes([2, 1]) + struct.pack(">QQQ", len(objects), 0, len(body))


def part(name, wrong, codes, file, change, *says, base="encrypted"):
    return Fault(name, wrong, codes, says or (file.lower(),), base,
                 edits={"parts": lambda parts: parts.update({file: change(parts[file])})})


def bombs():
    for base in ("encrypted", "plain"):
        mark = "" if base == "encrypted" else f"-{base}"
        yield part(f"info-nested-arrays{mark}", "Info.plist is 343 bytes of arrays that share their elements",
                   {"inspect": OK, "verify": REFUSED, "plan": OK}, "Info.plist", lambda data: nested_arrays(), base=base)
        yield part(f"status-nested-arrays{mark}", "Status.plist is 343 bytes of arrays that share their elements",
                   {"inspect": OK, "verify": REFUSED, "plan": REFUSED}, "Status.plist", lambda data: nested_arrays(),
                   base=base)
    yield part("manifest-nested-arrays", "Manifest.plist is 343 bytes of arrays that share their elements",
               {"inspect": REFUSED, "verify": REFUSED, "plan": REFUSED}, "Manifest.plist", lambda data: nested_arrays())
    yield part("info-cut", "half of Info.plist is absent", {"inspect": OK, "verify": DAMAGED, "plan": OK}, "Info.plist",
               lambda data: data[:len(data) // 2])
    yield Fault("info-sparse", "Info.plist has forty gigabytes that take no room",
                {"inspect": OK, "verify": REFUSED, "plan": OK}, ("info.plist",),
                on_disk=lambda path: os.truncate(path / "Info.plist", SPARSE))


def in_folder(name):
    """The same files, in a folder of another name."""
    return lambda entries: [(f"{name}/{path.split('/', 1)[1]}", content) for path, content in entries]


def names():
    for suffix in ("tar", "zip"):
        for mark, name in (("composed", "B\u00e4ckup"), ("decomposed", "Ba\u0308ckup"), ("emoji", "\U0001F4F1")):
            yield Fault(f"{suffix}-folder-{mark}", f"nothing: the folder in the {suffix} is named {name}",
                        {"inspect": OK, "verify": OK}, suffix=suffix, entries=in_folder(name))


def faults():
    return [*bombs(), *names()]
