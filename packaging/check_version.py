#!/usr/bin/env python3
"""Check that the version is the same in every file that contains it.

    packaging/check_version.py [--release]

The reference is Sources/CommandLine/keyhaul/Output/ProgramVersion.swift. The packages, the manual pages and the image
get the version from the program. With --release, the changelog must start with a dated section for this version,
without unreleased changes.
"""

import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
REFERENCE = "Sources/CommandLine/keyhaul/Output/ProgramVersion.swift"
PATTERNS = {
    "packaging/python/src/keyhaul/_version.py": r'^__version__ = "([^"]+)"',
    "packaging/homebrew/keyhaul.rb": r'\btag: "v([^"]+)"',
    "packaging/nix/keyhaul.nix": r'^  version = "([^"]+)";',
    "packaging/actions/setup/action.yml": r'^    default: "([\d.]+)"',
    "CHANGELOG.md": r"^## \[?(\d[\d.]*)\]?",
    "README.md": r"\bkeyhaul[-_](\d+\.\d+\.\d+)",
    "docs/Install.md": r"\bkeyhaul[-_:](\d+\.\d+\.\d+)",
}


def read(path):
    return (TOP / path).read_text(encoding="utf-8")


def main():
    version = re.search(r'static let number = "([^"]+)"', read(REFERENCE))[1]
    problems = []
    for path, pattern in PATTERNS.items():
        versions = re.findall(pattern, read(path), re.M)
        if path == "CHANGELOG.md":
            versions = versions[:1]
        if not versions:
            problems.append(f"{path} contains no version")
        problems += [f"{path} has version {other}, but the program has {version}"
                     for other in versions if other != version]
    if "--release" in sys.argv[1:]:
        headings = re.findall(r"^## (.*)$", read("CHANGELOG.md"), re.M)
        if not re.fullmatch(rf"\[?{re.escape(version)}\]? - \d{{4}}-\d\d-\d\d", headings[0]):
            problems.append(f"the changelog starts with {headings[0]!r} instead of {version} and a date")
    if problems:
        sys.exit("\n".join(f"error: {problem}" for problem in problems))
    print(f"{version} in {len(PATTERNS) + 1} files")


if __name__ == "__main__":
    main()
