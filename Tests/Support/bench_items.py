#!/usr/bin/env python3
"""Measure the time and memory of `keyhaul export --format json --reveal` for a keychain with very many items.

    bench_items.py PROGRAM [--items 100000] [--rounds 3] [--before PROGRAM] [--irestore PROGRAM]

The program itself creates the device and the backup, with low iteration counts, so that decryption and output take
nearly all of the time. --before measures another build, whose document has to be identical. --irestore measures the
reader written in Go. The programs take turns. The figures are CPU times and the peak memory of all runs. Exit 1 if a
goal is missed.
"""

import pathlib
import statistics
import subprocess
import sys
import tempfile

from bench_data import Workspace, parser, programs
from bench_files import PASSWORD, timed
from figures import Figures

MAX_MEGABYTES = 150
# The maximum ratio of Keyhaul's CPU time to irestore's.
MAX_RATIO = 0.33


# Another process reads the documents, because a process reports at least the peak memory of its parent process.
DIGEST_SCRIPT = """
import hashlib, json, sys
content = open(sys.argv[1], "rb").read()
print(sum("secret" in item for item in json.loads(content)["items"]), hashlib.sha256(content).hexdigest())
"""


COUNT_SCRIPT = """
import json, sys
def secrets(value):
    if isinstance(value, dict):
        return ("v_Data" in value) + sum(map(secrets, value.values()))
    return sum(map(secrets, value)) if isinstance(value, list) else 0
print(secrets(json.load(open(sys.argv[1], "rb"))))
"""


def document_digest(path, count):
    """Return the digest of a document. End the benchmark if it does not have this many secrets."""
    process = subprocess.run([sys.executable, "-c", DIGEST_SCRIPT, path], check=True, stdout=subprocess.PIPE, text=True)
    count_text, digest = process.stdout.split()
    if int(count_text) != count:
        sys.exit(f"error: the document has {count_text} secrets, not {count}")
    return digest


def irestore_document_problem(path, count):
    """Return the problem with irestore's document, or an empty string."""
    process = subprocess.run(
        [sys.executable, "-c", COUNT_SCRIPT, path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    found_count = int(process.stdout) if process.returncode == 0 else 0
    return "" if found_count == count else f"its document has {found_count} secrets, not {count}"


def commands(arguments, workspace, target):
    """Return the command of each program, by name. irestore is optional."""
    commands_by_name = {
        name: workspace.command(
            "export", *workspace.backup_arguments("backup"), "-o", target, "--format", "json", "--reveal",
            program=str(program.resolve()))
        for name, program in programs(arguments).items()
    }
    if arguments.irestore is not None and arguments.irestore.is_file():
        commands_by_name["irestore"] = [
            "/bin/sh", "-c", f"printf '%s\\n' '{PASSWORD.decode()}' | '{arguments.irestore.resolve()}' "
            f"'{workspace.path('backup')}' dumpkeys '{target}'"]
    return commands_by_name


def measure(arguments, workspace):
    """Return the runs of each program. End the benchmark if the documents of two builds differ."""
    workspace.create_backup(arguments.items, rounds=10_000)
    target = workspace.path("items.json")
    runs, digests = {}, set()
    for _ in range(arguments.rounds):
        for name, command in commands(arguments, workspace, target).items():
            if name == "irestore":
                run = timed(command, check=lambda _: irestore_document_problem(target, arguments.items))
            else:
                run = timed(command)
                digests.add(document_digest(target, arguments.items))
            runs.setdefault(name, []).append(run)
            workspace.remove("items.json")
    if len(digests) != 1:
        sys.exit("error: the builds write different documents")
    return runs


def main():
    argument_parser = parser("Measure the time of keyhaul export for very many items.", rounds=3, items=100_000)
    argument_parser.add_argument("--irestore", type=pathlib.Path, help="irestore, the reader in Go")
    arguments = argument_parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="keyhaul-bench-") as folder:
        runs = measure(arguments, Workspace(arguments.program, folder))
    cpu_seconds = {
        name: statistics.median(run.cpu_seconds for run in program_runs) for name, program_runs in runs.items()
    }
    peak = {name: max(run.megabytes for run in program_runs) for name, program_runs in runs.items()}
    figures, title = Figures(), f"{arguments.items:,} items to JSON with secrets"
    for name, program_runs in runs.items():
        figures.note(f"{name}: {title}: {cpu_seconds[name]:.2f} s of CPU time, "
                     f"{statistics.median(run.seconds for run in program_runs):.2f} s, {peak[name]:.0f} MB")
    figures.at_most(f"{title}: peak memory", peak["keyhaul"], MAX_MEGABYTES, "MB")
    if "irestore" in runs:
        figures.at_most(
            f"{title}: CPU time compared with irestore", cpu_seconds["keyhaul"] / cpu_seconds["irestore"], MAX_RATIO,
            "×", f"{cpu_seconds['keyhaul']:.2f} s (Keyhaul), {cpu_seconds['irestore']:.2f} s (irestore)")
    else:
        figures.unmeasured(
            f"{title}: CPU time compared with irestore",
            "irestore is not in an available package index; make -C Tests bench IRESTORE=PATH")
    return figures.finish()


if __name__ == "__main__":
    sys.exit(main())
