#!/usr/bin/env python3
"""Signatures, ciphertexts and shared secrets, made by Python's cryptography with the keys of `certificate-vectors.json`.

    make_key_operation_vectors.py > Tests/TestSupport/key-operation-vectors.json

The algorithms have the names of Apple's constants. What Apple's two hybrid forms are made of stands in its SecKey.h: a
session key in OAEP, or an ephemeral public key, then AES-GCM with a vector of 16 bytes.
"""

import json
import pathlib
import random
import sys

import cryptography
from cryptography.hazmat.backends.openssl import backend
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed, decode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.x963kdf import X963KDF

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "TestSupport"
MESSAGE = "What is signed and sealed: Größe, 12 €.".encode()
DIGESTS = {"SHA1": hashes.SHA1, "SHA224": hashes.SHA224, "SHA256": hashes.SHA256, "SHA384": hashes.SHA384,
           "SHA512": hashes.SHA512}
CURVES = {"P-256": ec.SECP256R1, "P-384": ec.SECP384R1, "P-521": ec.SECP521R1}
NAMES = ["RSA 2048", "P-256", "P-384", "P-521"]


def load(vector):
    """The private key, from one of its published forms."""
    return serialization.load_der_private_key(bytes.fromhex(vector["private_hex"]), None) if vector["type"] == 42 else (
        ec.derive_private_key(
            int.from_bytes(bytes.fromhex(vector["private_hex"])[len(bytes.fromhex(vector["public_hex"])):], "big"),
            CURVES[vector["name"]]()))


def digest_of(algorithm, message=MESSAGE):
    context = hashes.Hash(algorithm())
    context.update(message)
    return context.finalize()


def numbers(signature, size):
    return b"".join(number.to_bytes(size, "big") for number in decode_dss_signature(signature))


def signatures(key):
    for name, algorithm in DIGESTS.items():
        digest = digest_of(algorithm)
        if isinstance(key, rsa.RSAPrivateKey):
            pss = padding.PSS(padding.MGF1(algorithm()), len(digest))
            for form, scheme, end in (("PKCS1v15", padding.PKCS1v15(), name), ("PSS", pss, f"{name}:{name}:{len(digest)}")):
                yield f"algid:sign:RSA:message-{form}:{end}", MESSAGE, key.sign(MESSAGE, scheme, algorithm())
                yield f"algid:sign:RSA:digest-{form}:{end}", digest, key.sign(digest, scheme, Prehashed(algorithm()))
        else:
            size = (key.curve.key_size + 7) // 8
            for form, shown in (("X962", lambda made: made), ("RFC4754", lambda made: numbers(made, size))):
                yield f"algid:sign:ECDSA:message-{form}:{name}", MESSAGE, shown(key.sign(MESSAGE, ec.ECDSA(algorithm())))
                yield (f"algid:sign:ECDSA:digest-{form}:{name}", digest,
                       shown(key.sign(digest, ec.ECDSA(Prehashed(algorithm())))))
    if isinstance(key, rsa.RSAPrivateKey):
        secret = key.private_numbers()
        modulus, size = secret.public_numbers.n, (key.key_size + 7) // 8
        for name, block in (("raw", b"\x00\x01" + MESSAGE),
                            ("digest-PKCS1v15", b"\x00\x01" + b"\xff" * (size - len(MESSAGE) - 3) + b"\x00" + MESSAGE)):
            made = pow(int.from_bytes(block, "big"), secret.d, modulus).to_bytes(size, "big")
            yield f"algid:sign:RSA:{name}", block if name == "raw" else MESSAGE, made


def ciphertexts(key, source):
    public = key.public_key()
    if isinstance(key, rsa.RSAPrivateKey):
        numbers_, size = public.public_numbers(), (key.key_size + 7) // 8
        yield "algid:encrypt:RSA:raw", bytes(size - len(MESSAGE)) + MESSAGE, pow(
            int.from_bytes(MESSAGE, "big"), numbers_.e, numbers_.n).to_bytes(size, "big")
        yield "algid:encrypt:RSA:PKCS1", MESSAGE, public.encrypt(MESSAGE, padding.PKCS1v15())
        der = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.PKCS1)
        for name, algorithm in DIGESTS.items():
            oaep = padding.OAEP(padding.MGF1(algorithm()), algorithm(), None)
            yield f"algid:encrypt:RSA:OAEP:{name}", MESSAGE, public.encrypt(MESSAGE, oaep)
            session = source.randbytes(32 if key.key_size >= 4096 else 16)
            yield f"algid:encrypt:RSA:OAEP:{name}:AESGCM", MESSAGE * 20, (
                public.encrypt(session, oaep) + AESGCM(session).encrypt(bytes(16), MESSAGE * 20, der))
        return
    ephemeral = ec.generate_private_key(key.curve)
    point = ephemeral.public_key().public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    secret = ephemeral.exchange(ec.ECDH(), public)
    size = 16 if key.curve.key_size <= 256 else 32
    for name, algorithm in DIGESTS.items():
        derived = X963KDF(algorithm(), size, point).derive(secret)
        yield (f"algid:encrypt:ECIES:ECDH:KDFX963:{name}:AESGCM", MESSAGE,
               point + AESGCM(derived).encrypt(bytes(16), MESSAGE, None))
        if name != "SHA1":
            derived = X963KDF(algorithm(), size + 16, point).derive(secret)
            yield (f"algid:encrypt:ECIES:ECDHC:KDFX963:{name}:AESGCM-KDFIV", MESSAGE,
                   point + AESGCM(derived[:size]).encrypt(derived[size:], MESSAGE, None))


def exchanges(key):
    other = ec.generate_private_key(key.curve)
    point = other.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    secret = key.exchange(ec.ECDH(), other.public_key())
    yield "algid:keyexchange:ECDH", point, b"", secret
    for name, algorithm in DIGESTS.items():
        yield f"algid:keyexchange:ECDHC:KDFX963:{name}", point, MESSAGE, X963KDF(algorithm(), 77, MESSAGE).derive(secret)


def main():
    vectors = {vector["name"]: vector for vector in
               json.loads((FOLDER / "certificate-vectors.json").read_text(encoding="utf-8"))["keys"]}
    source, keys = random.Random("key operations"), []
    for name in NAMES:
        key = load(vectors[name])
        keys.append({
            "name": name,
            "signatures": [{"algorithm": algorithm, "data_hex": data.hex(), "signature_hex": made.hex()}
                           for algorithm, data, made in signatures(key)],
            "ciphertexts": [{"algorithm": algorithm, "plaintext_hex": plain.hex(), "ciphertext_hex": made.hex()}
                            for algorithm, plain, made in ciphertexts(key, source)],
            "exchanges": [] if name.startswith("RSA") else [
                {"algorithm": algorithm, "other_hex": point.hex(), "info_hex": info.hex(), "result_hex": made.hex()}
                for algorithm, point, info, made in exchanges(key)],
        })
    how = (f"made by Tests/Support/make_key_operation_vectors.py: cryptography {cryptography.__version__}, "
           f"{backend.openssl_version_text()}")
    json.dump({"how": how, "keys": keys}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
