#!/usr/bin/env python3
"""Run published backup clients on virtual devices that `keyhaul device serve` shows as phones.

    check_clients.py [--pymobiledevice3 PROGRAM] [--pytest PROGRAM] [--cuts N] [--seed S] KEYHAUL

The clients are those of libimobiledevice (idevicepair, ideviceinfo, idevicebackup2) and, if it is named,
pymobiledevice3. Each makes backups, changes the backup password and restores.

- Each backup that a client wrote has to pass `keyhaul verify`, to have the items of the device, and to be readable by the
  published readers. It has to equal a backup of `keyhaul backup`, except in parts that are listed with their reasons.
- Each restored device has to have the items of the plan of `keyhaul plan`.

Exit 1 at the first difference, and 2 if a client is missing.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

import client_backups
import interop
from served_devices import ITERATIONS, Difference, ServedDevices, require

# The backup passwords. None of them can be in a log by chance.
FIRST, SECOND, WRONG = "first-Tq7", "second-Zx4", "wrong-Hk9"
ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "Fixtures/devices"
RESTORE = ["restore", "--system", "--no-reboot"]
CLIENT_PROGRAMS = ("idevicepair", "ideviceinfo", "idevicebackup2", "idevice_id")
# The stored keychain file in a backup.
KEYCHAIN_FILE = "51/51a4616e576dd33cd2abadfea874eb8ff246bf0e"
# Texts that the server's log must contain, one for each kind of request.
LOGGED_REQUESTS = (
    "usbmuxd: ListDevices", "usbmuxd: Connect to port 62078", "lockdown: StartService", "com.apple.afc: lock",
    "com.apple.mobile.notification_proxy: ")


class ServedTestDevices(ServedDevices):
    """Two served devices, with the expected contents of their backups and the differences that were found."""

    def __init__(self, program, folder):
        super().__init__(program, folder)
        # The items of old-phone that no backup contains, and the differences that were found.
        description = json.loads((FIXTURES / "old-phone.json").read_text(encoding="utf-8"))
        self.device_only, self.differences = interop.device_only_identities(description), set()

    def device_key(self, name):
        return interop.Program(self.program, self.home).device_key(name)


class LibimobiledeviceClient:
    """The commands of libimobiledevice on one device."""

    name = "libimobiledevice"
    # The exit code after a wrong password.
    wrong_password_code = 49

    def __init__(self, devices, udid):
        self.devices, self.udid = devices, udid

    def run(self, folder, *arguments, status=0, **secrets):
        environment = {}
        if secrets.get("old"):
            environment["BACKUP_PASSWORD"] = secrets["old"]
        if secrets.get("new"):
            environment["BACKUP_PASSWORD_NEW"] = secrets["new"]
        return self.devices.client(
            "idevicebackup2", "-u", self.udid, *arguments, folder, status=status, environment=environment)

    def pair(self):
        self.devices.client("idevicepair", "-u", self.udid, "pair")
        self.devices.client("idevicepair", "-u", self.udid, "validate")

    def unpair(self):
        self.devices.client("idevicepair", "-u", self.udid, "unpair")

    def info(self):
        return self.devices.client("ideviceinfo", "-u", self.udid)

    def backup(self, folder, full=False):
        self.run(folder, "backup", *(["--full"] if full else []))

    def restore(self, folder, password=None, source=None, status=0):
        arguments = ["-s", source, *RESTORE] if source else [*RESTORE]
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


class PymobiledeviceClient:
    """The commands of pymobiledevice3 on one device."""

    name = "pymobiledevice3"
    # The exit code after a wrong password.
    wrong_password_code = 1

    def __init__(self, devices, udid, program):
        self.devices, self.udid, self.program = devices, udid, program

    def run(self, *arguments, status=0):
        return self.devices.client(self.program, *arguments, status=status)

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
    """The number of checks that passed. The first check that fails ends the run."""

    def __init__(self):
        self.count = 0

    def check(self, condition, text, detail=""):
        require(condition, f"{text}\n{detail}")
        self.count += 1
        print(f"  ok    {text}", flush=True)


def make_devices(devices):
    """Create two phones."""
    devices.keyhaul("device", "create", "old-phone", "--from", "old-phone")
    devices.keyhaul("device", "create", "new-phone", "--from", "new-phone")


def restored_by_program(devices, backup, target, password):
    """Restore a backup to a copy of the device with `keyhaul restore`. Return the items of the copy.

    Return None if Keyhaul refuses because nothing would arrive. A phone then restores nothing, and removes its items.
    """
    home = devices.folder / "copies"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(mode=0o700)
    shutil.copytree(devices.home / target, home / target)
    arguments = ["--home", str(home), "restore", str(backup), "--to", target, "--yes"]
    if password:
        arguments += ["--password-file", str(devices.write_secret(password))]
    output = devices.keyhaul(*arguments, status=(0, 3, 14))
    if not output:
        return None
    items = devices.items(target, home)
    shutil.rmtree(home)
    return items


ALL_CLASSES, MIGRATING_CLASSES = {"ak", "ck", "dk", "aku", "cku", "dku"}, {"ak", "ck", "dk"}
# The protection classes that a restore brings. A key states whether the target is the source device, and whether the
# backup has a password.
RESTORED_CLASSES = {
    (True, False): ALL_CLASSES,
    (True, True): ALL_CLASSES,
    (False, False): set(),
    (False, True): MIGRATING_CLASSES,
}


def check_restore(checks, devices, make_client, folder, source, target, password):
    """Check that a client's restore does what the plan of the same backup predicts, and what `keyhaul restore` does."""
    backup = folder / devices.udid(source)
    expected = restored_by_program(devices, backup, target, password)
    plan = devices.plan(backup, target, password)
    before, in_backup = devices.entries(target), devices.entries(backup, password)
    planned = client_backups.planned_items(plan, before, in_backup)
    make_client(target).restore(folder, password, source=devices.udid(source) if source != target else None)
    problems = client_backups.item_problems(planned, [interop.program_item(entry) for entry in devices.entries(target)])
    context = f"restore of {target} from {source}, {'with' if password else 'without'} a password"
    arriving = {item["protection"] for item in plan["items"] if item["outcome"] == "migrates"}
    checks.check(
        not problems,
        f"{context}: its {len(planned)} items are those of the plan ({plan['summary']['migrates']} migrate, "
        f"{plan['summary']['removed']} removed)", "\n".join(problems))
    checks.check(
        arriving == RESTORED_CLASSES[source == target, bool(password)],
        f"{context} brings {sorted(arriving) or 'nothing'}")
    if expected is not None:
        checks.check(devices.items(target) == expected, f"{context} equals keyhaul restore")


