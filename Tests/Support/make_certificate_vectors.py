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
RSA_BIT_COUNTS = (1024, 1031, 2048, 3072)
CURVES = {"P-256": ("prime256v1", 256), "P-384": ("secp384r1", 384), "P-521": ("secp521r1", 521)}
# The key types of keychain items: kSecAttrKeyTypeRSA and kSecAttrKeyTypeECSECPrimeRandom.
RSA_TYPE, EC_TYPE, OTHER_TYPE = 42, 73, 0
# Tags of DER elements.
INTEGER, BIT_STRING, OCTET_STRING, OBJECT_IDENTIFIER, SEQUENCE, SET = 0x02, 0x03, 0x04, 0x06, 0x30, 0x31
PARAMETERS, PUBLIC_KEY = 0xA0, 0xA1
# Object identifiers in DER.
P256_IDENTIFIER = bytes.fromhex("06082a8648ce3d030107")
P384_IDENTIFIER = bytes.fromhex("06052b81040022")
EC_PUBLIC_KEY_IDENTIFIER = bytes.fromhex("06072a8648ce3d0201")
# The order of the group of P-256.
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
    """Return the private key that a PEM text contains."""
    # `cryptography` rejects small keys, unless the check is skipped.
    return serialization.load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True)


def key_entry(name, key_type, size, public, private, private_formats, public_formats):
    """Return the entry of a key in the file of vectors, with each format as base64 text."""
    return {
        "name": name,
        "type": key_type,
        "size": size,
        "public_hex": public.hex(),
        "private_hex": private.hex(),
        "label_hex": hashlib.sha1(public).hexdigest(),
        "private": {format_name: base64_text(content) for format_name, content in private_formats.items()},
        "public": {format_name: base64_text(content) for format_name, content in public_formats.items()},
    }


def rounded_up_to_multiple_of_8(bit_count):
    """Return a number of bits rounded up to a multiple of 8."""
    return (bit_count + 7) // 8 * 8


def make_rsa_key(bit_count):
    """Make an RSA key. Return it in PEM, and its entry."""
    pem = openssl("genrsa", "-traditional", str(bit_count))
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
    size = rounded_up_to_multiple_of_8(bit_count)
    return pem, key_entry(f"RSA {bit_count}", RSA_TYPE, size, public, private, private_formats, public_formats)


