#!/usr/bin/env python3
"""Test the Python reader and writer against published vectors and against each other, and test the other tools.

    test_support.py [--vectors test-vectors.json]
"""

import argparse
import dataclasses
import hashlib
import json
import pathlib
import plistlib
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

import check_documentation
import check_sources
import check_structure
import disk_model
import site_pages
import test_backups
import test_figures
from keychain_backup import FormatError, NotABackup, WrongPassword, apple_der, crypto, items, keybag, mbfile, typed_json
from keychain_backup_reader import KEYCHAIN_DOMAIN, KEYCHAIN_PATH, Backup, describe
from keychain_backup_writer import Options, Writer, leaves_device
from processes import Launcher

HERE = pathlib.Path(__file__).resolve().parent
FIXTURES = HERE.parent.parent / "Fixtures" / "devices"
VECTORS = {}
PASSWORD = b"correct horse"


def unhex(text):
    return bytes.fromhex(text)


class KeyWrapping(unittest.TestCase):
    def test_key_wrap_matches_the_rfc_3394_vectors(self):
        for entry in VECTORS["rfc3394"]:
            kek, plain, wrapped = (unhex(entry[name]) for name in ("kek", "plain", "wrapped"))
            self.assertEqual(crypto.wrap(kek, plain), wrapped)
            self.assertEqual(crypto.unwrap(kek, wrapped), plain)
            for position in range(len(wrapped)):
                damaged = bytearray(wrapped)
                damaged[position] ^= 1 << position % 8
                with self.assertRaises(crypto.TagMismatch):
                    crypto.unwrap(kek, bytes(damaged))

    def test_passwords_give_the_published_keys(self):
        for entry in VECTORS["backup_password"]:
            with self.subTest(entry["origin"]):
                sha256_salt = unhex(entry["DPSL"]) if entry["two_rounds"] else None
                key = crypto.passcode_key(
                    entry["password"].encode(), unhex(entry["SALT"]), entry["ITER"], sha256_salt, entry["DPIC"] or 0)
                self.assertEqual(key.hex(), entry["expect_passcode_key"])
                self.assertEqual(crypto.unwrap(key, unhex(entry["WPKY"])).hex(), entry["expect_class_key"])

    def test_a_curve25519_class_key_unwraps_a_real_file_key(self):
        entry = VECTORS["curve25519_class_file_key"]
        private, public = unhex(entry["class_private"]), unhex(entry["class_public"])
        start = entry["wrapped_key_offset"]
        wrapped = unhex(entry["cprotect_xattr"])[start:start + entry["wrapped_key_length"]]
        self.assertEqual(crypto.curve_public(private), public)
        self.assertEqual(crypto.curve_shared(private, wrapped[:32]).hex(), entry["expect_shared"])
        self.assertEqual(crypto.curve_unwrap(private, public, wrapped).hex(), entry["expect_file_key"])
        rewrapped_key = crypto.curve_wrap(public, unhex(entry["expect_file_key"]), bytes(range(32)))
        self.assertEqual(crypto.curve_unwrap(private, public, rewrapped_key).hex(), entry["expect_file_key"])


class EmptyIVs(unittest.TestCase):
    def test_gcm_with_an_empty_iv_matches_the_vectors(self):
        for entry in VECTORS["gcm_zero_length_iv"]["entries"]:
            key, plain, cipher, tag = (unhex(entry[name]) for name in ("key", "plain", "cipher", "tag"))
            self.assertEqual(crypto.gcm_seal(key, plain), (cipher, tag))
            self.assertEqual(crypto.gcm_open(key, cipher, tag), plain)
            for position in range(16):
                damaged = bytearray(tag)
                damaged[position] ^= 0x40
                with self.assertRaises(crypto.TagMismatch):
                    crypto.gcm_open(key, cipher, bytes(damaged))
            if cipher:
                with self.assertRaises(crypto.TagMismatch):
                    crypto.gcm_open(key, bytes([cipher[0] ^ 1]) + cipher[1:], tag)

    def test_a_real_item_of_version_2_is_decrypted(self):
        entry = VECTORS["item_blob_v2"]
        blob = items.ItemBlob.parse(unhex(entry["blob"]))
        self.assertEqual((blob.version, blob.key_class, blob.has_static_iv), (2, 11, False))
        self.assertEqual(blob.serialized(), unhex(entry["blob"]))
        found = items.decode_dictionary(blob.decrypt(unhex(entry["bulk_key"])), 2)
        for code, expected in entry["expect_attributes"].items():
            if code.endswith("_ascii"):
                self.assertEqual(found[code[:-6]], expected.encode())
            elif code in ("cdat", "mdat"):
                self.assertEqual(found[code].rfc3339[:26], expected[:26])
            else:
                self.assertEqual(found[code], expected)

    def test_the_static_iv_is_the_hash_of_its_text(self):
        self.assertEqual(items.STATIC_IV.hex(), "1ea05ca9982e87dcf145e824")


