#!/usr/bin/env python3
"""How much memory every verb has for a keychain of very many items, and how long a plan of a device takes.

    bench_verbs.py PROGRAM [--items 100000] [--rounds 1] [--before PROGRAM]

What reads an item and goes on has a goal that does not grow with the items; what has to hold all of them, a goal for each
item. The others are shown without one. --before runs another build of the program on its own devices. Exit 1 where a target
is missed.
"""

import pathlib
import statistics
import sys
import tempfile

from bench_files import timed
from bench_shop import EXPORT_FORMS, LARGEST_ITEM, Shop, parser
from figures import Figures

# In megabytes: of what streams, and bytes an item of what holds all.
STREAMING = ("verify", "backup", *(f"export --format {form}" for form in EXPORT_FORMS))
STREAMED = 64 + 2 * LARGEST_ITEM / 1e6
HOLDING = (
    "device create", "inspect --list", "inspect --list --json", "plan", "plan --compare", "plan --compare --json",
    "plan DEVICE", "restore", "diff",
)
HELD = 1_500
COMPARED = "plan DEVICE --compare"
MOST_SECONDS, MOST_MEGABYTES = 4, 200


def measured(program, items, rounds):
    """The runs of each verb, by its name."""
    runs = {}
    with tempfile.TemporaryDirectory(prefix="keyhaul-bench-") as folder:
        shop = Shop(program, folder)
        shop.describe(items)
        for turn in range(rounds):
            for name, words in shop.item_verbs(turn):
                runs.setdefault(name, []).append(timed(shop.command(*words), settle=False))
    return runs


def main():
    arguments = parser("The memory of every verb for very many items.", rounds=1, items=100_000).parse_args()
    runs = measured(arguments.program, arguments.items, arguments.rounds)
    before = measured(arguments.before, arguments.items, arguments.rounds) if arguments.before else {}
    figures = Figures()
    for name, of in runs.items():
        processor, peak = statistics.median(run.processor for run in of), max(run.megabytes for run in of)
        beside = f"{processor:.2f} s of CPU time"
        if name in before:
            beside += (f"; before {max(run.megabytes for run in before[name]):.0f} MB, "
                       f"{statistics.median(run.processor for run in before[name]):.2f} s")
        what = f"{name}, {arguments.items:,} items"
        if name == COMPARED:
            figures.at_most(f"{what}: CPU time", processor, MOST_SECONDS, "s")
            figures.at_most(f"{what}: peak memory", peak, MOST_MEGABYTES, "MB", beside)
        elif name in STREAMING:
            figures.at_most(f"{what}: peak memory", peak, STREAMED, "MB", beside)
        elif name in HOLDING:
            figures.at_most(f"{what}: peak memory", peak, HELD * arguments.items / 1e6, "MB", beside)
        else:
            figures.without_goal(f"{what}: peak memory", peak, "MB", beside)
    return figures.conclude()


if __name__ == "__main__":
    sys.exit(main())
