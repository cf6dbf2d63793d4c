#!/usr/bin/env python3
"""Make each file call of every writing command fail, and simulate a power cut after each change on the disk.

    check_calls.py PROGRAM faults [--every 1] [--only SCENARIO] [--calls sync]
    check_calls.py PROGRAM power [--variants 4] [--only SCENARIO]

A preloaded library (`system_calls.c`) intercepts the calls to the C library, including those of SQLite and libarchive.
`faults`: one call fails with ENOSPC, EIO, EINTR or EDQUOT, or handles half of its bytes. Then the exit code must
state whether the command made its change, the error must name the reason, and the next run must succeed. `power`: the
writes, syncs and renames are recorded. For each prefix of the record, disks are made on which everything that was not
synced is lost, present, or torn at 512 bytes. The program must find the old or the new state. Exit 1 if a check fails.
"""

import argparse
import errno
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from disk_model import images, read_log
from kill_commands import CommandTester, Sandbox, files, is_empty_journal, selected_scenarios

FAULTS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EINTR": errno.EINTR, "EDQUOT": errno.EDQUOT, "short": 0}
# The unsynced changes that remain after a power cut: of names, and of contents.
VARIANTS = [("none", "none"), ("all", "none"), ("all", "torn"), ("some", "torn"), ("none", "all"), ("some", "none")]


# SQLite does not repeat these calls after EINTR, but reports an error: the sync of a database, and the removal of a
# journal. On a local disk, no signal interrupts them.
UNREPEATED_CALLS = re.compile(r"sync:(keychain-2|sim)\.db|unlink:(keychain-2|sim)\.db-journal")


class WatchedSandbox(Sandbox):
    """A sandbox whose program runs with the preloaded library."""

    def __init__(self, program, folder, library):
        super().__init__(program, folder)
        self.library, self.count_path = library, folder.parent / "calls"

    def run_watched(self, command, **settings):
        """Run a command. Return its exit code, its error, the number of calls and the call that failed."""
        self.count_path.unlink(missing_ok=True)
        environment = dict(
            os.environ, LD_PRELOAD=str(self.library), KEYHAUL_CALLS_ROOT=str(self.folder),
            KEYHAUL_CALLS_COUNT=str(self.count_path),
            **{f"KEYHAUL_CALLS_{name}": str(value) for name, value in settings.items()})
        process = subprocess.run(
            self.command_line(*command), cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=300,
            env=environment)
        count, name = self.count_path.read_text().split() if self.count_path.exists() else (0, "none")
        return process.returncode, process.stderr.decode("utf-8", "replace").strip(), int(count), name


