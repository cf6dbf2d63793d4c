#!/usr/bin/env python3
"""How long the program takes before it has anything to do.

    bench_start.py PROGRAM [--rounds 31] [--before PROGRAM]

Processor time, medians of runs in turns, beside an interpreter that everyone has. Exit 1 where a target is missed.
"""

import pathlib
import statistics
import sys
import tempfile

from bench_files import other_text, timed
from bench_shop import Shop, parser, programs
from figures import Figures

# In milliseconds.
MOST = {"--version": 6, "--help": 15, "device list": 15}
DEVICES = 3


def main():
    arguments = parser("Time the start of the program.", rounds=31).parse_args()
    builds = programs(arguments)
    runs = {}
    with tempfile.TemporaryDirectory(prefix="keyhaul-bench-") as folder:
        shop = Shop(arguments.program, folder)
        for number in range(DEVICES):
            shop.run("device", "create", f"phone-{number}")
        # What does nothing is known by what it says of itself.
        version = f"Python {sys.version.split()[0]}"
        timed([sys.executable, "--version"], settle=False, check=lambda printed: other_text(printed, version))
        commands = {("python3 -c pass", ""): [sys.executable, "-c", "pass"]}
        for name, program in builds.items():
            for words in MOST:
                home = ["--home", str(shop.home)] if words == "device list" else []
                commands[words, name] = [str(program.resolve()), *words.split(), *home]
        for _ in range(arguments.rounds):
            for key, command in commands.items():
                check = None if key[1] == "" else lambda printed: "" if printed.strip() else "it printed nothing"
                runs.setdefault(key, []).append(timed(command, settle=False, check=check))
    milliseconds = {key: 1000 * statistics.median(run.processor for run in of) for key, of in runs.items()}
    clock = {key: 1000 * statistics.median(run.seconds for run in of) for key, of in runs.items()}
    python = f"python3 -c pass {milliseconds['python3 -c pass', '']:.1f} ms"
    figures = Figures()
    for words, most in MOST.items():
        beside = f"{clock[words, 'keyhaul']:.1f} ms elapsed; {python}"
        if arguments.before:
            beside += f"; before {milliseconds[words, 'before']:.1f} ms"
        figures.at_most(f"{words}: CPU time", milliseconds[words, "keyhaul"], most, "ms", beside)
    return figures.conclude()


if __name__ == "__main__":
    sys.exit(main())
