#!/usr/bin/env python3
"""Check that Keyhaul and other readers of iPhone backups agree.

    interop.py --keyhaul .build/debug/keyhaul [--fixtures Fixtures/devices]
    interop.py --python-side-only

Four parts use real files and the program's command line:
1. Published readers open the backups of the Python writer, in every layout that they support, and extract each file.
   This validates the Python code.
2. Published readers and the Python reader open Keyhaul's backups, also after `rekey` and `convert`. Each item equals
   the item on the device.
3. Keyhaul plans and restores backups of the Python writer. Each item equals its description.
4. The files that Keyhaul exports or copies unencrypted equal the files that published readers extract, and have the
   same times.
"""

import argparse
import base64
import contextlib
import hashlib
import importlib.metadata
import json
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import traceback

import keyhaul_seal
from backup_cases import CASES
from keychain_backup import WrongPassword, apple_der, crypto, items, typed_json
from keychain_backup_reader import KEYCHAIN_DOMAIN, KEYCHAIN_PATH, Backup
from keychain_backup_writer import Options, Writer, leaves_device

try:
    import iphone_backup_decrypt
    import iphone_backup_decrypt.exceptions
    import pyiosbackup
    from dissect.target.filesystems.itunes import ITunesFilesystem
    from dissect.target.loaders.itunes import ITunesBackup
except ImportError as error:
    sys.exit(f"error: a published reader is missing ({error}); run `make -C Tests interop`, which installs them")

PASSWORD = "correct horse — ö"
NEW_PASSWORD = "battery staple — ß"
QUICK_ITERATIONS = 1000
DATES = {"cdat", "mdat", "sdat", "edat"}
# Internal attributes of the device. They are compared if both sides have them.
BOOKKEEPING = {"sha1", "UUID", "persistref", "musr", "tomb", "clip", "sysb"}
PRIMARY_KEY = {
    "genp": "acct svce", "inet": "acct sdmn srvr ptcl atyp port path", "cert": "ctyp issr slnr",
    "keys": "kcls klbl atag crtr type bsiz esiz sdat edat",
}
SYSTEM_GROUPS = {"com.apple.security.sos", "lockdown-identities"}
THIS_DEVICE_ONLY = {"aku", "cku", "dku"}


class Checks:
    """The checks of one run, by section."""

    def __init__(self):
        self.passed = self.failed = 0

    def section(self, title):
        print(f"\n{title}")

    def check(self, condition, text, detail=""):
        """Count a check, and print it with its result."""
        if condition:
            self.passed += 1
            print(f"  ok    {text}")
        else:
            self.failed += 1
            print(f"  FAIL  {text}" + (f"\n        {detail}" if detail else ""))
        return condition

    def check_equal(self, found, expected, text):
        return self.check(found == expected, text, f"expected {expected!r}, found {found!r}")

    def run_part(self, function, *arguments):
        """Run one part. An unexpected error fails the part, and the others still run."""
        try:
            return function(*arguments)
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            detail = f"{type(error).__name__} at {pathlib.Path(frame.filename).name}:{frame.lineno}: {error}"
            self.check(False, f"{function.__name__} completed", detail)
            return None


class Program:
    """The built program, with a device folder of its own."""

    def __init__(self, path, home):
        self.path, self.home = pathlib.Path(path).resolve(), pathlib.Path(home)

    def run(self, *arguments, expect=(0,)):
        """Run a command and return its output. Raise RuntimeError if its exit code is not expected."""
        result = subprocess.run(
            [str(self.path), *map(str, arguments), "--home", str(self.home), "--no-input"],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=600)
        if result.returncode not in expect:
            error_output = result.stderr.decode("utf-8", "replace").strip()
            raise RuntimeError(
                f"keyhaul {' '.join(map(str, arguments))} ended with {result.returncode}: {error_output}"
            )
        return result.stdout

    def json(self, *arguments, expect=(0,)):
        return json.loads(self.run(*arguments, "--json", expect=expect))

    def items(self, device):
        """Return the items of a device, with their secrets."""
        found = self.json("item", "find", device, "--reveal", expect=(0, 4))
        if found.get("format") != "keychain-items/1":
            raise RuntimeError(f"item find gave the format {found.get('format')!r}")
        return found["items"]

    def device_key(self, device):
        """Return key 0x835 of a virtual device: sixteen bytes 01, encrypted with its hardware UID."""
        return crypto.ecb_encrypt((self.home / device / "hardware.uid").read_bytes(), b"\x01" * 16)