class AppleDERPropertyLists(unittest.TestCase):
    def value(self, entry):
        kind, value = entry["type"], entry["value"]
        if kind == "data":
            return unhex(value)
        if kind == "set":
            return apple_der.AppleSet(value)
        if kind == "dict_mixed_keys":
            inner = [False, unhex("10ff0012a5"), "In Array"]
            return {False: 2313, 2313: True, "Oh yeah": True, unhex("fcfffa"): inner}
        return value

    def test_values_encode_and_decode(self):
        for entry in VECTORS["der_plist"]:
            value, der = self.value(entry), unhex(entry["der"])
            self.assertEqual(apple_der.encode(value).hex(), entry["der"])
            decoded = apple_der.decode(der)
            self.assertEqual(decoded, value)
            self.assertEqual(type(decoded), type(value))
            self.assertEqual(apple_der.encode(decoded), der)

    def test_dates_encode_and_decode(self):
        for entry in VECTORS["der_date"]:
            seconds, text = float(entry["seconds_since_2001"]), entry["body"].encode()
            self.assertEqual(apple_der.Moment(seconds).der_text, entry["body"])
            self.assertEqual(apple_der.decode_date(text).seconds, seconds)
            self.assertEqual(apple_der.Moment.from_rfc3339(apple_der.Moment(seconds).rfc3339).seconds, seconds)

    def test_malformed_dates_are_rejected_or_repaired(self):
        for text in (b"20200101000000.50Z", b"20200101000000.Z", b"2020010100000Z", b"20200101000000"):
            with self.assertRaises(apple_der.MalformedDate):
                apple_der.decode_date(text)
            element = bytes([0x18, len(text)]) + text
            self.assertEqual(apple_der.decode(element, repair_dates=True), apple_der.REPAIRED_DATE)
        with self.assertRaises(FormatError):
            apple_der.decode(bytes([0x18, 15]) + b"20200230000000Z", repair_dates=True)

    def test_only_ascii_digits_form_a_date(self):
        # RFC 3339 allows only the digits 0 to 9. The rejected texts contain Arabic-Indic digits.
        self.assertEqual(apple_der.Moment.from_rfc3339("2001-01-01T00:00:01.5Z").seconds, 1.5)
        for text in ("2001-01-01T00:00:0\u0661Z", "2001-01-01T00:00:0\u0661.\u0665Z"):
            with self.assertRaises(FormatError, msg=text):
                apple_der.Moment.from_rfc3339(text)

    def test_a_date_outside_of_the_calendar_has_no_text(self):
        # Python's calendar ends 7,999 years after 2001-01-01. 1,939 of these years are leap years.
        last_second = (7999 * 365 + 1939) * 86400 - 1
        self.assertEqual(apple_der.Moment(last_second).rfc3339, "9999-12-31T23:59:59Z")
        for seconds in (last_second + 1, 1e300, -1e300, float("inf"), float("nan")):
            with self.assertRaises(FormatError, msg=seconds):
                apple_der.encode(apple_der.Moment(seconds))

    def test_keys_that_python_cannot_look_up_are_rejected(self):
        # A list, a dictionary, and a set with a list in it.
        for key in ("3000", "3100", "d1023000"):
            pair = unhex(key) + apple_der.encode(1)
            pair = bytes([0x30, len(pair)]) + pair
            with self.assertRaises(FormatError, msg=key):
                apple_der.decode(bytes([0x31, len(pair)]) + pair)

    def test_malformed_elements_are_rejected(self):
        # Truncated elements, invalid lengths, bytes after the end, an unknown tag, a string that is not UTF-8, and an
        # integer of 9 bytes.
        for der in ("", "0c", "0c05464f4f", "0c8003464f4f", "0c8103464f4f", "0c03464f4f00", "0a0101", "3104300202010a",
                    "0c01ff", "020900000000000000000a", "0101", "30"):
            with self.assertRaises(FormatError, msg=der):
                apple_der.decode(unhex(der))
        deep = b""
        for _ in range(80):
            deep = bytes([0x30]) + (bytes([len(deep)]) if len(deep) < 128 else bytes([0x81, len(deep)])) + deep
        with self.assertRaises(FormatError):
            apple_der.decode(deep)

    def test_the_first_of_two_equal_keys_wins(self):
        pairs = b"".join(bytes([0x30, 6]) + apple_der.encode("a") + apple_der.encode(number) for number in (1, 2))
        self.assertEqual(apple_der.decode(bytes([0x31, len(pairs)]) + pairs), {"a": 1})


class Keybags(unittest.TestCase):
    def test_the_empty_password_unlocks_the_keybag_of_an_unencrypted_backup_except_for_device_bound_classes(self):
        for entry in VECTORS["unencrypted_backup_keybag"]:
            bag, expect = keybag.Keybag.parse(unhex(entry["keybag"])), entry["expect"]
            self.assertEqual(bag.serialized(), unhex(entry["keybag"]))
            self.assertEqual(bag.number(b"VERS"), expect["VERS"])
            self.assertEqual([key.key_class for key in bag.classes], expect["class_order"])
            self.assertEqual({str(key.key_class): key.wrap_flags for key in bag.classes}, expect["WRAP"])
            key = bag.passcode_key(b"")
            self.assertEqual(key.hex(), entry["expect_passcode_key"])
            unwrapped = {str(entry.key_class): crypto.unwrap(key, entry.wrapped).hex() for entry in bag.classes}
            self.assertEqual(unwrapped, expect["unwrapped"])
            states = {number: unlocked_class.state for number, unlocked_class in bag.unlock(b"").items()}
            self.assertEqual({number for number in states if states[number] == "available"}, {1, 2, 3, 4})
            self.assertEqual({number for number in states if states[number] == "device-bound"}, set(range(5, 12)))
            with self.assertRaises(WrongPassword):
                bag.unlock(b"password")

    def test_a_real_asymmetric_keybag_is_parsed(self):
        entry = VECTORS["asymmetric_backup_keybag"]
        entry = entry[0] if isinstance(entry, list) else entry
        bag, expect = keybag.Keybag.parse(unhex(entry["keybag"])), entry["expect"]
        self.assertEqual(bag.serialized(), unhex(entry["keybag"]))
        self.assertEqual((bag.number(b"VERS"), bag.number(b"TYPE")), (expect["VERS"], expect["TYPE"]))
        self.assertEqual([key.key_class for key in bag.classes], expect["class_order"])
        self.assertEqual(sorted(k.key_class for k in bag.classes if k.wrap_flags == 3), expect["WRAP_3_classes"])
        self.assertTrue(all(key.is_curve and len(key.wrapped) == 40 and len(key.public) == 32 for key in bag.classes))

    def test_malformed_keybags_are_rejected(self):
        valid_keybag = unhex(VECTORS["synthetic_backup"]["keybag_hex"])
        for length in (len(valid_keybag) - 1, 11, 4):
            with self.assertRaises(FormatError):
                keybag.Keybag.parse(valid_keybag[:length])
        with_huge_count = valid_keybag.replace(
            b"DPIC" + struct.pack(">II", 4, 1000), b"DPIC" + struct.pack(">II", 4, 0xFFFFFFFF))
        with self.assertRaises(FormatError):
            keybag.Keybag.parse(with_huge_count).unlock(PASSWORD)

    def test_one_damaged_wrapped_key_leaves_the_other_classes_usable(self):
        valid_keybag = unhex(VECTORS["synthetic_backup"]["keybag_hex"])
        damaged = bytearray(valid_keybag)
        damaged[-1] ^= 1
        unlocked_classes = keybag.Keybag.parse(bytes(damaged)).unlock(PASSWORD)
        damaged_classes = [number for number, unlocked in unlocked_classes.items() if unlocked.state == "damaged"]
        self.assertEqual(damaged_classes, [1])


