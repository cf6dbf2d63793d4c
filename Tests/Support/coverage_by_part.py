#!/usr/bin/env python3
"""Print how much of each part of the library the tests run, from `llvm-cov export -summary-only` on standard input.

Prints a row for each part, and the files with the most untested lines in the parts that have a goal. Exit 1 if a goal
is missed.
"""

import json
import re
import sys
from collections import defaultdict

# The minimum percentages of lines and of regions: in the parts that decide which items may move, and that decrypt them.
GOALS = {"KeychainFormats": (95, 90), "KeychainCrypto": (95, 90), "KeychainRules": (100, 90)}
# Folders that are counted separately from their target.
SEPARATE_FOLDERS = ("KeychainCrypto/Certificates", "Backups/Difference")
SHOWN_FILE_COUNT = 8


def percent(covered, count):
    """Return the covered percentage, or 100 if there is nothing to cover."""
    return 100 * covered / count if count else 100.0


def main():
    parts = defaultdict(lambda: {"lines": [0, 0], "regions": [0, 0]})
    untested = []
    for file in json.load(sys.stdin)["data"][0]["files"]:
        match = re.search(r"/Sources/\w+/((\w+)/.+)$", file["filename"])
        # The package dependencies also have a Sources folder.
        if not match or "/checkouts/" in file["filename"]:
            continue
        part = next((folder for folder in SEPARATE_FOLDERS if match[1].startswith(folder + "/")), match[2])
        for kind in ("lines", "regions"):
            parts[part][kind][0] += file["summary"][kind]["covered"]
            parts[part][kind][1] += file["summary"][kind]["count"]
        lines = file["summary"]["lines"]
        if part in GOALS and lines["covered"] < lines["count"]:
            untested.append((lines["count"] - lines["covered"], match[1]))
    missed = [part for part in GOALS if part not in parts]
    print(f"{'part':<20} {'lines':>7} {'run':>7} {'regions run':>12}   goal")
    for part, counts in sorted(parts.items()):
        lines, regions = percent(*counts["lines"]), percent(*counts["regions"])
        goal = GOALS.get(part)
        print(f"{part:<20} {counts['lines'][1]:>7} {lines:>6.1f}% {regions:>11.1f}%   "
              + (f"{goal[0]}%, {goal[1]}%" if goal else ""))
        if goal and (lines < goal[0] or regions < goal[1]):
            missed.append(part)
    print("\nthe files with the most untested lines:")
    for count, name in sorted(untested, reverse=True)[:SHOWN_FILE_COUNT]:
        print(f"{count:>7}  {name}")
    if missed:
        print(f"error: below their goal, or not measured: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
