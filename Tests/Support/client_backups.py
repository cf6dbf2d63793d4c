"""Compare the contents that clients of a served device wrote to backups and devices with the expected contents."""

import collections
import dataclasses
import plistlib

import interop
from keychain_backup_reader import Backup

# The parts in which a client's backup may differ from a backup by `keyhaul backup`, with the reasons. Other differences
# are faults.
NEW_KEYS = "each backup has new random keys"
NEW_TIME = "each backup has its own time"
OWN_INFO = "the client writes Info.plist itself"
DIFFERENCES = {
    "file Keyhaul.seal": "no iPhone writes a seal",
    "Info.plist GUID": OWN_INFO,
    "Info.plist Last Backup Date": NEW_TIME,
    "Info.plist iTunes Files": OWN_INFO,
    "Info.plist iTunes Settings": OWN_INFO,
    "Info.plist iTunes Version": OWN_INFO,
    "Manifest.plist BackupKeyBag": NEW_KEYS,
    "Manifest.plist ManifestKey": NEW_KEYS,
    "Manifest.plist Date": NEW_TIME,
    "Status.plist Date": NEW_TIME,
    "Status.plist UUID": "each backup has its own identifier",
    "Manifest.db keychain-backup.plist digest": NEW_KEYS,
    "Manifest.db keychain-backup.plist modified": NEW_TIME,
    "Manifest.db keychain-backup.plist wrapped_key": NEW_KEYS,
    "Manifest.db  modified": NEW_TIME,
    "keychain keybag-uuid": NEW_KEYS,
    "keychain blobs": NEW_KEYS,
}


def keychain_by_reader(folder, password):
    """Return the keychain file of a backup as each published reader extracts it, by the reader's name."""
    readers = ["pyiosbackup", "dissect.target"] + (["iphone_backup_decrypt"] if password else [])
    name = f"{interop.KEYCHAIN_DOMAIN}/{interop.KEYCHAIN_PATH}"
    return {reader: interop.ALL_READERS[reader](folder, password or "", folder.parent)[name][0] for reader in readers}


def item_problems(expected, found):
    """Return the differences of two lists of comparable items, without secrets. The result is empty for equal lists."""
    expected_by_name = {interop.identity(item): item for item in expected}
    found_by_name = {interop.identity(item): item for item in found}
    problems = [f"missing: {name}" for name in sorted(expected_by_name.keys() - found_by_name.keys())]
    problems += [f"not expected: {name}" for name in sorted(found_by_name.keys() - expected_by_name.keys())]
    if len(expected_by_name) != len(expected) or len(found_by_name) != len(found):
        problems.append("two items have one identity")
    for name in sorted(expected_by_name.keys() & found_by_name.keys()):
        differences = interop.item_differences(expected_by_name[name], found_by_name[name], only_expected=False)
        problems += [f"{name}: {line}" for line in differences]
    return problems


def backup_items(folder, password, key):
    """Read a backup in Python. Return the items that a password and a device key decrypt, for comparison."""
    return interop.readable_items(Backup(folder, (password or "").encode(), key))


def contents(folder, password, key):
    """Return all parts of a backup by name, with names as in DIFFERENCES."""
    backup = Backup(folder, (password or "").encode(), key)
    parts = {f"file {path.relative_to(folder)}": True for path in folder.rglob("*") if path.is_file()}
    for name in ("Manifest.plist", "Status.plist", "Info.plist"):
        for member, value in plistlib.loads((folder / name).read_bytes()).items():
            parts[f"{name} {member}"] = value
    for (domain, path), file in backup.files.items():
        parts[f"Manifest.db {path} row"] = (domain, file.identifier, file.flags)
        for field, value in dataclasses.asdict(file.record).items():
            parts[f"Manifest.db {path} {field}"] = value
    blobs = []
    for name, value in plistlib.loads(backup.keychain_file()).items():
        is_table = isinstance(value, list)
        if is_table:
            parts[f"keychain {name} references"] = [entry.get("v_PersistentRef") for entry in value]
            blobs += [entry["v_Data"] for entry in value]
        else:
            parts[f"keychain {name}"] = value
    parts["keychain blobs"] = blobs
    return parts


def content_differences(contents, other_contents):
    """Return the names of the parts in which two backups differ."""
    missing = object()
    return sorted(
        name for name in contents.keys() | other_contents.keys()
        if contents.get(name, missing) != other_contents.get(name, missing))


# Restores

def _shown_value(value):
    """Return an attribute as a plan shows it."""
    if value is None:
        return None
    if isinstance(value, dict):
        return "0x" + interop.typed_json.from_json(value).hex()
    return value


def shown_attributes(entry):
    """Return the attributes of an item that a plan shows, to find it in the plan's list of removed items."""
    attributes = entry["attributes"]
    return tuple(
        [entry["kind"]] + [_shown_value(attributes.get(code)) for code in ("labl", "acct", "svce", "srvr", "agrp")])


def remaining_items(plan, device_entries):
    """Return the items of a device that a plan does not remove, by identity."""
    removed_counts = collections.Counter(
        tuple(item[name] for name in ("kind", "label", "account", "service", "server", "access_group"))
        for item in plan["removed"])
    remaining = {}
    # A plan does not show whether an item syncs. A restore never removes synchronizable items, so they come last.
    for entry in sorted(device_entries, key=lambda entry: entry["attributes"].get("sync", 0)):
        if removed_counts[shown_attributes(entry)]:
            removed_counts[shown_attributes(entry)] -= 1
        else:
            item = interop.program_item(entry)
            remaining[interop.identity(item)] = item
    if any(removed_counts.values()):
        raise ValueError("the plan removes items that the device does not have")
    return remaining


def planned_items(plan, device_entries, backup_entries):
    """Return the items that a device should have after a restore, for comparison.

    The entries come from two exports as JSON: of the device before the restore, and of the backup.
    """
    expected = remaining_items(plan, device_entries)
    entries = {entry["index"]: entry for entry in backup_entries}
    for decision in plan["items"]:
        if decision["outcome"] == "migrates":
            item = interop.program_item(entries[decision["index"]])
            # The plan warns of an item that will sync: iOS adds the attribute, and the digest covers it.
            if (decision.get("detail") or "").startswith("inferred-synchronizable"):
                item[1].update(sync=1)
                item[1].pop("sha1", None)
            if decision["change"] != "keeps-existing" or interop.identity(item) not in expected:
                expected[interop.identity(item)] = item
    return list(expected.values())
