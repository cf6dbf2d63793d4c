#!/usr/bin/env python3
"""Run every command with few file descriptors and with little memory. It must work, or report the shortage.

    check_descriptors.py PROGRAM [--short] [--only COMMAND]

The limits are 3 to 32 descriptors (`ulimit -n`), and address spaces (`ulimit -v`) in steps, from the smallest size with
which the program starts. Each run must exit with the code of an unlimited run, or with 1 and a message. It must not
exit with 10, 13 or 14, die from a signal, or hang. A command for many backups or devices exits with 3 if it could read
only some of them, and must not call a backup damaged. A writing command that exits with 1 must have changed nothing.
Exit 1 if a check fails.

With three descriptors, the system's loader cannot open a library, and the program does not start (127).
"""

import argparse
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

from check_threads import reading_commands
from kill_commands import CommandTester, files, selected_scenarios

DESCRIPTOR_LIMITS = range(3, 33)
# The loader's message if it cannot open or map a library.
LOADER_MESSAGE = "error while loading shared libraries"


class LimitTester(CommandTester):
    """The tests of single commands, and their counts."""

    def __init__(self, program, work):
        super().__init__(program, work, "descriptors")
        self.runs, self.codes = 0, {}

    def start(self, sandbox, command, resource_kind=None, limit=0):
        """Run a command with a limit. Return the exit code (None after a timeout), the error and the output."""
        def lower_limit():
            resource.setrlimit(resource_kind, (limit, limit))

        try:
            process = subprocess.run(
                [self.program, *map(str, command), "--home", "home", "--no-input"], cwd=sandbox.folder,
                stdin=subprocess.DEVNULL, capture_output=True, timeout=120,
                preexec_fn=lower_limit if resource_kind is not None else None)
        except subprocess.TimeoutExpired:
            return None, "", ""
        return process.returncode, process.stderr.decode("utf-8", "replace"), process.stdout.decode("utf-8", "replace")

    def check_run(self, context, unlimited_codes, code, error_output, output, is_many=False):
        """Check one run, and return whether it did its work.

        `unlimited_codes` are the exit codes of a run without a limit. With `is_many`, the command reads many backups or
        devices.
        """
        check = self.checks.check
        self.runs += 1
        self.codes[code] = self.codes.get(code, 0) + 1
        if code == 127 and LOADER_MESSAGE in error_output:
            return False
        check(code is not None, f"{context}: did not end")
        check(
            code in (*unlimited_codes, 1, *((3,) if is_many else ())),
            f"{context}: ended with {code}: {error_output[-300:]}")
        check(
            code in unlimited_codes or "error:" in error_output or is_many,
            f"{context}: ended with {code} without a message: {error_output[-200:]}")
        check(
            code in unlimited_codes or not re.search(r"damaged|not a backup|hostile|don't trust", error_output),
            f"{context}: a false message: {error_output[-300:]}")
        check(
            not is_many or not re.search(r"with (exit code )?1[034]\b", error_output + output),
            f"{context}: a false exit code: {error_output[-300:]}")
        return code in unlimited_codes

    def test_reading_command(self, command, resource_kind, unit, limits):
        """Run a command that changes nothing with each limit."""
        sandbox = self.new_sandbox(self.template)
        unlimited_code, before = self.start(sandbox, command)[0], files_without_locks(sandbox.folder)
        is_many = "--jobs" in command or command[:2] == ["device", "list"]
        for limit in limits:
            context = f"{' '.join(command)}, {unit} {limit}"
            self.check_run(context, (unlimited_code,), *self.start(sandbox, command, resource_kind, limit), is_many)
            self.checks.check(files_without_locks(sandbox.folder) == before, f"{context}: changed something")

    def test_writing_command(self, scenario, resource_kind, unit, limits):
        """Run a scenario with each limit."""
        if scenario.name not in self.references:
            self.record_reference(scenario)
        reference = self.references[scenario.name]
        old, new = reference.old_state, reference.new_state
        for limit in limits:
            sandbox = self.new_sandbox(reference.origin)
            context = f"{scenario.name}, {unit} {limit}"
            # 5: complete, but the replaced backup could not be removed.
            is_complete = self.check_run(
                context, (0, 5, *scenario.partial_codes), *self.start(sandbox, scenario.command, resource_kind, limit)
            )
            state = scenario.read_state(sandbox)
            is_partial = False
            if isinstance(old, dict):
                # Files are exported one by one, and the manifest of the export lists the missing ones.
                exported = {path: content for path, content in state.items() if path != "keyhaul-files.jsonl"}
                is_partial = exported.items() <= new.items()
            is_expected = state == new if is_complete else state == old or is_partial
            self.checks.check(is_expected, f"{context}: neither complete nor unchanged")

    def minimum_memory(self):
        """Return the minimum address space in bytes with which the program starts."""
        low, high = 1 << 20, 4 << 30
        while high - low > 1 << 20:
            middle = (low + high) // 2
            code = self.start(self.new_sandbox(self.template), ["version"], resource.RLIMIT_AS, middle)[0]
            low, high = (low, middle) if code == 0 else (middle, high)
        return high


def files_without_locks(folder):
    """Return the digests of all files, except for lock files and SQLite's own files."""
    return {name: content for name, content in files(folder).items() if not name.endswith(("/lock", "-wal", "-shm"))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--short", action="store_true", help="test fewer limits, and only one kind of archive")
    parser.add_argument("--only", default="", help="commands that begin with this")
    arguments = parser.parse_args()
    descriptor_limits = [4, 5, 6, 7, 8, 9, 10, 11, 12, 14] if arguments.short else list(DESCRIPTOR_LIMITS)
    with tempfile.TemporaryDirectory(prefix="keyhaul-descriptors-") as name:
        tester = LimitTester(arguments.program, pathlib.Path(name).resolve())
        minimum = tester.minimum_memory()
        memory_limits = [minimum + (step << 20) for step in (range(0, 33, 8) if arguments.short else range(0, 65, 2))]
        commands = [
            command for command in reading_commands(arguments.short) if " ".join(command).startswith(arguments.only)
        ]
        scenarios = [
            scenario for scenario in selected_scenarios(arguments.only)
            if not scenario.is_large and not (arguments.short and scenario.name.endswith((".tar", ".zst", ".zip")))]
        for command in commands:
            tester.test_reading_command(command, resource.RLIMIT_NOFILE, "descriptors", descriptor_limits)
            tester.test_reading_command(command, resource.RLIMIT_AS, "bytes of memory", memory_limits)
        for scenario in scenarios[:: 4 if arguments.short else 1]:
            tester.test_writing_command(
                scenario, resource.RLIMIT_NOFILE, "descriptors",
                descriptor_limits[::3] if arguments.short else descriptor_limits)
            tester.test_writing_command(scenario, resource.RLIMIT_AS, "bytes of memory", memory_limits[::2])
    codes = ", ".join(f"{code}: {count}" for code, count in sorted(tester.codes.items(), key=str))
    print(f"{len(commands)} reading and {len(scenarios)} writing commands, {tester.runs} runs; exit codes {codes}")
    return tester.checks.finish()


if __name__ == "__main__":
    sys.exit(main())
