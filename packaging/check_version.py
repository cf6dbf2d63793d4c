#!/usr/bin/env python3
"""Compares every place that names the version with the one that decides, Sources/CommandLine/keyhaul/Output/ProgramVersion.swift.

    packaging/check_version.py [--release]

The packages, the manual pages and the image get the version from the program. With --release, the changelog must start with a dated
section for this version and have nothing unreleased.
"""

import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
PLACES = {
    "packaging/python/src/keyhaul/_version.py": r'^__version__ = "([^"]+)"',
    "packaging/homebrew/keyhaul.rb": r'\btag: "v([^"]+)"',
    "packaging/nix/keyhaul.nix": r'^  version = "([^"]+)";',
    "packaging/actions/setup/action.yml": r'^    default: "([\d.]+)"',
    "CHANGELOG.md": r"^## \[?(\d[\d.]*)\]?",
    "README.md": r"\bkeyhaul[-_](\d+\.\d+\.\d+)",
    "docs/Install.md": r"\bkeyhaul[-_:](\d+\.\d+\.\d+)",
}


def text(place):
    return (TOP / place).read_text(encoding="utf-8")


def main():
    version = re.search(r'static let number = "([^"]+)"', text("Sources/CommandLine/keyhaul/Output/ProgramVersion.swift"))[1]
    faults = []
    for place, pattern in PLACES.items():
        found = re.findall(pattern, text(place), re.M)
        if place == "CHANGELOG.md":
            found = found[:1]
        if not found:
            faults.append(f"{place} names no version")
        faults += [f"{place} says {other}, the program {version}" for other in found if other != version]
    if "--release" in sys.argv[1:]:
        headings = re.findall(r"^## (.*)$", text("CHANGELOG.md"), re.M)
        if not re.fullmatch(rf"\[?{re.escape(version)}\]? - \d{{4}}-\d\d-\d\d", headings[0]):
            faults.append(f"the changelog begins with {headings[0]!r}, not with {version} and a day")
    if faults:
        sys.exit("\n".join(f"error: {fault}" for fault in faults))
    print(f"{version} in {len(PLACES) + 1} places")


if __name__ == "__main__":
    main()
