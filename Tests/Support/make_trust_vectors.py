#!/usr/bin/env python3
"""Make certificate chains, each with one fault or none, and PKCS#12 files, with `cryptography` and `openssl`.

    make_trust_vectors.py > Tests/TestSupport/trust-vectors.json

The keys are random, so each run makes a different file with the same cases. All names are in domains that are reserved
for examples (RFC 2606). The expected results follow RFC 5280, and no other implementation has checked them. The rules
for servers are those of Apple's `SecPolicyServer.c` (`SecPolicyCheckKeySize`, `SecPolicyCheckSignatureHashAlgorithms`,
`SecPolicyCheckOtherTrustValidityPeriodMaximums`, `SecPolicyCheckServerAuthEKU`) for anchors that an app sets.
"""

import datetime
import hashlib
import ipaddress
import json
import pathlib
import subprocess
import sys
import tempfile

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
END = datetime.datetime(2036, 1, 1, tzinfo=datetime.timezone.utc)
# Apple's maximum validity of a server's certificate.
SERVER_MAXIMUM = datetime.timedelta(days=825)
SERVER_END = START + datetime.timedelta(days=800)
# Apple's source has this date as 583628400 s after 2001-01-01, although its comment is 1 July 2019 00:00:00 UTC.
STRICT_FROM = datetime.datetime(2019, 6, 30, 23, tzinfo=datetime.timezone.utc)
SECOND, HOUR = datetime.timedelta(seconds=1), datetime.timedelta(hours=1)
DURING = "2026-06-01T00:00:00Z"
PASSWORD = "Größe 12 €"


def name(common, email=None):
    """Return a name with a common name and an email address."""
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    if email:
        parts.append(x509.NameAttribute(NameOID.EMAIL_ADDRESS, email))
    return x509.Name(parts)


class CertifiedKey:
    """A key with its certificate."""

    def __init__(self, common, issuer=None, *, authority=None, path=None, hosts=(), addresses=(), emails=(), usage=None,
                 start=START, end=END, key=None, email=None, critical=False, digest=None):
        self.key = key or ec.generate_private_key(ec.SECP256R1())
        self.name = name(common, email)
        signer = issuer or self
        builder = (x509.CertificateBuilder().subject_name(self.name).issuer_name(signer.name)
                   .public_key(self.key.public_key()).serial_number(x509.random_serial_number())
                   .not_valid_before(start).not_valid_after(end))
        if authority is not None:
            builder = builder.add_extension(x509.BasicConstraints(authority, path), True)
        alternative_names = ([x509.DNSName(host) for host in hosts] + [x509.RFC822Name(email) for email in emails]
                             + [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses])
        if alternative_names:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternative_names), False)
        if usage:
            builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), False)
        if critical:
            unknown = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.3.6.1.4.1.32473.1"), b"\x05\x00")
            builder = builder.add_extension(unknown, True)
        is_unhashed = isinstance(signer.key, ed25519.Ed25519PrivateKey)
        self.certificate = builder.sign(signer.key, None if is_unhashed else hashes.SHA256())
        if digest:
            self.certificate = with_old_signature(self, signer, digest)
        self.der = self.certificate.public_bytes(serialization.Encoding.DER)


def with_old_signature(party, signer, digest):
    """Return the certificate with an RSA signature over an old digest, which `cryptography` does not make."""
    sha256, other = (
        bytes.fromhex("06092a864886f70d0101" + number) for number in ("0b", {"sha1": "05", "md5": "04"}[digest])
    )
    valid_file = party.certificate.public_bytes(serialization.Encoding.DER).replace(sha256, other)
    signed = party.certificate.tbs_certificate_bytes.replace(sha256, other)
    signature = signer.key.sign(signed, padding.PKCS1v15(), hashes.SHA1() if digest == "sha1" else hashes.MD5())
    return x509.load_der_x509_certificate(valid_file.replace(party.certificate.signature, signature))


def rsa_key(size):
    """Return a key of any size, including sizes that `cryptography` does not generate."""
    pem = subprocess.run(["openssl", "genrsa", str(size)], check=True, capture_output=True).stdout
    return serialization.load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True)


