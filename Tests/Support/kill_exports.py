#!/usr/bin/env python3
"""Kill `keyhaul export --files` at random moments and run it again. Afterwards, the files must be complete.

    kill_exports.py PROGRAM [--kills 200] [--seed N]

The program is killed with SIGKILL, up to three times for one folder, at a moment between its start and the end of an
undisturbed run. After each kill, every exported file must equal that of the backup. After the next run, the tree
must be that of an undisturbed run: contents, modes, times, links and the manifest. Other files must be unchanged. Only
kills of a running program count. Exit 1 if a check fails.
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
EXPORT_FILES = (".keyhaul-part", "keyhaul-files.jsonl")


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
    """Return the type, mode, time and contents of everything below a folder, without the files of an unfinished run."""
    entries = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if name.parts[0] == EXPORT_FILES[0]:
            continue
        status = path.lstat()
        # The mode of a link depends on the system.
        kind = stat.S_IFMT(status.st_mode)
        mode = None if stat.S_ISLNK(status.st_mode) else stat.S_IMODE(status.st_mode)
        modified = None if name.parts[0] in EXPORT_FILES else int(status.st_mtime)
        content = (
            os.readlink(path) if path.is_symlink() else hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file()
            else None)
        entries[str(name)] = (kind, mode, modified, content)
    return entries


def contents(entries):
    """Return only the files and links of a tree. The times and modes of folders change until the end of a run."""
    return {name: entry for name, entry in entries.items() if entry[3] is not None and name not in EXPORT_FILES}


class Exports:
    """Runs of the command."""

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

    def kill(self, target, after):
        """Start an export, and kill it after some seconds. Return whether it was still running."""
        process = self.start(target)
        time.sleep(after)
        process.kill()
        process.communicate()
        return process.returncode == -9


def main():
    parser = argparse.ArgumentParser(description="Kill keyhaul export --files at random moments and run it again.")
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=200, help="the number of kills of a running program")
    parser.add_argument("--seed", default="moments")
    arguments = parser.parse_args()
    checks, rng = Checks(), random.Random(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="keyhaul-kills-") as name:
        folder = pathlib.Path(name)
        write_backup(folder / "backup")
        (folder / "victim").mkdir()
        (folder / "victim" / "file").write_bytes(b"keep")
        (folder / "password").touch(mode=0o600)
        (folder / "password").write_bytes(PASSWORD)
        exports = Exports(arguments.program, folder)
        started = time.perf_counter()
        checks.check(exports.finish(folder / "undisturbed") == (0, ""), "an undisturbed run fails")
        duration = time.perf_counter() - started
        expected = tree(folder / "undisturbed")
        other_folders = {name: tree(folder / name) for name in ("backup", "victim")}
        names = sorted([path.name for path in folder.iterdir()] + ["target"])
        kills = partial = trees = 0
        while kills < arguments.kills and trees < arguments.kills * 3:
            target = folder / "target"
            for _ in range(rng.randint(1, 3)):
                kills += exports.kill(target, rng.uniform(0, duration))
                existing = contents(tree(target)) if target.exists() else {}
                partial += 0 < len(existing) < len(contents(expected))
                wrong = [name for name, entry in existing.items() if expected.get(name) != entry]
                checks.check(not wrong, f"kill {kills}: files differ from the backup: {wrong[:3]}")
            result = exports.finish(target)
            checks.check(result == (0, ""), f"kill {kills}: the next run ended with {result}")
            found = tree(target)
            different = [name for name in {**found, **expected} if found.get(name) != expected.get(name)]
            checks.check(
                not different,
                f"kill {kills}: {len(different)} files differ from an undisturbed run, such as {different[:3]}")
            checks.check(not (target / EXPORT_FILES[0]).exists(), f"kill {kills}: {EXPORT_FILES[0]} is left")
            checks.check(
                sorted(path.name for path in folder.iterdir() if path.name != "home")
                == [name for name in names if name != "home"]
                and {name: tree(folder / name) for name in other_folders} == other_folders,
                f"kill {kills}: something outside of the folder changed")
            shutil.rmtree(target)
            trees += 1
        checks.check(kills >= arguments.kills, f"{kills} of {arguments.kills} kills were sent to a running program")
        checks.check(partial > 0, "some kills were after some of the files were written")
    print(
        f"{kills} kills over {duration:.2f} s, {partial} of them with some of the files written; {trees} complete trees"
    )
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