def check_backup(checks, devices, context, backup, device, password):
    """Check a client's backup with `keyhaul verify`, the device's items, other readers, and `keyhaul backup`."""
    devices.verify(backup, password)
    key = devices.device_key(device)
    exported = [
        interop.program_item(entry)
        for entry in devices.entries(device)
        if interop.is_exported(entry, devices.device_only)
    ]
    problems = client_backups.item_problems(exported, client_backups.backup_items(backup, password, key))
    checks.check(not problems, f"{context} has the {len(exported)} items of the device", "\n".join(problems))
    keychain = client_backups.Backup(backup, (password or "").encode()).keychain_file()
    readers = client_backups.keychain_by_reader(backup, password)
    checks.check(
        len(readers) >= 2 and all(content == keychain for content in readers.values()),
        f"{context} is read by {', '.join(sorted(readers))}")
    keyhaul_backup = devices.folder / "keyhaul-backup"
    shutil.rmtree(keyhaul_backup, ignore_errors=True)
    password_options = ["--no-password"]
    if password:
        password_options = ["--password-file", str(devices.write_secret(password)), "--rounds", ITERATIONS]
    devices.keyhaul("backup", device, "-o", f"{keyhaul_backup}/", *password_options, status=(0, 3))
    differences = client_backups.content_differences(
        client_backups.contents(backup, password, key), client_backups.contents(keyhaul_backup, password, key))
    unexplained = [name for name in differences if name not in client_backups.DIFFERENCES]
    checks.check(
        not unexplained, f"{context} differs from keyhaul backup in {len(differences)} listed parts",
        ", ".join(unexplained))
    devices.differences.update(differences)