# Published readers. Each returns the contents of a file, by default the keychain file, or raises an error.

def read_with_iphone_backup_decrypt(folder, password, domain=KEYCHAIN_DOMAIN, path=KEYCHAIN_PATH):
    backup = iphone_backup_decrypt.EncryptedBackup(backup_directory=str(folder), passphrase=password)
    return backup.extract_file_as_bytes(path, domain_like=domain)


def read_with_pyiosbackup(folder, password, domain=KEYCHAIN_DOMAIN, path=KEYCHAIN_PATH):
    backup = pyiosbackup.Backup.from_path(folder, password)
    return backup.get_entry_by_domain_and_path(domain, path).read_bytes()


READERS = {"iphone_backup_decrypt": read_with_iphone_backup_decrypt, "pyiosbackup": read_with_pyiosbackup}


def rejects(read, folder, password):
    """Return whether a reader raises an error for a password."""
    try:
        read(folder, password)
    except Exception:
        return True
    return False


def check_published_readers(checks, name, folder, expected, password=PASSWORD):
    """Check that the published readers extract the expected keychain file and reject a wrong password."""
    for reader, read in READERS.items():
        try:
            content = read(folder, password)
        except Exception as error:
            checks.check(False, f"{name}: {reader} opens it", f"{type(error).__name__}: {error}")
            continue
        checks.check(
            content == expected, f"{name}: {reader} extracts the same keychain file, {len(content):,} bytes")
        checks.check(rejects(read, folder, "not the password"), f"{name}: {reader} rejects a wrong password")


# Items, compared as JSON values

def comparable_item(table, dictionary):
    """Return an item for comparison: its table, its attributes as in `keychain-items/1`, and its secret."""
    attributes = {code: typed_json.to_plain_json(value) for code, value in dictionary.items() if code != "v_Data"}
    return with_seconds(table, attributes, dictionary.get("v_Data"))


def program_item(entry):
    """Return an item of the program's output for comparison."""
    secret = entry.get("secret")
    value = typed_json.from_json({"base64": secret["base64"]}) if secret else None
    return with_seconds(entry["table"], entry.get("attributes", {}), value)


def with_seconds(table, attributes, secret):
    """Return an item with its dates as seconds."""
    attributes = {
        code: apple_der.Moment.from_rfc3339(value).seconds if code in DATES else value
        for code, value in attributes.items()
    }
    return table, attributes, secret


def identity(item):
    """Return the primary key of an item, as text."""
    table, attributes, _ = item
    codes = PRIMARY_KEY[table].split() + ["agrp", "sync"]
    empty = ({"base64": ""}, "", 0, 0.0, None)
    values = [None if attributes.get(code) in empty else attributes[code] for code in codes]
    return json.dumps([table, values], sort_keys=True)


def item_differences(expected, found, only_expected):
    """Return the differences of two items with the same identity, without values of secrets."""
    _, expected_attributes, expected_secret = expected
    _, found_attributes, found_secret = found
    codes = set(expected_attributes) if only_expected else set(expected_attributes) | set(found_attributes)
    lines = []
    for code in sorted(codes):
        if code in BOOKKEEPING and (code not in expected_attributes or code not in found_attributes):
            continue
        expected_value, found_value = expected_attributes.get(code), found_attributes.get(code)
        # In Python, 1, 1.0 and True are equal.
        if expected_value != found_value or type(expected_value) is not type(found_value):
            lines.append(f"{code}: expected {expected_value!r}, found {found_value!r}")
    if (expected_secret or b"") != (found_secret or b""):
        lines.append("the secrets differ")
    return lines


