#!/usr/bin/env python3
"""How long `keyhaul export --files` takes for every file of an encrypted backup, beside the published readers, and how
much memory.

    bench_files.py PROGRAM [--files 6000] [--megabytes 300] [--rounds 1] [--mvt PATH/mvt-ios] [--before PROGRAM]

The backup is made again, of one app's files that are all of one size, with next to no rounds of key derivation: what is
timed is the files. Each run is a process of its own, in turns, so that all see the same machine, and begins when the disk
has nothing left to write. Ours ends when the disk keeps every file, theirs when the system's memory has them. What each
wrote is compared byte for byte. Exit 1 where a target is missed.
"""

import argparse
import hashlib
import importlib.metadata
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace

from figures import Figures

PASSWORD = b"correct horse"
DOMAIN = "AppDomain-org.example.files"
OURS = "keyhaul"
# The time of the fastest reader over ours, and our memory at its peak.
LEAST_RATIO, MOST_MEGABYTES = 2.0, 100


def noise(numbers, byte_count):
    """Random bytes in parts of a mebibyte."""
    for start in range(0, byte_count, 1 << 20):
        yield numbers.randbytes(min(1 << 20, byte_count - start))


def make(archive, count, byte_count):
    from keychain_backup.forge import Forge
    from keychain_backup.recipe import File, Recipe

    numbers = random.Random("bench")
    files = [File(DOMAIN, "")] + [
        File(DOMAIN, f"Documents/{number % 97}/{number}.bin", b"".join(noise(numbers, byte_count))) for number in range(count)]
    Forge(replace(Recipe(), password=PASSWORD, files=files, has_keychain=False), [], seed="bench").build().write(archive)


def read_with_iphone_backup_decrypt(archive, target):
    import iphone_backup_decrypt

    backup = iphone_backup_decrypt.EncryptedBackup(backup_directory=str(archive), passphrase=PASSWORD)
    backup.extract_files(domain_like=DOMAIN, output_folder=str(target), preserve_folders=True)


def read_with_pyiosbackup(archive, target):
    import pyiosbackup

    pyiosbackup.Backup.from_path(archive, PASSWORD.decode()).unback(target)


def read_with_dissect(archive, target):
    from dissect.target.filesystems.itunes import ITunesFilesystem
    from dissect.target.loaders.itunes import ITunesBackup

    backup = ITunesBackup(archive)
    backup.open(PASSWORD.decode())
    files = ITunesFilesystem(backup)
    for file in backup.files():
        if file.flags == 1:
            place = target / file.domain / file.relative_path
            place.parent.mkdir(parents=True, exist_ok=True)
            with files.get(file.translated_path).open() as source, open(place, "wb") as copy:
                shutil.copyfileobj(source, copy)


READERS = {
    "iphone_backup_decrypt": read_with_iphone_backup_decrypt, "pyiosbackup": read_with_pyiosbackup,
    "dissect.target": read_with_dissect,
}


@dataclass
class Run:
    """What a process took: seconds on the clock and of the processors, and the most memory it had at once."""

    seconds: float
    processor: float
    megabytes: float


def require_work(command, wrong):
    """Ends the benchmark if a command ended with 0 and has not done its work: its time says nothing then."""
    if wrong:
        sys.exit(f"error: {command[0]} ended with 0, and its work is not done: {wrong}")


def other_text(printed, expected):
    """What is wrong with the output of a command that prints one line."""
    return "" if printed.decode("utf-8", "replace").strip() == expected else f"it printed {len(printed)} bytes, and not what it has to"


def timed(command, settle=True, check=None):
    """Runs a command to its end. `settle` has the disk write first what it has to write.

    `check` gets what the command printed, looks at what it left, and says what is wrong, or nothing. The time of a command of
    which something is wrong never counts: the benchmark ends.
    """
    if settle:
        os.sync()
    with tempfile.TemporaryFile() as printed:
        output = printed if check else subprocess.DEVNULL
        started = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE)
        with process.stderr as errors:
            said = errors.read()
        _, status, usage = os.wait4(process.pid, 0)
        taken = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"error: {command[0]} ended with {process.returncode}: {said.decode('utf-8', 'replace')[-300:]}")
        if check:
            printed.seek(0)
            require_work(command, check(printed.read()))
    # Bytes on Apple's systems, kilobytes elsewhere.
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return Run(taken, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit)


