#!/usr/bin/env python3
"""Make certificate chains, each with one fault or none, and PKCS#12 files, with `cryptography` and `openssl`.

    make_trust_vectors.py > Tests/TestSupport/trust-vectors.json

The keys are random, so each run makes a different file with the same cases. All names are in domains that are reserved
for examples (RFC 2606). The expected results follow RFC 5280, and no other implementation has checked them. The rules
for servers are those of Apple's `SecPolicyServer.c` (`SecPolicyCheckKeySize`, `SecPolicyCheckSignatureHashAlgorithms`,
`SecPolicyCheckOtherTrustValidityPeriodMaximums`, `SecPolicyCheckServerAuthEKU`) for anchors that an app sets.
"""

import copy
import datetime
import enum
import hashlib
import ipaddress
import json
import pathlib
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import List, Optional

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
# Apple accepts 825 days and a tolerance of one hour.
SERVER_LIMIT = SERVER_MAXIMUM + HOUR
DURING = "2026-06-01T00:00:00Z"
HOST = "mail.example.org"
PASSWORD = "Größe 12 €"
WRONG_PASSWORD = "12"
SERVER_USAGE, CLIENT_USAGE = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
# The object identifier of an RSA signature over a digest in DER (RFC 8017, appendix C): its start, and its last byte.
RSA_SIGNATURE_PREFIX = "06092a864886f70d0101"
RSA_SIGNATURE_SUFFIXES = {"md5": "04", "sha1": "05", "sha256": "0b"}
UNKNOWN_EXTENSION = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.3.6.1.4.1.32473.1"), b"\x05\x00")


class Status(enum.IntEnum):
    """The results that Apple's Security framework returns (SecBase.h)."""

    SUCCESS = 0
    AUTHENTICATION_FAILED = -25293
    CREATE_CHAIN_FAILED = -25318
    DECODE = -26275
    HOST_NAME_MISMATCH = -67602
    UNKNOWN_CRITICAL_EXTENSION = -67603
    NO_BASIC_CONSTRAINTS_CA = -67605
    INVALID_EXTENDED_KEY_USAGE = -67609
    PATH_LENGTH_EXCEEDED = -67611
    UNSUPPORTED_KEY_SIZE = -67735
    INVALID_DIGEST_ALGORITHM = -67815
    EXPIRED = -67818
    NOT_VALID_YET = -67819
    NOT_TRUSTED = -67843
    VALIDITY_PERIOD_TOO_LONG = -67901


class CertifiedKey:
    """A key with its certificate. Without an issuer, the certificate is self-signed."""

    def __init__(self, common_name, issuer=None, *, is_authority=None, path_length=None, hosts=(), addresses=(),
                 emails=(), usage=None, start=START, end=END, key=None, subject_email=None,
                 has_unknown_critical_extension=False, old_digest=None):
        self.key = key or ec.generate_private_key(ec.SECP256R1())
        self.name = subject_name(common_name, subject_email)
        signer = issuer or self
        builder = (x509.CertificateBuilder().subject_name(self.name).issuer_name(signer.name)
                   .public_key(self.key.public_key()).serial_number(x509.random_serial_number())
                   .not_valid_before(start).not_valid_after(end))
        if is_authority is not None:
            builder = builder.add_extension(x509.BasicConstraints(is_authority, path_length), True)
        alternative_names = ([x509.DNSName(host) for host in hosts] + [x509.RFC822Name(email) for email in emails]
                             + [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses])
        if alternative_names:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternative_names), False)
        if usage:
            builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), False)
        if has_unknown_critical_extension:
            builder = builder.add_extension(UNKNOWN_EXTENSION, True)
        # Ed25519 includes its own digest.
        has_own_digest = isinstance(signer.key, ed25519.Ed25519PrivateKey)
        self.certificate = builder.sign(signer.key, None if has_own_digest else hashes.SHA256())
        if old_digest:
            self.certificate = with_old_signature(self.certificate, signer.key, old_digest)
        self.der = self.certificate.public_bytes(serialization.Encoding.DER)


def subject_name(common_name, email=None):
    """Return a name with a common name, and an email address if there is one."""
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if email:
        attributes.append(x509.NameAttribute(NameOID.EMAIL_ADDRESS, email))
    return x509.Name(attributes)