class CallTester(CommandTester):
    """The tests of single scenarios, and their counts."""

    def __init__(self, program, work, seed):
        super().__init__(program, work, seed)
        self.library = work / "calls.so"
        subprocess.run(
            [shutil.which("cc") or "clang", "-shared", "-fPIC", "-O1", "-Wall", "-Wno-nonnull", "-o", str(self.library),
             str(pathlib.Path(__file__).with_name("system_calls.c")), "-ldl"], check=True)
        self.codes, self.image_count, self.seen_images, self.fault_count = {}, 0, set(), 0

    def watched_sandbox(self, origin):
        """Return a copy of a folder, in which file calls are counted."""
        return WatchedSandbox(self.program, self.new_sandbox(origin).folder, self.library)

    # Faults

    def test_faults(self, scenario, every, offset, call_pattern=""):
        """Run a scenario with a fault in every `every`-th call. Each kind of fault begins at a different call."""
        self.record_reference(scenario)
        origin = self.references[scenario.name].origin
        names_path = self.work / "names"
        total = self.watched_sandbox(origin).run_watched(scenario.command, NAMES=names_path)[2]
        self.checks.check(total > 10, f"{scenario.name}: {total} calls")
        names = names_path.read_text().splitlines()
        selected = [call for call, name in enumerate(names, 1) if re.search(call_pattern, name)]
        for position, (fault, error_number) in enumerate(FAULTS.items()):
            for call in selected[(offset + position) % every::every]:
                sandbox = self.watched_sandbox(origin)
                code, error_output, _, name = sandbox.run_watched(scenario.command, FAIL=call, ERRNO=error_number)
                if name != "none":
                    self.fault_count += 1
                    self.check_run(
                        scenario, sandbox, f"{scenario.name}, {fault} at call {call} ({name})", fault, code,
                        error_output)

    def check_run(self, scenario, sandbox, context, fault, code, error_output):
        """Check the exit code, the state and the files after one fault, and run the command again if it failed."""
        check, new_state = self.checks.check, self.references[scenario.name].new_state
        self.codes[fault, code] = self.codes.get((fault, code), 0) + 1
        state = scenario.read_state(sandbox)
        self.check_state(scenario, state, context, code, error_output)
        check(
            code in (0, 1, 3, 4, 5, 10, 11, 13, 14, *scenario.refusal_codes),
            f"{context}: ended with {code}: {error_output[:300]}")
        check(code == 0 or error_output, f"{context}: ended with {code} without a message")
        # After 5 and the partial codes, a replaced backup may remain. The state of an export of files is a dictionary,
        # and a failed export leaves the files that it has written.
        if code not in (5, *scenario.partial_codes) and not isinstance(new_state, dict):
            leftover = self.leftover_files(scenario, sandbox, is_successful=code == 0)
            check(not leftover, f"{context}: leaves {sorted(leftover)[:3]}")
        if fault == "EINTR" and not UNREPEATED_CALLS.search(context):
            check(code == 0, f"{context}: a signal that interrupts a call ends the run: {error_output[:200]}")
        if state != new_state:
            code, _, error_output = sandbox.run(*scenario.command)
            check(
                code == 0 and scenario.read_state(sandbox) == new_state,
                f"{context}: a second run ended with {code}: {error_output}")

    def check_state(self, scenario, state, context, code, error_output):
        """Check that the state is the one that the exit code claims."""
        check, reference = self.checks.check, self.references[scenario.name]
        old, new = reference.old_state, reference.new_state
        if isinstance(new, dict):
            # Files are exported one by one, and the manifest of the export lists the missing ones.
            exported = {name: content for name, content in state.items() if name != "keyhaul-files.jsonl"}
            check(
                state == new if code == 0 else set(exported.items()) <= set(new.items()), f"{context}: different files"
            )
        elif code == 0 and state != new and scenario.name == "export of items":
            # The key of the source device is used if it is available.
            check(
                state == self.without_device(scenario),
                f"{context}: the items are those neither with nor without the device's key")
        elif code in (0, 5, *scenario.partial_codes):
            check(state == new, f"{context}: ended with {code} and is not the new state: {error_output[:200]}")
        else:
            check(
                state == old,
                f"{context}: ended with {code} and is not the old state: {error_output[:200]} {str(state)[:200]}")

    def leftover_files(self, scenario, sandbox, is_successful):
        """Return the files that an undisturbed run does not leave. After a success, SQLite's files may remain."""
        reference = self.references[scenario.name]
        leftover = set(files(sandbox.folder)) - set(reference.files_before) - reference.names_after
        if not is_successful:
            return leftover
        return {
            name
            for name in leftover
            if not name.endswith(("-wal", "-shm")) and not is_empty_journal(sandbox.folder / name)
        }

    def without_device(self, scenario):
        """Return the state after the command without the device, whose key is then unavailable."""
        undisturbed = Sandbox(self.program, self.work / "without-device")
        if not undisturbed.folder.exists():
            shutil.copytree(self.references[scenario.name].origin, undisturbed.folder)
            shutil.rmtree(undisturbed.folder / "home")
            undisturbed.run_checked(*scenario.command)
        return scenario.read_state(undisturbed)

    # Power cuts

    def test_power_cuts(self, scenario, variants):
        """Record a scenario, and check the disks after a power cut at each change."""
        self.record_reference(scenario)
        reference = self.references[scenario.name]
        sandbox = self.watched_sandbox(reference.origin)
        log = self.work / "log"
        log.unlink(missing_ok=True)
        code, error_output, _, _ = sandbox.run_watched(scenario.command, LOG=log)
        self.checks.check(code == 0, f"{scenario.name}: the recorded run ended with {code}: {error_output}")
        folder = sandbox.folder.resolve()
        changes = read_log(log)
        # The last image must equal the files of the run, which shows that the record is complete.
        final_files = {name: content for name, content in read_tree(folder).items() if not name.endswith("-shm")}
        self.new_sandbox(reference.origin)
        complete_image = None
        for number, names, contents, image in images(
            folder, changes, f"{scenario.name} power", variants + [("all", "all")]
        ):
            if (names, contents) == ("all", "all"):
                complete_image = image
                continue
            self.image_count += 1
            digest = tree_digest(image)
            if digest not in self.seen_images:
                self.seen_images.add(digest)
                context = f"{scenario.name}, cut after {number + 1} of {len(changes)} ({names}, {contents})"
                self.check_image(scenario, image, context)
        recorded_files = {name: content for name, content in complete_image.items() if content is not None}
        self.checks.check(
            recorded_files == final_files, f"{scenario.name}: the record does not result in the files on the disk")

    def check_image(self, scenario, image, context):
        """Write an image to a folder, and check the state that the program finds."""
        old, new = self.references[scenario.name].old_state, self.references[scenario.name].new_state
        folder = self.work / "sandbox"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, content in image.items():
            path = folder / name
            if content is None:
                path.mkdir(parents=True, exist_ok=True)
                path.chmod(0o700)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch(mode=0o600)
                path.write_bytes(content)
        sandbox = Sandbox(self.program, folder)
        state = scenario.read_state(sandbox)
        if isinstance(new, dict):
            code, _, error_output = sandbox.run(*scenario.command)
            self.checks.check(
                code == 0 and scenario.read_state(sandbox) == new,
                f"{context}: a second run ended with {code}: {error_output}")
        else:
            self.checks.check(state in (old, new), f"{context}: neither the old nor the new state: {str(state)[:400]}")


