#!/usr/bin/env python3
"""Puts figures into a page, between the two lines that mark their place.

    figures_page.py FIGURES PAGE

FIGURES is what the benchmarks wrote where KEYHAUL_FIGURES named a file.
"""

import argparse
import json
import pathlib
import sys


def put(page, mark, lines):
    """Replaces what stands between `<!-- mark -->` and `<!-- end of mark -->`."""
    text = page.read_text(encoding="utf-8")
    first, last = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->\n"
    if text.count(first) != 1 or text.count(last) != 1:
        sys.exit(f"error: {page} does not have the marks of {mark} once each")
    head, rest = text.split(first)
    page.write_text(head + first + "\n" + "".join(f"{line}\n" for line in lines) + "\n" + last + rest.split(last)[1],
                    encoding="utf-8")


def table(figures):
    yield "| what | figure | goal | reached | beside |"
    yield "| --- | --- | --- | --- | --- |"
    for each in figures:
        reached = {True: "yes", False: "**missed**", None: ""}[each["reached"]]
        yield f"| {each['name']} | {each['figure']} | {each['goal']} | {reached} | {each['beside']} |"


def main():
    parser = argparse.ArgumentParser(description="Put the figures of the benchmarks into a page.")
    parser.add_argument("figures", type=pathlib.Path)
    parser.add_argument("page", type=pathlib.Path)
    arguments = parser.parse_args()
    figures = [json.loads(line) for line in arguments.figures.read_text(encoding="utf-8").splitlines()]
    put(arguments.page, "figures", list(table(figures)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
