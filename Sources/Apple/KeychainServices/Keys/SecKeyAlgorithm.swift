public import Foundation

/// What is done with a key, and how: the name that Apple's constants have.
public struct SecKeyAlgorithm: RawRepresentable, Hashable, Sendable {
  let name: String

  /// The text of the constant.
  public var rawValue: CFString { name as NSString }

  /// Creates an algorithm of the text of a constant; a text that none has is supported by no key.
  public init(rawValue: CFString) { name = rawValue as String }

  init(_ name: String) { self.name = name }
}

/// A parameter of a key exchange.
public struct SecKeyKeyExchangeParameter: RawRepresentable, Hashable, Sendable {
  private let name: String

  /// The text of the constant.
  public var rawValue: CFString { name as NSString }

  /// Creates a parameter of the text of a constant.
  public init(rawValue: CFString) { name = rawValue as String }

  /// How many bytes are to be derived: a number.
  public static let requestedSize = SecKeyKeyExchangeParameter(rawValue: "requestedSize")
  /// What both sides add to the derivation: data, of which any length may be.
  public static let sharedInfo = SecKeyKeyExchangeParameter(rawValue: "sharedInfo")
}

/// What a key is asked to do.
public enum SecKeyOperationType: Int, Sendable {
  /// Make a signature; a private key.
  case sign = 0
  /// Check a signature; a public key.
  case verify = 1
  /// Encrypt; a public key.
  case encrypt = 2
  /// Decrypt; a private key.
  case decrypt = 3
  /// Agree on a secret with another key; a private key.
  case keyExchange = 4
}

// The algorithms of encryption and of key exchange. Source of names and values: Apple `SecKey.h`, `SecKeyAdaptors.m`.
//
// The curves have the cofactor 1, so that "Standard" and "Cofactor" do the same.

extension SecKeyAlgorithm {
  // MARK: RSA encryption

  /// RSA without padding; shorter input gets zeros before it.
  public static let rsaEncryptionRaw = SecKeyAlgorithm("algid:encrypt:RSA:raw")
  /// PKCS#1 v1.5: up to eleven bytes fewer than the key has.
  public static let rsaEncryptionPKCS1 = SecKeyAlgorithm("algid:encrypt:RSA:PKCS1")
  /// OAEP with SHA-1: up to 42 bytes fewer than the key has.
  public static let rsaEncryptionOAEPSHA1 = SecKeyAlgorithm("algid:encrypt:RSA:OAEP:SHA1")
  /// OAEP with SHA-224: up to 58 bytes fewer than the key has.
  public static let rsaEncryptionOAEPSHA224 = SecKeyAlgorithm("algid:encrypt:RSA:OAEP:SHA224")
  /// OAEP with SHA-256: up to 66 bytes fewer than the key has.
  public static let rsaEncryptionOAEPSHA256 = SecKeyAlgorithm("algid:encrypt:RSA:OAEP:SHA256")
  /// OAEP with SHA-384: up to 98 bytes fewer than the key has.
  public static let rsaEncryptionOAEPSHA384 = SecKeyAlgorithm("algid:encrypt:RSA:OAEP:SHA384")
  /// OAEP with SHA-512: up to 130 bytes fewer than the key has.
  public static let rsaEncryptionOAEPSHA512 = SecKeyAlgorithm("algid:encrypt:RSA:OAEP:SHA512")
  /// A session key in OAEP with SHA-1, then any number of bytes in AES-GCM.
  public static let rsaEncryptionOAEPSHA1AESGCM = SecKeyAlgorithm("algid:encrypt:RSA:OAEP:SHA1:AESGCM")
  /// A session key in OAEP with SHA-224, then any number of bytes in AES-GCM.
  public static let rsaEncryptionOAEPSHA224AESGCM = SecKeyAlgorithm("algid:encrypt:RSA:OAEP:SHA224:AESGCM")
  /// A session key in OAEP with SHA-256, then any number of bytes in AES-GCM.
  public static let rsaEncryptionOAEPSHA256AESGCM = SecKeyAlgorithm("algid:encrypt:RSA:OAEP:SHA256:AESGCM")
  /// A session key in OAEP with SHA-384, then any number of bytes in AES-GCM.
  public static let rsaEncryptionOAEPSHA384AESGCM = SecKeyAlgorithm("algid:encrypt:RSA:OAEP:SHA384:AESGCM")
  /// A session key in OAEP with SHA-512, then any number of bytes in AES-GCM.
  public static let rsaEncryptionOAEPSHA512AESGCM = SecKeyAlgorithm("algid:encrypt:RSA:OAEP:SHA512:AESGCM")

