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
# kSecAttrKeyTypeRSA.
RSA_TYPE = 42
IV_SIZE = 16
# A size that is not a multiple of any digest's size.
DERIVED_SIZE = 77


def load_private_key(vector):
    """Return the private key of a vector: PKCS#1 for RSA, and otherwise the public point followed by the scalar."""
    private = bytes.fromhex(vector["private_hex"])
    if vector["type"] == RSA_TYPE:
        return serialization.load_der_private_key(private, None)
    scalar = private[len(bytes.fromhex(vector["public_hex"])):]
    return ec.derive_private_key(int.from_bytes(scalar, "big"), CURVES[vector["name"]]())


def byte_size(bit_count):
    """Return the number of bytes that bits need."""
    return (bit_count + 7) // 8


def encoded_point(public_key):
    """Return the uncompressed point of a public key."""
    return public_key.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)


def digest_message(algorithm, message=MESSAGE):
    """Return the digest of a message."""
    context = hashes.Hash(algorithm())
    context.update(message)
    return context.finalize()


def rsa_power(block, exponent, key):
    """Return a block raised to an exponent, without padding. The result has the size of the modulus."""
    modulus = key.public_key().public_numbers().n
    return pow(int.from_bytes(block, "big"), exponent, modulus).to_bytes(byte_size(key.key_size), "big")


def rsa_signatures(key):
    """Yield the algorithm, the signed data and the signature of each RSA scheme."""
    for name, algorithm in DIGESTS.items():
        digest = digest_message(algorithm)
        pss = padding.PSS(padding.MGF1(algorithm()), len(digest))
        for scheme_name, scheme, suffix in (
            ("PKCS1v15", padding.PKCS1v15(), name), ("PSS", pss, f"{name}:{name}:{len(digest)}")
        ):
            yield f"algid:sign:RSA:message-{scheme_name}:{suffix}", MESSAGE, key.sign(MESSAGE, scheme, algorithm())
            yield (
                f"algid:sign:RSA:digest-{scheme_name}:{suffix}", digest,
                key.sign(digest, scheme, Prehashed(algorithm())))
    private_exponent = key.private_numbers().d
    unpadded_block = b"\x00\x01" + MESSAGE
    yield "algid:sign:RSA:raw", unpadded_block, rsa_power(unpadded_block, private_exponent, key)
    # PKCS#1 padding of the message itself, without the identifier of a digest: 00 01 FF … FF 00 MESSAGE.
    padding_count = byte_size(key.key_size) - len(MESSAGE) - 3
    padded_block = b"\x00\x01" + b"\xff" * padding_count + b"\x00" + MESSAGE
    yield "algid:sign:RSA:digest-PKCS1v15", MESSAGE, rsa_power(padded_block, private_exponent, key)


def raw_signature(signature, size):
    """Return the two numbers of an ECDSA signature as bytes (RFC 4754)."""
    return b"".join(number.to_bytes(size, "big") for number in decode_dss_signature(signature))


def ec_signatures(key):
    """Yield the algorithm, the signed data and the signature of each ECDSA scheme."""
    size = byte_size(key.curve.key_size)
    encodings = {"X962": lambda signature: signature, "RFC4754": lambda signature: raw_signature(signature, size)}
    for name, algorithm in DIGESTS.items():
        digest = digest_message(algorithm)
        for encoding, encode in encodings.items():
            message_signature = encode(key.sign(MESSAGE, ec.ECDSA(algorithm())))
            yield f"algid:sign:ECDSA:message-{encoding}:{name}", MESSAGE, message_signature
            digest_signature = encode(key.sign(digest, ec.ECDSA(Prehashed(algorithm()))))
            yield f"algid:sign:ECDSA:digest-{encoding}:{name}", digest, digest_signature


