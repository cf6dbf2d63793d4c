#!/usr/bin/env python3
"""Export one-time passwords in every format, and check them with a QR decoder and another one-time password library.

    check_codes.py KEYHAUL [--chromium PROGRAM]

The accounts are in a keychain dump, and in a backup: in its items and in the files of authenticator apps. Every QR code
on a page is drawn as an image, which zbarimg decodes. The one-time passwords that pyotp computes from each export must
equal the one-time passwords that RFC 6238 defines for the secret. With --chromium, the pages are also printed, and the
QR codes are read from the paper.
"""

import argparse
import base64
import csv
import hashlib
import hmac
import io
import json
import math
import pathlib
import plistlib
import re
import struct
import subprocess
import sys
import tempfile
import urllib.parse

import pyotp
from checks import Checks
from keychain_backup import authenticators
from keychain_backup.builder import BackupBuilder
from keychain_backup.databases import message_fields
from keychain_backup.options import BackupOptions, ordinary_files

# A rectangle in the drawing of a QR code: its column, its row and its width.
RECT = re.compile(r"M(\d+) (\d+)h(\d+)v1h-\d+z")
# Seconds since 1970, from the test vectors of RFC 6238.
TIMES = (59, 1111111109, 2000000000)
HASHES = {"SHA1": hashlib.sha1, "SHA256": hashlib.sha256, "SHA512": hashlib.sha512}
# The numbers in the messages that Google Authenticator imports, and the maximum number of accounts in one QR code.
ALGORITHM_NUMBERS = {1: "SHA1", 2: "SHA256", 3: "SHA512"}
MAX_BATCH_SIZE = 10
PASSWORD = b"correct horse"
# The apps whose codes the export of the backup must report as missing.
MISSING = {"Ente Auth": "device-key", "FreeOTP": "never-in-backup", "Google Authenticator": "unpublished-storage",
           "Proton Authenticator": "keychain-key", "Raivo OTP": "app-password", "2FAS": "unpublished-key"}


