#!/usr/bin/env python3
"""Connect malicious clients to a served device, and check that they change nothing.

    malicious_clients.py [--count N] [--seed S] [--workers N] KEYHAUL

Each session breaks the protocol at a random layer: requests in a wrong order, wrong and huge lengths, property lists
that expand, paths out of the folder, files that the device did not request, garbage before and after TLS, certificates
of other pairings, half-closed and cut connections, and silence. The server must end each session in time. After all
sessions:

- The server must be alive and serve a complete backup.
- The files of its devices must be the same byte for byte, and there must be no new file outside of them.
- Its log must not contain a secret, and its memory and open descriptors must not have grown.

Exit 1 at a fault, and 2 if libimobiledevice's idevicepair and idevicebackup2 are missing. Linux.
"""

import argparse
import base64
import collections
import hashlib
import json
import os
import pathlib
import plistlib
import random
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback

from served_devices import Difference, ServedDevices, require

LOCKDOWN_PORT = 62078
PASSWORD = "password-of-the-device"
MALICIOUS_PASSWORD = "password-of-a-malicious-client"
# A part of every file name that a session tries to create outside of the device.
CANARY = f"keyhaul-canary-{os.getpid()}"
# The server must close a connection within these times: after the client has ended its side, if the client begins no
# handshake, and if the connection is idle.
CLOSING_SECONDS, HANDSHAKE_SECONDS, IDLE_SECONDS = 30, 10, 60
# Limits for the server's peak memory and for its growth, in bytes.
MAX_MEMORY, MAX_GROWTH = 400 << 20, 64 << 20
# The version of the protocol of usbmuxd, and the type of a message that is a property list.
MULTIPLEXER_VERSION, PLIST_MESSAGE = 1, 8
# The codes in mobilebackup2 for the contents of a file, for a missing file, and for the end of a file.
FILE_DATA, FILE_MISSING, FILE_END = b"\x0c", b"\x06", b"\0"
# Waiting for the end of idle connections takes a minute, so only long runs do it.
MIN_COUNT_FOR_IDLE_CHECK = 5_000
DEVICE_FILES = ("device.json", "hardware.uid", "keybag", "keychain-2.db", "pairings.plist", "backup-password")


class Closed(Exception):
    """The server closed the connection, which is allowed in every malicious session."""


class Server:
    """The address of the server, and the pair records of its devices."""

    def __init__(self, address, devices, folder):
        host, port = address.rsplit(":", 1)
        self.address, self.devices, self.folder = (host, int(port)), devices, folder
        self.records, self.contexts, self.silent = {}, {}, []
        for name, (number, udid) in devices.items():
            answer = Connection(self).ask_multiplexer({"MessageType": "ReadPairRecord", "PairRecordID": udid})
            self.records[name] = plistlib.loads(answer["PairRecordData"])
            self.contexts[name] = self.context(name, self.records[name])

    def context(self, name, record):
        """Return the TLS settings of a paired client. Without a record, the client shows no certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_ciphers("ALL:@SECLEVEL=0")
        if record:
            path = self.folder / f"{name}.pem"
            path.write_bytes(record["RootCertificate"] + b"\n" + record["RootPrivateKey"])
            context.load_cert_chain(path)
        return context

    def number(self, name):
        return self.devices[name][0]

    def udid(self, name):
        return self.devices[name][1]


class Connection:
    """A connection of a client to the server."""

    def __init__(self, server):
        self.server, self.tag = server, 0
        self.socket = socket.create_connection(server.address, timeout=CLOSING_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.plain = self.socket

    def send(self, data):
        try:
            self.socket.sendall(data)
        except TimeoutError:
            raise Difference("the server does not read")
        except OSError:
            raise Closed

    def receive(self, count):
        data = b""
        while len(data) < count:
            try:
                more = self.socket.recv(count - len(data))
            except TimeoutError:
                raise Difference("the server does not answer")
            except OSError:
                raise Closed
            if not more:
                raise Closed
            data += more
        return data

    def expect_end(self, seconds=CLOSING_SECONDS, closes=True):
        """Read to the end of the stream, which must come in time. With `closes`, end the client's side first."""
        end = time.monotonic() + seconds
        try:
            if closes:
                self.plain.shutdown(socket.SHUT_WR)
            while True:
                self.plain.settimeout(max(0.01, end - time.monotonic()))
                # The rest is read without TLS, which the client may have broken.
                if not self.plain.recv(1 << 16):
                    break
        except TimeoutError:
            raise Difference(f"the server did not end the connection within {seconds} s")
        except OSError:
            pass
        finally:
            self.close()

    def close(self):
        for connected_socket in {self.socket, self.plain}:
            try:
                connected_socket.close()
            except OSError:
                pass

    def start_tls(self, context):
        """Begin TLS. The plain socket stays open, to send bytes outside of TLS."""
        try:
            self.plain = socket.socket(fileno=os.dup(self.socket.fileno()))
            self.plain.settimeout(CLOSING_SECONDS)
            self.socket = context.wrap_socket(self.socket)
        except TimeoutError:
            raise Difference("the handshake does not end")
        except OSError:
            raise Closed
        return self

    # Frames

    def ask_multiplexer(self, message):
        """Send a request, and return its answer. Events may come before it."""
        body = encoded(message)
        self.tag += 1
        self.send(struct.pack("<IIII", 16 + len(body), MULTIPLEXER_VERSION, PLIST_MESSAGE, self.tag) + body)
        while True:
            length, _, _, tag = struct.unpack("<IIII", self.receive(16))
            answer = plistlib.loads(self.receive(length - 16))
            if tag == self.tag:
                return answer

    def send_frame(self, message, binary=False):
        """Send a property list after its length."""
        body = encoded(message, binary)
        self.send(struct.pack(">I", len(body)) + body)

    def receive_answer(self):
        """Receive a property list after its length."""
        [length] = struct.unpack(">I", self.receive(4))
        return plistlib.loads(self.receive(length))

    def ask(self, message):
        self.send_frame(message)
        return self.receive_answer()

    # Steps of a client that follows the protocol

    def connect(self, name, port=LOCKDOWN_PORT):
        """Connect to a port of a device."""
        answer = self.ask_multiplexer({
            "MessageType": "Connect", "DeviceID": self.server.number(name), "PortNumber": socket.htons(port)})
        if answer.get("Number") != 0:
            raise Closed
        return self

    def start_session(self, name):
        """Start a session of lockdown, without TLS. Return its identifier."""
        record = self.server.records[name]
        answer = self.ask({
            "Label": "malicious", "Request": "StartSession", "HostID": record["HostID"],
            "SystemBUID": record["SystemBUID"]})
        if "Error" in answer:
            raise Closed
        return answer["SessionID"]

    def session(self, name):
        """Start a session of lockdown, with TLS."""
        self.connect(name).start_session(name)
        return self.start_tls(self.server.contexts[name])


