#!/usr/bin/env python3
"""Interchange: do others read what Keyhaul writes, and does Keyhaul read what others write?

    interop.py --keyhaul .build/debug/keyhaul [--fixtures Fixtures/devices]
    interop.py --python-side-only

Four parts, each in real files and through the program's command line:
1. published readers of iPhone backups open what our Python writer writes (so that the yardstick itself is right),
   in every layout that they know, file by file;
2. published readers and our Python reader open what Keyhaul backs up, item by item equal to the device, and what it
   gives a new password or converts;
3. Keyhaul plans and restores what our Python writer writes, item by item equal to the description;
4. the files that Keyhaul exports into a folder, and those of its copies in clear, are what published readers take out,
   byte for byte and with the same times.
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

from backup_cases import CASES
import keyhaul_seal
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
QUICK_ROUNDS = 1000
DATES = {"cdat", "mdat", "sdat", "edat"}
# Kept by the device for itself; compared where both sides show them.
BOOKKEEPING = {"sha1", "UUID", "persistref", "musr", "tomb", "clip", "sysb"}
PRIMARY_KEY = {
    "genp": "acct svce", "inet": "acct sdmn srvr ptcl atyp port path", "cert": "ctyp issr slnr",
    "keys": "kcls klbl atag crtr type bsiz esiz sdat edat",
}
SYSTEM_GROUPS = {"com.apple.security.sos", "lockdown-identities"}
THIS_DEVICE_ONLY = {"aku", "cku", "dku"}


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def section(self, title):
        print(f"\n{title}")

    def that(self, holds, text, detail=""):
        if holds:
            self.passed += 1
            print(f"  ok    {text}")
        else:
            self.failed += 1
            print(f"  FAIL  {text}" + (f"\n        {detail}" if detail else ""))
        return holds

    def equal(self, found, expected, text):
        return self.that(found == expected, text, f"expected {expected!r}, found {found!r}")

    def part(self, function, *arguments):
        """Runs one part; an unexpected error fails it and leaves the others running."""
        try:
            return function(*arguments)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            detail = f"{type(error).__name__} at {pathlib.Path(where.filename).name}:{where.lineno}: {error}"
            self.that(False, f"{function.__name__} ran to its end", detail)
            return None


class Program:
    """The built `keyhaul`, with a home folder of its own."""

    def __init__(self, path, home):
        self.path, self.home = pathlib.Path(path).resolve(), pathlib.Path(home)

    def run(self, *arguments, expect=(0,)):
        result = subprocess.run(
            [str(self.path), *map(str, arguments), "--home", str(self.home), "--no-input"],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=600)
        if result.returncode not in expect:
            said = result.stderr.decode("utf-8", "replace").strip()
            raise RuntimeError(f"keyhaul {' '.join(map(str, arguments))} ended with {result.returncode}: {said}")
        return result.stdout

    def json(self, *arguments, expect=(0,)):
        return json.loads(self.run(*arguments, "--json", expect=expect))

    def items(self, device):
        found = self.json("item", "find", device, "--reveal", expect=(0, 4))
        if found.get("format") != "keychain-items/1":
            raise RuntimeError(f"item find gave the format {found.get('format')!r}")
        return found["items"]

    def device_key(self, device):
        """Key 0x835 of a virtual device: sixteen bytes 01 under its hardware key."""
        return crypto.ecb_encrypt((self.home / device / "hardware.uid").read_bytes(), b"\x01" * 16)


# Published readers: each gives the keychain file's bytes, or raises.

def with_iphone_backup_decrypt(folder, password, domain=KEYCHAIN_DOMAIN, path=KEYCHAIN_PATH):
    backup = iphone_backup_decrypt.EncryptedBackup(backup_directory=str(folder), passphrase=password)
    return backup.extract_file_as_bytes(path, domain_like=domain)


def with_pyiosbackup(folder, password, domain=KEYCHAIN_DOMAIN, path=KEYCHAIN_PATH):
    backup = pyiosbackup.Backup.from_path(folder, password)
    return backup.get_entry_by_domain_and_path(domain, path).read_bytes()


READERS = {"iphone_backup_decrypt": with_iphone_backup_decrypt, "pyiosbackup": with_pyiosbackup}


def refuses(read, folder, password):
    try:
        read(folder, password)
    except Exception:
        return True
    return False


def published_readers_agree(checks, name, folder, expected, password=PASSWORD):
    for reader, read in READERS.items():
        try:
            content = read(folder, password)
        except Exception as error:
            checks.that(False, f"{name}: {reader} opens it", f"{type(error).__name__}: {error}")
            continue
        checks.that(
            content == expected, f"{name}: {reader} takes out the keychain file, {len(content):,} bytes, equal to ours")
        checks.that(refuses(read, folder, "not the password"), f"{name}: {reader} refuses a wrong password")


# Items, compared as JSON values.

def shown(table, dictionary):
    """An item as `keychain-items/1` shows it, dates as their seconds."""
    attributes = {code: typed_json.plain(value) for code, value in dictionary.items() if code != "v_Data"}
    return comparable(table, attributes, dictionary.get("v_Data"))


def shown_by_program(entry):
    secret = entry.get("secret")
    value = typed_json.parse({"base64": secret["base64"]}) if secret else None
    return comparable(entry["table"], entry.get("attributes", {}), value)


def comparable(table, attributes, secret):
    attributes = {
        code: apple_der.Moment.from_rfc3339(value).seconds if code in DATES else value
        for code, value in attributes.items()
    }
    return table, attributes, secret


def identity(item):
    table, attributes, _ = item
    codes = PRIMARY_KEY[table].split() + ["agrp", "sync"]
    empty = ({"base64": ""}, "", 0, 0.0, None)
    values = [None if attributes.get(code) in empty else attributes[code] for code in codes]
    return json.dumps([table, values], sort_keys=True)


def item_differences(expected, found, only_expected):
    """Lines that say how two items with the same identity differ; never a value of a secret."""
    _, left, left_secret = expected
    _, right, right_secret = found
    lines = []
    for code in sorted(set(left) if only_expected else set(left) | set(right)):
        if code in BOOKKEEPING and (code not in left or code not in right):
            continue
        if left.get(code) != right.get(code) or type(left.get(code)) is not type(right.get(code)):
            lines.append(f"{code}: expected {left.get(code)!r}, found {right.get(code)!r}")
    if (left_secret or b"") != (right_secret or b""):
        lines.append("the secrets differ")
    return lines


def same_items(checks, text, expected, found, only_expected=False):
    """The same items, and each with the same attributes, dates and secret; prints how much was compared.

    With `only_expected` the found items may have more attributes than the expected ones.
    """
    left, right = ({identity(item): item for item in group} for group in (expected, found))
    checks.that(len(left) == len(expected) and len(right) == len(found), f"{text}: no two items have one identity")
    missing, extra = sorted(set(left) - set(right)), sorted(set(right) - set(left))
    checks.that(
        not missing and not extra, f"{text}: the same {len(left)} items", f"missing {missing}, unexpected {extra}")
    attributes = dates = 0
    faults = []
    for name in sorted(set(left) & set(right)):
        faults += [f"{name}: {line}" for line in item_differences(left[name], right[name], only_expected)]
        attributes += len(left[name][1])
        dates += len(DATES & set(left[name][1]))
    checks.that(
        not faults, f"{text}: {attributes} attributes ({dates} dates) and {len(set(left) & set(right))} secrets equal",
        "\n        ".join(faults[:10]))


def is_exported(entry, described):
    """Does a device's item belong into a backup? By the fixture, which knows what the keys and rules will say."""
    return entry["protection"] != "akpu" and identity(shown_by_program(entry)) not in described