class Account:
    """A one-time password account, and the item that stores it."""

    def __init__(self, number, algorithm="SHA1", digits=6, period=30, respell=None, has_separate_secret=False,
                 archive_version=0):
        # A secret of 10 to 20 bytes.
        self.secret = hashlib.sha256(f"account {number}".encode()).digest()[:10 + number % 11]
        self.issuer, self.name = f"Service {number}", f"person{number}@example.org"
        self.algorithm, self.digits, self.period = algorithm, digits, period
        encoded_secret = base64.b32encode(self.secret).decode()
        label = urllib.parse.quote(f"{self.issuer}:{self.name}")
        address = (f"otpauth://totp/{label}?issuer={urllib.parse.quote(self.issuer)}&algorithm={algorithm}"
                   f"&digits={digits}&period={period}")
        self.address = f"{address}&secret={(respell or str)(encoded_secret)}"
        self.item = {"acct": f"item {number}", "svce": "codes.example", "agrp": "ABCDE12345.codes", "pdmn": "ak"}
        if has_separate_secret:
            self.item |= {"gena": address.encode(), "v_Data": self.secret}
        elif archive_version:
            self.item["v_Data"] = bytes([archive_version]) + self.archived(has_root=archive_version == 2)
        else:
            self.item["v_Data"] = self.address.encode()

    def archived(self, has_root):
        """Return the account as Tofu archives it. Since version 2, the account is an object of its own."""
        uid = plistlib.UID
        fields = {"timeBased": True, "algorithm": {"SHA1": 0, "SHA256": 1, "SHA512": 2}[self.algorithm],
                  "digits": self.digits, "secret": uid(1), "counter": 0, "period": self.period, "name": uid(2),
                  "issuer": uid(3)}
        objects = ["$null", self.secret, self.name, self.issuer]
        if has_root:
            objects += [fields | {"$class": uid(5)}, {"$classname": "Account", "$classes": ["Account", "NSObject"]}]
        top = {"root": uid(4)} if has_root else fields
        return plistlib.dumps(
            {"$version": 100000, "$archiver": "NSKeyedArchiver", "$top": top, "$objects": objects},
            fmt=plistlib.FMT_BINARY)

    def description(self):
        """Return the description of the item for the builder of backups."""
        attributes = {code: self.item[code] for code in ("acct", "svce", "agrp")}
        if "gena" in self.item:
            attributes["gena"] = {"base64": base64.b64encode(self.item["gena"]).decode()}
        return {"kind": "generic-password", "protection": self.item["pdmn"], "attributes": attributes,
                "secret": {"base64": base64.b64encode(self.item["v_Data"]).decode()}}

    def code(self, time):
        """Return the one-time password for a time in seconds (RFC 4226, RFC 6238)."""
        digest = hmac.new(self.secret, struct.pack(">Q", time // self.period), HASHES[self.algorithm]).digest()
        start = digest[-1] & 15
        number = struct.unpack(">I", digest[start:start + 4])[0] & 0x7FFFFFFF
        return str(number % 10 ** self.digits).zfill(self.digits)

    def expected(self):
        """Return the account's names, and its codes at some times, as they must be in an export."""
        return self.issuer, self.name, [self.code(time) for time in TIMES]


def accounts():
    """Return accounts in every form that an item may have."""
    def in_groups_of_four(text):
        return " ".join(text[offset:offset + 4] for offset in range(0, len(text), 4))

    spellings = [
        in_groups_of_four, str.lower, lambda text: urllib.parse.quote(text, safe=""), lambda text: text.rstrip("=")]
    return ([Account(number, respell=respell) for number, respell in enumerate(spellings)]
            + [Account(4, "SHA256"), Account(5, "SHA512", digits=8), Account(6, has_separate_secret=True)]
            + [Account(7, archive_version=2), Account(8, "SHA512", digits=8, archive_version=1)]
            + [Account(number) for number in range(9, 24)])


def make_backup(folder):
    """Write a backup with accounts in items and in files. Return the accounts in the order of an export."""
    in_items = accounts()[:9]
    in_preferences = [Account(30), Account(31, "SHA256", digits=8)]
    in_store = [Account(32, "SHA512"), Account(33, period=60), Account(34), Account(35)]
    keys = {name: hashlib.sha256(name.encode()).digest() for name in ("encryptionKey-A", "encryptionKey-B", "lost")}
    entries = [(1, account.address) for account in in_store]
    rows = []
    # The fifth row repeats an account of the keychain. The key of the last row is not in the backup.
    for number, content in enumerate([*entries, (1, in_items[4].address), (1, Account(36).address)]):
        key_id = "lost" if number == 5 else ["encryptionKey-A", "encryptionKey-B"][number % 2]
        nonce = hashlib.sha256(f"nonce {number}".encode()).digest()[:12]
        entry = authenticators.proton_entry(content, f"Name {number}", number)
        rows.append((key_id, authenticators.proton_box(entry, keys[key_id], nonce)))
    items = [account.description() for account in in_items]
    items += [authenticators.proton_item(name, keys[name]) for name in ("encryptionKey-A", "encryptionKey-B")]
    items.append({
        "kind": "generic-password", "protection": "ak", "secret": {"text": "hunter2"},
        "attributes": {"acct": "anna", "svce": "mail", "agrp": "ABCDE12345.mail"}})
    files = (ordinary_files() + authenticators.freeotp_files([account.address for account in in_preferences])
             + authenticators.proton_files(rows, logged_count=3) + authenticators.unreadable_files())
    BackupBuilder(BackupOptions(password=PASSWORD, files=files), items, seed="codes").build().write(folder)
    return in_items + in_preferences + in_store


def decode_codes(page, folder):
    """Draw every QR code of a page, and yield the texts that zbarimg decodes."""
    for svg in re.findall(r"<svg.*?</svg>", page, re.S):
        # Each module of the code is drawn with four by four pixels.
        side = int(re.search(r'viewBox="0 0 (\d+)', svg).group(1))
        pixels = [bytearray(b"\xff" * side * 4) for _ in range(side)]
        for column, row, width in (map(int, numbers) for numbers in RECT.findall(svg)):
            pixels[row][column * 4:(column + width) * 4] = bytes(width * 4)
        image = folder / "code.pgm"
        image.write_bytes(f"P5 {side * 4} {side * 4} 255\n".encode() + b"".join(bytes(row) * 4 for row in pixels))
        yield subprocess.run(
            ["zbarimg", "--quiet", "--raw", "-Sdisable", "-Sqrcode.enable", image], check=True, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True).stdout.rstrip("\n")


def printed_codes(browser, page, folder):
    """Print a page, and return the texts that zbarimg decodes from each sheet of paper."""
    pdf = folder / "printed.pdf"
    subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer", f"--print-to-pdf={pdf}",
         page.as_uri()],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)
    subprocess.run(["pdftoppm", "-r", "150", "-png", pdf, folder / "sheet"], check=True)
    texts = []
    for sheet in sorted(folder.glob("sheet-*.png")):
        texts += subprocess.run(
            ["zbarimg", "--quiet", "--raw", "-Sdisable", "-Sqrcode.enable", sheet], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True).stdout.splitlines()
        sheet.unlink()
    return texts