def encoded(message, binary=False):
    """Return a message as a property list. It is binary if XML cannot represent a character."""
    try:
        return plistlib.dumps(message, fmt=plistlib.FMT_BINARY if binary else plistlib.FMT_XML)
    except ValueError:
        return plistlib.dumps(message, fmt=plistlib.FMT_BINARY)


def start_service(server, name, service_name):
    """Return a new port for a service."""
    connection = Connection(server).session(name)
    answer = connection.ask({
        "Request": "StartService", "Service": service_name, "EscrowBag": server.records[name]["EscrowBag"]})
    connection.close()
    if "Port" not in answer:
        raise Closed
    return answer["Port"]


def service(server, name, service_name):
    """Return a connection to a service, with TLS."""
    port = start_service(server, name, service_name)
    return Connection(server).connect(name, port).start_tls(server.contexts[name])


# Malicious messages

def random_bytes(rng, max_count=4_000):
    """Return from one to `max_count` random bytes."""
    return rng.randbytes(rng.randint(1, max_count))


def expanding_entities(rng):
    """Return XML whose entities expand to 10⁹ characters."""
    entities = '<!ENTITY l0 "aaaaaaaaaa">' + "".join(
        f'<!ENTITY l{level} "{f"&l{level - 1};" * 10}">' for level in range(1, 9))
    return f'<?xml version="1.0"?><!DOCTYPE plist [{entities}]><plist><string>&l8;</string></plist>'.encode()


def nested_arrays(rng):
    """Return XML with arrays inside each other."""
    depth = rng.choice([60, 600, 60_000])
    return b"<plist>" + b"<array>" * depth + b"</array>" * depth + b"</plist>"


def cyclic_array(rng):
    """Return a binary property list with an array that has itself as its element."""
    return b"bplist00" + b"\xa1\x00" + b"\x08" + bytes(6) + b"\x01\x01" + struct.pack(">QQQ", 1, 0, 10)


def wrong_trailer(rng):
    """Return a binary property list whose trailer contradicts its size."""
    object_count, root_index = rng.choice([1 << 62, 1 << 32, 0]), rng.choice([0, 1 << 40])
    trailer = struct.pack(">QQQ", object_count, root_index, rng.choice([8, 1 << 50]))
    return b"bplist00" + random_bytes(rng, 200) + bytes(6) + b"\x08\x08" + trailer


def external_document_type(rng):
    """Return XML whose document type is a file."""
    return (
        b'<!DOCTYPE plist SYSTEM "file:///etc/passwd"><plist><dict><key>Request</key><string>Pair</string></dict>'
        b"</plist>")


def huge_dictionary(rng):
    """Return the start of a binary property list with a dictionary of 2⁶⁴ - 1 members."""
    return b"bplist00" + b"\xdf\x13" + b"\xff" * 8 + random_bytes(rng, 100)


PLIST_BOMBS = [
    expanding_entities, nested_arrays, cyclic_array, wrong_trailer, external_document_type, huge_dictionary]


def plist_bomb(rng):
    """Return a property list that expands, nests or contradicts itself."""
    return rng.choice(PLIST_BOMBS)(rng)


def wrong_length(rng):
    """Return a length for a header: too short, above a limit, or at the end of a number's range."""
    return rng.choice([0, 1, 3, 4, (1 << 20) + 1, (64 << 20) + 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1])


def escaping_path(rng):
    """Return a path that leads out of a folder."""
    return rng.choice([
        f"../{CANARY}", f"../../../../../../../../tmp/{CANARY}", f"/tmp/{CANARY}", f"a/../../{CANARY}",
        f"..\\..\\{CANARY}", f"{'../' * 200}tmp/{CANARY}", f"./../{CANARY}\0.plist", f"%2e%2e/{CANARY}", "..", "/", "",
        "\0", f"~/{CANARY}",
        "a" * 5_000, f"//tmp//{CANARY}", "/etc/passwd", "../hardware.uid", "../pairings.plist",
    ])


