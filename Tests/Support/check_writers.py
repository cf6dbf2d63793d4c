#!/usr/bin/env python3
"""Runs two commands on one backup at the same time, and compares the result with one command after the other.

    check_writers.py PROGRAM [--runs 40] [--seed WORD] [--only WORD] [--wait TIME]

Every pair of two writers, and every pair of a reader and a writer, runs on a folder, a tar and a zip. Two writers must leave
the items, password and seal of one of the two orders. A command that did not exit with 0 must have changed nothing, and must
exit with 11 or with its code in one of the two orders. A reader's result must be that of the backup before or after the
change. In every second run, both commands wait for each other (--wait); in the others, the second one may exit with 11.
Exit 1 if a check fails.
"""

import argparse
import collections
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

OLD = "password-old"
GROUP = "ABCDE12345.org.example.writers"
FORMS = {"folder": "b", "tar": "b.tar", "zip": "b.zip"}
# Members of results that differ in every run.
TIMES = ("made", "checksum", "unlocked_in_seconds", "unlock_seconds")
BUSY = 11
# The message of `item find` if nothing matches.
NO_MATCH = 4
WRONG_PASSWORD = 12


@dataclass(frozen=True)
class State:
    """The parts of a backup that these commands can change."""

    password: str
    is_sealed: bool
    # The label of each item, by its service.
    items: frozenset


@dataclass(frozen=True)
class Writer:
    """A command that changes the backup, and its effect on a state: the exit code and the new state."""

    name: str

    def words(self, backup, turn):
        key = ["--password-file", OLD]
        service = ["--service", f"added-{turn}", "--account", "anna", "--access-group", GROUP]
        return {
            "item add": ["item", "add", backup, *service, "--secret-file", "secret", *key],
            "item update": ["item", "update", backup, "--service", "kept", "--new-label", f"label-{turn}", "--yes", *key],
            "item delete": ["item", "delete", backup, "--service", f"gone-{turn}", "--yes", *key],
            "rekey": ["rekey", backup, *key, "--new-password-file", f"password-{turn}", "--rounds", "1"],
            "seal": ["seal", backup, *key],
            "convert": ["convert", "other", "-o", target(backup), "--yes"],
            "backup": ["backup", "phone", "-o", target(backup), *key, "--rounds", "1", "--yes"],
        }[self.name]

    def applied(self, state, turn, replaced):
        if self.name == "convert":
            return 0, replaced["other"]
        if self.name == "backup":
            return 0, replaced["phone"]
        if state.password != OLD:
            return WRONG_PASSWORD, state
        items = dict(state.items)
        if self.name == "item add":
            items[f"added-{turn}"] = None
        elif self.name == "item update":
            if "kept" not in items:
                return NO_MATCH, state
            items["kept"] = f"label-{turn}"
        elif self.name == "item delete":
            if f"gone-{turn}" not in items:
                return NO_MATCH, state
            del items[f"gone-{turn}"]
        elif self.name == "rekey":
            return 0, State(f"password-{turn}", state.is_sealed, state.items)
        elif self.name == "seal":
            return 0, State(state.password, True, state.items)
        return 0, State(state.password, state.is_sealed, frozenset(items.items()))


WRITERS = [Writer(name) for name in ("item add", "item update", "item delete", "rekey", "seal", "convert", "backup")]
READERS = ["verify", "inspect", "item find", "export", "plan", "diff", "convert to another"]


def target(backup):
    return f"{backup}/" if "." not in backup else backup


def reading(name, backup):
    key = ["--password-file", OLD]
    return {
        "verify": ["verify", backup, *key, "--json"],
        "inspect": ["inspect", backup, *key, "--json"],
        "item find": ["item", "find", backup, *key, "--json"],
        "export": ["export", backup, "-o", "out.json", "--format", "json", *key, "--yes"],
        "plan": ["plan", backup, "--to", "target", *key, "--json"],
        "diff": ["diff", backup, "other", *key, "--json"],
        "convert to another": ["convert", backup, "-o", "copy.tar", "--yes"],
    }[name]


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(member) for key, member in value.items() if key not in TIMES}
    return [without_times(member) for member in value] if isinstance(value, list) else value


def difference(given, other):
    """Returns the first difference of two results."""
    one, two = str(given), str(other)
    start = next((place for place, (left, right) in enumerate(zip(one, two)) if left != right), min(len(one), len(two)))
    return f"{one[max(start - 60, 0):start + 60]} instead of {two[max(start - 60, 0):start + 60]}"