def with_old_signature(certificate, signing_key, digest):
    """Return the certificate with an RSA signature over SHA-1 or MD5, which `cryptography` does not make."""
    sha256_identifier = bytes.fromhex(RSA_SIGNATURE_PREFIX + RSA_SIGNATURE_SUFFIXES["sha256"])
    old_identifier = bytes.fromhex(RSA_SIGNATURE_PREFIX + RSA_SIGNATURE_SUFFIXES[digest])
    signed_part = certificate.tbs_certificate_bytes.replace(sha256_identifier, old_identifier)
    algorithm = hashes.SHA1() if digest == "sha1" else hashes.MD5()
    signature = signing_key.sign(signed_part, padding.PKCS1v15(), algorithm)
    der = certificate.public_bytes(serialization.Encoding.DER).replace(sha256_identifier, old_identifier)
    return x509.load_der_x509_certificate(der.replace(certificate.signature, signature))


def with_flipped_bit(certified_key):
    """Return a copy of a certified key. One bit of the signature in its certificate is flipped."""
    changed = bytearray(certified_key.der)
    changed[-1] ^= 1
    forged = copy.copy(certified_key)
    forged.der = bytes(changed)
    return forged


def rsa_key(bit_count):
    """Return a key of any size, including sizes that `cryptography` does not generate."""
    pem = subprocess.run(["openssl", "genrsa", str(bit_count)], check=True, capture_output=True).stdout
    return serialization.load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True)


# Chains


@dataclass
class Chain:
    """The certificates and anchors of one evaluation, and its expected result.

    `length` is the number of certificates in the trusted chain, or None if the chain is rejected.
    """

    name: str
    certificates: List[CertifiedKey]
    anchors: List[CertifiedKey]
    status: int = Status.SUCCESS
    length: Optional[int] = None
    policy: str = "server"
    host: Optional[str] = HOST
    at: str = DURING

    def to_json(self):
        return {
            "name": self.name,
            "policy": self.policy,
            "host": self.host,
            "at": self.at,
            "certificates": [certified_key.der.hex() for certified_key in self.certificates],
            "anchors": [certified_key.der.hex() for certified_key in self.anchors],
            "status": int(self.status),
            "length": self.length,
        }


class Example:
    """The certificates from which the chains are made: a root, an intermediate CA and a server's certificate."""

    def __init__(self):
        self.root = CertifiedKey("Root", is_authority=True)
        self.root_with_other_key = CertifiedKey("Root", is_authority=True)
        self.middle = CertifiedKey("Middle", self.root, is_authority=True, path_length=0)
        self.expired_middle = CertifiedKey(
            "Late", self.root, is_authority=True, end=datetime.datetime(2026, 3, 1, tzinfo=datetime.timezone.utc))
        self.leaf = CertifiedKey(
            HOST, self.middle, hosts=[HOST, "*.web.example.org"], addresses=["192.0.2.7"], usage=SERVER_USAGE,
            end=SERVER_END)

    def chain(self, name, **changes):
        """Return the complete chain of the server's certificate, with some fields changed."""
        return Chain(name, **{"certificates": [self.leaf, self.middle], "anchors": [self.root], **changes})


def trusted_chains(example):
    """Yield variants of the complete chain that are trusted."""
    leaf, middle = example.leaf, example.middle
    yield example.chain("a complete chain of a server", length=3)
    yield example.chain("a server's chain without a host name", host=None, length=3)
    yield example.chain("a server's chain by the basic policy", policy="basic", length=3)
    yield example.chain("a host name in capital letters with a trailing dot", host="MAIL.example.org.", length=3)
    yield example.chain("a name that a wildcard covers", host="a.web.example.org", length=3)
    yield example.chain("an address that the certificate names", host="192.0.2.7", length=3)
    yield example.chain(
        "certificates in another order, with an unneeded one",
        certificates=[leaf, example.root_with_other_key, example.expired_middle, middle], length=3)
    yield example.chain("an intermediate CA as the anchor", anchors=[middle], length=2)
    yield example.chain("the leaf itself as its anchor", certificates=[leaf], anchors=[leaf], length=1)


