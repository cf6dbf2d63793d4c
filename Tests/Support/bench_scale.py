#!/usr/bin/env python3
"""Measure time and memory for backup, verification and restore of 10,000 and of 100,000 items.

    bench_scale.py PROGRAM

The key derivation has one iteration, so that it takes almost no time. The measured memory is the peak memory of a
process. It grows with the number of items, because Keyhaul reads a backup's keychain file as a whole. The goal limits
the increase for each item. Exit 1 if a goal is missed.
"""

import json
import os
import pathlib
import sys
import tempfile
import time

COUNTS = (10_000, 100_000)
MAX_SECONDS, MAX_KILOBYTES_PER_ITEM = 60, 8
STANDARD_INPUT, STANDARD_OUTPUT = 0, 1


def description(count):
    """Return the description of a device with items like those of a person with very many accounts."""
    items = [
        {
            "kind": "generic-password",
            "protection": ("ak", "ck", "dk", "aku", "cku")[number % 5],
            "attributes": {
                "svce": f"service-{number}.example.org",
                "acct": f"person-{number}@example.org",
                "labl": f"Account {number}",
                "agrp": f"ABCDE12345.org.example.app{number // 10 % 1000}",
            },
            "secret": {"text": f"secret number {number}, as long as a token is: {'x' * 120}"},
        }
        for number in range(count)
    ]
    apps = [
        {"name": f"org.example.app{number}", "groups": [f"ABCDE12345.org.example.app{number}"]}
        for number in range(1000)
    ]
    return {
        "format": "device-fixture/1",
        "seed": 1,
        "created": "2026-11-20T18:00:00.25Z",
        "device": {"name": "many", "product_type": "iPhone15,2", "product_version": "18.1"},
        "apps": apps,
        "items": items,
    }


def run(program, folder, *arguments):
    """Run a command. Return its seconds and its peak memory in megabytes."""
    started, child = time.perf_counter(), os.fork()
    if child == 0:
        os.chdir(folder)
        null_device = os.open(os.devnull, os.O_RDWR)
        for stream in (STANDARD_INPUT, STANDARD_OUTPUT):
            os.dup2(null_device, stream)
        os.execv(program, [program, *arguments, "--home", "home", "--no-input", "--quiet"])
    _, status, usage = os.wait4(child, 0)
    if status != 0:
        sys.exit(f"{' '.join(arguments)} ended with {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - started, usage.ru_maxrss / 1000


def measure(program, folder, count):
    """Return the cost of each command for a device with this many items."""
    (folder / "many.json").write_text(json.dumps(description(count)))
    (folder / "password").write_text("correct horse\n")
    password_options = ["--password-file", "password"]
    run(program, folder, "device", "create", "many", "--from", "many.json")
    run(program, folder, "device", "create", "target")
    return {
        "backup": run(program, folder, "backup", "many", "-o", "many.backup", "--rounds", "1", *password_options),
        "verify": run(program, folder, "verify", "many.backup", *password_options),
        "restore": run(program, folder, "restore", "many.backup", "--to", "target", "--yes", *password_options),
    }


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program, figures = str(pathlib.Path(sys.argv[1]).resolve()), {}
    for count in COUNTS:
        with tempfile.TemporaryDirectory(prefix="keyhaul-scale-") as name:
            figures[count] = measure(program, pathlib.Path(name), count)
        for command, (seconds, memory) in figures[count].items():
            print(f"{command} of {count} items: {seconds:.2f} s, {memory:.0f} MB")
    few_items, many_items = (figures[count] for count in COUNTS)
    seconds = sum(command_seconds for command_seconds, _ in many_items.values())
    memory_pairs = [(few_items[command][1], many_items[command][1]) for command in many_items]
    added_count = COUNTS[1] - COUNTS[0]
    kilobytes = max((many - few) * 1000 / added_count for few, many in memory_pairs)
    factor = max(many / few for few, many in memory_pairs)
    print(f"all three of {COUNTS[1]} items: {seconds:.1f} s, at most {MAX_SECONDS}")
    print(
        f"memory for each additional item: {kilobytes:.1f} kB, at most {MAX_KILOBYTES_PER_ITEM}; "
        f"{factor:.1f} times as much in all"
    )
    return 0 if seconds <= MAX_SECONDS and kilobytes <= MAX_KILOBYTES_PER_ITEM else 1


if __name__ == "__main__":
    sys.exit(main())
