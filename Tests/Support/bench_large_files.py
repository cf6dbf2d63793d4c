#!/usr/bin/env python3
"""How long one very large file takes out of an encrypted backup, and how long `keyhaul verify` takes for very many files.

    bench_large_files.py PROGRAM [--megabytes 1000] [--files 10000] [--rounds 3] [--before PROGRAM]

One file out stands beside `openssl enc -d -aes-256-cbc` of the same bytes, the verification beside `openssl sha1` of the same
files, which is less than it does. Runs are in turns; the figures are processor seconds, and of the verification, which has all
cores, those of the clock too. Exit 1 where a target is missed.
"""

import hashlib
import pathlib
import random
import statistics
import sys
import tempfile

from bench_files import DOMAIN, noise, timed
from bench_shop import Shop, parser, programs
from figures import Figures

# Against openssl; and the seconds for a gigabyte in ten thousand files.
MOST_OUT, MOST_VERIFY = 1.1, 0.6


def stored(backup):
    """The files of a backup that have an identifier for a name."""
    return [path for path in sorted(pathlib.Path(backup).rglob("*")) if len(path.name) == 40]


def digest(path):
    with open(path, "rb") as content:
        return hashlib.file_digest(content, "sha1").hexdigest()


def written(byte_count):
    """The digest of the one file that bench_files.py puts into a backup."""
    hashed = hashlib.sha1()
    for part in noise(random.Random("bench"), byte_count):
        hashed.update(part)
    return hashed.hexdigest()


def decrypted(path):
    """The digest of what `openssl enc -d` has to make of a file: under a key of zeros, by another library's interface."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    opened, hashed = Cipher(algorithms.AES(bytes(32)), modes.CBC(bytes(16))).decryptor(), hashlib.sha1()
    with open(path, "rb") as content:
        while part := content.read(1 << 20):
            hashed.update(opened.update(part))
    return hashed.hexdigest()


def wrong_file(path, expected):
    """What is wrong with a file that has to have this digest. It is removed, so that the next run makes its own."""
    path = pathlib.Path(path)
    is_right = path.is_file() and digest(path) == expected
    path.unlink(missing_ok=True)
    return "" if is_right else f"{path.name} is not the file that it has to be"


def wrong_digests(printed, paths):
    """What is wrong with the lines of `openssl sha1`, each of which ends in a digest."""
    found = sorted(line.split()[-1] for line in printed.decode("utf-8", "replace").splitlines() if line.strip())
    return "" if found == sorted(map(digest, paths)) else f"its {len(found)} digests are not those of {len(paths)} files"


def main():
    arguments = parser("Time a large file's way out, and the verification of many files.", rounds=3, megabytes=1_000, files=10_000).parse_args()
    byte_count = arguments.megabytes * 1_000_000
    builds = {name: str(program.resolve()) for name, program in programs(arguments).items()}
    runs = {}

    def measure(what, commands, checks):
        for _ in range(arguments.rounds):
            for name, command in commands.items():
                runs.setdefault((what, name), []).append(timed(command, check=checks.get(name)))

    with tempfile.TemporaryDirectory(prefix="keyhaul-bench-") as folder:
        shop = Shop(arguments.program, folder)
        shop.files("large", 1, byte_count)
        [large] = stored(shop.path("large"))
        original = written(byte_count)
        out = shop.path("out")
        out_words = ["export", *shop.opened("large"), "--domain", DOMAIN, "--path", "Documents/0/0.bin", "-o", out, "--yes"]
        # Any key does: what is timed is the same for each.
        measure("out", {name: shop.command(*out_words, program=program) for name, program in builds.items()} | {
            "openssl enc -d": ["openssl", "enc", "-d", "-aes-256-cbc", "-nopad", "-K", "00" * 32, "-iv", "00" * 16, "-in",
                               str(large), "-out", out]}, {
            **dict.fromkeys(builds, lambda _: wrong_file(out, original)),
            "openssl enc -d": lambda _: wrong_file(out, decrypted(large))})
        shop.remove("large", "out")
        shop.files("many", arguments.files, byte_count // arguments.files)
        names = pathlib.Path(shop.path("names"))
        names.write_text("\n".join(map(str, stored(shop.path("many")))), encoding="utf-8")
        measure("verify", {
            name: shop.command("verify", *shop.opened("many"), program=program) for name, program in builds.items()} | {
            "openssl sha1": ["xargs", "-n2500", "-a", str(names), "openssl", "sha1"]}, {
            "openssl sha1": lambda printed: wrong_digests(printed, stored(shop.path("many")))})
    processor = {key: statistics.median(run.processor for run in of) for key, of in runs.items()}
    for (what, name), of in runs.items():
        Figures.note(f"{what}, {name}: {processor[what, name]:.2f} s of CPU time, "
                     f"{statistics.median(run.seconds for run in of):.2f} s, {max(run.megabytes for run in of):.0f} MB")
    figures = Figures()
    theirs = processor["out", "openssl enc -d"]
    figures.at_most(
        f"export of one {arguments.megabytes:,} MB file: CPU time compared with openssl enc -d", processor["out", "keyhaul"] / theirs,
        MOST_OUT, "×", f"{processor['out', 'keyhaul']:.2f} s (Keyhaul), {theirs:.2f} s (openssl)")
    what, most = f"verify of {arguments.megabytes:,} MB in {arguments.files:,} files", MOST_VERIFY * arguments.megabytes / 1_000
    figures.at_most(
        f"{what}: CPU time", processor["verify", "keyhaul"], most, "s",
        f"openssl sha1 of the same files: {processor['verify', 'openssl sha1']:.2f} s")
    figures.at_most(
        f"{what}: elapsed time", min(run.seconds for run in runs["verify", "keyhaul"]), most, "s", "on all cores, the quickest run")
    return figures.conclude()


if __name__ == "__main__":
    sys.exit(main())
