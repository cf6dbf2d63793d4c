#!/usr/bin/env python3
"""Make the device descriptions in devices/ (format device-fixture/1). Each run makes the same bytes.

    make_fixtures.py            write them
    make_fixtures.py --check    compare them with the existing files; exit 1 if a file differs

All names are invented, and are in domains that are reserved for examples (RFC 2606). Keys and certificates are derived
from the seed: the private scalars are SHA-256 digests of it, and the signatures are deterministic (RFC 6979). Needs the
package `cryptography` (45 or newer). If `jsonschema` is installed, the descriptions are also validated.
"""

import argparse
import base64
import datetime
import hashlib
import json
import pathlib
import sys

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

FOLDER = pathlib.Path(__file__).resolve().parent
SEED = 20261120
CREATED = "2026-11-20T17:58:00Z"

CHAT = "ABCDE12345.org.example.chat"
BANK = "ABCDE12345.com.example.bank"
AUTHENTICATOR = "FGHIJ67890.org.example.authenticator"
HOME = "FGHIJ67890.net.example.home"


def data(value):
    """Return bytes as a value of the format."""
    return {"base64": base64.b64encode(value).decode("ascii")}


def text(value):
    """Return text as a value of the format."""
    return {"text": value}


def date(value):
    """Return a date as a value of the format."""
    return {"date": value}


def item(kind, protection, secret, changed, created=None, **attributes):
    """Return the description of an item."""
    description = {"kind": kind, "protection": protection}
    for key in ("access_control", "token"):
        if key in attributes:
            description[key] = attributes.pop(key)
    attributes["cdat"] = date(created or changed)
    attributes["mdat"] = date(changed)
    description["attributes"] = {code: attributes[code] for code in sorted(attributes)}
    if secret is not None:
        description["secret"] = secret
    return description


def generic(protection, secret, changed, **attributes):
    """Return the description of a generic password."""
    return item("generic-password", protection, secret, changed, **attributes)


def internet(protection, secret, changed, **attributes):
    """Return the description of an internet password."""
    return item("internet-password", protection, secret, changed, **attributes)