def server_chains():
    """Yield chains that only Apple's rules for servers reject, each with the nearest value that is accepted."""
    server = ExtendedKeyUsageOID.SERVER_AUTH
    long = SERVER_MAXIMUM + HOUR
    root = CertifiedKey("RSA root", authority=True, key=rsa_key(2048))
    old_root = CertifiedKey("Old RSA root", authority=True, key=rsa_key(2048), digest="sha1")
    small_root = CertifiedKey("Small root", authority=True, key=rsa_key(1024))
    middle = CertifiedKey("Old middle", root, authority=True, digest="sha1")

    def leaf(issuer=root, **options):
        options = {"hosts": ["mail.example.org"], "usage": server, "end": SERVER_END, **options}
        return CertifiedKey("mail.example.org", issuer, **options)

    def case(title, status, *certificates, anchor=root, policy="server", host="mail.example.org", at=DURING):
        length = None if status else len(certificates) + (anchor not in certificates)
        return (
            title, {"certificates": list(certificates), "anchors": [anchor], "at": at, "host": host, "policy": policy},
            status, length)

    digest, size, period, usage = -67815, -67735, -67901, -67609
    early = STRICT_FROM
    late = STRICT_FROM + SECOND
    at = "2020-01-01T00:00:00Z"
    since = datetime.datetime(2019, 1, 1, tzinfo=datetime.timezone.utc)
    first = CertifiedKey("First root", authority=True, start=since)
    yield case("a server's certificate with SHA-1", digest, leaf(digest="sha1"))
    yield case("a server's certificate with MD5", digest, leaf(digest="md5"))
    yield case("a CA with SHA-1", digest, leaf(middle), middle)
    yield case("an anchor with SHA-1 that is not self-signed", digest, leaf(middle), anchor=middle)
    yield case("a self-signed anchor with SHA-1", 0, leaf(old_root), anchor=old_root)
    yield case("a server's key of 1,024 bits", size, leaf(key=rsa_key(1024)))
    yield case("a server's key of 2,040 bits", size, leaf(key=rsa_key(2040)))
    yield case("a server's key of 2,041 bits, which are 256 bytes", 0, leaf(key=rsa_key(2041)))
    yield case("a server's key of 2,048 bits", 0, leaf(key=rsa_key(2048)))
    yield case("an anchor's key of 1,024 bits", size, leaf(small_root), anchor=small_root)
    yield case("a server's key on P-224", size, leaf(key=ec.generate_private_key(ec.SECP224R1())))
    yield case("a server's key on P-384", 0, leaf(key=ec.generate_private_key(ec.SECP384R1())))
    yield case("a server's key on P-521", 0, leaf(key=ec.generate_private_key(ec.SECP521R1())))
    yield case("a server's Ed25519 key", size, leaf(key=ed25519.Ed25519PrivateKey.generate()))
    yield case("a server's certificate for 825 days and an hour", 0, leaf(end=START + long))
    yield case("a server's certificate for 825 days, an hour and a second", period, leaf(end=START + long + SECOND))
    yield case("ten years, issued before 1 July 2019", 0, leaf(first, start=early, end=END), anchor=first, at=at)
    yield case("ten years, issued a second later", period, leaf(first, start=late, end=END), anchor=first, at=at)
    yield case("a server's certificate without a purpose", usage, leaf(usage=None))
    yield case(
        "a server's certificate for every purpose", usage, leaf(usage=ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE)
    )
    yield case("no purpose, issued before 1 July 2019", 0, leaf(first, start=early, usage=None), anchor=first, at=at)
    yield case("no purpose, issued a second later", usage, leaf(first, start=late, usage=None, end=late + long),
               anchor=first, at=at)
    yield case("no alternative names, with a host", -67602, leaf(hosts=()))
    yield case("no alternative names, without a host", 0, leaf(hosts=()), host=None)
    yield case("ten years by the basic policy", 0, leaf(end=END, usage=None), policy="basic")
    yield case("SHA-1 by the basic policy", 0, leaf(digest="sha1"), policy="basic")
    yield case("MD5 by the basic policy", digest, leaf(digest="md5"), policy="basic")
    yield case("a key of 1,024 bits by the basic policy", 0, leaf(key=rsa_key(1024)), policy="basic")
    yield case("a key of 1,016 bits by the basic policy", size, leaf(key=rsa_key(1016)), policy="basic")
    yield case("a client's certificate with MD5", digest, leaf(usage=ExtendedKeyUsageOID.CLIENT_AUTH, digest="md5"),
               policy="client", host=None)