def wrong_host_chains(example):
    """Yield chains of a certificate that does not contain the host."""
    mismatch = Status.HOST_NAME_MISMATCH
    yield example.chain("two labels below a wildcard", host="a.b.web.example.org", status=mismatch)
    yield example.chain("another host", host="example.org", status=mismatch)
    yield example.chain("another address", host="192.0.2.8", status=mismatch)
    without_hosts = CertifiedKey("plain.example.org", example.middle)
    yield example.chain(
        "a host that only the common name contains", certificates=[without_hosts, example.middle],
        host="plain.example.org", status=mismatch)


def date_chains(example):
    """Yield chains evaluated at the limits of their validity."""
    # SERVER_END is 2028-03-11T00:00:00Z.
    yield example.chain("the last second of the chain's validity", at="2028-03-11T00:00:00Z", length=3)
    yield example.chain("a second after the chain's validity", at="2028-03-11T00:00:01Z", status=Status.EXPIRED)
    yield example.chain("a second before the chain's validity", at="2025-12-31T23:59:59Z", status=Status.NOT_VALID_YET)
    leaf = CertifiedKey("a.example.org", example.expired_middle, hosts=[HOST], usage=SERVER_USAGE)
    yield example.chain(
        "an expired intermediate CA", certificates=[leaf, example.expired_middle], status=Status.EXPIRED)


def unanchored_chains(example):
    """Yield chains that do not lead to an anchor."""
    complete = [example.leaf, example.middle, example.root]
    yield example.chain(
        "no anchor, but the root among the certificates", certificates=complete, anchors=[], status=Status.NOT_TRUSTED)
    yield example.chain(
        "an anchor of the same name with another key", certificates=complete, anchors=[example.root_with_other_key],
        status=Status.NOT_TRUSTED)
    yield example.chain(
        "a missing intermediate certificate", certificates=[example.leaf], status=Status.CREATE_CHAIN_FAILED)
    yield example.chain(
        "a self-signed certificate that is not an anchor", certificates=[CertifiedKey("self")],
        status=Status.NOT_TRUSTED)


def constraint_chains(example):
    """Yield chains with a certificate that its issuer's basic constraints forbid."""
    leaf, middle = example.leaf, example.middle
    issued_by_leaf = CertifiedKey("x.example.org", leaf, hosts=[HOST])
    yield example.chain(
        "an issuer that is not a CA", certificates=[issued_by_leaf, leaf, middle], policy="basic",
        status=Status.NO_BASIC_CONSTRAINTS_CA)
    below = CertifiedKey("Below", middle, is_authority=True)
    issued_by_below = CertifiedKey("y.example.org", below)
    yield example.chain(
        "a CA below a CA with a path length of 0", certificates=[issued_by_below, below, middle], policy="basic",
        status=Status.PATH_LENGTH_EXCEEDED)


def purpose_chains(example):
    """Yield chains whose leaf is used for its purpose or for another purpose, and a chain with an unknown extension."""
    middle = example.middle
    yield example.chain(
        "a server's certificate as a client's", policy="client", status=Status.INVALID_EXTENDED_KEY_USAGE)
    client = CertifiedKey("anna", middle, usage=CLIENT_USAGE)
    yield example.chain(
        "a client's certificate as a client's", certificates=[client, middle], policy="client", length=3)
    client_with_host = CertifiedKey("anna", middle, usage=CLIENT_USAGE, hosts=[HOST])
    yield example.chain(
        "a client's certificate as a server's", certificates=[client_with_host, middle],
        status=Status.INVALID_EXTENDED_KEY_USAGE)
    extended = CertifiedKey("z.example.org", middle, has_unknown_critical_extension=True)
    yield example.chain(
        "an unknown critical extension", certificates=[extended, middle], policy="basic",
        status=Status.UNKNOWN_CRITICAL_EXTENSION)


# Chains that only Apple's rules for servers reject, each with the nearest value that is accepted


def server_leaf(issuer, **options):
    """Return a server's certificate that satisfies Apple's rules, unless the options break them."""
    return CertifiedKey(HOST, issuer, **{"hosts": [HOST], "usage": SERVER_USAGE, "end": SERVER_END, **options})


def server_chain(name, status, *certificates, anchor, **options):
    """Return a chain of a server that leads to one anchor."""
    is_trusted = status == Status.SUCCESS
    length = len(certificates) + (anchor not in certificates) if is_trusted else None
    return Chain(name, list(certificates), [anchor], status, length, **options)