def check_same_items(checks, context, expected, found, only_expected=False):
    """Check that two lists have the same items with the same attributes, dates and secrets.

    With `only_expected`, the found items may have more attributes than the expected ones.
    """
    expected_items, found_items = ({identity(item): item for item in group} for group in (expected, found))
    checks.check(
        len(expected_items) == len(expected) and len(found_items) == len(found),
        f"{context}: no two items have one identity")
    missing, extra = expected_items.keys() - found_items.keys(), found_items.keys() - expected_items.keys()
    checks.check(
        not missing and not extra, f"{context}: the same {len(expected_items)} items",
        f"missing {sorted(missing)}, unexpected {sorted(extra)}")
    attribute_count = date_count = 0
    faults = []
    common_names = sorted(expected_items.keys() & found_items.keys())
    for name in common_names:
        item = expected_items[name]
        faults += [f"{name}: {line}" for line in item_differences(item, found_items[name], only_expected)]
        attribute_count += len(item[1])
        date_count += len(DATES & set(item[1]))
    checks.check(
        not faults,
        f"{context}: {attribute_count} attributes ({date_count} dates) and {len(common_names)} secrets equal",
        "\n        ".join(faults[:10]))


def is_exported(entry, device_only):
    """Return whether a backup contains an item of a device. `device_only` has the identities of items in no backup."""
    return entry["protection"] != "akpu" and identity(program_item(entry)) not in device_only


def described_item(item):
    """Return an item of a device description for comparison."""
    dictionary = {code: typed_json.from_json(value) for code, value in item["attributes"].items()}
    dictionary["pdmn"] = item["protection"]
    if "secret" in item:
        dictionary["v_Data"] = typed_json.from_json(item["secret"])
    return comparable_item(items.TABLE_OF_KIND[item["kind"]], dictionary)


def device_only_identities(description):
    """Return the identities of the described items that no backup contains."""
    return {
        identity(described_item(item)) for item in description["items"]
        if item["attributes"].get("agrp") in SYSTEM_GROUPS or not leaves_device(item)
    }


def readable_items(backup):
    """Return the readable items of a backup for comparison."""
    return [
        comparable_item(item.table, dict(item.attributes, **({} if item.secret is None else {"v_Data": item.secret})))
        for item in backup.keychain_items() if item.is_readable
    ]


# The four parts

def check_python_backups(checks, work, description):
    """Check that every reader extracts the same files from the backups of the Python writer."""
    checks.section("1. Published readers open the backups of the Python writer")
    variants = {
        "10,000,000 iterations": {}, "keybag 4": dict(sha256_iterations=QUICK_ITERATIONS),
        "keybag 5, ascending": dict(sha256_iterations=QUICK_ITERATIONS, keybag_version=5, is_ascending=True),
        "static IV": dict(sha256_iterations=QUICK_ITERATIONS, uses_static_iv=True),
        "without digests": dict(sha256_iterations=QUICK_ITERATIONS, has_digests=False),
    }
    for number, (name, options) in enumerate(variants.items()):
        folder = work / f"python-{number}"
        content = Writer(description, Options(password=PASSWORD.encode(), **options)).write(folder)
        checks.check(
            Backup(folder, PASSWORD.encode()).keychain_file() == content,
            f"{name}: the Python reader extracts the same keychain file")
        check_published_readers(checks, name, folder, content)
    for case in CASES:
        for reader, names in READER_CASES.items():
            if case.name in names:
                checks.run_part(check_every_file, checks, work, case, reader)


# The cases in layouts that each reader supports. iphone_backup_decrypt needs a Manifest.db that is encrypted and
# padded. pyiosbackup fails for unknown tags in a keybag. Neither supports Curve25519 class keys.
COMMON_CASES = {
    "db-encrypted", "keybag-3", "keybag-5", "keybag-ascending", "keybag-shuffled", "keybag-class-16",
    "password-64-bytes", "password-space", "password-newline", "list-keychain-class-1",
    "list-no-digests", "list-sizes-too-large", "extra-files", "date-suffix",
}
READER_CASES = {
    "iphone_backup_decrypt": COMMON_CASES | {"keybag-unknown-tags", "plists-xml"},
    "pyiosbackup": COMMON_CASES
    | {"db-plain", "mbdb-encrypted", "mbdb-plain", "list-unpadded", "plists-xml", "plists-binary"},
}


def check_every_file(checks, work, case, reader):
    """Check that a reader extracts every file of a backup."""
    path, expectations = case.write(work / f"case-{case.name}-{reader}")
    password = "" if case.options.password is None else case.options.password.decode("utf-8")
    stored = [file for file in expectations["files"] if file["stored"]]
    equal_files = [
        file["path"] for file in stored
        if READERS[reader](path, password, file["domain"], file["path"]) == base64.b64decode(file["base64"])
    ]
    checks.check_equal(len(equal_files), len(stored), f"{case.name}: {reader} extracts all {len(stored)} stored files")
    keychain = Backup(path, case.options.password or b"").keychain_file()
    checks.check(
        READERS[reader](path, password) == keychain, f"{case.name}: {reader} extracts the keychain file")


