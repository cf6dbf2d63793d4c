#!/usr/bin/env python3
"""Compare `keyhaul export --files` for all files of an encrypted backup with published readers, in time and memory.

    bench_files.py PROGRAM [--files 6000] [--megabytes 300] [--rounds 1] [--mvt PATH/mvt-ios] [--before PROGRAM]

The backup has files of one size and very low iteration counts, so that the files take nearly all of the time. Each run
is a new process, and the programs take turns. A run starts after all pending writes have reached the disk. Keyhaul's
run ends when its files are on the disk, but a reader's run ends when the system has its files in memory. All written
files are compared. Exit 1 if a goal is missed.
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
KEYHAUL = "keyhaul"
# The minimum ratio of the fastest reader's time to Keyhaul's, and the maximum peak memory.
MIN_RATIO, MAX_MEGABYTES = 2.0, 100


def random_blocks(rng, byte_count):
    """Yield random bytes in blocks of one mebibyte."""
    for start in range(0, byte_count, 1 << 20):
        yield rng.randbytes(min(1 << 20, byte_count - start))


def write_backup(backup_path, count, byte_count):
    """Write a backup with files of one size."""
    from keychain_backup.builder import BackupBuilder
    from keychain_backup.options import BackupOptions, File

    rng = random.Random("bench")
    files = [File(DOMAIN, "")] + [
        File(DOMAIN, f"Documents/{number % 97}/{number}.bin", b"".join(random_blocks(rng, byte_count)))
        for number in range(count)
    ]
    BackupBuilder(
        replace(BackupOptions(), password=PASSWORD, files=files, has_keychain=False), [], seed="bench"
    ).build().write(backup_path)


def read_with_iphone_backup_decrypt(backup_path, target):
    import iphone_backup_decrypt

    backup = iphone_backup_decrypt.EncryptedBackup(backup_directory=str(backup_path), passphrase=PASSWORD)
    backup.extract_files(domain_like=DOMAIN, output_folder=str(target), preserve_folders=True)


def read_with_pyiosbackup(backup_path, target):
    import pyiosbackup

    pyiosbackup.Backup.from_path(backup_path, PASSWORD.decode()).unback(target)


def read_with_dissect(backup_path, target):
    from dissect.target.filesystems.itunes import ITunesFilesystem
    from dissect.target.loaders.itunes import ITunesBackup

    backup = ITunesBackup(backup_path)
    backup.open(PASSWORD.decode())
    files = ITunesFilesystem(backup)
    for file in backup.files():
        if file.flags == 1:
            path = target / file.domain / file.relative_path
            path.parent.mkdir(parents=True, exist_ok=True)
            with files.get(file.translated_path).open() as source, open(path, "wb") as copy:
                shutil.copyfileobj(source, copy)


READERS = {
    "iphone_backup_decrypt": read_with_iphone_backup_decrypt, "pyiosbackup": read_with_pyiosbackup,
    "dissect.target": read_with_dissect,
}


@dataclass
class Run:
    """The cost of one process: elapsed seconds, CPU seconds, and peak memory."""

    seconds: float
    cpu_seconds: float
    megabytes: float


def require_work(command, problem):
    """End the benchmark if a command succeeded without doing its work, because its time would mean nothing."""
    if problem:
        sys.exit(f"error: {command[0]} ended with 0, but did not do its work: {problem}")


def text_problem(printed, expected):
    """Return the problem with the output of a command that should print one line, or an empty string."""
    if printed.decode("utf-8", "replace").strip() == expected:
        return ""
    return f"its {len(printed)} bytes of output are not the expected line"


def timed(command, sync_first=True, check=None):
    """Run a command, and return its cost. With `sync_first`, first write all pending data to the disk.

    `check` is called with the output. It returns the problem with the work of the command, or an empty string. A
    problem ends the benchmark.
    """
    if sync_first:
        os.sync()
    with tempfile.TemporaryFile() as printed:
        output = printed if check else subprocess.DEVNULL
        started = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE)
        with process.stderr as errors:
            error_output = errors.read()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(
                f"error: {command[0]} ended with {process.returncode}: {error_output.decode('utf-8', 'replace')[-300:]}"
            )
        if check:
            printed.seek(0)
            require_work(command, check(printed.read()))
    # Bytes on Apple's systems, kilobytes elsewhere.
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit)


def file_digests(folder):
    """Return the digests of all exported files, sorted. The metadata files of a reader are left out.

    The names are not compared, because each reader has its own.
    """
    return sorted(
        hashlib.sha256(path.read_bytes()).hexdigest() for path in pathlib.Path(folder).rglob("*")
        if path.is_file() and not path.name.startswith(("keyhaul-files.", "Info.", "Manifest.", "Status.")))


def commands(arguments, backup_path, password_file, target):
    """Return the command of each program, by name and version."""
    programs = {KEYHAUL: arguments.program} | ({"before": arguments.before} if arguments.before else {})
    commands_by_name = {
        name: [
            str(program.resolve()), "export", str(backup_path), "--files", str(target), "--domain", DOMAIN,
            "--password-file", str(password_file), "--no-input"]
        for name, program in programs.items()
    }
    for name in READERS:
        commands_by_name[f"{name} {importlib.metadata.version(name)}"] = [
            sys.executable, __file__, str(arguments.program), "--reader", name, str(backup_path), str(target)]
    if arguments.mvt:
        commands_by_name["mvt-ios"] = [
            str(arguments.mvt.absolute()), "--disable-update-check", "--disable-indicator-update-check",
            "decrypt-backup", "-p", PASSWORD.decode(), "-d", str(target), str(backup_path)]
    return commands_by_name


def measure(arguments, folder):
    """Return the runs of each program, by name."""
    backup_path, target, password_file = (folder / name for name in ("backup", "out", "password"))
    # Another process writes the backup, because a process reports at least the peak memory of its parent process.
    subprocess.run([
        sys.executable, __file__, str(arguments.program), "--make", str(backup_path), "--files", str(arguments.files),
        "--megabytes", str(arguments.megabytes)], check=True)
    password_file.touch(mode=0o600)
    password_file.write_bytes(PASSWORD)
    runs, keyhaul_digests = {}, None

    def check(_):
        nonlocal keyhaul_digests
        written_digests = file_digests(target)
        # Keyhaul is the first program.
        if keyhaul_digests is None:
            keyhaul_digests = written_digests
        is_complete = len(written_digests) == arguments.files
        return "" if is_complete and written_digests == keyhaul_digests else "its files differ from Keyhaul's"

    for _ in range(arguments.rounds):
        for name, command in commands(arguments, backup_path, password_file, target).items():
            runs.setdefault(name, []).append(timed(command, check=check))
            shutil.rmtree(target)
    return runs


def argument_parser():
    """Return the parser of the command line. The hidden options are for processes that the benchmark starts."""
    parser = argparse.ArgumentParser(description="Compare the time of keyhaul export --files with published readers.")
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--files", type=int, default=6_000)
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=1, help="runs of each, in turns")
    parser.add_argument("--before", type=pathlib.Path, help="another build, to compare with")
    parser.add_argument("--mvt", type=pathlib.Path, metavar="MVT-IOS", help="mvt's program, in its own environment")
    parser.add_argument("--make", metavar="ARCHIVE", help=argparse.SUPPRESS)
    parser.add_argument("--bytes", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--reader", nargs=3, metavar=("NAME", "ARCHIVE", "TARGET"), help=argparse.SUPPRESS)
    return parser


def main():
    arguments = argument_parser().parse_args()
    if arguments.make:
        byte_count = arguments.bytes or arguments.megabytes * 1_000_000 // arguments.files
        write_backup(pathlib.Path(arguments.make), arguments.files, byte_count)
        return 0
    if arguments.reader:
        name, backup_path, target = arguments.reader
        READERS[name](pathlib.Path(backup_path), pathlib.Path(target))
        return 0
    with tempfile.TemporaryDirectory(prefix="keyhaul-bench-") as folder:
        runs = measure(arguments, pathlib.Path(folder))
    medians = {
        name: statistics.median(run.seconds for run in runs_of_program) for name, runs_of_program in runs.items()
    }
    peaks = {name: max(run.megabytes for run in runs_of_program) for name, runs_of_program in runs.items()}
    print(
        f"     {arguments.files:,} encrypted files of {arguments.megabytes:,} MB together, {arguments.rounds} rounds:"
    )
    for name, runs_of_program in runs.items():
        cpu_seconds = statistics.median(run.cpu_seconds for run in runs_of_program)
        print(f"     {name:30} {medians[name]:7.2f} s, CPU time {cpu_seconds:7.2f} s, {peaks[name]:6.1f} MB")
    fastest = min((name for name in medians if name not in (KEYHAUL, "before")), key=medians.get)
    ratio = medians[fastest] / medians[KEYHAUL]
    figures = Figures()
    figures.at_least(
        f"export of {arguments.files:,} files: time of the fastest other reader compared with Keyhaul", ratio,
        MIN_RATIO, "×", fastest)
    figures.at_most(f"export of {arguments.files:,} files: peak memory", peaks[KEYHAUL], MAX_MEGABYTES, "MB")
    return figures.finish()


if __name__ == "__main__":
    sys.exit(main())
