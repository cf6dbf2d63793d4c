#!/usr/bin/env python3
"""Lets each call about files of every verb fail in turn, and cuts the power after each change on the disk.

    check_calls.py PROGRAM faults [--every 1] [--only SCENE] [--calls sync]
    check_calls.py PROGRAM power [--variants 4] [--only SCENE]

Both stand between the release program and the C library (`system_calls.c`), so that SQLite's and libarchive's calls count
like any other. Of faults: the k-th call, for every k, fails with ENOSPC, EIO, EINTR, EDQUOT or handles half of its bytes.
What the verb changes is then old or new, as its exit code says, its error names the reason, and the next run arrives.
Of power: what a verb writes, syncs and renames is recorded, and for every prefix of it disks are made on which what was
not synced is lost, there, or torn at 512 bytes; the program opens each as old or new. Exit 1 where one check fails.
"""

import argparse
import errno
import hashlib
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

from checks import Checks
from disk_model import images, read_log
from kill_verbs import Kills, Place, chosen_scenes, files, is_emptied

FAULTS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EINTR": errno.EINTR, "EDQUOT": errno.EDQUOT, "short": 0}
# Names kept or not, bytes lost, there or torn.
VARIANTS = [("none", "none"), ("all", "none"), ("all", "torn"), ("some", "torn"), ("none", "all"), ("some", "none")]


class Watched(Place):
    """The program with its calls watched."""

    def __init__(self, program, folder, library):
        super().__init__(program, folder)
        self.library, self.aside = library, folder.parent / "calls"

    def watched(self, words, **settings):
        """Exit code, error, how many calls there were and the one that failed."""
        self.aside.unlink(missing_ok=True)
        environment = dict(
            os.environ, LD_PRELOAD=str(self.library), KEYHAUL_CALLS_ROOT=str(self.folder),
            KEYHAUL_CALLS_COUNT=str(self.aside), **{f"KEYHAUL_CALLS_{name}": str(value) for name, value in settings.items()})
        done = subprocess.run(
            self.arguments(*words), cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=300,
            env=environment)
        count, name = self.aside.read_text().split() if self.aside.exists() else (0, "none")
        return done.returncode, done.stderr.decode("utf-8", "replace").strip(), int(count), name