def random_value(rng, depth=3):
    """Return a random property list, with paths and numbers at the ends of their ranges."""
    kind = rng.randrange(8 if depth else 6)
    if kind == 0:
        return escaping_path(rng)
    if kind == 1:
        # The last numbers include a status code without its sign, and the port of lockdown in network byte order.
        return rng.choice([0, -1, 1, 2**63 - 1, -(2**63), 2**64 - 13, 2**64 - 1, 7, 32498])
    if kind == 2:
        return rng.random() < 0.5
    if kind == 3:
        return rng.choice([0.0, -1.5, float("inf"), 1e308])
    if kind == 4:
        return random_bytes(rng, 300)
    if kind == 5:
        return rng.choice(["", "a", "x" * 70_000])
    if kind == 6:
        return [random_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {rng.choice(["Request", "Name", "Command", "HostID", "Options", "k"]): random_value(rng, depth - 1)
            for _ in range(rng.randrange(4))}


# Sessions. Each raises Difference if the server misbehaves, does not answer, or does not end the connection in time.

def multiplexer_garbage(rng, server):
    """Send random bytes in place of a request."""
    connection = Connection(server)
    connection.send(random_bytes(rng))
    connection.expect_end()


def multiplexer_lengths(rng, server):
    """Send a header with a wrong length."""
    connection = Connection(server)
    header = struct.pack("<IIII", wrong_length(rng), rng.choice([0, 1, 7]), rng.choice([8, 1, 3]), 1)
    connection.send(header + random_bytes(rng, 100))
    connection.expect_end()


def multiplexer_bomb(rng, server):
    """Send a request that expands, nests or contradicts itself."""
    connection, body = Connection(server), plist_bomb(rng)
    connection.send(struct.pack("<IIII", 16 + len(body), MULTIPLEXER_VERSION, PLIST_MESSAGE, 1) + body)
    connection.expect_end()


def multiplexer_order(rng, server):
    """Send requests that are forbidden or in the wrong order. The server must not change a pair record."""
    connection = Connection(server)
    for _ in range(rng.randint(1, 8)):
        kind = rng.choice([
            "Listen", "ListListeners", "ReadPairRecord", "SavePairRecord", "DeletePairRecord", "Connect", "ReadBUID",
            "?"])
        message = {"MessageType": kind, "k": random_value(rng)}
        if kind == "SavePairRecord":
            # A record that is too long, or for a device that does not exist.
            message |= rng.choice([
                {"PairRecordID": escaping_path(rng), "PairRecordData": random_bytes(rng)},
                {"PairRecordID": server.udid("old-phone"), "PairRecordData": bytes((64 << 10) + 1)},
                {"PairRecordID": server.udid("old-phone"), "PairRecordData": "text"}])
        elif kind in ("ReadPairRecord", "DeletePairRecord"):
            message["PairRecordID"] = random_value(rng)
        elif kind == "Connect":
            message |= {
                "DeviceID": rng.choice([0, 99, -1, 2**63, "1", 1]),
                "PortNumber": rng.choice([0, 1, 65_535, 12_736, "x"])}
        answer = connection.ask_multiplexer(message)
        if kind in ("SavePairRecord", "DeletePairRecord"):
            require(answer.get("Number") != 0, f"{kind} of a foreign record succeeded")
        if kind == "Connect":
            require(answer.get("Number") != 0, "a port without a service was connected")
    connection.expect_end()


def lockdown_garbage(rng, server):
    """Send random bytes in place of a request, or after a wrong length."""
    connection = Connection(server).connect("old-phone")
    connection.send(rng.choice([random_bytes(rng), struct.pack(">I", wrong_length(rng)) + random_bytes(rng, 50)]))
    connection.expect_end()


def lockdown_bomb(rng, server):
    """Send a request that expands, nests or contradicts itself."""
    connection, body = Connection(server).connect("old-phone"), plist_bomb(rng)
    connection.send(struct.pack(">I", len(body)) + body)
    connection.expect_end()


def lockdown_order(rng, server):
    """Send requests that need a session without one, and invalid pairings."""
    connection = Connection(server).connect("old-phone")
    record = {key: rng.choice([random_bytes(rng), escaping_path(rng), "x"]) for key in (
        "DeviceCertificate", "HostCertificate", "RootCertificate", "HostID", "SystemBUID")}
    for _ in range(rng.randint(1, 8)):
        request = rng.choice([
            {"Request": "StartService", "Service": rng.choice(["com.apple.mobilebackup2", escaping_path(rng)])},
            {"Request": "StopSession", "SessionID": random_value(rng)}, {"Request": "Pair", "PairRecord": record},
            {"Request": "Pair", "PairRecord": random_value(rng)},
            {"Request": "StartSession", "HostID": escaping_path(rng)},
            {"Request": "Unpair", "PairRecord": {"HostID": escaping_path(rng)}},
            {"Request": "ValidatePair", "PairRecord": record},
            {"Request": "GetValue", "Domain": random_value(rng), "Key": random_value(rng)},
            {"Request": "SetValue", "Value": random_value(rng)},
            {"Request": random_value(rng)}])
        answer = connection.ask({"Label": "malicious", **request})
        require("Port" not in answer, "a service was started without a session")
        require("EscrowBag" not in answer, "a pairing without certificates was accepted")
        require("SessionID" not in answer, "a session was started for an unknown computer")
    connection.expect_end()


def garbage_before_tls(rng, server):
    """Send random bytes in place of the handshake."""
    connection = Connection(server).connect("old-phone")
    connection.start_session("old-phone")
    connection.send(random_bytes(rng))
    connection.expect_end()


def garbage_after_tls(rng, server):
    """Send random bytes or broken records after the handshake."""
    connection = Connection(server).session("old-phone")
    # The records are application data of the maximum length, and a fatal alert.
    try:
        connection.plain.sendall(rng.choice([
            random_bytes(rng), b"\x17\x03\x03\xff\xff" + random_bytes(rng), b"\x15\x03\x03\x00\x02\x02\x28"]))
    except OSError:
        raise Closed
    connection.expect_end()


def half_closed_tls(rng, server):
    """End the TCP stream without a TLS close_notify, with or without an unanswered request before it."""
    connection = Connection(server).session("old-phone")
    if rng.random() < 0.5:
        connection.send_frame({"Request": "QueryType"})
    connection.expect_end()


def foreign_certificate(rng, server):
    """Show the certificate of another pairing, or none. Lockdown must not answer."""
    connection = Connection(server).connect("old-phone")
    connection.start_session("old-phone")
    connection.start_tls(rng.choice([server.contexts["new-phone"], server.contexts["none"]]))
    try:
        connection.ask({"Request": "QueryType"})
    except Closed:
        connection.expect_end()
        return
    raise Difference("a client without the certificate of its pairing was answered")


def silent_handshake(rng, server):
    """Start a session, but begin no handshake."""
    connection = Connection(server).connect("old-phone")
    connection.start_session("old-phone")
    connection.expect_end(HANDSHAKE_SECONDS + 5, closes=False)


def session_order(rng, server):
    """Request unknown services and forbidden changes in a session. Then sometimes send a wrong length."""
    connection = Connection(server).session("old-phone")
    for _ in range(rng.randint(1, 6)):
        request = rng.choice([
            {"Request": "StartSession", "HostID": server.records["old-phone"]["HostID"]},
            {"Request": random_value(rng)},
            {"Request": "StartService", "Service": escaping_path(rng)},
            {"Request": "StartService", "Service": "com.apple.mobilebackup2", "EscrowBag": random_bytes(rng)},
            {"Request": "GetValue", "Domain": random_value(rng), "Key": random_value(rng)},
            {"Request": "SetValue", "Domain": "com.apple.mobile.backup", "Key": "WillEncrypt", "Value": False}])
        answer = connection.ask(request)
        require("Port" not in answer, "a service was started with a wrong escrow bag or name")
    if rng.random() < 0.3:
        connection.send(struct.pack(">I", wrong_length(rng)))
    connection.expect_end()


def reused_port(rng, server):
    """Use a port of a service twice, on another device, without TLS, or with another certificate."""
    port = start_service(server, "old-phone", rng.choice(["com.apple.afc", "com.apple.mobilebackup2"]))
    misuse = rng.choice([second_connection, other_device, without_tls, other_certificate])
    misuse(rng, server, port)


def second_connection(rng, server, port):
    """Connect twice to the port of a service."""
    connection = Connection(server).connect("old-phone", port)
    expect_refused_connection(server, "old-phone", port, "a port accepted two connections")
    connection.expect_end()


def other_device(rng, server, port):
    """Connect to a port of a service on another device."""
    expect_refused_connection(server, "new-phone", port, "a port of one device was connected on the other")


def expect_refused_connection(server, device, port, problem):
    """Connect to a port of a device, which the server must refuse."""
    connection = Connection(server)
    answer = connection.ask_multiplexer({
        "MessageType": "Connect", "DeviceID": server.number(device), "PortNumber": socket.htons(port)})
    require(answer.get("Number") != 0, problem)
    connection.expect_end()


def without_tls(rng, server, port):
    """Send random bytes in place of the handshake of a service."""
    connection = Connection(server).connect("old-phone", port)
    connection.send(random_bytes(rng))
    connection.expect_end()


def other_certificate(rng, server, port):
    """Show the certificate of another pairing to a service. It must not answer."""
    connection = Connection(server).connect("old-phone", port)
    connection.start_tls(server.contexts["new-phone"])
    connection.send_frame({"Command": "Browse"})
    try:
        connection.receive(1)
    except Closed:
        pass
    else:
        raise Difference("a service answered a foreign certificate")
    connection.expect_end()


def small_service(rng, server):
    """Send wrong requests to a service with few commands."""
    connection = service(server, "old-phone", rng.choice([
        "com.apple.mobile.notification_proxy", "com.apple.mobile.installation_proxy", "com.apple.springboardservices",
        "com.apple.mobile.diagnostics_relay"]))
    for _ in range(rng.randint(1, 6)):
        command = rng.choice(["ObserveNotification", "PostNotification", "Browse", "Install", "getIconPNGData", "?"])
        connection.send_frame(
            {"Command": command, "command": command, "Request": command, "Name": random_value(rng),
             "ClientOptions": random_value(rng)},
            binary=rng.random() < 0.5)
    body = plist_bomb(rng)
    connection.send(rng.choice([
        random_bytes(rng), struct.pack(">I", wrong_length(rng)), struct.pack(">I", len(body)) + body]))
    connection.expect_end()


# Operations of AFC (Apple File Conduit). A device sends AFC_DATA in answers that have content.
AFC_DATA, AFC_LIST, AFC_REMOVE, AFC_MAKE_DIRECTORY, AFC_FILE_INFO, AFC_OPEN = 2, 3, 8, 9, 10, 13
AFC_READ, AFC_WRITE, AFC_SEEK, AFC_TELL, AFC_CLOSE, AFC_LOCK = 15, 16, 17, 18, 20, 27


class FileConduitClient:
    """A client of AFC.

    A header has 40 bytes: "CFA6LPAA", the length of the packet, the length of the header with its arguments, the number
    of the packet, and the operation.
    """

    header_size = 40

    def __init__(self, connection):
        self.connection = connection

    def send_header(self, operation, packet_length, header_length):
        """Send a header, whose lengths may be wrong."""
        self.connection.send(b"CFA6LPAA" + struct.pack("<QQQQ", packet_length, header_length, 1, operation))

    def ask(self, operation, arguments=b"", payload=b""):
        """Send a request. Return the operation and the contents of the answer."""
        header_length = self.header_size + len(arguments)
        self.send_header(operation, header_length + len(payload), header_length)
        self.connection.send(arguments + payload)
        _, packet_length, _, _, answered_operation = struct.unpack(
            "<QQQQQ", self.connection.receive(self.header_size))
        return answered_operation, self.connection.receive(packet_length - self.header_size)


def conduit_arguments(rng, operation):
    """Return the arguments of an AFC operation, with a path out of the folder or a random file number."""
    name = escaping_path(rng).encode() + b"\0"
    file_number = rng.randrange(4)
    arguments_by_operation = {
        AFC_OPEN: struct.pack("<Q", rng.choice([1, 2, 3, 6, 0, 9])) + name,
        AFC_READ: struct.pack("<QQ", file_number, 2**64 - 1),
        AFC_WRITE: struct.pack("<Q", file_number),
        AFC_SEEK: struct.pack("<QQQ", file_number, rng.randrange(3), 2**64 - 1),
        AFC_LOCK: struct.pack("<QQ", file_number, rng.choice([5, 6, 12, 99])),
    }
    return arguments_by_operation.get(operation, rng.choice([name, random_bytes(rng, 30)]))


def apple_file_conduit(rng, server):
    """Send AFC requests with paths out of the shared folder, contradictory lengths, and random file numbers."""
    client = FileConduitClient(service(server, "old-phone", "com.apple.afc"))
    for _ in range(rng.randint(1, 10)):
        operation = rng.choice([
            AFC_LIST, AFC_REMOVE, AFC_MAKE_DIRECTORY, AFC_FILE_INFO, AFC_OPEN, AFC_READ, AFC_WRITE, AFC_SEEK, AFC_TELL,
            AFC_CLOSE, AFC_LOCK, AFC_DATA, 99, 2**63])
        payload = random_bytes(rng, 2_000) if operation == AFC_WRITE else b""
        answered_operation, content = client.ask(operation, conduit_arguments(rng, operation), payload)
        if operation == AFC_LIST and answered_operation == AFC_DATA:
            require(b"device.json" not in content and b"passwd" not in content, "AFC shows files of this computer")
        if operation == AFC_READ and answered_operation == AFC_DATA:
            require(b"root:" not in content, "AFC reads files of this computer")
    if rng.random() < 0.7:
        packet_length, header_length = rng.choice([
            (2**64 - 1, 40), (40, 2**64 - 1), (39, 39), (17 << 21, 40), (50, 60), (0, 0)])
        client.send_header(AFC_MAKE_DIRECTORY, packet_length, header_length)
    client.connection.expect_end()


# mobilebackup2

class BackupClient:
    """A client of mobilebackup2, which sends each message in XML or in binary."""

    def __init__(self, connection, rng):
        self.connection, self.rng = connection, rng

    def greet(self):
        self.connection.receive_answer()
        self.send(["DLMessageVersionExchange", "DLVersionsOk", 300])
        self.connection.receive_answer()
        self.send(["DLMessageProcessMessage", {"MessageName": "Hello", "SupportedProtocolVersions": [2.0, 2.1]}])
        self.connection.receive_answer()
        return self

    def send(self, message):
        self.connection.send_frame(message, binary=self.rng.random() < 0.5)

    def send_request(self, name, **members):
        udid = self.connection.server.udid("old-phone")
        self.send(["DLMessageProcessMessage", {"MessageName": name, "TargetIdentifier": udid, **members}])

    def send_status(self, code=0, content=None):
        # A negative code is sometimes sent as an unsigned number of 64 bits.
        self.send(["DLMessageStatusResponse", code % 2**64 if self.rng.random() < 0.3 else code, "text", content or {}])

    @staticmethod
    def part(code, content=b""):
        """Return a part of a file: the length of the code and the contents, the code, and the contents."""
        return struct.pack(">I", 1 + len(content)) + code + content

    def send_name(self, name):
        """Begin a file: the length of its name, and the name. Its parts follow."""
        self.connection.send(struct.pack(">I", len(name)) + name)

    def send_file(self, name, content, end=b"\0\0\0\0"):
        """Send one file in place of the one that the device requested. Without contents, report it as missing."""
        self.send_name(name)
        if content is None:
            parts = self.part(FILE_MISSING, b"missing")
        else:
            parts = self.part(FILE_DATA, content) + self.part(FILE_END)
        self.connection.send(parts + end)

    def error_code(self, message):
        """Return the error code of a response, or None for another message."""
        if message[0] == "DLMessageProcessMessage" and message[1].get("MessageName") == "Response":
            return message[1].get("ErrorCode")
        return None

    def skip_files(self):
        """Read the files that the device sends."""
        while True:
            [length] = struct.unpack(">I", self.connection.receive(4))
            if length == 0:
                return
            self.connection.receive(length)
            [length] = struct.unpack(">I", self.connection.receive(4))
            require(b".." not in self.connection.receive(length), "the device names a path out of the folder")
            while True:
                [length] = struct.unpack(">I", self.connection.receive(4))
                if self.connection.receive(length)[:1] != FILE_DATA:
                    break


def backup_client(rng, server):
    """Return a client that has not greeted the device."""
    return BackupClient(service(server, "old-phone", "com.apple.mobilebackup2"), rng)


def backup_identifiers(rng, server):
    """Send identifiers that are paths. The device must refuse them before it requests a file."""
    client = backup_client(rng, server).greet()
    for _ in range(rng.randint(1, 3)):
        key = rng.choice(["SourceIdentifier", "TargetIdentifier"])
        # An empty or very long identifier is as wrong as a path.
        command = rng.choice(["Restore", "Info", "List", "Unback", "Extract", "Backup"])
        client.send_request(command, **{key: escaping_path(rng)})
        require(client.error_code(client.connection.receive_answer()) == 1, "an identifier that is a path was accepted")
    client.connection.expect_end()


def backup_order(rng, server):
    """Send messages before the greeting, unexpected answers, and broken frames."""
    client = backup_client(rng, server)
    if rng.random() < 0.5:
        client.greet()
    for _ in range(rng.randint(1, 4)):
        client.send(rng.choice([
            ["DLMessageStatusResponse", 0, "", {}], ["DLMessageProcessMessage", random_value(rng)], [random_value(rng)],
            random_value(rng), ["DLMessageVersionExchange", "DLVersionsOk", 300],
            ["DLMessageProcessMessage", {"MessageName": random_value(rng)}]]))
    body = plist_bomb(rng)
    client.connection.send(rng.choice([
        random_bytes(rng), struct.pack(">I", wrong_length(rng)), struct.pack(">I", len(body)) + body]))
    client.connection.expect_end()


def backup_refused(rng, server):
    """Send requests that a virtual device must refuse, and wrong passwords."""
    client = backup_client(rng, server).greet()
    wrong = rng.choice([MALICIOUS_PASSWORD, "", "x" * 5_000, 7, b"bytes", ["list"]])
    kind = rng.randrange(3)
    if kind == 0:
        client.send_request(rng.choice(["EraseDevice", "EnableCloudBackup", "Frobnicate"]))
    elif kind == 1:
        client.send_request("ChangePassword", OldPassword=wrong, NewPassword=rng.choice([MALICIOUS_PASSWORD, 1, ""]))
    else:
        client.send_request("ChangePassword", NewPassword=MALICIOUS_PASSWORD)
    code = client.error_code(client.connection.receive_answer())
    # 207 means a wrong password.
    require(code in (1, 207), "the device carried out a request that it must refuse")
    client.connection.expect_end()


def restore_files(rng, server):
    """Send files that the device did not request, and streams that end early."""
    client = backup_client(rng, server).greet()
    udid = server.udid("old-phone")
    options = {"Password": MALICIOUS_PASSWORD} if rng.random() < 0.5 else {}
    client.send_request(rng.choice(["Restore", "Info", "Unback"]), SourceIdentifier=udid, Options=options)
    for _ in range(rng.randint(0, 2)):
        message = client.connection.receive_answer()
        if message[0] != "DLMessageDownloadFiles":
            break
        requested = message[1][0]
        require(".." not in requested and requested.startswith(udid), f"the device requests {requested}")
        is_status = requested.endswith("Status.plist")
        content = VALID_STATUS if is_status else rng.choice([random_bytes(rng), plist_bomb(rng), b"", None])
        client.send_file(requested.encode(), content)
        client.send_status(rng.choice([0, 0, -13, -6]))
    send_wrong_file(rng, client, f"{udid}/Manifest.db".encode())
    client.connection.expect_end()


VALID_STATUS = plistlib.dumps({
    "SnapshotState": "finished", "IsFullBackup": True, "Version": "3.3", "UUID": "A", "BackupState": "new"})


def send_wrong_file(rng, client, name):
    """Send a file with a wrong name, length, code or end, data without an end, or another message."""
    kind = rng.choice(["name", "name length", "data length", "code", "endless", "end", "message"])
    if kind == "name":
        client.send_file(escaping_path(rng).encode(), random_bytes(rng))
    elif kind == "name length":
        client.connection.send(struct.pack(">I", wrong_length(rng)) + random_bytes(rng, 100))
    elif kind == "data length":
        client.send_name(name)
        client.connection.send(struct.pack(">I", wrong_length(rng)) + FILE_DATA + random_bytes(rng))
    elif kind == "code":
        client.send_name(name)
        client.connection.send(client.part(bytes([rng.randrange(256)]), b"\0"))
    elif kind == "endless":
        # The parts reach the limit for a file, or end before it.
        client.send_name(name)
        for _ in range(rng.randint(1, 40)):
            client.connection.send(client.part(FILE_DATA, bytes(32_768)))
    elif kind == "end":
        client.send_file(name, random_bytes(rng), end=b"\0\0\0\x05other")
    else:
        client.send(["DLMessageStatusResponse", random_value(rng), random_value(rng), random_value(rng)])


def backup_answers(rng, server):
    """Start a backup, and send wrong answers or disconnect before its last step."""
    client = backup_client(rng, server).greet()
    client.send_request("Backup")
    udid = server.udid("old-phone")
    for _ in range(rng.randint(0, 10)):
        message = client.connection.receive_answer()
        name = message[0]
        if name == "DLMessageProcessMessage":
            break
        if name == "DLMessageDownloadFiles":
            client.send_file(f"{udid}/Status.plist".encode(), None)
            client.send_status(-13)
        elif name == "DLMessageGetFreeDiskSpace":
            client.send(["DLMessageStatusResponse", 0, "", rng.choice([1 << 40, 1 << 50, 0, -1, "much", 2**64 - 1])])
        else:
            if name == "DLMessageUploadFiles":
                client.skip_files()
            require(
                ".." not in json.dumps(message, default=str),
                f"the device names a path out of the folder: {message}")
            client.send_status(0)
    wrong_answer = rng.choice(["status", "value", "bytes", "none"])
    if wrong_answer == "status":
        code = rng.choice([-1, -15, "x", 2**64 - 13, 1.5])
        client.send(["DLMessageStatusResponse", code, random_value(rng), random_value(rng)])
    elif wrong_answer == "value":
        client.send(random_value(rng))
    elif wrong_answer == "bytes":
        client.connection.send(random_bytes(rng))
    client.connection.expect_end()


def silence(rng, server):
    """Leave a connection open at some layer, and send nothing more."""
    connection = Connection(server)
    if rng.random() < 0.6:
        connection.connect("old-phone")
    if rng.random() < 0.3:
        connection.send(b"\0\0")
    server.silent.append((time.monotonic(), connection))
    while len(server.silent) > 6:
        _, old = server.silent.pop(0)
        old.close()


def reset(rng, server):
    """Reset a connection in the middle of a message."""
    connection = service(server, "old-phone", rng.choice(["com.apple.afc", "com.apple.mobilebackup2"]))
    connection.send(random_bytes(rng, 20))
    connection.plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


# The sessions, with their relative frequencies.
SESSIONS = {
    multiplexer_garbage: 8, multiplexer_lengths: 8, multiplexer_bomb: 6, multiplexer_order: 10, lockdown_garbage: 8,
    lockdown_bomb: 6, lockdown_order: 12, garbage_before_tls: 6, garbage_after_tls: 6, half_closed_tls: 5,
    foreign_certificate: 6, silent_handshake: 0.1, session_order: 8, reused_port: 6, small_service: 8,
    apple_file_conduit: 10, backup_identifiers: 8, backup_order: 8, backup_refused: 8, restore_files: 12,
    backup_answers: 10, silence: 4, reset: 4,
}


class Usage:
    """Reads the current and the peak memory, the descriptors and the threads of a process."""

    def __init__(self, process):
        self.folder = pathlib.Path(f"/proc/{process}")

    def sample(self):
        fields = dict(line.split(":", 1) for line in (self.folder / "status").read_text().splitlines())
        byte_counts = {name: int(fields[name].split()[0]) << 10 for name in ("VmRSS", "VmHWM")}
        return {
            "memory": byte_counts["VmRSS"],
            "peak": byte_counts["VmHWM"],
            "descriptors": len(list((self.folder / "fd").iterdir())),
            "threads": int(fields["Threads"]),
        }


def run_sessions(server, count, seed, workers):
    """Run the sessions. Return how often each was run, and how many ended before their last step."""
    counts, faults, next_number, lock = collections.Counter(), [], iter(range(count)), threading.Lock()
    names, weights = list(SESSIONS), list(SESSIONS.values())

    def work():
        while True:
            with lock:
                number = next(next_number, None)
            if number is None or faults:
                return
            rng = random.Random(f"{seed} {number}")
            [session] = rng.choices(names, weights)
            counts[session.__name__] += 1
            try:
                session(rng, server)
            except Closed:
                counts["ended early"] += 1
            except (ConnectionError, ssl.SSLError):
                counts["ended early"] += 1
            except Exception as error:
                faults.append(f"session {number}, {session.__name__}: {error}\n{traceback.format_exc()}")

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    require(not faults, "\n".join(faults[:3]))
    return counts


def digests(folder):
    """Return the digests of all files below a folder."""
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in folder.rglob("*") if file.is_file()}


