#!/usr/bin/env python3
"""Run two commands on one backup at the same time, and compare the result with running one after the other.

    check_writers.py PROGRAM [--runs 40] [--seed SEED] [--only PAIR] [--wait TIME]

Every pair of two writers, and every pair of a reader and a writer, runs on a folder, a tar and a zip. After two
writers, the backup must be as if one had run after the other, in either order. So must the exit codes, except that a
command may exit with 11 (busy). A command that failed must have changed nothing. A reader's result must be its result
for the backup before or after the change. In every second run, both commands wait for each other (--wait), so neither
may exit with 11. Exit 1 if a check fails.
"""

import argparse
import itertools
import json
import pathlib
import random
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass

from checks import Checks

OLD_PASSWORD = "password-old"
GROUP = "ABCDE12345.org.example.writers"
BACKUP_NAMES = {"folder": "b", "tar": "b.tar", "zip": "b.zip"}
# Members of results that differ in every run.
VOLATILE_MEMBERS = ("made", "checksum", "unlocked_in_seconds", "unlock_seconds")
BUSY = 11
# The exit code of `item find` if nothing matches.
NO_MATCH = 4
# The exit code for differences.
DIFFERS = 2
WRONG_PASSWORD = 12


@dataclass(frozen=True)
class State:
    """The parts of a backup that these commands can change."""

    password: str
    has_valid_seal: bool
    # The label of each item, by its service.
    items: frozenset


@dataclass(frozen=True)
class Writer:
    """A command that changes a backup, and its effect."""

    name: str

    def command(self, backup, index):
        """Return the command."""
        password_options = ["--password-file", OLD_PASSWORD]
        service = ["--service", f"added-{index}", "--account", "anna", "--access-group", GROUP]
        return {
            "item add": [
                "item", "add", backup, "--in-place", *service, "--secret-file", "secret", *password_options],
            "item update": [
                "item", "update", backup, "--in-place", "--service", "kept", "--new-label", f"label-{index}", "--yes",
                *password_options],
            "item delete": [
                "item", "delete", backup, "--in-place", "--service", f"gone-{index}", "--yes", *password_options],
            "rekey": [
                "rekey", backup, "--in-place", *password_options, "--new-password-file", f"password-{index}",
                "--rounds", "1"],
            "seal": ["seal", backup, *password_options],
            "convert": ["convert", "other", "-o", output_argument(backup), "--yes"],
            "backup": ["backup", "phone", "-o", output_argument(backup), *password_options, "--rounds", "1", "--yes"],
        }[self.name]

    def apply(self, state, index, replacements):
        """Return the exit code and the state after the command runs alone on a backup with this state."""
        if self.name == "convert":
            return 0, replacements["other"]
        if self.name == "backup":
            return 0, replacements["phone"]
        if state.password != OLD_PASSWORD:
            return WRONG_PASSWORD, state
        items = dict(state.items)
        if self.name == "item add":
            items[f"added-{index}"] = None
        elif self.name == "item update":
            if "kept" not in items:
                return NO_MATCH, state
            items["kept"] = f"label-{index}"
        elif self.name == "item delete":
            if f"gone-{index}" not in items:
                return NO_MATCH, state
            del items[f"gone-{index}"]
        elif self.name == "rekey":
            return 0, State(f"password-{index}", state.has_valid_seal, state.items)
        elif self.name == "seal":
            return 0, State(state.password, True, state.items)
        return 0, State(state.password, state.has_valid_seal, frozenset(items.items()))


WRITERS = [Writer(name) for name in ("item add", "item update", "item delete", "rekey", "seal", "convert", "backup")]
READERS = ["verify", "inspect", "item find", "export", "plan", "diff", "convert to another"]


def output_argument(backup):
    """Return the output argument for a backup: a folder has a trailing slash."""
    return f"{backup}/" if "." not in backup else backup