class ClientTest:
    """The checks of one client with `old-phone`, whose backups are in a folder."""

    def __init__(self, checks, devices, make_client, folder):
        self.checks, self.devices, self.make_client, self.folder = checks, devices, make_client, folder
        self.client = make_client("old-phone")
        # The exit codes of a client that reports a wrong password.
        self.wrong_password_codes = (self.client.wrong_password_code, 1, 255)
        folder.mkdir()

    def check(self):
        """Check pairing, backups, restores and changes of the backup password."""
        self.client.pair()
        self.checks.check(self.client.udid in self.client.info(), "pairs, and shows the device")
        self.check_unencrypted_backups()
        self.check_restores(None)
        self.check_password_changes()
        self.check_wrong_password()
        self.check_restores(SECOND)
        self.check_encryption_off()
        self.client.unpair()

    def back_up(self, context, password=None, full=False):
        """Make a backup, and check it with every tool."""
        self.client.backup(self.folder, full=full)
        check_backup(self.checks, self.devices, context, self.folder / self.client.udid, "old-phone", password)

    def check_unencrypted_backups(self):
        self.back_up("a full backup", full=True)
        self.back_up("a second backup over it")
        self.checks.check("KeychainDomain" in self.client.information(self.folder), "info names the keychain's domain")
        self.checks.check("keychain-backup.plist" in self.client.listing(self.folder), "list names the keychain's file")
        unpacked = self.client.unback(self.folder)
        stored = self.folder / self.client.udid / KEYCHAIN_FILE
        self.checks.check(unpacked.read_bytes() == stored.read_bytes(), "unback gives the stored file")

    def check_restores(self, password):
        """Check the restores of the backup to the same device and to a different device."""
        for target in ("old-phone", "new-phone"):
            check_restore(
                self.checks, self.devices, self.make_client, self.folder, "old-phone", target, password)

    def check_password_changes(self):
        """Turn encryption on, and change the password."""
        self.client.encryption_on(self.folder, FIRST)
        self.back_up("an encrypted backup", FIRST)
        output = self.client.change(self.folder, WRONG, SECOND, status=self.wrong_password_codes)
        # 207 is the device's error code for a wrong password.
        self.checks.check("207" in output or "password" in output.lower(), "a wrong password is refused", output)
        self.client.change(self.folder, FIRST, SECOND)
        self.back_up("after a change, an encrypted backup", SECOND)

    def check_wrong_password(self):
        before = self.devices.items("new-phone")
        self.make_client("new-phone").restore(
            self.folder, WRONG, source=self.client.udid, status=self.wrong_password_codes)
        self.checks.check(
            self.devices.items("new-phone") == before, "a restore with a wrong password changes nothing")

    def check_encryption_off(self):
        self.client.encryption_off(self.folder, WRONG, status=self.wrong_password_codes)
        self.client.encryption_off(self.folder, SECOND)
        self.back_up("with encryption off, a backup")
        # The restore of an encrypted backup gave its password to the target.
        self.make_client("new-phone").encryption_off(self.folder, SECOND)


