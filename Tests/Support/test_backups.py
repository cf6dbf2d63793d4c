"""Checks the good and the faulty backups themselves: they are what their answers say, and the runner can fail.

Run by test_support.py.
"""

import base64
import contextlib
import io
import json
import pathlib
import shutil
import struct
import tempfile
import unittest
from unittest import mock

import backup_faults
import check_backups
from backup_cases import CASES, described_items, main as write_cases
from faults import BASES, ITEMS
from keychain_backup import FormatError, WrongPassword, mbdb, packing, typed_json
from keychain_backup.forge import Forge
from keychain_backup_reader import Backup

PROGRAM = """#!/bin/sh
exit %d
"""


def content_of(path):
    """The bytes of a file; of one that is larger than any backup of the tests, how many it claims."""
    if path.is_symlink() or not path.is_file():
        return None
    size = path.stat().st_size
    return path.read_bytes() if size < 1 << 30 else size


def parts_of(path):
    if not path.is_dir():
        return {"": content_of(path)}
    return {str(member.relative_to(path)): content_of(member) for member in path.rglob("*")}


class WithFolder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)


class GoodBackups(WithFolder):
    """Every layout, read back by the Python reader: items with all attributes, and files."""

    def assert_items(self, case, answers, backup):
        for item, answer in zip(backup.keychain_items(), answers["items"]):
            place = f"{case.name}: item {item.index}"
            self.assertTrue(item.readable, f"{place} {item.reason} {item.detail}")
            self.assertEqual((item.table, item.protection), (answer["table"], answer["protection"]), place)
            shown = {code: typed_json.plain(value) for code, value in item.attributes.items()}
            self.assertEqual(shown, answer["attributes"], place)
            secret = None if item.secret is None else typed_json.data(item.secret)
            self.assertEqual(secret, answer.get("secret"), place)

    def test_each_is_what_its_answers_say(self):
        for case in CASES:
            # Python has no reader of Zstandard; the frame has a test of its own.
            if case.suffix == "tar.zst":
                continue
            path, answers = case.write(self.folder / case.name)
            password, key = case.recipe.password or b"", bytes.fromhex(answers["device_key"])
            backup = Backup(path, password, key)
            self.assertEqual(backup.layout, answers["layout"], case.name)
            self.assertEqual(backup.is_encrypted, answers["encrypted"], case.name)
            self.assertEqual(list(backup.keybag.rounds), answers["keybag"]["rounds"], case.name)
            if answers["keychain"]:
                self.assertEqual(len(backup.keychain_items()), len(answers["items"]), case.name)
                self.assert_items(case, answers, backup)
                alone = Backup(path, password).keychain_items()
                self.assertEqual(
                    [item.readable for item in alone], [item["with_password"] is None for item in answers["items"]])
            for file in answers["files"]:
                content = backup.read_file(file["domain"], file["path"])
                self.assertEqual(content, base64.b64decode(file["base64"]), f"{case.name}: {file['path']}")

    def test_names_are_told_apart_and_bytes_are_the_same_each_time(self):
        names = [case.name for case in CASES]
        self.assertEqual(len(names), len(set(names)))
        for case in CASES[:4]:
            contents = [
                {name: part for name, part in case.forge().parts.items() if name != "Manifest.db"} for _ in range(2)]
            self.assertEqual(*contents)

    def test_the_command_writes_a_backup_and_its_answers(self):
        with mock.patch("sys.argv", ["backup_cases.py", str(self.folder), "--only", "mbdb-encrypted"]):
            with contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(write_cases(), 0)
        answers = json.loads((self.folder / "mbdb-encrypted.json").read_text(encoding="utf-8"))
        self.assertEqual((answers["format"], answers["layout"]), ("backup-case/1", "mbdb"))
        self.assertTrue((self.folder / "mbdb-encrypted" / "backup" / "Manifest.mbdb").is_file())

    def test_the_items_carry_the_secrets_that_are_looked_for(self):
        planted = [typed_json.parse(described["secret"]) for described in described_items() if "secret" in described]
        for secret in check_backups.SECRETS:
            self.assertTrue(any(secret in value for value in planted), secret)