def chains():
    """Yield all chains with their expected results."""
    server, client = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
    root = CertifiedKey("Root", authority=True)
    other = CertifiedKey("Root", authority=True)
    middle = CertifiedKey("Middle", root, authority=True, path=0)
    below = CertifiedKey("Below", middle, authority=True)
    late = CertifiedKey("Late", root, authority=True, end=datetime.datetime(2026, 3, 1, tzinfo=datetime.timezone.utc))
    leaf = CertifiedKey("mail.example.org", middle, hosts=["mail.example.org", "*.web.example.org"], addresses=["192.0.2.7"],
                 usage=server, end=SERVER_END)
    plain = CertifiedKey("plain.example.org", middle)
    usual = {"certificates": [leaf, middle], "anchors": [root], "at": DURING, "host": "mail.example.org"}
    cases = [
        ("a complete chain of a server", usual, 0, 3),
        ("a server's chain without a host name", {**usual, "host": None}, 0, 3),
        ("a server's chain by the basic policy", {**usual, "policy": "basic"}, 0, 3),
        ("a host name in capital letters with a trailing dot", {**usual, "host": "MAIL.example.org."}, 0, 3),
        ("a name that a wildcard covers", {**usual, "host": "a.web.example.org"}, 0, 3),
        ("an address that the certificate names", {**usual, "host": "192.0.2.7"}, 0, 3),
        (
            "certificates in another order, with an unneeded one",
            {**usual, "certificates": [leaf, other, late, middle]}, 0, 3),
        ("an intermediate CA as the anchor", {**usual, "anchors": [middle]}, 0, 2),
        ("the leaf itself as its anchor", {**usual, "certificates": [leaf], "anchors": [leaf]}, 0, 1),
        ("two labels below a wildcard", {**usual, "host": "a.b.web.example.org"}, -67602, None),
        ("another host", {**usual, "host": "example.org"}, -67602, None),
        ("another address", {**usual, "host": "192.0.2.8"}, -67602, None),
        (
            "a host that only the common name contains",
            {**usual, "certificates": [plain, middle], "host": "plain.example.org"}, -67602, None),
        ("the last second of the chain's validity", {**usual, "at": "2028-03-11T00:00:00Z"}, 0, 3),
        ("a second after the chain's validity", {**usual, "at": "2028-03-11T00:00:01Z"}, -67818, None),
        ("a second before the chain's validity", {**usual, "at": "2025-12-31T23:59:59Z"}, -67819, None),
        (
            "an expired intermediate CA",
            {**usual, "certificates": [CertifiedKey("a.example.org", late, hosts=["mail.example.org"], usage=server), late]},
            -67818, None),
        (
            "no anchor, but the root among the certificates",
            {**usual, "certificates": [leaf, middle, root], "anchors": []}, -67843, None),
        (
            "an anchor of the same name with another key",
            {**usual, "certificates": [leaf, middle, root], "anchors": [other]}, -67843, None),
        ("a missing intermediate certificate", {**usual, "certificates": [leaf]}, -25318, None),
        (
            "a self-signed certificate that is not an anchor", {**usual, "certificates": [CertifiedKey("self")]},
            -67843, None),
        (
            "an issuer that is not a CA",
            {
                **usual,
                "certificates": [CertifiedKey("x.example.org", leaf, hosts=["mail.example.org"]), leaf, middle],
                "policy": "basic",
            },
            -67605,
            None,
        ),
        (
            "a CA below a CA with a path length of 0",
            {**usual, "certificates": [CertifiedKey("y.example.org", below), below, middle], "policy": "basic"}, -67611, None),
        ("a server's certificate as a client's", {**usual, "policy": "client"}, -67609, None),
        (
            "a client's certificate as a client's",
            {**usual, "certificates": [CertifiedKey("anna", middle, usage=client), middle], "policy": "client"}, 0, 3),
        (
            "a client's certificate as a server's",
            {**usual, "certificates": [CertifiedKey("anna", middle, usage=client, hosts=["mail.example.org"]), middle]},
            -67609, None),
        (
            "an unknown critical extension",
            {**usual, "certificates": [CertifiedKey("z.example.org", middle, critical=True), middle], "policy": "basic"},
            -67603, None),
    ]
    forged = bytearray(leaf.der)
    forged[-1] ^= 1
    for title, case, status, length in [*cases, *server_chains()]:
        yield {"name": title, "policy": case.get("policy", "server"), "host": case["host"], "at": case["at"],
               "certificates": [party.der.hex() for party in case["certificates"]],
               "anchors": [party.der.hex() for party in case["anchors"]], "status": status, "length": length}
    yield {"name": "a signature with a flipped bit", "policy": "server", "host": "mail.example.org", "at": DURING,
           "certificates": [bytes(forged).hex(), middle.der.hex()], "anchors": [root.der.hex()], "status": -67843,
           "length": None}


