#!/usr/bin/env python3
"""Make signatures, ciphertexts and shared secrets with the keys of `certificate-vectors.json`, using `cryptography`.

    make_key_operation_vectors.py > Tests/TestSupport/key-operation-vectors.json

The algorithms have the names of Apple's constants. Apple's SecKey.h describes the two hybrid schemes: a session key in
OAEP, or an ephemeral public key, followed by AES-GCM with an IV of 16 bytes.
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
    """Return the private key of a vector."""
    return serialization.load_der_private_key(bytes.fromhex(vector["private_hex"]), None) if vector["type"] == 42 else (
        ec.derive_private_key(
            int.from_bytes(bytes.fromhex(vector["private_hex"])[len(bytes.fromhex(vector["public_hex"])):], "big"),
            CURVES[vector["name"]]()))


def digest_message(algorithm, message=MESSAGE):
    """Return the digest of a message."""
    context = hashes.Hash(algorithm())
    context.update(message)
    return context.finalize()


def raw_signature(signature, size):
    """Return the two numbers of an ECDSA signature as bytes (RFC 4754)."""
    return b"".join(number.to_bytes(size, "big") for number in decode_dss_signature(signature))


def signatures(key):
    """Yield the algorithm, the signed data and the signature of each scheme."""
    for name, algorithm in DIGESTS.items():
        digest = digest_message(algorithm)
        if isinstance(key, rsa.RSAPrivateKey):
            pss = padding.PSS(padding.MGF1(algorithm()), len(digest))
            for form, scheme, suffix in (
                ("PKCS1v15", padding.PKCS1v15(), name), ("PSS", pss, f"{name}:{name}:{len(digest)}")
            ):
                yield f"algid:sign:RSA:message-{form}:{suffix}", MESSAGE, key.sign(MESSAGE, scheme, algorithm())
                yield f"algid:sign:RSA:digest-{form}:{suffix}", digest, key.sign(digest, scheme, Prehashed(algorithm()))
        else:
            size = (key.curve.key_size + 7) // 8
            for form, encode in (
                ("X962", lambda signature: signature), ("RFC4754", lambda signature: raw_signature(signature, size))
            ):
                yield (
                    f"algid:sign:ECDSA:message-{form}:{name}", MESSAGE,
                    encode(key.sign(MESSAGE, ec.ECDSA(algorithm()))))
                yield (f"algid:sign:ECDSA:digest-{form}:{name}", digest,
                       encode(key.sign(digest, ec.ECDSA(Prehashed(algorithm())))))
    if isinstance(key, rsa.RSAPrivateKey):
        secret = key.private_numbers()
        modulus, size = secret.public_numbers.n, (key.key_size + 7) // 8
        for name, block in (("raw", b"\x00\x01" + MESSAGE),
                            ("digest-PKCS1v15", b"\x00\x01" + b"\xff" * (size - len(MESSAGE) - 3) + b"\x00" + MESSAGE)):
            signature = pow(int.from_bytes(block, "big"), secret.d, modulus).to_bytes(size, "big")
            yield f"algid:sign:RSA:{name}", block if name == "raw" else MESSAGE, signature


def ciphertexts(key, rng):
    """Yield the algorithm, the plaintext and the ciphertext of each scheme."""
    public = key.public_key()
    if isinstance(key, rsa.RSAPrivateKey):
        public_numbers, size = public.public_numbers(), (key.key_size + 7) // 8
        yield "algid:encrypt:RSA:raw", bytes(size - len(MESSAGE)) + MESSAGE, pow(
            int.from_bytes(MESSAGE, "big"), public_numbers.e, public_numbers.n).to_bytes(size, "big")
        yield "algid:encrypt:RSA:PKCS1", MESSAGE, public.encrypt(MESSAGE, padding.PKCS1v15())
        der = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.PKCS1)
        for name, algorithm in DIGESTS.items():
            oaep = padding.OAEP(padding.MGF1(algorithm()), algorithm(), None)
            yield f"algid:encrypt:RSA:OAEP:{name}", MESSAGE, public.encrypt(MESSAGE, oaep)
            session = rng.randbytes(32 if key.key_size >= 4096 else 16)
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
    """Yield the algorithm, the other public key, the shared info and the result of each key exchange."""
    other = ec.generate_private_key(key.curve)
    point = other.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    secret = key.exchange(ec.ECDH(), other.public_key())
    yield "algid:keyexchange:ECDH", point, b"", secret
    for name, algorithm in DIGESTS.items():
        yield (
            f"algid:keyexchange:ECDHC:KDFX963:{name}", point, MESSAGE, X963KDF(algorithm(), 77, MESSAGE).derive(secret))


def main():
    vectors = {vector["name"]: vector for vector in
               json.loads((FOLDER / "certificate-vectors.json").read_text(encoding="utf-8"))["keys"]}
    rng, keys = random.Random("key operations"), []
    for name in NAMES:
        key = load(vectors[name])
        keys.append(
            {
                "name": name,
                "signatures": [
                    {"algorithm": algorithm, "data_hex": data.hex(), "signature_hex": signature.hex()}
                    for algorithm, data, signature in signatures(key)
                ],
                "ciphertexts": [
                    {"algorithm": algorithm, "plaintext_hex": plaintext.hex(), "ciphertext_hex": ciphertext.hex()}
                    for algorithm, plaintext, ciphertext in ciphertexts(key, rng)
                ],
                "exchanges": []
                if name.startswith("RSA")
                else [
                    {
                        "algorithm": algorithm,
                        "other_hex": point.hex(),
                        "info_hex": info.hex(),
                        "result_hex": result.hex(),
                    }
                    for algorithm, point, info, result in exchanges(key)
                ],
            }
        )
    how = (f"made by Tests/Support/make_key_operation_vectors.py: cryptography {cryptography.__version__}, "
           f"{backend.openssl_version_text()}")
    json.dump({"how": how, "keys": keys}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
