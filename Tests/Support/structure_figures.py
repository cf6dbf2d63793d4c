#!/usr/bin/env python3
"""Count the parts of the sources, and constructs that should be rare.

    structure_figures.py [FOLDER]

The targets are those of `swift package dump-package`, whatever folders a commit uses. Tests, benchmarks and examples do
not count. All figures are found in the text of the files, without a compiler:

- targets, Swift files, lines, and the mean and median number of lines of a file
- imports of own modules: imports of these targets
- `package` declarations
- types that describe an item: types whose name contains "Item", and types that store an item's identity
- wrappers of keys: the types in KEY_WRAPPER_TYPES
- `do throws` blocks
- switches over the source: switches with two of the cases `.device`, `.archive` and `.dump`
- public declarations: those of the modules that `import KeyhaulKit` makes visible
"""

import json
import pathlib
import re
import statistics
import subprocess
import sys

IMPORT = re.compile(
    r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|private|fileprivate)\s+)?import\s+(?:\w+\s+)?(\w+)\s*$",
    re.M)
PACKAGE = re.compile(r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:\w+\s+)*?package(?:\(set\))?\s+(?!import\b)", re.M)

TYPE = re.compile(
    r"^[ \t]*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|private|fileprivate|internal|final|indirect|open)\s+)*"
    r"(?:struct|class|enum|actor|protocol)\s+(\w+)",
    re.M,
)
IDENTITY = re.compile(r"^[ \t]+(?:(?:public|package|private|fileprivate|private\(set\))\s+)*(?:let|var)\s+\w+:\s*"
                      r"(?:ItemDescriptor|Identity|KeychainItem)\??\s*$", re.M)
PUBLIC = re.compile(r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:\w+\s+)*?(?:public|open)\s+(?!import\b|extension\b)", re.M)
EXPORTED = re.compile(r"^@_exported\s+(?:public\s+)?import\s+(\w+)", re.M)
# Types that exist only to share or pass on a key or a secret, with their names in this and earlier commits.
KEY_WRAPPER_TYPES = {
    "HandedOver", "HeldKey", "HeldKeys", "DerivedKey", "SharedForecast", "NewKey", "SharedClassKeys", "HeldSecret",
    "ReusablePassword"}
SOURCES = ("device", "archive", "dump")


def switches_over_source(text):
    """Return the number of switches with two of the cases of `SOURCES`, found by indentation."""
    lines, count = text.splitlines(), 0
    for start, line in enumerate(lines):
        if not re.search(r"\bswitch\b.*\{\s*$", line):
            continue
        indentation, cases = len(line) - len(line.lstrip()), set()
        for inner in lines[start + 1:]:
            if (
                inner.strip()
                and len(inner) - len(inner.lstrip()) <= indentation
                and not inner.lstrip().startswith("case")
            ):
                break
            cases |= {name for name in SOURCES if re.match(rf"\s*case\b.*\.{name}\b", inner)}
        count += len(cases) >= 2
    return count


def indentation(match):
    """Return the number of characters before the first word of a match."""
    return len(match.group()) - len(match.group().lstrip())


def types_about_items(text):
    """Return the number of types whose name contains "Item" or that store an item's identity."""
    declared = [(match.start(), indentation(match), match.group(1)) for match in TYPE.finditer(text)]
    found = {name for _, _, name in declared if "Item" in name}
    for match in IDENTITY.finditer(text):
        # The property belongs to the last type above it that is indented less.
        enclosing = [
            name for start, depth, name in declared if start < match.start() and depth < indentation(match)]
        found.update(enclosing[-1:])
    return len(found)


def exported_modules(module, texts_by_module, seen=()):
    """Return the modules that an import of this module makes visible."""
    found = {module}
    for text in texts_by_module.get(module, []):
        for exported in EXPORTED.findall(text):
            if exported in texts_by_module and exported not in seen:
                found |= exported_modules(exported, texts_by_module, (*seen, module))
    return found


def swift_files(path):
    """Return the Swift files in a target's folder, without the code of tutorials in documentation catalogs."""
    return [file for file in sorted(path.rglob("*.swift")) if ".docc" not in str(file.relative_to(path))]


def measured_targets(folder):
    """Return the folders of the targets that count, by name."""
    command = ["swift", "package", "dump-package"]
    manifest = json.loads(subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE).stdout)
    targets = {}
    for target in manifest["targets"]:
        path = pathlib.PurePath(target.get("path") or "Sources/" + target["name"])
        if target["type"] != "test" and "Tests" not in path.parts and "docs" not in path.parts:
            targets[target["name"]] = folder / path
    return targets


def public_declaration_count(targets):
    """Return the number of public declarations that `import KeyhaulKit` makes visible, 0 without such a target."""
    texts_by_module = {
        name: [file.read_text(encoding="utf-8") for file in swift_files(path)] for name, path in targets.items()}
    visible_modules = exported_modules("KeyhaulKit", texts_by_module)
    return sum(len(PUBLIC.findall(text)) for name in visible_modules for text in texts_by_module.get(name, []))


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]).resolve()
    targets = measured_targets(folder)
    files = sorted({file for path in targets.values() for file in swift_files(path)})
    texts = [file.read_text(encoding="utf-8") for file in files]
    lines = [text.count("\n") for text in texts]
    imports = [module for text in texts for module in IMPORT.findall(text) if module in targets]
    print(f"targets                     {len(targets):>6}")
    print(f"Swift files                 {len(files):>6}")
    print(f"lines                       {sum(lines):>6}")
    print(f"mean and median of a file   {round(statistics.mean(lines)):>6} {round(statistics.median(lines)):>6}")
    print(f"imports of own modules      {len(imports):>6}")
    print(f"`package` declarations      {sum(len(PACKAGE.findall(text)) for text in texts):>6}")
    print(f"types that describe an item {sum(map(types_about_items, texts)):>6}")
    type_names = [name for text in texts for name in TYPE.findall(text)]
    print(f"wrappers of keys            {sum(name in KEY_WRAPPER_TYPES for name in type_names):>6}")
    print(f"`do throws` blocks          {sum(text.count('do throws') for text in texts):>6}")
    print(f"switches over the source    {sum(map(switches_over_source, texts)):>6}")
    print(f"public declarations         {public_declaration_count(targets):>6}")


if __name__ == "__main__":
    main()