def reading_command(name, backup):
    """Return a command that reads a backup."""
    password_options = ["--password-file", OLD_PASSWORD]
    return {
        "verify": ["verify", backup, *password_options, "--json"],
        "inspect": ["inspect", backup, *password_options, "--json"],
        "item find": ["item", "find", backup, *password_options, "--json"],
        "export": ["export", backup, "-o", "out.json", "--format", "json", *password_options, "--yes"],
        "plan": ["plan", backup, "--to", "target", *password_options, "--json"],
        "diff": ["diff", backup, "other", *password_options, "--json"],
        "convert to another": ["convert", backup, "-o", "copy.tar", "--yes"],
    }[name]


def without_times(value):
    """Return a document without the members that differ in every run."""
    if isinstance(value, dict):
        return {key: without_times(member) for key, member in value.items() if key not in VOLATILE_MEMBERS}
    return [without_times(member) for member in value] if isinstance(value, list) else value


def difference(first, second):
    """Return the first difference of two results, with 60 characters of context."""
    first_text, second_text = str(first), str(second)
    position = next(
        (position for position, (left, right) in enumerate(zip(first_text, second_text)) if left != right),
        min(len(first_text), len(second_text))
    )
    context = slice(max(position - 60, 0), position + 60)
    return f"{first_text[context]} instead of {second_text[context]}"