class Writers:
    def __init__(self, program, work, moments, wait):
        self.program, self.work, self.moments, self.wait = str(pathlib.Path(program).resolve()), work, moments, wait
        self.checks, self.codes = Checks(), collections.Counter()
        self.template = work / "template"
        self.prepare()

    def arguments(self, *words):
        """Readers use their own device folder, which no writer uses."""
        writes = words[0] in ("backup", "device") or words[2].startswith("device:")
        home = "home" if writes and words[-1] != "target" else "targets"
        return [self.program, *words, "--home", home, "--no-input"]

    def start(self, folder, words):
        return subprocess.Popen(
            self.arguments(*words), cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)

    def run(self, folder, *words):
        done = subprocess.run(
            self.arguments(*words), cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        return done.returncode, done.stdout, done.stderr.decode("utf-8", "replace").strip()

    def must(self, *words):
        code, output, said = self.run(self.template, *words)
        if code != 0:
            raise RuntimeError(f"{' '.join(words)} exited with {code}: {said}")
        return output

    def prepare(self):
        self.template.mkdir()
        for name in (OLD, "password-1", "password-2"):
            (self.template / name).touch(mode=0o600)
            (self.template / name).write_text(f"the words of {name}\n", encoding="utf-8")
        (self.template / "secret").touch(mode=0o600)
        (self.template / "secret").write_text("a secret", encoding="utf-8")
        for device in ("phone", "other", "target"):
            self.must("device", "create", device)
        for service in ("kept", "gone-1", "gone-2"):
            self.add("phone", service)
        self.add("other", "elsewhere")
        key = ["--password-file", OLD, "--rounds", "1", "--yes"]
        self.must("backup", "phone", "-o", "b/", *key)
        self.must("backup", "other", "-o", "other/", *key)
        # A later backup of the phone has other contents than the existing one.
        self.add("phone", "newer")
        shutil.copytree(self.template / "b", self.template / "bare")
        (self.template / "bare" / "Keyhaul.seal").unlink()
        for name in ("b", "bare"):
            for end in (".tar", ".zip"):
                self.must("convert", name, "-o", name + end)
        self.must("backup", "phone", "-o", "sample/", *key)
        self.replaced = {"other": self.state(self.template, "other")[0], "phone": self.state(self.template, "sample")[0]}
        shutil.rmtree(self.template / "sample")

    def add(self, device, service):
        self.must("item", "add", f"device:{device}", "--service", service, "--account", "anna", "--access-group", GROUP,
                  "--secret-file", "secret")

    def state(self, folder, backup):
        """Returns the contents of the backup, and its faults."""
        for password in (OLD, "password-1", "password-2"):
            key = ["--password-file", password]
            code, output, said = self.run(folder, "item", "find", backup, *key, "--json")
            if code == WRONG_PASSWORD:
                continue
            if code not in (0, NO_MATCH):
                return None, f"item find exits with {code}: {said}"
            items = frozenset(
                (item["attributes"]["svce"], item["attributes"].get("labl"))
                for item in json.loads(output)["items"])
            code, output, said = self.run(folder, "verify", backup, *key, "--json")
            if code != 0:
                return None, f"verify exits with {code}: {said} {output[:400]}"
            return State(password, self.is_sealed(json.loads(output)), items), None
        return None, "no password opens it"

    @staticmethod
    def is_sealed(verification):
        return any(check["id"] == "seal" and check["ok"] for check in verification["checks"])

    def fresh(self):
        folder = self.work / "place"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.template, folder, symlinks=True)
        return folder

    def place(self, form, pair):
        """Creates a new folder for a run. The backup has no seal if a command adds one."""
        folder, backup = self.fresh(), FORMS[form]
        if "seal" in pair:
            there = folder / backup
            shutil.rmtree(there) if there.is_dir() else there.unlink()
            (folder / backup.replace("b", "bare", 1)).rename(there)
        return folder, backup

    def both(self, folder, first, second, waits):
        extra = ["--wait", self.wait] if waits else []
        one = self.start(folder, [*first, *extra])
        time.sleep(self.moments.random() * 0.04)
        two = self.start(folder, [*second, *extra])
        answers = []
        for process in (one, two):
            output, said = process.communicate(timeout=180)
            answers.append((process.returncode, output, said.decode("utf-8", "replace").strip()))
        return answers

    def write_beside(self, form, one, two, number):
        folder, backup = self.place(form, (one.name, two.name))
        before, fault = self.state(folder, backup)
        self.checks.check(fault is None, f"{form}, before: {fault}")
        answers = self.both(folder, one.words(backup, 1), two.words(backup, 2), number % 2 == 0)
        codes = [answer[0] for answer in answers]
        self.count(f"{one.name} beside {two.name}", codes)
        allowed = set()
        for order in ([(one, 1), (two, 2)], [(two, 2), (one, 1)]):
            state, expected = before, {}
            for writer, turn in order:
                if codes[turn - 1] == BUSY:
                    expected[turn] = BUSY
                else:
                    expected[turn], state = writer.applied(state, turn, self.replaced)
            if [expected[1], expected[2]] == codes:
                allowed.add(state)
        name = f"{form}: {one.name} beside {two.name}, run {number}: exit codes {codes}"
        said = "; ".join(answer[2] for answer in answers)
        self.checks.check(allowed, f"{name} are those of no order: {said}")
        if allowed:
            after, fault = self.state(folder, backup)
            self.checks.check(after in allowed, f"{name}: {fault or (after, allowed)}: {said}")
        self.checks.check(codes.count(BUSY) < 2, f"{name}: neither did its work")
        if number % 2 == 0:
            self.checks.check(BUSY not in codes, f"{name}: it did not wait")
        self.nothing_left(folder, name)

    def read_beside(self, form, reader, writer, number):
        folder, backup = self.place(form, (writer.name,))
        before = self.answer(reader, folder, backup)
        read, written = self.both(
            folder, reading(reader, backup), writer.words(backup, 1), number % 2 == 0)
        self.count(f"{reader} beside {writer.name}", [read[0], written[0]])
        name = f"{form}: {reader} beside {writer.name}, run {number}"
        given = self.answer(reader, folder, backup, read)
        after = self.answer(reader, folder, backup)
        self.checks.check(
            read[0] == BUSY or given in (before, after),
            f"{name}: {read[0]} {read[2][-300:]}: {difference(given, before)}; {difference(given, after)}")
        self.checks.check(written[0] in (0, BUSY), f"{name}: the writer exits with {written[0]}: {written[2]}")
        if written[0] == BUSY:
            self.checks.check(before == after, f"{name}: exit code 11, and the backup changed")
        if number % 2 == 0:
            self.checks.check(BUSY not in (read[0], written[0]), f"{name}: it did not wait")
        self.nothing_left(folder, name)

    def answer(self, reader, folder, backup, run=None):
        """Returns a reader's exit code and result, without times."""
        code, output, _ = run or self.run(folder, *reading(reader, backup))
        if code != 0 and code not in (NO_MATCH, 2):
            return code, None
        if reader == "export":
            output = (folder / "out.json").read_bytes()
            return code, sorted(str(item) for item in json.loads(output)["items"])
        if reader == "convert to another":
            state, fault = self.state(folder, "copy.tar")
            (folder / "copy.tar").unlink()
            return code, state or fault
        return code, json.dumps(without_times(json.loads(output)), sort_keys=True)

    def nothing_left(self, folder, name):
        known = {path.name for path in self.template.iterdir()} | {"out.json", "copy.tar"}
        left = {path.name for path in folder.iterdir()} - known
        self.checks.check(not left, f"{name}: {sorted(left)} was left")

    def count(self, pair, codes):
        self.codes[pair, "runs"] += 1
        self.codes[pair, BUSY] += codes.count(BUSY)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--runs", type=int, default=40, help="runs of each pair and form")
    parser.add_argument("--seed", default="writers")
    parser.add_argument("--only", default="", help="pairs whose name contains this")
    parser.add_argument("--wait", default="60s")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        writers = Writers(given.program, pathlib.Path(work), random.Random(given.seed), given.wait)
        for form in FORMS:
            for one, two in itertools.combinations_with_replacement(WRITERS, 2):
                if given.only in f"{form}: {one.name} beside {two.name}":
                    for number in range(given.runs):
                        writers.write_beside(form, one, two, number)
            for reader, writer in itertools.product(READERS, WRITERS):
                if given.only in f"{form}: {reader} beside {writer.name}":
                    for number in range(given.runs):
                        writers.read_beside(form, reader, writer, number)
        runs = sum(count for (_, key), count in writers.codes.items() if key == "runs")
        busy = sum(count for (_, key), count in writers.codes.items() if key == BUSY)
        print(f"{runs} runs of two commands on one backup; {busy} commands exited with 11 and changed nothing")
        return writers.checks.conclude()


if __name__ == "__main__":
    raise SystemExit(main())