class Identity:
    """A P-256 key derived from the seed, and a certificate for it."""

    def __init__(self, name, issuer=None):
        digest = hashlib.sha256(f"keyhaul fixture {SEED} {name}".encode()).digest()
        # The shift keeps the scalar below the order of the curve.
        self.key = ec.derive_private_key(int.from_bytes(digest, "big") >> 1, ec.SECP256R1())
        self.name = x509.Name([
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Example"), x509.NameAttribute(NameOID.COMMON_NAME, name)
        ])
        self.point = self.key.public_key().public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
        self.hash = hashlib.sha1(self.point).digest()
        self.serial = int.from_bytes(digest[:8], "big") >> 1
        is_authority = issuer is None
        issuer = issuer or self
        builder = (
            x509.CertificateBuilder().subject_name(self.name).issuer_name(issuer.name)
            .public_key(self.key.public_key()).serial_number(self.serial)
            .not_valid_before(datetime.datetime(2024, 1, 1)).not_valid_after(datetime.datetime(2044, 1, 1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier(self.hash), critical=False))
        if not is_authority:
            builder = builder.add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        certificate = builder.sign(issuer.key, hashes.SHA256(), ecdsa_deterministic=True)
        self.certificate = certificate.public_bytes(serialization.Encoding.DER)
        self.issuer_name = issuer.name

    @property
    def private_bytes(self):
        """The private key as the keychain stores it: 04 X Y K."""
        return self.point + self.key.private_numbers().private_value.to_bytes(32, "big")

    def certificate_item(self, protection, changed, label, **attributes):
        """Return the description of an item with the certificate."""
        # DER integers are signed, so the highest bit is 0.
        serial_bytes = self.serial.to_bytes((self.serial.bit_length() + 8) // 8, "big")
        return item(
            "certificate", protection, data(self.certificate), changed, labl=label, ctyp=3, cenc=3,
            subj=data(self.name.public_bytes()), issr=data(self.issuer_name.public_bytes()),
            slnr=data(serial_bytes), skid=data(self.hash), pkhh=data(self.hash), **attributes)

    def key_item(self, protection, changed, label, secret, **attributes):
        """Return the description of an item with the key: a private EC key (type 73) of 256 bits, with its rights."""
        rights = dict(
            kcls=1, type=73, bsiz=256, esiz=256, perm=1, priv=1, modi=1, encr=0, decr=1, drve=1, sign=1, vrfy=0,
            snrc=0, vyrc=0, wrap=0, unwp=1, extr=1, next=0, sens=0, asen=0, crtr=0)
        rights.update(attributes)
        return item(
            "key", protection, secret, changed, labl=label, klbl=data(self.hash),
            sdat=date("2001-01-01T00:00:00Z"), edat=date("2001-01-01T00:00:00Z"), **rights)


AUTHORITY = Identity("Example Root CA")
VPN = Identity("old-phone.vpn.example.org", issuer=AUTHORITY)
LAPTOP = Identity("ssh work laptop")


def authority_item():
    """Return the description of an item with the certificate of the authority that issued the VPN certificate."""
    return AUTHORITY.certificate_item("dk", "2024-01-15T08:00:00Z", "Example Root CA", agrp="apple")


def home_network(secret, changed, created):
    """Return a Wi-Fi password of the home network."""
    return generic(
        "ck", text(secret), changed, created=created, svce="AirPort", acct="Home", labl="Home",
        desc="AirPort network password", agrp="apple")


def document(name, product_type, product_version, passcode, apps, items):
    """Return the description of a device."""
    device = {"name": name, "product_type": product_type, "product_version": product_version}
    if passcode is not None:
        device["passcode"] = passcode
    return {
        "format": "device-fixture/1", "seed": SEED, "created": CREATED, "device": device,
        "apps": [{"name": app, "groups": groups} for app, groups in apps], "items": items,
    }


def old_phone():
    """Return the phone that the demonstration and the tutorials move from: items of every kind and protection."""
    apps = [("chat", [CHAT]), ("bank", [BANK]), ("authenticator", [AUTHENTICATOR]), ("home", [HOME])]
    return document(
        "old-phone", "iPhone15,2", "18.1", "135790", apps,
        old_phone_generic_passwords() + old_phone_internet_passwords() + old_phone_certificates() + old_phone_keys())


def old_phone_generic_passwords():
    """Return the generic passwords of the old phone."""
    otpauth = "otpauth://totp/Example:anna@example.org?secret=JBSWY3DPEHPK3PXP&issuer=Example&digits=6&period=30"
    return [
        home_network("plum-orchard-42", "2026-11-19T20:14:31.73Z", "2024-02-01T18:02:11.5Z"),
        generic(
            "ck", text("Gäste willkommen"), "2026-06-30T11:20:05.018231Z", svce="AirPort", acct="Café Zürich",
            labl="Café Zürich", desc="AirPort network password", agrp="apple", sync=1),
        generic(
            "ak", text("hunter2"), "2026-11-19T17:58:03.250125Z", created="2025-08-12T06:45:59.000001Z",
            svce="chat.example", acct="anna", labl="Chat", agrp=CHAT, gena=data(b"\x01session")),
        generic(
            "cku", text("push-9f2c71d0a4"), "2026-11-20T17:41:22.904Z", svce="chat.example", acct="push token",
            labl="Chat notifications", agrp=CHAT),
        generic(
            "aku", data(hashlib.sha256(b"bank device id").digest()), "2025-12-24T09:00:00Z", svce="bank.example",
            acct="device id", labl="Bank", agrp=BANK),
        generic(
            "akpu", text("4929-0000-0000-0004"), "2026-01-03T12:34:56.789Z", svce="wallet", acct="card 4",
            labl="Wallet card", agrp=BANK),
        generic(
            "aku", data(b"vault\x00key\xff\xfe"), "2026-03-08T16:05:40.125Z", svce="bank.example", acct="vault key",
            labl="Bank vault", agrp=BANK, access_control=["biometry-current-set"]),
        generic(
            "ak", text(otpauth), "2026-04-18T07:30:12.6Z", svce="org.example.authenticator",
            acct="Example:anna@example.org", labl="Two-factor code", agrp=AUTHENTICATOR),
        generic(
            "dku", data(b"\x00\x01pair\x00\xff\xc3\x28\x80\x00"), "2025-05-05T05:05:05.505Z", svce="tracker.example",
            acct=data(b"\xe2\x98accessory\x00"), labl="Tracker", agrp=HOME),
        generic("dk", data(b""), "2024-11-02T22:10:00Z", svce="home.example", acct="guest", labl="Guest", agrp=HOME),
        generic(
            "ck", data(b"\x07"), "2024-11-02T22:11:00.5Z", svce="home.example", acct="scene", labl="Scene", agrp=HOME,
            invi=1, type=1936028276),
        generic(
            "ck", text("корова-кінь-🔋"), "2026-09-01T06:00:00.333333Z", svce="Пошта Приклад", acct="Анна",
            labl="电子邮件", icmt="ملاحظة", agrp=CHAT),
        generic(
            "dk", text("circle peer"), "2026-02-02T02:02:02Z", svce="SecureObjectSync", acct="peer key",
            agrp="com.apple.security.sos"),
    ]


def old_phone_internet_passwords():
    """Return the internet passwords of the old phone."""
    return [
        internet(
            "ak", text("correct horse battery staple"), "2026-11-18T10:00:01.000125Z", srvr="imap.example.org",
            acct="anna", ptcl="imap", port=993, atyp="dflt", labl="imap.example.org (anna)", agrp="apple"),
        internet(
            "ak", text("correct horse battery staple"), "2026-11-18T10:00:02.5Z", srvr="smtp.example.org",
            acct="anna", ptcl="smtp", port=465, atyp="dflt", labl="smtp.example.org (anna)", agrp="apple"),
        internet(
            "ak", text("tr0ub4dor&3"), "2026-10-10T10:10:10.1Z", srvr="shop.example", acct="anna@example.org",
            ptcl="htps", port=443, path="/login", atyp="form", labl="shop.example (anna@example.org)",
            agrp="com.apple.cfnetwork"),
        internet(
            "ak", text("пароль"), "2026-07-07T07:07:07.070707Z", srvr="forum.example", acct="анна", ptcl="htps",
            sdmn="Mitglieder", atyp="form", labl="forum.example", icmt="synced login", agrp="com.apple.cfnetwork",
            sync=1),
        internet(
            "dk", data(b"ftp\x00pass"), "2023-03-03T03:03:03Z", srvr="ftp.example.net", acct="upload", ptcl="ftp ",
            port=21, path="/incoming", labl="ftp.example.net", agrp="apple"),
    ]


def old_phone_certificates():
    """Return the certificates of the old phone."""
    return [
        authority_item(),
        VPN.certificate_item("ck", "2026-05-20T13:00:00.25Z", "VPN identity", agrp="apple"),
    ]


def old_phone_keys():
    """Return the keys of the old phone: one with an identity, and one of its Secure Enclave."""
    return [
        VPN.key_item(
            "cku", "2026-05-20T13:00:00.25Z", "VPN identity", data(VPN.private_bytes), agrp="apple",
            atag=data(b"org.example.vpn")),
        LAPTOP.key_item(
            "aku", "2026-08-08T08:08:08.08Z", "ssh work laptop", data(LAPTOP.point), agrp=CHAT, extr=0, next=1,
            sens=1, asen=1, atag="ssh · work laptop", token="com.apple.setoken"),
    ]


def new_phone():
    """Return the phone that the old phone's items move to: it has an older Wi-Fi password and the same authority."""
    items = [
        home_network("old-plum-orchard", "2025-03-02T19:00:00Z", "2025-03-02T19:00:00Z"),
        authority_item(),
    ]
    return document("new-phone", "iPhone17,1", "18.1", "2468", [("chat", [CHAT]), ("home", [HOME])], items)


def malicious_names():
    """Return a device whose labels and comments attack the terminal, page or file that shows them."""
    cases = [
        ("terminal escapes", "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J"),
        ("text direction", "invoice\u202egpj.exe \u2066isolated\u2069 \u200bzero\u200dwidth\ufeff"),
        ("line breaks", "first\nsecond\r\nthird\u2028fourth\x0bfifth\ttab"),
        ("spreadsheet formula", "=HYPERLINK(\"https://evil.example\",\"click\")"),
        ("spreadsheet command", "+cmd|' /C calc'!A0"),
        ("page", "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;"),
        ("path", "../../.ssh/authorized_keys"),
        ("json", "\"},{\"kind\":\"key\",\"x\":\"\\u0000\ud83d\ude00"),
        ("long", "long label " * 400),
        ("control bytes", "nul\x00bell\x07back\x08del\x7fc1\x9b31m"),
        ("composed", "Zürich"),
        ("decomposed", "Zu\u0308rich"),
        ("flag lookalike", "--reveal"),
        ("empty", ""),
    ]
    items = [
        generic(
            "ak", text(f"planted secret {number}"), f"2026-11-{number + 1:02}T00:00:00.5Z", svce=name, acct=meaning,
            labl=name, icmt=name, agrp=HOME)
        for number, (meaning, name) in enumerate(cases)
    ]
    items.append(internet(
        "ak", text("planted secret of a server"), "2026-11-20T00:00:00Z", srvr="\x1b[1mserver\u202e.example",
        acct="a,b;\"c\"\td", ptcl="htps", port=443, path="/%2e%2e/\n", labl="@SUM(1+1)", agrp=HOME))
    return document("hostile-names", "iPhone15,2", "18.1", None, [("home", [HOME])], items)


RULES_GROUP = "ABCDE12345.org.example.rules"


def rule_item(term, changed="2026-06-01T12:00:00Z", protection="ak", secret="every-rule", value=None, **attributes):
    """Return a password whose account is the term that reports use for its outcome."""
    attributes.setdefault("agrp", RULES_GROUP)
    return generic(
        protection, value or (text(secret) if secret is not None else None), changed, svce="rule.example", acct=term,
        labl=f"Rule {term}", **attributes)


def der(tag, contents):
    """Return a DER element of less than 64 KiB."""
    count = len(contents)
    if count < 0x80:
        length = bytes([count])
    elif count < 0x100:
        length = bytes([0x81, count])
    else:
        length = b"\x82" + count.to_bytes(2)
    return bytes([tag]) + length + contents


def der_dictionary(members):
    """Return the DER of a dictionary in Apple's property lists: a SET of SEQUENCEs with a key and an encoded value."""
    return der(0x31, b"".join(der(0x30, der(0x0C, key.encode()) + value) for key, value in sorted(members.items())))


def secure_enclave_key(name):
    """Return a value in the format of CryptoKit's SecureEnclave.P256 dataRepresentation, derived from the seed."""
    point = Identity(name).point

    def derived(label, count):
        return hashlib.sha512(f"{SEED} {name} {label}".encode()).digest()[:count]

    access = der_dictionary({"dacl": der(0x01, b"\x01")})
    key = {
        "bc": der(0x02, b"\x0a"),
        "bid": der(0x04, derived("bid", 4)),
        "kid": der(0x04, derived("kid", 16)),
        "kt": der(0x02, b"\x04"),
        "kv": der(0x02, b"\x01"),
        "pub": der(0x04, point),
        "rkm": der(0x04, derived("rkm", 32)),
        "rko": der(0x04, bytes([0x80] + [0] * 7)),
        "wk": der(0x04, derived("wk", 40)),
    }
    return der(0x04, der_dictionary({"ed": der_dictionary({"acl": access}), "rk": der_dictionary(key)}))


def every_rule():
    """Return a device with one item for each outcome of a move to every-rule-target."""
    chip = Identity("every rule chip")
    passwords = [
        rule_item("device-bound", protection="aku"), rule_item("backup-not-encrypted"),
        rule_item("passcode-only", protection="akpu"), rule_item("system-bound", agrp="lockdown-identities"),
        rule_item("needs-authentication", access_control=["user-presence"]), rule_item("shared-group", ggrp="family"),
        rule_item("app-clip", clip=1), rule_item("deleted", secret=None, tomb=1, sync=1), rule_item("new"),
        rule_item("replaces"), rule_item("keeps-existing"), rule_item("identical"),
        rule_item("migrates-but-unusable", value=data(secure_enclave_key("every rule enclave")))]
    return document("every-rule", "iPhone15,2", "18.1", "1357", [("rules", [RULES_GROUP])], passwords + [
        internet(
            "ak", text("every-rule"), "2026-06-01T12:00:00Z", srvr="rule.example", acct="inferred-synchronizable",
            ptcl="htps", atyp="form", labl="Rule inferred-synchronizable", agrp="com.apple.cfnetwork"),
        chip.key_item(
            "aku", "2026-06-01T12:00:00Z", "hardware-key", data(chip.point), agrp=RULES_GROUP, extr=0, next=1, sens=1,
            asen=1, token="com.apple.setoken"),
    ])


def every_rule_target():
    """Return the device that decides which items of every-rule replace its own, and which of its own are preserved."""
    items = [
        rule_item("replaces", "2026-01-01T12:00:00Z", secret="target"),
        rule_item("keeps-existing", "2026-11-01T12:00:00Z", secret="target"), rule_item("identical"),
        rule_item("removed", secret="target"), rule_item("preserved", secret="put back", agrp="lockdown-identities"),
        rule_item("preserved", secret="never deleted", agrp="com.apple.security.ckks"),
        rule_item("preserved", secret="synchronized", sync=1)]
    return document("every-rule-target", "iPhone17,1", "18.1", "2468", [("rules", [RULES_GROUP])], items)


FIXTURES = {"old-phone": old_phone, "new-phone": new_phone, "hostile-names": malicious_names,
            "every-rule": every_rule, "every-rule-target": every_rule_target}


def validate(description):
    """Validate a description. Return False if jsonschema is not installed."""
    try:
        import jsonschema
    except ImportError:
        return False
    schema = json.loads(
        (FOLDER.parent / "docs" / "schemas" / "device-fixture-1.schema.json").read_text(encoding="utf-8")
    )
    jsonschema.validate(description, schema)
    return True


def main():
    """Write or compare the descriptions. Return 1 if a file differs, or if no description belongs to a file."""
    parser = argparse.ArgumentParser(description="Make the device descriptions, or check that they are up to date.")
    parser.add_argument("--check", action="store_true", help="write no files; exit 1 if one differs")
    arguments = parser.parse_args()
    outdated_names = []
    for name, make_description in FIXTURES.items():
        description = make_description()
        was_validated = validate(description)
        content = (json.dumps(description, ensure_ascii=True, indent=2) + "\n").encode("utf-8")
        path = FOLDER / "devices" / f"{name}.json"
        if not arguments.check:
            path.write_bytes(content)
        elif not path.exists() or path.read_bytes() != content:
            outdated_names.append(name)
        print(f"{name}: {len(description['items'])} items, {'valid' if was_validated else 'schema not checked'}")
    unknown_names = {path.stem for path in (FOLDER / "devices").iterdir()} - set(FIXTURES)
    for name in outdated_names:
        print(f"devices/{name}.json is out of date", file=sys.stderr)
    for name in sorted(unknown_names):
        print(f"devices/{name} is not made by this script", file=sys.stderr)
    return 1 if outdated_names or unknown_names else 0


if __name__ == "__main__":
    sys.exit(main())