class ConcurrentRunner:
    """Runs of two commands at the same time in copies of a template folder, with their checks and counts."""

    def __init__(self, program, work, rng, wait):
        self.program, self.work, self.rng, self.wait = str(pathlib.Path(program).resolve()), work, rng, wait
        self.checks, self.run_count, self.busy_count = Checks(), 0, 0
        self.template = work / "template"
        self.prepare()

    def arguments(self, *command):
        """Return a command line.

        Commands that read or change the phone use the device folder `home`. All others use `targets`, so that they do
        not wait for each other's devices.
        """
        uses_phone_home = command[0] in ("backup", "device") or command[2].startswith("device:")
        home = "home" if uses_phone_home and command[-1] != "target" else "targets"
        return [self.program, *command, "--home", home, "--no-input"]

    def start(self, folder, command):
        return subprocess.Popen(
            self.arguments(*command), cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)

    def run(self, folder, *command):
        process = subprocess.run(
            self.arguments(*command), cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        return process.returncode, process.stdout, process.stderr.decode("utf-8", "replace").strip()

    def run_checked(self, *command):
        code, output, error_output = self.run(self.template, *command)
        if code != 0:
            raise RuntimeError(f"{' '.join(command)} exited with {code}: {error_output}")
        return output

    def prepare(self):
        """Create the template folder with devices, backups and passwords."""
        self.template.mkdir()
        for name in (OLD_PASSWORD, "password-1", "password-2"):
            (self.template / name).touch(mode=0o600)
            (self.template / name).write_text(f"the password in {name}\n", encoding="utf-8")
        (self.template / "secret").touch(mode=0o600)
        (self.template / "secret").write_text("a secret", encoding="utf-8")
        for device in ("phone", "other", "target"):
            self.run_checked("device", "create", device)
        for service in ("kept", "gone-1", "gone-2"):
            self.add("phone", service)
        self.add("other", "elsewhere")
        password_options = ["--password-file", OLD_PASSWORD, "--rounds", "1", "--yes"]
        self.run_checked("backup", "phone", "-o", "b/", *password_options)
        self.run_checked("backup", "other", "-o", "other/", *password_options)
        # A new backup of the phone differs from the existing one.
        self.add("phone", "newer")
        shutil.copytree(self.template / "b", self.template / "bare")
        (self.template / "bare" / "Keyhaul.seal").unlink()
        for name in ("b", "bare"):
            for suffix in (".tar", ".zip"):
                self.run_checked("convert", name, "-o", name + suffix)
        self.run_checked("backup", "phone", "-o", "sample/", *password_options)
        # The states of the backups with which `convert` and `backup` replace the existing one.
        self.replacements = {
            "other": self.state(self.template, "other")[0],
            "phone": self.state(self.template, "sample")[0],
        }
        shutil.rmtree(self.template / "sample")

    def add(self, device, service):
        self.run_checked(
            "item", "add", f"device:{device}", "--service", service, "--account", "anna", "--access-group", GROUP,
            "--secret-file", "secret")

    def state(self, folder, backup):
        """Return the state of a backup, or None and the reason why it cannot be read."""
        for password in (OLD_PASSWORD, "password-1", "password-2"):
            password_options = ["--password-file", password]
            code, output, error_output = self.run(folder, "item", "find", backup, *password_options, "--json")
            if code == WRONG_PASSWORD:
                continue
            if code not in (0, NO_MATCH):
                return None, f"item find exits with {code}: {error_output}"
            items = frozenset(
                (item["attributes"]["svce"], item["attributes"].get("labl"))
                for item in json.loads(output)["items"])
            code, output, error_output = self.run(folder, "verify", backup, *password_options, "--json")
            if code != 0:
                return None, f"verify exits with {code}: {error_output} {output[:400]}"
            return State(password, self.has_valid_seal(json.loads(output)), items), None
        return None, "no password decrypts it"

    @staticmethod
    def has_valid_seal(verification):
        return any(check["id"] == "seal" and check["ok"] for check in verification["checks"])

    def new_folder(self):
        folder = self.work / "copy"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.template, folder, symlinks=True)
        return folder

    def new_backup(self, layout, pair):
        """Create a folder for a run. The backup has no seal if a command adds one."""
        folder, backup = self.new_folder(), BACKUP_NAMES[layout]
        if "seal" in pair:
            path = folder / backup
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            (folder / backup.replace("b", "bare", 1)).rename(path)
        return folder, backup

    def run_both(self, folder, first, second, waits):
        """Run two commands at the same time. Return the exit code, output and error of each."""
        wait_options = ["--wait", self.wait] if waits else []
        first_process = self.start(folder, [*first, *wait_options])
        time.sleep(self.rng.random() * 0.04)
        second_process = self.start(folder, [*second, *wait_options])
        results = []
        for process in (first_process, second_process):
            output, error_output = process.communicate(timeout=180)
            results.append((process.returncode, output, error_output.decode("utf-8", "replace").strip()))
        return results

    def check_writers(self, layout, first_writer, second_writer, number):
        """Run two writers at the same time, and check the result."""
        folder, backup = self.new_backup(layout, (first_writer.name, second_writer.name))
        before, fault = self.state(folder, backup)
        self.checks.check(fault is None, f"{layout}, before: {fault}")
        results = self.run_both(
            folder, first_writer.command(backup, 1), second_writer.command(backup, 2), number % 2 == 0)
        codes = [result[0] for result in results]
        self.count(codes)
        allowed = self.possible_states(before, first_writer, second_writer, codes)
        name = f"{layout}: {first_writer.name} during {second_writer.name}, run {number}: exit codes {codes}"
        error_output = "; ".join(result[2] for result in results)
        self.checks.check(allowed, f"{name} match neither order: {error_output}")
        if allowed:
            after, fault = self.state(folder, backup)
            self.checks.check(after in allowed, f"{name}: {fault or (after, allowed)}: {error_output}")
        self.checks.check(codes.count(BUSY) < 2, f"{name}: neither command did its work")
        if number % 2 == 0:
            self.checks.check(BUSY not in codes, f"{name}: a command did not wait")
        self.check_leftover(folder, name)

    def possible_states(self, before, first_writer, second_writer, codes):
        """Return the final states of the orders that explain these exit codes. A busy writer changes nothing."""
        states = set()
        numbered_writers = [(1, first_writer), (2, second_writer)]
        for order in (numbered_writers, numbered_writers[::-1]):
            state, expected_codes = before, {}
            for number, writer in order:
                if codes[number - 1] == BUSY:
                    expected_codes[number] = BUSY
                else:
                    expected_codes[number], state = writer.apply(state, number, self.replacements)
            if [expected_codes[1], expected_codes[2]] == codes:
                states.add(state)
        return states

    def check_reader(self, layout, reader, writer, number):
        """Run a reader and a writer at the same time, and check both results."""
        folder, backup = self.new_backup(layout, (writer.name,))
        before = self.read_result_of(reader, folder, backup)
        read_result, write_result = self.run_both(
            folder, reading_command(reader, backup), writer.command(backup, 1), number % 2 == 0)
        self.count([read_result[0], write_result[0]])
        name = f"{layout}: {reader} during {writer.name}, run {number}"
        result = self.read_result_of(reader, folder, backup, read_result)
        after = self.read_result_of(reader, folder, backup)
        self.checks.check(
            read_result[0] == BUSY or result in (before, after),
            f"{name}: {read_result[0]} {read_result[2][-300:]}: {difference(result, before)}; "
            f"{difference(result, after)}")
        self.checks.check(
            write_result[0] in (0, BUSY), f"{name}: the writer exits with {write_result[0]}: {write_result[2]}"
        )
        if write_result[0] == BUSY:
            self.checks.check(before == after, f"{name}: exit code 11, and the backup changed")
        if number % 2 == 0:
            self.checks.check(BUSY not in (read_result[0], write_result[0]), f"{name}: a command did not wait")
        self.check_leftover(folder, name)

    def read_result_of(self, reader, folder, backup, finished_run=None):
        """Return a reader's exit code and result, without times, of a finished run or else of a new run."""
        code, output, _ = finished_run or self.run(folder, *reading_command(reader, backup))
        if code not in (0, NO_MATCH, DIFFERS):
            return code, None
        if reader == "export":
            output = (folder / "out.json").read_bytes()
            return code, sorted(str(item) for item in json.loads(output)["items"])
        if reader == "convert to another":
            state, fault = self.state(folder, "copy.tar")
            (folder / "copy.tar").unlink()
            return code, state or fault
        return code, json.dumps(without_times(json.loads(output)), sort_keys=True)

    def check_leftover(self, folder, name):
        """Check that the folder has no unexpected files."""
        expected_names = {path.name for path in self.template.iterdir()} | {"out.json", "copy.tar"}
        leftover = {path.name for path in folder.iterdir()} - expected_names
        self.checks.check(not leftover, f"{name}: {sorted(leftover)} is left")

    def count(self, codes):
        """Count a run of two commands with these exit codes."""
        self.run_count += 1
        self.busy_count += codes.count(BUSY)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--runs", type=int, default=40, help="runs of each pair and kind of backup")
    parser.add_argument("--seed", default="writers")
    parser.add_argument("--only", default="", help="pairs whose name contains this")
    parser.add_argument("--wait", default="60s")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        runner = ConcurrentRunner(arguments.program, pathlib.Path(work), random.Random(arguments.seed), arguments.wait)
        for layout in BACKUP_NAMES:
            for first_writer, second_writer in itertools.combinations_with_replacement(WRITERS, 2):
                if arguments.only in f"{layout}: {first_writer.name} during {second_writer.name}":
                    for number in range(arguments.runs):
                        runner.check_writers(layout, first_writer, second_writer, number)
            for reader, writer in itertools.product(READERS, WRITERS):
                if arguments.only in f"{layout}: {reader} during {writer.name}":
                    for number in range(arguments.runs):
                        runner.check_reader(layout, reader, writer, number)
        print(
            f"{runner.run_count} runs of two commands on one backup; "
            f"{runner.busy_count} commands exited with 11 and changed nothing")
        return runner.checks.finish()


if __name__ == "__main__":
    raise SystemExit(main())
