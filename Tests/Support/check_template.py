#!/usr/bin/env python3
"""Build and test docs/Templates/AppKeychainTests as an app's developer does, beside a copy of this project.

    check_template.py [--tests N]

Print how many steps and seconds the build takes with nothing built before. Exit 1 unless N tests pass.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEMPLATE = ROOT / "docs" / "Templates" / "AppKeychainTests"


def tracked_files():
    """Return the paths of the files in git."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [name for name in names.split("\0") if name]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=int, default=5, help="the number of tests that must pass")
    arguments = parser.parse_args()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KEYHAUL_")}
    with tempfile.TemporaryDirectory(prefix="keyhaul-template-") as folder:
        folder = pathlib.Path(folder)
        for name in tracked_files():
            if (ROOT / name).exists():
                copy = folder / "keyhaul" / name
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, copy, follow_symlinks=False)
        package = folder / "AppKeychainTests"
        shutil.copytree(TEMPLATE, package)
        start = time.monotonic()
        build = subprocess.run(
            ["swift", "build", "--build-tests"], cwd=package, env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        seconds = time.monotonic() - start
        if build.returncode != 0:
            sys.exit(f"the template does not build:\n{build.stdout[-4000:]}")
        steps = max(int(count) for count in re.findall(r"\[\d+/(\d+)\]", build.stdout))
        test = subprocess.run(
            ["swift", "test", "--skip-build"], cwd=package, env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        swift_testing = re.findall(r"Test run with (\d+) tests?.* passed", test.stdout)
        xctest = re.findall(r"Executed (\d+) tests?, with 0 failures", test.stdout)
        passed = sum(map(int, swift_testing[-1:] + xctest[-1:]))
        if test.returncode != 0 or passed != arguments.tests:
            sys.exit(f"{passed} tests of the template passed, expected {arguments.tests}:\n{test.stdout[-4000:]}")
        print(f"the template: {passed} tests passed; the build took {steps} steps and {seconds:.0f} seconds")


if __name__ == "__main__":
    main()