class PublishedBackup(unittest.TestCase):
    """The backup of the published vectors, checked step by step."""

    def setUp(self):
        self.vector = VECTORS["synthetic_backup"]
        self.bag = keybag.Keybag.parse(unhex(self.vector["keybag_hex"]))

    def test_the_password_and_the_device_key_unlock_all_class_keys(self):
        sha256_iterations, _ = self.bag.iterations
        sha256_key = hashlib.pbkdf2_hmac("sha256", PASSWORD, self.bag.header[b"DPSL"], sha256_iterations, 32)
        self.assertEqual(sha256_key.hex(), self.vector["dpsl_key_hex"])
        self.assertEqual(self.bag.passcode_key(PASSWORD).hex(), self.vector["passcode_key_hex"])
        without_device_key = self.bag.unlock(PASSWORD)
        with_device_key = self.bag.unlock(PASSWORD, unhex(self.vector["key835_hex"]))
        for number, key in self.vector["class_keys"].items():
            # The keys of these classes are also wrapped with the device key.
            state = "device-bound" if int(number) in (5, 9, 10, 11) else "available"
            self.assertEqual(without_device_key[int(number)].state, state)
            self.assertEqual(with_device_key[int(number)].key.hex(), key)
        with self.assertRaises(WrongPassword):
            self.bag.unlock(b"wrong horse")

    def test_the_manifest_key_is_unwrapped(self):
        field = unhex(self.vector["manifest_key_field_hex"])
        unlocked_class = self.bag.unlock(PASSWORD)[int.from_bytes(field[:4], "little")]
        self.assertEqual(unlocked_class.unwrap(field[4:]).hex(), self.vector["manifest_key_hex"])

    def test_file_records_and_file_ids_match_the_vectors(self):
        for entry in self.vector["files"]:
            record = mbfile.FileRecord.parse(unhex(entry["file_blob_hex"]))
            self.assertEqual(record.path, entry["relativePath"])
            self.assertEqual(record.is_regular, entry["flags"] == 1)
            self.assertEqual(mbfile.file_id(entry["domain"], entry["relativePath"]), entry["fileID"])
            if record.is_regular:
                self.assertEqual(record.key_class, record.protection_class)
                self.assertEqual(len(self.bag.unlock(PASSWORD)[record.key_class].unwrap(record.wrapped_key)), 32)
            self.assertEqual(mbfile.FileRecord.parse(record.encode()), record)
        for entry in VECTORS["file_id"]:
            self.assertEqual(mbfile.file_id(entry["domain"], entry["relativePath"]), entry["fileID"])

    def test_items_are_decrypted_and_encrypted_to_the_same_bytes(self):
        classes = self.bag.unlock(PASSWORD, unhex(self.vector["key835_hex"]))
        for number, entry in enumerate(self.vector["items"]):
            data = {"v_Data": unhex(entry["v_Data_hex"]), "v_PersistentRef": unhex(entry["v_PersistentRef_hex"])}
            item = items.read_item(number, entry["table"], data, classes)
            self.assertTrue(item.is_readable, item.detail)
            self.assertEqual(item.blob.has_static_iv, entry["static_iv"])
            self.assertEqual(item.blob.key_class, entry["class_"])
            self.assertEqual(item.reference.serialized(), data["v_PersistentRef"])
            dictionary = dict(item.attributes, v_Data=item.secret)
            self.assertEqual(apple_der.encode(dictionary).hex(), entry["plaintext_der_hex"])
            self.assertEqual(items.digest(entry["table"], dictionary), item.attributes["sha1"])
            key = unhex(entry["item_key_hex"])
            reencrypted_blob = items.encrypt_item(
                apple_der.encode(dictionary), item.blob.key_class, classes[item.blob.key_class].key, key, 3,
                entry["static_iv"])
            self.assertEqual(reencrypted_blob.hex(), entry["v_Data_hex"])

    def test_a_this_device_only_item_is_device_bound_without_the_device_key(self):
        entry = self.vector["items"][3]
        item = items.read_item(3, "genp", {"v_Data": unhex(entry["v_Data_hex"])}, self.bag.unlock(PASSWORD))
        self.assertEqual((item.is_readable, item.reason, item.protection), (False, "device-bound", "aku"))

    def test_an_item_in_a_curve25519_class_is_decrypted(self):
        vector = self.vector["asym"]
        private, public = unhex(vector["class_private_hex"]), unhex(vector["class_public_hex"])
        source = keybag.ClassKey({b"CLAS": bytes(3) + b"\x06", b"KTYP": bytes(3) + b"\x01", b"PBKY": public})
        classes = {6: keybag.UnlockedClass("available", source, private)}
        item = items.read_item(0, "genp", {"v_Data": unhex(vector["v_Data_hex"])}, classes)
        dictionary = dict(item.attributes, v_Data=item.secret)
        self.assertEqual(apple_der.encode(dictionary).hex(), vector["plaintext_der_hex"])

    def test_the_record_name_is_derived_from_the_primary_key(self):
        for entry in VECTORS["primary_key_uuid"]:
            key = {name: entry[name] for name in ("acct", "svce", "agrp", "sync", "vwht") if name in entry}
            key["musr"] = unhex(entry["musr_hex"])
            self.assertEqual(apple_der.encode(key).hex(), entry["der"])
            self.assertEqual(hashlib.sha1(apple_der.encode(key)).hexdigest(), entry["sha1"])
            self.assertEqual(items.record_name(key), entry["uuid"])


