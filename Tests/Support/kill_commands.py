#!/usr/bin/env python3
"""Kill each writing command at random moments, and check the state that it leaves.

    kill_commands.py PROGRAM [--kills 1000] [--seed N] [--only SCENARIO]

Each round copies a folder with devices and backups, starts one command in a new process group, and sends SIGKILL at a
moment between its start and the end of an undisturbed run. Then the state must be that before the command or that after
a complete run: the items with their secrets, the password, and the result of `verify`. Other files must be unchanged. A
reading command must work. The command itself, run again, must reach the state of an undisturbed run, and leave no other
files. Only kills of a running program count. Exit 1 if a check fails.
"""

import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

from bench_data import write_description
from checks import Checks

OLD_PASSWORD, NEW_PASSWORD = "old-password", "new-password"
# Files with the passcode of the description `old-phone`, and with a different one.
PASSCODE_FILE, NEW_PASSCODE_FILE = "pin", "new-pin"
# Attributes that are random or depend on the time of a write.
VOLATILE_ATTRIBUTES = {"cdat", "mdat", "UUID", "persistref", "sha1"}
GROUP = "ABCDE12345.org.example.kills"
# The access group of two items of the description `old-phone`.
CHAT = "ABCDE12345.org.example.chat"
# Three quarters of these items are in one table. Above 2,000 new rows, a restore drops a table's indexes and creates
# them again.
LARGE_ITEM_COUNT = 2_800
KEY = ["--password-file", OLD_PASSWORD]
# The options that select one item, and those that add it.
ITEM_QUERY = ["--service", "one item", "--account", "anna"]
NEW_ITEM_OPTIONS = [*ITEM_QUERY, "--access-group", GROUP, "--secret-file", "secret"]
DEVICE_READERS = [["item", "find", "phone"], ["device", "show", "phone"], ["device", "list"]]
TARGET_READERS = [["item", "find", "other"], ["device", "show", "other"]]
EXPORT_DATABASE = ["device", "export", "phone", "-o", "sim.db", "--yes"]
# Commands that make a backup of a deleted device. All of its items can be restored.
BACKUP_WITHOUT_DEVICE = [
    ["device", "create", "open"], ["item", "add", "open", *NEW_ITEM_OPTIONS],
    ["backup", "open", "-o", "lone/", *KEY, "--rounds", "1", "--yes"],
    ["device", "delete", "open", "--confirm", "open"]]