class OldList(unittest.TestCase):
    def test_records_are_read_as_they_were_written(self):
        records = [
            mbdb.Record(b"HomeDomain", b"", mode=0x41C0),
            mbdb.Record(b"HomeDomain", b"a", digest=bytes(20), key=bytes(44), mode=0x81A4, size=-1, protection_class=3),
            mbdb.Record(None, None, b"/elsewhere", mode=0xA1FF, properties=[(b"name", b"value"), (b"", b"")]),
        ]
        content = mbdb.encode(records)
        self.assertEqual(mbdb.parse(content), records)
        starts = {len(mbdb.encode(records[:count])) for count in range(len(records) + 1)}
        for length in set(range(len(content))) - starts:
            self.assertRaises(FormatError, mbdb.parse, content[:length])

    def test_a_record_is_laid_out_as_published(self):
        record = mbdb.Record(b"D", b"p", mode=0x81A4, inode=1, user=2, group=3, modified=4, changed=5, born=6, size=7,
                             protection_class=8)
        self.assertEqual(record.encoded().hex(), (
            "000144" "000170" "ffff" "ffff" "ffff" "81a4" "0000000000000001" "00000002" "00000003" "00000004" "00000005"
            "00000006" "0000000000000007" "08" "00"))


class SingleFiles(unittest.TestCase):
    def test_a_zstandard_frame_has_the_size_and_raw_blocks_of_its_format(self):
        data = bytes(index % 256 for index in range(250_000))
        frame = packing.zstandard(data)
        self.assertEqual(frame[:5].hex(), "28b52ffde0")
        self.assertEqual(struct.unpack_from("<Q", frame, 5)[0], len(data))
        found, position, is_last = b"", 13, False
        while not is_last:
            header = int.from_bytes(frame[position:position + 3], "little")
            is_last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
            self.assertEqual(kind, 0)
            self.assertLessEqual(size, 128 * 1024)
            found, position = found + frame[position + 3:position + 3 + size], position + 3 + size
        self.assertEqual((found, position), (data, len(frame)))


class FaultyBackups(WithFolder):
    def test_there_are_enough_and_the_published_list_is_theirs(self):
        names = [fault.name for fault in backup_faults.FAULTS]
        self.assertGreaterEqual(len(names), 250)
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(backup_faults.PUBLISHED.read_text(encoding="utf-8"), backup_faults.published())
        for fault in backup_faults.FAULTS:
            self.assertTrue(fault.codes, fault.name)
            self.assertLessEqual(set(fault.codes.values()), {0, 3, 10, 12, 13, 14}, fault.name)

    def test_each_differs_from_its_good_backup(self):
        good = {}
        for base, recipe in BASES.items():
            Forge(recipe, described_items()[:ITEMS], seed="fault").build().write(self.folder / base)
            good[base] = parts_of(self.folder / base)
        for fault in backup_faults.FAULTS:
            found = parts_of(fault.write(self.folder / fault.name))
            # A base that no device writes is itself the fault of the good one.
            self.assertNotEqual(found, good[fault.base.removesuffix("-unbound")], fault.name)

    def test_the_good_backups_are_good(self):
        for base, recipe in BASES.items():
            forge = Forge(recipe, described_items()[:ITEMS], seed="fault").build()
            forge.write(self.folder / base)
            backup = Backup(self.folder / base, recipe.password or b"", forge.device_key)
            self.assertEqual([item.readable for item in backup.keychain_items()], [True] * ITEMS)
            self.assertEqual([item.blob.key_class for item in backup.keychain_items()], [7, 7, 6, 10, 9, 6])

    def test_the_python_reader_answers_faults_of_the_keybag_the_same_way(self):
        """Where the whole backup can't be opened the second reader has to agree with the expected code."""
        for fault in backup_faults.FAULTS:
            if not fault.name.startswith("keybag-") or fault.codes.get("plan") not in (12, 13):
                continue
            # Two values for one field: this reader takes the first and goes on.
            if fault.name.endswith("-twice"):
                continue
            path = fault.write(self.folder / fault.name)
            with self.assertRaises((WrongPassword, FormatError), msg=fault.name) as caught:
                Backup(path, fault.recipe.password or b"").keychain_items()
            expected = WrongPassword if fault.codes["plan"] == 12 else (WrongPassword, FormatError)
            self.assertIsInstance(caught.exception, expected, fault.name)


