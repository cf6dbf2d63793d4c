#!/usr/bin/env python3
"""Compare the time of one call for many backups with the time of one process for each backup (`xargs -P`).

    bench_fleet.py PROGRAM [--backups 200] [--jobs 2] [--rounds 5] [--verb inspect]

The backups are copies of one unencrypted backup of a bundled device: half are folders, half are tar files. The methods
take turns, so that other load on the machine affects both. The figure is the ratio of the medians. Exit 1 if the one
call is slower, or a command fails.
"""

import argparse
import collections
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from bench_files import require_work
from figures import Figures

# Slightly more than 1, because two runs of the same command differ by this much.
MAX_RATIO = 1.05
ONE_CALL, ONE_PROCESS_EACH = "one call", "a process each"


def create_backups(program, folder, count, environment):
    """Create the backups."""
    def keyhaul(*arguments):
        subprocess.run([program, *arguments], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)

    keyhaul("device", "create", "phone", "--from", "old-phone", "-q")
    keyhaul("backup", "phone", "-o", "one/", "--no-password", "-q")
    keyhaul("backup", "phone", "-o", "one.tar", "--no-password", "-q")
    (folder / "many").mkdir()
    for number in range(count):
        if number % 2:
            shutil.copyfile(folder / "one.tar", folder / f"many/{number:05}.tar")
        else:
            shutil.copytree(folder / "one", folder / f"many/{number:05}")


def time_command(command, folder, environment):
    """Run a shell command. Return its seconds and the finished process."""
    started = time.perf_counter()
    process = subprocess.run(command, shell=True, cwd=folder, env=environment, stdout=subprocess.PIPE, check=False)
    return time.perf_counter() - started, process


def expected_output(program, command_name, folder, environment):
    """Return the document of each backup, from calls that are not timed."""
    output = b""
    for path in sorted((folder / "many").iterdir()):
        command = [program, command_name, f"many/{path.name}", "--json"]
        output += subprocess.run(
            command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ).stdout
    return output


def documents_problem(printed, expected):
    """Return the problem with the output of several processes, or an empty string.

    The processes write at the same time, so the documents may be mixed, and they contain the time that each took.
    """
    # Each byte is counted, except digits and points.
    counts, expected_counts = (
        collections.Counter(text.translate(None, b"0123456789.")) for text in (printed, expected))
    return "" if counts == expected_counts else f"it printed {len(printed)} bytes, not the documents of {len(expected)}"


def lines_problem(printed, count):
    """Return the problem with the output of one call, one document per line, or an empty string."""
    documents = [json.loads(line) for line in printed.splitlines()]
    if len(documents) == count and all("format" in document for document in documents):
        return ""
    return f"it printed {len(documents)} documents, not {count}"


def measure(arguments, folder):
    """Return the seconds of each run, by method. End the benchmark if a command fails."""
    program = arguments.program.resolve()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KEYHAUL_")}
    environment["KEYHAUL_HOME"] = str(folder / "devices")
    create_backups(program, folder, arguments.backups, environment)
    commands = {
        ONE_CALL: f"'{program}' {arguments.command} many --jobs {arguments.jobs} --format ndjson 2>/dev/null",
        ONE_PROCESS_EACH: (
            f"ls -d many/* | xargs -P{arguments.jobs} -n1 '{program}' {arguments.command} --json 2>/dev/null"
        ),
    }
    expected = expected_output(program, arguments.command, folder, environment)
    checks = {
        ONE_CALL: lambda printed: lines_problem(printed, arguments.backups),
        ONE_PROCESS_EACH: lambda printed: documents_problem(printed, expected),
    }
    times = {method: [] for method in commands}
    for _ in range(arguments.rounds):
        for method, command in commands.items():
            seconds, process = time_command(command, folder, environment)
            if process.returncode:
                sys.exit(f"{method}: ended with {process.returncode}")
            require_work([method], checks[method](process.stdout))
            times[method].append(seconds)
    return times


def main():
    parser = argparse.ArgumentParser(description="Compare one call for many backups with a process for each.")
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--backups", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--verb", dest="command", default="inspect")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        times = measure(arguments, pathlib.Path(folder))
    medians = {method: statistics.median(values) for method, values in times.items()}
    figures = Figures()
    for method, seconds in medians.items():
        rate = arguments.backups / seconds / arguments.jobs
        figures.note(f"{method}: {seconds:.2f} s for {arguments.backups} backups, {rate:.0f} a second and core")
    figures.at_most(
        f"{arguments.command} of {arguments.backups} backups in one call: time compared with xargs -P{arguments.jobs}",
        medians[ONE_CALL] / medians[ONE_PROCESS_EACH], MAX_RATIO, "×",
        f"{medians[ONE_CALL]:.2f} s (one call), {medians[ONE_PROCESS_EACH]:.2f} s (xargs)")
    return figures.finish()


if __name__ == "__main__":
    sys.exit(main())