class Sandbox:
    """A folder in which the program works, and its state as the program shows it."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def command_line(self, *command):
        return [self.program, *map(str, command), "--home", "home", "--no-input", "--quiet"]

    def start(self, *command):
        return subprocess.Popen(
            self.command_line(*command), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)

    def run(self, *command):
        """Run a command. Return its exit code, standard output and standard error."""
        process = subprocess.run(
            self.command_line(*command), cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
        return process.returncode, process.stdout, process.stderr.decode("utf-8", "replace").strip()

    def run_checked(self, *command):
        """Run a command and return its output. Raise RuntimeError if it fails."""
        code, output, error_output = self.run(*command)
        if code != 0:
            raise RuntimeError(f"{' '.join(map(str, command))} ended with {code}: {error_output}")
        return output

    def items(self, *command):
        """Return the items that a command finds, without the attributes that differ in every run."""
        code, output, error_output = self.run("item", "find", *command, "--json", "--reveal")
        if code not in (0, 4):
            return f"item find ended with {code}: {error_output}"
        found = []
        for item in json.loads(output)["items"]:
            shown = {name: value for name, value in item.items() if name not in ("index", "attributes", "row")}
            shown["attributes"] = {
                name: value for name, value in item["attributes"].items() if name not in VOLATILE_ATTRIBUTES} if (
                    "attributes" in item) else None
            found.append(json.dumps(shown, sort_keys=True))
        return sorted(found)

    def device(self, name):
        """Return the state of a device."""
        shown = self.run("device", "show", name, "--json")
        state = json.loads(shown[1]).get("state") if shown[0] == 0 else f"{shown[0]}: {shown[2]}"
        return "device", state, self.items(name)

    def passcode(self, name):
        """Return the state of a device, and the results of unlocking a copy of it with each passcode.

        A copy is used because the device counts wrong passcodes.
        """
        tried = self.folder.parent / "tried"
        shutil.rmtree(tried, ignore_errors=True)
        shutil.copytree(self.folder, tried, symlinks=True)
        sandbox = Sandbox(self.program, tried)
        return self.device(name), [
            sandbox.run("device", "unlock", name, *given)[0] for given in (
                ["--passcode-file", PASSCODE_FILE], ["--passcode-file", NEW_PASSCODE_FILE], [])]

    def backup(self, name):
        """Return the password, the verdict, the seal and the items of a backup, or None if there is no backup."""
        if not (self.folder / name).exists():
            return None
        # Keyhaul rejects a password for an unencrypted backup (14).
        for password in (OLD_PASSWORD, NEW_PASSWORD, None):
            key = ["--password-file", password] if password else []
            code, output, error_output = self.run("verify", name, *key, "--json")
            if code not in (12, 14):
                break
        if code not in (0, 3):
            return f"verify ended with {code}: {error_output}"
        found = json.loads(output)
        seal = [check["detail"] for check in found["checks"] if check["id"] == "seal"]
        return "backup", password, found["verdict"], seal, self.items(name, *key)

    def database(self, name):
        """Return the rows of a database as SQLite reads them, and its items, or None if there is no database."""
        return ("database", self.rows(name), self.items(name)) if (self.folder / name).exists() else None

    def rows(self, name):
        """Return the columns of each item table that are not random.

        SQLite reads a copy, because it may change the files.
        """
        with tempfile.TemporaryDirectory(prefix="keyhaul-rows-") as copy_folder:
            for file in self.folder.glob(name + "*"):
                shutil.copy(file, copy_folder)
            connection = sqlite3.connect(pathlib.Path(copy_folder) / name)
            connection.row_factory = sqlite3.Row
            try:
                faults = [row[0] for row in connection.execute("PRAGMA integrity_check")]
                return faults, [
                    (
                        table,
                        sorted(
                            repr(
                                [
                                    (column, row[column])
                                    for column in row.keys()
                                    if column not in (*VOLATILE_ATTRIBUTES, "data", "rowid")
                                ]
                            )
                            for row in connection.execute(f"SELECT * FROM {table}")
                        ),
                    )
                    for table in ("genp", "inet", "cert", "keys")
                ]
            except sqlite3.Error as error:
                return str(error)
            finally:
                connection.close()

    def plan(self, name):
        """Return the decisions of a plan file, after a dry run of its restore."""
        if not (self.folder / name).exists():
            return None
        code, _, error_output = self.run(
            "restore", "lone", "--to", "other", "--password-file", OLD_PASSWORD, "--plan", name, "--dry-run", "--yes")
        if code != 0:
            return f"a restore of it ended with {code}: {error_output}"
        found = json.loads((self.folder / name).read_bytes())
        return "plan", {member: found[member] for member in ("target", "policy", "summary", "items", "removed")}

    def file(self, name):
        """Return the digest of a file, or None if it does not exist."""
        path = self.folder / name
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None

    def tree(self, name):
        """Return the digests of exported files. After a kill, some of them may be missing."""
        return {path: content for path, content in files(self.folder / name).items() if ".keyhaul-part" not in path}


def files(folder):
    """Return the digests of all files below a folder, by path."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*")) if path.is_file()}


def selected_scenarios(only):
    """Return the scenarios whose names begin with a text."""
    return [scenario for scenario in scenarios() if scenario.name.startswith(only)]


def is_empty_journal(path):
    """Return whether a file is a rollback journal that would change nothing."""
    return path.name.endswith("-journal") and not any(path.read_bytes()[:28])


def is_lock(name):
    """Return whether a file is a device's lock.

    The lock contains the process that held it last. A command that reads a backup locks the device whose key it needs.
    """
    return name.startswith("home/") and name.endswith("/lock")