class RoundTrip(unittest.TestCase):
    """Backups that the writer writes and the reader reads, in every variant and with one fault at a time."""

    VARIANTS = {
        "SHA-1 only, keybag 3": dict(keybag_version=3, sha256_iterations=0),
        "SHA-256 and SHA-1, keybag 4": dict(keybag_version=4),
        "ascending, keybag 5": dict(keybag_version=5, is_ascending=True),
        "version 2": dict(blob_version=2),
        "static IV": dict(uses_static_iv=True),
        "row references": dict(has_row_references=True),
        "unpadded manifest": dict(is_manifest_padded=False),
        "without digests": dict(has_digests=False),
    }

    @classmethod
    def setUpClass(cls):
        cls.description = json.loads((FIXTURES / "old-phone.json").read_text(encoding="utf-8"))

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name="backup", description=None, **options):
        options = {
            "password": PASSWORD,
            "device_key": bytes(range(16)),
            "sha256_iterations": 10,
            "sha1_iterations": 10,
            **options,
        }
        writer = Writer(description or self.description, Options(**options))
        writer.write(self.folder / name)
        return writer

    def assert_same_items(self, writer, backup):
        found = backup.keychain_items()
        self.assertEqual(len(found), len(writer.written))
        expected = sorted(writer.written, key=lambda pair: items.TABLES.index(pair[0]))
        for item, (table, dictionary) in zip(found, expected):
            self.assertTrue(item.is_readable, item.detail)
            self.assertEqual(item.table, table)
            found_dictionary = dict(item.attributes)
            if item.secret is not None:
                found_dictionary["v_Data"] = item.secret
            self.assertEqual(found_dictionary, dictionary)

    def test_every_variant_is_read_as_it_was_written(self):
        for name, options in self.VARIANTS.items():
            with self.subTest(name):
                writer = self.write(name, **options)
                backup = Backup(self.folder / name, PASSWORD, bytes(range(16)))
                self.assert_same_items(writer, backup)
                self.assertEqual(bool(backup.warnings), name == "unpadded manifest")

    def test_items_that_never_leave_the_device_are_not_written(self):
        writer = self.write()
        self.assertEqual(len(writer.written), sum(map(leaves_device, self.description["items"])))
        self.assertNotIn("akpu", {dictionary["pdmn"] for _, dictionary in writer.written})

    def test_this_device_only_items_are_device_bound_without_the_device_key(self):
        self.write()
        for item in Backup(self.folder / "backup", PASSWORD).keychain_items():
            is_bound = item.protection in ("aku", "cku", "dku")
            self.assertEqual((item.is_readable, item.reason), (not is_bound, "device-bound" if is_bound else None))

    def test_all_items_of_an_unencrypted_backup_are_device_bound(self):
        writer = self.write(password=None)
        found = Backup(self.folder / "backup").keychain_items()
        self.assertEqual({item.reason for item in found}, {"device-bound"})
        self.assert_same_items(writer, Backup(self.folder / "backup", device_key=bytes(range(16))))

    def test_archives_are_read_like_the_folder(self):
        writer = self.write()
        with tarfile.open(self.folder / "one.tar.gz", "w:gz") as archive:
            archive.add(self.folder / "backup", arcname=writer.udid)
        with zipfile.ZipFile(self.folder / "one.zip", "w") as archive:
            for path in (self.folder / "backup").rglob("*"):
                archive.write(path, path.relative_to(self.folder / "backup"))
        for name in ("one.tar.gz", "one.zip"):
            self.assert_same_items(writer, Backup(self.folder / name, PASSWORD, bytes(range(16))))

    def test_the_same_seed_writes_the_same_bytes(self):
        for name in ("first", "second"):
            self.write(name)
        contents = [
            {path.relative_to(self.folder / name): path.read_bytes() for path in (self.folder / name).rglob("*.*")}
            for name in ("first", "second")
        ]
        self.assertEqual(*contents)

    def test_a_large_secret_is_decrypted(self):
        secret = bytes(index * 7 & 0xFF for index in range(100_000))
        big = {"kind": "generic-password", "protection": "ak", "attributes": {"svce": "big", "agrp": "a"},
               "secret": typed_json.encode_bytes(secret)}
        self.write(description=dict(self.description, items=[big]))
        self.assertEqual(Backup(self.folder / "backup", PASSWORD).keychain_items()[0].secret, secret)

    def test_the_description_of_a_backup_is_json(self):
        self.write(description=json.loads((FIXTURES / "hostile-names.json").read_text(encoding="utf-8")))
        contents = json.loads(json.dumps(describe(Backup(self.folder / "backup", PASSWORD))))
        self.assertEqual(len(contents["items"]), 15)
        self.assertTrue(all(entry["secret"]["text"].startswith("planted secret") for entry in contents["items"]))

    def test_a_wrong_password_and_a_missing_manifest_raise_different_errors(self):
        self.write()
        with self.assertRaises(WrongPassword):
            Backup(self.folder / "backup", b"wrong")
        (self.folder / "backup" / "Manifest.plist").unlink()
        with self.assertRaises(NotABackup):
            Backup(self.folder / "backup", PASSWORD)

    def test_a_damaged_item_has_the_reason_for_its_fault(self):
        writer = self.write()
        good = Backup(self.folder / "backup", PASSWORD, bytes(range(16)))
        root = plistlib.loads(good.keychain_file())
        valid = root["genp"][0]["v_Data"]
        blob = items.ItemBlob.parse(valid)
        classes = good.classes
        plain = blob.decrypt(classes[blob.key_class].unwrap(blob.wrapped_key))

        def encrypted(plaintext, key_class=blob.key_class):
            return items.encrypt_item(plaintext, key_class, writer.class_keys[key_class], bytes(32))

        other_class = apple_der.encode(dict(apple_der.decode(plain), pdmn="dk"))
        faults = {
            "tag-mismatch": [
                valid[:-1] + bytes([valid[-1] ^ 1]), valid[:60] + bytes([valid[60] ^ 1]) + valid[61:],
                dataclasses.replace(blob, wrapped_key=bytes(40)).serialized(),
                dataclasses.replace(blob, key_class=8).serialized(), bytes(4) + valid[4:],
            ],
            "malformed": [
                b"", valid[:11], valid[:67], encrypted(plain + b"\x00"), encrypted(plain[:-1]), encrypted(other_class),
                encrypted(b"\x04\x00"), valid[:8] + struct.pack("<I", 41) + valid[12:]],
            "unsupported-version": [
                struct.pack("<I", version) + valid[4:] for version in (1, 4, 5, 6, 7, 8, 9, 0x80000009)
            ],
            "no-class-key": [dataclasses.replace(blob, key_class=15).serialized()],
        }
        for reason, blobs in faults.items():
            for number, damaged in enumerate(blobs):
                item = items.read_item(0, "genp", {"v_Data": damaged}, classes)
                self.assertEqual((item.is_readable, item.reason), (False, reason), f"{reason} {number}")
        self.assertEqual(items.read_item(0, "genp", {}, classes).reason, "malformed")

    def test_a_damaged_backup_is_rejected(self):
        self.write()
        path = self.folder / "backup" / "Manifest.plist"
        manifest = plistlib.loads(path.read_bytes())
        for change in ({"ManifestKey": manifest["ManifestKey"][:-1]}, {"BackupKeyBag": manifest["BackupKeyBag"][:-1]}):
            path.write_bytes(plistlib.dumps(dict(manifest, **change), fmt=plistlib.FMT_BINARY))
            with self.assertRaises(FormatError):
                Backup(self.folder / "backup", PASSWORD)
        path.write_bytes(plistlib.dumps(manifest, fmt=plistlib.FMT_BINARY))
        identifier = mbfile.file_id(KEYCHAIN_DOMAIN, KEYCHAIN_PATH)
        (self.folder / "backup" / identifier[:2] / identifier).unlink()
        with self.assertRaises(FormatError):
            Backup(self.folder / "backup", PASSWORD).keychain_items()