def check_keyhaul_backups(checks, work, program, fixtures):
    """Check that other readers find the items of a device in its backups."""
    checks.section("2. Published readers and the Python reader open Keyhaul's backups")
    device_items, key = make_device(checks, work, program, fixtures), program.device_key("old-phone")
    for name, iterations in (("10,000,000 iterations", None), (f"{QUICK_ITERATIONS:,} iterations", QUICK_ITERATIONS)):
        check_backup_folder(checks, work, program, device_items, key, name, iterations)
    for suffix in ("tar", "tar.gz", "zip"):
        path = work / f"one.{suffix}"
        program.run(
            "backup", "old-phone", "-o", path, "--password-file", work / "password", "--rounds", QUICK_ITERATIONS)
        items_in_backup = readable_items(Backup(path, PASSWORD.encode(), key))
        check_same_items(checks, f"one {suffix} file", device_items, items_in_backup)
    with tarfile.open(work / "one.tar.gz") as archive:
        archive.extractall(work / "unpacked", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    folder = next(path.parent for path in (work / "unpacked").rglob("Manifest.plist"))
    check_published_readers(checks, "unpacked tar.gz", folder, Backup(folder, PASSWORD.encode()).keychain_file())
    checks.run_part(check_unencrypted_backup, checks, work, program, device_items, key)
    checks.run_part(check_rekey, checks, work, program, device_items, key)
    checks.run_part(check_conversion, checks, work, program, device_items, key)
    checks.run_part(check_unusual_names, checks, work, program, fixtures)


def make_device(checks, work, program, fixtures):
    """Create the device `old-phone` and add a large item. Return its items that a backup contains."""
    description = json.loads((fixtures / "old-phone.json").read_text(encoding="utf-8"))
    program.run("device", "create", "old-phone", "--from", fixtures / "old-phone.json")
    (work / "large").write_bytes(bytes(index * 31 % 251 for index in range(100_000)))
    program.run(
        "item", "add", "old-phone", "--service", "large.example", "--account", "100 kB", "--protection",
        "after-first-unlock", "--secret-file", work / "large")
    device_only = device_only_identities(description)
    device_items = [program_item(entry) for entry in program.items("old-phone") if is_exported(entry, device_only)]
    descriptions = [described_item(entry) for entry in description["items"]]
    descriptions = [item for item in descriptions if identity(item) not in device_only]
    original_items = [item for item in device_items if item[1].get("svce") != "large.example"]
    checks.check_equal(len(device_items), len(original_items) + 1, "the device shows the item that was added to it")
    check_same_items(checks, "the device and its description", descriptions, original_items, only_expected=True)
    return device_items


def check_backup_folder(checks, work, program, device_items, key, name, iterations):
    """Check a backup folder with and without the device key. Without iterations, Keyhaul selects them."""
    folder = work / f"keyhaul-{iterations}"
    options = [] if iterations is None else ["--rounds", iterations]
    program.run("backup", "old-phone", "-o", f"{folder}/", "--password-file", work / "password", *options)
    unlocked = Backup(folder, PASSWORD.encode(), key)
    check_seal(checks, name, folder, unlocked)
    checks.check_equal(
        unlocked.keybag.iterations, (iterations or 10_000_000, 10_000),
        f"{name}: the keybag has these iteration counts")
    check_published_readers(checks, name, folder, unlocked.keychain_file())
    check_same_items(checks, f"{name}, password and device key", device_items, readable_items(unlocked))
    password_only = Backup(folder, PASSWORD.encode())
    migratable = [item for item in device_items if item[1]["pdmn"] not in THIS_DEVICE_ONLY]
    check_same_items(checks, f"{name}, only the password", migratable, readable_items(password_only))
    reasons = {item.reason for item in password_only.keychain_items() if not item.is_readable}
    checks.check_equal(reasons, {"device-bound"}, f"{name}: the other items are device-bound")


def check_seal(checks, name, folder, backup):
    """Check that Keyhaul.seal equals the seal that Python makes."""
    seal = keyhaul_seal.make_seal(folder, backup.layout, getattr(backup, "manifest_key", None))
    checks.check_equal(
        (folder / keyhaul_seal.NAME).read_bytes(), seal, f"{name}: the seal equals the one that Python makes"
    )


def check_unencrypted_backup(checks, work, program, device_items, key):
    """Check an unencrypted backup."""
    folder = work / "plain"
    program.run("backup", "old-phone", "-o", f"{folder}/", "--no-password")
    backup = Backup(folder)
    check_seal(checks, "no password", folder, backup)
    checks.check_equal(
        {item.reason for item in backup.keychain_items()}, {"device-bound"}, "no password: every item is device-bound")
    check_same_items(checks, "no password, device key", device_items, readable_items(Backup(folder, device_key=key)))
    checks.check(
        read_with_pyiosbackup(folder, "") == backup.keychain_file(),
        "no password: pyiosbackup extracts the keychain file")
    try:
        read_with_iphone_backup_decrypt(folder, PASSWORD)
        is_rejected = False
    except iphone_backup_decrypt.exceptions.BackupNotEncryptedError:
        is_rejected = True
    checks.check(is_rejected, "no password: iphone_backup_decrypt reports that the backup is not encrypted")


def file_digests(folder):
    """Return the digests of all files below a folder, by path."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*") if path.is_file()
    }


def check_rekey(checks, work, program, device_items, key):
    """Check that after `rekey`, every reader accepts the new password and rejects the old one."""
    new_password_file = work / "new-password"
    new_password_file.write_bytes(NEW_PASSWORD.encode())
    new_password_file.chmod(0o600)
    rekey_options = [
        "--password-file", work / "password", "--new-password-file", new_password_file, "--rounds", QUICK_ITERATIONS]
    folder, packed = work / "rekeyed", work / "rekeyed.tar.gz"
    for target in (f"{folder}/", packed):
        program.run(
            "backup", "old-phone", "-o", target, "--password-file", work / "password", "--rounds", QUICK_ITERATIONS)
    before, old_keybag = file_digests(folder), Backup(folder, PASSWORD.encode()).keybag
    program.run("rekey", folder, *rekey_options)
    after = file_digests(folder)
    changed = {name for name in set(before) | set(after) if before.get(name) != after.get(name)}
    checks.check_equal(changed, {"Manifest.plist", "Keyhaul.seal"}, "rekey: only Manifest.plist and the seal changed")
    rekeyed = Backup(folder, NEW_PASSWORD.encode(), key)
    check_seal(checks, "rekey", folder, rekeyed)
    for tag in (b"SALT", b"DPSL"):
        checks.check(rekeyed.keybag.header[tag] != old_keybag.header[tag], f"rekey: {tag.decode()} is new")
    checks.check_equal(rekeyed.keybag.uuid_text, old_keybag.uuid_text, "rekey: the keybag keeps its UUID")
    check_published_readers(checks, "rekey, new password", folder, rekeyed.keychain_file(), NEW_PASSWORD)
    for reader, read in READERS.items():
        checks.check(rejects(read, folder, PASSWORD), f"rekey: {reader} rejects the old password")
    check_same_items(checks, "rekey, password and device key", device_items, readable_items(rekeyed))
    program.run("rekey", packed, *rekey_options)
    items_in_archive = readable_items(Backup(packed, NEW_PASSWORD.encode(), key))
    check_same_items(checks, "rekey of one tar.gz file", device_items, items_in_archive)
    try:
        Backup(packed, PASSWORD.encode())
        checks.check(False, "rekey of one tar.gz file: the old password is rejected")
    except WrongPassword:
        checks.check(True, "rekey of one tar.gz file: the old password is rejected")


def check_conversion(checks, work, program, device_items, key):
    """Check that conversion between folder and archive changes no file."""
    source = work / "to-convert"
    program.run(
        "backup", "old-phone", "-o", f"{source}/", "--password-file", work / "password", "--rounds", QUICK_ITERATIONS)
    for suffix in ("tar", "zip"):
        packed, folder = work / f"converted.{suffix}", work / f"converted-from-{suffix}"
        program.run("convert", source, "-o", packed)
        items_in_archive = readable_items(Backup(packed, PASSWORD.encode(), key))
        check_same_items(checks, f"convert to {suffix}", device_items, items_in_archive)
        program.run("convert", packed, "-o", f"{folder}/")
        checks.check_equal(file_digests(folder), file_digests(source), f"convert to {suffix} and back: the same files")
        check_published_readers(
            checks, f"convert to {suffix} and back", folder, Backup(folder, PASSWORD.encode()).keychain_file())


def check_unusual_names(checks, work, program, fixtures):
    """Check a backup of items with unusual names."""
    program.run("device", "create", "hostile", "--from", fixtures / "hostile-names.json")
    folder = work / "hostile"
    program.run(
        "backup", "hostile", "-o", f"{folder}/", "--password-file", work / "password", "--rounds", QUICK_ITERATIONS)
    device_items = [program_item(entry) for entry in program.items("hostile")]
    description = json.loads((fixtures / "hostile-names.json").read_text(encoding="utf-8"))
    descriptions = [described_item(entry) for entry in description["items"]]
    check_same_items(
        checks, "unusual names, the device and its description", descriptions, device_items, only_expected=True)
    check_same_items(checks, "unusual names", device_items, readable_items(Backup(folder, PASSWORD.encode())))


def expected_outcome(dictionary, same_device, encrypted):
    """Return the outcome and the reason that a plan has to have for an item."""
    if not same_device and not encrypted:
        return "stays-behind", "backup-not-encrypted" if dictionary["pdmn"] not in THIS_DEVICE_ONLY else "device-bound"
    if not same_device and dictionary["pdmn"] in THIS_DEVICE_ONLY:
        return "stays-behind", "device-bound"
    if dictionary["agrp"] in SYSTEM_GROUPS:
        return "stays-behind", "system-bound"
    return "migrates", None


def after_restore(table, dictionary):
    """Return an item as a restore writes it: old Safari logins become synchronizable, which changes the digest."""
    restored = dict(dictionary)
    is_login = all(isinstance(restored.get(code), str) for code in ("srvr", "ptcl", "atyp"))
    if table == "inet" and restored["agrp"] == "com.apple.cfnetwork" and is_login:
        restored["sync"] = 1
    restored["sha1"] = items.digest(table, restored)
    return comparable_item(table, restored)


def check_plans_and_restores(checks, work, program, fixtures, description):
    """Check the plans and restores of backups in several layouts, to another device and to the source device."""
    checks.section("3. Keyhaul plans and restores backups of the Python writer")
    quick = dict(sha256_iterations=QUICK_ITERATIONS, password=PASSWORD.encode())
    other_device_options = {
        "keybag 3, SHA-1 only": dict(quick, keybag_version=3, sha256_iterations=0),
        "keybag 4": quick,
        "keybag 5, ascending": dict(quick, keybag_version=5, is_ascending=True),
        "blobs of version 2": dict(quick, blob_version=2),
        "static IV": dict(quick, uses_static_iv=True),
        "row references": dict(quick, has_row_references=True),
        "unpadded manifest": dict(quick, is_manifest_padded=False),
        "no password": dict(password=None),
    }
    same_device_options = {"same device": quick, "same device, no password": dict(password=None)}
    for number, (name, options) in enumerate([*other_device_options.items(), *same_device_options.items()]):
        checks.run_part(
            check_restore, checks, work, program, fixtures, description, name, number, options,
            name in same_device_options)


def check_restore(checks, work, program, fixtures, description, name, number, options, same_device):
    """Check the plan and the restore of one backup."""
    target, folder = f"target-{number}", work / f"written-{number}"
    program.run("device", "create", target, "--from", fixtures / "new-phone.json")
    if same_device:
        options = dict(options, device_key=program.device_key(target))
    writer = Writer(description, Options(**options))
    writer.write(folder)
    written = sorted(writer.written, key=lambda pair: items.TABLES.index(pair[0]))
    expected = [expected_outcome(dictionary, same_device, writer.is_encrypted) for _, dictionary in written]
    password_options = ["--password-file", work / "password"] if writer.is_encrypted else []
    before = file_digests(folder)
    program.run("seal", folder, *password_options)
    after = file_digests(folder)
    after.pop(keyhaul_seal.NAME)
    checks.check_equal(after, before, f"{name}: `seal` adds the seal and changes no other file")
    backup = Backup(folder, PASSWORD.encode() if writer.is_encrypted else b"")
    check_seal(checks, f"{name}, sealed", folder, backup)
    check_plan_and_restore(checks, program, name, folder, target, password_options, written, expected)


def check_plan_and_restore(checks, program, name, folder, target, password_options, written, expected):
    """Check the outcomes of a plan, and the items of the target after the restore."""
    plan = program.json("plan", folder, "--to", target, *password_options)
    checks.check_equal(plan["format"], "migration-plan/1", f"{name}: the plan's format")
    entries = sorted(plan["items"], key=lambda entry: entry["index"])
    outcomes = [(entry["outcome"], entry.get("reason")) for entry in entries]
    migrating_count = sum(outcome == "migrates" for outcome, _ in expected)
    checks.check_equal(outcomes, expected, f"{name}: the plan has {len(expected)} items, {migrating_count} migrate")
    if not migrating_count:
        # A restore of no items would only remove items, so Keyhaul refuses it.
        before = program.items(target)
        program.run("restore", folder, "--to", target, "--yes", *password_options, expect=(14,))
        after = program.items(target)
        checks.check_equal(after, before, f"{name}: the restore is refused, and the {len(before)} items stay")
        return
    result = program.json("restore", folder, "--to", target, "--yes", *password_options)
    checks.check_equal(result["summary"]["migrates"], migrating_count, f"{name}: the restore reports the same count")
    restored = [
        after_restore(table, dictionary)
        for (table, dictionary), (outcome, _) in zip(written, expected) if outcome == "migrates"
    ]
    check_same_items(checks, f"{name}, restored", restored, [program_item(entry) for entry in program.items(target)])


# Published readers. Each returns all stored files of a backup folder, by domain and path, as bytes and a modification
# time in seconds since 1970.

def extract_with_iphone_backup_decrypt(folder, password, work):
    target = work / "extracted"
    backup = iphone_backup_decrypt.EncryptedBackup(backup_directory=str(folder), passphrase=password)
    backup.extract_files(
        relative_paths_like="%", domain_like="%", output_folder=str(target), preserve_folders=True,
        domain_subfolders=True, filter_callback=lambda *, file_id, **_: (folder / file_id[:2] / file_id).is_file())
    found = read_tree(target)
    shutil.rmtree(target)
    return found


def extract_with_pyiosbackup(folder, password, work):
    return {
        f"{entry.domain}/{entry.relative_path}": (entry.read_bytes(), int(entry.last_modified.timestamp()))
        for entry in pyiosbackup.Backup.from_path(folder, password).iter_files() if entry.real_path.is_file()}


def extract_with_dissect(folder, password, work):
    backup = ITunesBackup(folder)
    backup.open(password)
    found = {}
    for file in backup.files():
        if file.flags == 1 and file.get().is_file():
            entry = ITunesFilesystem(backup).get(file.translated_path)
            with entry.open() as stream:
                found[f"{file.domain}/{file.relative_path}"] = (stream.read(), int(entry.lstat().st_mtime))
    return found


ALL_READERS = {
    "iphone_backup_decrypt": extract_with_iphone_backup_decrypt, "pyiosbackup": extract_with_pyiosbackup,
    "dissect.target": extract_with_dissect,
}
# This reader truncates an encrypted file to the size in the manifest. For a database that grew during the backup, that
# size is wrong.
TRUNCATING_READER = "dissect.target"


def read_tree(folder):
    """Return the contents and modification time of all files below a folder, by path."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), int(path.lstat().st_mtime))
        for path in folder.rglob("*") if path.is_file() and not path.is_symlink() and path.parent != folder}