def equal_without_locks(one, other):
    """Return whether two folders have the same files, apart from locks."""
    return {name: content for name, content in one.items() if not is_lock(name)} == {
        name: content for name, content in other.items() if not is_lock(name)}


@dataclass
class Scenario:
    """A command, the state that it changes, and what is expected after a kill."""

    name: str
    command: list
    read_state: object
    # The files and folders that the command may change.
    changed_names: list
    # Commands that only read, and have to work after a kill.
    reading_commands: list
    # The exit codes of a second run if the first one was complete, and a writing command that follows it.
    repeat_codes: tuple = (0,)
    follow_up: list = field(default_factory=list)
    setup: list = field(default_factory=list)
    # The command writes so many pages that a power cut after each would take too long.
    is_large: bool = False
    # Other exit codes of a complete run, after which the command reports faults of what it read.
    partial_codes: tuple = ()
    # Exit codes of a command that changed nothing, because the device whose key it needs is unavailable.
    refusal_codes: tuple = ()
    # Whether `sim.db` gets a write-ahead log, as a Simulator leaves it.
    has_log: bool = False


def backup_readers(name):
    """Return commands that read a backup."""
    return [["inspect", name], ["verify", name, "--quick"]]


def state_of(kind, name):
    """Return a function that reads the state of a device, backup, database or file."""
    return lambda sandbox: getattr(sandbox, kind)(name)


def scenarios():
    """Yield all scenarios."""
    for suffix in ("/", ".tar", ".zip", ".tar.zst"):
        yield from backup_scenarios(suffix)
    yield from restore_scenarios()
    yield from device_scenarios()
    yield from passcode_scenarios()
    yield from file_scenarios()
    yield from simulator_scenarios()
    yield from export_scenarios()


def backup_scenarios(suffix):
    """Yield the commands that write a backup whose name ends with the suffix."""
    new, old = "new" + suffix, "b" + suffix
    new_backup, backup = new.rstrip("/"), old.rstrip("/")
    unencrypted_backup, unsealed_backup = "plain" + backup.removeprefix("b"), "bare" + backup.removeprefix("b")
    # A backup reads the hardware key of its device, and locks the device.
    source_device = ["home/phone"]
    yield Scenario(
        f"backup to a new path {suffix}", ["backup", "phone", "-o", new, *KEY, "--rounds", "1", "--yes"],
        state_of("backup", new_backup), [new_backup, *source_device], DEVICE_READERS)
    yield Scenario(
        f"backup over an existing one {suffix}", ["backup", "phone", "-o", old, *KEY, "--rounds", "1", "--yes"],
        state_of("backup", backup), [backup, *source_device], backup_readers(backup),
        setup=[["item", "add", "phone", *NEW_ITEM_OPTIONS]])
    new_password = ["--new-password-file", NEW_PASSWORD, "--rounds", "1"]
    yield Scenario(
        f"rekey {suffix}", ["rekey", backup, *KEY, *new_password], state_of("backup", backup), [backup],
        backup_readers(backup), repeat_codes=(12,),
        follow_up=["rekey", backup, "--password-file", NEW_PASSWORD, *new_password])
    yield Scenario(
        f"convert to {suffix}", ["convert", "b.zip" if suffix == ".tar" else "b.tar", "-o", new, "--yes"],
        state_of("backup", new_backup), [new_backup], backup_readers("b"))
    add_item = ["item", "add", backup, *NEW_ITEM_OPTIONS, *KEY]
    yield Scenario(
        f"add in a backup {suffix}", add_item, state_of("backup", backup), [backup], backup_readers(backup),
        repeat_codes=(1,), follow_up=["item", "update", backup, *ITEM_QUERY, "--new-label", "x", "--yes", *KEY])
    yield Scenario(
        f"update in a backup {suffix}",
        ["item", "update", backup, *ITEM_QUERY, "--new-secret-file", NEW_PASSWORD, "--yes", *KEY],
        state_of("backup", backup), [backup], backup_readers(backup), setup=[add_item])
    yield Scenario(
        f"delete in a backup {suffix}", ["item", "delete", backup, *ITEM_QUERY, "--yes", *KEY],
        state_of("backup", backup), [backup], backup_readers(backup), repeat_codes=(4,), follow_up=add_item,
        setup=[add_item])
    yield Scenario(
        f"rekey to no password {suffix}", ["rekey", backup, *KEY, "--no-password", "--yes"],
        state_of("backup", backup), [backup], backup_readers(backup), repeat_codes=(64,), refusal_codes=(64,),
        follow_up=["rekey", backup, *new_password])
    yield Scenario(
        f"rekey from no password {suffix}", ["rekey", unencrypted_backup, *new_password],
        state_of("backup", unencrypted_backup), [unencrypted_backup], backup_readers(unencrypted_backup),
        repeat_codes=(12,), refusal_codes=(64,),
        follow_up=["rekey", unencrypted_backup, "--password-file", NEW_PASSWORD, "--new-password-file", OLD_PASSWORD,
                   "--rounds", "1"])
    yield Scenario(
        f"convert to an unencrypted copy {suffix}", ["convert", backup, "-o", new, "--decrypted", "--yes", *KEY],
        state_of("backup", new_backup), [new_backup], backup_readers(backup), partial_codes=(3,))
    if suffix in ("/", ".zip"):
        yield Scenario(
            f"backup without a password {suffix}", ["backup", "phone", "-o", new, "--no-password", "--yes"],
            state_of("backup", new_backup), [new_backup, *source_device], DEVICE_READERS)
    yield Scenario(
        f"seal {suffix}", ["seal", unsealed_backup, *KEY], state_of("backup", unsealed_backup), [unsealed_backup],
        backup_readers(unsealed_backup), follow_up=["rekey", unsealed_backup, *KEY, *new_password])