def rsa_ciphertexts(key, rng):
    """Yield the algorithm, the plaintext and the ciphertext of each RSA scheme."""
    public_key = key.public_key()
    block = MESSAGE.rjust(byte_size(key.key_size), b"\x00")
    yield "algid:encrypt:RSA:raw", block, rsa_power(block, public_key.public_numbers().e, key)
    yield "algid:encrypt:RSA:PKCS1", MESSAGE, public_key.encrypt(MESSAGE, padding.PKCS1v15())
    # The hybrid scheme authenticates the public key.
    encoded_key = public_key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.PKCS1)
    long_message = MESSAGE * 20
    for name, algorithm in DIGESTS.items():
        oaep = padding.OAEP(padding.MGF1(algorithm()), algorithm(), None)
        yield f"algid:encrypt:RSA:OAEP:{name}", MESSAGE, public_key.encrypt(MESSAGE, oaep)
        session_key = rng.randbytes(32 if key.key_size >= 4096 else 16)
        encrypted_message = AESGCM(session_key).encrypt(bytes(IV_SIZE), long_message, encoded_key)
        yield (
            f"algid:encrypt:RSA:OAEP:{name}:AESGCM", long_message,
            public_key.encrypt(session_key, oaep) + encrypted_message)


def ec_ciphertexts(key):
    """Yield the algorithm, the plaintext and the ciphertext of each ECIES scheme."""
    ephemeral_key = ec.generate_private_key(key.curve)
    point = encoded_point(ephemeral_key.public_key())
    secret = ephemeral_key.exchange(ec.ECDH(), key.public_key())
    key_size = 16 if key.curve.key_size <= 256 else 32
    for name, algorithm in DIGESTS.items():
        aes_key = X963KDF(algorithm(), key_size, point).derive(secret)
        yield (
            f"algid:encrypt:ECIES:ECDH:KDFX963:{name}:AESGCM", MESSAGE,
            point + AESGCM(aes_key).encrypt(bytes(IV_SIZE), MESSAGE, None))
        # Apple has no SHA-1 variant of the scheme that also derives the IV.
        if name != "SHA1":
            derived = X963KDF(algorithm(), key_size + IV_SIZE, point).derive(secret)
            aes_key, iv = derived[:key_size], derived[key_size:]
            yield (
                f"algid:encrypt:ECIES:ECDHC:KDFX963:{name}:AESGCM-KDFIV", MESSAGE,
                point + AESGCM(aes_key).encrypt(iv, MESSAGE, None))


def exchanges(key):
    """Yield the algorithm, the other public key, the shared info and the result of each key exchange."""
    other_key = ec.generate_private_key(key.curve).public_key()
    point = encoded_point(other_key)
    secret = key.exchange(ec.ECDH(), other_key)
    yield "algid:keyexchange:ECDH", point, b"", secret
    for name, algorithm in DIGESTS.items():
        derived = X963KDF(algorithm(), DERIVED_SIZE, MESSAGE).derive(secret)
        yield f"algid:keyexchange:ECDHC:KDFX963:{name}", point, MESSAGE, derived


def key_entry(name, key, rng):
    """Return the entry of a key: all its signatures, ciphertexts and key exchanges."""
    is_rsa = isinstance(key, rsa.RSAPrivateKey)
    signatures = rsa_signatures(key) if is_rsa else ec_signatures(key)
    ciphertexts = rsa_ciphertexts(key, rng) if is_rsa else ec_ciphertexts(key)
    return {
        "name": name,
        "signatures": [
            {"algorithm": algorithm, "data_hex": data.hex(), "signature_hex": signature.hex()}
            for algorithm, data, signature in signatures
        ],
        "ciphertexts": [
            {"algorithm": algorithm, "plaintext_hex": plaintext.hex(), "ciphertext_hex": ciphertext.hex()}
            for algorithm, plaintext, ciphertext in ciphertexts
        ],
        "exchanges": [
            {"algorithm": algorithm, "other_hex": point.hex(), "info_hex": info.hex(), "result_hex": result.hex()}
            for algorithm, point, info, result in ([] if is_rsa else exchanges(key))
        ],
    }


def main():
    certificate_vectors = json.loads((FOLDER / "certificate-vectors.json").read_text(encoding="utf-8"))
    vectors = {vector["name"]: vector for vector in certificate_vectors["keys"]}
    rng = random.Random("key operations")
    keys = [key_entry(name, load_private_key(vectors[name]), rng) for name in NAMES]
    how = (f"made by Tests/Support/make_key_operation_vectors.py: cryptography {cryptography.__version__}, "
           f"{backend.openssl_version_text()}")
    json.dump({"how": how, "keys": keys}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