class CuttingProxy:
    """A proxy that forwards connections to a server, and closes all of them after a number of bytes."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.server, self.limit, self.count, self.sockets = (host, int(port)), None, 0, set()
        self.lock, self.listener = threading.Lock(), socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def start(self, limit=None):
        """Restart the count. After `limit` bytes, every connection is closed once; None means no limit."""
        with self.lock:
            self.count, self.limit = 0, limit

    def accept(self):
        """Accept connections, and forward each in both directions."""
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(self.server)
            for connection in (client, server):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sockets |= {client, server}
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self.forward, args=pair, daemon=True).start()

    def forward(self, source, target):
        """Forward the bytes of one direction. Close every connection if the limit is reached."""
        try:
            while data := source.recv(1 << 16):
                with self.lock:
                    remaining = None if self.limit is None else self.limit - self.count
                    self.count += len(data)
                    is_cut = remaining is not None and remaining < len(data)
                    if is_cut:
                        self.limit = None
                target.sendall(data[:remaining] if is_cut else data)
                if is_cut:
                    for connection in list(self.sockets):
                        self.end(connection)
        except OSError:
            pass
        for connection in (source, target):
            self.end(connection)

    def end(self, connection):
        """Shut a socket down. Python closes it when its threads have ended."""
        self.sockets.discard(connection)
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


class CutConnections:
    """A client of `old-phone`, its backup folder, and the proxy that cuts its connections at random moments."""

    def __init__(self, devices, client, folder, seed):
        self.devices, self.client, self.folder = devices, client, folder
        self.backup, self.random_moments = folder / client.udid, random.Random(f"cuts {seed}")
        self.proxy = CuttingProxy(devices.environment["USBMUXD_SOCKET_ADDRESS"])
        self.outcomes = collections.Counter()

    def run(self, *arguments, limit=None):
        """Run the client through the proxy. Return its exit code, or None if it did not end in time."""
        self.proxy.start(limit)
        try:
            return subprocess.run(
                ["idevicebackup2", "-u", self.client.udid, *arguments, str(self.folder)],
                env={**self.devices.environment, "USBMUXD_SOCKET_ADDRESS": self.proxy.address}, timeout=30,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
        except subprocess.TimeoutExpired:
            return None

    def run_cut(self, length, *arguments):
        """Run the client, and cut its connections after a random part of the bytes of a complete run."""
        return self.run(*arguments, limit=self.random_moments.randrange(length))

    def is_readable(self):
        """Return whether `keyhaul verify` finds no fault in the client's backup."""
        process = subprocess.run(
            [self.devices.program, "verify", str(self.backup)], env=self.devices.environment, capture_output=True,
            text=True, timeout=60)
        require(
            process.returncode in (0, 3, 13, 14), f"verify of a cut backup: {process.returncode}\n{process.stderr}")
        return process.returncode == 0

    def change_item(self, service):
        """Give the device an item with this service, so that its old and new states differ."""
        self.devices.keyhaul("item", "delete", "old-phone", "--account", "moment", "--yes", status=(0, 4))
        self.devices.keyhaul(
            "item", "add", "old-phone", "--service", service, "--account", "moment", "--access-group",
            "ABCDE12345.org.example.chat", "--secret-file", str(self.devices.write_secret("moment")))

    def backup_services(self):
        """Return the services of the changed items that the client's backup contains."""
        return {
            entry["attributes"].get("svce") for entry in self.devices.entries(self.backup)
            if entry["attributes"].get("acct") == "moment"}

    def check_backup(self, length, number, old_services):
        """Cut one backup. The device must not change, and a readable backup must have its old or its new item."""
        new_services = {f"cut-{number}"}
        self.change_item(f"cut-{number}")
        before = self.devices.items("old-phone")
        status = self.run_cut(length, "backup")
        require(self.devices.items("old-phone") == before, "a cut backup changed the device")
        is_readable = self.is_readable()
        if is_readable:
            services = self.backup_services()
            require(
                services in (old_services, new_services),
                f"a cut backup has neither the old nor the new items: {services}")
            self.outcomes["new" if services == new_services else "old"] += 1
        else:
            require(status != 0, "the client reported success for an unfinished backup")
            self.outcomes["unfinished"] += 1
        # The next backup over an unfinished one has to be complete. Every fifth time, a complete backup is made too.
        if number % 5 == 4 or not is_readable:
            require(self.run("backup") == 0, "the backup after a cut one failed")
            require(self.is_readable(), "verify finds a fault in the backup after a cut one")

    def check_restore(self, length, number, restored_items):
        """Cut one restore. The device must have either its previous items or the items of the backup."""
        if self.devices.items("old-phone") == restored_items:
            self.change_item(f"cut-restore-{number}")
        before = self.devices.items("old-phone")
        require(before != restored_items, "the old and the new state do not differ")
        status = self.run_cut(length, *RESTORE)
        after = self.devices.items("old-phone")
        require(after in (before, restored_items), "a cut restore left the device neither old nor new")
        require(
            status != 0 or after == restored_items,
            "the client reported success for a restore that the device did not make")
        self.outcomes["new" if after == restored_items else "old"] += 1
        require(self.is_readable(), "a cut restore damaged the client's backup")

    def counted_outcomes(self):
        """Return the number of each outcome as text."""
        return ", ".join(f"{number} {name}" for name, number in sorted(self.outcomes.items()))


