#!/usr/bin/env python3
"""How what every verb takes grows with the items of a keychain, and with the files of a backup.

    bench_growth.py PROGRAM [--items 100000] [--files 300000] [--rounds 3] [--page docs/Performance.md]

Every verb runs with 1,000, 10,000, … items, and 1,000, 10,000, … files of a thousand bytes, up to these numbers. A figure is
that of the quickest of the runs, in seconds of the processors, and the most memory of any; the largest step runs once. The
exponent is the slope of a line through the steps, both on logarithmic scales: 1 is work that grows as what there is to do
does. That of all steps and that without the first, a part of which is the program's start, have the same goal. --page writes
the tables between the marks of that page. Exit 1 where an exponent is too large, with no margin for the noise of the machine.
"""

import argparse
import math
import pathlib
import sys
import tempfile

from bench_files import timed
from bench_shop import Shop
from figures import Figures
from figures_page import conditions, put

MOST = 1.05
FIRST = 1_000
BYTES = 1_000


def steps(most):
    """1,000, 10,000 and so on, and the last one, whatever it is."""
    found = [FIRST]
    while found[-1] * 10 < most:
        found.append(found[-1] * 10)
    return found + [most] if most > found[-1] else found


def exponent(points):
    """The slope of the line that is nearest to the points, as (count, seconds), on logarithmic scales."""
    places = [(math.log(count), math.log(seconds)) for count, seconds in points]
    x, y = (sum(place[axis] for place in places) / len(places) for axis in (0, 1))
    return sum((a - x) * (b - y) for a, b in places) / sum((a - x) ** 2 for a, _ in places)


def of_items(shop, count, turn):
    if turn == 0:
        shop.describe(count)
    yield from shop.item_verbs(turn)


def of_files(shop, count, turn):
    if turn == 0:
        shop.files("files", count, BYTES)
    # A seal is made once: it stays in the backup.
    yield from (verb for verb in shop.file_verbs("files", turn) if turn == 0 or verb[0] != "seal")


def grown(program, verbs, counts, rounds):
    """Seconds and megabytes by verb and count."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="keyhaul-bench-") as folder:
        for count in counts:
            place = pathlib.Path(folder, str(count))
            place.mkdir()
            shop = Shop(program, place)
            for turn in range(rounds if count < counts[-1] else 1):
                for name, words in verbs(shop, count, turn):
                    run = timed(shop.command(*words), settle=False)
                    before = found.setdefault(name, {}).get(count)
                    found[name][count] = (
                        min(run.processor, before[0]) if before else run.processor,
                        max(run.megabytes, before[1]) if before else run.megabytes)
                    Figures.note(f"{name}, {count:,}: {run.processor:.2f} s, {run.megabytes:.0f} MB")
    return found


def table(what, found, counts):
    yield f"| command | {' | '.join(f'{count:,} {what}' for count in counts)} | exponent | from {counts[1]:,} |"
    yield "| --- |" + " --- |" * (len(counts) + 2)
    for name, by_count in found.items():
        cells = [f"{by_count[count][0]:.2f} s, {by_count[count][1]:.0f} MB" for count in counts]
        cells += [f"{slope:.2f}{' (missed)' if slope > MOST else ''}" for slope in slopes(by_count, counts)]
        yield f"| `{name}` | {' | '.join(cells)} |"


def slopes(by_count, counts):
    """The exponent of all steps, and of those above the first."""
    points = [(count, by_count[count][0]) for count in counts]
    return exponent(points), exponent(points[1:])


def main():
    parser = argparse.ArgumentParser(description="How the verbs grow with items and with files.")
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--items", type=int, default=100_000, help="the most items, 0 for none")
    parser.add_argument("--files", type=int, default=300_000, help="the most files, 0 for none")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--page", type=pathlib.Path, help="a page to write the tables to")
    arguments = parser.parse_args()
    figures, lines = Figures(), []
    for what, verbs, most in (("items", of_items, arguments.items), ("files", of_files, arguments.files)):
        if most == 0:
            continue
        counts = steps(most)
        if len(counts) < 3:
            parser.error(f"an exponent needs more than {10 * FIRST:,} {what}")
        found = grown(arguments.program, verbs, counts, arguments.rounds)
        for name, by_count in found.items():
            seconds, megabytes = by_count[counts[-1]]
            for first, slope in zip(counts, slopes(by_count, counts)):
                figures.at_most(
                    f"{name} from {first:,} to {counts[-1]:,} {what}, exponent", slope, MOST, "",
                    f"at the end {seconds:.2f} s of CPU time, {megabytes:.0f} MB")
        lines += [*table(what, found, counts), ""]
    if arguments.page:
        put(arguments.page, "growth", [conditions(arguments.program.resolve()), "", *lines[:-1]])
    return figures.conclude()


if __name__ == "__main__":
    sys.exit(main())
