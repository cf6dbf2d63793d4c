#!/usr/bin/env python3
"""Runs every command with few descriptors and with little memory. It must work, or report the shortage.

    check_descriptors.py PROGRAM [--short] [--only COMMAND]

The limits are 3 to 32 descriptors (`ulimit -n`), and address spaces (`ulimit -v`) in steps, from the size that the program needs to
start. Each run must exit with the code of an unlimited run, or with 1 and a message. It must not exit with 10, 13 or 14, die from a
signal, or hang. A command for many backups or devices exits with 3 if it could read some, and calls no backup damaged. If a command
that writes exits with 1, it must have changed nothing. Exit 1 if a check fails.

With three descriptors, the system's loader cannot open a library, and the program does not start (127).
"""

import argparse
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

from check_threads import readers
from kill_verbs import Kills, chosen_scenes, files

LIMITS = range(3, 33)
# The loader's message about a library that it cannot open or map.
LOADER = "error while loading shared libraries"


class Limited(Kills):
    def __init__(self, program, work):
        super().__init__(program, work, "descriptors")
        self.runs, self.codes = 0, {}

    def start(self, place, words, kind=None, limit=0):
        def lower():
            resource.setrlimit(kind, (limit, limit))

        try:
            done = subprocess.run(
                [self.program, *map(str, words), "--home", "home", "--no-input"], cwd=place.folder, stdin=subprocess.DEVNULL,
                capture_output=True, timeout=120, preexec_fn=lower if kind is not None else None)
        except subprocess.TimeoutExpired:
            return None, ""
        return done.returncode, done.stderr.decode("utf-8", "replace"), done.stdout.decode("utf-8", "replace")

    def judge(self, where, whole, code, said, printed, is_many=False):
        """Checks one run, and returns whether it did its work. - whole: The codes of an unlimited run."""
        check = self.checks.check
        self.runs += 1
        self.codes[code] = self.codes.get(code, 0) + 1
        if code == 127 and LOADER in said:
            return False
        check(code is not None, f"{where}: does not end")
        check(code in (*whole, 1, *((3,) if is_many else ())), f"{where}: ended with {code}: {said[-300:]}")
        check(code in whole or "error:" in said or is_many, f"{where}: ended with {code} and said nothing: {said[-200:]}")
        check(code in whole or not re.search(r"damaged|not a backup|hostile|don't trust", said), f"{where}: a false sentence: {said[-300:]}")
        check(not is_many or not re.search(r"with (exit code )?1[034]\b", said + printed), f"{where}: a false code: {said[-300:]}")
        return code in whole

    def read(self, words, kind, name, limits):
        place = self.fresh(self.template)
        whole, before = self.start(place, words)[0], files_without_locks(place.folder)
        is_many = "--jobs" in words or words[:2] == ["device", "list"]
        for limit in limits:
            where = f"{' '.join(words)}, {name} {limit}"
            self.judge(where, (whole,), *self.start(place, words, kind, limit), is_many)
            self.checks.check(files_without_locks(place.folder) == before, f"{where}: changed something")

    def write(self, scene, kind, name, limits):
        if scene.name not in self.whole:
            self.learn(scene)
        origin, old, new, _, _, _ = self.whole[scene.name]
        for limit in limits:
            place = self.fresh(origin)
            where = f"{scene.name}, {name} {limit}"
            # 5: done, but the replaced backup could not be removed.
            done = self.judge(where, (0, 5, *scene.partly), *self.start(place, scene.words, kind, limit))
            found = scene.look(place)
            # The files of a backup are written one by one, and the list of files says which are missing.
            part = isinstance(old, dict) and {
                path: content for path, content in found.items() if path != "keyhaul-files.jsonl"}.items() <= new.items()
            self.checks.check(found == (new if done else old) or not done and part, f"{where}: neither done nor unchanged")

    def least_memory(self):
        """Returns the least address space in bytes with which the program starts."""
        low, high = 1 << 20, 4 << 30
        while high - low > 1 << 20:
            middle = (low + high) // 2
            code = self.start(self.fresh(self.template), ["version"], resource.RLIMIT_AS, middle)[0]
            low, high = (low, middle) if code == 0 else (middle, high)
        return high


def files_without_locks(folder):
    return {name: content for name, content in files(folder).items() if not name.endswith(("/lock", "-wal", "-shm"))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--short", action="store_true", help="a few limits, and one of the containers")
    parser.add_argument("--only", default="", help="commands that begin so")
    arguments = parser.parse_args()
    few = [4, 5, 6, 7, 8, 9, 10, 11, 12, 14] if arguments.short else list(LIMITS)
    with tempfile.TemporaryDirectory(prefix="keyhaul-descriptors-") as name:
        limited = Limited(arguments.program, pathlib.Path(name).resolve())
        least = limited.least_memory()
        memory = [least + (step << 20) for step in (range(0, 33, 8) if arguments.short else range(0, 65, 2))]
        commands = [words for words in readers(arguments.short) if " ".join(words).startswith(arguments.only)]
        scenes = [
            scene for scene in chosen_scenes(arguments.only)
            if not scene.is_large and not (arguments.short and scene.name.endswith((".tar", ".zst", ".zip")))]
        for words in commands:
            limited.read(words, resource.RLIMIT_NOFILE, "descriptors", few)
            limited.read(words, resource.RLIMIT_AS, "bytes of memory", memory)
        for scene in scenes[:: 4 if arguments.short else 1]:
            limited.write(scene, resource.RLIMIT_NOFILE, "descriptors", few[::3] if arguments.short else few)
            limited.write(scene, resource.RLIMIT_AS, "bytes of memory", memory[::2])
    codes = ", ".join(f"{code}: {count}" for code, count in sorted(limited.codes.items(), key=str))
    print(f"{len(commands)} reading and {len(scenes)} writing commands, {limited.runs} runs; exit codes {codes}")
    return limited.checks.conclude()


if __name__ == "__main__":
    sys.exit(main())