def server_digest_chains(root):
    """Yield chains signed over old digests."""
    rejected = Status.INVALID_DIGEST_ALGORITHM
    sha1_middle = CertifiedKey("Old middle", root, is_authority=True, old_digest="sha1")
    sha1_root = CertifiedKey("Old RSA root", is_authority=True, key=rsa_key(2048), old_digest="sha1")
    yield server_chain(
        "a server's certificate with SHA-1", rejected, server_leaf(root, old_digest="sha1"), anchor=root)
    yield server_chain("a server's certificate with MD5", rejected, server_leaf(root, old_digest="md5"), anchor=root)
    yield server_chain("a CA with SHA-1", rejected, server_leaf(sha1_middle), sha1_middle, anchor=root)
    yield server_chain(
        "an anchor with SHA-1 that is not self-signed", rejected, server_leaf(sha1_middle), anchor=sha1_middle)
    yield server_chain(
        "a self-signed anchor with SHA-1", Status.SUCCESS, server_leaf(sha1_root), anchor=sha1_root)


def server_key_chains(root):
    """Yield chains with keys of different sizes and kinds."""
    accepted, rejected = Status.SUCCESS, Status.UNSUPPORTED_KEY_SIZE

    def leaf_chain(name, status, key):
        return server_chain(name, status, server_leaf(root, key=key), anchor=root)

    yield leaf_chain("a server's key of 1,024 bits", rejected, rsa_key(1024))
    yield leaf_chain("a server's key of 2,040 bits", rejected, rsa_key(2040))
    yield leaf_chain("a server's key of 2,041 bits, which are 256 bytes", accepted, rsa_key(2041))
    yield leaf_chain("a server's key of 2,048 bits", accepted, rsa_key(2048))
    small_root = CertifiedKey("Small root", is_authority=True, key=rsa_key(1024))
    yield server_chain("an anchor's key of 1,024 bits", rejected, server_leaf(small_root), anchor=small_root)
    yield leaf_chain("a server's key on P-224", rejected, ec.generate_private_key(ec.SECP224R1()))
    yield leaf_chain("a server's key on P-384", accepted, ec.generate_private_key(ec.SECP384R1()))
    yield leaf_chain("a server's key on P-521", accepted, ec.generate_private_key(ec.SECP521R1()))
    yield leaf_chain("a server's Ed25519 key", rejected, ed25519.Ed25519PrivateKey.generate())


def server_period_and_purpose_chains(root):
    """Yield chains at the limits of the validity period, and with several purposes. Older certificates are exempt."""
    too_long, wrong_usage = Status.VALIDITY_PERIOD_TOO_LONG, Status.INVALID_EXTENDED_KEY_USAGE
    old_root = CertifiedKey(
        "First root", is_authority=True, start=datetime.datetime(2019, 1, 1, tzinfo=datetime.timezone.utc))

    def new_chain(name, status, **options):
        return server_chain(name, status, server_leaf(root, **options), anchor=root)

    def old_chain(name, status, **options):
        return server_chain(name, status, server_leaf(old_root, **options), anchor=old_root, at="2020-01-01T00:00:00Z")

    last_exempt, first_strict = STRICT_FROM, STRICT_FROM + SECOND
    yield new_chain("a server's certificate for 825 days and an hour", Status.SUCCESS, end=START + SERVER_LIMIT)
    yield new_chain(
        "a server's certificate for 825 days, an hour and a second", too_long, end=START + SERVER_LIMIT + SECOND)
    yield old_chain("ten years, issued before 1 July 2019", Status.SUCCESS, start=last_exempt, end=END)
    yield old_chain("ten years, issued a second later", too_long, start=first_strict, end=END)
    yield new_chain("a server's certificate without a purpose", wrong_usage, usage=None)
    yield new_chain(
        "a server's certificate for every purpose", wrong_usage, usage=ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE)
    yield old_chain("no purpose, issued before 1 July 2019", Status.SUCCESS, start=last_exempt, usage=None)
    yield old_chain(
        "no purpose, issued a second later", wrong_usage, start=first_strict, usage=None,
        end=first_strict + SERVER_LIMIT)


