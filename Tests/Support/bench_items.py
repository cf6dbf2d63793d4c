#!/usr/bin/env python3
"""How long `keyhaul export --format json --reveal` takes for a keychain of very many items, and how much memory.

    bench_items.py PROGRAM [--items 100000] [--rounds 3] [--before PROGRAM] [--irestore PROGRAM]

The items are put on a virtual device by the program itself and backed up with a password and few rounds: what is timed is
opening and writing. --before runs another build of the program beside it, whose document has to be the same bytes;
--irestore the reader in Go, where it is there. Runs are in turns; the figures are processor seconds, and the most memory of
any run. Exit 1 where a target is missed.
"""

import argparse
import hashlib
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from bench_files import PASSWORD, timed

MOST_MEGABYTES = 150
# Against irestore, processor seconds.
MOST = 0.33


def fixture(count):
    """A description of a device with so many passwords, a quarter of them for the internet."""
    items = []
    for number in range(count):
        is_internet = number % 4 == 0
        attributes = {
            "acct": f"person-{number}@example.org", "labl": f"Account {number}", "agrp": "ABCDE12345.org.example.app",
            "cdat": {"date": "2024-03-09T12:26:40.25Z"}, "mdat": {"date": "2025-10-07T09:20:00.125Z"}}
        attributes["srvr" if is_internet else "svce"] = f"service-{number}.example.org"
        items.append({
            "kind": "internet-password" if is_internet else "generic-password", "protection": "ak" if number % 2 else "ck",
            "attributes": attributes, "secret": {"text": f"secret number {number}"}})
    return {
        "format": "device-fixture/1", "seed": 7, "created": "2026-11-20T17:58:00Z",
        "device": {"name": "many", "product_type": "iPhone15,2", "product_version": "18.1"},
        "apps": [{"name": "app", "groups": ["ABCDE12345.org.example.app"]}], "items": items}


def make(program, folder, count):
    (folder / "many.json").write_text(json.dumps(fixture(count)))
    secret = folder / "password"
    secret.touch(mode=0o600)
    secret.write_bytes(PASSWORD)
    shared = ["--home", str(folder / "home"), "--no-input", "-q"]
    subprocess.run([program, "device", "create", "many", "--from", str(folder / "many.json"), *shared], check=True)
    subprocess.run([
        program, "backup", "many", "-o", str(folder / "backup") + "/", "--rounds", "10000", "--password-file", str(secret),
        *shared], check=True)


def main():
    parser = argparse.ArgumentParser(description="Time keyhaul export of very many items.")
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each, in turns")
    parser.add_argument("--before", type=pathlib.Path, help="another build, to compare with")
    parser.add_argument("--irestore", type=pathlib.Path, help="irestore, the reader in Go")
    arguments = parser.parse_args()
    runs, digests = {}, set()
    with tempfile.TemporaryDirectory(prefix="keyhaul-bench-") as folder:
        folder = pathlib.Path(folder)
        make(str(arguments.program.resolve()), folder, arguments.items)
        target = folder / "items.json"
        commands = {
            name: [
                str(program.resolve()), "export", str(folder / "backup"), "-o", str(target), "--format", "json", "--reveal",
                "--password-file", str(folder / "password"), "--no-input", "-q"]
            for name, program in (("keyhaul", arguments.program), ("before", arguments.before)) if program}
        if arguments.irestore:
            commands["irestore"] = [
                "/bin/sh", "-c", f"printf '%s\\n' '{PASSWORD.decode()}' | '{arguments.irestore.resolve()}' "
                f"'{folder / 'backup'}' dumpkeys '{target}'"]
        for _ in range(arguments.rounds):
            for name, command in commands.items():
                runs.setdefault(name, []).append(timed(command))
                if name != "irestore":
                    digests.add(hashlib.sha256(target.read_bytes()).hexdigest())
                    assert len(json.loads(target.read_bytes())["items"]) == arguments.items
                target.unlink()
    if len(digests) != 1:
        sys.exit("error: the builds don't write the same document")
    processor = {name: statistics.median(run.processor for run in of) for name, of in runs.items()}
    peak = {name: max(run.megabytes for run in of) for name, of in runs.items()}
    for name, of in runs.items():
        print(f"     {name}: {arguments.items:,} items to JSON with secrets: {processor[name]:.2f} s of processors, "
              f"{statistics.median(run.seconds for run in of):.2f} s, {peak[name]:.0f} MB")
    missed = peak["keyhaul"] > MOST_MEGABYTES
    print(f"{'MISS' if missed else 'ok  '} memory at its peak {peak['keyhaul']:.0f} MB  at most {MOST_MEGABYTES} MB")
    if arguments.irestore:
        ratio = processor["keyhaul"] / processor["irestore"]
        print(f"{'MISS' if ratio > MOST else 'ok  '} against irestore {ratio:.2f} times  at most {MOST:.2f} times")
        missed += ratio > MOST
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
