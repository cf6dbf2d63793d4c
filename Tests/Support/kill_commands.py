#!/usr/bin/env python3
"""Kill each writing command at random moments, and check the state that it leaves.

    kill_commands.py PROGRAM [--kills 1000] [--seed N] [--only SCENARIO]

Each round copies a folder with devices and backups, starts one command in a new process group, and sends SIGKILL at a
moment between its start and the end of an undisturbed run. Then the items with their secrets, the password, and the
result of `verify` must be as before the command or as after a complete run. Other files must be unchanged. A reading
command must work. A second run of the command must reach the state of an undisturbed run, and leave no other files.
Only kills of a running program count. Exit 1 if a check fails.
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
# Files with the passcode of the description `old-phone`, and with a different passcode.
PASSCODE_FILE, NEW_PASSCODE_FILE = "pin", "new-pin"
# Attributes that are random or depend on the time of a write.
VOLATILE_ATTRIBUTES = {"cdat", "mdat", "UUID", "persistref", "sha1"}
GROUP = "ABCDE12345.org.example.kills"
# The access group of two items of the description `old-phone`.
CHAT = "ABCDE12345.org.example.chat"
# Three quarters of these items are in one table. Above 2,000 new rows, a restore drops a table's indexes and creates
# them again.
LARGE_ITEM_COUNT = 2_800
# The option with a backup's password, and the options that set a new password.
PASSWORD_OPTION = ["--password-file", OLD_PASSWORD]
NEW_PASSWORD_OPTIONS = ["--new-password-file", NEW_PASSWORD, "--rounds", "1"]
# The options that select one item, and the options that add it.
ITEM_QUERY = ["--service", "one item", "--account", "anna"]
NEW_ITEM_OPTIONS = [*ITEM_QUERY, "--access-group", GROUP, "--secret-file", "secret"]
DEVICE_READERS = [["item", "find", "phone"], ["device", "show", "phone"], ["device", "list"]]
TARGET_READERS = [["item", "find", "other"], ["device", "show", "other"]]
EXPORT_DATABASE = ["device", "export", "phone", "-o", "sim.db", "--yes"]
# Commands that make a backup of a deleted device. All of its items can be restored.
BACKUP_WITHOUT_DEVICE = [
    ["device", "create", "open"], ["item", "add", "open", *NEW_ITEM_OPTIONS],
    ["backup", "open", "-o", "lone/", *PASSWORD_OPTION, "--rounds", "1", "--yes"],
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
        items = []
        for item in json.loads(output)["items"]:
            stable_members = {name: value for name, value in item.items() if name not in ("index", "attributes", "row")}
            stable_members["attributes"] = None if "attributes" not in item else {
                name: value for name, value in item["attributes"].items() if name not in VOLATILE_ATTRIBUTES}
            items.append(json.dumps(stable_members, sort_keys=True))
        return sorted(items)

    def device(self, name):
        """Return the state and the items of a device."""
        code, output, error_output = self.run("device", "show", name, "--json")
        state = json.loads(output).get("state") if code == 0 else f"{code}: {error_output}"
        return "device", state, self.items(name)

    def passcode(self, name):
        """Return the state of a device, and the results of unlocking a copy of it with each passcode.

        A copy is used because the device counts wrong passcodes.
        """
        copy = self.folder.parent / "passcode-copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.folder, copy, symlinks=True)
        sandbox = Sandbox(self.program, copy)
        options_to_try = (["--passcode-file", PASSCODE_FILE], ["--passcode-file", NEW_PASSCODE_FILE], [])
        codes = [sandbox.run("device", "unlock", name, *options)[0] for options in options_to_try]
        return self.device(name), codes

    def backup(self, name):
        """Return the password, the verdict, the seal and the items of a backup, or None if there is no backup."""
        if not (self.folder / name).exists():
            return None
        # The code is 12 if the password is wrong, and 14 if the backup has no password.
        for password in (OLD_PASSWORD, NEW_PASSWORD, None):
            password_options = ["--password-file", password] if password else []
            code, output, error_output = self.run("verify", name, *password_options, "--json")
            if code not in (12, 14):
                break
        if code not in (0, 3):
            return f"verify ended with {code}: {error_output}"
        document = json.loads(output)
        seal = [check["detail"] for check in document["checks"] if check["id"] == "seal"]
        return "backup", password, document["verdict"], seal, self.items(name, *password_options)

    def database(self, name):
        """Return the rows of a database as SQLite reads them, and its items, or None if there is no database."""
        if not (self.folder / name).exists():
            return None
        return "database", self.rows(name), self.items(name)

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
                rows_by_table = [
                    (table, sorted(map(stable_columns, connection.execute(f"SELECT * FROM {table}"))))
                    for table in ("genp", "inet", "cert", "keys")
                ]
                return faults, rows_by_table
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
        document = json.loads((self.folder / name).read_bytes())
        return "plan", {member: document[member] for member in ("target", "policy", "summary", "items", "removed")}

    def file(self, name):
        """Return the digest of a file, or None if it does not exist."""
        path = self.folder / name
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None

    def tree(self, name):
        """Return the digests of exported files. After a kill, some of them may be missing."""
        return {path: content for path, content in files(self.folder / name).items() if ".keyhaul-part" not in path}


def stable_columns(row):
    """Return the columns of a database row that are not random, as text."""
    volatile_columns = {*VOLATILE_ATTRIBUTES, "data", "rowid"}
    return repr([(column, row[column]) for column in row.keys() if column not in volatile_columns])


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
    """Return whether a file is the lock file of a device.

    The file contains the process that last held the lock. A command that reads a backup locks the device whose key it
    needs.
    """
    return name.startswith("home/") and name.endswith("/lock")


def without_locks(digests):
    """Return the digests of all files except lock files."""
    return {name: digest for name, digest in digests.items() if not is_lock(name)}


@dataclass
class Reference:
    """An undisturbed run of a scenario: its folder, the states and files before and after it, and its time."""

    origin: pathlib.Path
    old_state: object
    new_state: object
    files_before: dict
    names_after: set
    seconds: float


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
    # The exit codes of a second run if the first run was complete, and a writing command to run after it.
    repeat_codes: tuple = (0,)
    follow_up: list = field(default_factory=list)
    setup: list = field(default_factory=list)
    # The command writes so many pages that a power cut after each would take too long.
    is_large: bool = False
    # Other exit codes of a complete run, in which the command reports faults of the source.
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
        yield from backup_item_scenarios(suffix)
        yield from password_scenarios(suffix)
    yield from restore_scenarios()
    yield from device_scenarios()
    yield from passcode_scenarios()
    yield from file_scenarios()
    yield from simulator_scenarios()
    yield from export_scenarios()


class BackupNames:
    """The names of the backups of one kind, which ends with the suffix."""

    def __init__(self, suffix):
        # A folder's name ends with a slash only in the option for a new backup.
        self.new_option, self.existing_option = "new" + suffix, "b" + suffix
        extension = suffix.rstrip("/")
        self.new, self.existing = "new" + extension, "b" + extension
        self.unencrypted, self.unsealed = "plain" + extension, "bare" + extension


def backup_scenarios(suffix):
    """Yield the commands that make, seal or convert a backup whose name ends with the suffix."""
    names = BackupNames(suffix)
    # Making a backup reads the device's key, and locks the device.
    source_device = ["home/phone"]
    yield Scenario(
        f"backup to a new path {suffix}",
        ["backup", "phone", "-o", names.new_option, *PASSWORD_OPTION, "--rounds", "1", "--yes"],
        state_of("backup", names.new), [names.new, *source_device], DEVICE_READERS)
    yield Scenario(
        f"backup over an existing one {suffix}",
        ["backup", "phone", "-o", names.existing_option, *PASSWORD_OPTION, "--rounds", "1", "--yes"],
        state_of("backup", names.existing), [names.existing, *source_device], backup_readers(names.existing),
        setup=[["item", "add", "phone", *NEW_ITEM_OPTIONS]])
    yield Scenario(
        f"convert to {suffix}",
        ["convert", "b.zip" if suffix == ".tar" else "b.tar", "-o", names.new_option, "--yes"],
        state_of("backup", names.new), [names.new], backup_readers("b"))
    yield Scenario(
        f"convert to an unencrypted copy {suffix}",
        ["convert", names.existing, "-o", names.new_option, "--decrypted", "--yes", *PASSWORD_OPTION],
        state_of("backup", names.new), [names.new], backup_readers(names.existing), partial_codes=(3,))
    if suffix in ("/", ".zip"):
        yield Scenario(
            f"backup without a password {suffix}",
            ["backup", "phone", "-o", names.new_option, "--no-password", "--yes"],
            state_of("backup", names.new), [names.new, *source_device], DEVICE_READERS)
    yield Scenario(
        f"seal {suffix}",
        ["seal", names.unsealed, *PASSWORD_OPTION], state_of("backup", names.unsealed), [names.unsealed],
        backup_readers(names.unsealed), follow_up=["rekey", names.unsealed, *PASSWORD_OPTION, *NEW_PASSWORD_OPTIONS])


def backup_item_scenarios(suffix):
    """Yield the commands that change an item in a backup whose name ends with the suffix."""
    backup = BackupNames(suffix).existing
    state, readers = state_of("backup", backup), backup_readers(backup)
    add_item = ["item", "add", backup, *NEW_ITEM_OPTIONS, *PASSWORD_OPTION]
    yield Scenario(
        f"add in a backup {suffix}", add_item, state, [backup], readers, repeat_codes=(1,),
        follow_up=["item", "update", backup, *ITEM_QUERY, "--new-label", "x", "--yes", *PASSWORD_OPTION])
    yield Scenario(
        f"update in a backup {suffix}",
        ["item", "update", backup, *ITEM_QUERY, "--new-secret-file", NEW_PASSWORD, "--yes", *PASSWORD_OPTION],
        state, [backup], readers, setup=[add_item])
    yield Scenario(
        f"delete in a backup {suffix}", ["item", "delete", backup, *ITEM_QUERY, "--yes", *PASSWORD_OPTION],
        state, [backup], readers, repeat_codes=(4,), follow_up=add_item, setup=[add_item])


def password_scenarios(suffix):
    """Yield the commands that change the password of a backup whose name ends with the suffix."""
    names = BackupNames(suffix)
    backup, unencrypted = names.existing, names.unencrypted
    state, readers = state_of("backup", backup), backup_readers(backup)
    yield Scenario(
        f"rekey {suffix}",
        ["rekey", backup, *PASSWORD_OPTION, *NEW_PASSWORD_OPTIONS], state, [backup], readers, repeat_codes=(12,),
        follow_up=["rekey", backup, "--password-file", NEW_PASSWORD, *NEW_PASSWORD_OPTIONS])
    yield Scenario(
        f"rekey to no password {suffix}",
        ["rekey", backup, *PASSWORD_OPTION, "--no-password", "--yes"], state, [backup], readers,
        repeat_codes=(64,), refusal_codes=(64,), follow_up=["rekey", backup, *NEW_PASSWORD_OPTIONS])
    yield Scenario(
        f"rekey from no password {suffix}",
        ["rekey", unencrypted, *NEW_PASSWORD_OPTIONS], state_of("backup", unencrypted),
        [unencrypted], backup_readers(unencrypted), repeat_codes=(12,), refusal_codes=(64,),
        follow_up=["rekey", unencrypted, "--password-file", NEW_PASSWORD, "--new-password-file", OLD_PASSWORD,
                   "--rounds", "1"])


def restore_scenarios():
    """Yield the restores to a device."""
    for policy in ("replace", "merge"):
        yield Scenario(
            f"restore by {policy}", ["restore", "b", "--to", "other", *PASSWORD_OPTION, "--yes", "--existing", policy],
            state_of("device", "other"), ["home/other"],
            [*TARGET_READERS, ["plan", "b", "--to", "other", *PASSWORD_OPTION]])
    # Enough items that the restore drops the indexes while it writes.
    yield Scenario(
        "restore of many items",
        ["restore", "many", "--to", "other", *PASSWORD_OPTION, "--yes"], state_of("device", "other"),
        ["home/other"], [*TARGET_READERS, ["plan", "many", "--to", "other", *PASSWORD_OPTION]], is_large=True)


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
        "device create from a backup", ["device", "create", "fresh", "--import", "lone", *PASSWORD_OPTION, "--yes"],
        state_of("device", "fresh"), ["home/fresh"], other_readers, repeat_codes=(64,),
        follow_up=["item", "update", "fresh", *ITEM_QUERY, "--new-label", "x", "--yes"], setup=BACKUP_WITHOUT_DEVICE,
        partial_codes=(3,))
    # The next commands on devices in the same device folder remove the remaining files.
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
        "plan written to a file", ["plan", "lone", "--to", "other", "-o", "move.plan", *PASSWORD_OPTION, "--yes"],
        state_of("plan", "move.plan"),
        ["move.plan"], [*TARGET_READERS, ["plan", "lone", "--to", "other", *PASSWORD_OPTION]],
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
                f"restored by {policy}",
                ["restore", "b", "--to", "sim.db", *PASSWORD_OPTION, "--yes", "--existing", policy],
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
        "export of items", ["export", "b", "-o", "out.json", *PASSWORD_OPTION, "--yes"], state_of("file", "out.json"),
        ["out.json"], backup_readers("b"))
    yield Scenario(
        "export of files", ["export", "b", "--files", "out", *PASSWORD_OPTION], state_of("tree", "out"), ["out"],
        backup_readers("b"))


class CommandTester:
    """The state of a test: a template folder, the reference results of each scenario, and the checks."""

    def __init__(self, program, work, seed):
        self.program, self.work = str(pathlib.Path(program).resolve()), work
        self.rng, self.checks = random.Random(seed), Checks()
        self.template = work / "template"
        self.prepare()
        self.references = {}
        self.kill_count = self.leftover_count = 0
        # How often a kill left the old state, the new one, or some of the exported files.
        self.state_counts = {"old": 0, "new": 0, "partial": 0}

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
        old_state = scenario.read_state(sandbox)
        sandbox = self.new_sandbox(origin)
        started = time.perf_counter()
        sandbox.run_checked(*scenario.command)
        seconds = time.perf_counter() - started
        new_state, names_after = scenario.read_state(sandbox), set(files(sandbox.folder))
        self.checks.check(old_state != new_state, f"{scenario.name}: the command does not change the state")
        self.references[scenario.name] = Reference(
            origin, old_state, new_state, files(origin), names_after, seconds)

    def kill_once(self, scenario):
        """Kill the command of a scenario once, and check the result. Return early if the command ended first."""
        if scenario.name not in self.references:
            self.record_reference(scenario)
        reference = self.references[scenario.name]
        sandbox = self.new_sandbox(reference.origin)
        if not self.kill(sandbox, scenario.command, reference.seconds):
            return
        self.kill_count += 1
        context = f"{scenario.name}, kill {self.kill_count}"
        self.leftover_count += bool(set(files(sandbox.folder)) - set(reference.files_before) - reference.names_after)
        self.check_reading_command(scenario, sandbox, context)
        state = self.check_state(scenario, reference, sandbox, context)
        self.check_second_run(scenario, reference, sandbox, context, state)
        self.check_files(scenario, reference, sandbox, context)

    def kill(self, sandbox, command, seconds):
        """Start a command, and kill it before it has run for some seconds. Return whether it was still running."""
        process = sandbox.start(*command)
        # Half of the kills are after the first 40 percent of the time, because a command writes late.
        time.sleep(self.rng.uniform(self.rng.choice((0, 0.4)) * seconds, seconds))
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        return process.wait() == -signal.SIGKILL

    def check_reading_command(self, scenario, sandbox, context):
        """Check that a reading command works. It comes first, because other commands may repair the state."""
        command = self.rng.choice(scenario.reading_commands)
        code, _, error_output = sandbox.run(*command)
        # 4 is the result for an erased device.
        self.checks.check(code in (0, 3, 4), f"{context}: {' '.join(command)} ended with {code}: {error_output}")

    def check_state(self, scenario, reference, sandbox, context):
        """Check that the state is the old or the new state, or that some files were exported. Return the state."""
        old, new = reference.old_state, reference.new_state
        has_changed = without_locks(files(sandbox.folder)) != without_locks(reference.files_before)
        # Reading a state takes long. Unchanged files have the old state.
        state = scenario.read_state(sandbox) if has_changed else old
        is_partial = isinstance(new, dict) and bool(state) and set(state.items()) < set(new.items())
        self.checks.check(
            state in (old, new) or is_partial, f"{context}: neither the old nor the new state: {str(state)[:300]}")
        self.state_counts["old" if state == old else "new" if state == new else "partial"] += 1
        return state

    def check_second_run(self, scenario, reference, sandbox, context, state):
        """Run the command again, and a follow-up command if the first run was complete."""
        is_complete = state == reference.new_state
        code, _, error_output = sandbox.run(*scenario.command)
        self.checks.check(
            code == 0 or is_complete and code in scenario.repeat_codes,
            f"{context}: a second run ended with {code}: {error_output}")
        self.checks.check(
            scenario.read_state(sandbox) == reference.new_state,
            f"{context}: a second run does not reach the final state")
        if is_complete and scenario.follow_up:
            code, _, error_output = sandbox.run(*scenario.follow_up)
            self.checks.check(
                code == 0, f"{context}: {' '.join(scenario.follow_up[:2])} then ended with {code}: {error_output}")

    def check_files(self, scenario, reference, sandbox, context):
        """Check that the runs left no other files, and changed no other files."""
        after = files(sandbox.folder)

        def may_remain(name):
            # A command that does not write keeps an existing log or an empty journal.
            is_log = scenario.has_log and name == "sim.db-wal"
            return is_log or name in after and is_empty_journal(sandbox.folder / name)

        unexpected = {name for name in set(after) ^ reference.names_after if not may_remain(name)}
        self.checks.check(not unexpected, f"{context}: unexpected or missing files {sorted(unexpected)[:5]}")
        changed_files = [
            name for name, content in without_locks(reference.files_before).items()
            if after.get(name) != content
            and not any(name == allowed or name.startswith(allowed + "/") for allowed in scenario.changed_names)]
        self.checks.check(not changed_files, f"{context}: changed other files: {changed_files[:5]}")


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
        while tester.kill_count < arguments.kills and round_number < arguments.kills * 3:
            tester.kill_once(selected[round_number % len(selected)])
            round_number += 1
            if round_number % 500 == 0:
                print(f"{tester.kill_count} kills after {time.perf_counter() - started:.0f} s", flush=True)
    counts = tester.state_counts
    tester.checks.check(
        tester.kill_count >= arguments.kills,
        f"{tester.kill_count} of {arguments.kills} kills were sent to a running program")
    tester.checks.check(counts["old"] > 0 and counts["new"] > 0, "some kills were before and some after the change")
    print(
        f"{tester.kill_count} kills in {len(selected)} scenarios in {time.perf_counter() - started:.0f} s: "
        f"{counts['old']} left the old state, {counts['new']} the new state, "
        f"{counts['partial']} some of the exported files; {tester.leftover_count} left other files"
    )
    return tester.checks.finish()


if __name__ == "__main__":
    sys.exit(main())