def openssl(*arguments):
    """Run an `openssl` command."""
    subprocess.run(["openssl", *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def files():
    """Yield PKCS#12 files with their passwords and expected results."""
    root = CertifiedKey("Root", authority=True)
    anna = CertifiedKey("Anna", root, email="anna@example.org", emails=["anna@example.org", "a@example.net"])
    berta = CertifiedKey("Berta", root, key=rsa.generate_private_key(65537, 2048))
    identities = lambda *parties: [  # noqa: E731
        {"certificate": party.der.hex(), "key": hashlib.sha1(encoded_public_key(party)).hexdigest(), "label": label}
        for party, label in parties]

    def make_file(party, password, encryption=None, chain=(root,), label=b"Anna's key"):
        encryption = encryption or (
            serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption())
        return pkcs12.serialize_key_and_certificates(
            label, party.key, party.certificate, [issuer.certificate for issuer in chain], encryption)

    def make_with_openssl(party, *options, password=PASSWORD):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            (path / "key.pem").write_bytes(party.key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
            (path / "certificate.pem").write_bytes(party.certificate.public_bytes(serialization.Encoding.PEM))
            (path / "out").unlink(missing_ok=True)
            openssl("pkcs12", "-export", "-inkey", str(path / "key.pem"), "-in", str(path / "certificate.pem"),
                    "-name", "old", "-passout", "pass:" + password, "-out", str(path / "out"), *options)
            return (path / "out").read_bytes()

    triple_des = (serialization.PrivateFormat.PKCS12.encryption_builder().kdf_rounds(2000)
                  .key_cert_algorithm(pkcs12.PBES.PBESv1SHA1And3KeyTripleDESCBC).hmac_hash(hashes.SHA1())
                  .build(PASSWORD.encode()))
    valid_file = make_file(anna, PASSWORD)
    changed_file = bytearray(valid_file)
    changed_file[len(changed_file) // 2] ^= 1
    yield "a key with its certificate and its root", valid_file, PASSWORD, 0, identities((anna, "Anna's key"))
    yield "a key with its certificate, and another password", valid_file, "12", -25293, []
    yield "a key with its certificate, without a password", valid_file, None, -25293, []
    yield "a changed byte", bytes(changed_file), PASSWORD, -25293, []
    yield "a truncated file", valid_file[:-7], PASSWORD, -26275, []
    yield "an extra byte", valid_file + b"\x00", PASSWORD, -26275, []
    yield "no such file", b"no such file", PASSWORD, -26275, []
    yield "a certificate instead", anna.der, PASSWORD, -26275, []
    yield "3DES and SHA-1, as Keychain Access writes it", make_file(anna, None, triple_des), PASSWORD, 0, identities(
        (anna, "Anna's key"))
    yield "RSA", make_file(berta, PASSWORD, label=None), PASSWORD, 0, identities((berta, None))
    yield (
        "RC2 with 40 bits, as old systems write it", make_with_openssl(berta, "-legacy"), PASSWORD, 0,
        identities((berta, "old")))
    yield (
        "without encryption, with a MAC", make_with_openssl(anna, "-keypbe", "NONE", "-certpbe", "NONE"), PASSWORD, 0,
        identities((anna, "old")))
    yield "without encryption, with the MAC of another password", make_with_openssl(
        anna, "-keypbe", "NONE", "-certpbe", "NONE"), "x", -25293, []
    yield "without a MAC", make_with_openssl(anna, "-nomac"), PASSWORD, 0, identities((anna, "old"))
    yield "without a MAC, with another password", make_with_openssl(anna, "-nomac"), "x", -25293, []
    yield "an empty password", make_with_openssl(anna, password=""), None, 0, identities((anna, "old"))
    yield "no password at all", make_file(anna, None), None, 0, identities((anna, "Anna's key"))
    yield "only certificates", pkcs12.serialize_java_truststore(
        [pkcs12.PKCS12Certificate(root.certificate, b"root")],
        serialization.BestAvailableEncryption(PASSWORD.encode())), PASSWORD, 0, []
    yield (
        "too many iterations", make_with_openssl(anna, "-iter", "20000000", "-macalg", "sha1"), PASSWORD,
        -26275, [])


def encoded_public_key(party):
    """Return the encoded public key of a party."""
    key = party.key.public_key()
    if isinstance(key, rsa.RSAPublicKey):
        return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.PKCS1)
    return key.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)


def main():
    vectors = [
        {"name": title, "file_hex": content.hex(), "password": password, "status": status, "identities": identities}
        for title, content, password, status, identities in files()
    ]
    json.dump({"chains": list(chains()), "files": vectors}, sys.stdout, indent=1, ensure_ascii=False)
    print()


main()