def canaries(folder):
    """Return the files with the canary name, in the test's folder and at the targets of the sessions' paths."""
    paths = [str(file) for file in folder.rglob(f"*{CANARY}*")]
    for parent in {pathlib.Path.cwd(), pathlib.Path.home(), pathlib.Path("/"), pathlib.Path("/tmp"), *folder.parents}:
        try:
            paths += [str(file) for file in parent.iterdir() if CANARY in file.name]
        except OSError:
            continue
    return sorted(set(paths))


class PairedDevices:
    """Two paired devices with a backup password, the server that shows them, and a folder with a backup."""

    def __init__(self, devices):
        self.devices, self.folder, self.backups = devices, devices.folder, devices.folder / "backups"
        for name in ("old-phone", "new-phone"):
            devices.keyhaul("device", "create", name, "--from", name)
        devices.serve("old-phone", "new-phone")
        udids = {name: devices.udid(name) for name in ("old-phone", "new-phone")}
        for udid in udids.values():
            devices.client("idevicepair", "-u", udid, "pair")
        self.udid = udids["old-phone"]
        self.backups.mkdir()
        devices.client("idevicebackup2", "-u", self.udid, "encryption", "on", PASSWORD, str(self.backups))
        self.check_backup()
        self.server = Server(
            devices.environment["USBMUXD_SOCKET_ADDRESS"],
            {"old-phone": (1, self.udid), "new-phone": (2, udids["new-phone"])}, self.folder)
        self.server.contexts["none"] = self.server.context("none", None)

    def check_backup(self):
        """Check that a client that follows the protocol makes a complete backup."""
        self.devices.client("idevicepair", "-u", self.udid, "validate")
        shutil.rmtree(self.backups)
        self.backups.mkdir()
        self.devices.client("idevicebackup2", "-u", self.udid, "backup", "--full", str(self.backups))
        self.devices.verify(self.backups / self.udid, PASSWORD)

    def close_silent_connections(self):
        for _, connection in self.server.silent:
            connection.close()
        self.server.silent.clear()

    def paths(self):
        """Return the paths of all files and folders of the test."""
        return {str(file.relative_to(self.folder)) for file in self.folder.rglob("*")}

    def check_log(self):
        """Check that the log of the server has no secret. Return its number of lines."""
        log = (self.folder / "server.log").read_text(errors="replace")
        secrets = [PASSWORD, MALICIOUS_PASSWORD, "PRIVATE KEY", "BEGIN CERTIFICATE"] + [
            text for record in self.server.records.values()
            for text in (base64.b64encode(record["EscrowBag"]).decode(), record["EscrowBag"].hex())]
        require(not any(secret in log for secret in secrets), "the log has a secret")
        return len(log.splitlines())


