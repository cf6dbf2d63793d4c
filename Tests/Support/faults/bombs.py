"""Faults that once made a reader crash or run out of memory: small files that expand enormously, and unusual names."""

import os
import struct

from . import DAMAGED, REFUSED, SUCCESS, Fault

LEVEL_COUNT, REFERENCE_COUNT = 23, 10
SPARSE_BYTE_COUNT = 40 << 30


def binary_plist(objects, offset_size=4, reference_size=4, count=None):
    """Return a binary property list with encoded objects. `count` is the declared number of objects.

    It is "bplist00", the objects, the table of their offsets, and a trailer. The trailer has 6 zero bytes, the size of
    an offset, the size of a reference, the object count, the root's index and the table's offset.
    """
    offset_table, body = b"", b"bplist00"
    for encoded_object in objects:
        offset_table += len(body).to_bytes(offset_size, "big")
        body += encoded_object
    trailer = bytes(6) + bytes([offset_size, reference_size])
    return body + offset_table + trailer + struct.pack(">QQQ", count or len(objects), 0, len(body))


def nested_arrays():
    """Return a property list of 343 bytes with 10²³ values: each array has ten references to the next array."""
    arrays = [
        bytes([0xA0 | REFERENCE_COUNT]) + bytes([next_index] * REFERENCE_COUNT)
        for next_index in range(1, LEVEL_COUNT + 1)
    ]
    return binary_plist([*arrays, b"\x51a"], offset_size=2, reference_size=1)


def property_list_fault(name, summary, exit_codes, file_name, edit, *messages, base="encrypted"):
    """Return a fault of one of the property lists."""
    return Fault(name, summary, exit_codes, messages or (file_name.lower(),), base,
                 edits={"parts": lambda parts: parts.update({file_name: edit(parts[file_name])})})


def bomb_faults():
    """Return faults of small property lists that expand enormously."""
    for base in ("encrypted", "plain"):
        name_suffix = "" if base == "encrypted" else f"-{base}"
        yield property_list_fault(
            f"info-nested-arrays{name_suffix}", "Info.plist is 343 bytes of arrays that share their elements",
            {"inspect": SUCCESS, "verify": REFUSED, "plan": SUCCESS}, "Info.plist", lambda data: nested_arrays(),
            base=base)
        yield property_list_fault(
            f"status-nested-arrays{name_suffix}", "Status.plist is 343 bytes of arrays that share their elements",
            {"inspect": SUCCESS, "verify": REFUSED, "plan": REFUSED}, "Status.plist", lambda data: nested_arrays(),
            base=base)
    yield property_list_fault(
        "manifest-nested-arrays", "Manifest.plist is 343 bytes of arrays that share their elements",
        {"inspect": REFUSED, "verify": REFUSED, "plan": REFUSED}, "Manifest.plist", lambda data: nested_arrays())
    yield property_list_fault(
        "info-cut", "half of Info.plist is absent", {"inspect": SUCCESS, "verify": DAMAGED, "plan": SUCCESS},
        "Info.plist", lambda data: data[: len(data) // 2])
    yield Fault("info-sparse", "Info.plist is a sparse file of forty gigabytes",
                {"inspect": SUCCESS, "verify": REFUSED, "plan": SUCCESS}, ("info.plist",),
                edit_on_disk=lambda path: os.truncate(path / "Info.plist", SPARSE_BYTE_COUNT))


def with_folder_name(name):
    """Return an edit that renames the folder of the entries."""
    return lambda entries: [(f"{name}/{path.split('/', 1)[1]}", content) for path, content in entries]


def folder_name_faults():
    """Return archives whose folder has an unusual name. They have no fault."""
    for suffix in ("tar", "zip"):
        for name_suffix, name in (("composed", "B\u00e4ckup"), ("decomposed", "Ba\u0308ckup"), ("emoji", "\U0001F4F1")):
            yield Fault(f"{suffix}-folder-{name_suffix}", f"no fault: the folder in the {suffix} is named {name}",
                        {"inspect": SUCCESS, "verify": SUCCESS}, suffix=suffix, edit_entries=with_folder_name(name))


def faults():
    """Return all faults of this module."""
    return [*bomb_faults(), *folder_name_faults()]
