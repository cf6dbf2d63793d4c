#!/usr/bin/env python3
"""Kill `keyhaul export --files` at random moments and run it again. Afterwards, the files must be complete.

    kill_exports.py PROGRAM [--kills 200] [--seed N]

The program is killed with SIGKILL, up to three times for one folder, at a moment between its start and the end of an
undisturbed run. After each kill, every exported file must equal the file in the backup. After the next run, the tree
must equal the tree of an undisturbed run: contents, modes, times, links and the manifest. Other files must be
unchanged. Only kills of a running program count. Exit 1 if a check fails.
"""

import argparse
import hashlib
import os
import pathlib
import random
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from dataclasses import replace

from checks import Checks

PASSWORD = b"correct horse"
CHAT = "AppDomain-org.example.chat"
# The folder for unfinished files, and the list of the exported files.
PART_FOLDER, FILE_LIST = ".keyhaul-part", "keyhaul-files.jsonl"
EXPORT_FILES = (PART_FOLDER, FILE_LIST)


def write_backup(backup_path):
    """Write a backup with files of many sizes, and links."""
    from keychain_backup.builder import BackupBuilder
    from keychain_backup.options import BackupOptions, File

    rng = random.Random("kill")
    files = []
    for domain in (CHAT, "HomeDomain"):
        # The folders are in the manifest too, so that each has a recorded time.
        files += [File(domain, ""), File(domain, "Documents")] + [
            File(domain, f"Documents/{number}") for number in range(7)
        ]
        for number in range(300):
            content = rng.randbytes(rng.choice([0, 1, 15, 16, 17, 4_096, 30_000, 300_000]))
            files.append(File(domain, f"Documents/{number % 7}/{number}.bin", content))
            if number % 50 == 0:
                files.append(File(domain, f"Documents/{number % 7}/to-{number}", target=f"{number}.bin"))
    BackupBuilder(
        replace(BackupOptions(), password=PASSWORD, files=files, has_keychain=False), [], seed="kill"
    ).build().write(backup_path)


def tree(folder):
    """Return (type, mode, time, contents) of everything below a folder, without the files of an unfinished run."""
    entries = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if name.parts[0] == PART_FOLDER:
            continue
        status = path.lstat()
        kind = stat.S_IFMT(status.st_mode)
        # The mode of a symbolic link depends on the system.
        mode = None if stat.S_ISLNK(status.st_mode) else stat.S_IMODE(status.st_mode)
        modified = None if name.parts[0] in EXPORT_FILES else int(status.st_mtime)
        content = None
        if path.is_symlink():
            content = os.readlink(path)
        elif path.is_file():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        entries[str(name)] = (kind, mode, modified, content)
    return entries


def contents(entries):
    """Return only the files and links of a tree. The times and modes of folders change until the end of a run."""
    return {name: entry for name, entry in entries.items() if entry[3] is not None and name not in EXPORT_FILES}


class Exports:
    """Starts, finishes and kills exports of one backup."""

    def __init__(self, program, folder):
        self.folder = folder
        self.command = [
            str(program.resolve()), "export", str(folder / "backup"), "--password-file", str(folder / "password"),
            "--home", str(folder / "home"), "--no-input", "--quiet", "--files"]

    def start(self, target):
        """Start an export."""
        return subprocess.Popen(
            [*self.command, str(target)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def finish(self, target):
        """Run an export to its end. Return its exit code and its error."""
        process = self.start(target)
        _, error_output = process.communicate(timeout=600)
        return process.returncode, error_output.decode("utf-8", "replace").strip()

    def kill(self, target, delay):
        """Start an export, and kill it after `delay` seconds. Return whether it was still running."""
        process = self.start(target)
        time.sleep(delay)
        process.kill()
        process.communicate()
        return process.returncode == -9


class KillTest:
    """An undisturbed export, and exports that are killed and run again. Their results must equal the first one."""

    def __init__(self, program, folder, checks, rng):
        self.folder, self.target, self.checks, self.rng = folder, folder / "target", checks, rng
        self.kill_count = self.partial_count = self.tree_count = 0
        write_backup(folder / "backup")
        (folder / "unrelated").mkdir()
        (folder / "unrelated" / "file").write_bytes(b"keep")
        (folder / "password").touch(mode=0o600)
        (folder / "password").write_bytes(PASSWORD)
        self.exports = Exports(program, folder)
        started = time.perf_counter()
        checks.check(self.exports.finish(folder / "undisturbed") == (0, ""), "an undisturbed run fails")
        self.duration = time.perf_counter() - started
        self.expected = tree(folder / "undisturbed")
        self.expected_surroundings = self.surroundings()

    def surroundings(self):
        """Return what no export may change: the names beside the target, and the trees of other folders."""
        names = sorted(path.name for path in self.folder.iterdir() if path.name not in ("home", "target"))
        return names, {name: tree(self.folder / name) for name in ("backup", "unrelated")}

    def kill_some_times(self):
        """Kill up to three exports, one after the other. Compare the written files with the backup after each kill."""
        for _ in range(self.rng.randint(1, 3)):
            self.kill_count += self.exports.kill(self.target, self.rng.uniform(0, self.duration))
            existing = contents(tree(self.target)) if self.target.exists() else {}
            if 0 < len(existing) < len(contents(self.expected)):
                self.partial_count += 1
            wrong = [name for name, entry in existing.items() if self.expected.get(name) != entry]
            self.checks.check(not wrong, f"kill {self.kill_count}: files differ from the backup: {wrong[:3]}")

    def complete(self):
        """Run the export to its end. Compare everything with the undisturbed run, and delete the target."""
        context = f"kill {self.kill_count}"
        result = self.exports.finish(self.target)
        self.checks.check(result == (0, ""), f"{context}: the next run ended with {result}")
        written = tree(self.target)
        names = {**written, **self.expected}
        different = [name for name in names if written.get(name) != self.expected.get(name)]
        self.checks.check(
            not different,
            f"{context}: {len(different)} files differ from an undisturbed run, such as {different[:3]}")
        self.checks.check(not (self.target / PART_FOLDER).exists(), f"{context}: {PART_FOLDER} is left")
        self.checks.check(
            self.surroundings() == self.expected_surroundings, f"{context}: something outside of the folder changed")
        shutil.rmtree(self.target)
        self.tree_count += 1


def main():
    parser = argparse.ArgumentParser(description="Kill keyhaul export --files at random moments and run it again.")
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=200, help="the number of kills of a running program")
    parser.add_argument("--seed", default="moments")
    arguments = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="keyhaul-kills-") as name:
        test = KillTest(arguments.program, pathlib.Path(name), checks, random.Random(arguments.seed))
        # A run that ends before its kill does not count, so the number of runs is limited too.
        while test.kill_count < arguments.kills and test.tree_count < arguments.kills * 3:
            test.kill_some_times()
            test.complete()
    checks.check(
        test.kill_count >= arguments.kills,
        f"only {test.kill_count} of {arguments.kills} kills hit a running program")
    checks.check(test.partial_count > 0, "no kill came while only some of the files were written")
    print(
        f"{test.kill_count} kills over {test.duration:.2f} s, {test.partial_count} of them with some of the files "
        f"written; {test.tree_count} complete trees"
    )
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