def check_usage(usage, before):
    """Compare the descriptors, threads and memory of the server with earlier values. Return the present values."""
    # A thread ends a moment after it closed its descriptors.
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        after = usage.sample()
        if after["descriptors"] <= before["descriptors"] and after["threads"] <= before["threads"]:
            break
        time.sleep(0.2)
    require(after["descriptors"] <= before["descriptors"], f"descriptors: {before} before, {after} after")
    require(after["threads"] <= before["threads"], f"threads: {before} before, {after} after")
    require(after["memory"] <= before["memory"] + MAX_GROWTH, f"memory: {before} before, {after} after")
    require(after["peak"] <= MAX_MEMORY, f"the peak of memory is {after['peak']:,} bytes")
    return after


class FilesBefore:
    """The files of the devices and of the test before the sessions, to compare with the files afterwards."""

    def __init__(self, paired):
        self.paired, self.digests, self.paths = paired, digests(paired.devices.home), paired.paths()
        require(
            set(DEVICE_FILES) <= {pathlib.Path(name).name for name in self.digests},
            "the devices have no pairings and password")

    def check(self):
        """Check that no file of the devices changed, and that there is no new file outside of them."""
        digests_after = digests(self.paired.devices.home)
        changed = sorted(name for name, digest in digests_after.items() if self.digests.get(name) != digest)
        missing = sorted(set(self.digests) - set(digests_after))
        require(not changed and not missing, f"files of the devices changed: {changed}, missing: {missing}")
        new_paths, found_canaries = sorted(self.paired.paths() - self.paths), canaries(self.paired.folder)
        require(not new_paths and not found_canaries, f"files outside of the devices: {new_paths} {found_canaries}")


