#!/usr/bin/env python3
"""How long `keyhaul convert` takes from a folder to one file of each form, for a backup with a password.

    bench_conversion.py PROGRAM [--megabytes 300] [--rounds 3] [--before PROGRAM]

Ciphertext does not become shorter, so a zip and a tar.gz have to take about as long as a tar. What each wrote is read by
Python's own zipfile and tarfile, and compared byte for byte. Runs are in turns; the figures are processor seconds.
--before runs another build of the program beside it. Exit 1 where a target is missed.
"""

import argparse
import hashlib
import pathlib
import statistics
import subprocess
import sys
import tarfile
import tempfile
import zipfile

from bench_files import PASSWORD, timed

FORMS = ("tar", "zip", "tar.gz")
# Against a tar, processor seconds.
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


def main():
    parser = argparse.ArgumentParser(description="Time keyhaul convert to each form.")
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each, in turns")
    parser.add_argument("--before", type=pathlib.Path, help="another build, to compare with")
    arguments = parser.parse_args()
    programs = {"keyhaul": arguments.program} | ({"before": arguments.before} if arguments.before else {})
    runs = {}
    with tempfile.TemporaryDirectory(prefix="keyhaul-bench-") as folder:
        folder = pathlib.Path(folder)
        subprocess.run([
            sys.executable, str(pathlib.Path(__file__).with_name("bench_files.py")), str(arguments.program), "--make",
            str(folder / "backup"), "--files", "50", "--megabytes", str(arguments.megabytes)], check=True)
        expected = {
            str(path.relative_to(folder / "backup")): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in (folder / "backup").rglob("*") if path.is_file()}
        for turn in range(arguments.rounds):
            for name, program in programs.items():
                for form in FORMS:
                    target = folder / f"copy.{form}"
                    command = [str(program.resolve()), "convert", str(folder / "backup"), "-o", str(target), "--no-input"]
                    runs.setdefault((name, form), []).append(timed(command).processor)
                    if turn == 0 and digests(target) != expected:
                        sys.exit(f"error: {form} does not hold the files of the backup")
                    target.unlink()
    missed = 0
    for name in programs:
        tar = statistics.median(runs[name, "tar"])
        print(f"     {name}: {arguments.megabytes:,} MB with a password as tar: {tar:.2f} s of processors")
        for form in FORMS[1:]:
            taken = statistics.median(runs[name, form])
            is_missed = taken > MOST * tar and name == "keyhaul"
            missed += is_missed
            print(f"{'MISS' if is_missed else 'ok  '} {name}: the same as {form}: {taken:.2f} s, {taken / tar:.2f} times "
                  f"a tar  at most {MOST:.2f} times")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
