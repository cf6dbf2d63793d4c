#!/usr/bin/env python3
"""Makes Tests/TestSupport/certificate-vectors.json: keys and certificates in every form, with what a keychain keeps.

    make_certificate_vectors.py [FILE]

Keys, their encodings and the certificates come from the `openssl` command and the package `cryptography`; hashes from
hashlib; normalised names are spelled out below. Keys are random, so each run gives another file with the same cases.
Every name is invented and lies in a domain reserved for examples (RFC 2606).
"""

import base64
import datetime
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.name import _ASN1Type as Type
from cryptography.x509.oid import NameOID

TARGET = pathlib.Path(__file__).resolve().parents[1] / "TestSupport" / "certificate-vectors.json"
CURVES = {"P-256": ("prime256v1", 256), "P-384": ("secp384r1", 384), "P-521": ("secp521r1", 521)}
NOT_BEFORE = datetime.datetime(2026, 1, 1)
NOT_AFTER = datetime.datetime(2036, 1, 1)


def openssl(*arguments, given=b""):
    return subprocess.run(["openssl", *arguments], input=given, check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout


def text(content):
    return base64.b64encode(content).decode("ascii")


def der(tag, *parts):
    content = b"".join(parts)
    length = len(content)
    digits = length.to_bytes(max(1, (length.bit_length() + 7) // 8), "big")
    return bytes([tag]) + (digits if length < 0x80 else bytes([0x80 | len(digits)]) + digits) + content


def loaded(pem):
    # OpenSSL's older, smaller keys are below what the package wants to use; it reads them all the same.
    return serialization.load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True)


def rsa_key(bits):
    pem = openssl("genrsa", "-traditional", str(bits))
    private = openssl("rsa", "-traditional", "-outform", "DER", given=pem)
    public = openssl("rsa", "-RSAPublicKey_out", "-outform", "DER", given=pem)
    forms = {
        "PKCS#1 PEM": pem, "PKCS#1 DER": private,
        "PKCS#8 PEM": openssl("pkcs8", "-topk8", "-nocrypt", given=pem),
        "PKCS#8 DER": openssl("pkcs8", "-topk8", "-nocrypt", "-outform", "DER", given=pem),
    }
    public_forms = {
        "PKCS#1 PEM": openssl("rsa", "-RSAPublicKey_out", given=pem), "PKCS#1 DER": public,
        "SPKI PEM": openssl("pkey", "-pubout", given=pem),
        "SPKI DER": openssl("pkey", "-pubout", "-outform", "DER", given=pem),
    }
    return pem, {
        "name": f"RSA {bits}", "type": 42, "size": (bits + 7) // 8 * 8, "public_hex": public.hex(),
        "private_hex": private.hex(), "label_hex": hashlib.sha1(public).hexdigest(),
        "private": {k: text(v) for k, v in forms.items()}, "public": {k: text(v) for k, v in public_forms.items()},
    }


def ec_key(name):
    curve, bits = CURVES[name]
    with_parameters = openssl("ecparam", "-genkey", "-name", curve)
    pem = openssl("ec", given=with_parameters)
    key = loaded(pem)
    size = (bits + 7) // 8
    number = key.private_numbers().private_value.to_bytes(size, "big")
    point = key.public_key().public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    forms = {
        "SEC 1 PEM": pem, "SEC 1 PEM after the curve": with_parameters,
        "SEC 1 DER": openssl("ec", "-outform", "DER", given=pem),
        "SEC 1 DER without a public key": openssl("ec", "-no_public", "-outform", "DER", given=pem),
        "SEC 1 DER, compressed": openssl("ec", "-conv_form", "compressed", "-outform", "DER", given=pem),
        "PKCS#8 PEM": openssl("pkcs8", "-topk8", "-nocrypt", given=pem),
        "PKCS#8 DER": openssl("pkcs8", "-topk8", "-nocrypt", "-outform", "DER", given=pem),
        "raw": point + number,
    }
    public_forms = {
        "SPKI PEM": openssl("ec", "-pubout", given=pem),
        "SPKI DER": openssl("ec", "-pubout", "-outform", "DER", given=pem),
        "SPKI DER, compressed": openssl("ec", "-pubout", "-conv_form", "compressed", "-outform", "DER", given=pem),
        "raw": point,
    }
    return pem, {
        "name": name, "type": 73, "size": bits, "public_hex": point.hex(), "private_hex": (point + number).hex(),
        "label_hex": hashlib.sha1(point).hexdigest(),
        "private": {k: text(v) for k, v in forms.items()}, "public": {k: text(v) for k, v in public_forms.items()},
    }


def refused(rsa_pem, ec_pem):
    """Files that are no key of ours, each with the code of the error and a word of its reason."""
    secret = "pass:invented"
    p256, other = loaded(ec_pem), ec.generate_private_key(ec.SECP256R1())
    other_point = other.public_key().public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    number = p256.private_numbers().private_value.to_bytes(32, "big")
    curve = bytes.fromhex("06082a8648ce3d030107")
    swapped = der(0x30, der(2, b"\1"), der(4, number), der(0xA0, curve), der(0xA1, der(3, b"\0", other_point)))
    own_point = p256.public_key().public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    two_curves = der(0x30, der(2, b"\0"), der(0x30, bytes.fromhex("06072a8648ce3d0201"), bytes.fromhex("06052b81040022")),
                     der(4, der(0x30, der(2, b"\1"), der(4, number), der(0xA0, curve))))
    numbers = loaded(rsa_pem).private_numbers()
    stranger = rsa.generate_private_key(65537, 2048).private_numbers()

    def integer(value):
        return der(2, value.to_bytes(value.bit_length() // 8 + 1, "big"))

    def pkcs1(**changes):
        values = {"n": numbers.public_numbers.n, "e": numbers.public_numbers.e, "d": numbers.d, "p": numbers.p,
                  "q": numbers.q, "dp": numbers.dmp1, "dq": numbers.dmq1, "qi": numbers.iqmp, **changes}
        return der(0x30, der(2, b"\0"), *map(integer, values.values()))

    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551

    def sec1(value):
        return der(0x30, der(2, b"\1"), der(4, value.to_bytes(32, "big")), der(0xA0, curve))

    chain = openssl("req", "-x509", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                    "/CN=refused.example.org", "-keyout", "/dev/null")
    cases = [
        ("a key behind a password, old form", "encrypted", openssl("rsa", "-traditional", "-aes128", "-passout", secret, given=rsa_pem)),
        ("a key on a curve behind a password, old form", "encrypted", openssl("ec", "-aes256", "-passout", secret, given=ec_pem)),
        ("PKCS#8 behind a password, PEM", "encrypted", openssl("pkcs8", "-topk8", "-passout", secret, given=rsa_pem)),
        ("PKCS#8 behind a password, DER", "encrypted", openssl("pkcs8", "-topk8", "-outform", "DER", "-passout", secret, given=ec_pem)),
        ("a certificate in PEM", "unexpectedKind", chain),
        ("a certificate in DER", "unexpectedKind", openssl("x509", "-outform", "DER", given=chain)),
        ("two keys", "unexpectedKind", rsa_pem + ec_pem),
        ("a PKCS#12 bundle", "unsupported", openssl("pkcs12", "-export", "-nocerts", "-inkey", "/dev/stdin", "-passout", secret, given=ec_pem)),
        ("an Ed25519 key", "unsupported", openssl("genpkey", "-algorithm", "ed25519")),
        ("an Ed25519 public key", "unsupported", openssl("pkey", "-pubout", given=openssl("genpkey", "-algorithm", "ed25519"))),
        ("an RSA key for PSS alone", "unsupported", openssl("genpkey", "-algorithm", "rsa-pss", "-pkeyopt", "rsa_keygen_bits:1024")),
        ("an RSA key of three primes", "unsupported", openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-pkeyopt", "rsa_keygen_primes:3")),
        ("a key on secp256k1", "unsupported", openssl("ec", given=openssl("ecparam", "-genkey", "-name", "secp256k1"))),
        ("a key on secp224r1", "unsupported", openssl("pkcs8", "-topk8", "-nocrypt", given=openssl("ecparam", "-genkey", "-name", "secp224r1"))),
        ("a curve that is spelled out", "unsupported", openssl("ec", "-param_enc", "explicit", given=ec_pem)),
        ("a public key on a curve that is spelled out", "unsupported", openssl("ec", "-pubout", "-param_enc", "explicit", "-outform", "DER", given=ec_pem)),
        ("an OpenSSH key", "unsupported", p256.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())),
        ("another key's public half, SEC 1", "mismatch", swapped),
        ("another key's public half, raw", "mismatch", other_point + number),
        ("two curves in one key", "mismatch", two_curves),
        ("another modulus", "mismatch", pkcs1(n=stranger.public_numbers.n)),
        ("another private exponent", "mismatch", pkcs1(d=numbers.d - 2)),
        ("another prime", "mismatch", pkcs1(p=stranger.p)),
        ("another first exponent", "mismatch", pkcs1(dp=numbers.dmp1 + 2)),
        ("another second exponent", "mismatch", pkcs1(dq=numbers.dmq1 + 2)),
        ("another coefficient", "mismatch", pkcs1(qi=numbers.iqmp + 1)),
        ("a prime that is 1", "mismatch", pkcs1(p=1, q=numbers.public_numbers.n)),
        ("an even modulus", "malformed", pkcs1(n=numbers.public_numbers.n - 1)),
        ("an exponent of 1", "malformed", pkcs1(e=1)),
        ("a modulus of 0", "overLimit", pkcs1(n=0)),
        ("a private number of 0", "malformed", sec1(0)),
        ("a private number that is the order", "malformed", sec1(order)),
        ("a point that is not on the curve", "malformed", own_point[:-1] + bytes([own_point[-1] ^ 1])),
        ("no curve at all", "malformed", der(0x30, der(2, b"\1"), der(4, number))),
        ("text", "malformed", b"no key at all\n"),
        ("nothing", "malformed", b""),
        ("a PEM block without an end", "malformed", ec_pem.split(b"-----END")[0]),
        ("a PEM block that ends as another", "malformed", ec_pem.replace(b"END EC", b"END RSA")),
        ("a PEM block with a letter that is none of base64", "malformed", ec_pem.replace(b"\nM", b"\n!", 1)),
        ("an empty PEM block", "malformed", b"-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"),
    ]
    return [{"name": name, "code": code, "file": text(content)} for name, code, content in cases]


# Subject as (identifier, ASN.1 type, text, text as a keychain normalises it); one list for each set of attributes.
PRINTABLE, UTF8 = Type.PrintableString, Type.UTF8String
NAMES = {
    "printable": [
        [(NameOID.COUNTRY_NAME, PRINTABLE, "DE", "DE")],
        [(NameOID.ORGANIZATION_NAME, PRINTABLE, "  Example   Works ", "EXAMPLE WORKS")],
        [(NameOID.COMMON_NAME, PRINTABLE, "mail.Example.org", "MAIL.EXAMPLE.ORG")],
    ],
    "utf8": [
        [(NameOID.ORGANIZATION_NAME, UTF8, "Beispiel  Gmbh", "Beispiel  Gmbh")],
        [(NameOID.COMMON_NAME, UTF8, "Änna  von Beispiel", "Änna  von Beispiel")],
    ],
    "several in one set": [
        [(NameOID.COMMON_NAME, UTF8, "two.example.org", "two.example.org"),
         (NameOID.ORGANIZATIONAL_UNIT_NAME, PRINTABLE, "Unit  2", "UNIT 2")],
    ],
    "unit": [
        [(NameOID.ORGANIZATION_NAME, UTF8, "Example", "Example")],
        [(NameOID.ORGANIZATIONAL_UNIT_NAME, UTF8, "Test Unit", "Test Unit")],
    ],
    "mail": [[(NameOID.EMAIL_ADDRESS, Type.IA5String, "Anna@Example.org", "Anna@Example.org")]],
    # Long enough that shortening it changes the length of its length.
    "long": [[(NameOID.COMMON_NAME, PRINTABLE, "long " + " " * 20 + "x" * 32, "LONG " + "X" * 32),
              (NameOID.ORGANIZATION_NAME, PRINTABLE, "o" * 40 + " " * 20 + "p", "O" * 40 + " P")]],
    "empty": [],
}


def name(parts):
    return x509.Name([x509.RelativeDistinguishedName([x509.NameAttribute(oid, given, _type=kind)
                                                      for oid, kind, given, _ in part]) for part in parts])


def normalised(parts):
    tags = {PRINTABLE: 0x13, UTF8: 0x0C, Type.IA5String: 0x16}

    def oid(identifier):
        arcs = [int(arc) for arc in identifier.dotted_string.split(".")]
        out = [bytes([arcs[0] * 40 + arcs[1]])]
        for arc in arcs[2:]:
            digits = [arc & 0x7F]
            while arc := arc >> 7:
                digits.append(0x80 | arc & 0x7F)
            out.append(bytes(reversed(digits)))
        return der(6, *out)

    # A set keeps the order it had in the certificate, which is that of the encodings before normalising.
    content = b""
    for part in parts:
        pairs = [(der(0x30, oid(i), der(tags[k], given.encode())), der(0x30, oid(i), der(tags[k], kept.encode())))
                 for i, k, given, kept in part]
        content += der(0x31, *(kept for _, kept in sorted(pairs)))
    return content


def certificate(title, subject, issuer, key, signer, serial, summary, skid=True, algorithm=hashes.SHA256()):
    builder = (x509.CertificateBuilder().subject_name(name(NAMES[subject])).issuer_name(name(NAMES[issuer]))
               .public_key(key.public_key()).serial_number(serial).not_valid_before(NOT_BEFORE)
               .not_valid_after(NOT_AFTER))
    identifier = None
    if skid:
        extension = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        identifier = extension.digest.hex()
        builder = builder.add_extension(extension, critical=False)
    made = builder.sign(signer, algorithm)
    return described(title, made.public_bytes(serialization.Encoding.DER), key, 3, subject, issuer, serial, identifier,
                     summary)


def described(title, content, key, version, subject, issuer, serial, identifier, summary):
    public = key.public_key()
    if isinstance(public, rsa.RSAPublicKey):
        bits = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.PKCS1)
        kind = (42, (public.key_size + 7) // 8 * 8)
    elif isinstance(public, ec.EllipticCurvePublicKey):
        bits = public.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
        kind = (73, public.key_size)
    else:
        bits = public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        kind = (0, 0)
    return {
        "name": title, "der_hex": content.hex(), "version": version, "subject_hex": normalised(NAMES[subject]).hex(),
        "issuer_hex": normalised(NAMES[issuer]).hex(),
        "serial_hex": serial.to_bytes(serial.bit_length() // 8 + 1, "big").hex(), "key_id_hex": identifier,
        "key_hash_hex": hashlib.sha1(bits).hexdigest(), "key_type": kind[0], "key_size": kind[1], "summary": summary,
        "pem": openssl("x509", "-inform", "DER", given=content).decode("ascii"),
    }


def first_version(key_pem):
    """A certificate of version 1, which the package does not make."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "key.pem"
        path.write_bytes(key_pem)
        request = openssl("req", "-new", "-key", str(path), "-subj", "/O=Example/OU=Test Unit", "-utf8")
        return openssl("x509", "-req", "-signkey", str(path), "-set_serial", "127", "-days", "3650", "-outform", "DER",
                       given=request)


def main():
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    keys = [rsa_key(bits) for bits in (1024, 1031, 2048, 3072)] + [ec_key(name) for name in CURVES]
    pems = {entry["name"]: pem for pem, entry in keys}
    small, big = loaded(pems["RSA 2048"]), loaded(pems["P-256"])
    middle, large = loaded(pems["P-384"]), loaded(pems["P-521"])
    certificates = [
        certificate("RSA, printable names", "printable", "printable", small, small, 0x1234, "mail.Example.org"),
        certificate("P-256 of an RSA issuer", "utf8", "printable", big, small, 0x80FF, "Änna  von Beispiel"),
        certificate("P-384, two attributes in one set", "several in one set", "utf8", middle, big, 1, "two.example.org"),
        certificate("P-521, a unit, the longest serial number", "unit", "unit", large, large, (1 << 159) - 5, "Test Unit"),
        certificate("no key identifier, a mail address", "mail", "long", big, big, 0x7F, "Anna@Example.org", skid=False),
        certificate("long names that become shorter", "long", "long", big, big, 0x80, "long " + " " * 20 + "x" * 32),
        certificate("no subject", "empty", "utf8", big, big, 0x100, None),
        (lambda key: certificate("Ed25519", "unit", "unit", key, key, 77, "Test Unit", algorithm=None))(
            ed25519.Ed25519PrivateKey.generate()),
        described("version 1", first_version(pems["P-256"]), big, 1, "unit", "unit", 127, None, "Test Unit"),
    ]
    document = {
        "how": "made by Tests/Support/make_certificate_vectors.py: " + openssl("version").decode().strip(),
        "keys": [entry for _, entry in keys], "refused": refused(pems["RSA 2048"], pems["P-256"]),
        "certificates": certificates,
    }
    target.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
