#!/usr/bin/env python3
"""Measure a backup of a served device by a client, and compare it with a copy of the same bytes over TLS.

    bench_clients.py PROGRAM [--items 5000] [--megabytes 200] [--rounds 3] [--before PROGRAM]

The device has items with large secrets. `idevicebackup2` makes a full backup, encrypted with few iterations. The copy
sends the files of that backup from one thread to another over TLS on the loopback interface, and writes them to the
disk. Memory is the peak of the server over all of its backups. The goals limit the server's CPU time and memory,
because other programs on the machine affect them less than the elapsed time. Exit 1 if a goal is missed. Linux only.
"""

import json
import os
import pathlib
import random
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from typing import List

from bench_data import parser, programs
from figures import Figures
from served_devices import ServedDevices, require

PASSWORD = "correct horse"
MAX_CPU_SECONDS, MAX_MEGABYTES = 6, 100
BLOCK_SIZE = 1 << 18


def write_description(path, item_count, byte_count):
    """Write the description of a device whose items have this many bytes of secrets in all."""
    rng = random.Random("bench clients")
    header = {
        "format": "device-fixture/1", "seed": 7, "created": "2026-11-20T17:58:00Z",
        "device": {"name": "large", "product_type": "iPhone15,2", "product_version": "18.1"},
        "apps": [{"name": "app", "groups": ["ABCDE12345.org.example.app"]}]}
    with path.open("w", encoding="utf-8") as stream:
        stream.write(json.dumps(header)[:-1] + ', "items": [')
        for number in range(item_count):
            item = {
                "kind": "generic-password", "protection": "ak" if number % 2 else "ck",
                "attributes": {
                    "acct": f"person-{number}@example.org", "svce": f"service-{number}.example.org",
                    "agrp": "ABCDE12345.org.example.app"},
                # Half as many bytes as hexadecimal digits.
                "secret": {"text": rng.randbytes(byte_count // item_count // 2).hex()}}
            stream.write((",\n" if number else "") + json.dumps(item))
        stream.write("]}")


def copy_with_tls(folder, target, certificate):
    """Send the files of a folder over TLS to a thread that writes them. Return the seconds and the bytes."""
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(certificate)
    client_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client_context.check_hostname, client_context.verify_mode = False, ssl.CERT_NONE
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    listener = socket.create_server(("127.0.0.1", 0))

    def send():
        with server_context.wrap_socket(listener.accept()[0], server_side=True) as connection:
            for file in files:
                with file.open("rb") as stream:
                    while block := stream.read(BLOCK_SIZE):
                        connection.sendall(block)

    started = time.perf_counter()
    sender = threading.Thread(target=send)
    sender.start()
    received_count = 0
    plain_connection = socket.create_connection(listener.getsockname())
    with client_context.wrap_socket(plain_connection) as connection, target.open("wb") as out:
        while block := connection.recv(BLOCK_SIZE):
            out.write(block)
            received_count += len(block)
    sender.join()
    seconds = time.perf_counter() - started
    require(received_count == sum(file.stat().st_size for file in files), "the copy is incomplete")
    target.unlink()
    return seconds, received_count


def cpu_seconds_of(pid):
    """Return the CPU time that a process has used."""
    # The first field after the name is field 3. The user time is field 14, and the system time is field 15.
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    user_ticks, system_ticks = int(fields[11]), int(fields[12])
    return (user_ticks + system_ticks) / os.sysconf("SC_CLK_TCK")


def peak_megabytes(pid):
    """Return the peak memory of a process in megabytes."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def write_certificate(folder):
    """Write a new key with its certificate to `copy.pem`, and return its path."""
    key, certificate, target = folder / "key", folder / "certificate", folder / "copy.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=copy", "-days", "2", "-keyout", key,
         "-out", certificate], check=True, stderr=subprocess.DEVNULL)
    target.write_bytes(key.read_bytes() + certificate.read_bytes())
    return target


@dataclass
class Measurement:
    """The times of each backup of one program, and of each copy of the same bytes, and the server's peak memory."""

    seconds: List[float] = field(default_factory=list)
    cpu_seconds: List[float] = field(default_factory=list)
    copy_seconds: List[float] = field(default_factory=list)
    copy_cpu_seconds: List[float] = field(default_factory=list)
    megabytes: float = 0
    byte_count: int = 0


def measure(program, folder, description, certificate, rounds):
    """Serve the described device, back it up and copy each backup. Return the costs."""
    devices = ServedDevices(str(program.resolve()), folder)
    devices.keyhaul("device", "create", "large", "--from", str(description))
    devices.serve("large")
    backups, udid = folder / "backups", devices.udid("large")
    backups.mkdir()
    devices.client("idevicepair", "-u", udid, "pair")
    devices.client("idevicebackup2", "-u", udid, "encryption", "on", PASSWORD, backups)
    measurement = Measurement()
    for _ in range(rounds):
        shutil.rmtree(backups)
        backups.mkdir()
        started, cpu_seconds_before = time.perf_counter(), cpu_seconds_of(devices.server.pid)
        devices.client("idevicebackup2", "-u", udid, "backup", "--full", backups)
        measurement.seconds.append(time.perf_counter() - started)
        measurement.cpu_seconds.append(cpu_seconds_of(devices.server.pid) - cpu_seconds_before)
        cpu_seconds_before = time.process_time()
        copy_seconds, measurement.byte_count = copy_with_tls(backups, folder / "copy", certificate)
        measurement.copy_seconds.append(copy_seconds)
        measurement.copy_cpu_seconds.append(time.process_time() - cpu_seconds_before)
    measurement.megabytes = peak_megabytes(devices.server.pid)
    devices.verify(backups / udid, PASSWORD)
    devices.stop()
    return measurement


def seconds_text(seconds):
    """Return times as text."""
    return ", ".join(f"{time_of_run:.2f}" for time_of_run in seconds)


def main():
    arguments = parser(
        "Compare a backup by a client with a copy of the same bytes.", rounds=3, items=5_000, megabytes=200
    ).parse_args()
    figures, measurements = Figures(), {}
    title = f"backup of {arguments.items:,} items and {arguments.megabytes} MB by idevicebackup2"
    if not shutil.which("idevicebackup2"):
        figures.unmeasured(title, "idevicebackup2 is missing")
        return figures.finish()
    with tempfile.TemporaryDirectory(prefix="keyhaul-bench-") as temporary:
        folder = pathlib.Path(temporary)
        description = folder / "large.json"
        write_description(description, arguments.items, arguments.megabytes * 1_000_000)
        certificate = write_certificate(folder)
        for name, program in programs(arguments).items():
            (folder / name).mkdir()
            measurement = measure(program, folder / name, description, certificate, arguments.rounds)
            require(
                measurement.byte_count > arguments.megabytes * 1_000_000,
                f"the backup has only {measurement.byte_count:,} bytes")
            measurements[name] = measurement
            shutil.rmtree(folder / name)
    for name, measurement in measurements.items():
        Figures.note(
            f"{name}: {seconds_text(measurement.seconds)} s, CPU time of the server "
            f"{seconds_text(measurement.cpu_seconds)} s, {measurement.megabytes:.0f} MB")
    add_figures(figures, title, measurements)
    return figures.finish()


def add_figures(figures, title, measurements):
    """Add the figures of the program, with the times of the copies as a comment."""
    keyhaul = measurements["keyhaul"]
    seconds = statistics.median(keyhaul.seconds)
    # The copies do not depend on the program, so the copies of both programs are used.
    copy_seconds = statistics.median(
        copy_time for measurement in measurements.values() for copy_time in measurement.copy_seconds)
    copy_cpu_seconds = statistics.median(
        copy_time for measurement in measurements.values() for copy_time in measurement.copy_cpu_seconds)
    figures.without_goal(
        f"{title}: elapsed time", seconds, "s",
        f"a copy of its {keyhaul.byte_count / 1e6:.0f} MB over TLS: {copy_seconds:.2f} s, "
        f"so {seconds / copy_seconds:.1f} times as long")
    figures.at_most(
        f"{title}: CPU time of the server", statistics.median(keyhaul.cpu_seconds), MAX_CPU_SECONDS, "s",
        f"both sides of the copy: {copy_cpu_seconds:.2f} s")
    figures.at_most(f"{title}: peak memory of the server", keyhaul.megabytes, MAX_MEGABYTES, "MB")


if __name__ == "__main__":
    sys.exit(main())
