#!/usr/bin/env python3
"""Compare the time of commands that need two passwords with the time of a command that needs one.

    bench_passwords.py PROGRAM [--rounds 5] [--before PROGRAM]

The backups are small and have real iteration counts, so that the key derivation takes nearly all of the time. Keyhaul
derives two keys on two threads. The figures are ratios of elapsed times of the fastest runs. Exit 1 if a goal is
missed.
"""

import pathlib
import sys
import tempfile

from bench_data import Workspace, parser, programs
from bench_files import timed
from figures import Figures

MAX_RATIO = 1.1
ONE_PASSWORD, TWO_PASSWORDS = "inspect", ("diff", "rekey")


def list_problem(printed):
    """Return the problem with the output of `inspect --list`, or an empty string."""
    return "" if printed.count(b"\n") > 1 else "it lists no items"


def create_backups(workspace):
    """Create a device and two backups with different passwords. Return the file with the second password."""
    second_password_file = pathlib.Path(workspace.path("other-password"))
    second_password_file.touch(mode=0o600)
    second_password_file.write_text("battery staple", encoding="utf-8")
    workspace.run("device", "create", "phone", "--from", "old-phone")
    for name, password_file in (("first", workspace.password_file), ("second", second_password_file)):
        workspace.run("backup", "phone", "-o", workspace.path(name) + "/", "-p", password_file)
    return second_password_file


def measure(workspace, builds, rounds):
    """Return the seconds of each build and command."""
    second_password_file = create_backups(workspace)
    seconds = {}
    for round_number in range(rounds):
        # The two passwords change places in every round.
        old_password_file, new_password_file = workspace.password_file, second_password_file
        if round_number % 2:
            old_password_file, new_password_file = new_password_file, old_password_file
        commands = {
            "inspect": ["inspect", *workspace.backup_arguments("first"), "--list"],
            "diff": [
                "diff", *workspace.backup_arguments("first"), workspace.path("second"), "--other-password-file",
                second_password_file],
            "rekey": [
                "rekey", workspace.path("changing"), "-p", old_password_file, "--new-password-file",
                new_password_file, "--yes"],
        }
        for build, program in builds.items():
            workspace.run("backup", "phone", "-o", workspace.path("changing") + "/", "-p", old_password_file, "--yes")
            for name, command_arguments in commands.items():
                command = workspace.command(*command_arguments, program=str(program.resolve()))
                run = timed(command, check=list_problem if name == ONE_PASSWORD else None)
                seconds.setdefault((build, name), []).append(run.seconds)
    return seconds


def main():
    arguments = parser("Time the commands that need two passwords.", rounds=5).parse_args()
    builds = programs(arguments)
    with tempfile.TemporaryDirectory(prefix="keyhaul-bench-") as folder:
        seconds = measure(Workspace(arguments.program, folder), builds, arguments.rounds)
    figures = Figures()
    for build in builds:
        with_one = min(seconds[build, ONE_PASSWORD])
        for name in TWO_PASSWORDS:
            with_two = min(seconds[build, name])
            ratio = with_two / with_one
            comparison = f"{with_two:.2f} s (two passwords), {with_one:.2f} s (one)"
            if build == "keyhaul":
                figures.at_most(
                    f"{name} with two passwords: time compared with a command with one", ratio, MAX_RATIO, "×",
                    comparison)
            else:
                figures.note(f"before: {name} {ratio:.2f}×, {comparison}")
    return figures.finish()


if __name__ == "__main__":
    sys.exit(main())