  // MARK: Encryption on curves

  /// ECIES, the key derived with SHA-1, a vector of zeros.
  public static let eciesEncryptionStandardX963SHA1AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDH:KDFX963:SHA1:AESGCM")
  /// ECIES, the key derived with SHA-224, a vector of zeros.
  public static let eciesEncryptionStandardX963SHA224AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDH:KDFX963:SHA224:AESGCM")
  /// ECIES, the key derived with SHA-256, a vector of zeros.
  public static let eciesEncryptionStandardX963SHA256AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDH:KDFX963:SHA256:AESGCM")
  /// ECIES, the key derived with SHA-384, a vector of zeros.
  public static let eciesEncryptionStandardX963SHA384AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDH:KDFX963:SHA384:AESGCM")
  /// ECIES, the key derived with SHA-512, a vector of zeros.
  public static let eciesEncryptionStandardX963SHA512AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDH:KDFX963:SHA512:AESGCM")
  /// ECIES, key and vector derived with SHA-224.
  public static let eciesEncryptionStandardVariableIVX963SHA224AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDH:KDFX963:SHA224:AESGCM-KDFIV")
  /// ECIES, key and vector derived with SHA-256.
  public static let eciesEncryptionStandardVariableIVX963SHA256AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDH:KDFX963:SHA256:AESGCM-KDFIV")
  /// ECIES, key and vector derived with SHA-384.
  public static let eciesEncryptionStandardVariableIVX963SHA384AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDH:KDFX963:SHA384:AESGCM-KDFIV")
  /// ECIES, key and vector derived with SHA-512.
  public static let eciesEncryptionStandardVariableIVX963SHA512AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDH:KDFX963:SHA512:AESGCM-KDFIV")
  /// ECIES, the key derived with SHA-1, a vector of zeros.
  public static let eciesEncryptionCofactorX963SHA1AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDHC:KDFX963:SHA1:AESGCM")
  /// ECIES, the key derived with SHA-224, a vector of zeros.
  public static let eciesEncryptionCofactorX963SHA224AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDHC:KDFX963:SHA224:AESGCM")
  /// ECIES, the key derived with SHA-256, a vector of zeros.
  public static let eciesEncryptionCofactorX963SHA256AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDHC:KDFX963:SHA256:AESGCM")
  /// ECIES, the key derived with SHA-384, a vector of zeros.
  public static let eciesEncryptionCofactorX963SHA384AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDHC:KDFX963:SHA384:AESGCM")
  /// ECIES, the key derived with SHA-512, a vector of zeros.
  public static let eciesEncryptionCofactorX963SHA512AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDHC:KDFX963:SHA512:AESGCM")
  /// ECIES, key and vector derived with SHA-224.
  public static let eciesEncryptionCofactorVariableIVX963SHA224AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDHC:KDFX963:SHA224:AESGCM-KDFIV")
  /// ECIES, key and vector derived with SHA-256.
  public static let eciesEncryptionCofactorVariableIVX963SHA256AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDHC:KDFX963:SHA256:AESGCM-KDFIV")
  /// ECIES, key and vector derived with SHA-384.
  public static let eciesEncryptionCofactorVariableIVX963SHA384AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDHC:KDFX963:SHA384:AESGCM-KDFIV")
  /// ECIES, key and vector derived with SHA-512.
  public static let eciesEncryptionCofactorVariableIVX963SHA512AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDHC:KDFX963:SHA512:AESGCM-KDFIV")

  // MARK: Key exchange