class Calls(Kills):
    def __init__(self, program, work, seed):
        super().__init__(program, work, seed)
        self.library = work / "calls.so"
        subprocess.run(
            [shutil.which("cc") or "clang", "-shared", "-fPIC", "-O1", "-Wall", "-Wno-nonnull", "-o", str(self.library),
             str(pathlib.Path(__file__).with_name("system_calls.c")), "-ldl"], check=True)
        self.codes, self.images, self.looked, self.faults = {}, 0, {}, 0

    def watched(self, origin):
        return Watched(self.program, self.fresh(origin).folder, self.library)

    # Faults

    def faulty(self, scene, every, rest, kind=""):
        self.learn(scene)
        origin = self.whole[scene.name][0]
        named = self.work / "names"
        total = self.watched(origin).watched(scene.words, NAMES=named)[2]
        self.checks.check(total > 10, f"{scene.name}: {total} calls")
        chosen = [call for call, name in enumerate(named.read_text().splitlines(), 1) if re.search(kind, name)]
        for position, (fault, number) in enumerate(FAULTS.items()):
            for call in chosen[(rest + position) % every::every]:
                place = self.watched(origin)
                code, said, _, name = place.watched(scene.words, FAIL=call, ERRNO=number)
                if name != "none":
                    self.faults += 1
                    self.judge(scene, place, f"{scene.name}, {fault} at call {call} ({name})", fault, code, said)

    def judge(self, scene, place, where, fault, code, said):
        origin, old, new, names, before, _ = self.whole[scene.name]
        check = self.checks.check
        self.codes[fault, code] = self.codes.get((fault, code), 0) + 1
        found = scene.look(place)
        if isinstance(new, dict):
            # Files of a backup are written one by one, and the list of them says which are not.
            part = {name: content for name, content in found.items() if name != "keyhaul-files.jsonl"}
            check(found == new if code == 0 else set(part.items()) <= set(new.items()), f"{where}: another tree")
        elif code == 0 and found != new and scene.name == "export of items":
            # The device that made the backup is asked for its key where it can be.
            check(found == self.without_device(scene), f"{where}: neither with the device's key nor without it")
        elif code in (0, 5, *scene.partly):
            check(found == new, f"{where}: ended with {code} and is not the new state: {said[:200]}")
        else:
            check(found == old, f"{where}: ended with {code} and is not the old state: {said[:200]} {str(found)[:200]}")
        check(code in (0, 1, 3, 4, 5, 10, 11, 13, 14, *scene.refusals), f"{where}: ended with {code}: {said[:300]}")
        check(code == 0 or said, f"{where}: ended with {code} and said nothing")
        # After "done", no temporary file and no replaced backup may be left. SQLite uses its own files again.
        if code not in (5, *scene.partly):
            left = set(files(place.folder)) - set(before) - names
            if code == 0:
                left = {name for name in left if not name.endswith(("-wal", "-shm")) and not is_emptied(place.folder / name)}
            check(not left or isinstance(new, dict), f"{where}: left {sorted(left)[:3]}")
        # SQLite asks once to keep a file and once to remove a journal, which no signal interrupts on a local disk,
        # and says what came of it.
        if fault == "EINTR" and not re.search(r"sync:(keychain-2|sim)\.db|unlink:(keychain-2|sim)\.db-journal", where):
            check(code == 0, f"{where}: a signal that interrupts a call ends the run: {said[:200]}")
        if found != new:
            code, _, said = place.run(*scene.words)
            check(code == 0 and scene.look(place) == new, f"{where}: run again it ended with {code}: {said}")

    def without_device(self, scene):
        """What the verb arrives at where the home folder has no device."""
        aside = Place(self.program, self.work / "alone")
        if not aside.folder.exists():
            shutil.copytree(self.whole[scene.name][0], aside.folder)
            shutil.rmtree(aside.folder / "home")
            aside.must(*scene.words)
        return scene.look(aside)

    # Power

    def cut(self, scene, variants):
        self.learn(scene)
        origin, old, new, _, _, _ = self.whole[scene.name]
        place = self.watched(origin)
        log = self.work / "log"
        log.unlink(missing_ok=True)
        code, said, _, _ = place.watched(scene.words, LOG=log)
        self.checks.check(code == 0, f"{scene.name}: recorded it ended with {code}: {said}")
        folder = place.folder.resolve()
        changes = read_log(log)
        # The last image of all is what a run that was left alone leaves: the record is whole.
        whole = {name: content for name, content in bytes_of(folder).items() if not name.endswith("-shm")}
        self.fresh(origin)
        last = None
        for number, names, contents, image in images(folder, changes, f"{scene.name} power", variants + [("all", "all")]):
            if (names, contents) == ("all", "all"):
                last = image
                continue
            self.images += 1
            digest = digest_of(image)
            if digest not in self.looked:
                self.looked[digest] = True
                self.open(scene, image, f"{scene.name}, cut after {number + 1} of {len(changes)} ({names}, {contents})", old, new)
        self.checks.check(
            {name: content for name, content in last.items() if content is not None} == whole,
            f"{scene.name}: the record does not lead to what is on the disk")

    def open(self, scene, image, where, old, new):
        folder = self.work / "place"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, content in image.items():
            path = folder / name
            if content is None:
                path.mkdir(parents=True, exist_ok=True)
                path.chmod(0o700)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch(mode=0o600)
                path.write_bytes(content)
        place = Place(self.program, folder)
        found = scene.look(place)
        if isinstance(new, dict):
            code, _, said = place.run(*scene.words)
            self.checks.check(code == 0 and scene.look(place) == new, f"{where}: run again it ended with {code}: {said}")
        else:
            self.checks.check(found in (old, new), f"{where}: neither old nor new: {str(found)[:400]}")


def bytes_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def digest_of(image):
    sha = hashlib.sha256()
    for name in sorted(image):
        sha.update(name.encode() + b"\0" + hashlib.sha256(image[name] or b"").digest() + bytes([image[name] is None]))
    return sha.digest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("what", choices=("faults", "power"))
    parser.add_argument("--every", type=int, default=1, help="of the calls one in so many fails, another for each fault")
    parser.add_argument("--variants", type=int, default=4, help=f"disks after each change, up to {len(VARIANTS)}")
    parser.add_argument("--only", default="", help="scenes whose names begin so")
    parser.add_argument("--calls", default="", help="only calls whose names match, such as sync:sim.db or unlink")
    parser.add_argument("--rest", type=int, default=0, help="which of the calls are taken where not every one is")
    arguments = parser.parse_args()
    chosen = [
        scene for scene in chosen_scenes(arguments.only) if not (scene.is_large and arguments.what == "power")]
    with tempfile.TemporaryDirectory(prefix="keyhaul-calls-") as name:
        calls, started = Calls(arguments.program, pathlib.Path(name).resolve(), "calls"), time.perf_counter()
        for number, scene in enumerate(chosen):
            if arguments.what == "faults":
                calls.faulty(scene, arguments.every, arguments.rest + number, arguments.calls)
            else:
                calls.cut(scene, VARIANTS[:arguments.variants])
            print(f"{scene.name}: {calls.faults or calls.images} after {time.perf_counter() - started:.0f} s", flush=True)
    if arguments.what == "faults":
        codes = ", ".join(f"{fault} {code}: {count}" for (fault, code), count in sorted(calls.codes.items()))
        print(f"{calls.faults} faults in {len(chosen)} scenes; fault and exit code: {codes}")
    else:
        print(f"{calls.images} disks after power cuts in {len(chosen)} scenes, {len(calls.looked)} of them different")
    return calls.checks.conclude()


if __name__ == "__main__":
    sys.exit(main())
