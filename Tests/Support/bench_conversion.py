#!/usr/bin/env python3
"""Compare the time of `keyhaul convert` from a folder to each kind of archive with that of the system's `tar`.

    bench_conversion.py PROGRAM [--megabytes 300] [--rounds 3] [--before PROGRAM]

Encrypted files cannot be compressed, so a zip and a tar.gz should take about as long as a tar. Python's zipfile and
tarfile read all written archives, and every file is compared. The programs take turns. The figures are CPU times. Exit
1 if a goal is missed.
"""

import hashlib
import pathlib
import statistics
import sys
import tarfile
import tempfile
import zipfile

from bench_data import Workspace, parser, programs
from bench_files import timed
from figures import Figures

SUFFIXES = ("tar", "zip", "tar.gz")
FILE_COUNT = 50
# The largest ratio of the CPU time to that of the system's tar.
MAX_RATIO = 1.5


def digests(path):
    """Return the digests of the files in an archive, by name without the leading folder."""
    if path.name.endswith("zip"):
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
            contents = {name: archive.read(name) for name in archive.namelist()}
    else:
        with tarfile.open(path) as archive:
            contents = {entry.name: archive.extractfile(entry).read() for entry in archive if entry.isfile()}
    return {name.split("/", 1)[1]: hashlib.sha256(content).hexdigest() for name, content in contents.items()}


def archive_problem(path, expected):
    """Return what is wrong with an archive of a backup, or an empty string."""
    return (
        "" if path.is_file() and digests(path) == expected else f"{path.name} does not contain the files of the backup"
    )


def main():
    arguments = parser(
        "Measure the time of keyhaul convert to each kind of archive.", rounds=3, megabytes=300
    ).parse_args()
    builds = programs(arguments)
    runs = {}
    with tempfile.TemporaryDirectory(prefix="keyhaul-bench-") as folder:
        workspace = Workspace(arguments.program, folder)
        backup = pathlib.Path(workspace.path("backup"))
        workspace.create_file_backup("backup", FILE_COUNT, arguments.megabytes * 1_000_000 // FILE_COUNT)
        expected = {
            str(path.relative_to(backup)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in backup.rglob("*") if path.is_file()}
        for _ in range(arguments.rounds):
            target = pathlib.Path(workspace.path("copy"))
            runs.setdefault("tar", []).append(
                timed(
                    ["tar", "-cf", str(target), "-C", folder, "backup"],
                    check=lambda _: archive_problem(target, expected)
                ).processor
            )
            target.unlink()
            for name, program in builds.items():
                for suffix in SUFFIXES:
                    target = pathlib.Path(workspace.path(f"copy.{suffix}"))
                    command = workspace.command("convert", backup, "-o", target, program=str(program.resolve()))
                    runs.setdefault((name, suffix), []).append(
                        timed(command, check=lambda _: archive_problem(target, expected)).processor)
                    target.unlink()
    figures = Figures()
    tar_seconds = statistics.median(runs["tar"])
    figures.note(f"tar -cf of {arguments.megabytes:,} MB takes {tar_seconds:.2f} s of CPU time")
    for name in builds:
        for suffix in SUFFIXES:
            seconds = statistics.median(runs[name, suffix])
            if name == "keyhaul":
                figures.at_most(
                    f"convert of {arguments.megabytes:,} MB, encrypted, to {suffix}: CPU time compared with tar -cf",
                    seconds / tar_seconds, MAX_RATIO, "×", f"{seconds:.2f} s (Keyhaul), {tar_seconds:.2f} s (tar)")
            else:
                figures.note(f"{name}: to {suffix}: {seconds:.2f} s of CPU time, {seconds / tar_seconds:.2f}×")
    return figures.finish()


if __name__ == "__main__":
    sys.exit(main())