def shown_by_description(described):
    dictionary = {code: typed_json.parse(value) for code, value in described["attributes"].items()}
    dictionary["pdmn"] = described["protection"]
    if "secret" in described:
        dictionary["v_Data"] = typed_json.parse(described["secret"])
    return shown(items.TABLE_OF_KIND[described["kind"]], dictionary)


def stays_on_device(description):
    """Identities of a fixture's items that no backup holds."""
    return {
        identity(shown_by_description(described)) for described in description["items"]
        if described["attributes"].get("agrp") in SYSTEM_GROUPS or not leaves_device(described)
    }


def readable(backup):
    return [
        shown(item.table, dict(item.attributes, **({} if item.secret is None else {"v_Data": item.secret})))
        for item in backup.keychain_items() if item.readable
    ]


# The three parts.

def part_one(checks, work, description):
    checks.section("1. Published readers open what our Python writer writes")
    variants = {
        "10,000,000 rounds": {}, "bag 4": dict(double_rounds=QUICK_ROUNDS),
        "bag 5, ascending": dict(double_rounds=QUICK_ROUNDS, keybag_version=5, ascending=True),
        "static IV": dict(double_rounds=QUICK_ROUNDS, static_iv=True),
        "without digests": dict(double_rounds=QUICK_ROUNDS, with_digests=False),
    }
    for number, (name, options) in enumerate(variants.items()):
        folder = work / f"ours-{number}"
        content = Writer(description, Options(password=PASSWORD.encode(), **options)).write(folder)
        checks.that(Backup(folder, PASSWORD.encode()).keychain_file() == content, f"{name}: our reader gives it back")
        published_readers_agree(checks, name, folder, content)
    for case in CASES:
        for reader, names in LAYOUTS_OF_READER.items():
            if case.name in names:
                checks.part(every_file_agrees, checks, work, case, reader)