def server_policy_chains(root):
    """Yield chains that the rules treat differently without a host, or with another policy."""
    bad_digest, bad_key_size = Status.INVALID_DIGEST_ALGORITHM, Status.UNSUPPORTED_KEY_SIZE

    def leaf_chain(name, status, policy="server", host=HOST, **options):
        return server_chain(name, status, server_leaf(root, **options), anchor=root, policy=policy, host=host)

    yield leaf_chain("no alternative names, with a host", Status.HOST_NAME_MISMATCH, hosts=())
    yield leaf_chain("no alternative names, without a host", Status.SUCCESS, host=None, hosts=())
    yield leaf_chain("ten years by the basic policy", Status.SUCCESS, "basic", end=END, usage=None)
    yield leaf_chain("SHA-1 by the basic policy", Status.SUCCESS, "basic", old_digest="sha1")
    yield leaf_chain("MD5 by the basic policy", bad_digest, "basic", old_digest="md5")
    yield leaf_chain("a key of 1,024 bits by the basic policy", Status.SUCCESS, "basic", key=rsa_key(1024))
    yield leaf_chain("a key of 1,016 bits by the basic policy", bad_key_size, "basic", key=rsa_key(1016))
    yield leaf_chain(
        "a client's certificate with MD5", bad_digest, "client", host=None, usage=CLIENT_USAGE, old_digest="md5")


def chains():
    """Yield all chains."""
    example = Example()
    for make_chains in (
        trusted_chains, wrong_host_chains, date_chains, unanchored_chains, constraint_chains, purpose_chains
    ):
        yield from make_chains(example)
    rsa_root = CertifiedKey("RSA root", is_authority=True, key=rsa_key(2048))
    for make_chains in (
        server_digest_chains, server_key_chains, server_period_and_purpose_chains, server_policy_chains
    ):
        yield from make_chains(rsa_root)
    yield example.chain(
        "a signature with a flipped bit", certificates=[with_flipped_bit(example.leaf), example.middle],
        status=Status.NOT_TRUSTED)


# PKCS#12 files


@dataclass
class KeyFile:
    """A PKCS#12 file, the password that is tried, and the expected result."""

    name: str
    content: bytes
    password: Optional[str]
    status: int = Status.SUCCESS
    identities: tuple = ()

    def to_json(self):
        return {
            "name": self.name,
            "file_hex": self.content.hex(),
            "password": self.password,
            "status": int(self.status),
            "identities": list(self.identities),
        }


def identity(certified_key, label):
    """Return the expected identity of a certified key."""
    public_key_digest = hashlib.sha1(encoded_public_key(certified_key)).hexdigest()
    return {"certificate": certified_key.der.hex(), "key": public_key_digest, "label": label}


def encoded_public_key(certified_key):
    """Return the public key of a certified key: PKCS#1 for RSA, otherwise an uncompressed point."""
    key = certified_key.key.public_key()
    if isinstance(key, rsa.RSAPublicKey):
        return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.PKCS1)
    return key.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)


def encryption_with(password):
    """Return the default encryption of `cryptography`, or none if there is no password."""
    if password is None:
        return serialization.NoEncryption()
    return serialization.BestAvailableEncryption(password.encode())


def pkcs12_file(certified_key, root, encryption, label=b"Anna's key"):
    """Return a file of `cryptography` with a key, its certificate and its root."""
    return pkcs12.serialize_key_and_certificates(
        label, certified_key.key, certified_key.certificate, [root.certificate], encryption
    )