def check_exported_files(checks, work, program):
    """Check the exported files and the unencrypted copies of backups that all three readers support."""
    checks.section("4. Exported files and unencrypted copies equal the files that published readers extract")
    for case in CASES:
        if case.name in EXPORT_CASES:
            checks.run_part(check_files, checks, work, program, case)


# The cases in layouts that all three readers support.
EXPORT_CASES = {"db-encrypted", "keybag-5", "list-no-digests", "extra-files"}


def check_files(checks, work, program, case):
    """Check the exported files and the unencrypted copy of one backup."""
    work_folder = work / f"files-{case.name}"
    path, expectations = case.write(work_folder)
    password = case.options.password.decode("utf-8")
    password_file = work_folder / "password"
    password_file.write_bytes(case.options.password)
    password_file.chmod(0o600)
    exported, unencrypted_copy = work_folder / "exported", work_folder / "clear"
    program.run("export", path, "--files", exported, "--password-file", password_file)
    program.run("convert", path, "--decrypted", "-o", f"{unencrypted_copy}/", "--password-file", password_file)
    keyhaul_files = read_tree(exported)
    stored = {f"{file['domain']}/{file['path']}": base64.b64decode(file["base64"]) for file in expectations["files"]}
    checks.check_equal(
        {name: keyhaul_files.get(name, (None,))[0] for name in stored}, stored,
        f"{case.name}: export --files writes the {len(stored)} original files")
    sizes = {f"{file.domain}/{file.path}": len(file.content) if file.size is None else file.size
             for file in case.options.files if file.is_regular}
    for reader, read in ALL_READERS.items():
        reader_files = read(path, password, work_folder)
        truncated = (
            {name: content[: sizes.get(name)] for name, (content, _) in keyhaul_files.items()}
            if reader == TRUNCATING_READER
            else {}
        )
        check_same_files(checks, f"{case.name}, exported: {reader}", keyhaul_files, reader_files, truncated)
    check_unencrypted_copy(checks, f"{case.name}, unencrypted", unencrypted_copy, keyhaul_files, work_folder)