# What a reader can't do is left out: iphone_backup_decrypt knows Manifest.db with a password and padding alone,
# pyiosbackup stumbles over unknown tags of a keybag, neither takes key pairs.
BOTH = {
    "db-encrypted", "keybag-3", "keybag-5", "keybag-ascending", "keybag-shuffled", "keybag-class-16",
    "password-64-bytes", "password-space", "password-newline", "list-keychain-class-1",
    "list-no-digests", "list-sizes-too-large", "extra-files", "date-suffix",
}
LAYOUTS_OF_READER = {
    "iphone_backup_decrypt": BOTH | {"keybag-unknown-tags", "plists-xml"},
    "pyiosbackup": BOTH | {"db-plain", "mbdb-encrypted", "mbdb-plain", "list-unpadded", "plists-xml", "plists-binary"},
}


def every_file_agrees(checks, work, case, reader):
    path, answers = case.write(work / f"case-{case.name}-{reader}")
    password = "" if case.recipe.password is None else case.recipe.password.decode("utf-8")
    stored = [file for file in answers["files"] if file["stored"]]
    equal = [
        file["path"] for file in stored
        if READERS[reader](path, password, file["domain"], file["path"]) == base64.b64decode(file["base64"])
    ]
    checks.equal(len(equal), len(stored), f"{case.name}: {reader} takes out all {len(stored)} stored files, equal")
    keychain = Backup(path, case.recipe.password or b"").keychain_file()
    checks.that(
        READERS[reader](path, password) == keychain, f"{case.name}: {reader} takes out the keychain file, equal")