class LayerChecks(unittest.TestCase):
    """check_structure.py, which rejects imports from the same layer or from a higher one."""

    def check(self, **imports):
        with tempfile.TemporaryDirectory() as folder:
            for layer in check_structure.LAYERS:
                for target in layer:
                    path = pathlib.Path(folder) / "Sources" / target / "A.swift"
                    path.parent.mkdir(parents=True)
                    path.write_text(imports.get(path.parent.name, ""), encoding="utf-8")
            script = pathlib.Path(check_structure.__file__)
            return subprocess.run([sys.executable, script, folder], capture_output=True, text=True)

    def test_only_imports_from_a_lower_layer_are_accepted(self):
        self.assertEqual(self.check(Reports="import KeyhaulKit", Backups="package import Basics").returncode, 0)
        for target, module in [
            ("Basics", "KeychainFormats"), ("VirtualDevice", "Backups"), ("KeyhaulKit", "Reports"),
            ("Backups", "VirtualDevice"), ("KeychainServices", "KeyhaulKit"), ("Reports", "keyhaul")
        ]:
            found = self.check(**{target: f"@testable import {module}"})
            self.assertEqual(found.returncode, 1)
            self.assertIn(f"imports {module}, which is not in a layer below {target}", found.stdout)

    def test_inlinable_members_are_usable_in_other_modules(self):
        inlined = "package struct A<Value> {\n  @inlinable package func f() {}\n}\n\npackage struct B {\n}"
        found = self.check(Basics=inlined)
        self.assertEqual(found.returncode, 1)
        self.assertIn("A has @inlinable members, and is not @usableFromInline", found.stdout)
        self.assertNotIn(": B has", found.stdout)
        self.assertEqual(self.check(Basics=f"@usableFromInline\n{inlined}").returncode, 0)

    def test_only_declared_dependencies_are_imported(self):
        manifest = json.dumps({"targets": [
            {"name": "Basics", "path": "Sources/Library/Basics", "exclude": [], "dependencies": []},
            {"name": "Reports", "path": "Sources/Library/Reports", "exclude": ["Apple"],
             "dependencies": [{"byName": ["Basics", None]}, {"product": ["GRDB", "GRDB.swift", None, None]}]},
            {"name": "ReportsTests", "exclude": [], "dependencies": [{"byName": ["Reports", None]}]},
        ]})
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in [
                ("Sources/Library/Reports/A.swift", "import Basics\nimport GRDB"),
                ("Sources/Library/Reports/Apple/B.swift", "import ReportsTests"),
                ("Tests/ReportsTests/C.swift", "@testable import Reports\nimport Basics"),
            ]:
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text, encoding="utf-8")
            self.assertEqual(check_structure.undeclared_imports(manifest, root), [])
            (root / "Sources/Library/Basics").mkdir()
            (root / "Sources/Library/Basics/D.swift").write_text("package import Reports", encoding="utf-8")
            self.assertEqual(
                check_structure.undeclared_imports(manifest, root),
                ["Sources/Library/Basics/D.swift: imports Reports, and Basics does not depend on it in Package.swift"],
            )