def check_unencrypted_copy(checks, name, copy, keyhaul_files, work_folder):
    """Check that other readers extract the exported files from an unencrypted copy, and that its manifest is valid."""
    for reader in ("pyiosbackup", "dissect.target"):
        check_same_files(checks, f"{name}: {reader}", keyhaul_files, ALL_READERS[reader](copy, "", work_folder))
    with contextlib.closing(sqlite3.connect(f"file:{copy / 'Manifest.db'}?mode=ro", uri=True)) as database:
        checks.check_equal(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)],
                           f"{name}: sqlite3 finds no fault in the manifest")
        rows = database.execute("SELECT domain, relativePath FROM Files WHERE flags = 1").fetchall()
    listed_names = {f"{domain}/{path}" for domain, path in rows}
    checks.check(set(keyhaul_files) <= listed_names, f"{name}: the manifest lists every exported file")


def check_same_files(checks, text, keyhaul_files, reader_files, truncated={}):
    """Check that a reader extracts Keyhaul's files, except empty ones.

    `truncated` has the contents of files that the reader truncates.
    """
    different = [
        name for name, file in reader_files.items()
        if name not in keyhaul_files
        or file != (truncated.get(name, keyhaul_files[name][0]), keyhaul_files[name][1])]
    missing = [name for name in keyhaul_files if name not in reader_files and keyhaul_files[name][0]]
    checks.check(
        reader_files and not different and not missing,
        f"{text} extracts {len(reader_files)} equal files with the same times",
        f"different {different[:5]}, missing {missing[:5]}")


