"""Test the valid and the faulty backups, and check that check_backups.py can fail.

test_support.py runs these tests.
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
from backup_cases import CASES, described_items
from backup_cases import main as write_cases
from faults import BASES, ITEM_COUNT
from keychain_backup import FormatError, WrongPassword, mbdb, packing, typed_json
from keychain_backup.builder import BackupBuilder
from keychain_backup_reader import Backup

PROGRAM = """#!/bin/sh
exit %d
"""


def read_contents(path):
    """Return the contents of a regular file, or its size if it is too large to read."""
    if path.is_symlink() or not path.is_file():
        return None
    size = path.stat().st_size
    return path.read_bytes() if size < 1 << 30 else size


def read_folder(path):
    """Return the contents of all files in a folder, by path."""
    if not path.is_dir():
        return {"": read_contents(path)}
    return {str(member.relative_to(path)): read_contents(member) for member in path.rglob("*")}


class TemporaryFolderTests(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)


class ValidBackupTests(TemporaryFolderTests):
    """Backups of every layout, read by the Python reader."""

    def assert_items(self, case, expectations, backup):
        for item, expectation in zip(backup.keychain_items(), expectations["items"]):
            context = f"{case.name}: item {item.index}"
            self.assertTrue(item.is_readable, f"{context} {item.reason} {item.detail}")
            self.assertEqual((item.table, item.protection), (expectation["table"], expectation["protection"]), context)
            shown = {code: typed_json.to_plain_json(value) for code, value in item.attributes.items()}
            self.assertEqual(shown, expectation["attributes"], context)
            secret = None if item.secret is None else typed_json.encode_bytes(item.secret)
            self.assertEqual(secret, expectation.get("secret"), context)

    def test_each_backup_meets_its_expectations(self):
        for case in CASES:
            # Python cannot decompress Zstandard. Another test checks the frame.
            if case.suffix == "tar.zst":
                continue
            path, expectations = case.write(self.folder / case.name)
            password, key = case.options.password or b"", bytes.fromhex(expectations["device_key"])
            backup = Backup(path, password, key)
            self.assertEqual(backup.layout, expectations["layout"], case.name)
            self.assertEqual(backup.is_encrypted, expectations["encrypted"], case.name)
            self.assertEqual(list(backup.keybag.iterations), expectations["keybag"]["rounds"], case.name)
            if expectations["keychain"]:
                self.assertEqual(len(backup.keychain_items()), len(expectations["items"]), case.name)
                self.assert_items(case, expectations, backup)
                without_device_key = Backup(path, password).keychain_items()
                # `with_password` is None if the password is enough to decrypt the item.
                self.assertEqual(
                    [item.is_readable for item in without_device_key],
                    [item["with_password"] is None for item in expectations["items"]])
            for file in expectations["files"]:
                content = backup.read_file(file["domain"], file["path"])
                self.assertEqual(content, base64.b64decode(file["base64"]), f"{case.name}: {file['path']}")

    def test_names_are_unique_and_contents_are_reproducible(self):
        names = [case.name for case in CASES]
        self.assertEqual(len(names), len(set(names)))
        for case in CASES[:4]:
            contents = [
                {name: part for name, part in case.build().parts.items() if name != "Manifest.db"} for _ in range(2)]
            self.assertEqual(*contents)

    def test_the_command_writes_a_backup_and_its_expectations(self):
        with mock.patch("sys.argv", ["backup_cases.py", str(self.folder), "--only", "mbdb-encrypted"]):
            with contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(write_cases(), 0)
        expectations = json.loads((self.folder / "mbdb-encrypted.json").read_text(encoding="utf-8"))
        self.assertEqual((expectations["format"], expectations["layout"]), ("backup-case/1", "mbdb"))
        self.assertTrue((self.folder / "mbdb-encrypted" / "backup" / "Manifest.mbdb").is_file())

    def test_the_items_contain_the_secrets_that_check_backups_searches_for(self):
        secrets = [
            typed_json.from_json(described["secret"]) for described in described_items() if "secret" in described
        ]
        for secret in check_backups.SECRETS:
            self.assertTrue(any(secret in value for value in secrets), secret)


class MBDBManifestTests(unittest.TestCase):
    def test_records_are_read_as_they_were_written_and_truncated_files_are_rejected(self):
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

    def test_a_record_has_the_published_layout(self):
        record = mbdb.Record(
            b"D", b"p", mode=0x81A4, inode=1, user=2, group=3, modified=4, changed=5, created=6, size=7,
            protection_class=8)
        self.assertEqual(record.encoded().hex(), (
            "000144" "000170" "ffff" "ffff" "ffff" "81a4" "0000000000000001" "00000002" "00000003" "00000004" "00000005"
            "00000006" "0000000000000007" "08" "00"))


class ArchiveTests(unittest.TestCase):
    def test_a_zstandard_frame_has_its_size_and_raw_blocks(self):
        data = bytes(index % 256 for index in range(250_000))
        frame = packing.zstandard_frame(data)
        self.assertEqual(frame[:5].hex(), "28b52ffde0")
        self.assertEqual(struct.unpack_from("<Q", frame, 5)[0], len(data))
        content, position, is_last = b"", 13, False
        while not is_last:
            header = int.from_bytes(frame[position:position + 3], "little")
            is_last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
            self.assertEqual(kind, 0)
            self.assertLessEqual(size, 128 * 1024)
            content, position = content + frame[position + 3:position + 3 + size], position + 3 + size
        self.assertEqual((content, position), (data, len(frame)))


class FaultyBackupTests(TemporaryFolderTests):
    def test_there_are_at_least_250_faults_and_the_published_list_has_them_all(self):
        names = [fault.name for fault in backup_faults.FAULTS]
        self.assertGreaterEqual(len(names), 250)
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(backup_faults.PUBLISHED_PATH.read_text(encoding="utf-8"), backup_faults.published_json())
        for fault in backup_faults.FAULTS:
            self.assertTrue(fault.exit_codes, fault.name)
            self.assertLessEqual(set(fault.exit_codes.values()), {0, 3, 10, 12, 13, 14}, fault.name)

    def test_each_faulty_backup_differs_from_the_valid_one(self):
        valid_contents = {}
        for base, options in BASES.items():
            BackupBuilder(options, described_items()[:ITEM_COUNT], seed="fault").build().write(self.folder / base)
            valid_contents[base] = read_folder(self.folder / base)
        for fault in backup_faults.FAULTS:
            found = read_folder(fault.write(self.folder / fault.name))
            # A backup with an "-unbound" base may equal that base, because the missing binding is the fault. It is
            # compared with the valid base.
            self.assertNotEqual(found, valid_contents[fault.base.removesuffix("-unbound")], fault.name)

    def test_all_items_of_the_valid_backups_are_readable(self):
        for base, options in BASES.items():
            builder = BackupBuilder(options, described_items()[:ITEM_COUNT], seed="fault").build()
            builder.write(self.folder / base)
            backup = Backup(self.folder / base, options.password or b"", builder.device_key)
            self.assertEqual([item.is_readable for item in backup.keychain_items()], [True] * ITEM_COUNT)
            self.assertEqual([item.blob.key_class for item in backup.keychain_items()], [7, 7, 6, 10, 9, 6])

    def test_the_python_reader_rejects_faulty_keybags(self):
        """The exit code 12 means a wrong password, and 13 a damaged keybag. The reader must raise a matching error."""
        for fault in backup_faults.FAULTS:
            if not fault.name.startswith("keybag-") or fault.exit_codes.get("plan") not in (12, 13):
                continue
            # The Python reader uses the first of two values of a field.
            if fault.name.endswith("-twice"):
                continue
            path = fault.write(self.folder / fault.name)
            with self.assertRaises((WrongPassword, FormatError), msg=fault.name) as caught:
                Backup(path, fault.options.password or b"").keychain_items()
            expected = WrongPassword if fault.exit_codes["plan"] == 12 else (WrongPassword, FormatError)
            self.assertIsInstance(caught.exception, expected, fault.name)


class BackupCheckTests(TemporaryFolderTests):
    """check_backups.py, which has to fail for a program with wrong results."""

    def run_with(self, code, *arguments):
        program = self.folder / "program"
        program.write_text(PROGRAM % code)
        program.chmod(0o700)
        output = io.StringIO()
        with mock.patch("sys.argv", ["check_backups.py", "--keyhaul", str(program), "--jobs", "2", *arguments]):
            with contextlib.redirect_stdout(output):
                return check_backups.main(), output.getvalue()

    def test_a_program_that_always_succeeds_fails_the_check(self):
        status, output = self.run_with(0, "--only", "db-encrypted")
        self.assertEqual(status, 1)
        self.assertIn("prints no JSON document", output)
        status, output = self.run_with(0, "--only", "keybag-salt-flip")
        self.assertEqual(status, 1)
        self.assertIn("expected 12, got 0", output)

    def test_a_missing_message_fails_the_check(self):
        # This program writes no files, so `export` and `convert` are not checked.
        arguments = ("--only", "keybag-vers-flip", "--verbs", "inspect,verify,plan")
        status, output = self.run_with(0, *arguments)
        self.assertEqual(status, 0, output)
        fault = next(fault for fault in backup_faults.FAULTS if fault.name == "keybag-vers-flip")
        with mock.patch.object(fault, "messages", ("a message that is never printed",)):
            status, output = self.run_with(0, *arguments)
        self.assertEqual(status, 1)
        self.assertIn("does not print", output)

    def test_a_run_without_any_check_fails(self):
        status, output = self.run_with(0, "--only", "keybag-vers-flip", "--verbs", "export")
        self.assertEqual(status, 1)
        self.assertIn("0 checks passed", output)
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
            self.run_with(0, "--only", "no such name")

    def test_a_printed_secret_and_a_leftover_temporary_file_fail_the_check(self):
        program = self.folder / "program"
        program.write_text('#!/bin/sh\necho hunter2\necho x > "$TMPDIR/left"\n')
        program.chmod(0o700)
        checker = check_backups.BackupChecker(program, self.folder / "bench", ("inspect",))
        checker.run("inspect")
        self.assertEqual(checker.failures, ["inspect: prints a secret", "inspect: leaves the temporary files ['left']"])
        # This run may print a secret, but it also leaves a file.
        checker.run("inspect", reveals_secrets=True)
        self.assertEqual(len(checker.failures), 3)


class FalseClaimsOfIntactness(unittest.TestCase):
    """Reports that call a backup intact although one of its bytes was changed."""

    def failures(self, output):
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            program = work / "program"
            (work / "output").write_text(output)
            program.write_text('#!/bin/sh\ncat "$(dirname "$0")/output"\n')
            program.chmod(0o755)
            checker = check_backups.BackupChecker(program, work / "bench", ("inspect", "plan"))
            fault = check_backups.changed_backup("encrypted", None, "no digest")
            check_backups.ReportTest(checker, fault, "patched", is_detectable=False).check()
            return checker.failures

    def test_a_claim_that_the_backup_is_intact_is_found_in_text_html_and_json(self):
        for output in ("b is intact.", "b <b>is</b>\n  intact; 2 items", "Nothing in b is\ndamaged, as far as",
                       "The rest is intact.", '{"verdict": "whole"}', '{"whole":true}'):
            with self.subTest(output):
                found = [failure for failure in self.failures(output) if "claims that the backup is intact" in failure]
                # Four commands report in three formats.
                self.assertEqual(len(found), 12, found)

    def test_other_statements_are_accepted(self):
        for output in (
            "Check that the backup is intact.", "The command shows whether a copy is intact:", "b is damaged.",
            "No fault was found in b (0 files match their digests; 1 has no digest, so a change in it cannot be seen)"
        ):
            with self.subTest(output):
                self.assertEqual(self.failures(output), [])