  /// The shared secret itself: the X coordinate.
  public static let ecdhKeyExchangeStandard = SecKeyAlgorithm("algid:keyexchange:ECDH")
  /// A key that X9.63 derives of the shared secret with SHA-1.
  public static let ecdhKeyExchangeStandardX963SHA1 = SecKeyAlgorithm("algid:keyexchange:ECDH:KDFX963:SHA1")
  /// A key that X9.63 derives of the shared secret with SHA-224.
  public static let ecdhKeyExchangeStandardX963SHA224 = SecKeyAlgorithm("algid:keyexchange:ECDH:KDFX963:SHA224")
  /// A key that X9.63 derives of the shared secret with SHA-256.
  public static let ecdhKeyExchangeStandardX963SHA256 = SecKeyAlgorithm("algid:keyexchange:ECDH:KDFX963:SHA256")
  /// A key that X9.63 derives of the shared secret with SHA-384.
  public static let ecdhKeyExchangeStandardX963SHA384 = SecKeyAlgorithm("algid:keyexchange:ECDH:KDFX963:SHA384")
  /// A key that X9.63 derives of the shared secret with SHA-512.
  public static let ecdhKeyExchangeStandardX963SHA512 = SecKeyAlgorithm("algid:keyexchange:ECDH:KDFX963:SHA512")
  /// The shared secret itself: the X coordinate.
  public static let ecdhKeyExchangeCofactor = SecKeyAlgorithm("algid:keyexchange:ECDHC")
  /// A key that X9.63 derives of the shared secret with SHA-1.
  public static let ecdhKeyExchangeCofactorX963SHA1 = SecKeyAlgorithm("algid:keyexchange:ECDHC:KDFX963:SHA1")
  /// A key that X9.63 derives of the shared secret with SHA-224.
  public static let ecdhKeyExchangeCofactorX963SHA224 = SecKeyAlgorithm("algid:keyexchange:ECDHC:KDFX963:SHA224")
  /// A key that X9.63 derives of the shared secret with SHA-256.
  public static let ecdhKeyExchangeCofactorX963SHA256 = SecKeyAlgorithm("algid:keyexchange:ECDHC:KDFX963:SHA256")
  /// A key that X9.63 derives of the shared secret with SHA-384.
  public static let ecdhKeyExchangeCofactorX963SHA384 = SecKeyAlgorithm("algid:keyexchange:ECDHC:KDFX963:SHA384")
  /// A key that X9.63 derives of the shared secret with SHA-512.
  public static let ecdhKeyExchangeCofactorX963SHA512 = SecKeyAlgorithm("algid:keyexchange:ECDHC:KDFX963:SHA512")
}

// The algorithms of signatures. Source of names and values: Apple `SecKey.h`, `SecKeyAdaptors.m`.

extension SecKeyAlgorithm {
  // MARK: RSA signatures