class TheRunner(WithFolder):
    """It is no use if it can't fail."""

    def run_with(self, code, *arguments):
        program = self.folder / "program"
        program.write_text(PROGRAM % code)
        program.chmod(0o700)
        output = io.StringIO()
        with mock.patch("sys.argv", ["check_backups.py", "--keyhaul", str(program), "--jobs", "2", *arguments]):
            with contextlib.redirect_stdout(output):
                return check_backups.main(), output.getvalue()

    def test_a_program_that_always_says_yes_fails(self):
        status, output = self.run_with(0, "--only", "db-encrypted")
        self.assertEqual(status, 1)
        self.assertIn("prints no JSON document", output)
        status, output = self.run_with(0, "--only", "keybag-salt-flip")
        self.assertEqual(status, 1)
        self.assertIn("expected 12, got 0", output)

    def test_a_fault_without_its_word_fails(self):
        # This program writes nothing, so no decrypted copy is asked of it.
        chosen = ("--only", "keybag-vers-flip", "--verbs", "inspect,verify,plan")
        status, output = self.run_with(0, *chosen)
        self.assertEqual(status, 0, output)
        fault = next(fault for fault in backup_faults.FAULTS if fault.name == "keybag-vers-flip")
        with mock.patch.object(fault, "says", ("a word that nobody says",)):
            status, output = self.run_with(0, *chosen)
        self.assertEqual(status, 1)
        self.assertIn("doesn't say", output)

    def test_a_run_that_tested_nothing_fails(self):
        status, output = self.run_with(0, "--only", "keybag-vers-flip", "--verbs", "export")
        self.assertEqual(status, 1)
        self.assertIn("0 answers as expected", output)
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
            self.run_with(0, "--only", "no such name")

    def test_a_secret_in_the_output_and_a_file_left_behind_fail(self):
        program = self.folder / "talker"
        program.write_text('#!/bin/sh\necho hunter2\necho x > "$TMPDIR/left"\n')
        program.chmod(0o700)
        bench = check_backups.Bench(program, self.folder / "bench", ("inspect",))
        bench.run("inspect")
        self.assertEqual(bench.misses, ["inspect: says a secret", "inspect: leaves ['left'] among the temporary files"])
        bench.run("inspect", reveals=True)
        self.assertEqual(len(bench.misses), 3)


class Untruths(unittest.TestCase):
    """The check fails if a report calls a backup intact although one of its bytes was changed."""

    def misses(self, said):
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            program = work / "program"
            (work / "said").write_text(said)
            program.write_text('#!/bin/sh\ncat "$(dirname "$0")/said"\n')
            program.chmod(0o755)
            bench = check_backups.Bench(program, work / "bench", ("inspect", "plan"))
            check_backups.told_of(bench, check_backups.changed("encrypted", None, "no digest"), "patched", False)
            return bench.misses

    def test_a_patched_sentence_is_found_in_every_form(self):
        for said in ("b is intact.", "b <b>is</b>\n  intact; 2 items", "Nothing in b is\ndamaged, as far as",
                     "The rest is intact.", '{"verdict": "whole"}', '{"whole":true}'):
            with self.subTest(said):
                found = [miss for miss in self.misses(said) if "says more than it saw" in miss]
                self.assertEqual(len(found), 12, found)

    def test_what_is_known_may_be_said(self):
        for said in ("Check that the backup is intact.", "The command shows whether a copy is intact:", "b is damaged.",
                     "No fault was found in b (1 file has none: a change in it cannot be seen)"):
            with self.subTest(said):
                self.assertEqual(self.misses(said), [])
