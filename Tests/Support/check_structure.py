#!/usr/bin/env python3
"""Checks the structure of the sources: the layers, and the folders inside each target.

    check_structure.py [--draw] [FOLDER]

A target imports targets of lower layers only. Inside a target, folders do not use each other in a circle: a folder uses
another one if one of its files names a type, a protocol or a free function that the other declares. A name that both
declare does not count. Exits with 1 if an import points sideways or upwards, or if folders form a circle. --draw prints
the graph, lowest layer first.
"""

import argparse
import pathlib
import re
import sys
from collections import defaultdict

# From the bottom. A target imports targets of the layers above its own line in this list, and none of its own line.
LAYERS = [
    ["Library/Basics"],
    ["Library/KeychainFormats"],
    ["Library/KeychainCrypto"],
    ["Library/KeychainRules"],
    ["Library/Keychains"],
    ["Library/Backups", "Library/VirtualDevice"],
    ["Library/KeyhaulKit", "Apple/KeychainServices"],
    ["Library/DeviceServer", "Library/Reports", "Apple/Security", "Apple/LocalAuthentication"],
    ["CommandLine/keyhaul", "Apple/KeyhaulTesting"],
    ["Apple/KeyhaulServing"],
]
LAYER = {target.split("/")[1]: number for number, layer in enumerate(LAYERS) for target in layer}

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
    targets = [target for layer in LAYERS for target in layer]
    for path in sorted((root / "Sources").glob("*/*")):
        if str(path.relative_to(root / "Sources")) not in targets and any(path.rglob("*.swift")):
            findings.append(f"{path.relative_to(root)}: this target has no layer in {pathlib.Path(__file__).name}")
    for name in targets:
        target, part = pathlib.Path("Sources") / name, name.split("/")[1]
        files = [Source(path, root) for path in sorted((root / target).rglob("*.swift"))]
        if not files:
            findings.append(f"{target}: there is nothing of it")
        imported = set()
        for file in files:
            checked += 1
            # The folders named Apple are built on Apple's systems only and import Apple's modules, which have names of ours.
            ours = set() if "Apple" in file.path.parts[3:] else file.imports & LAYER.keys()
            imported |= ours
            for upward in sorted(module for module in ours if LAYER[module] >= LAYER[part]):
                findings.append(f"{file.path}: imports {upward}, which is not in a layer below {part}")
        total = sum(file.lines for file in files)
        places = defaultdict(int)
        for file in files:
            places[file.folder(target)] += 1
        uses, why = folder_uses(files, target)
        for way in circles(uses):
            steps = "; ".join(why[step] for step in zip(way, way[1:]))
            findings.append(f"{target}: folders use each other: {' -> '.join(way)} ({steps})")
        if arguments.draw:
            print(f"{part}  ({len(files)} files, {total:,} lines)  -> {', '.join(sorted(imported, key=LAYER.get)) or 'nothing'}")
            for folder in lowest_first(uses):
                print(f"    {folder}  ({places[folder]})  -> {', '.join(sorted(uses[folder])) or 'nothing'}")
    for finding in findings:
        print(finding)
    print(f"structure: {checked} files checked, {len(findings)} findings", file=sys.stderr)
    sys.exit(1 if findings or not checked else 0)


if __name__ == "__main__":
    main()