def account_of_address(address):
    """Return the names and codes that pyotp computes from an address."""
    totp = pyotp.parse_uri(address)
    return totp.issuer, totp.name, [totp.at(time) for time in TIMES]


def account_of_credential(credential):
    """Return the names and codes of a credential that password managers exchange."""
    totp = pyotp.TOTP(
        credential["secret"], digits=credential["digits"], digest=HASHES[credential["algorithm"].upper()],
        interval=credential["period"])
    return credential["issuer"], credential["username"], [totp.at(time) for time in TIMES]


def account_of_message(entry):
    """Return the names and codes of an account that Google Authenticator imports."""
    totp = pyotp.TOTP(
        base64.b32encode(entry[1]).decode(), digits={1: 6, 2: 8}[entry[5]], digest=HASHES[ALGORITHM_NUMBERS[entry[4]]])
    return entry[3].decode(), entry[2].decode(), [totp.at(time) for time in TIMES]


class Exports:
    """The exports of one source."""

    def __init__(self, checks, program, folder, source, arguments=()):
        self.checks, self.program, self.folder, self.source, self.arguments = checks, program, folder, source, arguments

    def run(self, *arguments, errors=subprocess.STDOUT):
        """Run `keyhaul export` for the source."""
        return subprocess.run(
            [self.program, "export", self.source, *arguments, *self.arguments, "--home", self.folder / "home"],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=errors, text=True)

    def read(self, format_name):
        """Export to a file, and return its text."""
        path = self.folder / f"{self.source}.{format_name}"
        completed = self.run("-o", path, "--format", format_name, "--reveal")
        code = completed.returncode
        self.checks.check(code == 0, f"{self.source}, {format_name}: exit code {code}: {completed.stdout}")
        self.checks.check(
            path.stat().st_mode & 0o777 == 0o600, f"{self.source}, {format_name}: only the owner can read it")
        return path.read_text(encoding="utf-8")

    def check_accounts(self, format_name, exported, expected):
        """Check that an export has each expected account exactly once, and no other account."""
        exported_accounts = list(exported)
        self.checks.check(
            len(exported_accounts) == len(expected),
            f"{self.source}, {format_name}: {len(exported_accounts)} of {len(expected)} accounts")
        for account in expected:
            self.checks.check(
                exported_accounts.count(account.expected()) == 1,
                f"{self.source}, {format_name}: {account.name} occurs once")

    def check_all(self, expected):
        """Check every format. Return the number of accounts that were compared."""
        pages = list(decode_codes(self.read("qr"), self.folder))
        lines = self.read("otpauth").splitlines()
        self.checks.check(sorted(pages) == sorted(lines), f"{self.source}: the QR codes contain the same addresses")
        self.check_accounts("qr", map(account_of_address, pages), expected)
        self.check_accounts("otpauth", map(account_of_address, lines), expected)
        rows = [row for row in csv.DictReader(io.StringIO(self.read("csv"))) if row["OTPAuth"]]
        self.check_accounts("csv", (account_of_address(row["OTPAuth"]) for row in rows), expected)
        self.checks.check(
            {(row["Title"], row["Username"]) for row in rows}
            == {(account.issuer, account.name) for account in expected},
            f"{self.source}, csv: titles and user names")
        entries = json.loads(self.read("cxf"))["accounts"][0]["items"]
        credentials = [entry["credentials"][0] for entry in entries if entry["credentials"][0]["type"] == "totp"]
        self.check_accounts("cxf", map(account_of_credential, credentials), expected)
        # Google Authenticator supports no other period.
        with_period_30 = [account for account in expected if account.period == 30]
        self.check_migration(with_period_30)
        return 4 * len(expected) + len(with_period_30)

    def check_migration(self, expected):
        """Read the codes for Google Authenticator with another reader of its message."""
        accounts_in_codes = []
        codes = list(decode_codes(self.read("migration"), self.folder))
        for index, address in enumerate(codes):
            parts = urllib.parse.urlsplit(address)
            self.checks.check((parts.scheme, parts.netloc) == ("otpauth-migration", "offline"),
                              "migration: scheme and host of the address")
            encoded_message = urllib.parse.parse_qs(parts.query)["data"][0]
            message = message_fields(base64.b64decode(encoded_message, validate=True))
            # Field 1 is an account, 2 the version, 3 the number of codes, and 4 the index of this code.
            batch = [dict(message_fields(value)) for number, value in message if number == 1]
            other_fields = dict(field for field in message if field[0] != 1)
            self.checks.check(len(batch) <= MAX_BATCH_SIZE and other_fields == {2: 1, 3: len(codes), 4: index},
                              "migration: batch size and index")
            # Field 6 of an account is its kind. 2 is a code that is based on the time.
            self.checks.check(all(entry[6] == 2 for entry in batch), "migration: codes that are based on the time")
            accounts_in_codes += batch
        expected_code_count = math.ceil(len(expected) / MAX_BATCH_SIZE)
        self.checks.check(len(codes) == expected_code_count, f"{self.source}: {len(codes)} migration codes")
        self.check_accounts("migration", map(account_of_message, accounts_in_codes), expected)


