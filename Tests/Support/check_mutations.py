#!/usr/bin/env python3
"""Make one change of the sources at a time, and check that the tests notice each change.

    check_mutations.py [--only 3,17] [--folder FOLDER] [--copy-only|--build-only|--skip-build] [--baseline] [--quick]
        [--table FILE]

The tracked files are copied to a scratch folder. Each expression in `mutations.py` becomes a choice between the
original and the changed expression. A process reads the number of its change from KEYHAUL_SEEDED_CHANGE, so one build
contains all changes. With 0, no expression is changed. The tests that should notice a change are run first (`suites`),
and then, if they pass, all tests. A change is caught if a test fails, crashes or does not end. Exit 1 if more than
three changes survive, if a test fails without a change, or if no test runs.
"""

import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from mutations import MUTATIONS

TOP = pathlib.Path(__file__).resolve().parents[2]
VARIABLE = "KEYHAUL_SEEDED_CHANGE"
ALLOWED_SURVIVORS = 3
# The mode that git has for a symbolic link.
LINK_MODE = "120000"
SUITES_TIMEOUT_SECONDS, ALL_TIMEOUT_SECONDS = 600, 2400

NUMBER_SOURCE = f"""#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// The seeded changes of this process, by number.
package struct SeededChanges: Sendable {{
  private let bits: UInt64

  init() {{
    let text = getenv("{VARIABLE}").map {{ String(cString: $0) }} ?? ""
    bits = text.split(separator: ",").compactMap {{ UInt64($0) }}.reduce(0) {{ $0 | 1 << $1 }}
  }}

  package static func == (changes: SeededChanges, number: UInt64) -> Bool {{ changes.bits >> number & 1 == 1 }}
}}

package let seededChange = SeededChanges()
"""

# Tests start programs with an environment of their own, which has to contain the number.
CHILD_PROCESS = "Tests/TestSupport/ChildProcess.swift"
CHILD_ENVIRONMENT = "self.environment = environment ?? ProcessInfo.processInfo.environment"


class SeedError(Exception):
    """A change that cannot be made."""


def seeded(text, mutation):
    """Return the text of a file with a choice between an original excerpt and its change."""
    before, original, after = mutation.parts
    context = before + original + after
    count = text.count(context)
    if count != 1:
        raise SeedError(f"change {mutation.number}: {mutation.file} contains {context!r} {count} times")
    condition = f"seededChange == {mutation.number}"
    if mutation.is_statement:
        choice = f"if {condition} {{ {mutation.mutant} }} else {{ {original} }}"
    else:
        choice = f"({condition} ? ({mutation.mutant}) : ({original}))"
    return text.replace(context, before + choice + after)


def with_import(text):
    """Return the text of a file with an import of Basics, which declares `seededChange`."""
    if re.search(r"^\s*(\w+ )?import Basics$", text, re.MULTILINE):
        return text
    return "import Basics\n" + text


