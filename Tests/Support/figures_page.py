#!/usr/bin/env python3
"""Puts figures into a page, between the two lines that mark their place.

    figures_page.py PROGRAM FIGURES PAGE

FIGURES is what the benchmarks of the program wrote where KEYHAUL_FIGURES named a file.
"""

import argparse
import json
import os
import pathlib
import platform
import re
import subprocess
import sys


def conditions(program):
    """The measured version, the machine and its load, in two sentences."""
    version = subprocess.run([program, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[0]
    described = pathlib.Path("/proc/cpuinfo")
    models = re.findall(r"^model name\s*: (.*)$", described.read_text(), re.M) if described.exists() else []
    minutes = os.getloadavg()[2]
    return (f"Measured with {version} on {os.cpu_count()} cores ({models[0] if models else platform.machine()}, "
            f"{platform.system()}). The load average over the last 15 minutes was {minutes:.1f}.")


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
    yield "| subject | figure | goal | reached | for comparison |"
    yield "| --- | --- | --- | --- | --- |"
    for each in figures:
        reached = {True: "yes", False: "**missed**", None: ""}[each["reached"]]
        yield f"| {each['name']} | {each['figure']} | {each['goal']} | {reached} | {each['beside']} |"


def main():
    parser = argparse.ArgumentParser(description="Put the figures of the benchmarks into a page.")
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("figures", type=pathlib.Path)
    parser.add_argument("page", type=pathlib.Path)
    arguments = parser.parse_args()
    figures = [json.loads(line) for line in arguments.figures.read_text(encoding="utf-8").splitlines()]
    put(arguments.page, "figures", [conditions(arguments.program.resolve()), "", *table(figures)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
