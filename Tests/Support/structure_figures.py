#!/usr/bin/env python3
"""Counts what the sources are divided into: targets, files, lines, imports of own modules, `package` declarations.

    structure_figures.py [FOLDER]

Reads the targets from `swift package dump-package`, so it measures any commit. Tests, benchmarks and examples do not count.
"""

import json
import pathlib
import re
import statistics
import subprocess
import sys

IMPORT = re.compile(r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|private|fileprivate)\s+)?import\s+(?:\w+\s+)?(\w+)\s*$",
                    re.M)
PACKAGE = re.compile(r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:\w+\s+)*?package(?:\(set\))?\s+(?!import\b)", re.M)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]).resolve()
    dump = json.loads(subprocess.run(["swift", "package", "dump-package"], cwd=folder, check=True, stdout=subprocess.PIPE).stdout)
    targets = {}
    for target in dump["targets"]:
        path = folder / (target.get("path") or "Sources/" + target["name"])
        if target["type"] != "test" and "Tests" not in path.parts and "docs" not in path.parts:
            targets[target["name"]] = path
    files = sorted({file for path in targets.values() for file in path.rglob("*.swift") if ".docc" not in str(file)})
    texts = [file.read_text(encoding="utf-8") for file in files]
    lines = [text.count("\n") for text in texts]
    imports = [module for text in texts for module in IMPORT.findall(text) if module in targets]
    print(f"targets                     {len(targets):>6}")
    print(f"Swift files                 {len(files):>6}")
    print(f"lines                       {sum(lines):>6}")
    print(f"mean and median of a file   {round(statistics.mean(lines)):>6} {round(statistics.median(lines)):>6}")
    print(f"imports of own modules      {len(imports):>6}")
    print(f"`package` declarations      {sum(len(PACKAGE.findall(text)) for text in texts):>6}")


if __name__ == "__main__":
    main()