def openssl_pkcs12_file(certified_key, *options, password=PASSWORD):
    """Return a file of `openssl` with a key and its certificate, labeled "old"."""
    with tempfile.TemporaryDirectory() as folder:
        key_path, certificate_path, target = (pathlib.Path(folder) / name for name in ("key", "certificate", "out"))
        key_path.write_bytes(certified_key.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
        certificate_path.write_bytes(certified_key.certificate.public_bytes(serialization.Encoding.PEM))
        subprocess.run(
            ["openssl", "pkcs12", "-export", "-inkey", str(key_path), "-in", str(certificate_path), "-name", "old",
             "-passout", "pass:" + password, "-out", str(target), *options],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return target.read_bytes()


def rejected_files(anna, root):
    """Yield a valid file, and the same file with a wrong password or with changed bytes."""
    valid = pkcs12_file(anna, root, encryption_with(PASSWORD))
    with_changed_byte = bytearray(valid)
    with_changed_byte[len(valid) // 2] ^= 1
    failed, malformed = Status.AUTHENTICATION_FAILED, Status.DECODE
    yield KeyFile(
        "a key with its certificate and its root", valid, PASSWORD, identities=(identity(anna, "Anna's key"),))
    yield KeyFile("a key with its certificate, and another password", valid, WRONG_PASSWORD, failed)
    yield KeyFile("a key with its certificate, without a password", valid, None, failed)
    yield KeyFile("a changed byte", bytes(with_changed_byte), PASSWORD, failed)
    yield KeyFile("a truncated file", valid[:-7], PASSWORD, malformed)
    yield KeyFile("an extra byte", valid + b"\x00", PASSWORD, malformed)
    yield KeyFile("no such file", b"no such file", PASSWORD, malformed)
    yield KeyFile("a certificate instead", anna.der, PASSWORD, malformed)


def encrypted_files(anna, berta, root):
    """Yield files with different keys and ciphers. Anna has an EC key, and Berta has an RSA key."""
    triple_des = (serialization.PrivateFormat.PKCS12.encryption_builder().kdf_rounds(2000)
                  .key_cert_algorithm(pkcs12.PBES.PBESv1SHA1And3KeyTripleDESCBC).hmac_hash(hashes.SHA1())
                  .build(PASSWORD.encode()))
    yield KeyFile(
        "3DES and SHA-1, as Keychain Access writes it", pkcs12_file(anna, root, triple_des), PASSWORD,
        identities=(identity(anna, "Anna's key"),))
    yield KeyFile(
        "RSA", pkcs12_file(berta, root, encryption_with(PASSWORD), label=None), PASSWORD,
        identities=(identity(berta, None),))
    yield KeyFile(
        "RC2 with 40 bits, as old systems write it", openssl_pkcs12_file(berta, "-legacy"), PASSWORD,
        identities=(identity(berta, "old"),))


def unencrypted_files(anna, root):
    """Yield files without encryption, without a MAC, and without a password."""
    identities = (identity(anna, "old"),)
    unencrypted = ("-keypbe", "NONE", "-certpbe", "NONE")
    failed = Status.AUTHENTICATION_FAILED
    yield KeyFile(
        "without encryption, with a MAC", openssl_pkcs12_file(anna, *unencrypted), PASSWORD, identities=identities)
    yield KeyFile(
        "without encryption, with the MAC of another password", openssl_pkcs12_file(anna, *unencrypted), "x", failed)
    yield KeyFile("without a MAC", openssl_pkcs12_file(anna, "-nomac"), PASSWORD, identities=identities)
    yield KeyFile("without a MAC, with another password", openssl_pkcs12_file(anna, "-nomac"), "x", failed)
    yield KeyFile("an empty password", openssl_pkcs12_file(anna, password=""), None, identities=identities)
    yield KeyFile(
        "no password at all", pkcs12_file(anna, root, encryption_with(None)), None,
        identities=(identity(anna, "Anna's key"),))


def files():
    """Yield all PKCS#12 files."""
    root = CertifiedKey("Root", is_authority=True)
    anna = CertifiedKey("Anna", root, subject_email="anna@example.org", emails=["anna@example.org", "a@example.net"])
    berta = CertifiedKey("Berta", root, key=rsa.generate_private_key(65537, 2048))
    yield from rejected_files(anna, root)
    yield from encrypted_files(anna, berta, root)
    yield from unencrypted_files(anna, root)
    only_certificates = pkcs12.serialize_java_truststore(
        [pkcs12.PKCS12Certificate(root.certificate, b"root")], encryption_with(PASSWORD))
    yield KeyFile("only certificates", only_certificates, PASSWORD)
    expensive = openssl_pkcs12_file(anna, "-iter", "20000000", "-macalg", "sha1")
    yield KeyFile("too many iterations", expensive, PASSWORD, Status.DECODE)


def main():
    vectors = {
        "chains": [chain.to_json() for chain in chains()],
        "files": [file.to_json() for file in files()],
    }
    json.dump(vectors, sys.stdout, indent=1, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