def restore_scenarios():
    """Yield the restores to a device."""
    for policy in ("replace", "merge"):
        yield Scenario(
            f"restore by {policy}", ["restore", "b", "--to", "other", *KEY, "--yes", "--existing", policy],
            state_of("device", "other"), ["home/other"],
            [*TARGET_READERS, ["plan", "b", "--to", "other", *KEY]])
    # Enough items that the restore drops the indexes while it writes.
    yield Scenario(
        "restore of many items", ["restore", "many", "--to", "other", *KEY, "--yes"], state_of("device", "other"),
        ["home/other"], [*TARGET_READERS, ["plan", "many", "--to", "other", *KEY]], is_large=True)


def device_scenarios():
    """Yield the commands that change, create or delete a device."""
    phone = ["home/phone"]
    add_item = ["item", "add", "phone", *NEW_ITEM_OPTIONS]
    yield Scenario(
        "add on a device", add_item, state_of("device", "phone"), phone, DEVICE_READERS, repeat_codes=(1,),
        follow_up=["item", "update", "phone", *ITEM_QUERY, "--new-label", "x", "--yes"])
    yield Scenario(
        "update on a device", ["item", "update", "phone", *ITEM_QUERY, "--new-secret-file", NEW_PASSWORD, "--yes"],
        state_of("device", "phone"), phone, DEVICE_READERS, setup=[add_item])
    yield Scenario(
        "delete on a device", ["item", "delete", "phone", *ITEM_QUERY, "--yes"], state_of("device", "phone"), phone,
        DEVICE_READERS, repeat_codes=(4,), follow_up=add_item, setup=[add_item])
    yield Scenario("erase", ["device", "erase", "phone", "--yes"], state_of("device", "phone"), phone, DEVICE_READERS)
    # The items of a locked device cannot be read.
    yield Scenario(
        "lock", ["device", "lock", "phone"], lambda sandbox: sandbox.device("phone")[:2], phone, DEVICE_READERS[1:])
    other_readers = [["device", "list"], ["item", "find", "other"]]
    yield Scenario(
        "device create", ["device", "create", "fresh", "--from", "old-phone"], state_of("device", "fresh"),
        ["home/fresh"], other_readers, repeat_codes=(64,), follow_up=["item", "add", "fresh", *NEW_ITEM_OPTIONS])
    yield Scenario(
        "device create from a backup", ["device", "create", "fresh", "--import", "lone", *KEY, "--yes"],
        state_of("device", "fresh"), ["home/fresh"], other_readers, repeat_codes=(64,),
        follow_up=["item", "update", "fresh", *ITEM_QUERY, "--new-label", "x", "--yes"], setup=BACKUP_WITHOUT_DEVICE,
        partial_codes=(3,))
    # The next commands on devices of that folder remove the remaining files.
    yield Scenario(
        "device delete", ["device", "delete", "phone", "--confirm", "phone"], state_of("device", "phone"),
        [*phone, "home/other"], other_readers, repeat_codes=(10,),
        follow_up=["item", "add", "other", *NEW_ITEM_OPTIONS])