def main():
    parser = argparse.ArgumentParser(description="Check that Keyhaul and other readers of iPhone backups agree.")
    repository = pathlib.Path(__file__).resolve().parent.parent.parent
    parser.add_argument("--keyhaul", type=pathlib.Path, help="the built program")
    parser.add_argument("--fixtures", type=pathlib.Path, default=repository / "Fixtures" / "devices")
    parser.add_argument("--python-side-only", action="store_true", help="only part 1, without the program")
    arguments = parser.parse_args()
    if not arguments.python_side_only and (arguments.keyhaul is None or not arguments.keyhaul.is_file()):
        parser.error("--keyhaul has to be the built program")
    for reader in ALL_READERS:
        print(f"{reader} {importlib.metadata.version(reader)}")
    description = json.loads((arguments.fixtures / "old-phone.json").read_text(encoding="utf-8"))
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="keyhaul-interop-") as folder:
        work = pathlib.Path(folder)
        tempfile.tempdir = folder  # One of the readers does not delete its decrypted manifest.
        (work / "password").write_bytes(PASSWORD.encode())
        (work / "password").chmod(0o600)
        checks.run_part(check_python_backups, checks, work, description)
        if not arguments.python_side_only:
            program = Program(arguments.keyhaul, work / "home")
            checks.run_part(check_keyhaul_backups, checks, work, program, arguments.fixtures)
            checks.run_part(check_plans_and_restores, checks, work, program, arguments.fixtures, description)
            checks.run_part(check_exported_files, checks, work, program)
    print(f"\n{checks.passed} passed, {checks.failed} failed")
    return 0 if checks.failed == 0 and checks.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
