#!/usr/bin/env python3
"""Check the structure of the sources: the layers, and the folders inside each target.

    check_structure.py [--draw] [FOLDER]

A target imports only targets of lower layers. Every target and test target depends in Package.swift on the targets that
it imports. Otherwise, whether a build succeeds can depend on what happens to be compiled first. Inside a target,
folders must not use each other in a cycle. A folder uses another folder if one of its files names a type, a protocol or
a free function that only the other folder declares. Exit 1 if an import violates the layers or is not declared, or if
folders form a cycle.

A package type with @inlinable members is @usableFromInline. Otherwise the compiler ignores @inlinable, and other
modules call generic members without specialization, which is several times slower.

--draw prints the graph, lowest layer first.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
from collections import Counter, defaultdict

# The layers, from the bottom. A target imports only targets of lines above its own.
LAYERS = [
    ["Library/Basics"],
    ["Library/KeychainFormats"],
    ["Library/KeychainCrypto"],
    ["Library/KeychainRules"],
    ["Library/Keychains"],
    ["Library/Backups", "Library/VirtualDevice"],
    ["Library/KeyhaulKit", "Apple/KeychainServices"],
    ["Library/DeviceServer", "Library/Explanations", "Apple/Security", "Apple/LocalAuthentication"],
    ["Library/Reports"],
    ["CommandLine/keyhaul", "Apple/KeyhaulTesting"],
    ["Apple/KeyhaulServing"],
]
LAYER_OF_TARGET = {target.split("/")[1]: number for number, layer in enumerate(LAYERS) for target in layer}

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
TEXT = re.compile(r'#*"""(?:.*?)"""#*|"(?:\\.|[^"\\\n])*"', re.S)
DECLARED = re.compile(
    r"^(?:@[\w.()\", ]+\s+)*(?:(?:public|package|internal|final|indirect|nonisolated)\s+)*"
    r"(?:struct|class|enum|actor|protocol|typealias|func|let|var)\s+(\w+)", re.M)
IMPORTED = re.compile(r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|private|fileprivate)\s+)?"
                      r"import\s+(?:(?:struct|class|enum|protocol|func)\s+)?(\w+)", re.M)

# A type at the top level of a file, up to its closing brace.
PACKAGE_TYPE = re.compile(
    r"^((?:@\w+(?:\([^)]*\))?\s+)*)package\s+(?:final\s+|indirect\s+)?(?:struct|class|enum)\s+(\w+).*?^}", re.M | re.S)


class Source:
    """A Swift file, with its imports, its declarations, and the names that it uses."""

    def __init__(self, path, root):
        self.path = path.relative_to(root)
        self.text = path.read_text(encoding="utf-8")
        self.lines = self.text.count("\n")
        # Interpolations are kept, because they use names.
        code = COMMENT.sub("", self.text)
        code_without_text = TEXT.sub(lambda match: " ".join(re.findall(r"\\\((.*?)\)", match.group(), re.S)), code)
        self.imports = set(IMPORTED.findall(code))
        self.declares = set(DECLARED.findall(code_without_text))
        # A lower-case name counts only if it is called. Other lower-case names are usually local.
        self.names = set(re.findall(r"\b[A-Z]\w+", code_without_text)) | set(
            re.findall(r"(?<![\w.])[a-z]\w+(?=\()", code_without_text)
        )

    def ineffective_inlining(self):
        """Return the names of package types whose @inlinable members other modules cannot inline."""
        return [
            type.group(2) for type in PACKAGE_TYPE.finditer(COMMENT.sub("", self.text))
            if "@inlinable" in type.group() and "@usableFromInline" not in type.group(1)
        ]

    def folder(self, target):
        """Return the folder of the file inside its target."""
        inside = self.path.relative_to(target)
        return "." if len(inside.parts) == 1 else str(inside.parent)


def cycles(uses):
    """Return the cycles of a graph, each as a path that ends where it starts."""
    result = []
    for start in sorted(uses):
        stack, seen = [(start, [start])], set()
        while stack:
            node, path = stack.pop()
            for next_node in sorted(uses.get(node, ())):
                if next_node == start:
                    # The same cycle is met again from its other nodes.
                    if start == min(path):
                        result.append(path + [start])
                    stack = []
                    break
                if next_node not in seen:
                    seen.add(next_node)
                    stack.append((next_node, path + [next_node]))
    return result


def folder_uses(files, target):
    """Return the folders that each folder uses, and an example for each use."""
    declaring_folders = defaultdict(set)
    for file in files:
        for name in file.declares:
            declaring_folders[name].add(file.folder(target))
    only_folder = {name: next(iter(folders)) for name, folders in declaring_folders.items() if len(folders) == 1}
    uses, examples = {file.folder(target): set() for file in files}, {}
    for file in files:
        folder = file.folder(target)
        for name in sorted(file.names & only_folder.keys()):
            used_folder = only_folder[name]
            if used_folder != folder:
                uses[folder].add(used_folder)
                examples.setdefault((folder, used_folder), f"{file.path.name} names {name}")
    return uses, examples


def lowest_first(uses):
    """Return the nodes of a graph in an order in which each node comes after the nodes that it uses."""
    order, remaining = [], dict(uses)
    while remaining:
        ready = sorted(node for node in remaining if not (remaining[node] - set(order) - {node}))
        if not ready:
            return order + sorted(remaining)
        order += ready
        for node in ready:
            del remaining[node]
    return order


def undeclared_imports(manifest, root):
    """Return a finding for each import of a target of the package that the importing target does not depend on.

    `manifest` is the output of `swift package dump-package`.
    """
    targets = {target["name"]: target for target in json.loads(manifest)["targets"]}
    findings = []
    for name, target in targets.items():
        available, waiting = set(), [name]
        while waiting:
            next_name = waiting.pop()
            if next_name in targets and next_name not in available:
                available.add(next_name)
                for dependency in targets[next_name]["dependencies"]:
                    waiting += [value[0] for kind, value in dependency.items() if kind in ("byName", "target")]
        folder = root / target.get("path", f"Tests/{name}")
        excluded = [folder / path for path in target["exclude"]]
        for path in sorted(folder.rglob("*.swift")):
            if not any(part in excluded for part in [path, *path.parents]):
                imported = set(IMPORTED.findall(COMMENT.sub("", path.read_text(encoding="utf-8"))))
                findings += [
                    f"{path.relative_to(root)}: imports {module}, and {name} does not depend on it in Package.swift"
                    for module in sorted((imported & targets.keys()) - available)
                ]
    return findings


class Target:
    """The Swift files of a target, the targets that they import, and the uses between its folders."""

    def __init__(self, name, root):
        self.path, self.name = pathlib.Path("Sources") / name, name.split("/")[1]
        self.files = [Source(path, root) for path in sorted((root / self.path).rglob("*.swift"))]
        self.uses, self.examples = folder_uses(self.files, self.path)

    @staticmethod
    def imported_targets(file):
        """Return the targets of the package that a file imports."""
        # Folders named Apple are built only on Apple's systems. Some of Apple's modules have the names of our targets.
        is_for_apple_systems = "Apple" in file.path.parts[3:]
        return set() if is_for_apple_systems else file.imports & LAYER_OF_TARGET.keys()

    def findings(self):
        """Yield the findings about the target's files, imports and folders."""
        if not self.files:
            yield f"{self.path}: there are no Swift files"
        layer = LAYER_OF_TARGET[self.name]
        for file in self.files:
            for module in sorted(self.imported_targets(file)):
                if LAYER_OF_TARGET[module] >= layer:
                    yield f"{file.path}: imports {module}, which is not in a layer below {self.name}"
            for type_name in file.ineffective_inlining():
                yield f"{file.path}: {type_name} has @inlinable members, and is not @usableFromInline"
        for cycle in cycles(self.uses):
            steps = "; ".join(self.examples[step] for step in zip(cycle, cycle[1:]))
            yield f"{self.path}: folders use each other: {' -> '.join(cycle)} ({steps})"

    def draw(self):
        """Print the imported targets, and each folder with the folders that it uses."""
        imported = set().union(*map(self.imported_targets, self.files))
        lowest_first_imports = sorted(imported, key=lambda name: (LAYER_OF_TARGET[name], name))
        line_count = sum(file.lines for file in self.files)
        print(
            f"{self.name}  ({len(self.files)} files, {line_count:,} lines) "
            f" -> {', '.join(lowest_first_imports) or 'nothing'}"
        )
        file_counts = Counter(file.folder(self.path) for file in self.files)
        for folder in lowest_first(self.uses):
            print(f"    {folder}  ({file_counts[folder]})  -> {', '.join(sorted(self.uses[folder])) or 'nothing'}")


def targets_without_layer(root, names):
    """Yield a finding for each target that is not in a layer."""
    for path in sorted((root / "Sources").glob("*/*")):
        if str(path.relative_to(root / "Sources")) not in names and any(path.rglob("*.swift")):
            yield f"{path.relative_to(root)}: this target has no layer in {pathlib.Path(__file__).name}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--draw", action="store_true")
    parser.add_argument("folder", nargs="?", default=pathlib.Path(__file__).resolve().parents[2], type=pathlib.Path)
    arguments = parser.parse_args()
    root = arguments.folder.resolve()
    names = [name for layer in LAYERS for name in layer]
    findings, file_count = list(targets_without_layer(root, names)), 0
    for name in names:
        target = Target(name, root)
        file_count += len(target.files)
        findings += target.findings()
        if arguments.draw:
            target.draw()
    if (root / "Package.swift").exists():
        command = ["swift", "package", "dump-package"]
        manifest = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
        findings += undeclared_imports(manifest, root)
    for finding in findings:
        print(finding)
    print(f"structure: {file_count} files checked, {len(findings)} findings", file=sys.stderr)
    sys.exit(1 if findings or not file_count else 0)


if __name__ == "__main__":
    main()