def check_cuts(checks, devices, make_client, folder, count, seed):
    """Check that a device has its old or its new items after a cut, and that no incomplete backup seems complete."""
    folder.mkdir()
    cuts = CutConnections(devices, make_client("old-phone"), folder, seed)
    require(cuts.run("backup") == 0, "a backup through the proxy failed")
    length = cuts.proxy.count
    for number in range(count):
        cuts.check_backup(length, number, cuts.backup_services())
    checks.check(
        cuts.outcomes.total() == count,
        f"{count} cut backups leave the device as it was, and verify finds the unfinished ones "
        f"({cuts.counted_outcomes()})")

    require(cuts.run(*RESTORE) == 0, "a restore through the proxy failed")
    length, restored_items = cuts.proxy.count, devices.items("old-phone")
    cuts.outcomes.clear()
    for number in range(count):
        cuts.check_restore(length, number, restored_items)
    checks.check(
        cuts.outcomes.total() == count,
        f"{count} cut restores leave the device old or new ({cuts.counted_outcomes()})")
    cuts.client.backup(folder)
    devices.verify(cuts.backup)


def check_busy(checks, devices, make_client, folder):
    """Check that a second client gives up while a stopped client has the synchronization lock."""
    client = make_client("old-phone")
    folder.mkdir()
    first = subprocess.Popen(
        ["stdbuf", "-oL", "idevicebackup2", "-u", client.udid, "backup", str(folder)], env=devices.environment,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    # The client prints this when it has the lock.
    for line in first.stdout:
        if "Starting backup" in line:
            break
    first.send_signal(signal.SIGSTOP)
    second_folder = devices.folder / "busy-other"
    second_folder.mkdir()
    output = client.run(second_folder, "backup", status=255)
    checks.check("lock" in output.lower(), "a second client finds the synchronization lock taken", output)
    first.send_signal(signal.SIGCONT)
    first.communicate(timeout=60)
    checks.check(first.returncode == 0, "the first client's backup then ends well")
    devices.verify(folder / client.udid)


def check_page(checks, devices, pytest):
    """Check that the shell test and the Python test of the tutorial pass as printed."""
    page = (ROOT / "docs/Tutorials/TestABackupTool.md").read_text(encoding="utf-8")
    for language, code in re.findall(r"^```(sh|python)\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        folder = devices.folder / f"page-{language}"
        folder.mkdir()
        (folder / "test_page.py").write_text(code, encoding="utf-8")
        environment = {
            **devices.environment, "KEYHAUL_HOME": str(folder / "devices"),
            "PATH": f"{os.path.dirname(devices.program)}:{os.environ['PATH']}"}
        environment.pop("USBMUXD_SOCKET_ADDRESS", None)
        command = [str(pytest), "-q", "test_page.py"] if language == "python" else ["sh", "-c", code]
        run = subprocess.run(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        checks.check(
            run.returncode == 0, f"the {'Python' if language == 'python' else 'shell'} test of the tutorial passes",
            run.stdout + run.stderr)


def check_device_list(checks, devices):
    """Check that a client lists both devices."""
    listed = devices.client("idevice_id", "-l").split()
    checks.check(
        sorted(line for line in listed if "-" in line) == sorted(map(devices.udid, ("old-phone", "new-phone"))),
        "idevice_id lists both devices", str(listed))


def check_libimobiledevice(checks, devices, cut_count, seed):
    """Check libimobiledevice, also with cut connections and with two clients at a time."""
    print("\nlibimobiledevice")

    def make_client(device):
        return LibimobiledeviceClient(devices, devices.udid(device))

    ClientTest(checks, devices, make_client, devices.folder / "libimobiledevice").check()
    check_cuts(checks, devices, make_client, devices.folder / "cuts", cut_count, seed)
    check_busy(checks, devices, make_client, devices.folder / "busy")


def check_pymobiledevice(checks, devices, program):
    """Check pymobiledevice3, and its extraction of a file."""
    print("\npymobiledevice3")

    def make_client(device):
        return PymobiledeviceClient(devices, devices.udid(device), program)

    folder = devices.folder / "pymobiledevice3"
    ClientTest(checks, devices, make_client, folder).check()
    checks.check(make_client("old-phone").extract(folder).exists(), "extract gives the file")


def check_log(checks, devices):
    """Check that the server's log has every kind of request, and no password or private key."""
    log = (devices.folder / "server.log").read_text()
    missing = [request for request in LOGGED_REQUESTS if request not in log]
    checks.check(not missing, "the log has a line for each request", f"missing: {missing}")
    lines_with_secrets = [
        line for line in log.splitlines() if any(secret in line for secret in (FIRST, SECOND, WRONG, "PRIVATE"))]
    checks.check(not lines_with_secrets, "no password is in the log", "\n".join(lines_with_secrets[:5]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pymobiledevice3", type=pathlib.Path)
    parser.add_argument("--pytest", type=pathlib.Path, help="runs the tests of the tutorial")
    parser.add_argument("--cuts", type=int, default=5, help="connections to cut in a backup, and again in a restore")
    parser.add_argument("--seed", default="moments", help="selects the moments of the cuts")
    parser.add_argument("keyhaul")
    arguments = parser.parse_args()
    program = os.path.abspath(arguments.keyhaul)
    missing = [name for name in CLIENT_PROGRAMS if not shutil.which(name)]
    if missing:
        print(f"missing: {', '.join(missing)} (apt-get install libimobiledevice-utils)", file=sys.stderr)
        sys.exit(2)
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="clients-") as name:
        devices = ServedTestDevices(program, pathlib.Path(name))
        make_devices(devices)
        print(f"seed: {arguments.seed}")
        devices.serve("old-phone", "new-phone")
        try:
            check_device_list(checks, devices)
            check_libimobiledevice(checks, devices, arguments.cuts, arguments.seed)
            if arguments.pymobiledevice3:
                check_pymobiledevice(checks, devices, arguments.pymobiledevice3.absolute())
            print("\nThe listed differences between clients' backups and those of keyhaul backup")
            for difference_name in sorted(devices.differences):
                print(f"  {difference_name}: {client_backups.DIFFERENCES[difference_name]}")
            devices.stop()
            check_log(checks, devices)
            if arguments.pytest:
                print("\nThe page for authors of backup tools")
                check_page(checks, devices, arguments.pytest.absolute())
        except (Difference, subprocess.TimeoutExpired) as difference:
            print(f"  FAIL  {difference}\n{(devices.folder / 'server.log').read_text()[-4000:]}", file=sys.stderr)
            devices.server.kill()
            sys.exit(1)
    print(f"\n{checks.count} checks passed")


if __name__ == "__main__":
    main()
