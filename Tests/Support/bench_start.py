#!/usr/bin/env python3
"""Measure the CPU time of commands that do almost nothing.

    bench_start.py PROGRAM [--rounds 31] [--before PROGRAM]

The figures are medians. The programs take turns, and a Python interpreter is measured for comparison. Exit 1 if a goal
is missed.
"""

import statistics
import sys
import tempfile

from bench_data import Workspace, parser, programs
from bench_files import text_problem, timed
from figures import Figures

# The limits in milliseconds.
MAX_MILLISECONDS = {"--version": 6, "--help": 15, "device list": 15}
DEVICE_COUNT = 3
# The arguments and the build that identify a command. Python is not a build.
PYTHON = ("python3 -c pass", "")


def main():
    arguments = parser("Time the start of the program.", rounds=31).parse_args()
    builds = programs(arguments)
    runs = {}
    with tempfile.TemporaryDirectory(prefix="keyhaul-bench-") as folder:
        workspace = Workspace(arguments.program, folder)
        for number in range(DEVICE_COUNT):
            workspace.run("device", "create", f"phone-{number}")
        # `python3 -c pass` prints nothing that could be checked, so its version is checked first.
        version = f"Python {sys.version.split()[0]}"
        timed([sys.executable, "--version"], sync_first=False, check=lambda printed: text_problem(printed, version))
        commands = {PYTHON: [sys.executable, "-c", "pass"]}
        for name, program in builds.items():
            for arguments_text in MAX_MILLISECONDS:
                home = ["--home", str(workspace.home)] if arguments_text == "device list" else []
                commands[arguments_text, name] = [str(program.resolve()), *arguments_text.split(), *home]
        for _ in range(arguments.rounds):
            for key, command in commands.items():
                check = None if key == PYTHON else lambda printed: "" if printed.strip() else "it printed nothing"
                runs.setdefault(key, []).append(timed(command, sync_first=False, check=check))
    milliseconds = {
        key: 1000 * statistics.median(run.cpu_seconds for run in key_runs) for key, key_runs in runs.items()
    }
    elapsed = {key: 1000 * statistics.median(run.seconds for run in key_runs) for key, key_runs in runs.items()}
    python = f"python3 -c pass {milliseconds[PYTHON]:.1f} ms"
    figures = Figures()
    for arguments_text, limit in MAX_MILLISECONDS.items():
        comparison = f"{elapsed[arguments_text, 'keyhaul']:.1f} ms elapsed; {python}"
        if arguments.before:
            comparison += f"; before {milliseconds[arguments_text, 'before']:.1f} ms"
        figures.at_most(f"{arguments_text}: CPU time", milliseconds[arguments_text, "keyhaul"], limit, "ms", comparison)
    return figures.finish()


if __name__ == "__main__":
    sys.exit(main())