def part_two(checks, work, program, fixtures):
    checks.section("2. Published readers and our Python reader open what Keyhaul backs up")
    description = json.loads((fixtures / "old-phone.json").read_text(encoding="utf-8"))
    program.run("device", "create", "old-phone", "--from", fixtures / "old-phone.json")
    (work / "large").write_bytes(bytes(index * 31 % 251 for index in range(100_000)))
    program.run(
        "item", "add", "old-phone", "--service", "large.example", "--account", "100 kB", "--protection",
        "after-first-unlock", "--secret-file", work / "large")
    kept = stays_on_device(description)
    device = [shown_by_program(entry) for entry in program.items("old-phone") if is_exported(entry, kept)]
    key = program.device_key("old-phone")
    described = [shown_by_description(entry) for entry in description["items"]]
    described = [item for item in described if identity(item) not in kept]
    made = [item for item in device if item[1].get("svce") != "large.example"]
    checks.equal(len(device), len(made) + 1, "the device shows the item that was added to it")
    same_items(checks, "the device and its description", described, made, only_expected=True)
    for name, rounds in (("10,000,000 rounds", None), (f"{QUICK_ROUNDS:,} rounds", QUICK_ROUNDS)):
        folder = work / f"keyhaul-{rounds}"
        options = [] if rounds is None else ["--rounds", rounds]
        program.run("backup", "old-phone", "-o", f"{folder}/", "--password-file", work / "password", *options)
        both = Backup(folder, PASSWORD.encode(), key)
        sealed_as_python_seals(checks, name, folder, both)
        checks.equal(both.keybag.rounds, (rounds or 10_000_000, 10_000), f"{name}: the keybag asks for them")
        published_readers_agree(checks, name, folder, both.keychain_file())
        same_items(checks, f"{name}, password and hardware key", device, readable(both))
        alone = Backup(folder, PASSWORD.encode())
        migratable = [item for item in device if item[1]["pdmn"] not in THIS_DEVICE_ONLY]
        same_items(checks, f"{name}, password alone", migratable, readable(alone))
        reasons = {item.reason for item in alone.keychain_items() if not item.readable}
        checks.equal(reasons, {"device-bound"}, f"{name}: the others are device-bound")
    for suffix in ("tar", "tar.gz", "zip"):
        path = work / f"one.{suffix}"
        program.run(
            "backup", "old-phone", "-o", path, "--password-file", work / "password", "--rounds", QUICK_ROUNDS)
        same_items(checks, f"one {suffix} file", device, readable(Backup(path, PASSWORD.encode(), key)))
    with tarfile.open(work / "one.tar.gz") as archive:
        archive.extractall(work / "unpacked", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    folder = next(path.parent for path in (work / "unpacked").rglob("Manifest.plist"))
    published_readers_agree(checks, "unpacked tar.gz", folder, Backup(folder, PASSWORD.encode()).keychain_file())
    checks.part(without_password, checks, work, program, device, key)
    checks.part(new_password, checks, work, program, device, key)
    checks.part(converted, checks, work, program, device, key)
    checks.part(hostile_names, checks, work, program, fixtures)


def sealed_as_python_seals(checks, name, folder, backup):
    seal = keyhaul_seal.made(folder, backup.layout, getattr(backup, "manifest_key", None))
    checks.equal((folder / keyhaul_seal.NAME).read_bytes(), seal, f"{name}: the seal is the one that Python makes")


def without_password(checks, work, program, device, key):
    folder = work / "plain"
    program.run("backup", "old-phone", "-o", f"{folder}/", "--no-password")
    bound = Backup(folder)
    sealed_as_python_seals(checks, "no password", folder, bound)
    checks.equal(
        {item.reason for item in bound.keychain_items()}, {"device-bound"}, "no password: every item is device-bound")
    same_items(checks, "no password, hardware key", device, readable(Backup(folder, device_key=key)))
    checks.that(
        with_pyiosbackup(folder, "") == bound.keychain_file(), "no password: pyiosbackup takes out the keychain file")
    try:
        with_iphone_backup_decrypt(folder, PASSWORD)
        refused = False
    except iphone_backup_decrypt.exceptions.BackupNotEncryptedError:
        refused = True
    checks.that(refused, "no password: iphone_backup_decrypt says that it isn't encrypted")


def digests_below(folder):
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*") if path.is_file()
    }


def new_password(checks, work, program, device, key):
    """After `rekey` the new password opens the backup everywhere, the old one nowhere."""
    new = work / "new-password"
    new.write_bytes(NEW_PASSWORD.encode())
    new.chmod(0o600)
    secrets = ["--password-file", work / "password", "--new-password-file", new, "--rounds", QUICK_ROUNDS]
    folder, packed = work / "rekeyed", work / "rekeyed.tar.gz"
    for target in (f"{folder}/", packed):
        program.run(
            "backup", "old-phone", "-o", target, "--password-file", work / "password", "--rounds", QUICK_ROUNDS)
    before, bag = digests_below(folder), Backup(folder, PASSWORD.encode()).keybag
    program.run("rekey", folder, *secrets)
    after = digests_below(folder)
    changed = {name for name in set(before) | set(after) if before.get(name) != after.get(name)}
    checks.equal(changed, {"Manifest.plist", "Keyhaul.seal"}, "rekey: one file changed, and the seal")
    rekeyed = Backup(folder, NEW_PASSWORD.encode(), key)
    sealed_as_python_seals(checks, "rekey", folder, rekeyed)
    for tag in (b"SALT", b"DPSL"):
        checks.that(rekeyed.keybag.header[tag] != bag.header[tag], f"rekey: {tag.decode()} is new")
    checks.equal(rekeyed.keybag.uuid_text, bag.uuid_text, "rekey: the keybag keeps its UUID")
    published_readers_agree(checks, "rekey, new password", folder, rekeyed.keychain_file(), NEW_PASSWORD)
    for reader, read in READERS.items():
        checks.that(refuses(read, folder, PASSWORD), f"rekey: {reader} refuses the old password")
    same_items(checks, "rekey, password and hardware key", device, readable(rekeyed))
    program.run("rekey", packed, *secrets)
    same_items(checks, "rekey of one tar.gz file", device, readable(Backup(packed, NEW_PASSWORD.encode(), key)))
    try:
        Backup(packed, PASSWORD.encode())
        checks.that(False, "rekey of one tar.gz file: the old password is refused")
    except WrongPassword:
        checks.that(True, "rekey of one tar.gz file: the old password is refused")


