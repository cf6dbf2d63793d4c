#!/usr/bin/env python3
"""Examine 31 backups in one call, as an examiner does: 18 valid ones and 13 with one fault each.

    examine_backups.py --keyhaul .build/release/keyhaul             checks the code, result and reason of each row
    examine_backups.py --keyhaul PROGRAM --table [--keep FOLDER]    also prints the tables of inspect and verify

`backup_cases` and `backup_faults` make the backups without Keyhaul's code, and contain the expected exit codes. The
expected results and causes are listed here. The script also writes a case report, and checks that the report states
what was examined and that no file of the backups changed.
"""

import argparse
import csv
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from backup_cases import CASES
from backup_faults import FAULTS

VALID = [
    "db-encrypted", "db-plain", "mbdb-encrypted", "mbdb-plain", "mbdb-ios-4", "ios-10.0", "ios-10.1", "no-keychain",
    "keybag-5", "keybag-curve", "password-exclamation-mark", "items-mixed", "list-no-digests", "plists-xml", "no-info",
    "extra-files", "packed-tar.gz", "packed-zip",
]
# For each fault: its RESULT in `verify`, and a part of the reason in its row.
BROKEN = {
    "manifest-cut": ("damaged", "Manifest.plist"),
    "database-trigger": ("refused", "trigger"),
    "status-uploading": ("damaged", "Status.plist"),
    "keybag-wpky-7-flip": ("damaged", "class 7"),
    "keybag-open-to-everybody": ("refused", "not wrapped"),
    "list-path-escape": ("refused", "leaves its domain"),
    "list-digest-flip": ("damaged", "digest"),
    "database-cut": ("damaged", "Manifest.db"),
    "payload-notes-absent": ("incomplete", "not stored"),
    "payload-keychain-absent": ("damaged", "keychain"),
    "item-tag-flip": ("damaged", "item 2: tag-mismatch"),
    "part-state-absent": ("unconfirmed", "finished"),
    "packed-tar-gz-cut-by-half": ("damaged", "truncated gzip"),
}
SECRETS = (b"hunter2", b"correct horse", b"plum-orchard-42", b"push-9f2c71d0a4", b"tr0ub4dor&3")