class SourceRules(unittest.TestCase):
    """The rules of check_sources.py."""

    # Split, so that this file does not break the rules.
    BROKEN = {
        "Sources/CommandLine/keyhaul/A.swift": [
            "let a = tr" "y! b()", "let a = b a" "s! C", "import GR" "DB", "import CSQ" "Lite", "import GRDBSQ" "Lite",
            "import CAr" "chive", "internal import COpen" "SSL", "// TO" "DO: later", "// see /ho" "me/anna/x",
            "// Issu" "e 12", "<" * 7 + " HEAD", "import Gli" "bc", "  import Dar" "win", "l" "stat(a, &b)",
            "FileDescriptor.op" "en(a)", "import CUTF8" "Proc", "let a = Mut" "ex(1)", "Thr" "ead { a() }",
            "let a = DispatchQ" "ueue(label: b)",
        ],
        "Sources/Library/KeyhaulKit/A.swift": [
            "import Found" "ation", "public import Found" "ation", "@preconcurrency import Found" "ation"],
        "Sources/Library/KeychainRules/A.swift": ["import GR" "DB", "package import Found" "ation"],
        "Sources/Library/VirtualDevice/SecItem/A.swift": ["import GR" "DB", "import Found" "ation"],
        "Sources/Library/Reports/A.swift": ["let a = \"use -" "-existing\"", "let a = \"key" "haul verify\""],
        "Tests/AppleComparisonTests/A.swift": ["import Keyhaul" "Kit"],
        "docs/Format.md": ["as in spe" "c/02", "see sha" "red/DESIGN.md", "cd /wor" "k/main", "open /t" "mp/a"],
    }
    CLEAN = {
        "Sources/Library/KeyhaulKit/A.swift": ["import FoundationEssentials", "let a = try b()", "let a = b as? C"],
        "Sources/Library/KeychainCrypto/A.swift": ["internal import COpenSSL", "import CUTF8Proc"],
        "Sources/Library/Reports/A.swift": ["let a = \"color:var(--ink)\""],
        "Sources/CommandLine/keyhaul/B.swift": ["let a = \"keyhaul verify\""],
        "Sources/Library/Backups/A.swift": ["import CArchive"],
        "Sources/Library/Backups/Writing/A.swift": ["import GRDB", "import CSQLite"],
        "Sources/Library/Basics/SQLite/A.swift": ["import CSQLite"],
        "Sources/Library/Basics/Files/SystemCalls.swift": ["  import Glibc", "flock(a, b)"],
        "Sources/CommandLine/keyhaul/Session/Streams/BufferedOutput.swift": [
            "import Glibc", "files.open(a)", "a.access(b)", "read(a, b, c)"],
        "docs/Format.md": ["https://example.org/home/x", "/var/Keychains", "======"],
    }

    def test_each_violation_is_found_by_one_rule(self):
        broken_rules = set()
        for name, lines in self.BROKEN.items():
            for line in lines:
                found = [why for _, why in check_sources.findings(name, line)]
                self.assertEqual(len(found), 1, line)
                broken_rules.update(found)
        self.assertEqual(broken_rules, {rule.reason for rule in check_sources.RULES})

    def test_valid_lines_are_accepted(self):
        for name, lines in self.CLEAN.items():
            self.assertEqual(list(check_sources.findings(name, "\n".join(lines))), [])


class DiscouragedPhrases(unittest.TestCase):
    """The phrases that check_sources.py rejects in documentation."""

    # Split, so that this file does not contain the phrases.
    REJECTED = [
        "a file that is no" "ne", "These are no keys.", "It was no\nkey.", "`ni" "l` where it is empty",
        "`ni" "l` for none", "made an" "ew", "Who" "ever reads it", "bes" "ides the seal", "mean" "while",
        "all bu" "t for one", "as far\n# as it goes", "devices, o" "f which two", "he" "ld against it",
        "com" "es to ten", "ca" "me to an end", "a key at ha" "nd",
    ]
    ACCEPTED = [
        "There is no key.", "if there\n/// is no key", "It is no longer there.", "It is no larger than 5.",
        "if found is None:", "nil if it is empty", "welcome tomorrow", "at handover", "none of these is read",
    ]
    TEXTS = [
        "README.md", "docs/A.md", "docs/Examples/A.swift", "docs/schemas/a.json", "packaging/make_a", ".ci/a", "Makefile",
        "Tests/Makefile", "Sources/A/A.docc/A.md"]

    def test_phrases_are_found_in_comments_and_docstrings_of_scripts(self):
        phrase = "mean" "while"
        script = f"def a():\n    \"\"\"Wait {phrase}.\"\"\"\n    b = \"{phrase}\"  # {phrase}\n"
        found = check_sources.findings("Tests/Support/a.py", script)
        self.assertEqual([number for number, _ in found], [2, 3])

    def test_each_phrase_is_found_once_in_each_kind_of_document(self):
        reasons = set()
        for name in self.TEXTS:
            for text in self.REJECTED:
                with self.subTest(name=name, text=text):
                    found = list(check_sources.findings(name, "A line.\n" + text + "\n"))
                    self.assertEqual([line for line, _ in found], [2])
                    reasons.add(found[0][1].split("write: ")[1])
        self.assertEqual(reasons, set(check_sources.DISCOURAGED_PHRASES.values()))

    def test_other_phrases_and_other_files_are_accepted(self):
        for text in self.ACCEPTED:
            with self.subTest(text):
                self.assertEqual(list(check_sources.findings("docs/A.md", text)), [])
        for text in self.REJECTED:
            self.assertEqual(list(check_sources.findings("Tests/Support/a.py", text)), [])

    COMMENTED = "Sources/Library/KeychainRules/A.swift"

    def test_phrases_are_found_in_comments_and_not_in_code(self):
        for text in self.REJECTED:
            with self.subTest(text):
                comment = "  /// " + text.replace("\n# ", "\n").replace("\n", "\n  /// ")
                found = list(check_sources.findings(self.COMMENTED, "let a = 1\n" + comment + "\nlet b = 2"))
                self.assertEqual([line for line, _ in found], [2])
                self.assertEqual(list(check_sources.findings(self.COMMENTED, f'let a = "{text}"')), [])
                self.assertEqual(list(check_sources.findings("Sources/Other/A.swift", comment)), [])

    def test_starts_of_doc_comments(self):
        refused = [
            "/// Wh" "at it holds.", "/// Th" "e same.", "/// O" "f a file.", "/// - Parameter path: O" "f the file.",
            "///   - path: Wh" "at it reads.", "/// - Returns: Wh" "at is left.",
        ]
        for line in refused:
            with self.subTest(line):
                self.assertEqual(len(list(check_sources.findings(self.COMMENTED, line))), 1)
        accepted = [
            "/// Wh" "ether it is.", "/// Returns what is left.", "/// Often.", "// Of code.", "/// Whole files.",
            "///   - path: The path.",
        ]
        for line in accepted:
            with self.subTest(line):
                self.assertEqual(list(check_sources.findings(self.COMMENTED, line)), [])

    def test_names_of_tests_and_suites(self):
        name = "Tests/BasicsTests/A.swift"
        for line in '@Te' 'st("is read")', '@Te' 'st(\n    "is read")', '@Sui' 'te("What is read")', '@Sui' 'te("a file")':
            with self.subTest(line):
                self.assertEqual([number for number, _ in check_sources.findings(name, "\n" + line)], [2])
        for line in '@Te' 'st("A file is read")', '@Te' 'st("item_blobs: it is read")', '@Te' 'st', '@Sui' 'te("Files")':
            with self.subTest(line):
                self.assertEqual(list(check_sources.findings(name, line)), [])

    def test_a_quotation_is_accepted_only_in_its_file_and_must_still_exist(self):
        for name, words, reason in check_sources.QUOTATIONS:
            self.assertTrue(reason)
            self.assertEqual(list(check_sources.findings(name, words)), [])
            self.assertNotEqual(list(check_sources.findings("docs/A.md", words)), [])
            self.assertEqual(len(list(check_sources.findings(name, "Other text."))), 1)