def converted(checks, work, program, device, key):
    """Between folder and single file nothing changes but the packing."""
    source = work / "to-convert"
    program.run(
        "backup", "old-phone", "-o", f"{source}/", "--password-file", work / "password", "--rounds", QUICK_ROUNDS)
    for suffix in ("tar", "zip"):
        packed, folder = work / f"converted.{suffix}", work / f"converted-from-{suffix}"
        program.run("convert", source, "-o", packed)
        same_items(checks, f"convert to {suffix}", device, readable(Backup(packed, PASSWORD.encode(), key)))
        program.run("convert", packed, "-o", f"{folder}/")
        checks.equal(digests_below(folder), digests_below(source), f"convert to {suffix} and back: the same files")
        published_readers_agree(
            checks, f"convert to {suffix} and back", folder, Backup(folder, PASSWORD.encode()).keychain_file())


def hostile_names(checks, work, program, fixtures):
    program.run("device", "create", "hostile", "--from", fixtures / "hostile-names.json")
    folder = work / "hostile"
    program.run(
        "backup", "hostile", "-o", f"{folder}/", "--password-file", work / "password", "--rounds", QUICK_ROUNDS)
    device = [shown_by_program(entry) for entry in program.items("hostile")]
    description = json.loads((fixtures / "hostile-names.json").read_text(encoding="utf-8"))
    described = [shown_by_description(entry) for entry in description["items"]]
    same_items(checks, "hostile names, the device and its description", described, device, only_expected=True)
    same_items(checks, "hostile names", device, readable(Backup(folder, PASSWORD.encode())))


def expected_outcome(dictionary, same_device, encrypted):
    """What a plan has to say of one item: outcome and reason."""
    if not same_device and not encrypted:
        return "stays-behind", "backup-not-encrypted" if dictionary["pdmn"] not in THIS_DEVICE_ONLY else "device-bound"
    if not same_device and dictionary["pdmn"] in THIS_DEVICE_ONLY:
        return "stays-behind", "device-bound"
    if dictionary["agrp"] in SYSTEM_GROUPS:
        return "stays-behind", "system-bound"
    return "migrates", None


def after_restore(table, dictionary):
    """What a restore changes in an item: old Safari logins become synchronizable; the digest follows."""
    restored = dict(dictionary)
    is_login = all(isinstance(restored.get(code), str) for code in ("srvr", "ptcl", "atyp"))
    if table == "inet" and restored["agrp"] == "com.apple.cfnetwork" and is_login:
        restored["sync"] = 1
    restored["sha1"] = items.digest(table, restored)
    return shown(table, restored)


def part_three(checks, work, program, fixtures, description):
    checks.section("3. Keyhaul plans and restores what our Python writer writes")
    quick = dict(double_rounds=QUICK_ROUNDS, password=PASSWORD.encode())
    other = {
        "bag 3, one round": dict(quick, keybag_version=3, double_rounds=0),
        "bag 4": quick, "bag 5, ascending": dict(quick, keybag_version=5, ascending=True),
        "blobs of version 2": dict(quick, blob_version=2), "static IV": dict(quick, static_iv=True),
        "row references": dict(quick, row_references=True), "unpadded manifest": dict(quick, padded_manifest=False),
        "no password": dict(password=None),
    }
    same = {"same device": quick, "same device, no password": dict(password=None)}
    for number, (name, options) in enumerate([*other.items(), *same.items()]):
        checks.part(restored_equal, checks, work, program, fixtures, description, name, number, options, name in same)


