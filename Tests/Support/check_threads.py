#!/usr/bin/env python3
"""Refuses thread starts to every command, and checks how it ends.

    check_threads.py PROGRAM [--short] [--only SCENE]

A preloaded library (`thread_starts.c`) makes pthread_create fail with EAGAIN, as it does if the system has no more threads or no
memory for a stack. Each of the first 20 starts of each command is refused, alone and with all later starts. Standard error is a
terminal, so that a progress line is drawn too. No command may hang. Each must exit with 0 if its work on the disk is complete, or
with 1 and a message if it changed nothing. The system itself then refuses threads in the same way: with `ulimit -u 1` if the user
is not root, and with `ulimit -v`. Exit 1 if a check fails.
"""

import argparse
import os
import pathlib
import pty
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from checks import Checks
from kill_verbs import CHAT, NEW, OLD, Kills, chosen_scenes, files

MOST, SECONDS = 20, 30


def readers(short):
    """Yields commands that change nothing in a scene's folder, or write files that are checked by name only."""
    key = ["--password-file", OLD]
    yield ["inspect", "b"]
    yield ["inspect", "b.zip", "--list", *key]
    yield ["verify", "b", *key]
    yield ["verify", "b.tar.zst", *key]
    yield ["verify", "b", "b.tar", "b.zip", "bare", "--jobs", "4", *key]
    yield ["verify", "many", "b", "b.tar", "--jobs", "3", "--format", "csv", *key]
    yield ["inspect", "b", "b.tar", "b.zip", "bare", "--jobs", "4", *key]
    yield ["diff", "b", "many", *key]
    yield ["diff", "b", "phone", *key]
    yield ["item", "find", "b", *key]
    yield ["item", "find", "phone"]
    yield ["plan", "b", "--to", "other", *key]
    yield ["plan", "b", "--to", "other", "--compare", *key]
    yield ["plan", "many", "--to", "other", *key]
    yield ["restore", "b", "--to", "other", "--dry-run", "--yes", *key]
    yield ["why", "b", "--access-group", CHAT, *key]
    yield ["convert", "b", "-o", "-"]
    yield ["export", "b.tar", "--files", "out", "--dry-run", *key]
    yield ["device", "list"]
    yield ["device", "show", "phone"]
    yield ["rekey", "b", *key, "--new-password-file", NEW, "--rounds", "1", "--dry-run"]
    yield ["backup", "phone", "-o", "new.tar", *key, "--rounds", "1", "--yes", "--dry-run"]
    if not short:
        yield ["demo"]
        yield ["explain", "device-bound"]
        yield ["version"]


