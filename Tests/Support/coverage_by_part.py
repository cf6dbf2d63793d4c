#!/usr/bin/env python3
"""How much of each part of the library is run by tests, of what `llvm-cov export -summary-only` writes to standard input.

Prints a row a part, and the files of the parts with a goal in which most is not run. Exit 1 where a goal is missed.
"""

import json
import re
import sys
from collections import defaultdict

# Percent of lines and of regions, for the parts in which a mistake lets an item move or opens a wrong one.
GOALS = {"KeychainFormats": (95, 90), "KeychainCrypto": (95, 90), "KeychainRules": (100, 90)}
# Folders that are counted apart from their target.
APART = ("KeychainCrypto/Certificates", "Backups/Difference")
FILES_SHOWN = 8


def percent(pair):
    covered, count = pair
    return 100 * covered / count if count else 100.0


def main():
    parts = defaultdict(lambda: {"lines": [0, 0], "regions": [0, 0]})
    left = []
    for file in json.load(sys.stdin)["data"][0]["files"]:
        found = re.search(r"/Sources/\w+/((\w+)/.+)$", file["filename"])
        # The packages that this one depends on have sources too.
        if not found or "/checkouts/" in file["filename"]:
            continue
        part = next((folder for folder in APART if found[1].startswith(folder + "/")), found[2])
        for kind in ("lines", "regions"):
            parts[part][kind][0] += file["summary"][kind]["covered"]
            parts[part][kind][1] += file["summary"][kind]["count"]
        lines = file["summary"]["lines"]
        if part in GOALS and lines["covered"] < lines["count"]:
            left.append((lines["count"] - lines["covered"], found[1]))
    missed = [part for part in GOALS if part not in parts]
    print(f"{'part':<20} {'lines':>7} {'run':>7} {'regions run':>12}   goal")
    for part, counts in sorted(parts.items()):
        lines, regions = percent(counts["lines"]), percent(counts["regions"])
        goal = GOALS.get(part)
        print(f"{part:<20} {counts['lines'][1]:>7} {lines:>6.1f}% {regions:>11.1f}%   "
              + (f"{goal[0]}%, {goal[1]}%" if goal else ""))
        if goal and (lines < goal[0] or regions < goal[1]):
            missed.append(part)
    print("\nlines that no test runs, where there are most:")
    for count, name in sorted(left, reverse=True)[:FILES_SHOWN]:
        print(f"{count:>7}  {name}")
    if missed:
        print(f"error: below their goal, or not measured: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