class DocumentationChecks(unittest.TestCase):
    """The declarations that check_documentation.py counts as public, and as documented."""

    COUNTED = {
        "/// A box.\npublic struct Box {\n  public var a = 1\n}": {"Box": True, "a": False},
        "/// A box.\npublic struct Box {\n  /// - Throws: Nothing.\n  public init() {}\n}": {
            "Box": True,
            "init": False,
        },
        "/// A kind.\npublic enum Kind {\n  /// One.\n  case one\n  case two, three(Int, Int)\n}": {
            "Kind": True,
            "one": True,
            "two": False,
            "three": False,
        },
        "/// A kind.\npublic enum Kind { case one, two }": {"Kind": True, "one": False, "two": False},
        "/// A door.\npublic protocol Door {\n  func open()\n}": {"Door": True, "open": False},
        "extension Box {\n  /// The size.\n  @discardableResult\n  public func size() -> Int {\n    let public = 1\n  }\n}": {
            "size": True
        },
        "/// A box.\n@available(*, deprecated)\n@MainActor public final class Box {}": {"Box": True},
        "public func outer() {\n  struct Inner {\n    public var a = 1\n  }\n}": {"outer": False},
        'public let text = "}\\(name("}")) public var not"\npublic let more = 1': {"text": False, "more": False},
    }
    NOT_COUNTED = [
        "struct Box {\n  public var a = 1\n}",
        "package enum Kind {\n  case one\n}",
        '/* public var a = 1 */\n// public var b = 1\nlet c = """\n  public var d\n  """',
        'extension Box {\n  public static func == (a: Box, b: Box) -> Bool { true }\n  public var description: String { "" }\n'
        "  public func hash(into hasher: inout Hasher) {}\n  public init(rawValue: Int) {}\n  var own = 1\n}",
    ]

    def test_public_declarations_are_counted_with_their_comments(self):
        for source, expected in self.COUNTED.items():
            with self.subTest(source):
                found = {entry.name: entry.is_documented for entry in check_documentation.declarations(source)}
                self.assertEqual(found, expected)

    def test_internal_and_synthesized_declarations_are_not_counted(self):
        for source in self.NOT_COUNTED:
            with self.subTest(source):
                self.assertEqual(list(check_documentation.declarations(source)), [])

    def test_a_declaration_has_its_line_number(self):
        found = list(check_documentation.declarations("\n/// A box.\npublic struct Box {\n\n  public var a = 1\n}"))
        self.assertEqual([entry.line for entry in found], [3, 5])

    PARAMETERS = {
        "/// Opens.\npublic func open(_ door: Door, with key: [UInt8: Int], at: (Int, Int) = (1, 2)) {}": [],
        "/// Opens.\n/// - Parameter key: Of it.\npublic func open(_ door: Door, with key: [UInt8: Int]) {}": [
            "does not document its parameter door"
        ],
        "/// Opens.\n///\n/// - Parameters:\n///   - door: It.\n///   - with: Its.\n/// - Returns: One.\npublic init(door: Door, with key: Key) {}": [
            "does not document its parameter key", "documents with, which is not one of its parameters"],
        "/// Opens.\n/// - Parameters:\n///   - body: It, which is:\n///     - note: Nested.\n///   - `door`: Its.\npublic func open<T>(\n  body: (A, B) -> C,\n  door: D<A, B>\n) {}": [],
    }

    def test_a_comment_that_documents_parameters_documents_all_of_them(self):
        for source, expected in self.PARAMETERS.items():
            with self.subTest(source):
                found = list(check_documentation.declarations(source))
                self.assertEqual([fault for entry in found for fault in entry.faults], expected)


