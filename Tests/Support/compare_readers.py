#!/usr/bin/env python3
"""Compare the files that Keyhaul exports from backup folders with the files that published readers extract.

    compare_readers.py --keyhaul .build/release/keyhaul [--only NAME]

The backups are the valid folders of `backup_cases`, and the folders with one damaged part (`part-…`) of
`backup_faults`. If a reader can open a backup, Keyhaul has to export the same bytes for each file that the reader
extracts. The table at the end has the number of backups that each reader opens. mvt is not run, because it uses
iphone_backup_decrypt.
"""

import argparse
import collections
import contextlib
import io
import pathlib
import shutil
import subprocess
import sys
import tempfile

from iOSbackup import iOSbackup

from backup_cases import CASES
from backup_faults import FAULTS
from interop import ALL_READERS, TRUNCATING_READER

SUCCESS_CODES = {0, 3}


def extract_with_iosbackup(folder, password, work):
    """Return every file that iOSbackup extracts. It raises errors for some files, such as empty ones."""
    backup = iOSbackup(udid=folder.name, cleartextpassword=password or None, backuproot=str(folder.parent))
    files = {}
    for row in backup.getBackupFilesList():
        if row["flags"] != 1:
            continue
        with contextlib.suppress(Exception):
            entry = backup.getFileManifestDBEntry(fileNameHash=row["backupFile"])
            info = backup.getFileDecryptedCopy(manifestEntry=entry, targetName="file", targetFolder=str(work))
            written = work / "file"
            files[f"{entry['domain']}/{entry['relativePath']}"] = (
                written.read_bytes(), int(info["lastModified"].timestamp()))
            written.unlink()
    return files


READERS = ALL_READERS | {"iOSbackup": extract_with_iosbackup}
# These readers truncate or extend an encrypted file to the size in the manifest. For a database that grew during the
# backup, that size is wrong.
TRUNCATING_READERS = {TRUNCATING_READER, "iOSbackup"}


def truncated(content, size):
    """Return the contents that a truncating reader extracts."""
    return content if size is None else content[:size] + bytes(max(0, size - len(content)))


def export_with_keyhaul(program, work, path, password):
    """Export the files with Keyhaul. Return them by domain and path, or None if the export fails, and the exit code."""
    target = work / "exported"
    command = [program, "export", path, "--files", target, "--home", work / "home", "--no-input", "--quiet"]
    if password is not None:
        secret = work / "password"
        secret.write_bytes(password + (b"" if password.endswith(b"\r") else b"\n"))
        secret.chmod(0o600)
        command += ["--password-file", secret]
    code = subprocess.run([str(argument) for argument in command], capture_output=True, check=False).returncode
    if code not in SUCCESS_CODES or not target.is_dir():
        return None, code
    files = {
        str(file.relative_to(target)): file.read_bytes() for file in target.rglob("*")
        if file.is_file() and not file.is_symlink() and file.parent != target}
    return files, code


def extract_with_reader(read, path, password, work):
    """Return the files that a reader extracts, or None if it fails."""
    output_folder = work / "reader"
    output_folder.mkdir()
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return {name: content for name, (content, _) in read(path, password, output_folder).items()} or None
    except Exception:  # Each reader raises its own exceptions, and others that it did not handle.
        return None
    finally:
        shutil.rmtree(output_folder, ignore_errors=True)


def backups():
    """Yield the backups as (name, kind, options, function that writes the backup)."""
    for case in CASES:
        if case.suffix is None:
            yield case.name, "valid", case.options, lambda folder, case=case: case.write(folder)[0]
    for fault in FAULTS:
        if fault.name.startswith("part-") and fault.suffix is None:
            yield fault.name, "damaged", fault.options, fault.write


def compare_backup(program, work, backup, counts):
    """Export the files of a backup with Keyhaul and with each reader. Return the differences, and count the results."""
    name, kind, options, write = backup
    path, differences, any_reader_opened = write(work / "written"), [], False
    keyhaul_files, code = export_with_keyhaul(program, work, path, options.password)
    counts[kind, "keyhaul"] += keyhaul_files is not None
    for reader, read in READERS.items():
        reader_files = extract_with_reader(read, path, (options.password or b"").decode("utf-8", "replace"), work)
        if reader_files is None:
            continue
        any_reader_opened = True
        counts[kind, reader] += 1
        if keyhaul_files is None:
            differences.append(f"{name}: {reader} opens it, but export --files ends with {code}")
            continue
        sizes = {f"{file.domain}/{file.path}": len(file.content) if file.size is None else file.size
                 for file in options.files if file.is_regular} if reader in TRUNCATING_READERS else {}
        different_files = [
            file
            for file, content in reader_files.items()
            if file not in keyhaul_files
            or content not in (keyhaul_files[file], truncated(keyhaul_files[file], sizes.get(file)))
        ]
        if different_files:
            differences.append(f"{name}: {reader} has different or additional files: {different_files[:3]}")
        else:
            counts[kind, reader, "equal"] += 1
    counts[kind, "none"] += not any_reader_opened
    return differences


def main():
    parser = argparse.ArgumentParser(description="Compare Keyhaul's exported files with those of published readers.")
    parser.add_argument("--keyhaul", type=pathlib.Path, required=True, help="the built program")
    parser.add_argument("--only", metavar="NAME", help="one backup")
    arguments = parser.parse_args()
    program = arguments.keyhaul.resolve()
    counts, differences, total = collections.Counter(), [], collections.Counter()
    for backup in backups():
        name, kind, _, _ = backup
        if arguments.only not in (None, name):
            continue
        with tempfile.TemporaryDirectory(prefix="keyhaul-readers-") as folder:
            # Some readers do not delete their temporary files.
            tempfile.tempdir = folder
            try:
                total[kind] += 1
                differences += compare_backup(program, pathlib.Path(folder), backup, counts)
            finally:
                tempfile.tempdir = None
    print(
        f"{'kind':8}{'backups':>8}{'keyhaul':>9}"
        + "".join(f"{reader:>24}" for reader in READERS)
        + f"{'no reader':>14}"
    )
    for kind in total:
        cells = (f"{counts[kind, reader]} open, {counts[kind, reader, 'equal']} equal" for reader in READERS)
        print(f"{kind:8}{total[kind]:>8}{counts[kind, 'keyhaul']:>9}" + "".join(f"{cell:>24}" for cell in cells)
              + f"{counts[kind, 'none']:>14}")
    print("\n".join(f"FAIL  {difference}" for difference in differences))
    print(f"{sum(total.values())} backups, {len(differences)} differences")
    return 0 if sum(total.values()) and not differences else 1


if __name__ == "__main__":
    sys.exit(main())
