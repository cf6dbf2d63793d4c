#!/usr/bin/env python3
"""Refuse thread starts in every command, and check how it ends.

    check_threads.py PROGRAM [--short] [--only SCENARIO]

A preloaded library (`thread_starts.c`) lets pthread_create fail with EAGAIN, as it does if the system has no more
threads or no memory for a stack. Each of the first 20 starts of each command is refused, alone and together with all
later starts. Standard error is a terminal, so that the progress line is written too. No command may hang. Each must
exit with 0 if its work is complete, or with 1 and a message if it changed nothing. Then the system itself refuses
threads, because the address space is limited (`ulimit -v`). Exit 1 if a check fails.
"""

import argparse
import os
import pathlib
import pty
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from kill_commands import CHAT, NEW_PASSWORD, OLD_PASSWORD, CommandTester, files, selected_scenarios

MAX_REFUSED_STARTS, TIMEOUT_SECONDS = 20, 30


def reading_commands(short):
    """Yield commands that change nothing in the folder, or write files whose contents are not checked."""
    password_options = ["--password-file", OLD_PASSWORD]
    yield ["inspect", "b"]
    yield ["inspect", "b.zip", "--list", *password_options]
    yield ["verify", "b", *password_options]
    yield ["verify", "b.tar.zst", *password_options]
    yield ["verify", "b", "b.tar", "b.zip", "bare", "--jobs", "4", *password_options]
    yield ["verify", "many", "b", "b.tar", "--jobs", "3", "--format", "csv", *password_options]
    yield ["inspect", "b", "b.tar", "b.zip", "bare", "--jobs", "4", *password_options]
    yield ["diff", "b", "many", *password_options]
    yield ["diff", "b", "phone", *password_options]
    yield ["item", "find", "b", *password_options]
    yield ["item", "find", "phone"]
    yield ["plan", "b", "--to", "other", *password_options]
    yield ["plan", "b", "--to", "other", "--compare", *password_options]
    yield ["plan", "many", "--to", "other", *password_options]
    yield ["restore", "b", "--to", "other", "--dry-run", "--yes", *password_options]
    yield ["why", "b", "--access-group", CHAT, *password_options]
    yield ["convert", "b", "-o", "-"]
    yield ["export", "b.tar", "--files", "out", "--dry-run", *password_options]
    yield ["device", "list"]
    yield ["device", "show", "phone"]
    yield ["rekey", "b", *password_options, "--new-password-file", NEW_PASSWORD, "--rounds", "1", "--dry-run"]
    yield ["backup", "phone", "-o", "new.tar", *password_options, "--rounds", "1", "--yes", "--dry-run"]
    if not short:
        yield ["demo"]
        yield ["explain", "device-bound"]
        yield ["version"]


