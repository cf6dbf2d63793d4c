#!/usr/bin/env python3
"""Measure the export of one very large file from an encrypted backup, and `keyhaul verify` of very many files.

    bench_large_files.py PROGRAM [--megabytes 1000] [--files 10000] [--rounds 3] [--before PROGRAM]

The export is compared with `openssl enc -d -aes-256-cbc` of the same bytes. The verification is compared with `openssl
sha1` of the same files. The digests are only a part of the work of a verification. The programs take turns. The figures
are CPU times. The verification uses all cores, so it also has a figure for the elapsed time. Exit 1 if a goal is
missed.
"""

import hashlib
import pathlib
import random
import statistics
import sys
import tempfile

from bench_data import Workspace, parser, programs
from bench_files import DOMAIN, random_blocks, timed
from figures import Figures

# The maximum ratio of Keyhaul's CPU time to openssl's in an export.
MAX_EXPORT_RATIO = 1.1
# The maximum seconds for verifying this many megabytes in this many files.
MAX_VERIFY_SECONDS, VERIFIED_MEGABYTES, VERIFIED_FILES = 0.6, 1_000, 10_000
OPENSSL_DECRYPTION, OPENSSL_DIGESTS = "openssl enc -d", "openssl sha1"


def stored_files(backup):
    """Return the stored files of a backup: those whose names are file IDs."""
    return [path for path in sorted(pathlib.Path(backup).rglob("*")) if len(path.name) == 40]


def file_digest(path):
    """Return the SHA-1 digest of a file."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha1").hexdigest()


def first_file_digest(byte_count):
    """Return the digest of the first file that bench_files.py puts into a backup."""
    hashed = hashlib.sha1()
    for block in random_blocks(random.Random("bench"), byte_count):
        hashed.update(block)
    return hashed.hexdigest()


def openssl_digest(path):
    """Return the digest of the output of `openssl enc -d` with a key of zeros, computed with another library."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    decryptor, hashed = Cipher(algorithms.AES(bytes(32)), modes.CBC(bytes(16))).decryptor(), hashlib.sha1()
    with open(path, "rb") as stream:
        while block := stream.read(1 << 20):
            hashed.update(decryptor.update(block))
    return hashed.hexdigest()


def file_problem(path, expected):
    """Return the problem with a file that should have this digest, or an empty string.

    The file is deleted, so that the next run has to write it.
    """
    path = pathlib.Path(path)
    is_expected = path.is_file() and file_digest(path) == expected
    path.unlink(missing_ok=True)
    return "" if is_expected else f"{path.name} is not the expected file"


def digests_problem(printed, paths):
    """Return the problem with the output of `openssl sha1`, whose lines end in digests, or an empty string."""
    lines = printed.decode("utf-8", "replace").splitlines()
    digests = sorted(line.split()[-1] for line in lines if line.strip())
    if digests == sorted(map(file_digest, paths)):
        return ""
    return f"its {len(digests)} digests are not those of {len(paths)} files"


def measure(commands, checks, rounds):
    """Return the runs of each command, by name. `checks` maps names to functions that check a command's result."""
    runs = {}
    for _ in range(rounds):
        for name, command in commands.items():
            runs.setdefault(name, []).append(timed(command, check=checks.get(name)))
    return runs


def measure_export(workspace, builds, byte_count, rounds):
    """Return the runs of the export of one large file, and of its decryption with openssl."""
    workspace.create_file_backup("large", 1, byte_count)
    [stored_file] = stored_files(workspace.path("large"))
    original_digest = first_file_digest(byte_count)
    target = workspace.path("out")
    export_arguments = [
        "export", *workspace.backup_arguments("large"), "--domain", DOMAIN, "--path", "Documents/0/0.bin", "-o", target,
        "--yes"]
    commands = {name: workspace.command(*export_arguments, program=program) for name, program in builds.items()}
    checks = dict.fromkeys(builds, lambda _: file_problem(target, original_digest))
    # The time does not depend on the key, so openssl uses a key of zeros.
    commands[OPENSSL_DECRYPTION] = [
        "openssl", "enc", "-d", "-aes-256-cbc", "-nopad", "-K", "00" * 32, "-iv", "00" * 16, "-in", str(stored_file),
        "-out", target]
    checks[OPENSSL_DECRYPTION] = lambda _: file_problem(target, openssl_digest(stored_file))
    runs = measure(commands, checks, rounds)
    workspace.remove("large", "out")
    return runs