def sources():
    """Return the files of the copy, by path."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, check=True, capture_output=True).stdout
    files = {}
    for name in listed.decode().split("\0"):
        path = TOP / name
        if name and path.is_file() and not path.is_symlink():
            files[name] = path.read_bytes()
    files.update(seeded_files(files))
    files["Sources/Library/Basics/SeededChange.swift"] = NUMBER_SOURCE.encode()
    files[CHILD_PROCESS] = with_inherited_number(files[CHILD_PROCESS].decode()).encode()
    return files


def seeded_files(files):
    """Return the files that contain changes, each with all its choices."""
    texts = {}
    for mutation in MUTATIONS:
        if mutation.file not in files:
            raise SeedError(f"change {mutation.number}: {mutation.file} does not exist")
        text = texts.get(mutation.file) or files[mutation.file].decode()
        texts[mutation.file] = seeded(text, mutation)
    return {name: with_import(text).encode() for name, text in texts.items()}


def with_inherited_number(text):
    """Return the source of ChildProcess with an environment that also contains the number."""
    if text.count(CHILD_ENVIRONMENT) != 1:
        raise SeedError(f"{CHILD_PROCESS} does not contain {CHILD_ENVIRONMENT!r} once")
    environment = "self.environment = (environment ?? ProcessInfo.processInfo.environment)"
    with_number = f'.merging(ProcessInfo.processInfo.environment.filter {{ $0.key == "{VARIABLE}" }}) {{ $1 }}'
    return text.replace(CHILD_ENVIRONMENT, f"{environment}\n      {with_number}")


def copy(folder):
    """Write the files of the copy. Unchanged files keep their times, so that little is compiled."""
    files = sources()
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not name.startswith((".build/", ".git/")) and name not in files:
            path.unlink()
    for name, contents in files.items():
        path = folder / name
        if path.is_file() and path.read_bytes() == contents:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents)
        path.chmod((TOP / name).stat().st_mode & 0o777 if (TOP / name).exists() else 0o644)
    copy_links(folder)


def copy_links(folder):
    """Create the tracked symbolic links in the copy."""
    # A line of the output: MODE OBJECT STAGE, a tab, and the path.
    listed = subprocess.run(["git", "ls-files", "-s", "-z"], cwd=TOP, check=True, capture_output=True).stdout
    for line in listed.decode().split("\0"):
        if line.startswith(LINK_MODE):
            name = line.split("\t", 1)[1]
            link = folder / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(os.readlink(TOP / name))


def run(command, folder, number, timeout):
    """Run a command in the copy. Return its exit status, or None after the timeout, and its output."""
    environment = {**os.environ, VARIABLE: str(number), "KEYHAUL_BUILD": "tests"}
    environment.pop("KEYHAUL_TESTED_PROGRAM", None)
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=timeout)
        status = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        status = None
    return status, output.decode(errors="replace")


def failure(status, output):
    """Return the name of a failed test, "timeout" or "crash", or None if all tests passed."""
    if status == 0:
        return None
    if match := re.search(r'✘\S* Test (?:"(.*?)"|(\S+)).* recorded an issue', output):
        return match.group(1) or match.group(2)
    if match := re.search(r"error: -?\[?(\S+ ?\S*?)\]? ?: ", output):
        return match.group(1)
    return "timeout" if status is None else "crash"


def test(folder, number, suites, log):
    """Run the tests whose names match, or all tests. Return a failure, or None."""
    command = [".ci/test", "--skip-build"]
    if suites:
        command += ["--filter", suites]
    status, output = run(command, folder, number, SUITES_TIMEOUT_SECONDS if suites else ALL_TIMEOUT_SECONDS)
    (log / f"{number}-{'suites' if suites else 'all'}.log").write_text(output)
    # A run that starts no test fails too, for example without a build. That is not a caught change.
    if not re.search(r"Test (?!run )\S.* started\.|Test Case .* started at", output):
        raise SeedError(f"change {number}: no test of {suites or 'all suites'} ran:\n{output[-2000:]}")
    return failure(status, output)


def build(folder):
    """Build the program and the tests, with all changes."""
    status, output = run(["swift", "build", "--build-tests"], folder, 0, 7200)
    if status != 0:
        print(output[-20000:])
        sys.exit("error: the sources with all changes do not compile")


def print_row(mutation, caught_by, seconds, table):
    """Print one row of the table."""
    row = (
        f"| {mutation.number} | {mutation.kind} | {mutation.file.removeprefix('Sources/')} | {mutation.summary} "
        f"| {caught_by or 'SURVIVED'} | {seconds:.0f} |"
    )
    print(row, flush=True)
    if table:
        with table.open("a") as file:
            file.write(row + "\n")


def test_mutations(mutations, folder, log, quick, table):
    """Run the tests for each change, and print its row. Return the number of changes that survive."""
    suite_survivors, seconds = [], {}
    print("| number | kind | file | change | caught by | seconds |\n| --- | --- | --- | --- | --- | --- |")
    for mutation in mutations:
        start = time.monotonic()
        caught_by = test(folder, mutation.number, mutation.suites, log)
        seconds[mutation.number] = time.monotonic() - start
        if caught_by:
            print_row(mutation, caught_by, seconds[mutation.number], table)
        else:
            suite_survivors.append(mutation)
    # All tests take minutes. If they pass with all remaining changes at once, each of these changes survives.
    needs_single_runs = not quick and bool(suite_survivors)
    if needs_single_runs and len(suite_survivors) > 1:
        numbers = ",".join(str(mutation.number) for mutation in suite_survivors)
        needs_single_runs = test(folder, numbers, None, log) is not None
    survivor_count = 0
    for mutation in suite_survivors:
        start = time.monotonic()
        caught_by = test(folder, mutation.number, None, log) if needs_single_runs else None
        survivor_count += caught_by is None
        print_row(mutation, caught_by, seconds[mutation.number] + time.monotonic() - start, table)
    return survivor_count


def argument_parser():
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="numbers of changes, with commas")
    parser.add_argument("--folder", type=pathlib.Path, default=TOP / ".build" / "mutations")
    parser.add_argument("--copy-only", action="store_true", help="write the copy, and stop")
    parser.add_argument("--build-only", action="store_true", help="build, and stop")
    parser.add_argument("--skip-build", action="store_true", help="use the last build")
    parser.add_argument("--quick", action="store_true", help="run only the suites of each change")
    parser.add_argument("--baseline", action="store_true", help="run all tests without a change first")
    parser.add_argument("--table", type=pathlib.Path, help="add the rows to this file too")
    return parser


def main():
    """Run the command line."""
    parser = argument_parser()
    options = parser.parse_args()
    selected = MUTATIONS
    if options.only:
        numbers = {int(number) for number in options.only.split(",")}
        selected = [mutation for mutation in MUTATIONS if mutation.number in numbers]
        if len(selected) < len(numbers):
            parser.error(f"the changes have the numbers 1 to {len(MUTATIONS)}")
    folder = options.folder.resolve()
    log = folder / ".build" / "mutation-logs"
    folder.mkdir(parents=True, exist_ok=True)
    if not options.skip_build:
        copy(folder)
        if options.copy_only:
            return 0
        start = time.monotonic()
        build(folder)
        print(f"built in {time.monotonic() - start:.0f} seconds", flush=True)
    if options.build_only:
        return 0
    log.mkdir(parents=True, exist_ok=True)
    if options.baseline and (failed := test(folder, 0, None, log)):
        sys.exit(f"error: a test fails without a change: {failed}")

    survivor_count = test_mutations(selected, folder, log, options.quick, options.table)
    print(f"{len(selected) - survivor_count} of {len(selected)} caught")
    return 1 if survivor_count > ALLOWED_SURVIVORS else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SeedError as error:
        sys.exit(f"error: {error}")
