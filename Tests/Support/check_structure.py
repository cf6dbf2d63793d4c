#!/usr/bin/env python3
"""The structure of the sources: which part imports which, and which folder of a part uses which.

    check_structure.py [--draw] [FOLDER]

Imports are read from the sources, targets from Package.swift. Inside a target a folder uses another one where one of
its files names a type, a protocol or a free function that the other declares; what both declare does not count. Exit 1
where an arrow points upwards or in a circle, or where a folder, a target or a file is larger than the figures below.
--draw prints the graph, lowest part first.
"""

import argparse
import pathlib
import re
import sys
from collections import defaultdict

MOST_FILES = 15
MOST_LINES_OF_A_TARGET = 9_000
MOST_LINES_OF_A_FILE = 300

# From the bottom: a part imports parts that stand before it, and nothing else of ours.
PARTS = [
    "ParallelWork", "Files", "SecretMemory", "KeychainFormats", "ShownNames", "TextLayout", "DataProtection", "PageLayout", "Certificates",
    "KeychainRules",
    "KeychainDumps", "KeychainDatabases", "KeychainStore", "SecItem", "VirtualDevice", "BackupArchive", "BackupWriting", "BackupRewriting",
    "ArchivedKeychain", "Migration",
    "KeyhaulKit", "Reports", "KeychainServices", "Security", "LocalAuthentication", "KeyhaulTesting", "CommandSession",
    "CommandArguments", "ManyBackups", "ExportVerb", "SimulatorVerbs", "ItemVerbs", "keyhaul",
]

# Larger than a target should be, and how large it may be: what is left to be divided does not grow meanwhile.
LARGER_FOR_NOW = {}

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
TEXT = re.compile(r'#*"""(?:.*?)"""#*|"(?:\\.|[^"\\\n])*"', re.S)
DECLARED = re.compile(
    r"^(?:@[\w.()\", ]+\s+)*(?:(?:public|package|internal|final|indirect|nonisolated)\s+)*"
    r"(?:struct|class|enum|actor|protocol|typealias|func|let|var)\s+(\w+)", re.M)
IMPORTED = re.compile(r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|private|fileprivate)\s+)?"
                      r"import\s+(?:(?:struct|class|enum|protocol|func)\s+)?(\w+)", re.M)


class Source:
    def __init__(self, path, root):
        self.path = path.relative_to(root)
        self.text = path.read_text(encoding="utf-8")
        self.lines = self.text.count("\n")
        # Interpolations stay: what they name is used.
        code = COMMENT.sub("", self.text)
        quiet = TEXT.sub(lambda match: " ".join(re.findall(r"\\\((.*?)\)", match.group(), re.S)), code)
        self.imports = set(IMPORTED.findall(code))
        self.declares = set(DECLARED.findall(quiet))
        # A word in lower case counts where it is called: elsewhere it is most often a name of the function's own.
        self.names = set(re.findall(r"\b[A-Z]\w+", quiet)) | set(re.findall(r"(?<![\w.])[a-z]\w+(?=\()", quiet))

    def folder(self, target):
        inside = self.path.relative_to(target)
        return "." if len(inside.parts) == 1 else str(inside.parent)


def circles(uses):
    """The nodes that reach themselves, with one way round."""
    found = []
    for start in sorted(uses):
        stack, seen = [(start, [start])], set()
        while stack:
            node, way = stack.pop()
            for following in sorted(uses.get(node, ())):
                if following == start:
                    if start == min(way):
                        found.append(way + [start])
                    stack = []
                    break
                if following not in seen:
                    seen.add(following)
                    stack.append((following, way + [following]))
    return found


def folder_uses(files, target):
    owners = defaultdict(set)
    for file in files:
        for name in file.declares:
            owners[name].add(file.folder(target))
    owner = {name: next(iter(places)) for name, places in owners.items() if len(places) == 1}
    uses, why = defaultdict(set), {}
    for file in files:
        here = file.folder(target)
        uses[here]
        for name in sorted(file.names & owner.keys()):
            if owner[name] != here:
                uses[here].add(owner[name])
                why.setdefault((here, owner[name]), f"{file.path.name} names {name}")
    return uses, why


def lowest_first(uses):
    order, left = [], dict(uses)
    while left:
        free = sorted(node for node in left if not (left[node] - set(order) - {node}))
        if not free:
            return order + sorted(left)
        order += free
        for node in free:
            del left[node]
    return order


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--draw", action="store_true")
    parser.add_argument("folder", nargs="?", default=pathlib.Path(__file__).resolve().parents[2], type=pathlib.Path)
    arguments = parser.parse_args()
    root, findings, checked = arguments.folder.resolve(), [], 0
    present = sorted(path.name for path in (root / "Sources").iterdir() if any(path.rglob("*.swift")))
    for name in present:
        if name not in PARTS:
            findings.append(f"Sources/{name}: this part has no place in the order of {pathlib.Path(__file__).name}")
    for part in PARTS:
        target = pathlib.Path("Sources") / part
        files = [Source(path, root) for path in sorted((root / target).rglob("*.swift"))]
        if not files:
            findings.append(f"{target}: there is nothing of it")
        below = set(PARTS[:PARTS.index(part)])
        imported = set()
        for file in files:
            checked += 1
            # What is built on Apple's systems alone imports Apple's modules, which have the names of two of ours.
            ours = set() if "Apple" in file.path.parts else file.imports & set(PARTS)
            imported |= ours
            for upward in sorted(ours - below):
                findings.append(f"{file.path}: imports {upward}, which does not stand below {part}")
            if file.lines > MOST_LINES_OF_A_FILE:
                findings.append(f"{file.path}: {file.lines} lines; at most {MOST_LINES_OF_A_FILE}")
        total = sum(file.lines for file in files)
        most = LARGER_FOR_NOW.get(part, MOST_LINES_OF_A_TARGET)
        if total > most:
            findings.append(f"{target}: {total} lines; at most {most}")
        places = defaultdict(int)
        for file in files:
            places[file.folder(target)] += 1
        for folder, count in sorted(places.items()):
            if count > MOST_FILES:
                findings.append(f"{target / folder}: {count} files; at most {MOST_FILES}")
        uses, why = folder_uses(files, target)
        for way in circles(uses):
            steps = "; ".join(why[step] for step in zip(way, way[1:]))
            findings.append(f"{target}: folders use each other: {' -> '.join(way)} ({steps})")
        if arguments.draw:
            print(f"{part}  ({len(files)} files, {total:,} lines)  -> {', '.join(p for p in PARTS if p in imported) or 'nothing'}")
            for folder in lowest_first(uses):
                print(f"    {folder}  ({places[folder]})  -> {', '.join(sorted(uses[folder])) or 'nothing'}")
    for finding in findings:
        print(finding)
    print(f"structure: {checked} files checked, {len(findings)} findings", file=sys.stderr)
    sys.exit(1 if findings or not checked else 0)


if __name__ == "__main__":
    main()