class ThreadTester(CommandTester):
    """The tests of single commands, and their counts."""

    def __init__(self, program, work):
        super().__init__(program, work, "threads")
        self.library, self.count = work / "threads.so", work / "count"
        subprocess.run(
            [shutil.which("cc") or "clang", "-shared", "-fPIC", "-O1", "-Wall", "-Wno-nonnull", "-o", str(self.library),
             str(pathlib.Path(__file__).with_name("thread_starts.c")), "-ldl"], check=True)
        self.runs, self.refused, self.hangs, self.codes, self.longest = 0, 0, 0, {}, 0

    def start(self, sandbox, command, first=0, last=0, set_limits=None):
        """Run a command.

        Return the exit code (None if it hung), the output, and the numbers of all and of refused thread starts.
        """
        self.count.unlink(missing_ok=True)
        environment = dict(os.environ, TERM="xterm", SWIFT_BACKTRACE="enable=no")
        if set_limits is None:
            environment |= {
                "LD_PRELOAD": str(self.library), "KEYHAUL_THREADS_FIRST": str(first), "KEYHAUL_THREADS_LAST": str(last),
                "KEYHAUL_THREADS_COUNT": str(self.count)}
        outer, inner = pty.openpty()
        output, started = bytearray(), time.perf_counter()
        process = subprocess.Popen(
            [self.program, *map(str, command), "--home", "home", "--no-input"], cwd=sandbox.folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=inner, env=environment, preexec_fn=set_limits)
        os.close(inner)
        reader = threading.Thread(target=read_to_end, args=(outer, output))
        reader.start()
        try:
            code = process.wait(timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            code = None
        reader.join()
        os.close(outer)
        self.longest = max(self.longest, time.perf_counter() - started)
        starts, refused = map(int, self.count.read_text().split()) if self.count.exists() else (0, 0)
        return code, output.decode("utf-8", "replace").replace("\r", ""), starts, refused

    def check_run(self, context, code, error_output, is_complete, has_changed):
        """Check the exit code and the message of one run."""
        check = self.checks.check
        self.runs += 1
        self.hangs += code is None
        self.codes[code] = self.codes.get(code, 0) + 1
        check(code is not None, f"{context}: hangs")
        check(code in (0, 1), f"{context}: ended with {code}: {error_output[-300:]}")
        check(code != 0 or is_complete, f"{context}: ended with 0 without completing its work: {error_output[-300:]}")
        check(
            code != 1 or (not has_changed and "error:" in error_output),
            f"{context}: ended with 1, changed {has_changed}: {error_output[-300:]}")

    def refusals(self, starts, short):
        """Yield the first and last refused start of each run. A last start of 0 means all later starts."""
        last = min(starts, MAX_REFUSED_STARTS)
        for number in range(1, last + 1):
            if short and number not in (1, 2, last):
                continue
            yield number, 0
            if not short or number == 1:
                yield number, number

    def test_writing_command(self, scenario, short):
        """Run a scenario with refused starts. Return the number of its thread starts."""
        self.record_reference(scenario)
        reference = self.references[scenario.name]
        _, _, starts, _ = self.start(self.new_sandbox(reference.origin), scenario.command)
        for first, last in self.refusals(starts, short):
            sandbox = self.new_sandbox(reference.origin)
            code, error_output, _, refused = self.start(sandbox, scenario.command, first, last)
            self.refused += refused
            state = scenario.read_state(sandbox)
            self.check_run(
                f"{scenario.name}, starts {first} to {last or 'the end'} of {starts} refused",
                0 if code in scenario.partial_codes else code, error_output,
                is_complete=state == reference.new_state, has_changed=state != reference.old_state)
        return starts

    def test_reading_command(self, command, short):
        """Run a command with refused starts. Return the number of its thread starts."""
        origin = self.template
        sandbox = self.new_sandbox(origin)
        code, error_output, starts, _ = self.start(sandbox, command)
        self.checks.check(code in (0, 3), f"{' '.join(command)} ended with {code}: {error_output[-300:]}")
        undisturbed_code, before = code, files(sandbox.folder)
        for first, last in self.refusals(starts, short):
            sandbox = self.new_sandbox(origin)
            code, error_output, _, refused = self.start(sandbox, command, first, last)
            self.refused += refused
            context = f"{' '.join(command)}, starts {first} to {last or 'the end'} of {starts} refused"
            changed = {
                name
                for name, content in files(sandbox.folder).items()
                if before.get(name) != content and "lock" not in name
            }
            self.check_run(
                context, 0 if code == undisturbed_code else code, error_output, is_complete=True,
                has_changed=bool(changed))
        return starts

    def test_with_limits(self, command, limit_text, set_limits):
        """Run a command with a system limit, which `set_limits` sets in the new process."""
        sandbox = self.new_sandbox(self.template)
        code, error_output, _, _ = self.start(sandbox, command, set_limits=set_limits)
        self.check_run(
            f"{' '.join(command)}, {limit_text}", 0 if code == 3 else code, error_output, is_complete=True,
            has_changed=False)


def read_to_end(terminal, output):
    """Add the output of a terminal to a byte array, until the program has closed the terminal."""
    while True:
        try:
            chunk = os.read(terminal, 65_536)
        except OSError:
            return
        if not chunk:
            return
        output.extend(chunk)


def minimum_memory(tester, command):
    """Return the minimum address space in bytes with which a command succeeds. A stack of 8 MiB has no room in it."""
    low, high = 64 << 20, 4 << 30
    while high - low > 4 << 20:
        middle = (low + high) // 2
        code = tester.start(tester.new_sandbox(tester.template), command, set_limits=limit_memory(middle))[0]
        low, high = (low, middle) if code in (0, 3) else (middle, high)
    return high


def limit_memory(count):
    """Return a function that limits the address space of a new process."""
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (count, count))


def test_memory_limits(tester, short):
    """Run a command with several threads, with address spaces in which some stacks have no room."""
    command = ["verify", "b", "b.tar", "b.zip", "bare", "--jobs", "4", "--password-file", OLD_PASSWORD]
    minimum = minimum_memory(tester, ["inspect", "b"])
    for extra in range(0, 64 << 20, (16 if short else 4) << 20):
        limit = minimum + extra
        tester.test_with_limits(command, f"{limit >> 20} MiB of address space", limit_memory(limit))


def one_of_each_kind(scenarios):
    """Return one scenario of each kind, without the large scenarios.

    Scenarios of one kind differ only in the backup's layout.
    """
    scenarios_by_kind = {}
    for scenario in scenarios:
        has_suffix = scenario.name.endswith(("/", ".tar", ".zip", ".zst"))
        kind = scenario.name.rsplit(" ", 1)[0] if has_suffix else scenario.name
        scenarios_by_kind.setdefault(kind, scenario)
    return [scenario for scenario in scenarios_by_kind.values() if not scenario.is_large]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument(
        "--short", action="store_true", help="test fewer scenarios, and only the first, second and last start of each"
    )
    parser.add_argument("--only", default="", help="scenarios whose names begin with this")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="keyhaul-threads-") as name:
        tester = ThreadTester(arguments.program, pathlib.Path(name).resolve())
        scenarios = selected_scenarios(arguments.only)
        if arguments.short:
            scenarios = one_of_each_kind(scenarios)
        commands = [] if arguments.only else list(reading_commands(arguments.short))
        start_counts = [tester.test_writing_command(scenario, arguments.short) for scenario in scenarios]
        start_counts += [tester.test_reading_command(command, arguments.short) for command in commands]
        if commands:
            test_memory_limits(tester, arguments.short)
    codes = ", ".join(f"{code}: {count}" for code, count in sorted(tester.codes.items(), key=str))
    print(
        f"{len(scenarios)} writing and {len(commands)} reading commands with {sum(start_counts)} thread starts, "
        f"at most {max(start_counts, default=0)} in one; {tester.runs} runs "
        f"with {tester.refused} refused starts; {tester.hangs} hangs; exit codes {codes}; "
        f"the longest took {tester.longest:.1f} s"
    )
    tester.checks.check(arguments.only or tester.refused > 0, "no start was refused")
    return tester.checks.finish()


if __name__ == "__main__":
    sys.exit(main())