  /// RSA without padding; shorter input gets zeros before it.
  public static let rsaSignatureRaw = SecKeyAlgorithm("algid:sign:RSA:raw")
  /// PKCS#1 v1.5 of any bytes, without the name of a digest.
  public static let rsaSignatureDigestPKCS1v15Raw = SecKeyAlgorithm("algid:sign:RSA:digest-PKCS1v15")
  /// PKCS#1 v1.5 of a digest of 20 bytes, SHA-1.
  public static let rsaSignatureDigestPKCS1v15SHA1 = SecKeyAlgorithm("algid:sign:RSA:digest-PKCS1v15:SHA1")
  /// PKCS#1 v1.5 of a digest of 28 bytes, SHA-224.
  public static let rsaSignatureDigestPKCS1v15SHA224 = SecKeyAlgorithm("algid:sign:RSA:digest-PKCS1v15:SHA224")
  /// PKCS#1 v1.5 of a digest of 32 bytes, SHA-256.
  public static let rsaSignatureDigestPKCS1v15SHA256 = SecKeyAlgorithm("algid:sign:RSA:digest-PKCS1v15:SHA256")
  /// PKCS#1 v1.5 of a digest of 48 bytes, SHA-384.
  public static let rsaSignatureDigestPKCS1v15SHA384 = SecKeyAlgorithm("algid:sign:RSA:digest-PKCS1v15:SHA384")
  /// PKCS#1 v1.5 of a digest of 64 bytes, SHA-512.
  public static let rsaSignatureDigestPKCS1v15SHA512 = SecKeyAlgorithm("algid:sign:RSA:digest-PKCS1v15:SHA512")
  /// PKCS#1 v1.5 of a message, with SHA-1.
  public static let rsaSignatureMessagePKCS1v15SHA1 = SecKeyAlgorithm("algid:sign:RSA:message-PKCS1v15:SHA1")
  /// PKCS#1 v1.5 of a message, with SHA-224.
  public static let rsaSignatureMessagePKCS1v15SHA224 = SecKeyAlgorithm("algid:sign:RSA:message-PKCS1v15:SHA224")
  /// PKCS#1 v1.5 of a message, with SHA-256.
  public static let rsaSignatureMessagePKCS1v15SHA256 = SecKeyAlgorithm("algid:sign:RSA:message-PKCS1v15:SHA256")
  /// PKCS#1 v1.5 of a message, with SHA-384.
  public static let rsaSignatureMessagePKCS1v15SHA384 = SecKeyAlgorithm("algid:sign:RSA:message-PKCS1v15:SHA384")
  /// PKCS#1 v1.5 of a message, with SHA-512.
  public static let rsaSignatureMessagePKCS1v15SHA512 = SecKeyAlgorithm("algid:sign:RSA:message-PKCS1v15:SHA512")
  /// PSS of a digest of 20 bytes, SHA-1, with a salt as long.
  public static let rsaSignatureDigestPSSSHA1 = SecKeyAlgorithm("algid:sign:RSA:digest-PSS:SHA1:SHA1:20")
  /// PSS of a digest of 28 bytes, SHA-224, with a salt as long.
  public static let rsaSignatureDigestPSSSHA224 = SecKeyAlgorithm("algid:sign:RSA:digest-PSS:SHA224:SHA224:28")
  /// PSS of a digest of 32 bytes, SHA-256, with a salt as long.
  public static let rsaSignatureDigestPSSSHA256 = SecKeyAlgorithm("algid:sign:RSA:digest-PSS:SHA256:SHA256:32")
  /// PSS of a digest of 48 bytes, SHA-384, with a salt as long.
  public static let rsaSignatureDigestPSSSHA384 = SecKeyAlgorithm("algid:sign:RSA:digest-PSS:SHA384:SHA384:48")
  /// PSS of a digest of 64 bytes, SHA-512, with a salt as long.
  public static let rsaSignatureDigestPSSSHA512 = SecKeyAlgorithm("algid:sign:RSA:digest-PSS:SHA512:SHA512:64")
  /// PSS of a message, with SHA-1 and a salt of 20 bytes.
  public static let rsaSignatureMessagePSSSHA1 = SecKeyAlgorithm("algid:sign:RSA:message-PSS:SHA1:SHA1:20")
  /// PSS of a message, with SHA-224 and a salt of 28 bytes.
  public static let rsaSignatureMessagePSSSHA224 = SecKeyAlgorithm("algid:sign:RSA:message-PSS:SHA224:SHA224:28")
  /// PSS of a message, with SHA-256 and a salt of 32 bytes.
  public static let rsaSignatureMessagePSSSHA256 = SecKeyAlgorithm("algid:sign:RSA:message-PSS:SHA256:SHA256:32")
  /// PSS of a message, with SHA-384 and a salt of 48 bytes.
  public static let rsaSignatureMessagePSSSHA384 = SecKeyAlgorithm("algid:sign:RSA:message-PSS:SHA384:SHA384:48")
  /// PSS of a message, with SHA-512 and a salt of 64 bytes.
  public static let rsaSignatureMessagePSSSHA512 = SecKeyAlgorithm("algid:sign:RSA:message-PSS:SHA512:SHA512:64")

  // MARK: ECDSA signatures