class Threads(Kills):
    def __init__(self, program, work):
        super().__init__(program, work, "threads")
        self.library, self.count = work / "threads.so", work / "count"
        subprocess.run(
            [shutil.which("cc") or "clang", "-shared", "-fPIC", "-O1", "-Wall", "-Wno-nonnull", "-o", str(self.library),
             str(pathlib.Path(__file__).with_name("thread_starts.c")), "-ldl"], check=True)
        self.runs, self.refused, self.hangs, self.codes, self.longest = 0, 0, 0, {}, 0

    def start(self, place, words, first=0, last=0, limits=None):
        """Returns the exit code (None if it hung), the output, and the numbers of starts and of refused starts."""
        self.count.unlink(missing_ok=True)
        environment = dict(os.environ, TERM="xterm", SWIFT_BACKTRACE="enable=no")
        if limits is None:
            environment |= {
                "LD_PRELOAD": str(self.library), "KEYHAUL_THREADS_FIRST": str(first), "KEYHAUL_THREADS_LAST": str(last),
                "KEYHAUL_THREADS_COUNT": str(self.count)}
        outer, inner = pty.openpty()
        said, started = bytearray(), time.perf_counter()
        process = subprocess.Popen(
            [self.program, *map(str, words), "--home", "home", "--no-input"], cwd=place.folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=inner, env=environment, preexec_fn=limits)
        os.close(inner)

        def read():
            while True:
                try:
                    portion = os.read(outer, 65_536)
                except OSError:
                    return
                if not portion:
                    return
                said.extend(portion)

        reader = threading.Thread(target=read)
        reader.start()
        try:
            code = process.wait(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            code = None
        reader.join()
        os.close(outer)
        self.longest = max(self.longest, time.perf_counter() - started)
        starts, refused = map(int, self.count.read_text().split()) if self.count.exists() else (0, 0)
        return code, said.decode("utf-8", "replace").replace("\r", ""), starts, refused

    def judge(self, where, code, said, done, changed):
        """Checks one run. - done: Whether its work on the disk is complete. - changed: Whether anything changed."""
        check = self.checks.check
        self.runs += 1
        self.hangs += code is None
        self.codes[code] = self.codes.get(code, 0) + 1
        check(code is not None, f"{where}: hangs")
        check(code in (0, 1), f"{where}: ended with {code}: {said[-300:]}")
        check(code != 0 or done, f"{where}: ended with 0 and is not done: {said[-300:]}")
        check(code != 1 or not changed and "error:" in said, f"{where}: ended with 1, changed {changed}: {said[-300:]}")

    def refusals(self, starts, short):
        """Yields the first and last refused start of each run; 0 as the last means all later starts."""
        last = min(starts, MOST)
        for k in range(1, last + 1):
            if short and k not in (1, 2, last):
                continue
            yield k, 0
            if not short or k == 1:
                yield k, k

    def write(self, scene, short):
        self.learn(scene)
        origin, old, new, _, before, _ = self.whole[scene.name]
        starts = self.start(self.fresh(origin), scene.words)[2]
        for first, last in self.refusals(starts, short):
            place = self.fresh(origin)
            code, said, _, refused = self.start(place, scene.words, first, last)
            self.refused += refused
            found = scene.look(place)
            where = f"{scene.name}, starts {first} to {last or 'the end'} of {starts} refused"
            self.judge(where, 0 if code in scene.partly else code, said, found == new, found != old)
        return starts

    def read(self, words, short):
        origin = self.template
        place = self.fresh(origin)
        code, said, starts, _ = self.start(place, words)
        self.checks.check(code in (0, 3), f"{' '.join(words)} ended with {code}: {said[-300:]}")
        whole, before = code, files(place.folder)
        for first, last in self.refusals(starts, short):
            place = self.fresh(origin)
            code, said, _, refused = self.start(place, words, first, last)
            self.refused += refused
            where = f"{' '.join(words)}, starts {first} to {last or 'the end'} of {starts} refused"
            changed = {name for name, content in files(place.folder).items() if before.get(name) != content and "lock" not in name}
            self.judge(where, 0 if code == whole else code, said, True, bool(changed))
        return starts

    def limited(self, words, name, limits):
        place = self.fresh(self.template)
        code, said, _, _ = self.start(place, words, limits=limits)
        self.judge(f"{' '.join(words)}, {name}", 0 if code == 3 else code, said, True, False)


def least_memory(threads, words):
    """Returns the least address space in bytes with which a command runs. It has no room for an 8 MiB stack."""
    low, high = 64 << 20, 4 << 30
    while high - low > 4 << 20:
        middle = (low + high) // 2
        code = threads.start(threads.fresh(threads.template), words, limits=memory(middle))[0]
        low, high = (low, middle) if code in (0, 3) else (middle, high)
    return high


def memory(count):
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (count, count))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--short", action="store_true", help="fewer scenes, and of each the first, second and last start")
    parser.add_argument("--only", default="", help="scenes whose names begin so")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="keyhaul-threads-") as name:
        threads = Threads(arguments.program, pathlib.Path(name).resolve())
        scenes = chosen_scenes(arguments.only)
        if arguments.short:
            kinds = {}
            for scene in scenes:
                kinds.setdefault(scene.name.rsplit(" ", 1)[0] if scene.name.endswith(("/", ".tar", ".zip", ".zst")) else scene.name, scene)
            scenes = [scene for scene in kinds.values() if not scene.is_large]
        starts, most = 0, 0
        for scene in scenes:
            count = threads.write(scene, arguments.short)
            starts, most = starts + count, max(most, count)
        words = [] if arguments.only else list(readers(arguments.short))
        for command in words:
            count = threads.read(command, arguments.short)
            starts, most = starts + count, max(most, count)
        if words:
            command = ["verify", "b", "b.tar", "b.zip", "bare", "--jobs", "4", "--password-file", OLD]
            least = least_memory(threads, ["inspect", "b"])
            for more in range(0, 64 << 20, (16 if arguments.short else 4) << 20):
                threads.limited(command, f"{(least + more) >> 20} MiB of address space", memory(least + more))
    codes = ", ".join(f"{code}: {count}" for code, count in sorted(threads.codes.items(), key=str))
    print(f"{len(scenes)} writing and {len(words)} reading commands with {starts} thread starts, at most {most} in one; {threads.runs} runs "
          f"with {threads.refused} refused starts; {threads.hangs} hangs; exit codes {codes}; the longest took {threads.longest:.1f} s")
    threads.checks.check(arguments.only or threads.refused > 0, "no start was refused")
    return threads.checks.conclude()


if __name__ == "__main__":
    sys.exit(main())