def make_ec_key(name):
    """Make a key on a curve. Return it in PEM, and its entry."""
    curve, bit_count = CURVES[name]
    with_parameters = openssl("ecparam", "-genkey", "-name", curve)
    pem = openssl("ec", stdin=with_parameters)
    key = load_private_key(pem)
    scalar = key.private_numbers().private_value.to_bytes(rounded_up_to_multiple_of_8(bit_count) // 8, "big")
    point = public_point(key)
    private_formats = {
        "SEC 1 PEM": pem, "SEC 1 PEM after the curve": with_parameters,
        "SEC 1 DER": openssl("ec", "-outform", "DER", stdin=pem),
        "SEC 1 DER without a public key": openssl("ec", "-no_public", "-outform", "DER", stdin=pem),
        "SEC 1 DER, compressed": openssl("ec", "-conv_form", "compressed", "-outform", "DER", stdin=pem),
        "PKCS#8 PEM": openssl("pkcs8", "-topk8", "-nocrypt", stdin=pem),
        "PKCS#8 DER": openssl("pkcs8", "-topk8", "-nocrypt", "-outform", "DER", stdin=pem),
        "raw": point + scalar,
    }
    public_formats = {
        "SPKI PEM": openssl("ec", "-pubout", stdin=pem),
        "SPKI DER": openssl("ec", "-pubout", "-outform", "DER", stdin=pem),
        "SPKI DER, compressed": openssl("ec", "-pubout", "-conv_form", "compressed", "-outform", "DER", stdin=pem),
        "raw": point,
    }
    return pem, key_entry(name, EC_TYPE, bit_count, point, point + scalar, private_formats, public_formats)


def rejected_keys(rsa_pem, ec_pem):
    """Return files that are not supported keys, with the expected error code."""
    files_by_code = {
        "encrypted": encrypted_keys(rsa_pem, ec_pem),
        "unexpectedKind": other_kinds(rsa_pem, ec_pem),
        "unsupported": unsupported_keys(ec_pem),
        "mismatch": contradicting_keys(rsa_pem, ec_pem),
        "malformed": malformed_keys(rsa_pem, ec_pem),
        "overLimit": [("a modulus of 0", pkcs1(rsa_pem, n=0))],
    }
    return [
        {"name": name, "code": code, "file": base64_text(content)}
        for code, files in files_by_code.items()
        for name, content in files
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
    scalar = private_scalar(ec_pem)
    other_point = public_point(ec.generate_private_key(ec.SECP256R1()))
    other_public_key = der(PUBLIC_KEY, der(BIT_STRING, b"\0", other_point))
    yield "the public key of another private key, SEC 1", sec1(scalar, other_public_key)
    yield "the public key of another private key, raw", other_point + scalar
    # PKCS#8 names P-384, and the key in it names P-256.
    p384_algorithm = der(SEQUENCE, EC_PUBLIC_KEY_IDENTIFIER, P384_IDENTIFIER)
    p256_key = der(OCTET_STRING, sec1(scalar))
    yield "two curves in one key", der(SEQUENCE, der(INTEGER, b"\0"), p384_algorithm, p256_key)
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
    yield "a private scalar of 0", sec1(bytes(32))
    yield "a private scalar equal to the order of the group", sec1(P256_ORDER.to_bytes(32, "big"))
    point = public_point(load_private_key(ec_pem))
    yield "a point that is not on the curve", point[:-1] + bytes([point[-1] ^ 1])
    yield "no curve", der(SEQUENCE, der(INTEGER, b"\1"), der(OCTET_STRING, private_scalar(ec_pem)))
    yield "a text without a key", b"no key at all\n"
    yield "an empty file", b""
    yield "a PEM block without an end", ec_pem.split(b"-----END")[0]
    yield "a PEM block with different labels at its start and end", ec_pem.replace(b"END EC", b"END RSA")
    yield "a PEM block with an invalid base64 character", ec_pem.replace(b"\nM", b"\n!", 1)
    yield "an empty PEM block", b"-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"


def private_scalar(ec_pem):
    """Return the private scalar of a P-256 key, in 32 bytes."""
    return load_private_key(ec_pem).private_numbers().private_value.to_bytes(32, "big")


def public_point(key):
    """Return the uncompressed point of a key on a curve."""
    return key.public_key().public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)


def sec1(scalar, public_key=b""):
    """Return a P-256 key in SEC 1, with its public key if there is one."""
    return der(
        SEQUENCE, der(INTEGER, b"\1"), der(OCTET_STRING, scalar), der(PARAMETERS, P256_IDENTIFIER), public_key)


def pkcs1(rsa_pem, **changes):
    """Return an RSA key in PKCS#1 with some of its numbers changed."""
    numbers = load_private_key(rsa_pem).private_numbers()
    values = {"n": numbers.public_numbers.n, "e": numbers.public_numbers.e, "d": numbers.d, "p": numbers.p,
              "q": numbers.q, "dp": numbers.dmp1, "dq": numbers.dmq1, "qi": numbers.iqmp, **changes}
    integers = (der(INTEGER, unsigned_bytes(value)) for value in values.values())
    return der(SEQUENCE, der(INTEGER, b"\0"), *integers)


def unsigned_bytes(number):
    """Return the contents of a DER integer, whose first bit is 0 because the number is not negative."""
    return number.to_bytes(number.bit_length() // 8 + 1, "big")


# A name is a list of sets. Each set is a list of attributes: (identifier, ASN.1 type, text, normalized text).
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


def x509_name(sets):
    """Return an X.509 name of `cryptography`."""
    return x509.Name([
        x509.RelativeDistinguishedName([
            x509.NameAttribute(identifier, text, _type=string_type) for identifier, string_type, text, _ in attributes
        ])
        for attributes in sets
    ])


def encoded_identifier(identifier):
    """Return the DER encoding of an object identifier."""
    numbers = [int(number) for number in identifier.dotted_string.split(".")]
    encoded_numbers = [bytes([numbers[0] * 40 + numbers[1]])]
    for number in numbers[2:]:
        # Seven bits in each byte. All bytes but the last have the highest bit set.
        digits = [number & 0x7F]
        while number := number >> 7:
            digits.append(0x80 | number & 0x7F)
        encoded_numbers.append(bytes(reversed(digits)))
    return der(OBJECT_IDENTIFIER, *encoded_numbers)


def normalized_name(sets):
    """Return the DER encoding of a name as a keychain normalizes it."""
    tags = {PRINTABLE: 0x13, UTF8: 0x0C, Type.IA5String: 0x16}

    def encoded_attribute(identifier, string_type, text):
        return der(SEQUENCE, encoded_identifier(identifier), der(tags[string_type], text.encode()))

    # A certificate sorts the attributes of a set by their encodings. The normalized name keeps that order.
    content = b""
    for attributes in sets:
        pairs = sorted(
            (encoded_attribute(identifier, string_type, text), encoded_attribute(identifier, string_type, normalized))
            for identifier, string_type, text, normalized in attributes
        )
        content += der(SET, *(normalized for _, normalized in pairs))
    return content


def make_certificate(
    title, subject, issuer, key, signer, serial, summary, has_key_identifier=True, digest=hashes.SHA256()
):
    """Make a certificate of version 3, and return its entry."""
    builder = (x509.CertificateBuilder().subject_name(x509_name(NAMES[subject])).issuer_name(x509_name(NAMES[issuer]))
               .public_key(key.public_key()).serial_number(serial).not_valid_before(NOT_BEFORE)
               .not_valid_after(NOT_AFTER))
    identifier = None
    if has_key_identifier:
        extension = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        identifier = extension.digest.hex()
        builder = builder.add_extension(extension, critical=False)
    content = builder.sign(signer, digest).public_bytes(serialization.Encoding.DER)
    return certificate_entry(title, content, key, 3, subject, issuer, serial, identifier, summary)


def certificate_entry(title, content, key, version, subject, issuer, serial, identifier, summary):
    """Return the entry of a certificate in the file of vectors."""
    public_key = key.public_key()
    if isinstance(public_key, rsa.RSAPublicKey):
        encoded_key = public_key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.PKCS1)
        key_type, key_size = RSA_TYPE, rounded_up_to_multiple_of_8(public_key.key_size)
    elif isinstance(public_key, ec.EllipticCurvePublicKey):
        encoded_key = public_point(key)
        key_type, key_size = EC_TYPE, public_key.key_size
    else:
        encoded_key = public_key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        key_type, key_size = OTHER_TYPE, 0
    return {
        "name": title,
        "der_hex": content.hex(),
        "version": version,
        "subject_hex": normalized_name(NAMES[subject]).hex(),
        "issuer_hex": normalized_name(NAMES[issuer]).hex(),
        "serial_hex": unsigned_bytes(serial).hex(),
        "key_id_hex": identifier,
        "key_hash_hex": hashlib.sha1(encoded_key).hexdigest(),
        "key_type": key_type,
        "key_size": key_size,
        "summary": summary,
        "pem": openssl("x509", "-inform", "DER", stdin=content).decode("ascii"),
    }


def make_version_1_certificate(key_pem):
    """Return a new certificate of version 1, which `cryptography` does not make."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "key.pem"
        path.write_bytes(key_pem)
        request = openssl("req", "-new", "-key", str(path), "-subj", "/O=Example/OU=Test Unit", "-utf8")
        return openssl("x509", "-req", "-signkey", str(path), "-set_serial", "127", "-days", "3650", "-outform", "DER",
                       stdin=request)


def make_certificates(pems):
    """Return the entries of all certificates."""
    rsa_2048, p256 = load_private_key(pems["RSA 2048"]), load_private_key(pems["P-256"])
    p384, p521 = load_private_key(pems["P-384"]), load_private_key(pems["P-521"])
    ed25519_key = ed25519.Ed25519PrivateKey.generate()
    long_common_name = "long " + " " * 20 + "x" * 32
    return [
        make_certificate(
            "RSA, printable names", "printable", "printable", rsa_2048, rsa_2048, 0x1234, "mail.Example.org"),
        make_certificate("P-256 of an RSA issuer", "utf8", "printable", p256, rsa_2048, 0x80FF, "Änna  von Beispiel"),
        make_certificate(
            "P-384, two attributes in one set", "several in one set", "utf8", p384, p256, 1, "two.example.org"),
        make_certificate(
            "P-521, a unit, the longest serial number", "unit", "unit", p521, p521, (1 << 159) - 5, "Test Unit"),
        make_certificate(
            "no key identifier, a mail address", "mail", "long", p256, p256, 0x7F, "Anna@Example.org",
            has_key_identifier=False),
        make_certificate("long names that become shorter", "long", "long", p256, p256, 0x80, long_common_name),
        make_certificate("no subject", "empty", "utf8", p256, p256, 0x100, None),
        make_certificate("Ed25519", "unit", "unit", ed25519_key, ed25519_key, 77, "Test Unit", digest=None),
        certificate_entry(
            "version 1", make_version_1_certificate(pems["P-256"]), p256, 1, "unit", "unit", 127, None, "Test Unit"),
    ]


def main():
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    keys = [make_rsa_key(bit_count) for bit_count in RSA_BIT_COUNTS] + [make_ec_key(name) for name in CURVES]
    pems = {entry["name"]: pem for pem, entry in keys}
    document = {
        "how": "made by Tests/Support/make_certificate_vectors.py: " + openssl("version").decode().strip(),
        "keys": [entry for _, entry in keys],
        "refused": rejected_keys(pems["RSA 2048"], pems["P-256"]),
        "certificates": make_certificates(pems),
    }
    target.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