def contents(folder):
    """The digests of all files, sorted: each reader has names and folders of its own."""
    return sorted(
        hashlib.sha256(path.read_bytes()).hexdigest() for path in pathlib.Path(folder).rglob("*")
        if path.is_file() and not path.name.startswith(("keyhaul-files.", "Info.", "Manifest.", "Status.")))


def commands(arguments, archive, secret, target):
    """How each is started, by its name and version."""
    programs = {OURS: arguments.program} | ({"before": arguments.before} if arguments.before else {})
    found = {
        name: [
            str(program.resolve()), "export", str(archive), "--files", str(target), "--domain", DOMAIN, "--password-file",
            str(secret), "--no-input"]
        for name, program in programs.items()}
    for name in READERS:
        found[f"{name} {importlib.metadata.version(name)}"] = [
            sys.executable, __file__, str(arguments.program), "--reader", name, str(archive), str(target)]
    if arguments.mvt:
        found["mvt-ios"] = [
            str(arguments.mvt.absolute()), "--disable-update-check", "--disable-indicator-update-check", "decrypt-backup",
            "-p", PASSWORD.decode(), "-d", str(target), str(archive)]
    return found


def measure(arguments, folder):
    """The runs of each, by its name."""
    archive, target, secret = (folder / name for name in ("backup", "out", "password"))
    # By a process of its own: what is started by a large one counts as being as large.
    subprocess.run([
        sys.executable, __file__, str(arguments.program), "--make", str(archive), "--files", str(arguments.files),
        "--megabytes", str(arguments.megabytes)], check=True)
    secret.touch(mode=0o600)
    secret.write_bytes(PASSWORD)
    runs, expected = {}, []

    def check(_):
        found = contents(target)
        if not expected:
            expected.append(found)
        return "" if len(found) == arguments.files and found == expected[0] else "its files are not those that ours wrote"

    for _ in range(arguments.rounds):
        for name, command in commands(arguments, archive, secret, target).items():
            runs.setdefault(name, []).append(timed(command, check=check))
            shutil.rmtree(target)
    return runs


def main():
    parser = argparse.ArgumentParser(description="Time keyhaul export --files beside published readers.")
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--files", type=int, default=6_000)
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=1, help="runs of each, in turns")
    parser.add_argument("--before", type=pathlib.Path, help="another build, to compare with")
    parser.add_argument("--mvt", type=pathlib.Path, metavar="MVT-IOS", help="mvt's program, in an environment of its own")
    parser.add_argument("--make", metavar="ARCHIVE", help=argparse.SUPPRESS)
    parser.add_argument("--bytes", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--reader", nargs=3, metavar=("NAME", "ARCHIVE", "TARGET"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.make:
        each = arguments.bytes or arguments.megabytes * 1_000_000 // arguments.files
        make(pathlib.Path(arguments.make), arguments.files, each)
        return 0
    if arguments.reader:
        name, *places = arguments.reader
        READERS[name](*map(pathlib.Path, places))
        return 0
    with tempfile.TemporaryDirectory(prefix="keyhaul-bench-") as folder:
        runs = measure(arguments, pathlib.Path(folder))
    medians = {name: statistics.median(run.seconds for run in of) for name, of in runs.items()}
    peak = max(run.megabytes for run in runs[OURS])
    print(f"     {arguments.files:,} encrypted files of {arguments.megabytes:,} MB together, {arguments.rounds} rounds:")
    for name, of in runs.items():
        processor = statistics.median(run.processor for run in of)
        print(f"     {name:30} {medians[name]:7.2f} s, CPU time {processor:7.2f} s, "
              f"{max(run.megabytes for run in of):6.1f} MB")
    fastest = min((name for name in medians if name not in (OURS, "before")), key=medians.get)
    ratio = medians[fastest] / medians[OURS]
    figures = Figures()
    figures.at_least(
        f"export of {arguments.files:,} files: time of the fastest other reader compared with Keyhaul", ratio, LEAST_RATIO, "×", fastest)
    figures.at_most(f"export of {arguments.files:,} files: peak memory", peak, MOST_MEGABYTES, "MB")
    return figures.conclude()


if __name__ == "__main__":
    sys.exit(main())