def read_tree(folder):
    """Return the contents of all files below a folder, by path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def tree_digest(image):
    """Return the digest of an image."""
    digest = hashlib.sha256()
    for name in sorted(image):
        is_folder = image[name] is None
        digest.update(name.encode() + b"\0" + hashlib.sha256(image[name] or b"").digest() + bytes([is_folder]))
    return digest.digest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("test", choices=("faults", "power"))
    parser.add_argument(
        "--every", type=int, default=1, help="let one call in this many fail, a different one for each fault"
    )
    parser.add_argument("--variants", type=int, default=4, help=f"disks after each change, up to {len(VARIANTS)}")
    parser.add_argument("--only", default="", help="scenarios whose names begin with this")
    parser.add_argument("--calls", default="", help="only calls whose names match, such as sync:sim.db or unlink")
    parser.add_argument("--offset", type=int, default=0, help="the index of the first call, if not every call fails")
    arguments = parser.parse_args()
    selected = [
        scenario
        for scenario in selected_scenarios(arguments.only)
        if not (scenario.is_large and arguments.test == "power")
    ]
    with tempfile.TemporaryDirectory(prefix="keyhaul-calls-") as name:
        tester, started = CallTester(arguments.program, pathlib.Path(name).resolve(), "calls"), time.perf_counter()
        for number, scenario in enumerate(selected):
            if arguments.test == "faults":
                tester.test_faults(scenario, arguments.every, arguments.offset + number, arguments.calls)
            else:
                tester.test_power_cuts(scenario, VARIANTS[:arguments.variants])
            print(
                f"{scenario.name}: {tester.fault_count or tester.image_count} after "
                f"{time.perf_counter() - started:.0f} s",
                flush=True)
    if arguments.test == "faults":
        codes = ", ".join(f"{fault} {code}: {count}" for (fault, code), count in sorted(tester.codes.items()))
        print(f"{tester.fault_count} faults in {len(selected)} scenarios; fault and exit code: {codes}")
    else:
        print(
            f"{tester.image_count} disks after power cuts in {len(selected)} scenarios, "
            f"{len(tester.seen_images)} of them different"
        )
    return tester.checks.finish()


if __name__ == "__main__":
    sys.exit(main())