class Examination:
    """The backups in a folder, the program, and the failures so far."""

    def __init__(self, program, folder):
        self.program, self.folder = pathlib.Path(program).resolve(), folder
        self.shelf, self.passwords = folder / "shelf", folder / "passwords"
        self.check_count, self.failures = 0, []
        self.encrypted = {}

    def check(self, condition, message):
        self.check_count += 1
        if not condition:
            self.failures.append(message)

    def write(self):
        """Write the backups, a file for each password, and the password list."""
        password_files = {}
        lines = []
        cases = {case.name: case for case in CASES}
        faults = {fault.name: fault for fault in FAULTS}
        for name in VALID:
            cases[name].write(self.shelf / f"good-{name}")
            self.encrypted[f"good-{name}"] = cases[name].options.is_encrypted
            self._add_password(f"good-{name}", cases[name].typed_password, password_files, lines)
        for name in BROKEN:
            faults[name].write(self.shelf / f"broken-{name}")
            self._add_password(f"broken-{name}", faults[name].options.password, password_files, lines)
        self.passwords.write_text("".join(lines), encoding="utf-8")
        self.passwords.chmod(0o600)

    def _add_password(self, name, password, files, lines):
        """Add a line for a backup with a password. Write each new password to its own file."""
        if password is None:
            return
        if password not in files:
            path = self.folder / f"password-{len(files)}"
            path.write_bytes(password + b"\n")
            path.chmod(0o600)
            files[password] = path
        lines.append(f"*/{name}/* file:{files[password]}\n")

    def run(self, *arguments):
        """Run the program in the folder. Check that it prints no secret."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KEYHAUL_")}
        process = subprocess.run(
            [str(self.program), *arguments, "--home", str(self.folder / "home"), "--no-input"], cwd=self.folder,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=300, env=environment, check=False)
        printed = [secret for secret in SECRETS if secret in process.stdout + process.stderr]
        self.check(not printed, f"{arguments[0]}: prints a secret")
        return process

    def rows(self, command, *arguments):
        """Return the rows of the CSV table, by the name of the backup's folder."""
        process = self.run(command, "shelf", "--passwords", "passwords", "--format", "csv", *arguments)
        self.check(process.returncode == 3, f"{command}: exit code {process.returncode}, not 3")
        rows = list(csv.DictReader(io.StringIO(process.stdout.decode("utf-8"), newline="")))
        rows_by_folder = {row["path"].split("/")[1]: row for row in rows}
        self.check(len(rows) == len(rows_by_folder) == len(VALID) + len(BROKEN), f"{command}: {len(rows)} rows")
        return rows_by_folder

    def check_verification(self):
        """Check the rows of `verify`."""
        rows = self.rows("verify")
        topic_ids = {topic["id"] for topic in json.loads(self.run("explain", "--json").stdout)["topics"]}
        result_codes = {}
        for name in VALID:
            row = rows.get(f"good-{name}", {})
            self.check(row.get("code") == "0", f"good-{name}: {row.get('code')} {row.get('result')} {row.get('reason')}")
            self.check(row.get("reason") == "", f"good-{name}: a reason without a fault: {row.get('reason')}")
        exit_codes = {fault.name: fault.exit_codes["verify"] for fault in FAULTS if fault.name in BROKEN}
        for name, (result, cause) in BROKEN.items():
            row = rows.get(f"broken-{name}", {})
            found = (row.get("code"), row.get("result"))
            self.check(
                found == (str(exit_codes[name]), result), f"broken-{name}: {found}, not {exit_codes[name]} {result}")
            reason = row.get("reason", "")
            self.check(cause.lower() in reason.lower(), f"broken-{name}: the reason does not name {cause!r}: {reason}")
        for row in rows.values():
            result_codes.setdefault(row["result"], set()).add(row["code"])
            warnings = [text for text in row["warnings"].split("; ") if text]
            self.check(len(warnings) == len(set(warnings)), f"{row['path']}: a warning is repeated: {warnings}")
        for result, codes in result_codes.items():
            self.check(len(codes) == 1, f"the result {result} has the codes {sorted(codes)}")
            self.check(result in topic_ids, f"explain has no page for {result}")

    def check_inspection(self):
        """Check the rows of `inspect`."""
        rows = self.rows("inspect")
        for name in VALID:
            row = rows.get(f"good-{name}", {})
            self.check(row.get("code") == "0", f"inspect good-{name}: {row.get('code')} {row.get('reason')}")
            # Whether each column must have a value.
            columns = {"bytes": True, "files": True, "build": name != "no-info", "ios": name != "no-info",
                       "product_type": name != "no-info", "keyhaul": True, "encrypted": True, "made": True,
                       "items": name != "no-keychain"}
            for column, is_required in columns.items():
                self.check(bool(row.get(column)) or not is_required, f"inspect good-{name}: no {column}")
            self.check(
                row.get("encrypted") == str(self.encrypted[f"good-{name}"]).lower(),
                f"inspect good-{name}: encrypted is {row.get('encrypted')}")
        for row in rows.values():
            self.check(row["code"] == "0" or row["reason"], f"inspect {row['path']}: no reason beside {row['code']}")

    def check_case_report(self):
        """Check the reports of an examination, and that they change no backup."""
        before = self._statuses()
        for name in ("report.json", "report.html"):
            process = self.run(
                "verify", "shelf", "--passwords", "passwords", "--case", "31 <backups>", "--examiner", "R. \"Doe\"",
                "-o", name)
            self.check(process.returncode == 3, f"{name}: exit code {process.returncode}: {process.stderr[-300:]}")
            self.check((self.folder / name).stat().st_mode & 0o777 == 0o600, f"{name}: its mode is not 0600")
        self.check(self._statuses() == before, "a case report changed the backups")
        report = json.loads((self.folder / "report.json").read_text(encoding="utf-8"))
        self.check(report["writing"]["unchanged"] is True, "the report does not state that no file changed")
        self.check(len(report["backups"]) == len(VALID) + len(BROKEN), "the report lacks a backup")
        for backup in report["backups"]:
            folder = self.folder / backup["path"]
            files = [path for path in [folder, *folder.rglob("*")] if path.is_file() and not path.is_symlink()]
            size = sum(path.stat().st_size for path in files)
            self.check(backup["bytes"] == size, f"{backup['path']}: {backup['bytes']} bytes, not {size}")
            self.check(backup["writing"]["unchanged"], f"{backup['path']}: reported as changed")
        page = (self.folder / "report.html").read_text(encoding="utf-8")
        self.check("31 <backups>" not in page and "31 &lt;backups&gt;" in page, "the page does not escape the case")

    def _statuses(self):
        """Return the size, times, mode and inode of every file."""
        return {
            str(path): (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_mode, status.st_ino)
            for path in sorted(self.shelf.rglob("*")) for status in [path.lstat()]
        }


def main():
    parser = argparse.ArgumentParser(description="Examine 18 valid and 13 broken backups in one call.")
    parser.add_argument("--keyhaul", type=pathlib.Path, required=True)
    parser.add_argument("--table", action="store_true", help="print the tables of inspect and verify")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER", help="write the backups to this folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="keyhaul-examination-") as temporary:
        folder = arguments.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        examination = Examination(arguments.keyhaul, folder.resolve())
        examination.write()
        if arguments.table:
            for command in ("inspect", "verify"):
                print(f"$ keyhaul {command} shelf --passwords passwords")
                print(examination.run(command, "shelf", "--passwords", "passwords").stdout.decode("utf-8"))
        examination.check_verification()
        examination.check_inspection()
        examination.check_case_report()
    for failure in examination.failures:
        print(f"FAIL {failure}")
    print(f"31 backups: {examination.check_count} checks, {len(examination.failures)} failed")
    return 1 if examination.failures or not examination.check_count else 0


if __name__ == "__main__":
    sys.exit(main())