class SitePages(unittest.TestCase):
    """site_pages.py, which converts pages of docs/ to pages of a DocC catalog."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp()).resolve()
        self.addCleanup(shutil.rmtree, self.root)
        files = {"docs/A.md": "# A\n\n## What `x` means, in short\n", "docs/images/a.png": "", "docs/b.json": ""}
        for name, text in files.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text, encoding="utf-8")
        self.page = self.root / "docs" / "B.md"
        self.page.write_text("# B\n\n## Here\n", encoding="utf-8")

    def converted(self, text):
        return site_pages.convert_page(text, self.page, {self.root / "docs" / "A.md"}, self.root)

    def test_links_are_converted_to_links_of_the_catalog(self):
        for text, expected in {
            "[a](A.md)": "[a](<doc:A>)",
            "[a](A.md#what-x-means-in-short)": "[a](<doc:A#What-x-means-in-short>)",
            "[h](#here)": "[h](<doc:B#Here>)",
            "[b.json](b.json)": "`docs/b.json`",
            "[the schema](b.json)": "the schema (`docs/b.json`)",
            "[out](https://example.org/A.md)": "[out](https://example.org/A.md)",
            "```\n[a](A.md)\n```": "```\n[a](A.md)\n```",
        }.items():
            self.assertEqual(self.converted(text)[0], expected)

    def test_images_are_copied_with_their_page(self):
        text, images = self.converted("![A](images/a.png)")
        self.assertEqual(text, "![A](a.png)")
        self.assertEqual(images, [self.root / "docs" / "images" / "a.png"])

    def test_a_broken_link_raises_an_error(self):
        for text in ["[a](C.md)", "[a](A.md#no-heading)", "![a](images/b.png)"]:
            with self.assertRaises(site_pages.BrokenLink):
                self.converted(text)

    def test_every_page_of_the_site_exists_and_can_be_converted(self):
        root = HERE.parent.parent
        for catalog, names in site_pages.PAGES.items():
            self.assertTrue((root / catalog).is_dir(), catalog)
            pages = {(root / name).resolve() for name in names}
            for name in names:
                text = (root / name).read_text(encoding="utf-8")
                self.assertTrue(site_pages.convert_page(text, root / name, pages, root.resolve())[0])


class PowerFailureModel(unittest.TestCase):
    """The disk model of `check_calls.py power`, which reveals a replacement of a file without the necessary syncs."""

    OLD, NEW = b"old" * 600, b"new" * 700
    VARIANTS = [(names, contents) for names in ("none", "some", "all") for contents in ("none", "all", "torn")]

    def disks(self, omitted=()):
        """Return the possible contents of the target after each call of a replacement, and the index of the last call.

        The replacement leaves out the omitted calls.
        """
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name).resolve()
            (folder / "target").write_bytes(self.OLD)
            target, part = str(folder / "target"), str(folder / ".target.part")
            calls = [
                ("create", disk_model.Change("create", part, "", 0, 0, b"")),
                ("write", disk_model.Change("write", part, "", 0, len(self.NEW), self.NEW)),
                ("sync of the file", disk_model.Change("sync", part, "", 0, 0, b"")),
                ("rename", disk_model.Change("rename", part, target, 0, 0, b"")),
                ("sync of the folder", disk_model.Change("sync", str(folder), "", 0, 0, b""))]
            changes = [change for kind, change in calls if kind not in omitted]
            found = [(number, image.get("target")) for number, _, _, image in disk_model.images(
                folder, changes, "power", self.VARIANTS)]
        return found, len(changes) - 1

    def test_a_write_inside_a_file_keeps_the_bytes_after_it(self):
        file = disk_model.File(b"a" * 600)
        file.write(0, b"b" * 12)
        file.sync()
        self.assertEqual(file.safe, b"b" * 12 + b"a" * 588)

    def test_a_replacement_with_syncs_leaves_the_old_or_new_file_and_ends_with_the_new_one(self):
        found, last = self.disks()
        self.assertEqual({content for _, content in found}, {self.OLD, self.NEW})
        self.assertEqual({content for number, content in found if number == last}, {self.NEW})

    def test_an_omitted_sync_of_the_file_can_leave_a_torn_file(self):
        wrong = [content for _, content in self.disks(["sync of the file"])[0] if content not in (self.OLD, self.NEW)]
        # The file may be empty, or only some of its sectors were written.
        self.assertIn(b"", wrong)
        self.assertTrue(any(content for content in wrong))

    def test_an_omitted_sync_of_the_folder_can_leave_the_old_file(self):
        found, last = self.disks(["sync of the folder"])
        self.assertIn(self.OLD, {content for number, content in found if number == last})


class ProcessMeasurements(unittest.TestCase):
    """The resources that processes.py measures."""

    def test_the_memory_of_the_measuring_process_is_not_counted(self):
        with Launcher() as launcher:
            block = bytearray(b"x") * (100 << 20)
            small = launcher.run([sys.executable, "-I", "-S", "-c", "pass"])
            large = launcher.run([sys.executable, "-I", "-S", "-c", "b'x' * (60 << 20)"])
        self.assertEqual(len(block), 100 << 20)
        self.assertLess(small.memory, 50 << 20)
        self.assertTrue(60 << 20 <= large.memory < 100 << 20, large.memory)

    def test_exit_codes_signals_and_timeouts_are_reported(self):
        with Launcher() as launcher:
            self.assertEqual(launcher.run(["sh", "-c", "exit 3"]).code, 3)
            self.assertEqual(launcher.run(["sh", "-c", "kill -9 $$"]).code, -9)
            slow = launcher.run(["sleep", "60"], timeout_seconds=1)
            self.assertIsNone(slow.code)
            self.assertLess(slow.seconds, 30)
            busy = launcher.run(
                [
                    sys.executable, "-I", "-S", "-c",
                    "while sum(range(1000)) and __import__('time').process_time() < 0.3: pass"]
            )
            self.assertTrue(0.3 <= busy.cpu_seconds <= busy.seconds + 0.1, busy)


class EmbeddedFixtures(unittest.TestCase):
    def test_the_program_embeds_every_device_description(self):
        source = (FIXTURES.parent.parent / "Sources/C/CKeyhaul/fixtures.c").read_text(encoding="utf-8")
        for path in FIXTURES.glob("*.json"):
            self.assertIn(f'{{"{path.stem}", ', source)
            self.assertIn(f'#embed "../../../Fixtures/devices/{path.name}"', source)


def main():
    parser = argparse.ArgumentParser(description="Test the Python reader and writer, and the other tools.")
    parser.add_argument("--vectors", type=pathlib.Path, default=HERE.parent / "TestSupport" / "test-vectors.json")
    parser.add_argument("--verbose", "-v", action="store_true")
    arguments = parser.parse_args()
    VECTORS.update(json.loads(arguments.vectors.read_text(encoding="utf-8")))
    load = unittest.defaultTestLoader.loadTestsFromModule
    suite = unittest.TestSuite([load(sys.modules[__name__]), load(test_backups), load(test_figures)])
    result = unittest.TextTestRunner(verbosity=2 if arguments.verbose else 1).run(suite)
    failed = len({case.id().split(" ")[0] for case, _ in result.failures + result.errors})
    print(f"{result.testsRun - failed} passed, {failed} failed")
    return 0 if result.testsRun > 0 and failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
