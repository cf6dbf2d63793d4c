#!/usr/bin/env python3
"""Make the devices and backups of the benchmarks: with very many items, and with very many or very large files.

    bench_data.py --items COUNT DESCRIPTION

As a program, it writes the description of a device. The measured peak memory of a process is at least that of its
parent process, so a benchmark has to stay small: it starts another process to make its data.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys

from bench_files import DOMAIN, PASSWORD, timed

SCRIPT = pathlib.Path(__file__)
# An upper limit for the size of one item below, in bytes.
MAX_ITEM_BYTES = 1_000
# The formats in which these items can be exported.
EXPORT_FORMATS = ("json", "csv", "genp-plist", "cxf")


def make_items(count):
    """Yield items like those of a person with very many accounts. A quarter are internet passwords."""
    for number in range(count):
        is_internet = number % 4 == 0
        attributes = {
            "acct": f"person-{number}@example.org", "labl": f"Account {number}", "agrp": "ABCDE12345.org.example.app",
            "cdat": {"date": "2024-03-09T12:26:40.25Z"}, "mdat": {"date": "2025-10-07T09:20:00.125Z"}}
        attributes["srvr" if is_internet else "svce"] = f"service-{number}.example.org"
        yield {
            "kind": "internet-password" if is_internet else "generic-password",
            "protection": "ak" if number % 2 else "ck",
            "attributes": attributes,
            "secret": {"text": f"secret number {number}"},
        }


def write_description(path, count):
    """Write the description of a device with this many items."""
    header = {
        "format": "device-fixture/1", "seed": 7, "created": "2026-11-20T17:58:00Z",
        "device": {"name": "many", "product_type": "iPhone15,2", "product_version": "18.1"},
        "apps": [{"name": "app", "groups": ["ABCDE12345.org.example.app"]}]}
    with pathlib.Path(path).open("w", encoding="utf-8") as stream:
        stream.write(json.dumps(header)[:-1] + ', "items": [')
        for number, item in enumerate(make_items(count)):
            stream.write((",\n" if number else "") + json.dumps(item))
        stream.write("]}")


def parser(description, rounds, **numbers):
    """Return a parser with the arguments of every benchmark, and with the given counts and their defaults."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("program", type=pathlib.Path)
    for name, count in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=count)
    parser.add_argument("--rounds", type=int, default=rounds, help="runs of each, in turns")
    parser.add_argument("--before", type=pathlib.Path, help="another build, to compare with")
    return parser


def programs(arguments):
    """Return the programs to measure, by the names of their figures."""
    return {"keyhaul": arguments.program} | ({"before": arguments.before} if arguments.before else {})


class Workspace:
    """A folder in which one program works: its devices, its backups, and the file with their password."""

    def __init__(self, program, folder):
        self.program, self.folder = str(pathlib.Path(program).resolve()), pathlib.Path(folder)
        self.home, self.password_file = self.folder / "home", self.folder / "password"
        self.password_file.touch(mode=0o600)
        self.password_file.write_bytes(PASSWORD)

    def path(self, name):
        return str(self.folder / name)

    def command(self, *arguments, program=None):
        """Return a command without prompts and messages."""
        return [program or self.program, *map(str, arguments), "--home", str(self.home), "--no-input", "-q"]

    def run(self, *arguments):
        """Run a command, and return its cost."""
        return timed(self.command(*arguments))

    def backup_arguments(self, name):
        """Return the arguments for a backup and its password."""
        return self.path(name), "-p", self.password_file

    def write_description(self, count):
        subprocess.run([sys.executable, str(SCRIPT), "--items", str(count), self.path("many.json")], check=True)

    def create_backup(self, count, rounds=1):
        """Create a device `many` and its backup `backup`, a folder."""
        self.write_description(count)
        self.run("device", "create", "many", "--from", self.path("many.json"))
        self.run("backup", "many", "-o", self.path("backup") + "/", "--rounds", rounds, "-p", self.password_file)

    def create_file_backup(self, name, count, byte_count):
        """Create a backup of files of one size, without a seal, like one that another program made."""
        subprocess.run(
            [
                sys.executable, str(SCRIPT.with_name("bench_files.py")), self.program, "--make", self.path(name),
                "--files", str(count), "--bytes", str(byte_count)],
            check=True,
        )

    def remove(self, *names):
        """Delete files or folders."""
        for name in names:
            path = self.folder / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def item_commands(self, round_number=0):
        """Yield each command that works on items, with its name.

        Each command comes after the commands that it depends on. Each round has its own devices.
        """
        device, target, backup = f"many-{round_number}", f"target-{round_number}", self.path("backup")
        self.run("device", "create", target)
        yield "device create", ["device", "create", device, "--from", self.path("many.json")]
        backup_options = ["--rounds", 1, "-p", self.password_file, "--yes"]
        yield "backup", ["backup", device, "-o", backup + "/", *backup_options]
        self.run("backup", device, "-o", self.path("other") + "/", *backup_options)
        backup_arguments = self.backup_arguments("backup")
        yield "inspect --list", ["inspect", *backup_arguments, "--list"]
        yield "inspect --list --json", ["inspect", *backup_arguments, "--list", "--json"]
        yield "verify", ["verify", *backup_arguments]
        yield "plan", ["plan", *backup_arguments, "--to", target]
        yield "plan --compare", ["plan", *backup_arguments, "--to", target, "--compare"]
        yield "plan --compare --json", ["plan", *backup_arguments, "--to", target, "--compare", "--json"]
        yield "plan DEVICE", ["plan", device, "--to", target]
        yield "plan DEVICE --compare", ["plan", device, "--to", target, "--compare"]
        for export_format in EXPORT_FORMATS:
            yield f"export --format {export_format}", [
                "export", *backup_arguments, "-o", self.path("out"), "--format", export_format, "--reveal", "--yes"]
        yield "diff", ["diff", *backup_arguments, self.path("other")]
        yield "restore", ["restore", *backup_arguments, "--to", target, "--yes"]
        yield "rekey", ["rekey", *backup_arguments, "--new-password-file", self.password_file, "--yes"]
        yield "convert", ["convert", backup, "-o", self.path("copy.tar"), "--yes"]
        self.remove("out", "copy.tar", "other", f"home/{device}", f"home/{target}")

    def file_commands(self, name, round_number):
        """Yield each command that works on files, with its name. The last command changes the backup.

        The written files stay. After very many files were deleted, ext4 takes several times as long to create a file,
        for minutes.
        """
        backup_arguments = self.backup_arguments(name)
        yield "inspect --tree", ["inspect", *backup_arguments, "--tree"]
        yield "verify", ["verify", *backup_arguments]
        yield (
            "export --files",
            ["export", *backup_arguments, "--files", self.path(f"out-{round_number}"), "--domain", DOMAIN])
        yield "convert", ["convert", self.path(name), "-o", self.path(f"copy-{round_number}.tar")]
        yield "seal", ["seal", *backup_arguments]


def main():
    parser = argparse.ArgumentParser(description="Write the description of a device with very many items.")
    parser.add_argument("--items", type=int, required=True)
    parser.add_argument("description", type=pathlib.Path)
    arguments = parser.parse_args()
    write_description(arguments.description, arguments.items)
    return 0


if __name__ == "__main__":
    sys.exit(main())
