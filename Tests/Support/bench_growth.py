#!/usr/bin/env python3
"""Measure how the cost of each command grows with the items of a keychain and the files of a backup.

    bench_growth.py PROGRAM [--items 100000] [--files 300000] [--rounds 3] [--page docs/Performance.md]

Each command runs with 1,000, 10,000, … items, and with 1,000, 10,000, … files of a thousand bytes, up to the given
numbers. Each figure is the minimum CPU time and the maximum memory over all rounds. The largest count runs only once.

The exponent is the slope of a line through the points (count, CPU time) on logarithmic scales: 1 is linear growth. Each
command has two exponents: one of all points, and one of all points except the first, in which the start of the
program takes a large part of the time. Both have the same limit, which has no margin for noise.

--page writes the tables into a page. Exit 1 if an exponent is too large.
"""

import argparse
import math
import pathlib
import sys
import tempfile

from bench_data import Workspace
from bench_files import timed
from figures import Figures
from figures_page import conditions, replace_lines

MAX_EXPONENT = 1.05
FIRST_COUNT = 1_000
FILE_BYTE_COUNT = 1_000


def steps(maximum):
    """Return the counts 1,000, 10,000 and so on, and the maximum."""
    counts = [FIRST_COUNT]
    while counts[-1] * 10 < maximum:
        counts.append(counts[-1] * 10)
    return counts + [maximum] if maximum > counts[-1] else counts


def exponent(points):
    """Return the slope of the regression line through points (count, seconds) on logarithmic scales."""
    log_points = [(math.log(count), math.log(seconds)) for count, seconds in points]
    mean_x, mean_y = (sum(point[axis] for point in log_points) / len(log_points) for axis in (0, 1))
    covariance = sum((x - mean_x) * (y - mean_y) for x, y in log_points)
    variance = sum((x - mean_x) ** 2 for x, _ in log_points)
    return covariance / variance


def item_commands(workspace, count, round_number):
    """Yield the commands that work on items."""
    if round_number == 0:
        workspace.write_description(count)
    yield from workspace.item_commands(round_number)


def file_commands(workspace, count, round_number):
    """Yield the commands that work on files."""
    if round_number == 0:
        workspace.create_file_backup("files", count, FILE_BYTE_COUNT)
    # Only the first round runs `seal`, because the seal stays in the backup.
    yield from (
        command
        for command in workspace.file_commands("files", round_number)
        if round_number == 0 or command[0] != "seal"
    )


def measure_growth(program, commands, counts, rounds):
    """Return the seconds and megabytes of each command and count."""
    costs = {}
    with tempfile.TemporaryDirectory(prefix="keyhaul-bench-") as folder:
        for count in counts:
            count_folder = pathlib.Path(folder, str(count))
            count_folder.mkdir()
            workspace = Workspace(program, count_folder)
            for round_number in range(rounds if count < counts[-1] else 1):
                for name, command in commands(workspace, count, round_number):
                    run = timed(workspace.command(*command), sync_first=False)
                    costs_of_command = costs.setdefault(name, {})
                    seconds, megabytes = costs_of_command.get(count, (run.cpu_seconds, run.megabytes))
                    costs_of_command[count] = min(run.cpu_seconds, seconds), max(run.megabytes, megabytes)
                    Figures.note(f"{name}, {count:,}: {run.cpu_seconds:.2f} s, {run.megabytes:.0f} MB")
    return costs


def table(unit, costs, counts):
    """Yield the lines of a table."""
    yield f"| command | {' | '.join(f'{count:,} {unit}' for count in counts)} | exponent | from {counts[1]:,} |"
    yield "| --- |" + " --- |" * (len(counts) + 2)
    for name, by_count in costs.items():
        cells = [f"{by_count[count][0]:.2f} s, {by_count[count][1]:.0f} MB" for count in counts]
        cells += [f"{slope:.2f}{' (missed)' if slope > MAX_EXPONENT else ''}" for slope in slopes(by_count, counts)]
        yield f"| `{name}` | {' | '.join(cells)} |"


def slopes(by_count, counts):
    """Return the exponent of all points, and the exponent of all points except the first."""
    points = [(count, by_count[count][0]) for count in counts]
    return exponent(points), exponent(points[1:])


def main():
    parser = argparse.ArgumentParser(description="Measure how the cost of commands grows with items and files.")
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--items", type=int, default=100_000, help="the largest number of items, 0 for none")
    parser.add_argument("--files", type=int, default=300_000, help="the largest number of files, 0 for none")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--page", type=pathlib.Path, help="a page to write the tables to")
    arguments = parser.parse_args()
    figures, lines = Figures(), []
    for unit, commands, maximum in (
        ("items", item_commands, arguments.items), ("files", file_commands, arguments.files)
    ):
        if maximum == 0:
            continue
        counts = steps(maximum)
        if len(counts) < 3:
            parser.error(f"an exponent needs more than {10 * FIRST_COUNT:,} {unit}")
        costs = measure_growth(arguments.program, commands, counts, arguments.rounds)
        for name, by_count in costs.items():
            seconds, megabytes = by_count[counts[-1]]
            for first, slope in zip(counts, slopes(by_count, counts)):
                figures.at_most(
                    f"{name} from {first:,} to {counts[-1]:,} {unit}, exponent", slope, MAX_EXPONENT, "",
                    f"at the end {seconds:.2f} s of CPU time, {megabytes:.0f} MB")
        lines += [*table(unit, costs, counts), ""]
    if arguments.page:
        replace_lines(arguments.page, "growth", [conditions(arguments.program.resolve()), "", *lines[:-1]])
    return figures.finish()


if __name__ == "__main__":
    sys.exit(main())
