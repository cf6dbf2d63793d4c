#!/usr/bin/env python3
"""Make Tests/TestSupport/certificate-vectors.json: keys and certificates in every format, with their attributes.

    make_certificate_vectors.py [FILE]

The keys, their encodings and the certificates come from `openssl` and `cryptography`, and the hashes from hashlib.
Normalized names are written out below. The keys are random, so each run makes a different file with the same cases. All
names are invented, and are in domains that are reserved for examples (RFC 2606).
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
# The identifier of P-256 in DER, and the order of its group.
P256_IDENTIFIER = bytes.fromhex("06082a8648ce3d030107")
P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
# The password of encrypted keys, as an option of `openssl`.
KEY_PASSWORD = "pass:invented"
NOT_BEFORE = datetime.datetime(2026, 1, 1)
NOT_AFTER = datetime.datetime(2036, 1, 1)


def openssl(*arguments, stdin=b""):
    """Return the output of an `openssl` command."""
    return subprocess.run(["openssl", *arguments], input=stdin, check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout


def base64_text(content):
    """Return bytes as base64 text."""
    return base64.b64encode(content).decode("ascii")


def der(tag, *parts):
    """Return a DER element."""
    content = b"".join(parts)
    length = len(content)
    digits = length.to_bytes(max(1, (length.bit_length() + 7) // 8), "big")
    return bytes([tag]) + (digits if length < 0x80 else bytes([0x80 | len(digits)]) + digits) + content


def load_private_key(pem):
    """Return the key in PEM."""
    # `cryptography` rejects small keys, unless the check is skipped.
    return serialization.load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True)


def rsa_key(bits):
    """Return an RSA key in PEM, and its entry with every format."""
    pem = openssl("genrsa", "-traditional", str(bits))
    private = openssl("rsa", "-traditional", "-outform", "DER", stdin=pem)
    public = openssl("rsa", "-RSAPublicKey_out", "-outform", "DER", stdin=pem)
    private_formats = {
        "PKCS#1 PEM": pem, "PKCS#1 DER": private,
        "PKCS#8 PEM": openssl("pkcs8", "-topk8", "-nocrypt", stdin=pem),
        "PKCS#8 DER": openssl("pkcs8", "-topk8", "-nocrypt", "-outform", "DER", stdin=pem),
    }
    public_formats = {
        "PKCS#1 PEM": openssl("rsa", "-RSAPublicKey_out", stdin=pem), "PKCS#1 DER": public,
        "SPKI PEM": openssl("pkey", "-pubout", stdin=pem),
        "SPKI DER": openssl("pkey", "-pubout", "-outform", "DER", stdin=pem),
    }
    return pem, {
        "name": f"RSA {bits}",
        "type": 42,
        "size": (bits + 7) // 8 * 8,
        "public_hex": public.hex(),
        "private_hex": private.hex(),
        "label_hex": hashlib.sha1(public).hexdigest(),
        "private": {k: base64_text(v) for k, v in private_formats.items()},
        "public": {k: base64_text(v) for k, v in public_formats.items()},
    }


def ec_key(name):
    """Return a key on a curve in PEM, and its entry with every format."""
    curve, bits = CURVES[name]
    with_parameters = openssl("ecparam", "-genkey", "-name", curve)
    pem = openssl("ec", stdin=with_parameters)
    key = load_private_key(pem)
    size = (bits + 7) // 8
    number = key.private_numbers().private_value.to_bytes(size, "big")
    point = key.public_key().public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    private_formats = {
        "SEC 1 PEM": pem, "SEC 1 PEM after the curve": with_parameters,
        "SEC 1 DER": openssl("ec", "-outform", "DER", stdin=pem),
        "SEC 1 DER without a public key": openssl("ec", "-no_public", "-outform", "DER", stdin=pem),
        "SEC 1 DER, compressed": openssl("ec", "-conv_form", "compressed", "-outform", "DER", stdin=pem),
        "PKCS#8 PEM": openssl("pkcs8", "-topk8", "-nocrypt", stdin=pem),
        "PKCS#8 DER": openssl("pkcs8", "-topk8", "-nocrypt", "-outform", "DER", stdin=pem),
        "raw": point + number,
    }
    public_formats = {
        "SPKI PEM": openssl("ec", "-pubout", stdin=pem),
        "SPKI DER": openssl("ec", "-pubout", "-outform", "DER", stdin=pem),
        "SPKI DER, compressed": openssl("ec", "-pubout", "-conv_form", "compressed", "-outform", "DER", stdin=pem),
        "raw": point,
    }
    return pem, {
        "name": name,
        "type": 73,
        "size": bits,
        "public_hex": point.hex(),
        "private_hex": (point + number).hex(),
        "label_hex": hashlib.sha1(point).hexdigest(),
        "private": {k: base64_text(v) for k, v in private_formats.items()},
        "public": {k: base64_text(v) for k, v in public_formats.items()},
    }


def rejected_keys(rsa_pem, ec_pem):
    """Return files that are not supported keys, with the expected error code."""
    return [
        {"name": name, "code": code, "file": base64_text(content)}
        for code, cases in (
            ("encrypted", encrypted_keys(rsa_pem, ec_pem)), ("unexpectedKind", other_kinds(rsa_pem, ec_pem)),
            ("unsupported", unsupported_keys(ec_pem)), ("mismatch", contradicting_keys(rsa_pem, ec_pem)),
            ("malformed", malformed_keys(rsa_pem, ec_pem)), ("overLimit", [("a modulus of 0", pkcs1(rsa_pem, n=0))]))
        for name, content in cases
    ]


def encrypted_keys(rsa_pem, ec_pem):
    """Yield keys that are encrypted with a password."""
    yield (
        "an encrypted RSA key, traditional PEM",
        openssl("rsa", "-traditional", "-aes128", "-passout", KEY_PASSWORD, stdin=rsa_pem))
    yield (
        "an encrypted EC key, traditional PEM",
        openssl("ec", "-aes256", "-passout", KEY_PASSWORD, stdin=ec_pem))
    yield "an encrypted PKCS#8 key, PEM", openssl("pkcs8", "-topk8", "-passout", KEY_PASSWORD, stdin=rsa_pem)
    yield (
        "an encrypted PKCS#8 key, DER",
        openssl("pkcs8", "-topk8", "-outform", "DER", "-passout", KEY_PASSWORD, stdin=ec_pem))


def other_kinds(rsa_pem, ec_pem):
    """Yield certificates, and a file with two keys."""
    certificate = openssl(
        "req", "-x509", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
        "/CN=refused.example.org", "-keyout", "/dev/null")
    yield "a certificate in PEM", certificate
    yield "a certificate in DER", openssl("x509", "-outform", "DER", stdin=certificate)
    yield "two keys", rsa_pem + ec_pem


def unsupported_keys(ec_pem):
    """Yield keys of other algorithms, on other curves, and in other containers."""
    yield (
        "a PKCS#12 bundle",
        openssl("pkcs12", "-export", "-nocerts", "-inkey", "/dev/stdin", "-passout", KEY_PASSWORD, stdin=ec_pem))
    yield "an Ed25519 key", openssl("genpkey", "-algorithm", "ed25519")
    yield "an Ed25519 public key", openssl("pkey", "-pubout", stdin=openssl("genpkey", "-algorithm", "ed25519"))
    yield "an RSA key only for PSS", openssl("genpkey", "-algorithm", "rsa-pss", "-pkeyopt", "rsa_keygen_bits:1024")
    yield (
        "an RSA key with three primes",
        openssl(
            "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-pkeyopt", "rsa_keygen_primes:3"))
    yield "a key on secp256k1", openssl("ec", stdin=openssl("ecparam", "-genkey", "-name", "secp256k1"))
    yield (
        "a key on secp224r1",
        openssl("pkcs8", "-topk8", "-nocrypt", stdin=openssl("ecparam", "-genkey", "-name", "secp224r1")))
    yield "a private key with explicit curve parameters", openssl("ec", "-param_enc", "explicit", stdin=ec_pem)
    yield (
        "a public key with explicit curve parameters",
        openssl("ec", "-pubout", "-param_enc", "explicit", "-outform", "DER", stdin=ec_pem))
    yield (
        "an OpenSSH key",
        load_private_key(ec_pem).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()))


def contradicting_keys(rsa_pem, ec_pem):
    """Yield keys with a part of another key, or with a number that contradicts the others."""
    number = private_number(ec_pem)
    other_point = public_point(ec.generate_private_key(ec.SECP256R1()))
    yield (
        "the public key of another private key, SEC 1",
        der(0x30, der(2, b"\1"), der(4, number), der(0xA0, P256_IDENTIFIER), der(0xA1, der(3, b"\0", other_point))))
    yield "the public key of another private key, raw", other_point + number
    # PKCS#8 names P-384, and the key in it P-256.
    yield (
        "two curves in one key",
        der(0x30, der(2, b"\0"), der(0x30, bytes.fromhex("06072a8648ce3d0201"), bytes.fromhex("06052b81040022")),
            der(4, der(0x30, der(2, b"\1"), der(4, number), der(0xA0, P256_IDENTIFIER)))))
    numbers = load_private_key(rsa_pem).private_numbers()
    other_numbers = rsa.generate_private_key(65537, 2048).private_numbers()
    yield "another modulus", pkcs1(rsa_pem, n=other_numbers.public_numbers.n)
    yield "another private exponent", pkcs1(rsa_pem, d=numbers.d - 2)
    yield "another prime", pkcs1(rsa_pem, p=other_numbers.p)
    yield "another first CRT exponent", pkcs1(rsa_pem, dp=numbers.dmp1 + 2)
    yield "another second CRT exponent", pkcs1(rsa_pem, dq=numbers.dmq1 + 2)
    yield "another CRT coefficient", pkcs1(rsa_pem, qi=numbers.iqmp + 1)
    yield "a prime that is 1", pkcs1(rsa_pem, p=1, q=numbers.public_numbers.n)


def malformed_keys(rsa_pem, ec_pem):
    """Yield keys with impossible numbers, and files without a key."""
    modulus = load_private_key(rsa_pem).private_numbers().public_numbers.n
    yield "an even modulus", pkcs1(rsa_pem, n=modulus - 1)
    yield "an exponent of 1", pkcs1(rsa_pem, e=1)
    yield "a private scalar of 0", sec1(0)
    yield "a private scalar equal to the order of the group", sec1(P256_ORDER)
    point = public_point(load_private_key(ec_pem))
    yield "a point that is not on the curve", point[:-1] + bytes([point[-1] ^ 1])
    yield "no curve", der(0x30, der(2, b"\1"), der(4, private_number(ec_pem)))
    yield "a text without a key", b"no key at all\n"
    yield "an empty file", b""
    yield "a PEM block without an end", ec_pem.split(b"-----END")[0]
    yield "a PEM block with different labels at its start and end", ec_pem.replace(b"END EC", b"END RSA")
    yield "a PEM block with an invalid base64 character", ec_pem.replace(b"\nM", b"\n!", 1)
    yield "an empty PEM block", b"-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"


def private_number(ec_pem):
    """Return the private scalar of a P-256 key, in 32 bytes."""
    return load_private_key(ec_pem).private_numbers().private_value.to_bytes(32, "big")


def public_point(key):
    """Return the uncompressed point of a key on a curve."""
    return key.public_key().public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)


def sec1(number):
    """Return a P-256 key in SEC 1 with a private number."""
    return der(0x30, der(2, b"\1"), der(4, number.to_bytes(32, "big")), der(0xA0, P256_IDENTIFIER))


def pkcs1(rsa_pem, **changes):
    """Return an RSA key in PKCS#1 with some of its numbers changed."""
    numbers = load_private_key(rsa_pem).private_numbers()
    values = {"n": numbers.public_numbers.n, "e": numbers.public_numbers.e, "d": numbers.d, "p": numbers.p,
              "q": numbers.q, "dp": numbers.dmp1, "dq": numbers.dmq1, "qi": numbers.iqmp, **changes}
    integers = (der(2, value.to_bytes(value.bit_length() // 8 + 1, "big")) for value in values.values())
    return der(0x30, der(2, b"\0"), *integers)


# Subjects as (identifier, ASN.1 type, text, text as a keychain normalizes it), with a list for each set of attributes.
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
    # Normalization makes the name so much shorter that its length needs fewer bytes.
    "long": [[(NameOID.COMMON_NAME, PRINTABLE, "long " + " " * 20 + "x" * 32, "LONG " + "X" * 32),
              (NameOID.ORGANIZATION_NAME, PRINTABLE, "o" * 40 + " " * 20 + "p", "O" * 40 + " P")]],
    "empty": [],
}


def name(parts):
    """Return an X.509 name."""
    return x509.Name([x509.RelativeDistinguishedName([x509.NameAttribute(oid, value, _type=kind)
                                                      for oid, kind, value, _ in part]) for part in parts])


def normalized_name(parts):
    """Return the DER encoding of a name as a keychain normalizes it."""
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

    # A set keeps the order of the certificate, which is that of the encodings before normalization.
    content = b""
    for part in parts:
        pairs = [(der(0x30, oid(i), der(tags[k], given.encode())), der(0x30, oid(i), der(tags[k], normalized.encode())))
                 for i, k, given, normalized in part]
        content += der(0x31, *(normalized for _, normalized in sorted(pairs)))
    return content


def certificate(title, subject, issuer, key, signer, serial, summary, skid=True, algorithm=hashes.SHA256()):
    """Return the entry of a new certificate."""
    builder = (x509.CertificateBuilder().subject_name(name(NAMES[subject])).issuer_name(name(NAMES[issuer]))
               .public_key(key.public_key()).serial_number(serial).not_valid_before(NOT_BEFORE)
               .not_valid_after(NOT_AFTER))
    identifier = None
    if skid:
        extension = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        identifier = extension.digest.hex()
        builder = builder.add_extension(extension, critical=False)
    signed = builder.sign(signer, algorithm)
    return certificate_entry(
        title, signed.public_bytes(serialization.Encoding.DER), key, 3, subject, issuer, serial, identifier, summary
    )


def certificate_entry(title, content, key, version, subject, issuer, serial, identifier, summary):
    """Return the entry of a certificate."""
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
        "name": title,
        "der_hex": content.hex(),
        "version": version,
        "subject_hex": normalized_name(NAMES[subject]).hex(),
        "issuer_hex": normalized_name(NAMES[issuer]).hex(),
        "serial_hex": serial.to_bytes(serial.bit_length() // 8 + 1, "big").hex(),
        "key_id_hex": identifier,
        "key_hash_hex": hashlib.sha1(bits).hexdigest(),
        "key_type": kind[0],
        "key_size": kind[1],
        "summary": summary,
        "pem": openssl("x509", "-inform", "DER", stdin=content).decode("ascii"),
    }


def version_1_certificate(key_pem):
    """Return a certificate of version 1, which `cryptography` does not make."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "key.pem"
        path.write_bytes(key_pem)
        request = openssl("req", "-new", "-key", str(path), "-subj", "/O=Example/OU=Test Unit", "-utf8")
        return openssl("x509", "-req", "-signkey", str(path), "-set_serial", "127", "-days", "3650", "-outform", "DER",
                       stdin=request)


def main():
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    keys = [rsa_key(bits) for bits in (1024, 1031, 2048, 3072)] + [ec_key(name) for name in CURVES]
    pems = {entry["name"]: pem for pem, entry in keys}
    rsa_2048, p256 = load_private_key(pems["RSA 2048"]), load_private_key(pems["P-256"])
    p384, p521 = load_private_key(pems["P-384"]), load_private_key(pems["P-521"])
    certificates = [
        certificate("RSA, printable names", "printable", "printable", rsa_2048, rsa_2048, 0x1234, "mail.Example.org"),
        certificate("P-256 of an RSA issuer", "utf8", "printable", p256, rsa_2048, 0x80FF, "Änna  von Beispiel"),
        certificate("P-384, two attributes in one set", "several in one set", "utf8", p384, p256, 1, "two.example.org"),
        certificate(
            "P-521, a unit, the longest serial number", "unit", "unit", p521, p521, (1 << 159) - 5, "Test Unit"
        ),
        certificate(
            "no key identifier, a mail address", "mail", "long", p256, p256, 0x7F, "Anna@Example.org", skid=False
        ),
        certificate("long names that become shorter", "long", "long", p256, p256, 0x80, "long " + " " * 20 + "x" * 32),
        certificate("no subject", "empty", "utf8", p256, p256, 0x100, None),
        (lambda key: certificate("Ed25519", "unit", "unit", key, key, 77, "Test Unit", algorithm=None))(
            ed25519.Ed25519PrivateKey.generate()
        ),
        certificate_entry(
            "version 1", version_1_certificate(pems["P-256"]), p256, 1, "unit", "unit", 127, None, "Test Unit"
        ),
    ]
    document = {
        "how": "made by Tests/Support/make_certificate_vectors.py: " + openssl("version").decode().strip(),
        "keys": [entry for _, entry in keys], "refused": rejected_keys(pems["RSA 2048"], pems["P-256"]),
        "certificates": certificates,
    }
    target.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
