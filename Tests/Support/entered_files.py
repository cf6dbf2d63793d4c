#!/usr/bin/env python3
"""Counts the source files and modules that `backup`, `plan` and `restore` enter, on the bundled devices.

    entered_files.py PROGRAM

PROGRAM was built with `swift build --enable-code-coverage --product keyhaul`. A file counts if a function of it ran.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    compiler = pathlib.Path(shutil.which("swiftc")).resolve().parent
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, text in [("old.pin", "135790\n"), ("new.pin", "2468\n"), ("password", "correct horse\n")]:
            (folder / name).touch(mode=0o600)
            (folder / name).write_text(text)
        home = ["--home", str(folder / "devices")]
        archive = str(folder / "family.backup")
        password = ["--password-file", str(folder / "password")]
        calls = [
            ["device", "create", "old-phone", "--from", "old-phone", "--passcode-file", str(folder / "old.pin")],
            ["device", "create", "new-phone", "--from", "new-phone", "--passcode-file", str(folder / "new.pin")],
            ["backup", "old-phone", "-o", archive, "--rounds", "1000", *password],
            ["plan", archive, "--to", "new-phone", *password],
            ["restore", archive, "--to", "new-phone", "--yes", *password],
        ]
        for call in calls:
            profile = folder / (call[0] + ".profraw")
            done = subprocess.run(
                [program, *call, *home, "--no-input"], env={**os.environ, "LLVM_PROFILE_FILE": str(profile)}, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True)
            if done.returncode != 0:
                sys.exit(f"error: {' '.join(call)} ended with {done.returncode}\n{done.stdout}")
            if call[0] != "device":
                files = entered(program, profile, compiler)
                print(f"{call[0]:<8} {len(files):>4} files in {len({module(file) for file in files}):>3} modules")


def entered(program, profile, compiler):
    merged = profile.with_suffix(".profdata")
    subprocess.run([compiler / "llvm-profdata", "merge", "-o", merged, profile], check=True)
    report = subprocess.run(
        [compiler / "llvm-cov", "export", "-summary-only", "-instr-profile", merged, program], check=True,
        stdout=subprocess.PIPE)
    files = json.loads(report.stdout)["data"][0]["files"]
    return [file["filename"] for file in files
            if "/Sources/" in file["filename"] and ".build" not in file["filename"] and file["filename"].endswith(".swift")
            and file["summary"]["functions"]["covered"] > 0]


def module(file):
    """The folder of the target: below Sources, and below one of its layers where there are any."""
    parts = file.split("/Sources/")[1].split("/")
    return parts[1] if parts[0] in ("Library", "CommandLine", "Apple", "C") else parts[0]


if __name__ == "__main__":
    main()
