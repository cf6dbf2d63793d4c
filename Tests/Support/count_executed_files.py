#!/usr/bin/env python3
"""Count the source files and modules that `backup`, `plan` and `restore` execute, on the bundled devices.

    count_executed_files.py PROGRAM

PROGRAM was built with `swift build --enable-code-coverage --product keyhaul`. A file counts if one of its functions
ran.
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
    toolchain = pathlib.Path(shutil.which("swiftc")).resolve().parent
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, text in [("old.pin", "135790\n"), ("new.pin", "2468\n"), ("password", "correct horse\n")]:
            (folder / name).touch(mode=0o600)
            (folder / name).write_text(text)
        home = ["--home", str(folder / "devices")]
        backup_path = str(folder / "family.backup")
        password = ["--password-file", str(folder / "password")]
        calls = [
            ["device", "create", "old-phone", "--from", "old-phone", "--passcode-file", str(folder / "old.pin")],
            ["device", "create", "new-phone", "--from", "new-phone", "--passcode-file", str(folder / "new.pin")],
            ["backup", "old-phone", "-o", backup_path, "--rounds", "1000", *password],
            ["plan", backup_path, "--to", "new-phone", *password],
            ["restore", backup_path, "--to", "new-phone", "--yes", *password]]
        for call in calls:
            profile = folder / (call[0] + ".profraw")
            process = subprocess.run(
                [program, *call, *home, "--no-input"], env={**os.environ, "LLVM_PROFILE_FILE": str(profile)},
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if process.returncode != 0:
                sys.exit(f"error: {' '.join(call)} ended with {process.returncode}\n{process.stdout}")
            if call[0] != "device":
                files = executed_files(program, profile, toolchain)
                print(f"{call[0]:<8} {len(files):>4} files in {len({module_name(file) for file in files}):>3} modules")


def executed_files(program, profile, toolchain):
    """Return the source files with a function that ran."""
    merged = profile.with_suffix(".profdata")
    subprocess.run([toolchain / "llvm-profdata", "merge", "-o", merged, profile], check=True)
    report = subprocess.run(
        [toolchain / "llvm-cov", "export", "-summary-only", "-instr-profile", merged, program], check=True,
        stdout=subprocess.PIPE)
    files = json.loads(report.stdout)["data"][0]["files"]
    return [
        file["filename"]
        for file in files
        if "/Sources/" in file["filename"]
        and ".build" not in file["filename"]
        and file["filename"].endswith(".swift")
        and file["summary"]["functions"]["covered"] > 0
    ]


def module_name(file):
    """Return the folder of the target: below Sources, or below one of its layers."""
    parts = file.split("/Sources/")[1].split("/")
    return parts[1] if parts[0] in ("Library", "CommandLine", "Apple", "C") else parts[0]


if __name__ == "__main__":
    main()