def passcode_scenarios():
    """Yield the changes of a device's passcode."""
    passcode, new_passcode = ["--passcode-file", PASSCODE_FILE], ["--new-passcode-file", NEW_PASSCODE_FILE]
    yield Scenario(
        "passcode set", ["device", "passcode", "set", "open", *new_passcode], state_of("passcode", "open"),
        ["home/open"], [["device", "show", "open"], ["item", "find", "open"]], repeat_codes=(64,),
        follow_up=["device", "lock", "open"],
        setup=[["device", "create", "open"], ["item", "add", "open", *NEW_ITEM_OPTIONS]])
    yield Scenario(
        "passcode change", ["device", "passcode", "change", "phone", *passcode, *new_passcode],
        state_of("passcode", "phone"), ["home/phone"], DEVICE_READERS, repeat_codes=(12,),
        follow_up=["device", "lock", "phone"])
    yield Scenario(
        "passcode remove", ["device", "passcode", "remove", "phone", *passcode, "--yes"],
        state_of("passcode", "phone"), ["home/phone"], DEVICE_READERS, repeat_codes=(64,),
        follow_up=["device", "passcode", "set", "phone", *new_passcode])


def file_scenarios():
    """Yield the commands that write a plan or a keychain database to a file."""
    yield Scenario(
        "plan written to a file", ["plan", "lone", "--to", "other", "-o", "move.plan", *KEY, "--yes"],
        state_of("plan", "move.plan"), ["move.plan"], [*TARGET_READERS, ["plan", "lone", "--to", "other", *KEY]],
        setup=BACKUP_WITHOUT_DEVICE, partial_codes=(3,))
    yield Scenario("device export", EXPORT_DATABASE, state_of("database", "sim.db"), ["sim.db"], DEVICE_READERS)


def simulator_scenarios():
    """Yield the commands that change a Simulator's database, with and without a write-ahead log."""
    readers = [["item", "find", "sim.db"], ["inspect", "sim.db"]]
    seed = ["simulator", "seed", "sim.db", "--from", "new-phone", "--yes"]
    add_item = ["item", "add", "sim.db", *NEW_ITEM_OPTIONS]
    for suffix, has_log in (("", False), (" with a log", True)):
        def scenario(name, command, setup=(EXPORT_DATABASE,), **expectations):
            return Scenario(
                f"simulator {name}{suffix}", command, state_of("database", "sim.db"), ["sim.db"], readers,
                setup=[*setup], has_log=has_log, **expectations)

        yield scenario("seed", seed)
        yield scenario(
            "reset", ["simulator", "reset", "sim.db", "--app", CHAT, "--yes"], repeat_codes=(4,), follow_up=seed)
        for policy in ("replace", "merge"):
            yield scenario(
                f"restored by {policy}", ["restore", "b", "--to", "sim.db", *KEY, "--yes", "--existing", policy],
                setup=[["device", "export", "other", "-o", "sim.db", "--yes"]])
        yield scenario("add", add_item, repeat_codes=(1,), follow_up=seed)
        yield scenario(
            "update", ["item", "update", "sim.db", *ITEM_QUERY, "--new-secret-file", NEW_PASSWORD, "--yes"],
            setup=[EXPORT_DATABASE, add_item])
        yield scenario(
            "delete", ["item", "delete", "sim.db", *ITEM_QUERY, "--yes"], setup=[EXPORT_DATABASE, add_item],
            repeat_codes=(4,), follow_up=add_item)
    yield Scenario(
        "simulator snapshot", ["simulator", "snapshot", "sim.db", "-o", "saved.db", "--yes"],
        state_of("database", "saved.db"), ["saved.db"], readers, setup=[EXPORT_DATABASE])


