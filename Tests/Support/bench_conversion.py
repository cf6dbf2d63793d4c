#!/usr/bin/env python3
"""Compare the time of `keyhaul convert` from a folder to each kind of archive with the time of the system's `tar`.

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
# The maximum ratio of Keyhaul's CPU time to the CPU time of the system's tar.
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
    """Return the problem with an archive of a backup, or an empty string."""
    if path.is_file() and digests(path) == expected:
        return ""
    return f"{path.name} does not contain the files of the backup"


def archiving_seconds(command, target, expected):
    """Run a command that writes an archive. Return its CPU time, and delete the archive."""
    run = timed(command, check=lambda _: archive_problem(target, expected))
    target.unlink()
    return run.cpu_seconds


def measure(workspace, builds, rounds):
    """Return the CPU times of `tar`, and of each build and kind of archive."""
    backup = pathlib.Path(workspace.path("backup"))
    expected = {
        str(path.relative_to(backup)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in backup.rglob("*") if path.is_file()}
    tar_times, keyhaul_times = [], {}
    for _ in range(rounds):
        target = pathlib.Path(workspace.path("copy"))
        tar_command = ["tar", "-cf", str(target), "-C", str(workspace.folder), "backup"]
        tar_times.append(archiving_seconds(tar_command, target, expected))
        for name, program in builds.items():
            for suffix in SUFFIXES:
                target = pathlib.Path(workspace.path(f"copy.{suffix}"))
                command = workspace.command("convert", backup, "-o", target, program=str(program.resolve()))
                keyhaul_times.setdefault((name, suffix), []).append(archiving_seconds(command, target, expected))
    return tar_times, keyhaul_times


def main():
    arguments = parser(
        "Measure the time of keyhaul convert to each kind of archive.", rounds=3, megabytes=300
    ).parse_args()
    builds = programs(arguments)
    with tempfile.TemporaryDirectory(prefix="keyhaul-bench-") as folder:
        workspace = Workspace(arguments.program, folder)
        workspace.create_file_backup("backup", FILE_COUNT, arguments.megabytes * 1_000_000 // FILE_COUNT)
        tar_times, keyhaul_times = measure(workspace, builds, arguments.rounds)
    figures = Figures()
    tar_seconds = statistics.median(tar_times)
    figures.note(f"tar -cf of {arguments.megabytes:,} MB takes {tar_seconds:.2f} s of CPU time")
    for name in builds:
        for suffix in SUFFIXES:
            seconds = statistics.median(keyhaul_times[name, suffix])
            if name == "keyhaul":
                figures.at_most(
                    f"convert of {arguments.megabytes:,} MB, encrypted, to {suffix}: CPU time compared with tar -cf",
                    seconds / tar_seconds, MAX_RATIO, "×", f"{seconds:.2f} s (Keyhaul), {tar_seconds:.2f} s (tar)")
            else:
                figures.note(f"{name}: to {suffix}: {seconds:.2f} s of CPU time, {seconds / tar_seconds:.2f}×")
    return figures.finish()


if __name__ == "__main__":
    sys.exit(main())
