#!/usr/bin/env python3
"""Kills every verb that writes at random moments, and looks what stands then and what the next command finds.

    kill_verbs.py PROGRAM [--kills 1000] [--seed N] [--only SCENE]

Each round takes a fresh place with two devices and a backup, starts one verb in a process group of its own and ends the
group by SIGKILL at a moment between its start and the end of a run that is left alone. Then what the verb changes has to
be what it was before or what it is after a whole run, told by the items with their secrets, by which password opens it
and by `verify`; every other file of the place has to be the same to the byte; a verb that only reads has to work, and
the verb itself, run again, has to arrive where a run that was left alone arrives: with no name in the whole place that
such a run does not leave. Only kills that met the program running are counted. Exit 1 where one check fails.
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

from bench_shop import describe
from checks import Checks

OLD, NEW = "old-password", "new-password"
# The passcode of the description `old-phone`, and another.
PIN, NEW_PIN = "pin", "new-pin"
# What an item gets at random or from the clock whenever it is written.
FLEETING = {"cdat", "mdat", "UUID", "persistref", "sha1"}
GROUP = "ABCDE12345.org.example.kills"
# A group of two items of the description `old-phone`.
CHAT = "ABCDE12345.org.example.chat"
# Three quarters of them of one kind: more than the 2,000 of which a table is filled without its indexes.
MANY = 2_800
ITEM = ["--service", "one item", "--account", "anna", "--access-group", GROUP]


class Place:
    """A folder that the program works in, and what is seen of it with the program alone."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def arguments(self, *words):
        return [self.program, *map(str, words), "--home", "home", "--no-input", "--quiet"]

    def start(self, *words):
        return subprocess.Popen(
            self.arguments(*words), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)

    def run(self, *words):
        done = subprocess.run(
            self.arguments(*words), cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
        return done.returncode, done.stdout, done.stderr.decode("utf-8", "replace").strip()

    def must(self, *words):
        code, output, said = self.run(*words)
        if code != 0:
            raise RuntimeError(f"{' '.join(map(str, words))} ended with {code}: {said}")
        return output

    def items(self, *words):
        code, output, said = self.run("item", "find", *words, "--json", "--reveal")
        if code not in (0, 4):
            return f"item find ended with {code}: {said}"
        found = []
        for item in json.loads(output)["items"]:
            kept = {name: value for name, value in item.items() if name not in ("index", "attributes", "row")}
            kept["attributes"] = {
                name: value for name, value in item["attributes"].items() if name not in FLEETING} if (
                    "attributes" in item) else None
            found.append(json.dumps(kept, sort_keys=True))
        return sorted(found)

    def device(self, name):
        shown = self.run("device", "show", name, "--json")
        state = json.loads(shown[1]).get("state") if shown[0] == 0 else f"{shown[0]}: {shown[2]}"
        return "device", state, self.items(name)

    def passcode(self, name):
        """The device, and how each passcode unlocks it: tried on a copy, as a wrong one is counted."""
        tried = self.folder.parent / "tried"
        shutil.rmtree(tried, ignore_errors=True)
        shutil.copytree(self.folder, tried, symlinks=True)
        place = Place(self.program, tried)
        return self.device(name), [
            place.run("device", "unlock", name, *given)[0] for given in (
                ["--passcode-file", PIN], ["--passcode-file", NEW_PIN], [])]

    def backup(self, name):
        """Which password opens it, whether it is whole and sealed, and its items; `None` where there is none."""
        if not (self.folder / name).exists():
            return None
        # One without a password is refused (14) where one is named.
        for password in (OLD, NEW, None):
            key = ["--password-file", password] if password else []
            code, output, said = self.run("verify", name, *key, "--json")
            if code not in (12, 14):
                break
        if code not in (0, 3):
            return f"verify ended with {code}: {said}"
        found = json.loads(output)
        seal = [check["detail"] for check in found["checks"] if check["id"] == "seal"]
        return "backup", password, found["verdict"], seal, self.items(name, *key)

    def database(self, name):
        """Returns the rows that SQLite reads, after it used the journal or log, and the items with their secrets."""
        return ("database", self.rows(name), self.items(name)) if (self.folder / name).exists() else None

    def rows(self, name):
        """Returns the columns of each item table that are not random. SQLite reads a copy, which it may change."""
        with tempfile.TemporaryDirectory(prefix="keyhaul-rows-") as aside:
            for file in self.folder.glob(name + "*"):
                shutil.copy(file, aside)
            base = sqlite3.connect(pathlib.Path(aside) / name)
            base.row_factory = sqlite3.Row
            try:
                whole = [row[0] for row in base.execute("PRAGMA integrity_check")]
                return whole, [
                    (table, sorted(repr([
                        (column, row[column]) for column in row.keys() if column not in (*FLEETING, "data", "rowid")])
                        for row in base.execute(f"SELECT * FROM {table}")))
                    for table in ("genp", "inet", "cert", "keys")]
            except sqlite3.Error as error:
                return str(error)
            finally:
                base.close()

    def plan(self, name):
        """What it decides, of each item, and that the restore that it names takes it."""
        if not (self.folder / name).exists():
            return None
        code, _, said = self.run(
            "restore", "lone", "--to", "other", "--password-file", OLD, "--plan", name, "--dry-run", "--yes")
        if code != 0:
            return f"a restore of it ended with {code}: {said}"
        found = json.loads((self.folder / name).read_bytes())
        return "plan", {member: found[member] for member in ("target", "policy", "summary", "items", "removed")}

    def file(self, name):
        path = self.folder / name
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None

    def tree(self, name):
        """Of the files that `export` wrote: their bytes. A part of them may be there after a kill."""
        return {path: content for path, content in files(self.folder / name).items() if ".keyhaul-part" not in path}


def files(folder):
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*")) if path.is_file()}


def chosen_scenes(only):
    """Returns the scenes whose names begin with a text."""
    return [scene for scene in scenes() if scene.name.startswith(only)]


def is_emptied(path):
    """Whether a file is a journal that was not removed, and that rolls nothing back."""
    return path.name.endswith("-journal") and not any(path.read_bytes()[:28])


def is_lock(name):
    """A device's, which says who held it last; a verb that reads a backup asks its device for a key."""
    return name.startswith("home/") and name.endswith("/lock")


def same(one, other):
    return {name: content for name, content in one.items() if not is_lock(name)} == {
        name: content for name, content in other.items() if not is_lock(name)}


@dataclass
class Scene:
    """A verb, what it changes, and how that is looked at."""

    name: str
    words: list
    look: object
    # What may differ afterwards: names in the place, and all below them.
    changes: list
    # Verbs that only read and have to work whatever stands.
    readers: list
    # Codes of the verb run again where the first one had come to its end, and a verb that writes to the same place then.
    again: tuple = (0,)
    then: list = field(default_factory=list)
    before: list = field(default_factory=list)
    # So many pages are written that a disk after each of them is too much.
    is_large: bool = False
    # Codes besides 0 and 5 with which the verb may end and have arrived: it says of what it read that not all was right.
    partly: tuple = ()
    # Codes with which it may refuse and have changed nothing: the device whose key it needs is not looked for any further.
    refusals: tuple = ()
    # Whether `sim.db` gets a write-ahead log, as a Simulator leaves it.
    has_log: bool = False


def scenes():
    key = ["--password-file", OLD]
    device = [["item", "find", "phone"], ["device", "show", "phone"], ["device", "list"]]
    target = [["item", "find", "other"], ["device", "show", "other"], ["plan", "b", "--to", "other", *key]]

    def reading(backup):
        return [["inspect", backup], ["verify", backup, "--quick"]]

    def of(kind, name):
        return lambda place: getattr(place, kind)(name)

    for end in ("/", ".tar", ".zip", ".tar.zst"):
        new, old = "new" + end, "b" + end
        bare, stored = new.rstrip("/"), old.rstrip("/")
        maker = ["home/phone"]
        yield Scene(f"backup to nothing {end}", ["backup", "phone", "-o", new, *key, "--rounds", "1", "--yes"],
                    of("backup", bare), [bare, *maker], device)
        yield Scene(f"backup over one {end}", ["backup", "phone", "-o", old, *key, "--rounds", "1", "--yes"],
                    of("backup", stored), [stored, *maker], reading(stored),
                    before=[["item", "add", "phone", *ITEM, "--secret-file", "secret"]])
        rekey = ["--new-password-file", NEW, "--rounds", "1"]
        yield Scene(f"rekey {end}", ["rekey", stored, *key, *rekey], of("backup", stored), [stored], reading(stored),
                    again=(12,), then=["rekey", stored, "--password-file", NEW, *rekey])
        yield Scene(f"convert to {end}", ["convert", "b.zip" if end == ".tar" else "b.tar", "-o", new, "--yes"],
                    of("backup", bare), [bare], reading("b"))
        yield Scene(f"add in a backup {end}", ["item", "add", stored, *ITEM, "--secret-file", "secret", *key],
                    of("backup", stored), [stored], reading(stored), again=(1,),
                    then=["item", "update", stored, *ITEM[:4], "--new-label", "x", "--yes", *key])
        changed = [["item", "add", stored, *ITEM, "--secret-file", "secret", *key]]
        yield Scene(f"update in a backup {end}",
                    ["item", "update", stored, *ITEM[:4], "--new-secret-file", NEW, "--yes", *key],
                    of("backup", stored), [stored], reading(stored), before=changed)
        yield Scene(f"delete in a backup {end}", ["item", "delete", stored, *ITEM[:4], "--yes", *key],
                    of("backup", stored), [stored], reading(stored), again=(4,), then=changed[0], before=changed)
        yield Scene(f"rekey to no password {end}", ["rekey", stored, *key, "--no-password", "--yes"],
                    of("backup", stored), [stored], reading(stored), again=(64,), refusals=(64,),
                    then=["rekey", stored, "--new-password-file", NEW, "--rounds", "1"])
        plain = "plain" + bare.removeprefix("new")
        yield Scene(f"rekey from no password {end}", ["rekey", plain, "--new-password-file", NEW, "--rounds", "1"],
                    of("backup", plain), [plain], reading(plain), again=(12,),
                    refusals=(64,),
                    then=["rekey", plain, "--password-file", NEW, "--new-password-file", OLD, "--rounds", "1"])
        yield Scene(f"convert to one in clear {end}", ["convert", stored, "-o", new, "--decrypted", "--yes", *key],
                    of("backup", bare), [bare], reading(stored), partly=(3,))
        if end in ("/", ".zip"):
            yield Scene(f"backup without a password {end}", ["backup", "phone", "-o", new, "--no-password", "--yes"],
                        of("backup", bare), [bare, *maker], device)
        unsealed = "bare" + bare.removeprefix("new")
        yield Scene(f"seal {end}", ["seal", unsealed, *key], of("backup", unsealed), [unsealed], reading(unsealed),
                    then=["rekey", unsealed, *key, *rekey])
    for policy in ("replace", "merge"):
        yield Scene(f"restore by {policy}", ["restore", "b", "--to", "other", *key, "--yes", "--existing", policy],
                    of("device", "other"), ["home/other"], target)
    # Of more passwords than a table keeps its indexes for meanwhile.
    yield Scene("restore that fills a device", ["restore", "many", "--to", "other", *key, "--yes"], of("device", "other"),
                ["home/other"], [*target[:2], ["plan", "many", "--to", "other", *key]], is_large=True)
    phone = ["home/phone"]
    added = [["item", "add", "phone", *ITEM, "--secret-file", "secret"]]
    yield Scene("add on a device", added[0], of("device", "phone"), phone, device, again=(1,),
                then=["item", "update", "phone", *ITEM[:4], "--new-label", "x", "--yes"])
    yield Scene("update on a device", ["item", "update", "phone", *ITEM[:4], "--new-secret-file", NEW, "--yes"],
                of("device", "phone"), phone, device, before=added)
    yield Scene("delete on a device", ["item", "delete", "phone", *ITEM[:4], "--yes"], of("device", "phone"), phone,
                device, again=(4,), then=added[0], before=added)
    yield Scene("erase", ["device", "erase", "phone", "--yes"], of("device", "phone"), phone, device)
    yield Scene("lock", ["device", "lock", "phone"], lambda place: place.device("phone")[:2], phone, device[1:])
    created = [["device", "list"], ["item", "find", "other"]]
    # A backup of a device that is gone and whose items all move.
    lone = [["device", "create", "open"], ["item", "add", "open", *ITEM, "--secret-file", "secret"],
            ["backup", "open", "-o", "lone/", *key, "--rounds", "1", "--yes"],
            ["device", "delete", "open", "--confirm", "open"]]
    touched = ["item", "add", "fresh", *ITEM, "--secret-file", "secret"]
    yield Scene("device create", ["device", "create", "fresh", "--from", "old-phone"], of("device", "fresh"),
                ["home/fresh"], created, again=(64,), then=touched)
    yield Scene("device create of a backup", ["device", "create", "fresh", "--import", "lone", *key, "--yes"],
                of("device", "fresh"), ["home/fresh"], created, again=(64,),
                then=["item", "update", "fresh", *ITEM[:4], "--new-label", "x", "--yes"], before=lone, partly=(3,))
    # What is left of the device goes with the next verbs about devices of that folder.
    yield Scene("device delete", ["device", "delete", "phone", "--confirm", "phone"], of("device", "phone"),
                [*phone, "home/other"], [["device", "list"], ["item", "find", "other"]], again=(10,),
                then=["item", "add", "other", *ITEM, "--secret-file", "secret"])
    pin, new_pin = ["--passcode-file", PIN], ["--new-passcode-file", NEW_PIN]
    yield Scene("passcode set", ["device", "passcode", "set", "open", *new_pin], of("passcode", "open"), ["home/open"],
                [["device", "show", "open"], ["item", "find", "open"]], again=(64,), then=["device", "lock", "open"],
                before=[["device", "create", "open"], ["item", "add", "open", *ITEM, "--secret-file", "secret"]])
    yield Scene("passcode change", ["device", "passcode", "change", "phone", *pin, *new_pin], of("passcode", "phone"),
                phone, device, again=(12,), then=["device", "lock", "phone"])
    yield Scene("passcode remove", ["device", "passcode", "remove", "phone", *pin, "--yes"], of("passcode", "phone"),
                phone, device, again=(64,), then=["device", "passcode", "set", "phone", *new_pin])
    yield Scene("plan in a file", ["plan", "lone", "--to", "other", "-o", "move.plan", *key, "--yes"],
                of("plan", "move.plan"), ["move.plan"], [*target[:2], ["plan", "lone", "--to", "other", *key]],
                before=lone, partly=(3,))
    simulator = [["device", "export", "phone", "-o", "sim.db", "--yes"]]
    yield Scene("device export", simulator[0], of("database", "sim.db"), ["sim.db"], device)
    reads = [["item", "find", "sim.db"], ["inspect", "sim.db"]]
    seeded = ["simulator", "seed", "sim.db", "--from", "new-phone", "--yes"]
    for beside, logged in (("", False), (" with a log", True)):
        yield Scene("simulator seed" + beside, seeded, of("database", "sim.db"), ["sim.db"], reads, before=simulator,
                    has_log=logged)
        yield Scene("simulator reset" + beside, ["simulator", "reset", "sim.db", "--app", CHAT, "--yes"],
                    of("database", "sim.db"), ["sim.db"], reads, again=(4,), then=seeded, before=simulator, has_log=logged)
        for policy in ("replace", "merge"):
            yield Scene(f"simulator restored by {policy}{beside}",
                        ["restore", "b", "--to", "sim.db", *key, "--yes", "--existing", policy],
                        of("database", "sim.db"), ["sim.db"], reads,
                        before=[["device", "export", "other", "-o", "sim.db", "--yes"]], has_log=logged)
        yield Scene("simulator add" + beside, ["item", "add", "sim.db", *ITEM, "--secret-file", "secret"],
                    of("database", "sim.db"), ["sim.db"], reads, again=(1,), then=seeded, before=simulator, has_log=logged)
        stored = ["item", "add", "sim.db", *ITEM, "--secret-file", "secret"]
        yield Scene("simulator update" + beside,
                    ["item", "update", "sim.db", *ITEM[:4], "--new-secret-file", NEW, "--yes"],
                    of("database", "sim.db"), ["sim.db"], reads, before=[*simulator, stored], has_log=logged)
        yield Scene("simulator delete" + beside, ["item", "delete", "sim.db", *ITEM[:4], "--yes"],
                    of("database", "sim.db"), ["sim.db"], reads, again=(4,), then=stored, before=[*simulator, stored],
                    has_log=logged)
    yield Scene("simulator snapshot", ["simulator", "snapshot", "sim.db", "-o", "saved.db", "--yes"],
                of("database", "saved.db"), ["saved.db"], reads, before=simulator)
    yield Scene("export of items", ["export", "b", "-o", "out.json", *key, "--yes"], of("file", "out.json"),
                ["out.json"], reading("b"))
    yield Scene("export of files", ["export", "b", "--files", "out", *key], of("tree", "out"), ["out"], reading("b"))


class Kills:
    def __init__(self, program, work, seed):
        self.program, self.work = str(pathlib.Path(program).resolve()), work
        self.moments, self.checks = random.Random(seed), Checks()
        self.template = work / "template"
        self.prepare()
        self.whole = {}
        self.count = {"kills": 0, "old": 0, "new": 0, "between": 0, "left": 0}

    def prepare(self):
        self.template.mkdir()
        for name, text in ((OLD, "correct horse\n"), (NEW, "battery staple\n"), ("secret", "a secret"),
                           (PIN, "135790"), (NEW_PIN, "864209")):
            (self.template / name).touch(mode=0o600)
            (self.template / name).write_text(text, encoding="utf-8")
        place = Place(self.program, self.template)
        place.must("device", "create", "phone", "--from", "old-phone")
        place.must("device", "create", "other", "--from", "new-phone")
        place.must("backup", "phone", "-o", "b/", "--password-file", OLD, "--rounds", "1", "--yes")
        describe(self.template / "many.json", MANY)
        place.must("device", "create", "many", "--from", "many.json")
        place.must("backup", "many", "-o", "many/", "--password-file", OLD, "--rounds", "1", "--yes")
        place.must("device", "delete", "many", "--confirm", "many")
        shutil.copytree(self.template / "b", self.template / "bare")
        (self.template / "bare" / "Keyhaul.seal").unlink()
        place.must("backup", "phone", "-o", "plain/", "--no-password", "--yes")
        for end in (".tar", ".zip", ".tar.zst"):
            place.must("convert", "b", "-o", "b" + end)
            place.must("convert", "bare", "-o", "bare" + end)
            place.must("convert", "plain", "-o", "plain" + end)

    def fresh(self, origin):
        folder = self.work / "place"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(origin, folder, symlinks=True)
        return Place(self.program, folder)

    def learn(self, scene):
        """Where the scene starts, and what it looks like before and after a run that is left alone."""
        place = self.fresh(self.template)
        for words in scene.before:
            place.must(*words)
        if scene.has_log:
            with contextlib.closing(sqlite3.connect(place.folder / "sim.db")) as base:
                base.execute("PRAGMA journal_mode = WAL")
        origin = self.work / f"origin-{len(self.whole)}"
        shutil.copytree(place.folder, origin, symlinks=True)
        old = scene.look(place)
        place = self.fresh(origin)
        started = time.perf_counter()
        place.must(*scene.words)
        longest = time.perf_counter() - started
        new, after = scene.look(place), files(place.folder)
        self.checks.check(old != new, f"{scene.name}: the verb changes nothing that is looked at")
        self.whole[scene.name] = (origin, old, new, set(after), files(origin), longest)

    def round(self, scene):
        if scene.name not in self.whole:
            self.learn(scene)
        origin, old, new, names, before, longest = self.whole[scene.name]
        place = self.fresh(origin)
        process = place.start(*scene.words)
        # Half of them in the later part, where changes are made: a start takes its time.
        time.sleep(self.moments.uniform(self.moments.choice((0, 0.4)) * longest, longest))
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        if process.wait() != -signal.SIGKILL:
            return
        self.count["kills"] += 1
        where, check = f"{scene.name}, kill {self.count['kills']}", self.checks.check
        left = set(files(place.folder)) - set(before) - names
        self.count["left"] += bool(left)
        # The reader comes before anything else: it finds what the kill left.
        reader = self.moments.choice(scene.readers)
        code, _, said = place.run(*reader)
        # 4 is the answer about a device that was erased.
        check(code in (0, 3, 4), f"{where}: {' '.join(reader)} ended with {code}: {said}")
        # What is byte for byte as it was has been looked at already.
        found = old if same(files(place.folder), before) else scene.look(place)
        partial = isinstance(new, dict) and set((found or {}).items()) < set(new.items()) and found
        check(found in (old, new) or partial, f"{where}: neither old nor new: {str(found)[:300]}")
        self.count["old" if found == old else "new" if found == new else "between"] += 1
        code, _, said = place.run(*scene.words)
        check(code == 0 or found == new and code in scene.again, f"{where}: run again it ended with {code}: {said}")
        check(scene.look(place) == new, f"{where}: run again it did not arrive")
        if found == new and scene.then:
            code, _, said = place.run(*scene.then)
            check(code == 0, f"{where}: {' '.join(scene.then[:2])} then ended with {code}: {said}")
        after = files(place.folder)
        # A command that has nothing to do leaves an existing log or emptied journal.
        odd = {
            name for name in set(after) ^ names
            if not (scene.has_log and name == "sim.db-wal" or name in after and is_emptied(place.folder / name))}
        check(not odd, f"{where}: left behind {sorted(odd)[:5]}")
        touched = [
            name for name, content in before.items() if after.get(name) != content and not is_lock(name)
            and not any(name == own or name.startswith(own + "/") for own in scene.changes)]
        check(not touched, f"{where}: changed something else: {touched[:5]}")


def main():
    parser = argparse.ArgumentParser(description="Kill every verb that writes, and look what stands then.")
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=1_000, help="that meet the program running")
    parser.add_argument("--seed", default="moments")
    parser.add_argument("--only", default="", help="scenes whose names begin so")
    arguments = parser.parse_args()
    chosen = chosen_scenes(arguments.only)
    with tempfile.TemporaryDirectory(prefix="keyhaul-kills-") as name:
        kills = Kills(arguments.program, pathlib.Path(name), arguments.seed)
        started, rounds = time.perf_counter(), 0
        while kills.count["kills"] < arguments.kills and rounds < arguments.kills * 3:
            kills.round(chosen[rounds % len(chosen)])
            rounds += 1
            if rounds % 500 == 0:
                print(f"{kills.count['kills']} kills after {time.perf_counter() - started:.0f} s", flush=True)
        count = kills.count
        kills.checks.check(count["kills"] >= arguments.kills, f"{count['kills']} of {arguments.kills} kills met the program")
        kills.checks.check(count["old"] > 0 and count["new"] > 0, "kills before and after a change took place")
    print(f"{count['kills']} kills of {len(chosen)} scenes in {time.perf_counter() - started:.0f} s: {count['old']} found the "
          f"old state, {count['new']} the new one, {count['between']} a part of exported files; {count['left']} left a name")
    return kills.checks.conclude()


if __name__ == "__main__":
    sys.exit(main())
