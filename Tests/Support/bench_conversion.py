#!/usr/bin/env python3
"""How long `keyhaul convert` takes from a folder to one file of each form, for a backup with a password.

    bench_conversion.py PROGRAM [--megabytes 300] [--rounds 3] [--before PROGRAM]

Ciphertext does not become shorter, so a zip and a tar.gz have to take about as long as a tar: that of the system's `tar`, and
ours. What each wrote, tar too, is read by Python's own zipfile and tarfile, and compared byte for byte. Runs are in turns; the figures
are processor seconds.
--before runs another build of the program beside it. Exit 1 where a target is missed.
"""

import hashlib
import pathlib
import statistics
import sys
import tarfile
import tempfile
import zipfile

from bench_files import timed
from bench_shop import Shop, parser, programs
from figures import Figures

FORMS = ("tar", "zip", "tar.gz")
FILES = 50
# Against the system's tar, processor seconds.
MOST = 1.5


def digests(path):
    """Of the payloads in a container, by their names without the folder around them."""
    if path.name.endswith("zip"):
        with zipfile.ZipFile(path) as container:
            assert container.testzip() is None
            found = {name: container.read(name) for name in container.namelist()}
    else:
        with tarfile.open(path) as container:
            found = {entry.name: container.extractfile(entry).read() for entry in container if entry.isfile()}
    return {name.split("/", 1)[1]: hashlib.sha256(content).hexdigest() for name, content in found.items()}


def differing(path, expected):
    """What is wrong with a container of a backup's files."""
    return "" if path.is_file() and digests(path) == expected else f"{path.name} does not hold the files of the backup"


def main():
    arguments = parser("Time keyhaul convert to each form.", rounds=3, megabytes=300).parse_args()
    builds = programs(arguments)
    runs = {}
    with tempfile.TemporaryDirectory(prefix="keyhaul-bench-") as folder:
        shop = Shop(arguments.program, folder)
        backup = pathlib.Path(shop.path("backup"))
        shop.files("backup", FILES, arguments.megabytes * 1_000_000 // FILES)
        expected = {
            str(path.relative_to(backup)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in backup.rglob("*") if path.is_file()}
        for _ in range(arguments.rounds):
            target = pathlib.Path(shop.path("copy"))
            runs.setdefault("tar", []).append(timed(
                ["tar", "-cf", str(target), "-C", folder, "backup"], check=lambda _: differing(target, expected)).processor)
            target.unlink()
            for name, program in builds.items():
                for form in FORMS:
                    target = pathlib.Path(shop.path(f"copy.{form}"))
                    command = shop.command("convert", backup, "-o", target, program=str(program.resolve()))
                    runs.setdefault((name, form), []).append(
                        timed(command, check=lambda _: differing(target, expected)).processor)
                    target.unlink()
    figures = Figures()
    tar = statistics.median(runs["tar"])
    figures.note(f"tar -cf of {arguments.megabytes:,} MB takes {tar:.2f} s of CPU time")
    for name in builds:
        for form in FORMS:
            taken = statistics.median(runs[name, form])
            if name == "keyhaul":
                figures.at_most(
                    f"convert of {arguments.megabytes:,} MB, encrypted, to {form}: CPU time compared with tar -cf", taken / tar, MOST, "×",
                    f"{taken:.2f} s (Keyhaul), {tar:.2f} s (tar)")
            else:
                figures.note(f"{name}: to {form}: {taken:.2f} s of CPU time, {taken / tar:.2f}×")
    return figures.conclude()


if __name__ == "__main__":
    sys.exit(main())