def restored_equal(checks, work, program, fixtures, description, name, number, options, same_device):
    target, folder = f"target-{number}", work / f"written-{number}"
    program.run("device", "create", target, "--from", fixtures / "new-phone.json")
    if same_device:
        options = dict(options, device_key=program.device_key(target))
    writer = Writer(description, Options(**options))
    writer.write(folder)
    written = sorted(writer.written, key=lambda pair: items.TABLES.index(pair[0]))
    sealing = ["--password-file", work / "password"] if writer.encrypted else []
    before = digests_below(folder)
    program.run("seal", folder, *sealing)
    after = digests_below(folder)
    after.pop(keyhaul_seal.NAME)
    checks.equal(after, before, f"{name}: sealing adds the seal and changes nothing")
    opened = Backup(folder, PASSWORD.encode() if writer.encrypted else b"")
    sealed_as_python_seals(checks, f"{name}, sealed", folder, opened)
    secrecy = ["--password-file", work / "password"] if writer.encrypted else []
    plan = program.json("plan", folder, "--to", target, *secrecy)
    checks.equal(plan["format"], "migration-plan/1", f"{name}: the plan's format")
    expected = [expected_outcome(dictionary, same_device, writer.encrypted) for _, dictionary in written]
    found = [(entry["outcome"], entry.get("reason")) for entry in sorted(plan["items"], key=lambda e: e["index"])]
    migrating = sum(outcome == "migrates" for outcome, _ in expected)
    checks.equal(found, expected, f"{name}: the plan decides {len(expected)} items, {migrating} migrate")
    if not migrating:
        # Nothing would come in the place of what is there, so that nothing is removed for it.
        before = program.items(target)
        program.run("restore", folder, "--to", target, "--yes", *secrecy, expect=(14,))
        after = program.items(target)
        return checks.equal(after, before, f"{name}: refused, and the same {len(before)} items are there")
    result = program.json("restore", folder, "--to", target, "--yes", *secrecy)
    checks.equal(result["summary"]["migrates"], migrating, f"{name}: the restore says the same")
    restored = [
        after_restore(table, dictionary)
        for (table, dictionary), (outcome, _) in zip(written, expected) if outcome == "migrates"
    ]
    same_items(checks, f"{name}, restored", restored, [shown_by_program(entry) for entry in program.items(target)])


# Published readers once more: each gives all stored files of a folder, by domain and path, as bytes and a time in seconds
# since 1970.

def all_with_iphone_backup_decrypt(folder, password, work):
    target = work / "theirs"
    backup = iphone_backup_decrypt.EncryptedBackup(backup_directory=str(folder), passphrase=password)
    backup.extract_files(
        relative_paths_like="%", domain_like="%", output_folder=str(target), preserve_folders=True,
        domain_subfolders=True, filter_callback=lambda *, file_id, **_: (folder / file_id[:2] / file_id).is_file())
    found = tree_of(target)
    shutil.rmtree(target)
    return found


def all_with_pyiosbackup(folder, password, work):
    return {
        f"{entry.domain}/{entry.relative_path}": (entry.read_bytes(), int(entry.last_modified.timestamp()))
        for entry in pyiosbackup.Backup.from_path(folder, password).iter_files() if entry.real_path.is_file()}


def all_with_dissect(folder, password, work):
    backup = ITunesBackup(folder)
    backup.open(password)
    found = {}
    for file in backup.files():
        if file.flags == 1 and file.get().is_file():
            entry = ITunesFilesystem(backup).get(file.translated_path)
            with entry.open() as opened:
                found[f"{file.domain}/{file.relative_path}"] = (opened.read(), int(entry.lstat().st_mtime))
    return found


ALL_READERS = {
    "iphone_backup_decrypt": all_with_iphone_backup_decrypt, "pyiosbackup": all_with_pyiosbackup,
    "dissect.target": all_with_dissect,
}
# Cuts an encrypted file off at the size that the list says; a device says the wrong one of a database that grew.
CUTTING_READER = "dissect.target"


def tree_of(folder):
    return {
        str(path.relative_to(folder)): (path.read_bytes(), int(path.lstat().st_mtime))
        for path in folder.rglob("*") if path.is_file() and not path.is_symlink() and path.parent != folder}


def part_four(checks, work, program):
    checks.section("4. Files in a folder, and copies in clear, are what published readers take out")
    for case in CASES:
        if case.name in FOLDERS_OF_FILES:
            checks.part(files_agree, checks, work, program, case)


