#!/usr/bin/env python3
"""How many backups a second one call about many reads, beside one process for each (`xargs -P`).

    bench_fleet.py PROGRAM [--backups 200] [--jobs 2] [--rounds 5] [--verb inspect]

The backups are copies of one that the program makes of a bundled device, without a password, half of them folders and half
in one file. Both ways run in turns, each several times, so that they see the same machine; the figure is the ratio of the
medians. Exit 1 where one call is slower, or gives other codes.
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

# A little more than 1: two runs of the same thing differ by as much.
MOST = 1.05


def make(program, folder, count, environment):
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


def timed(command, folder, environment):
    started = time.perf_counter()
    done = subprocess.run(command, shell=True, cwd=folder, env=environment, stdout=subprocess.PIPE, check=False)
    return time.perf_counter() - started, done


def documents(program, verb, folder, environment):
    """The bytes of one document for each backup, each from a call that is not timed."""
    said = b""
    for path in sorted((folder / "many").iterdir()):
        command = [program, verb, f"many/{path.name}", "--json"]
        said += subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    return said


def wrong_documents(printed, expected):
    """What is wrong with the documents of processes that write at once: their parts may stand in any order, and how long each
    took is another number every time."""
    found, wanted = (collections.Counter(said.translate(None, b"0123456789.")) for said in (printed, expected))
    return "" if found == wanted else f"it printed {len(printed)} bytes, not the documents of {len(expected)}"


def wrong_lines(printed, count):
    """What is wrong with one document a line, one for each backup."""
    lines = [json.loads(line) for line in printed.splitlines()]
    return "" if len(lines) == count and all("format" in line for line in lines) else f"it printed {len(lines)} documents, not {count}"


def main():
    parser = argparse.ArgumentParser(description="One call about many backups, and a process for each.")
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--backups", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--verb", default="inspect")
    arguments = parser.parse_args()
    program = arguments.program.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("KEYHAUL_")}
        environment["KEYHAUL_HOME"] = str(folder / "devices")
        make(program, folder, arguments.backups, environment)
        ways = {
            "one call": f"'{program}' {arguments.verb} many --jobs {arguments.jobs} --format ndjson 2>/dev/null",
            "a process each": f"ls -d many/* | xargs -P{arguments.jobs} -n1 '{program}' {arguments.verb} --json 2>/dev/null",
        }
        expected = documents(program, arguments.verb, folder, environment)
        checks = {
            "one call": lambda printed: wrong_lines(printed, arguments.backups),
            "a process each": lambda printed: wrong_documents(printed, expected),
        }
        times = {way: [] for way in ways}
        for _ in range(arguments.rounds):
            for way, command in ways.items():
                seconds, done = timed(command, folder, environment)
                if done.returncode:
                    print(f"{way}: ended with {done.returncode}", file=sys.stderr)
                    return 1
                require_work([way], checks[way](done.stdout))
                times[way].append(seconds)
    medians = {way: statistics.median(values) for way, values in times.items()}
    figures = Figures()
    for way, seconds in medians.items():
        rate = arguments.backups / seconds / arguments.jobs
        figures.note(f"{way}: {seconds:.2f} s for {arguments.backups} backups, {rate:.0f} a second and core")
    figures.at_most(
        f"{arguments.verb} of {arguments.backups} backups in one call: time compared with xargs -P{arguments.jobs}",
        medians["one call"] / medians["a process each"], MOST, "×",
        f"{medians['one call']:.2f} s (one call), {medians['a process each']:.2f} s (xargs)")
    return figures.conclude()


if __name__ == "__main__":
    sys.exit(main())
