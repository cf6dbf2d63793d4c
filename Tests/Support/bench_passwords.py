#!/usr/bin/env python3
"""How long the verbs take that need two passwords: on two cores as long as those that need one.

    bench_passwords.py PROGRAM [--rounds 5] [--before PROGRAM]

The backups are small and have the rounds of a real one, so that what is timed is the derivation. The figures are ratios by the
clock of the quickest runs: two threads don't use less of the processors. Exit 1 where a target is missed.
"""

import pathlib
import sys
import tempfile

from bench_files import timed
from bench_shop import Shop, parser
from figures import Figures

MOST = 1.1


def main():
    arguments = parser("Time the verbs that need two passwords.", rounds=5).parse_args()
    runs = {}
    programs = [arguments.program] + ([arguments.before] if arguments.before else [])
    with tempfile.TemporaryDirectory(prefix="keyhaul-bench-") as folder:
        shop = Shop(arguments.program, folder)
        other = pathlib.Path(shop.path("other-password"))
        other.touch(mode=0o600)
        other.write_text("battery staple", encoding="utf-8")
        shop.run("device", "create", "phone", "--from", "old-phone")
        for name, secret in (("first", shop.secret), ("second", other)):
            shop.run("backup", "phone", "-o", shop.path(name) + "/", "-p", secret)
        for turn in range(arguments.rounds):
            # One password becomes the other and, the next time, the other one again.
            old, new = (shop.secret, other) if turn % 2 == 0 else (other, shop.secret)
            for program in programs:
                verbs = {
                    "one password": ["inspect", *shop.opened("first"), "--list"],
                    "diff": ["diff", *shop.opened("first"), shop.path("second"), "--other-password-file", other],
                    "rekey": ["rekey", shop.path("changing"), "-p", old, "--new-password-file", new, "--yes"]}
                shop.run("backup", "phone", "-o", shop.path("changing") + "/", "-p", old, "--yes")
                for verb, words in verbs.items():
                    command = shop.command(*words, program=str(program.resolve()))
                    check = (lambda printed: "" if printed.count(b"\n") > 1 else "it lists no items") if verb == "one password" else None
                    runs.setdefault((program, verb), []).append(timed(command, check=check))
    figures = Figures()
    for program in programs:
        quickest = {verb: min(run.seconds for run in runs[program, verb]) for verb in verbs}
        for verb in ("diff", "rekey"):
            ratio = quickest[verb] / quickest["one password"]
            beside = f"{quickest[verb]:.2f} s (two passwords), {quickest['one password']:.2f} s (one)"
            if program == arguments.program:
                figures.at_most(f"{verb} with two passwords: time compared with a command with one", ratio, MOST, "×", beside)
            else:
                figures.note(f"before: {verb} {ratio:.2f}×, {beside}")
    return figures.conclude()


if __name__ == "__main__":
    sys.exit(main())