  /// Both numbers one after the other (RFC 4754), of a digest of any length.
  public static let ecdsaSignatureRFC4754 = SecKeyAlgorithm("algid:sign:ECDSA:RFC4754")
  /// Both numbers in DER (X9.62), of a digest of any length.
  public static let ecdsaSignatureDigestX962 = SecKeyAlgorithm("algid:sign:ECDSA:digest-X962")
  /// Both numbers one after the other, of a digest of any length.
  public static let ecdsaSignatureDigestRFC4754 = SecKeyAlgorithm("algid:sign:ECDSA:digest-RFC4754")
  /// In DER, of a digest of 20 bytes, SHA-1.
  public static let ecdsaSignatureDigestX962SHA1 = SecKeyAlgorithm("algid:sign:ECDSA:digest-X962:SHA1")
  /// In DER, of a digest of 28 bytes, SHA-224.
  public static let ecdsaSignatureDigestX962SHA224 = SecKeyAlgorithm("algid:sign:ECDSA:digest-X962:SHA224")
  /// In DER, of a digest of 32 bytes, SHA-256.
  public static let ecdsaSignatureDigestX962SHA256 = SecKeyAlgorithm("algid:sign:ECDSA:digest-X962:SHA256")
  /// In DER, of a digest of 48 bytes, SHA-384.
  public static let ecdsaSignatureDigestX962SHA384 = SecKeyAlgorithm("algid:sign:ECDSA:digest-X962:SHA384")
  /// In DER, of a digest of 64 bytes, SHA-512.
  public static let ecdsaSignatureDigestX962SHA512 = SecKeyAlgorithm("algid:sign:ECDSA:digest-X962:SHA512")
  /// In DER, of a message, with SHA-1.
  public static let ecdsaSignatureMessageX962SHA1 = SecKeyAlgorithm("algid:sign:ECDSA:message-X962:SHA1")
  /// In DER, of a message, with SHA-224.
  public static let ecdsaSignatureMessageX962SHA224 = SecKeyAlgorithm("algid:sign:ECDSA:message-X962:SHA224")
  /// In DER, of a message, with SHA-256.
  public static let ecdsaSignatureMessageX962SHA256 = SecKeyAlgorithm("algid:sign:ECDSA:message-X962:SHA256")
  /// In DER, of a message, with SHA-384.
  public static let ecdsaSignatureMessageX962SHA384 = SecKeyAlgorithm("algid:sign:ECDSA:message-X962:SHA384")
  /// In DER, of a message, with SHA-512.
  public static let ecdsaSignatureMessageX962SHA512 = SecKeyAlgorithm("algid:sign:ECDSA:message-X962:SHA512")
  /// One after the other, of a digest of 20 bytes, SHA-1.
  public static let ecdsaSignatureDigestRFC4754SHA1 = SecKeyAlgorithm("algid:sign:ECDSA:digest-RFC4754:SHA1")
  /// One after the other, of a digest of 28 bytes, SHA-224.
  public static let ecdsaSignatureDigestRFC4754SHA224 = SecKeyAlgorithm("algid:sign:ECDSA:digest-RFC4754:SHA224")
  /// One after the other, of a digest of 32 bytes, SHA-256.
  public static let ecdsaSignatureDigestRFC4754SHA256 = SecKeyAlgorithm("algid:sign:ECDSA:digest-RFC4754:SHA256")
  /// One after the other, of a digest of 48 bytes, SHA-384.
  public static let ecdsaSignatureDigestRFC4754SHA384 = SecKeyAlgorithm("algid:sign:ECDSA:digest-RFC4754:SHA384")
  /// One after the other, of a digest of 64 bytes, SHA-512.
  public static let ecdsaSignatureDigestRFC4754SHA512 = SecKeyAlgorithm("algid:sign:ECDSA:digest-RFC4754:SHA512")
  /// One after the other, of a message, with SHA-1.
  public static let ecdsaSignatureMessageRFC4754SHA1 = SecKeyAlgorithm("algid:sign:ECDSA:message-RFC4754:SHA1")
  /// One after the other, of a message, with SHA-224.
  public static let ecdsaSignatureMessageRFC4754SHA224 = SecKeyAlgorithm("algid:sign:ECDSA:message-RFC4754:SHA224")
  /// One after the other, of a message, with SHA-256.
  public static let ecdsaSignatureMessageRFC4754SHA256 = SecKeyAlgorithm("algid:sign:ECDSA:message-RFC4754:SHA256")
  /// One after the other, of a message, with SHA-384.
  public static let ecdsaSignatureMessageRFC4754SHA384 = SecKeyAlgorithm("algid:sign:ECDSA:message-RFC4754:SHA384")
  /// One after the other, of a message, with SHA-512.
  public static let ecdsaSignatureMessageRFC4754SHA512 = SecKeyAlgorithm("algid:sign:ECDSA:message-RFC4754:SHA512")
}