def export_scenarios():
    """Yield the exports of a backup's items and files."""
    yield Scenario(
        "export of items", ["export", "b", "-o", "out.json", *KEY, "--yes"], state_of("file", "out.json"),
        ["out.json"], backup_readers("b"))
    yield Scenario(
        "export of files", ["export", "b", "--files", "out", *KEY], state_of("tree", "out"), ["out"],
        backup_readers("b"))


class CommandTester:
    """The state of a test: a template folder, the reference results of each scenario, and the checks."""

    def __init__(self, program, work, seed):
        self.program, self.work = str(pathlib.Path(program).resolve()), work
        self.rng, self.checks = random.Random(seed), Checks()
        self.template = work / "template"
        self.prepare()
        self.references = {}
        self.count = {"kills": 0, "old": 0, "new": 0, "between": 0, "left": 0}

    def prepare(self):
        """Create the template folder with devices, backups and passwords."""
        self.template.mkdir()
        for name, text in (
            (OLD_PASSWORD, "correct horse\n"), (NEW_PASSWORD, "battery staple\n"), ("secret", "a secret"),
            (PASSCODE_FILE, "135790"), (NEW_PASSCODE_FILE, "864209")
        ):
            (self.template / name).touch(mode=0o600)
            (self.template / name).write_text(text, encoding="utf-8")
        sandbox = Sandbox(self.program, self.template)
        sandbox.run_checked("device", "create", "phone", "--from", "old-phone")
        sandbox.run_checked("device", "create", "other", "--from", "new-phone")
        sandbox.run_checked("backup", "phone", "-o", "b/", "--password-file", OLD_PASSWORD, "--rounds", "1", "--yes")
        write_description(self.template / "many.json", LARGE_ITEM_COUNT)
        sandbox.run_checked("device", "create", "many", "--from", "many.json")
        sandbox.run_checked("backup", "many", "-o", "many/", "--password-file", OLD_PASSWORD, "--rounds", "1", "--yes")
        sandbox.run_checked("device", "delete", "many", "--confirm", "many")
        shutil.copytree(self.template / "b", self.template / "bare")
        (self.template / "bare" / "Keyhaul.seal").unlink()
        sandbox.run_checked("backup", "phone", "-o", "plain/", "--no-password", "--yes")
        for suffix in (".tar", ".zip", ".tar.zst"):
            sandbox.run_checked("convert", "b", "-o", "b" + suffix)
            sandbox.run_checked("convert", "bare", "-o", "bare" + suffix)
            sandbox.run_checked("convert", "plain", "-o", "plain" + suffix)

    def new_sandbox(self, origin):
        """Return a sandbox with a copy of a folder."""
        folder = self.work / "sandbox"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(origin, folder, symlinks=True)
        return Sandbox(self.program, folder)

    def record_reference(self, scenario):
        """Record the folder and the states before and after an undisturbed run of a scenario."""
        sandbox = self.new_sandbox(self.template)
        for command in scenario.setup:
            sandbox.run_checked(*command)
        if scenario.has_log:
            with contextlib.closing(sqlite3.connect(sandbox.folder / "sim.db")) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
        origin = self.work / f"origin-{len(self.references)}"
        shutil.copytree(sandbox.folder, origin, symlinks=True)
        old = scenario.read_state(sandbox)
        sandbox = self.new_sandbox(origin)
        started = time.perf_counter()
        sandbox.run_checked(*scenario.command)
        longest = time.perf_counter() - started
        new, after = scenario.read_state(sandbox), files(sandbox.folder)
        self.checks.check(old != new, f"{scenario.name}: the command does not change the state")
        self.references[scenario.name] = (origin, old, new, set(after), files(origin), longest)

    def kill_once(self, scenario):
        """Kill the command of a scenario once, and check the result. Return early if it ended before the kill."""
        if scenario.name not in self.references:
            self.record_reference(scenario)
        origin, old, new, names, before, longest = self.references[scenario.name]
        sandbox = self.new_sandbox(origin)
        process = sandbox.start(*scenario.command)
        # Half of the kills are after the first 40 percent of the time, because a command writes late.
        time.sleep(self.rng.uniform(self.rng.choice((0, 0.4)) * longest, longest))
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        if process.wait() != -signal.SIGKILL:
            return
        self.count["kills"] += 1
        context, check = f"{scenario.name}, kill {self.count['kills']}", self.checks.check
        leftover = set(files(sandbox.folder)) - set(before) - names
        self.count["left"] += bool(leftover)
        # The reading command comes first, because other commands may repair the state.
        reader = self.rng.choice(scenario.reading_commands)
        code, _, error_output = sandbox.run(*reader)
        # 4 is the result for an erased device.
        check(code in (0, 3, 4), f"{context}: {' '.join(reader)} ended with {code}: {error_output}")
        # The state of unchanged files is known.
        found = old if equal_without_locks(files(sandbox.folder), before) else scenario.read_state(sandbox)
        is_partial = isinstance(new, dict) and set((found or {}).items()) < set(new.items()) and found
        check(found in (old, new) or is_partial, f"{context}: neither the old nor the new state: {str(found)[:300]}")
        self.count["old" if found == old else "new" if found == new else "between"] += 1
        code, _, error_output = sandbox.run(*scenario.command)
        check(
            code == 0 or found == new and code in scenario.repeat_codes,
            f"{context}: a second run ended with {code}: {error_output}")
        check(scenario.read_state(sandbox) == new, f"{context}: a second run does not reach the final state")
        if found == new and scenario.follow_up:
            code, _, error_output = sandbox.run(*scenario.follow_up)
            check(code == 0, f"{context}: {' '.join(scenario.follow_up[:2])} then ended with {code}: {error_output}")
        after = files(sandbox.folder)
        # A command that does not write keeps an existing log or an empty journal.
        unexpected = {
            name
            for name in set(after) ^ names
            if not (
                scenario.has_log and name == "sim.db-wal" or name in after and is_empty_journal(sandbox.folder / name)
            )
        }
        check(not unexpected, f"{context}: unexpected or missing files {sorted(unexpected)[:5]}")
        changed_files = [
            name for name, content in before.items() if after.get(name) != content and not is_lock(name)
            and not any(name == allowed or name.startswith(allowed + "/") for allowed in scenario.changed_names)]
        check(not changed_files, f"{context}: changed other files: {changed_files[:5]}")


