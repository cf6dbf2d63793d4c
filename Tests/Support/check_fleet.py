#!/usr/bin/env python3
"""A real cluster of two workers looks at 200 backups, loses one in the middle, and has each result once.

    check_fleet.py --keyhaul PROGRAM [--count 200] [--repeats 2]

The backups are of five fixtures in five forms, with a password and without, some of them addresses that are streamed; ten are
broken in ten ways (`backup_faults.py`). A scheduler and two workers are processes of their own. Each result is held against
the program's own documents, one process a verb, started by `xargs`; the memory of the scheduler is searched for the password
and for what the items guard. Then a run is killed and resumed, and the speed is measured beside `xargs -P2`. Runs with the
environment of packaging/python/requirements.txt. Exit 1 where a check fails.
"""

import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import backup_faults
import psutil
import pyarrow.parquet as pq
from checks import Checks
from distributed import Client

from keyhaul import PasswordName, fleet

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = ("old-phone", "every-rule", "hostile-names", "new-phone", "every-rule-target")
FORMS = (".tar", "/", ".tar.gz", ".tar.zst", ".zip")
BROKEN = (
    "manifest-absent", "manifest-cut", "keybag-salt-flip", "keybag-dpic-maximal", "database-cut", "list-path-escape",
    "item-tag-flip", "keychain-cut", "folder-absent", "status-uploading",
)
PASSWORD = backup_faults.MODERN.password.decode("utf-8")
CORES = os.cpu_count() or 1
WORKERS = 2
THREADS = 2
# A third of what an iPhone's backup takes: the figures are of the machine that it runs on, and others are on it.
ROUNDS = 3_000_000
COSTLY = 24
# The least speed of the fleet beside that of `xargs -P2`, which has no table at the end. Where the derivation is nearly all that
# there is, nothing can be won: what is missing there is the noise of a machine with others on it.
LEAST_RATIOS = {"small": 1.0, "costly": 0.9}
# What finishes one question of one backup, without the package; its number, its verb and its path are the arguments.
SINGLE = """
out="$OUT/$1.$2"
case "$3" in
  file://*/plain-*) "$KEYHAUL" "$2" - --memory --home "$DEVICES" --json -q --no-input <"${3#file://}" ;;
  file://*) "$KEYHAUL" "$2" - --memory -p "$SECRET" --home "$DEVICES" --json -q --no-input <"${3#file://}" ;;
  */plain-*) "$KEYHAUL" "$2" "$3" --home "$DEVICES" --json -q --no-input ;;
  *) "$KEYHAUL" "$2" "$3" -p "$SECRET" --home "$DEVICES" --json -q --no-input ;;
esac >"$out.json" 2>"$out.err"
echo $? >"$out.code"
"""