def measure_verification(workspace, builds, file_count, byte_count, rounds):
    """Return the runs of the verification of many files, and of their digests with openssl."""
    workspace.create_file_backup("many", file_count, byte_count // file_count)
    paths = stored_files(workspace.path("many"))
    path_list = pathlib.Path(workspace.path("names"))
    path_list.write_text("\n".join(map(str, paths)), encoding="utf-8")
    commands = {
        name: workspace.command("verify", *workspace.backup_arguments("many"), program=program)
        for name, program in builds.items()
    }
    commands[OPENSSL_DIGESTS] = ["xargs", "-n2500", "-a", str(path_list), "openssl", "sha1"]
    return measure(commands, {OPENSSL_DIGESTS: lambda printed: digests_problem(printed, paths)}, rounds)


def median_cpu_seconds(runs):
    """Return the median CPU time of each command."""
    return {name: statistics.median(run.cpu_seconds for run in command_runs) for name, command_runs in runs.items()}


def print_runs(task, runs):
    """Print the cost of each command."""
    seconds = median_cpu_seconds(runs)
    for name, command_runs in runs.items():
        Figures.note(
            f"{task}, {name}: {seconds[name]:.2f} s of CPU time, "
            f"{statistics.median(run.seconds for run in command_runs):.2f} s, "
            f"{max(run.megabytes for run in command_runs):.0f} MB"
        )


def main():
    arguments = parser(
        "Measure the export of a large file and the verification of many files.", rounds=3,
        megabytes=VERIFIED_MEGABYTES, files=VERIFIED_FILES).parse_args()
    byte_count = arguments.megabytes * 1_000_000
    builds = {name: str(program.resolve()) for name, program in programs(arguments).items()}
    with tempfile.TemporaryDirectory(prefix="keyhaul-bench-") as folder:
        workspace = Workspace(arguments.program, folder)
        export_runs = measure_export(workspace, builds, byte_count, arguments.rounds)
        verify_runs = measure_verification(workspace, builds, arguments.files, byte_count, arguments.rounds)
    print_runs("export", export_runs)
    print_runs("verify", verify_runs)
    figures = Figures()
    export_seconds, verify_seconds = median_cpu_seconds(export_runs), median_cpu_seconds(verify_runs)
    openssl_seconds = export_seconds[OPENSSL_DECRYPTION]
    figures.at_most(
        f"export of one {arguments.megabytes:,} MB file: CPU time compared with openssl enc -d",
        export_seconds["keyhaul"] / openssl_seconds, MAX_EXPORT_RATIO, "×",
        f"{export_seconds['keyhaul']:.2f} s (Keyhaul), {openssl_seconds:.2f} s (openssl)")
    title = f"verify of {arguments.megabytes:,} MB in {arguments.files:,} files"
    # Each byte and each file takes time, so the limit grows with the number that grew more.
    limit = MAX_VERIFY_SECONDS * max(arguments.megabytes / VERIFIED_MEGABYTES, arguments.files / VERIFIED_FILES)
    figures.at_most(
        f"{title}: CPU time", verify_seconds["keyhaul"], limit, "s",
        f"openssl sha1 of the same files: {verify_seconds[OPENSSL_DIGESTS]:.2f} s")
    figures.at_most(
        f"{title}: elapsed time", min(run.seconds for run in verify_runs["keyhaul"]), limit, "s",
        "on all cores, the fastest run")
    return figures.finish()


if __name__ == "__main__":
    sys.exit(main())
