#!/usr/bin/env python3
"""How long `keyhaul export --files` takes for every file of an encrypted backup, beside a published reader, and how much
memory.

    bench_files.py PROGRAM [--files 20000] [--megabytes 1000] [--rounds 3]

The backup is made anew, of one app's files that are all of one size, with next to no rounds of key derivation: what is
timed is the files. Each run is a process of its own, in turns, so that all see the same machine. What both wrote is
compared byte for byte. Exit 1 where a target is missed.
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
from dataclasses import replace

PASSWORD = b"correct horse"
DOMAIN = "AppDomain-org.example.files"
READER = "iphone_backup_decrypt"
# The reader's time over ours, and our memory at its peak.
LEAST_RATIO, MOST_MEGABYTES = 2.0, 100


def make(archive, count, byte_count):
    from keychain_backup.forge import Forge
    from keychain_backup.recipe import File, Recipe

    numbers = random.Random("bench")
    files = [File(DOMAIN, "")] + [
        File(DOMAIN, f"Documents/{number % 97}/{number}.bin", numbers.randbytes(byte_count)) for number in range(count)]
    Forge(replace(Recipe(), password=PASSWORD, files=files, has_keychain=False), [], seed="bench").build().write(archive)


def read_with(archive, target):
    import iphone_backup_decrypt

    backup = iphone_backup_decrypt.EncryptedBackup(backup_directory=str(archive), passphrase=PASSWORD)
    print(backup.extract_files(domain_like=DOMAIN, output_folder=str(target), preserve_folders=True))


def timed(command):
    """Seconds, and the most memory that the process had at once, in megabytes."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    taken = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"error: {command[0]} ended with {process.returncode}: {said.decode('utf-8', 'replace')[-300:]}")
    # Bytes on Apple's systems, kilobytes elsewhere.
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return taken, usage.ru_maxrss / unit


def contents(folder):
    """The digests of all files by their names, which every reader keeps."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in pathlib.Path(folder).rglob("*.bin")}


def main():
    parser = argparse.ArgumentParser(description="Time keyhaul export --files beside a published reader.")
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--megabytes", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each, in turns")
    parser.add_argument("--make", metavar="ARCHIVE", help=argparse.SUPPRESS)
    parser.add_argument("--reader", nargs=2, metavar=("ARCHIVE", "TARGET"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    byte_count = arguments.megabytes * 1_000_000 // arguments.files
    if arguments.make:
        make(pathlib.Path(arguments.make), arguments.files, byte_count)
        return 0
    if arguments.reader:
        read_with(*map(pathlib.Path, arguments.reader))
        return 0
    with tempfile.TemporaryDirectory(prefix="keyhaul-bench-") as folder:
        archive, ours, theirs, secret = (pathlib.Path(folder) / name for name in ("backup", "ours", "theirs", "password"))
        # By a process of its own: what is started by a large one counts as being as large.
        subprocess.run([
            sys.executable, __file__, str(arguments.program), "--make", str(archive), "--files", str(arguments.files),
            "--megabytes", str(arguments.megabytes)], check=True)
        secret.touch(mode=0o600)
        secret.write_bytes(PASSWORD)
        export = [str(arguments.program.resolve()), "export", str(archive), "--files", str(ours), "--domain", DOMAIN,
                  "--password-file", str(secret), "--no-input"]
        times, memory = {"keyhaul": [], READER: []}, {"keyhaul": [], READER: []}
        for turn in range(arguments.rounds):
            for name, command in (("keyhaul", export), (READER, [
                    sys.executable, __file__, str(arguments.program), "--reader", str(archive), str(theirs)])):
                taken, megabytes = timed(command)
                times[name].append(taken)
                memory[name].append(megabytes)
            if turn == 0:
                found = contents(ours)
                if len(found) != arguments.files or found != contents(theirs):
                    sys.exit("error: the two don't agree on the files")
            shutil.rmtree(ours)
            shutil.rmtree(theirs)
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    ratio, peak = medians[READER] / medians["keyhaul"], max(memory["keyhaul"])
    what = f"{arguments.files:,} encrypted files of {arguments.megabytes:,} MB together"
    version = importlib.metadata.version(READER)
    missed = (ratio < LEAST_RATIO) + (peak > MOST_MEGABYTES)
    print(f"ok   export --files of {what}: {medians['keyhaul']:.2f} s; {READER} {version}: {medians[READER]:.2f} s")
    print(f"{'ok  ' if ratio >= LEAST_RATIO else 'MISS'} {READER} takes {ratio:.2f} times as long  "
          f"at least {LEAST_RATIO:.2f} times")
    print(f"{'ok  ' if peak <= MOST_MEGABYTES else 'MISS'} memory at its peak {peak:.1f} MB  at most {MOST_MEGABYTES} MB")
    print(f"{3 - missed} passed, {missed} failed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