def check_missing(checks, exports):
    """Check that an export reports the apps whose codes it does not contain."""
    text = exports.run("-o", exports.folder / "again.otpauth", "--reveal", "--yes").stdout
    one_line = " ".join(text.split())
    for name in MISSING:
        checks.check(f"codes of {name} are missing" in one_line, f"the export warns about {name}: {one_line}")
    document = json.loads(exports.run(
        "-o", exports.folder / "third.otpauth", "--reveal", "--format", "otpauth", "--json", errors=subprocess.DEVNULL
    ).stdout)
    apps = {app["app"]: app for app in document["authenticators"]}
    checks.check({app.get("missing") for app in apps.values()} == set(MISSING.values()), f"JSON: {apps}")
    checks.check(apps["proton-authenticator"]["codes"] == 5 and apps["freeotp"]["codes"] == 2, f"JSON: {apps}")


def check_printed_page(checks, browser, folder, format_name):
    """Check that a printed page has the codes of the page on the screen."""
    page = folder / f"dump.plist.{format_name}"
    html = page.rename(page.with_suffix(".html"))
    shown = list(decode_codes(html.read_text(encoding="utf-8"), folder))
    printed = printed_codes(browser, html, folder)
    checks.check(sorted(printed) == sorted(shown), f"{len(printed)} of {len(shown)} codes on paper")
    print(f"{len(printed)} of {len(shown)} codes read from the printed {format_name} page")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--chromium", help="print the pages with this browser, too")
    arguments = parser.parse_args()
    program = arguments.program.resolve()
    checks, test_accounts = Checks(), accounts()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        other_items = [{"acct": "anna", "svce": "mail", "agrp": "ABCDE12345.mail", "pdmn": "ak", "v_Data": b"hunter2"}]
        (folder / "dump.plist").write_bytes(
            plistlib.dumps({"genp": [account.item for account in test_accounts] + other_items}))
        count = Exports(checks, program, folder, "dump.plist").check_all(test_accounts)
        in_backup = make_backup(folder / "phone.backup")
        password = folder / "password"
        password.write_bytes(PASSWORD)
        password.chmod(0o600)
        exports = Exports(checks, program, folder, "phone.backup", ["--password-file", password])
        count += exports.check_all(in_backup)
        check_missing(checks, exports)
        if arguments.chromium:
            for format_name in ("qr", "migration"):
                check_printed_page(checks, arguments.chromium, folder, format_name)
    print(f"{count} accounts compared in 5 formats, {len(test_accounts)} of a dump and {len(in_backup)} of a backup")
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
