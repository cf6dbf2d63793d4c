#!/usr/bin/env python3
"""Export one-time passwords as QR codes, and check the codes with a QR decoder and another one-time password library.

    check_codes.py KEYHAUL

The items are in a keychain dump. Every code on a page is drawn as an image, which zbarimg decodes. The one-time
passwords that pyotp computes from the decoded address must equal those that RFC 6238 defines for the secret.
"""

import base64
import hashlib
import hmac
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
from keychain_backup.databases import message_fields

RECT = re.compile(r"M(\d+) (\d+)h(\d+)v1h-\d+z")
TIMES = (59, 1111111109, 2000000000)
HASHES = {"SHA1": hashlib.sha1, "SHA256": hashlib.sha256, "SHA512": hashlib.sha512}


class Account:
    """A one-time password account, and the item that stores it."""

    def __init__(self, number, algorithm="SHA1", digits=6, period=30, spelling=None, has_separate_secret=False,
                 archive_version=0):
        self.secret = hashlib.sha256(f"account {number}".encode()).digest()[:10 + number % 11]
        self.issuer, self.name = f"Service {number}", f"person{number}@example.org"
        self.algorithm, self.digits, self.period = algorithm, digits, period
        encoded_secret = base64.b32encode(self.secret).decode()
        label = urllib.parse.quote(f"{self.issuer}:{self.name}")
        address = (f"otpauth://totp/{label}?issuer={urllib.parse.quote(self.issuer)}&algorithm={algorithm}"
                   f"&digits={digits}&period={period}")
        self.item = {"acct": f"item {number}", "svce": "codes.example", "agrp": "ABCDE12345.codes", "pdmn": "ak"}
        if has_separate_secret:
            self.item |= {"gena": address.encode(), "v_Data": self.secret}
        elif archive_version:
            self.item["v_Data"] = bytes([archive_version]) + self.archived(has_root=archive_version == 2)
        else:
            self.item["v_Data"] = f"{address}&secret={(spelling or str)(encoded_secret)}".encode()

    def archived(self, has_root):
        """Return the account as Tofu archives it: with an object of its own since version 2, without one before."""
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

    def code(self, time):
        """Return the one-time password for a time in seconds (RFC 4226, RFC 6238)."""
        digest = hmac.new(self.secret, struct.pack(">Q", time // self.period), HASHES[self.algorithm]).digest()
        start = digest[-1] & 15
        number = struct.unpack(">I", digest[start:start + 4])[0] & 0x7FFFFFFF
        return str(number % 10 ** self.digits).zfill(self.digits)


def accounts():
    """Return accounts in every form that an item may have."""
    spellings = [lambda text: " ".join(text[offset:offset + 4] for offset in range(0, len(text), 4)), str.lower,
                 lambda text: urllib.parse.quote(text, safe=""), lambda text: text.rstrip("=")]
    return ([Account(number, spelling=spelling) for number, spelling in enumerate(spellings)]
            + [Account(4, "SHA256"), Account(5, "SHA512", digits=8), Account(6, has_separate_secret=True)]
            + [Account(7, archive_version=2), Account(8, "SHA512", digits=8, archive_version=1)]
            + [Account(number) for number in range(9, 24)])


def decode_codes(page, folder):
    """Draw every QR code of a page, and yield the texts that zbarimg decodes."""
    for svg in re.findall(r"<svg.*?</svg>", page, re.S):
        side = int(re.search(r'viewBox="0 0 (\d+)', svg).group(1))
        pixels = [bytearray(b"\xff" * side * 4) for _ in range(side)]
        for column, row, width in (map(int, numbers) for numbers in RECT.findall(svg)):
            pixels[row][column * 4:(column + width) * 4] = bytes(width * 4)
        image = folder / "code.pgm"
        image.write_bytes(f"P5 {side * 4} {side * 4} 255\n".encode() + b"".join(bytes(row) * 4 for row in pixels))
        yield subprocess.run(
            ["zbarimg", "--quiet", "--raw", "-Sdisable", "-Sqrcode.enable", image], check=True, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True).stdout.rstrip("\n")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    checks, test_accounts = Checks(), accounts()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        other_items = [{"acct": "anna", "svce": "mail", "agrp": "ABCDE12345.mail", "pdmn": "ak", "v_Data": b"hunter2"}]
        (folder / "dump.plist").write_bytes(
            plistlib.dumps({"genp": [account.item for account in test_accounts] + other_items}))

        def export(format_name):
            path = folder / f"codes.{format_name}.html"
            completed = subprocess.run(
                [program, "export", "dump.plist", "-o", path, "--format", format_name, "--reveal",
                 "--home", folder / "home"],
                cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            code = completed.returncode
            checks.check(code == 0, f"{format_name}: exit code {code}: {completed.stdout}")
            checks.check(path.stat().st_mode & 0o777 == 0o600, f"{format_name}: only the owner can read the page")
            return path.read_text(encoding="utf-8")

        addresses = list(decode_codes(export("qr"), folder))
        checks.check(len(addresses) == len(test_accounts),
                     f"qr: {len(addresses)} codes for {len(test_accounts)} accounts")
        for address, account in zip(addresses, test_accounts):
            password = pyotp.parse_uri(address)
            checks.check((password.issuer, password.name) == (account.issuer, account.name),
                         f"qr: names of {account.name}")
            for time in TIMES:
                checks.check(password.at(time) == account.code(time), f"qr: the code of {account.name} at {time}")

        decoded_accounts = []
        for index, address in enumerate(codes := list(decode_codes(export("migration"), folder))):
            parts = urllib.parse.urlsplit(address)
            checks.check((parts.scheme, parts.netloc) == ("otpauth-migration", "offline"),
                         "migration: scheme and host of the address")
            message = message_fields(base64.b64decode(urllib.parse.parse_qs(parts.query)["data"][0], validate=True))
            batch = [dict(message_fields(value)) for number, value in message if number == 1]
            rest = dict(field for field in message if field[0] != 1)
            checks.check(len(batch) <= 10 and rest == {2: 1, 3: len(codes), 4: index},
                         "migration: batch size and index")
            decoded_accounts += batch
        checks.check(len(codes) == 3 and len(decoded_accounts) == len(test_accounts),
                     f"migration: {len(decoded_accounts)} accounts in {len(codes)} codes")
        for entry, account in zip(decoded_accounts, test_accounts):
            expected = {
                1: account.secret, 2: account.name.encode(), 3: account.issuer.encode(),
                4: {"SHA1": 1, "SHA256": 2, "SHA512": 3}[account.algorithm], 5: {6: 1, 8: 2}[account.digits], 6: 2}
            checks.check(entry == expected, f"migration: {account.name}")
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
