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
    """Return the text of a file of this repository."""
    return (TOP / path).read_text(encoding="utf-8")


def find_differences(version):
    """Return a message for each file whose version differs from the program's version."""
    problems = []
    for path, pattern in PATTERNS.items():
        versions = re.findall(pattern, read(path), re.M)
        if path == "CHANGELOG.md":
            # The other headings are those of earlier versions.
            versions = versions[:1]
        if not versions:
            problems.append(f"{path} contains no version")
        problems += [f"{path} has version {file_version}, but the program has {version}"
                     for file_version in versions if file_version != version]
    return problems


def find_unreleased_changes(version):
    """Return a message if the changelog does not start with a dated section for this version: ## 1.2.3 - 2026-11-20."""
    headings = re.findall(r"^## (.*)$", read("CHANGELOG.md"), re.M)
    if re.fullmatch(rf"\[?{re.escape(version)}\]? - \d{{4}}-\d\d-\d\d", headings[0]):
        return []
    return [f"the changelog starts with {headings[0]!r} instead of {version} and a date"]


def main():
    """Compare the versions. End with an error that lists every difference."""
    version = re.search(r'static let number = "([^"]+)"', read(REFERENCE))[1]
    problems = find_differences(version)
    if "--release" in sys.argv[1:]:
        problems += find_unreleased_changes(version)
    if problems:
        sys.exit("\n".join(f"error: {problem}" for problem in problems))
    print(f"{version} in {len(PATTERNS) + 1} files")


if __name__ == "__main__":
    main()
