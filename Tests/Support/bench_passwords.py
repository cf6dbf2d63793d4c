#!/usr/bin/env python3
"""Compare the time of commands with two passwords with that of a command with one.

    bench_passwords.py PROGRAM [--rounds 5] [--before PROGRAM]

The backups are small and have real iteration counts, so that the time is that of the key derivation. Keyhaul derives
two keys on two threads. The figures are ratios of elapsed times of the fastest runs. Exit 1 if a goal is missed.
"""

import pathlib
import sys
import tempfile

from bench_data import Workspace, parser
from bench_files import timed
from figures import Figures

MAX_RATIO = 1.1


def main():
    arguments = parser("Time the commands that need two passwords.", rounds=5).parse_args()
    runs = {}
    programs = [arguments.program] + ([arguments.before] if arguments.before else [])
    with tempfile.TemporaryDirectory(prefix="keyhaul-bench-") as folder:
        workspace = Workspace(arguments.program, folder)
        other_password = pathlib.Path(workspace.path("other-password"))
        other_password.touch(mode=0o600)
        other_password.write_text("battery staple", encoding="utf-8")
        workspace.run("device", "create", "phone", "--from", "old-phone")
        for name, secret in (("first", workspace.secret), ("second", other_password)):
            workspace.run("backup", "phone", "-o", workspace.path(name) + "/", "-p", secret)
        for round_number in range(arguments.rounds):
            # The two passwords change places in every round.
            old, new = (
                (workspace.secret, other_password) if round_number % 2 == 0 else (other_password, workspace.secret)
            )
            for program in programs:
                commands = {
                    "one password": ["inspect", *workspace.backup_arguments("first"), "--list"],
                    "diff": [
                        "diff", *workspace.backup_arguments("first"), workspace.path("second"), "--other-password-file",
                        other_password],
                    "rekey": ["rekey", workspace.path("changing"), "-p", old, "--new-password-file", new, "--yes"],
                }
                workspace.run("backup", "phone", "-o", workspace.path("changing") + "/", "-p", old, "--yes")
                for name, command_arguments in commands.items():
                    command = workspace.command(*command_arguments, program=str(program.resolve()))
                    check = (
                        (lambda printed: "" if printed.count(b"\n") > 1 else "it lists no items")
                        if name == "one password"
                        else None
                    )
                    runs.setdefault((program, name), []).append(timed(command, check=check))
    figures = Figures()
    for program in programs:
        fastest = {name: min(run.seconds for run in runs[program, name]) for name in commands}
        for name in ("diff", "rekey"):
            ratio = fastest[name] / fastest["one password"]
            comparison = f"{fastest[name]:.2f} s (two passwords), {fastest['one password']:.2f} s (one)"
            if program == arguments.program:
                figures.at_most(
                    f"{name} with two passwords: time compared with a command with one", ratio, MAX_RATIO, "×",
                    comparison)
            else:
                figures.note(f"before: {name} {ratio:.2f}×, {comparison}")
    return figures.finish()


if __name__ == "__main__":
    sys.exit(main())
