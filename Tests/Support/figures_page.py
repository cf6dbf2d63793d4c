#!/usr/bin/env python3
"""Write figures into a page, between the two comments that enclose them.

    figures_page.py PROGRAM FIGURES PAGE

FIGURES is the file that the benchmarks wrote, as given in KEYHAUL_FIGURES.
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
    """Return two sentences: one about the measured version and the machine, and one about the machine's load."""
    output = subprocess.run([program, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
    version = output.splitlines()[0]
    cpu_info = pathlib.Path("/proc/cpuinfo")
    models = re.findall(r"^model name\s*: (.*)$", cpu_info.read_text(), re.M) if cpu_info.exists() else []
    processor = models[0] if models else platform.machine()
    _, _, load_of_15_minutes = os.getloadavg()
    return (f"Measured with {version} on {os.cpu_count()} cores ({processor}, {platform.system()}). "
            f"The load average over the last 15 minutes was {load_of_15_minutes:.1f}.")


def replace_lines(page, mark, lines):
    """Replace the lines between `<!-- mark -->` and `<!-- end of mark -->`."""
    text = page.read_text(encoding="utf-8")
    first, last = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->\n"
    if text.count(first) != 1 or text.count(last) != 1:
        sys.exit(f"error: {page} must have the two comments for {mark} once each")
    before, after = text.split(first)[0], text.split(last)[1]
    page.write_text(
        before + first + "\n" + "".join(f"{line}\n" for line in lines) + "\n" + last + after, encoding="utf-8")


def table(figures):
    """Yield the lines of a table of figures."""
    yield "| subject | figure | goal | reached | for comparison |"
    yield "| --- | --- | --- | --- | --- |"
    for figure in figures:
        reached = {True: "yes", False: "**missed**", None: ""}[figure["reached"]]
        yield f"| {figure['name']} | {figure['figure']} | {figure['goal']} | {reached} | {figure['beside']} |"


def main():
    parser = argparse.ArgumentParser(description="Write the figures of the benchmarks into a page.")
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("figures", type=pathlib.Path)
    parser.add_argument("page", type=pathlib.Path)
    arguments = parser.parse_args()
    figures = [json.loads(line) for line in arguments.figures.read_text(encoding="utf-8").splitlines()]
    replace_lines(arguments.page, "figures", [conditions(arguments.program.resolve()), "", *table(figures)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