def check(devices, arguments):
    """Run the sessions, and check the server, its devices and its log after them."""
    paired = PairedDevices(devices)
    server, usage = paired.server, Usage(devices.server.pid)
    # The first sessions load code and data that stay in memory.
    run_sessions(server, min(60, arguments.count), f"warm-up {arguments.seed}", arguments.workers)
    paired.close_silent_connections()
    time.sleep(1)
    before, files_before = usage.sample(), FilesBefore(paired)
    started = time.monotonic()
    counts = run_sessions(server, arguments.count, arguments.seed, arguments.workers)
    seconds = time.monotonic() - started
    if arguments.count >= MIN_COUNT_FOR_IDLE_CHECK:
        for begin, connection in server.silent:
            connection.expect_end(max(1, begin + IDLE_SECONDS + 10 - time.monotonic()), closes=False)
    paired.close_silent_connections()
    require(devices.server.poll() is None, "the server ended")
    after = check_usage(usage, before)
    files_before.check()
    paired.check_backup()
    devices.stop()
    line_count = paired.check_log()
    print(
        f"{arguments.count:,} malicious sessions in {seconds:.0f} s: no file changed, nothing outside of the devices, "
        f"memory {before['memory'] >> 20} to {after['memory'] >> 20} MiB (peak {after['peak'] >> 20} MiB), "
        f"{after['descriptors']} descriptors and {after['threads']} threads as before, "
        f"{line_count:,} lines of log without a secret")
    print("  " + ", ".join(f"{name} {count}" for name, count in sorted(counts.items())))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(10**9)))
    parser.add_argument("--workers", type=int, default=5, help="sessions at the same time")
    parser.add_argument("keyhaul")
    arguments = parser.parse_args()
    if missing := [name for name in ("idevicepair", "idevicebackup2") if not shutil.which(name)]:
        print(f"missing: {', '.join(missing)} (apt-get install libimobiledevice-utils)", file=sys.stderr)
        sys.exit(2)
    print(f"seed: {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="malicious-") as name:
        devices = ServedDevices(os.path.abspath(arguments.keyhaul), pathlib.Path(name))
        try:
            check(devices, arguments)
        except (Difference, subprocess.TimeoutExpired) as difference:
            log = (devices.folder / "server.log").read_text(errors="replace")
            print(f"FAIL  {difference}\n{log[-3000:]}", file=sys.stderr)
            if devices.server:
                devices.server.kill()
            sys.exit(1)


if __name__ == "__main__":
    main()
