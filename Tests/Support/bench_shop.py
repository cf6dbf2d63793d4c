#!/usr/bin/env python3
"""What the benchmarks are about: devices and backups of very many items, and backups of very many or very large files.

    bench_shop.py --items COUNT DESCRIPTION

As a program it writes the description of a device with so many items: what is started by a large process counts as being as
large, so a benchmark itself stays small.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys

from bench_files import DOMAIN, PASSWORD, timed

HERE = pathlib.Path(__file__)
# The longest of the attributes and secrets below, in bytes.
LARGEST_ITEM = 1_000
# The forms of an export that such items are written in.
EXPORT_FORMS = ("json", "csv", "genp-plist", "cxf")


def described(count):
    """Passwords, a quarter of them for the internet, as someone with very many accounts has."""
    for number in range(count):
        is_internet = number % 4 == 0
        attributes = {
            "acct": f"person-{number}@example.org", "labl": f"Account {number}", "agrp": "ABCDE12345.org.example.app",
            "cdat": {"date": "2024-03-09T12:26:40.25Z"}, "mdat": {"date": "2025-10-07T09:20:00.125Z"}}
        attributes["srvr" if is_internet else "svce"] = f"service-{number}.example.org"
        yield {
            "kind": "internet-password" if is_internet else "generic-password", "protection": "ak" if number % 2 else "ck",
            "attributes": attributes, "secret": {"text": f"secret number {number}"}}


def describe(path, count):
    head = {
        "format": "device-fixture/1", "seed": 7, "created": "2026-11-20T17:58:00Z",
        "device": {"name": "many", "product_type": "iPhone15,2", "product_version": "18.1"},
        "apps": [{"name": "app", "groups": ["ABCDE12345.org.example.app"]}]}
    with pathlib.Path(path).open("w", encoding="utf-8") as stream:
        stream.write(json.dumps(head)[:-1] + ', "items": [')
        for number, item in enumerate(described(count)):
            stream.write((",\n" if number else "") + json.dumps(item))
        stream.write("]}")


def parser(description, rounds, **numbers):
    """Of the arguments that every benchmark has, and of counts that one has besides, by their standard values."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("program", type=pathlib.Path)
    for name, count in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=count)
    parser.add_argument("--rounds", type=int, default=rounds, help="runs of each, in turns")
    parser.add_argument("--before", type=pathlib.Path, help="another build, to compare with")
    return parser


def programs(arguments):
    """The program and, where one was named, the build before it, by what their figures are called."""
    return {"keyhaul": arguments.program} | ({"before": arguments.before} if arguments.before else {})


class Shop:
    """A folder in which one program works: its devices, its backups, and the file of their password."""

    def __init__(self, program, folder):
        self.program, self.folder = str(pathlib.Path(program).resolve()), pathlib.Path(folder)
        self.home, self.secret = self.folder / "home", self.folder / "password"
        self.secret.touch(mode=0o600)
        self.secret.write_bytes(PASSWORD)

    def path(self, name):
        return str(self.folder / name)

    def command(self, *words, program=None):
        """A call that asks nothing and says nothing but its result."""
        return [program or self.program, *map(str, words), "--home", str(self.home), "--no-input", "-q"]

    def run(self, *words):
        return timed(self.command(*words))

    def opened(self, name):
        """The words that name a backup and its password."""
        return self.path(name), "-p", self.secret

    def describe(self, count):
        subprocess.run([sys.executable, str(HERE), "--items", str(count), self.path("many.json")], check=True)

    def stock(self, count, rounds=1):
        """A device `many` and its backup `backup`, a folder."""
        self.describe(count)
        self.run("device", "create", "many", "--from", self.path("many.json"))
        self.run("backup", "many", "-o", self.path("backup") + "/", "--rounds", rounds, "-p", self.secret)

    def files(self, name, count, byte_count):
        """A backup of so many files of one size, as another program wrote it: without a seal."""
        subprocess.run([
            sys.executable, str(HERE.with_name("bench_files.py")), self.program, "--make", self.path(name), "--files", str(count),
            "--bytes", str(byte_count)], check=True)

    def remove(self, *names):
        for name in names:
            path = self.folder / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def item_verbs(self, turn=0):
        """Every verb that works on items, by its name, each after what it needs. A turn has devices of its own."""
        device, target, backup = f"many-{turn}", f"target-{turn}", self.path("backup")
        self.run("device", "create", target)
        yield "device create", ["device", "create", device, "--from", self.path("many.json")]
        sealing = ["--rounds", 1, "-p", self.secret, "--yes"]
        yield "backup", ["backup", device, "-o", backup + "/", *sealing]
        self.run("backup", device, "-o", self.path("other") + "/", *sealing)
        opened = self.opened("backup")
        yield "inspect --list", ["inspect", *opened, "--list"]
        yield "inspect --list --json", ["inspect", *opened, "--list", "--json"]
        yield "verify", ["verify", *opened]
        yield "plan", ["plan", *opened, "--to", target]
        yield "plan --compare", ["plan", *opened, "--to", target, "--compare"]
        yield "plan --compare --json", ["plan", *opened, "--to", target, "--compare", "--json"]
        yield "plan DEVICE", ["plan", device, "--to", target]
        yield "plan DEVICE --compare", ["plan", device, "--to", target, "--compare"]
        for form in EXPORT_FORMS:
            yield f"export --format {form}", [
                "export", *opened, "-o", self.path("out"), "--format", form, "--reveal", "--yes"]
        yield "diff", ["diff", *opened, self.path("other")]
        yield "restore", ["restore", *opened, "--to", target, "--yes"]
        yield "rekey", ["rekey", *opened, "--new-password-file", self.secret, "--yes"]
        yield "convert", ["convert", backup, "-o", self.path("copy.tar"), "--yes"]
        self.remove("out", "copy.tar", "other", f"home/{device}", f"home/{target}")

    def file_verbs(self, name, turn):
        """Every verb that works on files, by its name; the last one changes the backup. What it wrote stays: for minutes
        after very many files were deleted, ext4 takes several times as long to make one."""
        opened = self.opened(name)
        yield "inspect --tree", ["inspect", *opened, "--tree"]
        yield "verify", ["verify", *opened]
        yield "export --files", ["export", *opened, "--files", self.path(f"out-{turn}"), "--domain", DOMAIN]
        yield "convert", ["convert", self.path(name), "-o", self.path(f"copy-{turn}.tar")]
        yield "seal", ["seal", *opened]


def main():
    parser = argparse.ArgumentParser(description="Write the description of a device with very many items.")
    parser.add_argument("--items", type=int, required=True)
    parser.add_argument("description", type=pathlib.Path)
    arguments = parser.parse_args()
    describe(arguments.description, arguments.items)
    return 0


if __name__ == "__main__":
    sys.exit(main())
