#!/usr/bin/env python3
"""How long `keyhaul export --format json --reveal` takes for a keychain of very many items, and how much memory.

    bench_items.py PROGRAM [--items 100000] [--rounds 3] [--before PROGRAM] [--irestore PROGRAM]

The items are put on a virtual device by the program itself and backed up with a password and few rounds: what is timed is
opening and writing. --before runs another build of the program beside it, whose document has to be the same bytes;
--irestore the reader in Go, where it is there. Runs are in turns; the figures are processor seconds, and the most memory of
any run. Exit 1 where a target is missed.
"""

import pathlib
import statistics
import subprocess
import sys
import tempfile

from bench_files import PASSWORD, timed
from bench_shop import Shop, parser
from figures import Figures

MOST_MEGABYTES = 150
# Against irestore, processor seconds.
MOST = 0.33


# Another process reads the documents: this one stays small, since what it starts counts as being as large.
READING = """
import hashlib, json, sys
content = open(sys.argv[1], "rb").read()
print(sum("secret" in item for item in json.loads(content)["items"]), hashlib.sha256(content).hexdigest())
"""


COUNTING = """
import json, sys
def secrets(value):
    if isinstance(value, dict):
        return ("v_Data" in value) + sum(map(secrets, value.values()))
    return sum(map(secrets, value)) if isinstance(value, list) else 0
print(secrets(json.load(open(sys.argv[1], "rb"))))
"""


def checked(path, count):
    """The digest of a document that has so many items with a secret."""
    read = subprocess.run([sys.executable, "-c", READING, path], check=True, stdout=subprocess.PIPE, text=True)
    found, digest = read.stdout.split()
    if int(found) != count:
        sys.exit(f"error: the document has {found} secrets, not {count}")
    return digest


def unread(path, count):
    """What is wrong with irestore's document, which has each item's secret under its code."""
    read = subprocess.run([sys.executable, "-c", COUNTING, path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    found = int(read.stdout) if read.returncode == 0 else 0
    return "" if found == count else f"its document has {found} secrets, not {count}"


def main():
    options = parser("Time keyhaul export of very many items.", rounds=3, items=100_000)
    options.add_argument("--irestore", type=pathlib.Path, help="irestore, the reader in Go")
    arguments = options.parse_args()
    runs, digests = {}, set()
    with tempfile.TemporaryDirectory(prefix="keyhaul-bench-") as folder:
        shop = Shop(arguments.program, folder)
        shop.stock(arguments.items, rounds=10_000)
        target = shop.path("items.json")
        commands = {
            name: shop.command(
                "export", *shop.opened("backup"), "-o", target, "--format", "json", "--reveal", program=str(program.resolve()))
            for name, program in (("keyhaul", arguments.program), ("before", arguments.before)) if program}
        has_irestore = arguments.irestore is not None and arguments.irestore.is_file()
        if has_irestore:
            commands["irestore"] = [
                "/bin/sh", "-c", f"printf '%s\\n' '{PASSWORD.decode()}' | '{arguments.irestore.resolve()}' "
                f"'{shop.path('backup')}' dumpkeys '{target}'"]
        for _ in range(arguments.rounds):
            for name, command in commands.items():
                check = (lambda _: unread(target, arguments.items)) if name == "irestore" else None
                runs.setdefault(name, []).append(timed(command, check=check))
                if name != "irestore":
                    digests.add(checked(target, arguments.items))
                shop.remove("items.json")
    if len(digests) != 1:
        sys.exit("error: the builds don't write the same document")
    processor = {name: statistics.median(run.processor for run in of) for name, of in runs.items()}
    peak = {name: max(run.megabytes for run in of) for name, of in runs.items()}
    figures, what = Figures(), f"{arguments.items:,} items to JSON with secrets"
    for name, of in runs.items():
        figures.note(f"{name}: {what}: {processor[name]:.2f} s of CPU time, "
                     f"{statistics.median(run.seconds for run in of):.2f} s, {peak[name]:.0f} MB")
    figures.at_most(f"{what}: peak memory", peak["keyhaul"], MOST_MEGABYTES, "MB")
    if has_irestore:
        figures.at_most(
            f"{what}: CPU time compared with irestore", processor["keyhaul"] / processor["irestore"], MOST, "×",
            f"{processor['keyhaul']:.2f} s (Keyhaul), {processor['irestore']:.2f} s (irestore)")
    else:
        figures.unmeasured(f"{what}: CPU time compared with irestore", "irestore is not in an available package index; make -C Tests bench IRESTORE=PATH")
    return figures.conclude()


if __name__ == "__main__":
    sys.exit(main())
