#!/usr/bin/env python3
"""Lets published backup clients use a virtual device: `keyhaul device serve` as the phone.

    check_clients.py [--pymobiledevice3 PROGRAM] [--cuts N] KEYHAUL

The clients are those of libimobiledevice (idevicepair, ideviceinfo, idevicebackup2) and, if it is named, pymobiledevice3.
Each makes backups, changes the backup password and restores. Every backup that a client wrote has to pass `keyhaul verify`,
and every restored device has to hold what `keyhaul plan` said. Exits with 1 at the first difference, and with 2 if a client
is missing.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ITERATIONS = "1000"


class Difference(Exception):
    pass


def require(condition, text):
    if not condition:
        raise Difference(text)


class Desk:
    """A folder with two devices and a served address."""

    def __init__(self, program, folder):
        self.program, self.folder, self.server = program, folder, None
        self.home = folder / "devices"
        self.environment = {
            **os.environ, "KEYHAUL_HOME": str(self.home), "HOME": str(folder / "home"),
            "XDG_CONFIG_HOME": str(folder / "home/.config"), "TMPDIR": str(folder), "NO_COLOR": "1",
        }
        (folder / "home").mkdir()

    def keyhaul(self, *arguments, status=0, passcode=None):
        run = subprocess.run([self.program, *arguments], env=self.environment, capture_output=True, text=True, timeout=300)
        allowed = status if isinstance(status, tuple) else (status,)
        require(run.returncode in allowed, f"keyhaul {' '.join(arguments)}: {run.returncode}\n{run.stdout}{run.stderr}")
        return run.stdout

    def serve(self, *names, trust="always"):
        self.log = open(self.folder / "server.log", "a+")
        self.server = subprocess.Popen(
            [self.program, "device", "serve", *names, "--trust", trust, "--rounds", ITERATIONS], env=self.environment,
            stdout=subprocess.PIPE, stderr=self.log, text=True)
        line = self.server.stdout.readline()
        require(line.startswith("export USBMUXD_SOCKET_ADDRESS="), f"the server said {line!r}")
        self.environment["USBMUXD_SOCKET_ADDRESS"] = line.strip().split("=", 1)[1]

    def stop(self):
        self.server.send_signal(signal.SIGINT)
        status = self.server.wait(timeout=30)
        require(status == 0, f"the server ended with {status}")

    def client(self, *arguments, status=0, environment=None, timeout=180):
        run = subprocess.run(
            [str(argument) for argument in arguments], env={**self.environment, **(environment or {})},
            capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
        allowed = status if isinstance(status, tuple) else (status,)
        require(
            run.returncode in allowed, f"{' '.join(map(str, arguments))}: {run.returncode}\n{run.stdout}{run.stderr}\n"
            + (self.folder / "server.log").read_text()[-3000:])
        return run.stdout + run.stderr

    def udid(self, name):
        return json.loads((self.home / name / "device.json").read_text())["udid"]

    def items(self, name):
        """What the device holds, as text that two devices can be compared by."""
        document = json.loads(self.keyhaul("export", name, "-o", "-", "--format", "json", "--reveal"))
        return sorted(json.dumps(self.content(item), sort_keys=True) for item in document["items"])

    def backup_items(self, path, password=None):
        # The hardware key comes from the source device, which is in the same home.
        arguments = ["export", str(path), "-o", "-", "--format", "json", "--reveal"]
        if password:
            arguments += ["--password-file", str(self.secret(password))]
        document = json.loads(self.keyhaul(*arguments, status=(0, 3)))
        return sorted(json.dumps(self.content(item), sort_keys=True) for item in document["items"])

    @staticmethod
    def content(item):
        return {key: value for key, value in item.items() if key not in ("index", "row", "id")}

    def secret(self, text):
        path = self.folder / f"secret-{text}"
        path.write_text(text)
        path.chmod(0o600)
        return path

    def verify(self, path, password=None):
        arguments = ["verify", str(path)]
        if password:
            arguments += ["--password-file", str(self.secret(password))]
        self.keyhaul(*arguments)

    def plan(self, path, target, password=None):
        arguments = ["plan", str(path), "--to", target, "--json"]
        if password:
            arguments += ["--password-file", str(self.secret(password))]
        return json.loads(self.keyhaul(*arguments, status=(0, 3, 4, 5)))


class LibimobiledeviceClient:
    name = "libimobiledevice"

    def __init__(self, desk, udid):
        self.desk, self.udid = desk, udid

    def run(self, folder, *arguments, status=0, **secrets):
        environment = {}
        if secrets.get("old"):
            environment["BACKUP_PASSWORD"] = secrets["old"]
        if secrets.get("new"):
            environment["BACKUP_PASSWORD_NEW"] = secrets["new"]
        return self.desk.client(
            "idevicebackup2", "-u", self.udid, *arguments, folder, status=status, environment=environment)

    def pair(self):
        self.desk.client("idevicepair", "-u", self.udid, "pair")
        self.desk.client("idevicepair", "-u", self.udid, "validate")

    def unpair(self):
        self.desk.client("idevicepair", "-u", self.udid, "unpair")

    def info(self):
        return self.desk.client("ideviceinfo", "-u", self.udid)

    def backup(self, folder, full=False):
        self.run(folder, "backup", *(["--full"] if full else []))

    def restore(self, folder, password=None, source=None, status=0):
        arguments = ["restore", "--system", "--no-reboot"]
        if source:
            arguments = ["-s", source] + arguments
        if password:
            arguments += ["--password", password]
        return self.run(folder, *arguments, status=status)

    def encryption_on(self, folder, password):
        self.run(folder, "encryption", "on", password)

    def encryption_off(self, folder, password, status=0):
        return self.run(folder, "encryption", "off", password, status=status)

    def change(self, folder, old, new, status=0):
        return self.run(folder, "changepw", old, new, status=status)

    def listing(self, folder):
        return self.run(folder, "list")

    def information(self, folder):
        return self.run(folder, "info")

    def unback(self, folder):
        self.run(folder, "unback")
        return folder / "_unback_" / self.udid / "KeychainDomain" / "keychain-backup.plist"

    wrong_password = 49


class PymobiledeviceClient:
    name = "pymobiledevice3"
    wrong_password = 1

    def __init__(self, desk, udid, program):
        self.desk, self.udid, self.program = desk, udid, program

    def run(self, *arguments, status=0):
        return self.desk.client(self.program, *arguments, status=status)

    def pair(self):
        self.run("lockdown", "pair", "--udid", self.udid)

    def unpair(self):
        self.run("lockdown", "unpair", "--udid", self.udid)

    def info(self):
        return self.run("lockdown", "info", "--udid", self.udid)

    def backup(self, folder, full=False):
        self.run("backup2", "backup", *(["--full"] if full else []), "--udid", self.udid, folder)

    def restore(self, folder, password=None, source=None, status=0):
        arguments = ["backup2", "restore", "--udid", self.udid, "--system", "--no-reboot"]
        if source:
            arguments += ["--source", source]
        if password:
            arguments += ["--password", password]
        return self.run(*arguments, folder, status=status)

    def encryption_on(self, folder, password):
        self.run("backup2", "encryption", "--udid", self.udid, "on", password, "-b", folder)

    def encryption_off(self, folder, password, status=0):
        return self.run("backup2", "encryption", "--udid", self.udid, "off", password, "-b", folder, status=status)

    def change(self, folder, old, new, status=0):
        return self.run("backup2", "change-password", "--udid", self.udid, old, new, "-b", folder, status=status)

    def listing(self, folder):
        return self.run("backup2", "list", "--udid", self.udid, folder)

    def information(self, folder):
        return self.run("backup2", "info", "--udid", self.udid, folder)

    def unback(self, folder):
        self.run("backup2", "unback", "--udid", self.udid, folder)
        return folder / "_unback_" / self.udid / "KeychainDomain" / "keychain-backup.plist"

    def extract(self, folder):
        self.run(
            "backup2", "extract", "--udid", self.udid, "KeychainDomain", "keychain-backup.plist", folder)
        return folder / "keychain-backup.plist"


class Checks:
    def __init__(self):
        self.count = 0

    def that(self, condition, text, detail=""):
        require(condition, f"{text}\n{detail}")
        self.count += 1
        print(f"  ok    {text}", flush=True)


def make_devices(desk):
    """Two phones; of the old one a twin with the same hardware, to restore with our own program."""
    desk.keyhaul("device", "create", "old-phone", "--from", "old-phone")
    desk.keyhaul("device", "create", "new-phone", "--from", "new-phone")


def restored_by_program(desk, backup, target, password):
    """What a copy of a device holds after `keyhaul restore` of the same backup; None if Keyhaul refuses, because nothing would
    arrive. A phone restores nothing then, and removes its own items all the same."""
    home = desk.folder / "twins"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(mode=0o700)
    shutil.copytree(desk.home / target, home / target)
    arguments = ["--home", str(home), "restore", str(backup), "--to", target, "--yes"]
    if password:
        arguments += ["--password-file", str(desk.secret(password))]
    answer = desk.keyhaul(*arguments, status=(0, 3, 14))
    if not answer:
        return None
    document = json.loads(desk.keyhaul("--home", str(home), "export", target, "-o", "-", "--format", "json", "--reveal"))
    shutil.rmtree(home)
    return sorted(json.dumps(desk.content(item), sort_keys=True) for item in document["items"])


def check_restore(checks, desk, make_client, folder, source, target, password, expected):
    """A client's restore does what the program's restore of the same backup does."""
    backup = folder / desk.udid(source)
    twin = restored_by_program(desk, backup, target, password)
    plan = desk.plan(backup, target, password)
    before = len(desk.items(target))
    make_client(target).restore(folder, password, source=desk.udid(source) if source != target else None)
    found = desk.items(target)
    words = f"{target} from {source}, {'with' if password else 'without'} a password"
    migrates, removed = plan["summary"]["migrates"], plan["summary"]["removed"]
    if twin is None:
        checks.that(len(found) == before - removed, f"restore of {words} removes the {removed} items that the plan names")
    else:
        checks.that(found == twin, f"restore of {words} equals keyhaul restore ({len(found)} items)")
    checks.that(expected(migrates), f"the plan of {words}: {migrates} items migrate", json.dumps(plan["summary"]))


def check_client(checks, desk, make_client, folder):
    client = make_client("old-phone")
    udid = client.udid
    folder.mkdir()
    backup = folder / udid
    client.pair()
    checks.that(udid in client.info(), "pairs, and shows the device")

    client.backup(folder, full=True)
    desk.verify(backup)

    def compare(text, password=None):
        """The client's backup has the items that the program's own backup has, made of the device as it is now."""
        own = folder / "own.tar"
        own.unlink(missing_ok=True)
        desk.keyhaul("backup", "old-phone", "-o", str(own), "--no-password", status=(0, 3))
        expected, found = desk.backup_items(own), desk.backup_items(backup, password)
        only = [item[:300] for item in found if item not in expected] + [item[:300] for item in expected if item not in found]
        checks.that(found == expected, f"{text} ({len(found)} items)", "\n".join(only))

    compare("a full backup has the items that keyhaul backup writes")
    client.backup(folder)
    desk.verify(backup)
    compare("a second backup over it has the same items")
    checks.that("KeychainDomain" in client.information(folder), "info names the keychain's domain")
    checks.that("keychain-backup.plist" in client.listing(folder), "list names the keychain's file")
    unpacked = client.unback(folder)
    checks.that(
        unpacked.read_bytes() == (backup / "51/51a4616e576dd33cd2abadfea874eb8ff246bf0e").read_bytes(),
        "unback gives the stored file")

    check_restore(checks, desk, make_client, folder, "old-phone", "old-phone", None, lambda count: count > 0)
    check_restore(checks, desk, make_client, folder, "old-phone", "new-phone", None, lambda count: count == 0)

    client.encryption_on(folder, "first")
    client.backup(folder)
    desk.verify(backup, "first")
    compare("an encrypted backup has the same items", "first")
    output = client.change(folder, "wrong", "second", status=(client.wrong_password, 1, 255))
    checks.that("207" in output or "password" in output.lower(), "a wrong password is refused", output)
    client.change(folder, "first", "second")
    client.backup(folder)
    desk.verify(backup, "second")
    compare("after a change the new password opens it", "second")
    before = desk.items("new-phone")
    make_client("new-phone").restore(
        folder, "wrong", source=udid, status=(client.wrong_password, 1, 255))
    checks.that(desk.items("new-phone") == before, "a restore with a wrong password changes nothing")
    check_restore(checks, desk, make_client, folder, "old-phone", "old-phone", "second", lambda count: count > 0)
    check_restore(checks, desk, make_client, folder, "old-phone", "new-phone", "second", lambda count: count > 0)
    client.encryption_off(folder, "wrong", status=(client.wrong_password, 1, 255))
    client.encryption_off(folder, "second")
    client.backup(folder)
    desk.verify(backup)
    compare("with encryption off, a backup has no password")
    # The restore of an encrypted backup gave its password to the target.
    make_client("new-phone").encryption_off(folder, "second")
    client.unpair()


def check_cuts(checks, desk, make_client, folder, count):
    """A client that is killed in the middle leaves the device old or new, and the next backup is whole."""
    client = make_client("old-phone")
    udid = client.udid
    moments = random.Random("cuts")
    folder.mkdir()
    client.backup(folder)
    before = desk.items("old-phone")
    for _ in range(count):
        process = subprocess.Popen(
            ["idevicebackup2", "-u", udid, "restore", "--system", "--no-reboot", str(folder)], env=desk.environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(moments.uniform(0, 3))
        process.kill()
        process.wait()
        require(desk.items("old-phone") == before, "a cut restore changed the device")
        process = subprocess.Popen(
            ["idevicebackup2", "-u", udid, "backup", str(folder)], env=desk.environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(moments.uniform(0, 4))
        process.kill()
        process.wait()
    client.backup(folder)
    desk.verify(folder / udid)
    checks.that(desk.items("old-phone") == before, f"{2 * count} cut backups and restores leave the device as it was")


def check_busy(checks, desk, make_client, folder):
    """A second client waits for the lock of a first one that has stopped in the middle, and gives up."""
    client = make_client("old-phone")
    folder.mkdir()
    first = subprocess.Popen(
        ["stdbuf", "-oL", "idevicebackup2", "-u", client.udid, "backup", str(folder)], env=desk.environment,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    # The client prints this when it has the lock.
    for line in first.stdout:
        if "Starting backup" in line:
            break
    first.send_signal(signal.SIGSTOP)
    other = desk.folder / "busy-other"
    other.mkdir()
    output = client.run(other, "backup", status=255)
    checks.that("lock" in output.lower(), "a second client finds the synchronization lock taken", output)
    first.send_signal(signal.SIGCONT)
    first.communicate(timeout=60)
    checks.that(first.returncode == 0, "the first client's backup then ends well")
    desk.verify(folder / client.udid)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pymobiledevice3", type=pathlib.Path)
    parser.add_argument("--cuts", type=int, default=5)
    parser.add_argument("keyhaul")
    arguments = parser.parse_args()
    program = os.path.abspath(arguments.keyhaul)
    missing = [name for name in ("idevicepair", "ideviceinfo", "idevicebackup2", "idevice_id") if not shutil.which(name)]
    if missing:
        print(f"missing: {', '.join(missing)} (apt-get install libimobiledevice-utils)", file=sys.stderr)
        sys.exit(2)
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="clients-") as name:
        desk = Desk(program, pathlib.Path(name))
        make_devices(desk)
        desk.serve("old-phone", "new-phone")
        try:
            listed = desk.client("idevice_id", "-l").split()
            checks.that(
                sorted(line for line in listed if "-" in line) == sorted(map(desk.udid, ("old-phone", "new-phone"))),
                "idevice_id lists both devices", str(listed))
            print("\nlibimobiledevice")
            make = lambda device: LibimobiledeviceClient(desk, desk.udid(device))
            check_client(checks, desk, make, desk.folder / "libimobiledevice")
            check_cuts(checks, desk, make, desk.folder / "cuts", arguments.cuts)
            check_busy(checks, desk, make, desk.folder / "busy")
            if arguments.pymobiledevice3:
                print("\npymobiledevice3")
                make = lambda device: PymobiledeviceClient(desk, desk.udid(device), arguments.pymobiledevice3.absolute())
                check_client(checks, desk, make, desk.folder / "pymobiledevice3")
                extracted = make("old-phone").extract(desk.folder / "pymobiledevice3")
                checks.that(extracted.exists(), "extract gives the file")
            desk.stop()
            log = (desk.folder / "server.log").read_text()
            checks.that(
                not any(word in log for word in ("first", "second", "wrong", "PRIVATE")), "no password is in the log")
        except (Difference, subprocess.TimeoutExpired) as difference:
            print(f"  FAIL  {difference}\n{(desk.folder / 'server.log').read_text()[-4000:]}", file=sys.stderr)
            desk.server.kill()
            sys.exit(1)
    print(f"\n{checks.count} checks passed")


if __name__ == "__main__":
    main()
