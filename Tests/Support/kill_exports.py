#!/usr/bin/env python3
"""Kills `keyhaul export --files` at random moments and runs it again: what stands then is complete and equal.

    kill_exports.py PROGRAM [--kills 200] [--seed N]

The program is ended by SIGKILL, up to three times on one folder, at a moment between its start and the end of a run that
is left alone. After each kill every file that has its name is held against the backup; after the run that follows, the whole
tree: bytes, modes, times, links and the manifest. What lies around the folder has to be as it was. Only kills that met
the program running are counted. Exit 1 where one tree differs.
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
OWN = (".keyhaul-part", "keyhaul-files.jsonl")


def write_backup(archive):
    from keychain_backup.forge import Forge
    from keychain_backup.recipe import File, Recipe

    numbers = random.Random("kill")
    files = []
    for domain in (CHAT, "HomeDomain"):
        # All of them listed, so that each has a time of the list.
        files += [File(domain, ""), File(domain, "Documents")] + [File(domain, f"Documents/{number}") for number in range(7)]
        for number in range(300):
            content = numbers.randbytes(numbers.choice([0, 1, 15, 16, 17, 4_096, 30_000, 300_000]))
            files.append(File(domain, f"Documents/{number % 7}/{number}.bin", content))
            if number % 50 == 0:
                files.append(File(domain, f"Documents/{number % 7}/to-{number}", target=f"{number}.bin"))
    Forge(replace(Recipe(), password=PASSWORD, files=files, has_keychain=False), [], seed="kill").build().write(archive)


def tree(folder):
    """Every name below a folder with all that is kept of it; what a run under way needs is left out."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if name.parts[0] == OWN[0]:
            continue
        status = path.lstat()
        # Links have a time of their own, but their modes are the system's.
        kind = stat.S_IFMT(status.st_mode)
        mode = None if stat.S_ISLNK(status.st_mode) else stat.S_IMODE(status.st_mode)
        modified = None if name.parts[0] in OWN else int(status.st_mtime)
        content = (
            os.readlink(path) if path.is_symlink() else hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file()
            else None)
        found[str(name)] = (kind, mode, modified, content)
    return found


def contents(whole):
    """Of the files and links alone: while a run is under way folders have other times and modes."""
    return {name: entry for name, entry in whole.items() if entry[3] is not None and name not in OWN}


class Exports:
    def __init__(self, program, folder):
        self.folder = folder
        self.command = [
            str(program.resolve()), "export", str(folder / "backup"), "--password-file", str(folder / "password"),
            "--home", str(folder / "home"), "--no-input", "--quiet", "--files"]

    def start(self, target):
        return subprocess.Popen(
            [*self.command, str(target)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def finish(self, target):
        process = self.start(target)
        _, said = process.communicate(timeout=600)
        return process.returncode, said.decode("utf-8", "replace").strip()

    def kill(self, target, after):
        """Whether the process was there to be killed."""
        process = self.start(target)
        time.sleep(after)
        process.kill()
        process.communicate()
        return process.returncode == -9


def main():
    parser = argparse.ArgumentParser(description="Kill keyhaul export --files at random moments and run it again.")
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=200, help="that meet the program running")
    parser.add_argument("--seed", default="moments")
    arguments = parser.parse_args()
    checks, moments = Checks(), random.Random(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="keyhaul-kills-") as name:
        folder = pathlib.Path(name)
        write_backup(folder / "backup")
        (folder / "victim").mkdir()
        (folder / "victim" / "file").write_bytes(b"keep")
        (folder / "password").touch(mode=0o600)
        (folder / "password").write_bytes(PASSWORD)
        exports = Exports(arguments.program, folder)
        started = time.perf_counter()
        checks.check(exports.finish(folder / "whole") == (0, ""), "a run that is left alone ends well")
        longest = time.perf_counter() - started
        expected = tree(folder / "whole")
        around = {name: tree(folder / name) for name in ("backup", "victim")}
        names = sorted([path.name for path in folder.iterdir()] + ["target"])
        kills = met_files = trees = 0
        while kills < arguments.kills and trees < arguments.kills * 3:
            target = folder / "target"
            for _ in range(moments.randint(1, 3)):
                kills += exports.kill(target, moments.uniform(0, longest))
                there = contents(tree(target)) if target.exists() else {}
                met_files += 0 < len(there) < len(contents(expected))
                wrong = [name for name, entry in there.items() if expected.get(name) != entry]
                checks.check(not wrong, f"kill {kills}: has its name and is not what was backed up: {wrong[:3]}")
            ended = exports.finish(target)
            checks.check(ended == (0, ""), f"kill {kills}: the run that goes on ended with {ended}")
            found = tree(target)
            other = [name for name in {**found, **expected} if found.get(name) != expected.get(name)]
            checks.check(not other, f"kill {kills}: not as in a run that was left alone: {other[:3]} of {len(other)}")
            checks.check(not (target / OWN[0]).exists(), f"kill {kills}: {OWN[0]} stays behind")
            checks.check(
                sorted(path.name for path in folder.iterdir() if path.name != "home")
                == [name for name in names if name != "home"]
                and {name: tree(folder / name) for name in around} == around,
                f"kill {kills}: something beside the folder is not as it was")
            shutil.rmtree(target)
            trees += 1
        checks.check(kills >= arguments.kills, f"{kills} of {arguments.kills} kills met the program running")
        checks.check(met_files > 0, "a kill met the program while some files were written and others were not")
    print(f"{kills} kills over {longest:.2f} s, {met_files} of them with a part of the files written; {trees} trees complete")
    return checks.conclude()


if __name__ == "__main__":
    sys.exit(main())
