#!/usr/bin/env python3
"""Measure the memory of every command for a keychain with very many items, and the time of a plan for a device.

    bench_commands.py PROGRAM [--items 100000] [--rounds 1] [--before PROGRAM]

Commands that read items one by one have one limit for any number of items. Commands that need all items in memory have
a limit for each item. Other commands have no limit. Exit 1 if a goal is missed.
"""

import statistics
import sys
import tempfile

from bench_data import EXPORT_FORMATS, MAX_ITEM_BYTES, Workspace, parser
from bench_files import timed
from figures import Figures

# Commands that read items one by one, and their limit: 64 MB plus twice the size of the largest item.
STREAMING_COMMANDS = ("verify", "backup", *(f"export --format {export_format}" for export_format in EXPORT_FORMATS))
MAX_STREAMING_MEGABYTES = 64 + 2 * MAX_ITEM_BYTES / 1e6
# Commands that need all items in memory, and their limit for each item.
IN_MEMORY_COMMANDS = (
    "device create", "inspect --list", "inspect --list --json", "plan", "plan --compare", "plan --compare --json",
    "plan DEVICE", "restore", "diff")
MAX_BYTES_PER_ITEM = 1_500
TIMED_COMMAND = "plan DEVICE --compare"
MAX_SECONDS, MAX_MEGABYTES = 4, 200


def measure(program, item_count, rounds):
    """Return the runs of each command, by name."""
    runs = {}
    with tempfile.TemporaryDirectory(prefix="keyhaul-bench-") as folder:
        workspace = Workspace(program, folder)
        workspace.write_description(item_count)
        for round_number in range(rounds):
            for name, command in workspace.item_commands(round_number):
                runs.setdefault(name, []).append(timed(workspace.command(*command), sync_first=False))
    return runs


def cost(runs):
    """Return the median CPU time and the largest peak memory of runs."""
    return statistics.median(run.cpu_seconds for run in runs), max(run.megabytes for run in runs)


def main():
    arguments = parser("Measure the memory of every command for very many items.", rounds=1, items=100_000).parse_args()
    runs = measure(arguments.program, arguments.items, arguments.rounds)
    before = measure(arguments.before, arguments.items, arguments.rounds) if arguments.before else {}
    figures = Figures()
    for name, command_runs in runs.items():
        cpu_seconds, peak = cost(command_runs)
        comparison = f"{cpu_seconds:.2f} s of CPU time"
        if name in before:
            cpu_seconds_before, peak_before = cost(before[name])
            comparison += f"; before {peak_before:.0f} MB, {cpu_seconds_before:.2f} s"
        title = f"{name}, {arguments.items:,} items"
        if name == TIMED_COMMAND:
            figures.at_most(f"{title}: CPU time", cpu_seconds, MAX_SECONDS, "s")
            figures.at_most(f"{title}: peak memory", peak, MAX_MEGABYTES, "MB", comparison)
        elif name in STREAMING_COMMANDS:
            figures.at_most(f"{title}: peak memory", peak, MAX_STREAMING_MEGABYTES, "MB", comparison)
        elif name in IN_MEMORY_COMMANDS:
            figures.at_most(f"{title}: peak memory", peak, MAX_BYTES_PER_ITEM * arguments.items / 1e6, "MB", comparison)
        else:
            figures.without_goal(f"{title}: peak memory", peak, "MB", comparison)
    return figures.finish()


if __name__ == "__main__":
    sys.exit(main())
