#!/usr/bin/env python3
"""Restore every faulty backup to a device and to a Simulator with the same items, and compare the two results.

    check_restores.py PROGRAM [--only NAME] [--jobs 2]

Both restores must have the same exit code and error id. A restore that is refused or fails must not change its target.
After any other restore, both targets must have the same number of items. The backups are the faulty backups of
`backup_faults`, and a valid backup of each base. Each is restored without and with `--accept-damage`, and with
`--existing merge`. Exit 1 if a check fails.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
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
TIMEOUT_SECONDS = 300
RESTORED_CODES = (0, 3)


@dataclasses.dataclass
class RestoreResult:
    """The outcome of a restore to one target."""

    code: int
    error_id: str
    is_unchanged: bool
    # The number of items in the target, if the restore was made.
    item_count: int
    message: str


class RestoreTargets:
    """A folder with both targets, which is reset after each restore that changed something."""

    def __init__(self, program, template, folder):
        self.program, self.template, self.folder = program, template, folder
        shutil.copytree(template, folder)

    def files(self):
        """Return digests of all files, except for a device's lock file, which names the last holder of the lock."""
        return {
            str(path.relative_to(self.folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.folder.rglob("*")) if path.is_file() and path.name != "lock"}

    def run(self, *arguments):
        """Run a command. Return its exit code, standard output and standard error."""
        process = subprocess.run(
            [self.program, *map(str, arguments), "--home", "home", "--no-input", "--json"], cwd=self.folder,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_SECONDS, env=dict(os.environ, COLUMNS="200"))
        return process.returncode, process.stdout, process.stderr.decode("utf-8", "replace")

    def count(self, target):
        """Return the number of items in a target."""
        code, output, _ = self.run("item", "find", target)
        return len(json.loads(output)["items"]) if code in (0, 4) else f"item find ended with {code}"

    def restore(self, backup, password, flags):
        """Restore to each target. Return a result for each."""
        results = []
        for target in TARGETS:
            before = self.files()
            code, _, error_output = self.run("restore", backup, "--to", target, *password, *flags)
            last_line = error_output.strip().rpartition("\n")[2]
            is_error = last_line.startswith("{") and '"exit_error"' in last_line
            error = json.loads(last_line) if is_error else {}
            is_unchanged = self.files() == before
            item_count = self.count(target) if code in RESTORED_CODES else None
            results.append(RestoreResult(code, error.get("id"), is_unchanged, item_count, error_output.strip()[-400:]))
            if not is_unchanged:
                shutil.rmtree(self.folder)
                shutil.copytree(self.template, self.folder)
        return results


def create_targets(program, work):
    """Create both targets in a template folder, and return its path."""
    template = work / "template"
    template.mkdir()
    (template / "password").touch(mode=0o600)
    (template / "password").write_bytes(BASES["encrypted"].password)
    for arguments in (["device", "create", "new-phone", "--from", "new-phone"],
                      ["device", "export", "new-phone", "-o", "sim.db", "--yes"]):
        subprocess.run(
            [program, *arguments, "--home", "home", "--quiet"], cwd=template, check=True, stdin=subprocess.DEVNULL
        )
    return template


def compare_results(checks, context, flags, device, simulator):
    """Check that both restores ended in the same way, and that a failed one changed nothing."""
    checks.check(
        (device.code, device.error_id) == (simulator.code, simulator.error_id),
        f"{context}: the device ended with {device.code} {device.error_id}: {device.message} / "
        f"the Simulator with {simulator.code} {simulator.error_id}: {simulator.message}")
    checks.check(
        device.code not in RESTORED_CODES or device.item_count == simulator.item_count,
        f"{context}: {device.item_count} items on the device, {simulator.item_count} in the Simulator")
    for target, result in zip(TARGETS, (device, simulator)):
        checks.check(
            result.is_unchanged or result.code in RESTORED_CODES and "--dry-run" not in flags,
            f"{context}: {target} has changed, although the restore ended with {result.code}")


class BackupRestorer:
    """The restores of backups with each combination of flags, in several threads."""

    def __init__(self, program, work):
        self.program, self.work = program, work
        self.template = create_targets(program, work)
        # Each thread has its own targets.
        self.local = threading.local()

    def restore(self, fault):
        """Restore a backup with each combination of flags. Return the fault, and (flags, results) for each."""
        if not hasattr(self.local, "targets"):
            folder = self.work / f"targets-{threading.get_ident()}"
            self.local.targets = RestoreTargets(self.program, self.template, folder)
        backup = fault.write(self.work / "backups" / fault.name)
        password = ["--password-file", "password"] if fault.options.password else []
        results = [(flags, self.local.targets.restore(backup, password, flags)) for flags in FLAGS]
        shutil.rmtree(self.work / "backups" / fault.name)
        return fault, results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--only", default="", help="faults whose names begin with this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    checks, codes, started = Checks(), collections.Counter(), time.perf_counter()
    valid = [Fault(f"valid-{base}", "nothing", {}, base=base) for base in BASES]
    selected = [fault for fault in valid + FAULTS if fault.name.startswith(arguments.only)]
    with tempfile.TemporaryDirectory(prefix="keyhaul-restores-") as name:
        restorer = BackupRestorer(str(arguments.program.resolve()), pathlib.Path(name).resolve())
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            for fault, results in pool.map(restorer.restore, selected):
                for flags, (device, simulator) in results:
                    codes[device.code] += 1
                    compare_results(checks, f"{fault.name} {' '.join(flags)}", flags, device, simulator)
    checks.check(
        bool(arguments.only) or codes[13] > 0 and codes[0] + codes[3] > 0, "no backup was refused, or none was restored"
    )
    code_counts = ", ".join(f"{code}: {count}" for code, count in sorted(codes.items()))
    print(
        f"{sum(codes.values())} restores of {len(selected)} backups to both targets in "
        f"{time.perf_counter() - started:.0f} s; exit codes {code_counts}"
    )
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
