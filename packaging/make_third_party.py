#!/usr/bin/env python3
"""Prints what a package holds that is not Keyhaul's own, each with its version and its licence's text.

    packaging/make_third_party.py [LIBRARY…]

In the program are the Swift runtime and the packages that Package.resolved names; their licences stand in their checkouts.
LIBRARY is a shared library of Debian's that the package holds beside the program: its package, version and copyright are
those that dpkg has.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent


def said(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def part(title, licence):
    bar = "=" * 78
    return f"{bar}\n{title}\n{bar}\n\n{licence.rstrip()}\n"


def licence_in(folder):
    found = sorted(path for path in folder.glob("LICENSE*") if path.is_file())
    return found[0].read_text(encoding="utf-8") if found else sys.exit(f"error: {folder} has no licence")


def swift():
    version = re.search(r"Swift version (\S+)", said("swift", "--version"))[1]
    place = pathlib.Path(shutil.which("swift")).resolve().parent.parent / "share/swift"
    return part(f"Swift {version}: its runtime, standard library, Foundation and Dispatch, inside the program", licence_in(place))


def packages():
    for pin in json.loads((TOP / "Package.resolved").read_text(encoding="utf-8"))["pins"]:
        name = pin["location"].rsplit("/", 1)[-1].removesuffix(".git")
        if name == "swift-docc-plugin" or name == "swift-docc-symbolkit":
            continue
        yield part(f"{name} {pin['state']['version']}, inside the program", licence_in(TOP / ".build/checkouts" / name))


def debian_package(library):
    """The package whose file this is; on a merged /usr dpkg may know it by the other name."""
    path = pathlib.Path(library).resolve()
    for name in (str(path), str(path).removeprefix("/usr"), "/usr" + str(path)):
        found = subprocess.run(["dpkg", "-S", name], capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.split(":")[0]
    return sys.exit(f"error: no package has {library}")


def main():
    print("What this package holds besides Keyhaul, which is licensed under the Apache License 2.0.\n")
    print(swift())
    for text in packages():
        print(text)
    beside = {}
    for library in sys.argv[1:]:
        beside.setdefault(debian_package(library), []).append(pathlib.Path(library).name)
    # Foundation has ICU inside, by the same licence as Debian's.
    for package, files in sorted(beside.items()):
        version = said("dpkg-query", "-W", "-f", "${Version}", package).strip()
        copyright = pathlib.Path("/usr/share/doc", package, "copyright").read_text(encoding="utf-8")
        print(part(f"{package} {version}, Debian's: {', '.join(sorted(files))}, beside the program", copyright))


if __name__ == "__main__":
    main()