# Cases in the layout that all three readers know.
FOLDERS_OF_FILES = {"db-encrypted", "keybag-5", "list-no-digests", "extra-files"}


def files_agree(checks, work, program, case):
    place = work / f"files-{case.name}"
    path, answers = case.write(place)
    password = case.recipe.password.decode("utf-8")
    secret = place / "password"
    secret.write_bytes(case.recipe.password)
    secret.chmod(0o600)
    exported, clear = place / "exported", place / "clear"
    program.run("export", path, "--files", exported, "--password-file", secret)
    ours = tree_of(exported)
    stored = {f"{file['domain']}/{file['path']}": base64.b64decode(file["base64"]) for file in answers["files"]}
    checks.equal(
        {name: ours.get(name, (None,))[0] for name in stored}, stored,
        f"{case.name}: export --files writes the {len(stored)} files that were made, equal")
    sizes = {f"{file.domain}/{file.path}": len(file.content) if file.size is None else file.size
             for file in case.recipe.files if file.is_regular}
    for reader, read in ALL_READERS.items():
        theirs = read(path, password, place)
        cut = {name: content[:sizes.get(name)] for name, (content, _) in ours.items()} if reader == CUTTING_READER else {}
        agree(checks, f"{case.name}, exported: {reader}", ours, theirs, cut)
    program.run("convert", path, "--decrypted", "-o", f"{clear}/", "--password-file", secret)
    for reader in ("pyiosbackup", "dissect.target"):
        agree(checks, f"{case.name}, in clear: {reader}", ours, ALL_READERS[reader](clear, "", place))
    listed = "SELECT fileID, domain, relativePath, flags FROM Files ORDER BY fileID"
    with contextlib.closing(sqlite3.connect(f"file:{clear / 'Manifest.db'}?mode=ro", uri=True)) as database:
        checks.equal(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)],
                     f"{case.name}, in clear: sqlite3 finds its list whole")
        rows = database.execute(listed).fetchall()
    names = {f"{domain}/{name}" for _, domain, name, flags in rows if flags == 1}
    checks.that(set(ours) <= names, f"{case.name}, in clear: its list names every file that was exported")


def agree(checks, text, ours, theirs, cut={}):
    """What the reader takes out is among ours, and nothing of ours that is stored is missing there; `cut` has the contents
    that the reader gives otherwise."""
    different = [
        name for name, (content, modified) in theirs.items()
        if name not in ours or (cut.get(name, ours[name][0]), ours[name][1]) != (content, modified)]
    missing = [name for name in ours if name not in theirs and ours[name][0]]
    checks.that(
        theirs and not different and not missing, f"{text} takes out {len(theirs)} files, equal, with the same times",
        f"different {different[:5]}, missing {missing[:5]}")


def main():
    parser = argparse.ArgumentParser(description="Check that Keyhaul and other readers of iPhone backups agree.")
    repository = pathlib.Path(__file__).resolve().parent.parent.parent
    parser.add_argument("--keyhaul", type=pathlib.Path, help="the built program")
    parser.add_argument("--fixtures", type=pathlib.Path, default=repository / "Fixtures" / "devices")
    parser.add_argument("--python-side-only", action="store_true", help="part 1 alone, without the program")
    arguments = parser.parse_args()
    if not arguments.python_side_only and (arguments.keyhaul is None or not arguments.keyhaul.is_file()):
        parser.error("--keyhaul has to name the built program")
    for reader in ALL_READERS:
        print(f"{reader} {importlib.metadata.version(reader)}")
    description = json.loads((arguments.fixtures / "old-phone.json").read_text(encoding="utf-8"))
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="keyhaul-interop-") as folder:
        work = pathlib.Path(folder)
        tempfile.tempdir = folder  # one of the readers leaves its decrypted manifest behind
        (work / "password").write_bytes(PASSWORD.encode())
        (work / "password").chmod(0o600)
        checks.part(part_one, checks, work, description)
        if not arguments.python_side_only:
            program = Program(arguments.keyhaul, work / "home")
            checks.part(part_two, checks, work, program, arguments.fixtures)
            checks.part(part_three, checks, work, program, arguments.fixtures, description)
            checks.part(part_four, checks, work, program)
    print(f"\n{checks.passed} passed, {checks.failed} failed")
    return 0 if checks.failed == 0 and checks.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
