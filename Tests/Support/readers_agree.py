#!/usr/bin/env python3
"""Holds the files that Keyhaul takes out of folders of every form against what published readers take out of them.

    readers_agree.py --keyhaul .build/release/keyhaul [--only NAME]

Every good backup of `backup_cases` that is a folder, and every odd form (`part-…`) of `backup_faults` that is one. What
one of the readers opens has to open here, with the same bytes for every file that it gives. A table says at the end how
many forms each reader opens; those that none of them opens are counted. mvt opens backups with iphone_backup_decrypt and
is not run beside it.
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

from backup_cases import CASES
from backup_faults import FAULTS
from iOSbackup import iOSbackup

from interop import ALL_READERS, CUTTING_READER

OPENS = {0, 3}


def all_with_iosbackup(folder, password, work):
    """Every file that the reader gives: it stops at single ones, an empty one among them."""
    backup = iOSbackup(udid=folder.name, cleartextpassword=password or None, backuproot=str(folder.parent))
    found = {}
    for row in backup.getBackupFilesList():
        if row["flags"] != 1:
            continue
        with contextlib.suppress(Exception):
            entry = backup.getFileManifestDBEntry(fileNameHash=row["backupFile"])
            info = backup.getFileDecryptedCopy(manifestEntry=entry, targetName="file", targetFolder=str(work))
            written = work / "file"
            found[f"{entry['domain']}/{entry['relativePath']}"] = (
                written.read_bytes(), int(info["lastModified"].timestamp()))
            written.unlink()
    return found


READERS = ALL_READERS | {"iOSbackup": all_with_iosbackup}
# Cut an encrypted file off at the size that the list says, or fill it up to it; a device says the wrong one of a database
# that grew.
CUTTING_READERS = {CUTTING_READER, "iOSbackup"}


def as_cut(content, size):
    """What a cutting reader makes of a file's bytes."""
    return content if size is None else content[:size] + bytes(max(0, size - len(content)))


def ours_of(program, work, path, password):
    """The files by domain and path; `None` where nothing was exported."""
    target = work / "ours"
    command = [program, "export", path, "--files", target, "--home", work / "home", "--no-input", "--quiet"]
    if password is not None:
        secret = work / "password"
        secret.write_bytes(password + (b"" if password.endswith(b"\r") else b"\n"))
        secret.chmod(0o600)
        command += ["--password-file", secret]
    code = subprocess.run([str(word) for word in command], capture_output=True, check=False).returncode
    if code not in OPENS or not target.is_dir():
        return None, code
    return {str(found.relative_to(target)): found.read_bytes() for found in target.rglob("*")
            if found.is_file() and not found.is_symlink() and found.parent != target}, code


def theirs_of(read, path, password, work):
    """What a reader gives; `None` where it stops, in whatever way."""
    place = work / "reader"
    place.mkdir()
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return {name: content for name, (content, _) in read(path, password, place).items()} or None
    except Exception:  # Each reader has exceptions of its own, and others of Python's that it did not foresee.
        return None
    finally:
        shutil.rmtree(place, ignore_errors=True)


def forms(only):
    for case in CASES:
        if case.suffix is None:
            yield case.name, "good", case.recipe, lambda folder, case=case: case.write(folder)[0]
    for fault in FAULTS:
        if fault.name.startswith("part-") and fault.suffix is None:
            yield fault.name, "odd", fault.recipe, fault.write


def main():
    parser = argparse.ArgumentParser(description="Hold Keyhaul's files against those of published readers.")
    parser.add_argument("--keyhaul", type=pathlib.Path, required=True, help="the built program")
    parser.add_argument("--only", metavar="NAME", help="one form")
    arguments = parser.parse_args()
    program = arguments.keyhaul.resolve()
    counts, differences, total = collections.Counter(), [], collections.Counter()
    for name, kind, recipe, write in forms(arguments.only):
        if arguments.only not in (None, name):
            continue
        with tempfile.TemporaryDirectory(prefix="keyhaul-readers-") as folder:
            work = pathlib.Path(folder)
            tempfile.tempdir = folder
            try:
                path = write(work / "written")
                password = recipe.password
                total[kind] += 1
                ours, code = ours_of(program, work, path, password)
                opened = []
                for reader, read in READERS.items():
                    theirs = theirs_of(read, path, (password or b"").decode("utf-8", "replace"), work)
                    if theirs is None:
                        continue
                    opened.append(reader)
                    counts[kind, reader] += 1
                    if ours is None:
                        differences.append(f"{name}: {reader} opens it, and export --files ends with {code}")
                        continue
                    sizes = {f"{file.domain}/{file.path}": len(file.content) if file.size is None else file.size
                             for file in recipe.files if file.is_regular} if reader in CUTTING_READERS else {}
                    other = [file for file, content in theirs.items()
                             if file not in ours or content not in (ours[file], as_cut(ours[file], sizes.get(file)))]
                    if other:
                        differences.append(f"{name}: {reader} has other bytes or more files: {other[:3]}")
                    else:
                        counts[kind, reader, "equal"] += 1
                counts[kind, "keyhaul"] += ours is not None
                counts[kind, "none"] += not opened
            finally:
                tempfile.tempdir = None
    print(f"{'form':6}{'forms':>7}{'keyhaul':>9}" + "".join(f"{reader:>24}" for reader in READERS) + f"{'none of them':>14}")
    for kind in total:
        cells = (f"{counts[kind, reader]} open, {counts[kind, reader, 'equal']} equal" for reader in READERS)
        print(f"{kind:6}{total[kind]:>7}{counts[kind, 'keyhaul']:>9}" + "".join(f"{cell:>24}" for cell in cells)
              + f"{counts[kind, 'none']:>14}")
    print("\n".join(f"FAIL  {difference}" for difference in differences))
    print(f"{sum(total.values())} forms, {len(differences)} differences")
    return 0 if sum(total.values()) and not differences else 1


if __name__ == "__main__":
    sys.exit(main())
