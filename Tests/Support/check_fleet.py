#!/usr/bin/env python3
"""Verify and plan 200 backups on a cluster with two workers, kill a worker, and check that each result occurs once.

    check_fleet.py --keyhaul PROGRAM [--count 200] [--repeats 2]

The backups are made from five fixtures in five layouts, encrypted and unencrypted. Some are given as addresses and
streamed, and ten have different faults (`backup_faults.py`). The scheduler and the two workers are separate processes.
Each result is compared with the documents of single runs of the program, one run for each command and backup, which
`xargs` starts. The memory of the scheduler is searched for the password and for secrets of items. Then a run is killed
and resumed, and the fleet's speed is compared with `xargs -P2`. Needs the environment of
packaging/python/requirements.txt. Exit 1 if a check fails.
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
from dataclasses import dataclass, field

import psutil
import pyarrow.parquet as pq
from distributed import Client
from keyhaul import PasswordName, fleet

import backup_faults
from checks import Checks

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = ("old-phone", "every-rule", "hostile-names", "new-phone", "every-rule-target")
LAYOUTS = (".tar", "/", ".tar.gz", ".tar.zst", ".zip")
FAULTY = (
    "manifest-absent", "manifest-cut", "keybag-salt-flip", "keybag-dpic-maximal", "database-cut", "list-path-escape",
    "item-tag-flip", "keychain-cut", "folder-absent", "status-uploading",
)
PASSWORD = backup_faults.MODERN.password.decode("utf-8")
CORE_COUNT = os.cpu_count() or 1
WORKER_COUNT = 2
THREAD_COUNT = 2
# About a third of an iPhone's iterations, so that the measurement is short.
ITERATIONS = 3_000_000
COSTLY_COUNT = 24
# The minimum ratio of the fleet's speed to the speed of `xargs -P2`, which writes no table. For costly backups, the key
# derivation takes nearly all of the time, so the fleet cannot be faster. The ratio of 0.9 allows for noise.
MIN_RATIOS = {"small": 1.0, "costly": 0.9}
# Runs one command on one backup without the package. The arguments are the number, the command and the path.
SINGLE_SCRIPT = """
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
    """The backups, and the files that they need."""

    def __init__(self, program, folder, count):
        self.program, self.folder = program, folder
        self.devices_dir, self.empty_devices_dir = folder / "devices", folder / "no-devices"
        self.password_file = folder / "password"
        self.empty_devices_dir.mkdir()
        self.password_file.write_text(PASSWORD + "\n", encoding="utf-8")
        self.password_file.chmod(0o600)
        self.passwords_file = folder / "passwords.json"
        self.passwords_file.write_text(json.dumps({"family": {"file": str(self.password_file)}}), encoding="utf-8")
        (folder / "backups").mkdir()
        for fixture in FIXTURES:
            self.run_command("device", "create", fixture, "--from", fixture)
        # Half of the valid backups are copies, which is faster than creating more.
        count -= len(FAULTY)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            self.originals = list(pool.map(self.make_backup, range((count + 1) // 2)))
        copies = [self.copy(path) for path in self.originals[:count // 2]]
        valid = [self.path_or_address(path, number) for number, path in enumerate(self.originals + copies)]
        self.costly = self.make_costly_backups()
        self.local = [path for path in valid if path[0] == "/" and "/plain-" not in path]
        self.faulty = {name: self.make_faulty_backup(name) for name in FAULTY}
        self.paths = valid + list(self.faulty.values())
        random.Random("fleet").shuffle(self.paths)

    def run_command(self, *arguments):
        """Run a command."""
        subprocess.run(
            [self.program, *arguments, "--home", self.devices_dir, "--no-input", "--quiet"], check=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def make_backup(self, number):
        """Make a valid backup, and return its path."""
        layout = LAYOUTS[number // len(FIXTURES) % len(LAYOUTS)]
        # After every two rounds over all fixtures and layouts, a round is unencrypted.
        is_plain = number // (len(FIXTURES) * len(LAYOUTS)) % 3 == 2
        path = f"{self.folder}/backups/{'plain-' if is_plain else ''}{number:03}{layout}"
        password = ["--no-password"] if is_plain else ["--rounds", "1", "-p", str(self.password_file)]
        self.run_command("backup", FIXTURES[number % len(FIXTURES)], "-o", path, "--wait", "60s", *password)
        return path.rstrip("/")

    def copy(self, path):
        """Copy a backup, and return the path of the copy."""
        target = os.path.join(os.path.dirname(path), os.path.basename(path).replace(".", "-copy.", 1))
        # A folder has no suffix, so "-copy" is appended to its name.
        target += "" if target.endswith(LAYOUTS[2:]) or "." in os.path.basename(target) else "-copy"
        return str((shutil.copytree if os.path.isdir(path) else shutil.copyfile)(path, target))

    @staticmethod
    def path_or_address(path, number):
        """Return a path, or the address of a tar file, so that some backups are streamed."""
        return f"file://{path}" if path.endswith(".tar") and number % 2 else path

    def make_costly_backups(self):
        """Make backups with many iterations, each with its own salt."""
        paths = [f"{self.folder}/costly-{number}.tar" for number in range(COSTLY_COUNT)]
        for path in paths:
            self.run_command("backup", "old-phone", "-o", path, "--rounds", str(ITERATIONS), "-p", self.password_file)
        return paths

    def make_faulty_backup(self, name):
        """Write a backup with a fault, and return its path."""
        [fault] = [fault for fault in backup_faults.FAULTS if fault.name == name]
        return str(fault.write(self.folder / "broken" / name))

    def run_single_commands(self, paths, commands):
        """Run each command on each backup, in one process each. Return the results by path and command."""
        out = self.folder / "single"
        out.mkdir(exist_ok=True)
        lines = [f"{number}\n{command}\n{path}\n" for number, path in enumerate(paths) for command in commands]
        environment = {
            **os.environ, "OUT": out, "KEYHAUL": self.program, "SECRET": self.password_file,
            "DEVICES": self.empty_devices_dir,
        }
        subprocess.run(
            ["xargs", "-P4", "-d", "\\n", "-n3", "sh", "-c", SINGLE_SCRIPT, "single"], input="".join(lines).encode(),
            check=True, env=environment)
        return {
            path: {command: SingleRun(out / f"{number}.{command}") for command in commands}
            for number, path in enumerate(paths)
        }


class SingleRun:
    """One run of the program: its exit code, its document and its error."""

    def __init__(self, stem):
        self.code = int(stem.with_name(stem.name + ".code").read_text())
        text = stem.with_name(stem.name + ".json").read_text(encoding="utf-8")
        lines = stem.with_name(stem.name + ".err").read_text(encoding="utf-8").splitlines()
        self.document = json.loads(text) if text else {}
        self.error = next(
            (message for message in map(json.loads, lines) if message["message_type"] == "exit_error"), {}
        )


def nested_settings(settings):
    """Return Dask's settings with a section for each part of a dotted name. A file must not have dotted names."""
    nested = {}
    for name, value in settings.items():
        *section_names, last = name.split(".")
        section = nested
        for section_name in section_names:
            section = section.setdefault(section_name, {})
        section[last] = value
    return nested


class Cluster:
    """A scheduler and two workers, which restart after they end. All of them are processes."""

    def __init__(self, folder, backups):
        self.log = (folder / "cluster.log").open("wb")
        self.file = folder / "scheduler.json"
        environment = {
            **os.environ, "KEYHAUL_PASSWORDS": str(backups.passwords_file), "KEYHAUL_PROGRAM": str(backups.program),
            "DASK_CONFIG": str(folder / "dask.yaml"),
        }
        (folder / "dask.yaml").write_text(json.dumps(nested_settings(fleet.QUIET)), encoding="utf-8")
        common = {"env": environment, "cwd": folder, "stdout": self.log, "stderr": self.log, "start_new_session": True}
        dask = [sys.executable, "-m", "dask"]
        host_options = ["--host", "127.0.0.1"]
        self.scheduler = subprocess.Popen(
            [*dask, "scheduler", *host_options, "--port", "0", "--no-dashboard", "--scheduler-file", self.file],
            **common)
        self.workers = subprocess.Popen(
            [
                *dask, "worker", *host_options, "--no-dashboard", "--nworkers", str(WORKER_COUNT), "--nthreads",
                str(THREAD_COUNT), "--scheduler-file", self.file, "--local-directory", folder],
            **common,
        )

    def client(self):
        """Return a client, after all workers have started."""
        deadline = time.monotonic() + 60
        while not self.file.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        client = Client(scheduler_file=str(self.file))
        client.wait_for_workers(WORKER_COUNT, timeout=60)
        return client

    def cpu_seconds(self):
        """Return the CPU time of the cluster, with all programs that its workers ran."""
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
        """Stop all processes."""
        for process in (self.workers, self.scheduler):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self.log.close()


def texts_in_memory(pid, texts):
    """Return the texts that the memory of a process contains."""
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


def recorded_row_count(folder):
    """Return the number of backups that an unfinished run has recorded."""
    path = folder / "backups.parquet"
    return pq.read_metadata(path).num_rows if path.exists() else 0


def fixture_secrets():
    """Return the secrets of the fixtures' items that are long enough to search for."""
    texts = set()
    for fixture in FIXTURES:
        description = json.loads((ROOT / "Fixtures/devices" / f"{fixture}.json").read_text(encoding="utf-8"))
        for item in description["items"]:
            secret = (item.get("secret") or {}).get("text", "")
            # Names of fixtures and single words also occur in the memory for other reasons.
            if len(secret) >= 8 and secret not in FIXTURES and not secret.isalpha():
                texts.add(secret.encode("utf-8"))
    return texts


def expected_row(single_runs):
    """Return the row that the fleet should produce for a backup, derived from its single runs."""
    verify, plan = single_runs["verify"], single_runs["plan"]
    worst = verify if verify.code else plan
    verification, outlook = verify.document, plan.document
    row = {
        "code": worst.code, "error": worst.error.get("message"), "why": worst.error.get("why"),
        "advice": worst.error.get("try"), "whole": verification.get("whole"), "verdict": verification.get("verdict"),
        "faults": verification.get("fault_count"), "digest": outlook.get("source", {}).get("digest"),
        "encrypted": outlook.get("source", {}).get("encrypted"), "device_udid": outlook.get("source", {}).get("device"),
        "items": len(outlook["items"]) if outlook else None,
    }
    for future in outlook.get("futures", ()):
        row["arrives_same_device" if future["same_device"] else "arrives_new_device"] = future["arrives"]
    return row


def expected_items(single_runs):
    """Yield the rows that the fleet should produce for a backup's items, derived from its single runs."""
    for item in single_runs["plan"].document.get("items", ()):
        new, same = sorted(item["outcomes"], key=lambda outcome: outcome["same_device"])
        yield {
            "index": item["index"], "kind": item["kind"], "protection": item["protection"], "outcome": new["outcome"],
            "reason": new.get("reason"), "reason_same_device": same.get("reason"),
            "outcome_same_device": "expected" if same.get("expected") else same["outcome"],
        }


def has_members(rows, expected_rows):
    """Return whether each row has the members of the expected row. A row may have additional members."""
    return len(rows) == len(expected_rows) and all(
        row[name] == value for row, expected in zip(rows, expected_rows) for name, value in expected.items())


@dataclass
class KilledWorker:
    """A worker that was killed during a run."""

    # The number of tasks that the worker had, and the number of backups that the run had finished.
    task_count: int
    finished_count: int
    # The searched texts that the scheduler's memory contained afterwards.
    texts_in_memory: set[bytes] = field(default_factory=set)


class FleetChecks(Checks):
    """The checks of the runs on one cluster."""

    def __init__(self, backups, cluster, client):
        super().__init__()
        self.backups, self.cluster, self.client = backups, cluster, client
        passwords = {"*/plain-*": None, "*": PasswordName("family")}
        self.settings = {"passwords": passwords, "home": str(backups.empty_devices_dir)}

    def compare(self, outcome, expected_runs, title):
        """Check that each path has one row, and that rows and items equal the results of the single runs."""
        rows, items = outcome.backups.to_pylist(), {}
        for item in outcome.items.to_pylist():
            items.setdefault(item["path"], []).append(item)
        self.check(
            [row["path"] for row in rows] == self.backups.paths, f"{title}: not every path has one row, in order"
        )
        equal_count = 0
        for row in rows:
            single_runs = expected_runs[row["path"]]
            expected = expected_row(single_runs)
            if expected["code"] in (2, 3) and expected["error"] is None:
                # A single run has no error with these codes, but the fleet gives a reason.
                expected.update(error=row["error"], why=row["why"])
            differences = {name: (row[name], value) for name, value in expected.items() if row[name] != value}
            has_equal_items = has_members(items.get(row["path"], []), list(expected_items(single_runs)))
            is_equal = not differences and has_equal_items
            self.check(is_equal, f"{title}: {row['path']!r}: {differences or 'its items'}")
            equal_count += is_equal
        print(f"{title}: {len(rows)} of {len(self.backups.paths)} results, {equal_count} equal to those of single runs")

    def check_killed_worker(self, expected_runs):
        """Kill a worker after a third of the backups, and check the results and the scheduler's memory."""
        pids = self.client.run(os.getpid)
        worker, pid = next(iter(pids.items()))
        killed = None
        secrets = {PASSWORD.encode("utf-8"), *fixture_secrets()}
        # Texts that the scheduler needs, which show that the search works.
        public_texts = {b"family", bytes(self.backups.empty_devices_dir)}

        def kill_worker(finished_count, total):
            nonlocal killed
            if finished_count * 3 >= total and killed is None:
                killed = KilledWorker(len(self.client.processing(workers=[worker])[worker]), finished_count)
                os.kill(pid, signal.SIGKILL)
                killed.texts_in_memory = texts_in_memory(self.cluster.scheduler.pid, secrets | public_texts)

        started = time.monotonic()
        outcome = fleet.run(self.backups.paths, self.client, progress=kill_worker, **self.settings)
        seconds = time.monotonic() - started
        if killed is None:
            self.check(False, "no worker was killed")
            return
        self.check(
            killed.task_count > 0 and killed.finished_count < len(self.backups.paths),
            "no worker was killed while it had tasks")
        restarted_count = self.check_restart(set(pids.values()))
        print(
            f"killed: worker {pid} at {killed.finished_count} of {len(self.backups.paths)}, "
            f"with {killed.task_count} tasks; {restarted_count} restarted; {seconds:.1f} s"
        )
        self.compare(outcome, expected_runs, "killed")
        memory = killed.texts_in_memory | texts_in_memory(self.cluster.scheduler.pid, secrets)
        self.check_secrets(outcome, memory, secrets, public_texts)
        self.check_faulty_backups(outcome)

    def check_restart(self, old_pids):
        """Check that one new worker replaced the killed one. Return the number of new workers."""
        self.client.wait_for_workers(WORKER_COUNT, timeout=60)
        new_pids = self.client.run(os.getpid)
        restarted_count = len(set(new_pids.values()) - old_pids)
        self.check(len(new_pids) == WORKER_COUNT and restarted_count == 1, "the killed worker did not restart")
        return restarted_count

    def check_secrets(self, outcome, memory, secrets, public_texts):
        """Check that neither the scheduler's memory nor a table contains a secret."""
        self.check(
            public_texts <= memory, "the search of the scheduler's memory does not find the password's name")
        self.check(not memory & secrets, f"the scheduler's memory has {memory & secrets}")
        print(
            f"secrets: {len(memory & secrets)} of {len(secrets)} are in the scheduler's memory, "
            "which has the password's name"
        )
        tables = str(outcome.items.to_pylist()) + str(outcome.backups.to_pylist())
        self.check(not [secret for secret in secrets if secret.decode("utf-8") in tables], "a table has a secret")

    def check_faulty_backups(self, outcome):
        """Check that each faulty backup has its own error and the expected exit code."""
        listed = json.loads(backup_faults.PUBLISHED_PATH.read_text(encoding="utf-8"))["faults"]
        codes = {fault["name"]: fault["codes"] for fault in listed}
        rows = {row["path"]: row for row in outcome.rows()}
        errors = set()
        for name, path in self.backups.faulty.items():
            row = rows[path]
            self.check(row["code"] == codes[name]["verify"], f"{name}: {row['code']}, not {codes[name]['verify']}")
            error = row["error"].replace(path, "…")
            errors.add((row["id"], error, row["why"], row["fault"]))
            print(f"  {name:20} {row['code']} {row['id']:14} {error}: {row['why']}")
        self.check(len(errors) == len(FAULTY), "two faulty backups have the same error")
        failed = {row["path"] for row in outcome.rows() if row["code"] not in (0, 3)}
        unexpected = failed - set(self.backups.faulty.values())
        self.check(not unexpected, f"valid backups have errors: {sorted(unexpected)[:3]}")
        print(f"faulty: {len(errors)} of {len(FAULTY)} different errors; "
              f"{len(failed)} of {outcome.backups.num_rows} backups have an error")

    def check_resumed_run(self, expected_runs):
        """Kill the process of a run, and check that the next run continues it."""
        out = self.backups.folder / "resumed"
        process = subprocess.Popen(
            [
                sys.executable, "-m", "keyhaul.fleet", *self.backups.paths, "--out", out, "--scheduler-file",
                self.cluster.file, "--password-name", "family", "--plain", "*/plain-*", "--checkpoint", "0.5", "--home",
                self.backups.empty_devices_dir],
            stdout=subprocess.DEVNULL,
            stderr=self.cluster.log,
        )
        deadline = time.monotonic() + 120
        while (
            recorded_row_count(out) * 4 < len(self.backups.paths)
            and process.poll() is None
            and time.monotonic() < deadline
        ):
            time.sleep(0.05)
        process.kill()
        process.wait()
        leftover = pq.read_table(out / "backups.parquet").num_rows
        self.check(0 < leftover < len(self.backups.paths), f"the killed run left {leftover} rows")
        outcome = fleet.run(self.backups.paths, self.client, out=out, **self.settings)
        self.check(0 < outcome.kept <= leftover, f"{outcome.kept} of {leftover} rows were kept")
        print(
            f"resumed: the killed run left {leftover} rows, {outcome.kept} were kept, "
            f"{outcome.looked_at} backups were read")
        self.compare(outcome, expected_runs, "resumed")
        self.check_repeated_run(out, outcome)

    def check_repeated_run(self, out, outcome):
        """Rewrite one backup, and check that the next run reads only this backup and the backups without a result."""
        rewritten_path = next(path for path in self.backups.local if path.endswith(".tar.gz"))
        shutil.copyfile(rewritten_path, rewritten_path + ".copy")
        os.replace(rewritten_path + ".copy", rewritten_path)
        repeated = fleet.run(self.backups.paths, self.client, out=out, **self.settings)
        old_times = {row["finished"] for row in outcome.rows()}
        new_rows = sum(row["finished"] not in old_times for row in repeated.rows())
        unfinished = sum(row["code"] not in (0, 3, 13, 14) for row in outcome.rows())
        self.check(
            repeated.looked_at == 1 + unfinished,
            f"{repeated.looked_at} backups were read again, although one was rewritten")
        print(
            f"repeated: {repeated.kept} kept, {repeated.looked_at} read: 1 rewritten, {unfinished} without a result "
            f"before (wrong password, not found); {new_rows} rows are new"
        )

    def check_speed(self, repeats):
        """Compare the speed of the fleet with `xargs`, two and four processes at a time. The methods take turns."""
        for title, paths, minimum in (
            ("small", self.backups.local, MIN_RATIOS["small"]),
            (f"{ITERATIONS:,} iterations", self.backups.costly, MIN_RATIOS["costly"])
        ):
            turns = [
                (self.run_xargs(2, paths), self.run_xargs(4, paths), self.run_fleet(paths)) for _ in range(repeats)
            ]
            names = ("xargs -P2", "xargs -P4", "fleet")
            for index, name in enumerate(names):
                seconds, cpu_seconds = (statistics.median(turn[index][part] for turn in turns) for part in (0, 1))
                print(
                    f"speed, {title}: {name:9} {len(paths)} backups in {seconds:6.2f} s: "
                    f"{len(paths) / seconds / CORE_COUNT:6.2f} per second and core; "
                    f"{1000 * cpu_seconds / len(paths):6.1f} ms of CPU time each"
                )
            ratio_to_two, ratio_to_four = (
                statistics.median(turn[index][0] / turn[2][0] for turn in turns) for index in (0, 1))
            print(
                f"speed, {title}: ratio to xargs -P2 {ratio_to_two:.2f}, to xargs -P4 {ratio_to_four:.2f}, "
                f"median of {repeats} turns"
            )
            self.check(ratio_to_two >= minimum, f"{title}: the fleet is slower than xargs -P2: {ratio_to_two:.2f}")

    def run_xargs(self, process_count, paths):
        """Return the elapsed seconds and the CPU seconds of `xargs`.

        Each program has its own session, like the programs of the fleet, because Linux divides a busy machine between
        sessions.
        """
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run(
            [
                "xargs", f"-P{process_count}", "-d", "\\n", "-I{}", "setsid", self.backups.program, "verify", "{}",
                "-p", self.backups.password_file, "--home", self.backups.empty_devices_dir, "--json", "-q",
                "--no-input"],
            input="\n".join(paths).encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        seconds, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
        return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def run_fleet(self, paths):
        """Return the elapsed seconds and the CPU seconds of the fleet, including the cluster and this process."""
        cluster_seconds, own_seconds, started = self.cluster.cpu_seconds(), time.process_time(), time.monotonic()
        outcome = fleet.run(paths, self.client, verbs=["verify"], **self.settings)
        seconds = time.monotonic() - started
        self.check({row["code"] for row in outcome.rows()} == {0}, "a backup was not verified")
        return seconds, time.process_time() - own_seconds + self.cluster.cpu_seconds() - cluster_seconds


def main():
    parser = argparse.ArgumentParser(description="Verify and plan backups on a cluster, and kill a worker.")
    parser.add_argument("--keyhaul", required=True, type=pathlib.Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=2)
    arguments = parser.parse_args()
    started = time.monotonic()

    def log(message):
        print(f"{message} ({time.monotonic() - started:.0f} s)", flush=True)

    with tempfile.TemporaryDirectory(prefix="keyhaul-fleet-") as name, contextlib.ExitStack() as stack:
        folder = pathlib.Path(name).resolve()
        backups = Backups(arguments.keyhaul.resolve(), folder, arguments.count)
        addresses = sum(path.startswith("file:") for path in backups.paths)
        log(
            f"{len(backups.paths)} backups, {len(FAULTY)} of them faulty, {addresses} of them streamed addresses; "
            f"{len(backups.originals)} were made, the other valid ones are copies"
        )
        expected_runs = backups.run_single_commands(backups.paths, ("verify", "plan"))
        log("single runs")
        cluster = Cluster(folder, backups)
        stack.callback(cluster.close)
        client = stack.enter_context(cluster.client())
        checks = FleetChecks(backups, cluster, client)
        log(f"cluster: {WORKER_COUNT} workers of {THREAD_COUNT} threads")
        checks.check_killed_worker(expected_runs)
        log("killed")
        checks.check_resumed_run(expected_runs)
        log("resumed")
        checks.check_speed(arguments.repeats)
        log("speed")
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
