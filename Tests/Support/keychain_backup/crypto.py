"""The cryptographic primitives of backups, on top of AES from `cryptography`.

GCM with an empty IV is implemented here (NIST SP 800-38D, GHASH over integers), because OpenSSL rejects that length.
"""

import hashlib
import hmac

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap, aes_key_wrap
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from . import FormatError

ZERO_BLOCK = bytes(16)


class TagMismatch(FormatError):
    """An authentication tag, or the check value of a key wrap, is wrong."""


def wrap(kek, key):
    """Wrap a key (RFC 3394)."""
    return aes_key_wrap(kek, key)


def unwrap(kek, wrapped):
    """Unwrap a key (RFC 3394). Raise TagMismatch if the check value is wrong."""
    try:
        return aes_key_unwrap(kek, wrapped)
    except InvalidUnwrap as error:
        raise TagMismatch("a wrapped key does not unwrap") from error


def _run(key, mode, data, decrypt=False):
    cipher = Cipher(algorithms.AES(key), mode)
    context = cipher.decryptor() if decrypt else cipher.encryptor()
    return context.update(data) + context.finalize()


def cbc_encrypt(key, data, iv=ZERO_BLOCK):
    return _run(key, modes.CBC(iv), data)


def cbc_decrypt(key, data, iv=ZERO_BLOCK):
    if len(data) % 16:
        raise FormatError("encrypted bytes are not a whole number of blocks")
    return _run(key, modes.CBC(iv), data, decrypt=True)


def ecb_encrypt(key, block):
    return _run(key, modes.ECB(), block)


def pad(data):
    """Add PKCS #7 padding."""
    count = 16 - len(data) % 16
    return data + bytes([count]) * count


def has_padding(data):
    """Whether the data ends in PKCS #7 padding."""
    count = data[-1] if data else 0
    return 1 <= count <= 16 and len(data) >= count and data.endswith(bytes([count]) * count)


def unpad(data):
    """Remove PKCS #7 padding."""
    if not has_padding(data):
        raise FormatError("the padding is wrong: another key, or damaged")
    return data[:-data[-1]]


def passcode_key(password, salt, iterations, sha256_salt=None, sha256_iterations=0):
    """Return the key that is derived from a password with PBKDF2.

    Since iOS 10.2, the SHA-256 derivation precedes the SHA-1 derivation.
    """
    if sha256_salt is not None and sha256_iterations > 0:
        password = hashlib.pbkdf2_hmac("sha256", password, sha256_salt, sha256_iterations, 32)
    return hashlib.pbkdf2_hmac("sha1", password, salt, iterations, 32)


_REDUCTION = 0xE1 << 120


def _ghash(subkey, data):
    """Return GHASH of the data and its length, without additional data, computed four bits at a time."""
    # The products of the subkey and each value of four bits. The highest bit is the lowest power.
    products = [0] * 16
    products[8] = int.from_bytes(subkey, "big")
    for index in (4, 2, 1):
        products[index] = _times_x(products[index * 2])
    for index in (2, 4, 8):
        for low in range(1, index):
            products[index + low] = products[index] ^ products[low]
    # The element to add for each value of the four bits that a shift removes.
    reductions = []
    for value in range(16):
        for _ in range(4):
            value = _times_x(value)
        reductions.append(value)
    blocks = data + bytes(-len(data) % 16) + (0).to_bytes(8, "big") + (len(data) * 8).to_bytes(8, "big")
    product = 0
    for start in range(0, len(blocks), 16):
        factor = product ^ int.from_bytes(blocks[start:start + 16], "big")
        product = 0
        for _ in range(32):
            product = (product >> 4) ^ reductions[product & 15] ^ products[factor & 15]
            factor >>= 4
    return product.to_bytes(16, "big")


def _times_x(value):
    """Return a field element multiplied by x. GCM writes the powers of x in reverse order."""
    return (value >> 1) ^ (_REDUCTION if value & 1 else 0)


def _xor(left, right):
    return bytes(a ^ b for a, b in zip(left, right))


def _counter_mode(key, data):
    return _run(key, modes.CTR((1).to_bytes(16, "big")), data)


def _tag_without_iv(key, ciphertext):
    # With an empty IV, the first counter block is zero. So the subkey of GHASH also encrypts the hash.
    subkey = ecb_encrypt(key, ZERO_BLOCK)
    return _xor(_ghash(subkey, ciphertext), subkey)


def gcm_seal(key, plaintext, iv=b"", additional=b""):
    """Return the ciphertext and the 16-byte tag. With an empty IV, the first counter block is sixteen zero bytes."""
    if iv:
        sealed = AESGCM(key).encrypt(iv, plaintext, additional)
        return sealed[:-16], sealed[-16:]
    ciphertext = _counter_mode(key, plaintext)
    return ciphertext, _tag_without_iv(key, ciphertext)


def gcm_open(key, ciphertext, tag, iv=b"", additional=b""):
    """Return the plaintext. Raise TagMismatch if the tag is wrong."""
    if iv:
        try:
            return AESGCM(key).decrypt(iv, ciphertext + tag, additional)
        except InvalidTag as error:
            raise TagMismatch("an item's tag is wrong") from error
    if not hmac.compare_digest(_tag_without_iv(key, ciphertext), tag):
        raise TagMismatch("an item's tag is wrong")
    return _counter_mode(key, ciphertext)


def _curve_kek(shared, ephemeral, public):
    return hashlib.sha256(b"\x00\x00\x00\x01" + shared + ephemeral + public).digest()


def curve_public(private):
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def curve_shared(private, public):
    return X25519PrivateKey.from_private_bytes(private).exchange(X25519PublicKey.from_public_bytes(public))


def curve_unwrap(private, public, wrapped):
    """Unwrap a key of 72 bytes: an ephemeral public key, and the key wrapped under the shared secret."""
    ephemeral = wrapped[:32]
    return unwrap(_curve_kek(curve_shared(private, ephemeral), ephemeral, public), wrapped[32:])


def curve_wrap(public, key, ephemeral_private):
    """Wrap a key for the holder of a Curve25519 private key."""
    ephemeral = curve_public(ephemeral_private)
    return ephemeral + wrap(_curve_kek(curve_shared(ephemeral_private, public), ephemeral, public), key)


class SeededRandom:
    """A deterministic byte generator: SHA-256 of a counter and the seed."""

    def __init__(self, seed):
        self._seed, self._counter, self._unused = str(seed).encode("utf-8"), 0, b""

    def bytes(self, count):
        """Return the next bytes."""
        while len(self._unused) < count:
            self._unused += hashlib.sha256(self._counter.to_bytes(8, "big") + self._seed).digest()
            self._counter += 1
        result, self._unused = self._unused[:count], self._unused[count:]
        return result
