#!/usr/bin/env python3
"""How long one very large file takes out of an encrypted backup, and how long `keyhaul verify` takes for very many files.

    bench_large_files.py PROGRAM [--megabytes 1000] [--files 10000] [--rounds 3] [--before PROGRAM]

One file out stands beside `openssl enc -d -aes-256-cbc` of the same bytes, the verification beside `openssl sha1` of the same
files, which is less than it does. Runs are in turns; the figures are processor seconds, and of the verification, which has all
cores, those of the clock too. Exit 1 where a target is missed.
"""

import pathlib
import statistics
import sys
import tempfile

from bench_files import DOMAIN, timed
from bench_shop import Shop, parser, programs
from figures import Figures

# Against openssl; and the seconds for a gigabyte in ten thousand files.
MOST_OUT, MOST_VERIFY = 1.1, 0.6


def stored(backup):
    """The files of a backup that have an identifier for a name."""
    return [path for path in sorted(pathlib.Path(backup).rglob("*")) if len(path.name) == 40]


def main():
    arguments = parser("Time a large file's way out, and the verification of many files.", rounds=3, megabytes=1_000, files=10_000).parse_args()
    byte_count = arguments.megabytes * 1_000_000
    builds = {name: str(program.resolve()) for name, program in programs(arguments).items()}
    runs = {}

    def measure(what, commands):
        for _ in range(arguments.rounds):
            for name, command in commands.items():
                runs.setdefault((what, name), []).append(timed(command))

    with tempfile.TemporaryDirectory(prefix="keyhaul-bench-") as folder:
        shop = Shop(arguments.program, folder)
        shop.files("large", 1, byte_count)
        [large] = stored(shop.path("large"))
        out = shop.path("out")
        out_words = ["export", *shop.opened("large"), "--domain", DOMAIN, "--path", "Documents/0/0.bin", "-o", out, "--yes"]
        # Any key does: what is timed is the same for each.
        measure("out", {name: shop.command(*out_words, program=program) for name, program in builds.items()} | {
            "openssl enc -d": ["openssl", "enc", "-d", "-aes-256-cbc", "-nopad", "-K", "00" * 32, "-iv", "00" * 16, "-in",
                               str(large), "-out", out]})
        shop.remove("large", "out")
        shop.files("many", arguments.files, byte_count // arguments.files)
        names = pathlib.Path(shop.path("names"))
        names.write_text("\n".join(map(str, stored(shop.path("many")))), encoding="utf-8")
        measure("verify", {
            name: shop.command("verify", *shop.opened("many"), program=program) for name, program in builds.items()} | {
            "openssl sha1": ["xargs", "-n2500", "-a", str(names), "openssl", "sha1"]})
    processor = {key: statistics.median(run.processor for run in of) for key, of in runs.items()}
    for (what, name), of in runs.items():
        Figures.note(f"{what}, {name}: {processor[what, name]:.2f} s of processors, "
                     f"{statistics.median(run.seconds for run in of):.2f} s, {max(run.megabytes for run in of):.0f} MB")
    figures = Figures()
    theirs = processor["out", "openssl enc -d"]
    figures.at_most(
        f"one file of {arguments.megabytes:,} MB out, processors, to openssl enc -d", processor["out", "keyhaul"] / theirs,
        MOST_OUT, "times", f"{processor['out', 'keyhaul']:.2f} s and {theirs:.2f} s")
    what, most = f"verify of {arguments.megabytes:,} MB in {arguments.files:,} files", MOST_VERIFY * arguments.megabytes / 1_000
    figures.at_most(
        f"{what}, processors", processor["verify", "keyhaul"], most, "s",
        f"openssl sha1 of the same files {processor['verify', 'openssl sha1']:.2f} s")
    figures.at_most(
        f"{what}, by the clock", min(run.seconds for run in runs["verify", "keyhaul"]), most, "s", "on all cores, the quickest run")
    return figures.conclude()


if __name__ == "__main__":
    sys.exit(main())