def main():
    parser = argparse.ArgumentParser(description="Kill each writing command, and check the state that it leaves.")
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=1_000, help="the number of kills of a running program")
    parser.add_argument("--seed", default="moments")
    parser.add_argument("--only", default="", help="scenarios whose names begin with this")
    arguments = parser.parse_args()
    selected = selected_scenarios(arguments.only)
    with tempfile.TemporaryDirectory(prefix="keyhaul-kills-") as name:
        tester = CommandTester(arguments.program, pathlib.Path(name), arguments.seed)
        started, round_number = time.perf_counter(), 0
        while tester.count["kills"] < arguments.kills and round_number < arguments.kills * 3:
            tester.kill_once(selected[round_number % len(selected)])
            round_number += 1
            if round_number % 500 == 0:
                print(f"{tester.count['kills']} kills after {time.perf_counter() - started:.0f} s", flush=True)
        count = tester.count
        tester.checks.check(
            count["kills"] >= arguments.kills,
            f"{count['kills']} of {arguments.kills} kills were sent to a running program")
        tester.checks.check(count["old"] > 0 and count["new"] > 0, "some kills were before and some after the change")
    print(
        f"{count['kills']} kills in {len(selected)} scenarios in {time.perf_counter() - started:.0f} s: "
        f"{count['old']} left the "
        f"old state, {count['new']} the new state, {count['between']} some of the exported files; "
        f"{count['left']} left other files"
    )
    return tester.checks.finish()


if __name__ == "__main__":
    sys.exit(main())
