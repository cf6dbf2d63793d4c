#!/usr/bin/env python3
"""Restores every faulty backup to a device and to a Simulator with the same items, and compares the two results.

    check_restores.py PROGRAM [--only NAME] [--jobs 2]

Both must have the same exit code and id. A restore that is refused or fails must change no byte of its target. After other
restores, both targets must have the same number of items. The backups are those of `backup_faults`, and an intact one of
each base. Each is restored without and with `--accept-damage`, and with `--existing merge`. Exit 1 if a check fails.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from backup_faults import FAULTS
from checks import Checks
from faults import BASES, Fault

FLAGS = [["--yes"], ["--yes", "--accept-damage"], ["--yes", "--accept-damage", "--existing", "merge"], ["--dry-run"]]
TARGETS = ("new-phone", "sim.db")
SECONDS = 300
ENDED_WELL = (0, 3)


class Bench:
    """A folder with both targets, which is reset after each restore."""

    def __init__(self, program, pattern, folder):
        self.program, self.pattern, self.folder = program, pattern, folder
        shutil.copytree(pattern, folder)

    def files(self):
        """Returns digests of all files, except a device's lock, which names its last holder."""
        return {
            str(path.relative_to(self.folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.folder.rglob("*")) if path.is_file() and path.name != "lock"}

    def run(self, *words):
        done = subprocess.run(
            [self.program, *map(str, words), "--home", "home", "--no-input", "--json"], cwd=self.folder,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, env=dict(os.environ, COLUMNS="200"))
        return done.returncode, done.stdout, done.stderr.decode("utf-8", "replace")

    def count(self, target):
        code, output, _ = self.run("item", "find", target)
        return len(json.loads(output)["items"]) if code in (0, 4) else f"item find ended with {code}"

    def restored(self, backup, password, flags):
        """Restores to each target. Returns code, id, whether no byte changed, item count and message."""
        ends = []
        for target in TARGETS:
            before = self.files()
            code, _, said = self.run("restore", backup, "--to", target, *password, *flags)
            last = said.strip().splitlines()[-1:] or [""]
            error = json.loads(last[0]) if last[0].startswith("{") and '"exit_error"' in last[0] else {}
            is_as_before = self.files() == before
            count = self.count(target) if code in ENDED_WELL else None
            ends.append((code, error.get("id"), is_as_before, count, said.strip()[-400:]))
            if not is_as_before:
                shutil.rmtree(self.folder)
                shutil.copytree(self.pattern, self.folder)
        return ends


def prepared(program, work):
    pattern = work / "pattern"
    pattern.mkdir()
    (pattern / "password").touch(mode=0o600)
    (pattern / "password").write_bytes(BASES["encrypted"].password)
    for words in (["device", "create", "new-phone", "--from", "new-phone"],
                  ["device", "export", "new-phone", "-o", "sim.db", "--yes"]):
        subprocess.run([program, *words, "--home", "home", "--quiet"], cwd=pattern, check=True, stdin=subprocess.DEVNULL)
    return pattern


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--only", default="", help="faults whose names begin so")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    program, checks, started = str(arguments.program.resolve()), Checks(), time.perf_counter()
    good = [Fault(f"good-{base}", "nothing", {}, base=base) for base in BASES]
    chosen = [fault for fault in good + FAULTS if fault.name.startswith(arguments.only)]
    codes, here, count = collections.Counter(), threading.local(), 0
    with tempfile.TemporaryDirectory(prefix="keyhaul-restores-") as name:
        work = pathlib.Path(name).resolve()
        pattern = prepared(program, work)

        def ends(fault):
            if not hasattr(here, "bench"):
                here.bench = Bench(program, pattern, work / f"bench-{threading.get_ident()}")
            backup = fault.write(work / "backups" / fault.name)
            password = ["--password-file", "password"] if fault.recipe.password else []
            found = [(flags, here.bench.restored(backup, password, flags)) for flags in FLAGS]
            shutil.rmtree(work / "backups" / fault.name)
            return fault, found

        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            for fault, found in pool.map(ends, chosen):
                for flags, (device, simulator) in found:
                    count += 1
                    codes[device[0]] += 1
                    where = f"{fault.name} {' '.join(flags)}"
                    checks.check(
                        device[:2] == simulator[:2],
                        f"{where}: the device ended with {device[:2]}: {device[4]} / the Simulator with {simulator[:2]}: "
                        f"{simulator[4]}")
                    checks.check(
                        device[0] not in ENDED_WELL or device[3] == simulator[3],
                        f"{where}: {device[3]} items on the device, {simulator[3]} in the Simulator")
                    for target, end in zip(TARGETS, (device, simulator)):
                        checks.check(
                            end[2] or end[0] in ENDED_WELL and "--dry-run" not in flags,
                            f"{where}: {target} has changed, and the restore ended with {end[0]}")
    checks.check(bool(arguments.only) or codes[13] > 0 and codes[0] + codes[3] > 0, "backups were refused, and others restored")
    print(f"{count} restores of {len(chosen)} backups to both targets in {time.perf_counter() - started:.0f} s; exit codes "
          + ", ".join(f"{code}: {number}" for code, number in sorted(codes.items())))
    return checks.conclude()


if __name__ == "__main__":
    sys.exit(main())