class Backups:
    """The backups, and where everything is."""

    def __init__(self, program, folder, count):
        self.program, self.folder = program, folder
        self.home, self.empty, self.secret = folder / "devices", folder / "no-devices", folder / "password"
        self.empty.mkdir()
        self.secret.write_text(PASSWORD + "\n", encoding="utf-8")
        self.secret.chmod(0o600)
        self.names = folder / "passwords.json"
        self.names.write_text(json.dumps({"family": {"file": str(self.secret)}}), encoding="utf-8")
        (folder / "backups").mkdir()
        for fixture in FIXTURES:
            self.said("device", "create", fixture, "--from", fixture)
        # Each is made by the program; a second copy of each is as good as another backup to whoever does not know.
        count -= len(BROKEN)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            self.made = list(pool.map(self.good, range((count + 1) // 2)))
        copies = [self.copy(path) for path in self.made[:count // 2]]
        good = [self.named(path, number) for number, path in enumerate(self.made + copies)]
        self.costly = self.derived()
        self.local = [path for path in good if path[0] == "/" and "/plain-" not in path]
        self.broken = {name: self.bad(name) for name in BROKEN}
        self.paths = good + list(self.broken.values())
        random.Random("fleet").shuffle(self.paths)

    def said(self, *arguments):
        subprocess.run(
            [self.program, *arguments, "--home", self.home, "--no-input", "--quiet"], check=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def good(self, number):
        form = FORMS[number // len(FIXTURES) % len(FORMS)]
        is_plain = number // 25 % 3 == 2
        path = f"{self.folder}/backups/{'plain-' if is_plain else ''}{number:03}{form}"
        password = ["--no-password"] if is_plain else ["--rounds", "1", "-p", str(self.secret)]
        self.said("backup", FIXTURES[number % len(FIXTURES)], "-o", path, "--wait", "60s", *password)
        return path.rstrip("/")

    def copy(self, path):
        target = os.path.join(os.path.dirname(path), os.path.basename(path).replace(".", "-copy.", 1))
        target += "" if target.endswith(FORMS[2:]) or "." in os.path.basename(target) else "-copy"
        return str((shutil.copytree if os.path.isdir(path) else shutil.copyfile)(path, target))

    @staticmethod
    def named(path, number):
        """Some of the tars are addresses, which are streamed."""
        return f"file://{path}" if path.endswith(".tar") and number % 2 else path

    def derived(self):
        """Backups whose password costs something, each with a salt of its own; their content does not matter."""
        paths = [f"{self.folder}/costly-{number}.tar" for number in range(COSTLY)]
        for path in paths:
            self.said("backup", "old-phone", "-o", path, "--rounds", str(ROUNDS), "-p", self.secret)
        return paths

    def bad(self, name):
        [fault] = [each for each in backup_faults.FAULTS if each.name == name]
        return str(fault.write(self.folder / "broken" / name))

    def singles(self, paths, verbs):
        """The program's own answers, by path and verb."""
        out = self.folder / "single"
        out.mkdir(exist_ok=True)
        lines = [f"{number}\n{verb}\n{path}\n" for number, path in enumerate(paths) for verb in verbs]
        environment = {**os.environ, "OUT": out, "KEYHAUL": self.program, "SECRET": self.secret, "DEVICES": self.empty}
        subprocess.run(
            ["xargs", "-P4", "-d", "\\n", "-n3", "sh", "-c", SINGLE, "single"], input="".join(lines).encode(), check=True,
            env=environment)
        return {path: {verb: Single(out / f"{number}.{verb}") for verb in verbs} for number, path in enumerate(paths)}


class Single:
    """One run of the program: its code, its document and its error."""

    def __init__(self, stem):
        self.code = int(stem.with_name(stem.name + ".code").read_text())
        text = stem.with_name(stem.name + ".json").read_text(encoding="utf-8")
        lines = stem.with_name(stem.name + ".err").read_text(encoding="utf-8").splitlines()
        self.document = json.loads(text) if text else {}
        self.error = next((said for said in map(json.loads, lines) if said["message_type"] == "exit_error"), {})


class Cluster:
    """A scheduler, and two workers that start again where they end; all of them processes."""

    def __init__(self, folder, backups):
        self.log = (folder / "cluster.log").open("wb")
        self.file = folder / "scheduler.json"
        environment = {**os.environ, "KEYHAUL_PASSWORDS": str(backups.names), "KEYHAUL_PROGRAM": str(backups.program),
                       "DASK_CONFIG": str(folder / "dask.yaml")}
        # Dotted names are not read from a file.
        settings = {}
        for name, value in fleet.QUIET.items():
            *path, last = name.split(".")
            place = settings
            for step_down in path:
                place = place.setdefault(step_down, {})
            place[last] = value
        (folder / "dask.yaml").write_text(json.dumps(settings), encoding="utf-8")
        common = {"env": environment, "cwd": folder, "stdout": self.log, "stderr": self.log, "start_new_session": True}
        dask = [sys.executable, "-m", "dask"]
        here = ["--host", "127.0.0.1"]
        self.scheduler = subprocess.Popen(
            [*dask, "scheduler", *here, "--port", "0", "--no-dashboard", "--scheduler-file", self.file], **common)
        self.workers = subprocess.Popen(
            [*dask, "worker", *here, "--no-dashboard", "--nworkers", str(WORKERS), "--nthreads", str(THREADS),
             "--scheduler-file", self.file, "--local-directory", folder], **common)

    def client(self):
        until = time.monotonic() + 60
        while not self.file.exists() and time.monotonic() < until:
            time.sleep(0.05)
        client = Client(scheduler_file=str(self.file))
        client.wait_for_workers(WORKERS, timeout=60)
        return client

    def seconds(self):
        """Of the processor, what the cluster has taken, with every program that its workers ran."""
        total = 0.0
        for root in (self.scheduler.pid, self.workers.pid):
            for process in [psutil.Process(root), *psutil.Process(root).children(recursive=True)]:
                with contextlib.suppress(psutil.Error):
                    times = process.cpu_times()
                    total += times.user + times.system
                    if process.pid not in (self.scheduler.pid, self.workers.pid):
                        total += times.children_user + times.children_system
        return total

    def close(self):
        for process in (self.workers, self.scheduler):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self.log.close()


def holds(pid, texts):
    """Which of the texts the memory of a process has."""
    found = set()
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            span, mode = line.split()[:2]
            if "w" not in mode or line.rstrip().endswith(("[vvar]", "[vsyscall]")):
                continue
            start, end = (int(number, 16) for number in span.split("-"))
            with contextlib.suppress(OSError, ValueError):
                memory.seek(start)
                content = memory.read(end - start)
                found |= {text for text in texts if text in content}
    return found


def rows_in(folder):
    """How many backups a run under way has written down."""
    place = folder / "backups.parquet"
    return pq.read_metadata(place).num_rows if place.exists() else 0


def guarded():
    """What the items of the fixtures guard, where it is long enough to be looked for."""
    texts = set()
    for fixture in FIXTURES:
        described = json.loads((ROOT / "Fixtures/devices" / f"{fixture}.json").read_text(encoding="utf-8"))
        for item in described["items"]:
            secret = (item.get("secret") or {}).get("text", "")
            # One fixture's is its own name, others are words that a program has for itself.
            if len(secret) >= 8 and secret not in FIXTURES and not secret.isalpha():
                texts.add(secret.encode("utf-8"))
    return texts


def expected_row(single):
    """A backup's row as its documents say it."""
    verify, plan = single["verify"], single["plan"]
    worst = verify if verify.code else plan
    whole, futures = verify.document, plan.document
    row = {
        "code": worst.code, "error": worst.error.get("message"), "why": worst.error.get("why"),
        "advice": worst.error.get("try"), "whole": whole.get("whole"), "verdict": whole.get("verdict"),
        "faults": whole.get("fault_count"), "digest": futures.get("source", {}).get("digest"),
        "encrypted": futures.get("source", {}).get("encrypted"), "device_udid": futures.get("source", {}).get("device"),
        "items": len(futures["items"]) if futures else None,
    }
    for future in futures.get("futures", ()):
        row["arrives_same_device" if future["same_device"] else "arrives_new_device"] = future["arrives"]
    return row


def expected_items(single):
    for item in single["plan"].document.get("items", ()):
        new, same = sorted(item["outcomes"], key=lambda outcome: outcome["same_device"])
        yield {
            "index": item["index"], "kind": item["kind"], "protection": item["protection"], "outcome": new["outcome"],
            "reason": new.get("reason"), "reason_same_device": same.get("reason"),
            "outcome_same_device": "expected" if same.get("expected") else same["outcome"],
        }


class Trial(Checks):
    def __init__(self, backups, cluster, client):
        super().__init__()
        self.backups, self.cluster, self.client = backups, cluster, client
        passwords = {"*/plain-*": None, "*": PasswordName("family")}
        self.settings = {"passwords": passwords, "home": str(backups.empty)}

    def compare(self, done, singles, what):
        """Each path once, and each row and item as the program says it by itself."""
        rows, items = done.backups.to_pylist(), {}
        for item in done.items.to_pylist():
            items.setdefault(item["path"], []).append(item)
        self.check([row["path"] for row in rows] == self.backups.paths, f"{what}: the paths are not each there once, in order")
        equal = 0
        for row in rows:
            single = singles[row["path"]]
            expected = expected_row(single)
            if expected["code"] in (2, 3) and expected["error"] is None:
                expected.update(error=row["error"], why=row["why"])
            differs = {name: (row[name], value) for name, value in expected.items() if row[name] != value}
            found = [{name: item[name] for name in each} for item, each in
                     zip(items.get(row["path"], ()), expected_items(single))]
            same = found == list(expected_items(single)) and len(found) == len(items.get(row["path"], ()))
            self.check(not differs and same, f"{what}: {row['path']!r}: {differs or 'its items'}")
            equal += not differs and same
        print(f"{what}: {len(rows)} of {len(self.backups.paths)} results, each once; {equal} equal to single runs")

    def killed(self, singles):
        """A worker is killed when a third is done."""
        pids = self.client.run(os.getpid)
        victim, seen = list(pids.items())[0], {}
        secrets = {PASSWORD.encode("utf-8"), *guarded()}

        def look(done, total):
            if done * 3 >= total and not seen:
                seen["held"] = len(self.client.processing(workers=[victim[0]])[victim[0]])
                seen["done"] = done
                os.kill(victim[1], signal.SIGKILL)
                seen["memory"] = holds(self.cluster.scheduler.pid, {*secrets, b"family", bytes(self.backups.empty)})

        started = time.monotonic()
        done = fleet.run(self.backups.paths, self.client, progress=look, **self.settings)
        seconds = time.monotonic() - started
        self.check(bool(seen) and seen["held"] > 0 and seen["done"] < len(self.backups.paths), "no worker was killed at work")
        self.client.wait_for_workers(WORKERS, timeout=60)
        again = self.client.run(os.getpid)
        fresh = set(again.values()) - set(pids.values())
        self.check(len(again) == WORKERS and len(fresh) == 1, "the killed worker did not start again")
        print(f"killed: worker {victim[1]} at {seen['done']} of {len(self.backups.paths)}, holding {seen['held']} tasks; "
              f"{len(fresh)} started again; {seconds:.1f} s")
        self.compare(done, singles, "killed")
        memory = seen["memory"] | holds(self.cluster.scheduler.pid, secrets)
        self.check(b"family" in memory and bytes(self.backups.empty) in memory, "the search of the scheduler's memory finds nothing")
        self.check(not memory & secrets, f"the scheduler's memory has {memory & secrets}")
        print(f"secrets: of {len(secrets)} texts {len(memory & secrets)} in the scheduler's memory, which has the password's name")
        text = str(done.items.to_pylist()) + str(done.backups.to_pylist())
        self.check(not [secret for secret in secrets if secret.decode("utf-8") in text], "a table has a secret")
        self.named(done)

    def named(self, done):
        """Ten broken backups, each with its own error and the code that its fault has to have."""
        listed = json.loads(backup_faults.PUBLISHED.read_text(encoding="utf-8"))["faults"]
        codes = {fault["name"]: fault["codes"] for fault in listed}
        rows = {row["path"]: row for row in done.rows()}
        said = set()
        for name, path in self.backups.broken.items():
            row = rows[path]
            self.check(row["code"] == codes[name]["verify"], f"{name}: {row['code']}, not {codes[name]['verify']}")
            error = row["error"].replace(path, "…")
            said.add((row["id"], error, row["why"], row["fault"]))
            print(f"  {name:20} {row['code']} {row['id']:14} {error}: {row['why']}")
        self.check(len(said) == len(BROKEN), "two broken backups have the same error")
        broken = {row["path"] for row in done.rows() if row["code"] not in (0, 3)}
        others = broken - set(self.backups.broken.values())
        self.check(not others, f"others have errors too: {sorted(others)[:3]}")
        print(f"broken: {len(said)} of {len(BROKEN)} named, each with its own error; "
              f"{len(broken)} of {done.backups.num_rows} have one")

    def resumed(self, singles):
        """The process that runs it is killed, and the next one goes on."""
        out = self.backups.folder / "resumed"
        process = subprocess.Popen(
            [sys.executable, "-m", "keyhaul.fleet", *self.backups.paths, "--out", out, "--scheduler-file", self.cluster.file,
             "--password-name", "family", "--plain", "*/plain-*", "--checkpoint", "0.5", "--home", self.backups.empty],
            stdout=subprocess.DEVNULL, stderr=self.cluster.log)
        until = time.monotonic() + 120
        while rows_in(out) * 4 < len(self.backups.paths) and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        process.kill()
        process.wait()
        left = pq.read_table(out / "backups.parquet").num_rows
        self.check(0 < left < len(self.backups.paths), f"{left} rows are left by the killed run")
        done = fleet.run(self.backups.paths, self.client, out=out, **self.settings)
        settled = done.kept
        self.check(0 < settled <= left, f"{settled} of {left} rows are kept")
        print(f"resumed: {left} rows were left by the killed run, {settled} kept, {done.looked_at} looked at")
        self.compare(done, singles, "resumed")
        changed = next(path for path in self.backups.local if path.endswith(".tar.gz"))
        shutil.copyfile(changed, changed + ".copy")
        os.replace(changed + ".copy", changed)
        again = fleet.run(self.backups.paths, self.client, out=out, **self.settings)
        looked_at = sum(row["finished"] not in {old["finished"] for old in done.rows()} for row in again.rows())
        open_ones = sum(row["code"] not in (0, 3, 13, 14) for row in done.rows())
        self.check(again.looked_at == 1 + open_ones, f"{again.looked_at} backups are looked at where one was rewritten")
        print(f"again: {again.kept} kept, {again.looked_at} looked at: 1 rewritten, {open_ones} without an answer before "
              f"(wrong password, not found); {looked_at} rows are new")

    def speed(self, repeats):
        """The same backups by `xargs`, one process a backup, two and four at a time, and by the fleet, in turns."""
        for what, paths, least in (
            ("small", self.backups.local, LEAST_RATIOS["small"]),
            (f"{ROUNDS:,} rounds", self.backups.costly, LEAST_RATIOS["costly"]),
        ):
            turns = [(self.lean(2, paths), self.lean(4, paths), self.fleet(paths)) for _ in range(repeats)]
            names = ("xargs -P2", "xargs -P4", "fleet")
            for index, name in enumerate(names):
                seconds, taken = (statistics.median(turn[index][part] for turn in turns) for part in (0, 1))
                print(f"speed, {what}: {name:9} {len(paths)} backups in {seconds:6.2f} s: "
                      f"{len(paths) / seconds / CORES:6.2f} a second and core; {1000 * taken / len(paths):6.1f} ms of the processor each")
            two, four = (statistics.median(turn[index][0] / turn[2][0] for turn in turns) for index in (0, 1))
            print(f"speed, {what}: the fleet's beside xargs -P2 {two:.2f}, beside xargs -P4 {four:.2f}, median of {repeats} turns")
            self.check(two >= least, f"{what}: the fleet is slower than xargs -P2: {two:.2f}")

    def lean(self, at_once, paths):
        """Seconds by the clock and of the processor.

        Each program has a session of its own, as the fleet's have: Linux gives sessions their share of a busy machine.
        """
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run(
            ["xargs", f"-P{at_once}", "-d", "\\n", "-I{}", "setsid", self.backups.program, "verify", "{}", "-p", self.backups.secret,
             "--home", self.backups.empty, "--json", "-q", "--no-input"],
            input="\n".join(paths).encode(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        seconds, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
        return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def fleet(self, paths):
        """The same of the fleet, with its scheduler, its workers and the process that runs it."""
        cluster, own, started = self.cluster.seconds(), time.process_time(), time.monotonic()
        done = fleet.run(paths, self.client, verbs=["verify"], **self.settings)
        seconds = time.monotonic() - started
        self.check({row["code"] for row in done.rows()} == {0}, "a backup was not looked at")
        return seconds, time.process_time() - own + self.cluster.seconds() - cluster


def main():
    parser = argparse.ArgumentParser(description="Have a cluster look at backups, and kill a worker.")
    parser.add_argument("--keyhaul", required=True, type=pathlib.Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=2)
    arguments = parser.parse_args()
    started = time.monotonic()

    def step(what):
        print(f"{what} ({time.monotonic() - started:.0f} s)", flush=True)

    with tempfile.TemporaryDirectory(prefix="keyhaul-fleet-") as name, contextlib.ExitStack() as stack:
        folder = pathlib.Path(name).resolve()
        backups = Backups(arguments.keyhaul.resolve(), folder, arguments.count)
        addresses = sum(path.startswith("file:") for path in backups.paths)
        step(f"made: {len(backups.paths)} backups, {len(BROKEN)} of them broken, {addresses} of them streamed addresses; "
             f"{len(backups.made)} good ones made, the others are their copies")
        singles = backups.singles(backups.paths, ("verify", "plan"))
        step("single runs")
        cluster = Cluster(folder, backups)
        stack.callback(cluster.close)
        client = stack.enter_context(cluster.client())
        trial = Trial(backups, cluster, client)
        step(f"cluster: {WORKERS} workers of {THREADS} threads")
        trial.killed(singles)
        step("killed")
        trial.resumed(singles)
        step("resumed")
        trial.speed(arguments.repeats)
        step("speed")
    return trial.conclude()


if __name__ == "__main__":

    sys.exit(main())
