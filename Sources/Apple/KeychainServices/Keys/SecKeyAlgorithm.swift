public import Foundation

/// An algorithm for key operations. Its name is the value of Apple's constant.
public struct SecKeyAlgorithm: RawRepresentable, Hashable, Sendable {
  let name: String

  /// The name as a string.
  public var rawValue: CFString { name as NSString }

  /// Creates an algorithm from a name. No key supports an unknown algorithm.
  public init(rawValue: CFString) { name = rawValue as String }

  init(_ name: String) { self.name = name }
}

/// A parameter of a key exchange.
public struct SecKeyKeyExchangeParameter: RawRepresentable, Hashable, Sendable {
  private let name: String

  /// The name as a string.
  public var rawValue: CFString { name as NSString }

  /// Creates a parameter from a name.
  public init(rawValue: CFString) { name = rawValue as String }

  /// The number of bytes to derive.
  public static let requestedSize = SecKeyKeyExchangeParameter(rawValue: "requestedSize")
  /// Data of any length that both sides use in the derivation.
  public static let sharedInfo = SecKeyKeyExchangeParameter(rawValue: "sharedInfo")
}

/// An operation with a key.
public enum SecKeyOperationType: Int, Sendable {
  /// Creating a signature with a private key.
  case sign = 0
  /// Verifying a signature with a public key.
  case verify = 1
  /// Encrypting with a public key.
  case encrypt = 2
  /// Decrypting with a private key.
  case decrypt = 3
  /// Exchanging a secret with a private key and another party's public key.
  case keyExchange = 4
}

// Encryption and key exchange algorithms. Source of names and values: Apple `SecKey.h`, `SecKeyAdaptors.m`.
//
// All curves have the cofactor 1, so "Standard" and "Cofactor" are equivalent.

extension SecKeyAlgorithm {
  // MARK: RSA encryption

  /// RSA without padding. Shorter input is filled with leading zeros.
  public static let rsaEncryptionRaw = SecKeyAlgorithm("algid:encrypt:RSA:raw")
  /// PKCS#1 v1.5, for up to eleven bytes less than the key size.
  public static let rsaEncryptionPKCS1 = SecKeyAlgorithm("algid:encrypt:RSA:PKCS1")
  /// OAEP with SHA-1, for up to 42 bytes less than the key size.
  public static let rsaEncryptionOAEPSHA1 = SecKeyAlgorithm("algid:encrypt:RSA:OAEP:SHA1")
  /// OAEP with SHA-224, for up to 58 bytes less than the key size.
  public static let rsaEncryptionOAEPSHA224 = SecKeyAlgorithm("algid:encrypt:RSA:OAEP:SHA224")
  /// OAEP with SHA-256, for up to 66 bytes less than the key size.
  public static let rsaEncryptionOAEPSHA256 = SecKeyAlgorithm("algid:encrypt:RSA:OAEP:SHA256")
  /// OAEP with SHA-384, for up to 98 bytes less than the key size.
  public static let rsaEncryptionOAEPSHA384 = SecKeyAlgorithm("algid:encrypt:RSA:OAEP:SHA384")
  /// OAEP with SHA-512, for up to 130 bytes less than the key size.
  public static let rsaEncryptionOAEPSHA512 = SecKeyAlgorithm("algid:encrypt:RSA:OAEP:SHA512")
  /// A session key encrypted by OAEP with SHA-1, and any amount of data encrypted by AES-GCM.
  public static let rsaEncryptionOAEPSHA1AESGCM = SecKeyAlgorithm("algid:encrypt:RSA:OAEP:SHA1:AESGCM")
  /// A session key encrypted by OAEP with SHA-224, and any amount of data encrypted by AES-GCM.
  public static let rsaEncryptionOAEPSHA224AESGCM = SecKeyAlgorithm("algid:encrypt:RSA:OAEP:SHA224:AESGCM")
  /// A session key encrypted by OAEP with SHA-256, and any amount of data encrypted by AES-GCM.
  public static let rsaEncryptionOAEPSHA256AESGCM = SecKeyAlgorithm("algid:encrypt:RSA:OAEP:SHA256:AESGCM")
  /// A session key encrypted by OAEP with SHA-384, and any amount of data encrypted by AES-GCM.
  public static let rsaEncryptionOAEPSHA384AESGCM = SecKeyAlgorithm("algid:encrypt:RSA:OAEP:SHA384:AESGCM")
  /// A session key encrypted by OAEP with SHA-512, and any amount of data encrypted by AES-GCM.
  public static let rsaEncryptionOAEPSHA512AESGCM = SecKeyAlgorithm("algid:encrypt:RSA:OAEP:SHA512:AESGCM")

  // MARK: Elliptic curve encryption

  /// ECIES with a key derived by SHA-1 and an IV of zeros.
  public static let eciesEncryptionStandardX963SHA1AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDH:KDFX963:SHA1:AESGCM")
  /// ECIES with a key derived by SHA-224 and an IV of zeros.
  public static let eciesEncryptionStandardX963SHA224AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDH:KDFX963:SHA224:AESGCM")
  /// ECIES with a key derived by SHA-256 and an IV of zeros.
  public static let eciesEncryptionStandardX963SHA256AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDH:KDFX963:SHA256:AESGCM")
  /// ECIES with a key derived by SHA-384 and an IV of zeros.
  public static let eciesEncryptionStandardX963SHA384AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDH:KDFX963:SHA384:AESGCM")
  /// ECIES with a key derived by SHA-512 and an IV of zeros.
  public static let eciesEncryptionStandardX963SHA512AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDH:KDFX963:SHA512:AESGCM")
  /// ECIES with a key and an IV derived by SHA-224.
  public static let eciesEncryptionStandardVariableIVX963SHA224AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDH:KDFX963:SHA224:AESGCM-KDFIV")
  /// ECIES with a key and an IV derived by SHA-256.
  public static let eciesEncryptionStandardVariableIVX963SHA256AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDH:KDFX963:SHA256:AESGCM-KDFIV")
  /// ECIES with a key and an IV derived by SHA-384.
  public static let eciesEncryptionStandardVariableIVX963SHA384AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDH:KDFX963:SHA384:AESGCM-KDFIV")
  /// ECIES with a key and an IV derived by SHA-512.
  public static let eciesEncryptionStandardVariableIVX963SHA512AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDH:KDFX963:SHA512:AESGCM-KDFIV")
  /// ECIES with a key derived by SHA-1 and an IV of zeros.
  public static let eciesEncryptionCofactorX963SHA1AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDHC:KDFX963:SHA1:AESGCM")
  /// ECIES with a key derived by SHA-224 and an IV of zeros.
  public static let eciesEncryptionCofactorX963SHA224AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDHC:KDFX963:SHA224:AESGCM")
  /// ECIES with a key derived by SHA-256 and an IV of zeros.
  public static let eciesEncryptionCofactorX963SHA256AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDHC:KDFX963:SHA256:AESGCM")
  /// ECIES with a key derived by SHA-384 and an IV of zeros.
  public static let eciesEncryptionCofactorX963SHA384AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDHC:KDFX963:SHA384:AESGCM")
  /// ECIES with a key derived by SHA-512 and an IV of zeros.
  public static let eciesEncryptionCofactorX963SHA512AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDHC:KDFX963:SHA512:AESGCM")
  /// ECIES with a key and an IV derived by SHA-224.
  public static let eciesEncryptionCofactorVariableIVX963SHA224AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDHC:KDFX963:SHA224:AESGCM-KDFIV")
  /// ECIES with a key and an IV derived by SHA-256.
  public static let eciesEncryptionCofactorVariableIVX963SHA256AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDHC:KDFX963:SHA256:AESGCM-KDFIV")
  /// ECIES with a key and an IV derived by SHA-384.
  public static let eciesEncryptionCofactorVariableIVX963SHA384AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDHC:KDFX963:SHA384:AESGCM-KDFIV")
  /// ECIES with a key and an IV derived by SHA-512.
  public static let eciesEncryptionCofactorVariableIVX963SHA512AESGCM = SecKeyAlgorithm(
    "algid:encrypt:ECIES:ECDHC:KDFX963:SHA512:AESGCM-KDFIV")

  // MARK: Key exchange

  /// The shared secret itself, which is the X coordinate.
  public static let ecdhKeyExchangeStandard = SecKeyAlgorithm("algid:keyexchange:ECDH")
  /// A key derived from the shared secret by X9.63 with SHA-1.
  public static let ecdhKeyExchangeStandardX963SHA1 = SecKeyAlgorithm("algid:keyexchange:ECDH:KDFX963:SHA1")
  /// A key derived from the shared secret by X9.63 with SHA-224.
  public static let ecdhKeyExchangeStandardX963SHA224 = SecKeyAlgorithm("algid:keyexchange:ECDH:KDFX963:SHA224")
  /// A key derived from the shared secret by X9.63 with SHA-256.
  public static let ecdhKeyExchangeStandardX963SHA256 = SecKeyAlgorithm("algid:keyexchange:ECDH:KDFX963:SHA256")
  /// A key derived from the shared secret by X9.63 with SHA-384.
  public static let ecdhKeyExchangeStandardX963SHA384 = SecKeyAlgorithm("algid:keyexchange:ECDH:KDFX963:SHA384")
  /// A key derived from the shared secret by X9.63 with SHA-512.
  public static let ecdhKeyExchangeStandardX963SHA512 = SecKeyAlgorithm("algid:keyexchange:ECDH:KDFX963:SHA512")
  /// The shared secret itself, which is the X coordinate.
  public static let ecdhKeyExchangeCofactor = SecKeyAlgorithm("algid:keyexchange:ECDHC")
  /// A key derived from the shared secret by X9.63 with SHA-1.
  public static let ecdhKeyExchangeCofactorX963SHA1 = SecKeyAlgorithm("algid:keyexchange:ECDHC:KDFX963:SHA1")
  /// A key derived from the shared secret by X9.63 with SHA-224.
  public static let ecdhKeyExchangeCofactorX963SHA224 = SecKeyAlgorithm("algid:keyexchange:ECDHC:KDFX963:SHA224")
  /// A key derived from the shared secret by X9.63 with SHA-256.
  public static let ecdhKeyExchangeCofactorX963SHA256 = SecKeyAlgorithm("algid:keyexchange:ECDHC:KDFX963:SHA256")
  /// A key derived from the shared secret by X9.63 with SHA-384.
  public static let ecdhKeyExchangeCofactorX963SHA384 = SecKeyAlgorithm("algid:keyexchange:ECDHC:KDFX963:SHA384")
  /// A key derived from the shared secret by X9.63 with SHA-512.
  public static let ecdhKeyExchangeCofactorX963SHA512 = SecKeyAlgorithm("algid:keyexchange:ECDHC:KDFX963:SHA512")
}

// Signature algorithms. Source of names and values: Apple `SecKey.h`, `SecKeyAdaptors.m`.

extension SecKeyAlgorithm {
  // MARK: RSA signatures

  /// RSA without padding. Shorter input is filled with leading zeros.
  public static let rsaSignatureRaw = SecKeyAlgorithm("algid:sign:RSA:raw")
  /// PKCS#1 v1.5 of any bytes, without the identifier of a digest.
  public static let rsaSignatureDigestPKCS1v15Raw = SecKeyAlgorithm("algid:sign:RSA:digest-PKCS1v15")
  /// PKCS#1 v1.5 of a SHA-1 digest (20 bytes).
  public static let rsaSignatureDigestPKCS1v15SHA1 = SecKeyAlgorithm("algid:sign:RSA:digest-PKCS1v15:SHA1")
  /// PKCS#1 v1.5 of a SHA-224 digest (28 bytes).
  public static let rsaSignatureDigestPKCS1v15SHA224 = SecKeyAlgorithm("algid:sign:RSA:digest-PKCS1v15:SHA224")
  /// PKCS#1 v1.5 of a SHA-256 digest (32 bytes).
  public static let rsaSignatureDigestPKCS1v15SHA256 = SecKeyAlgorithm("algid:sign:RSA:digest-PKCS1v15:SHA256")
  /// PKCS#1 v1.5 of a SHA-384 digest (48 bytes).
  public static let rsaSignatureDigestPKCS1v15SHA384 = SecKeyAlgorithm("algid:sign:RSA:digest-PKCS1v15:SHA384")
  /// PKCS#1 v1.5 of a SHA-512 digest (64 bytes).
  public static let rsaSignatureDigestPKCS1v15SHA512 = SecKeyAlgorithm("algid:sign:RSA:digest-PKCS1v15:SHA512")
  /// PKCS#1 v1.5 of a message with SHA-1.
  public static let rsaSignatureMessagePKCS1v15SHA1 = SecKeyAlgorithm("algid:sign:RSA:message-PKCS1v15:SHA1")
  /// PKCS#1 v1.5 of a message with SHA-224.
  public static let rsaSignatureMessagePKCS1v15SHA224 = SecKeyAlgorithm("algid:sign:RSA:message-PKCS1v15:SHA224")
  /// PKCS#1 v1.5 of a message with SHA-256.
  public static let rsaSignatureMessagePKCS1v15SHA256 = SecKeyAlgorithm("algid:sign:RSA:message-PKCS1v15:SHA256")
  /// PKCS#1 v1.5 of a message with SHA-384.
  public static let rsaSignatureMessagePKCS1v15SHA384 = SecKeyAlgorithm("algid:sign:RSA:message-PKCS1v15:SHA384")
  /// PKCS#1 v1.5 of a message with SHA-512.
  public static let rsaSignatureMessagePKCS1v15SHA512 = SecKeyAlgorithm("algid:sign:RSA:message-PKCS1v15:SHA512")
  /// PSS of a SHA-1 digest, with a salt of 20 bytes.
  public static let rsaSignatureDigestPSSSHA1 = SecKeyAlgorithm("algid:sign:RSA:digest-PSS:SHA1:SHA1:20")
  /// PSS of a SHA-224 digest, with a salt of 28 bytes.
  public static let rsaSignatureDigestPSSSHA224 = SecKeyAlgorithm("algid:sign:RSA:digest-PSS:SHA224:SHA224:28")
  /// PSS of a SHA-256 digest, with a salt of 32 bytes.
  public static let rsaSignatureDigestPSSSHA256 = SecKeyAlgorithm("algid:sign:RSA:digest-PSS:SHA256:SHA256:32")
  /// PSS of a SHA-384 digest, with a salt of 48 bytes.
  public static let rsaSignatureDigestPSSSHA384 = SecKeyAlgorithm("algid:sign:RSA:digest-PSS:SHA384:SHA384:48")
  /// PSS of a SHA-512 digest, with a salt of 64 bytes.
  public static let rsaSignatureDigestPSSSHA512 = SecKeyAlgorithm("algid:sign:RSA:digest-PSS:SHA512:SHA512:64")
  /// PSS of a message with SHA-1, with a salt of 20 bytes.
  public static let rsaSignatureMessagePSSSHA1 = SecKeyAlgorithm("algid:sign:RSA:message-PSS:SHA1:SHA1:20")
  /// PSS of a message with SHA-224, with a salt of 28 bytes.
  public static let rsaSignatureMessagePSSSHA224 = SecKeyAlgorithm("algid:sign:RSA:message-PSS:SHA224:SHA224:28")
  /// PSS of a message with SHA-256, with a salt of 32 bytes.
  public static let rsaSignatureMessagePSSSHA256 = SecKeyAlgorithm("algid:sign:RSA:message-PSS:SHA256:SHA256:32")
  /// PSS of a message with SHA-384, with a salt of 48 bytes.
  public static let rsaSignatureMessagePSSSHA384 = SecKeyAlgorithm("algid:sign:RSA:message-PSS:SHA384:SHA384:48")
  /// PSS of a message with SHA-512, with a salt of 64 bytes.
  public static let rsaSignatureMessagePSSSHA512 = SecKeyAlgorithm("algid:sign:RSA:message-PSS:SHA512:SHA512:64")

  // MARK: ECDSA signatures

  /// ECDSA of a digest of any length, with both numbers concatenated (RFC 4754).
  public static let ecdsaSignatureRFC4754 = SecKeyAlgorithm("algid:sign:ECDSA:RFC4754")
  /// ECDSA of a digest of any length, in DER (X9.62).
  public static let ecdsaSignatureDigestX962 = SecKeyAlgorithm("algid:sign:ECDSA:digest-X962")
  /// ECDSA of a digest of any length, with both numbers concatenated.
  public static let ecdsaSignatureDigestRFC4754 = SecKeyAlgorithm("algid:sign:ECDSA:digest-RFC4754")
  /// ECDSA of a SHA-1 digest (20 bytes), in DER.
  public static let ecdsaSignatureDigestX962SHA1 = SecKeyAlgorithm("algid:sign:ECDSA:digest-X962:SHA1")
  /// ECDSA of a SHA-224 digest (28 bytes), in DER.
  public static let ecdsaSignatureDigestX962SHA224 = SecKeyAlgorithm("algid:sign:ECDSA:digest-X962:SHA224")
  /// ECDSA of a SHA-256 digest (32 bytes), in DER.
  public static let ecdsaSignatureDigestX962SHA256 = SecKeyAlgorithm("algid:sign:ECDSA:digest-X962:SHA256")
  /// ECDSA of a SHA-384 digest (48 bytes), in DER.
  public static let ecdsaSignatureDigestX962SHA384 = SecKeyAlgorithm("algid:sign:ECDSA:digest-X962:SHA384")
  /// ECDSA of a SHA-512 digest (64 bytes), in DER.
  public static let ecdsaSignatureDigestX962SHA512 = SecKeyAlgorithm("algid:sign:ECDSA:digest-X962:SHA512")
  /// ECDSA of a message with SHA-1, in DER.
  public static let ecdsaSignatureMessageX962SHA1 = SecKeyAlgorithm("algid:sign:ECDSA:message-X962:SHA1")
  /// ECDSA of a message with SHA-224, in DER.
  public static let ecdsaSignatureMessageX962SHA224 = SecKeyAlgorithm("algid:sign:ECDSA:message-X962:SHA224")
  /// ECDSA of a message with SHA-256, in DER.
  public static let ecdsaSignatureMessageX962SHA256 = SecKeyAlgorithm("algid:sign:ECDSA:message-X962:SHA256")
  /// ECDSA of a message with SHA-384, in DER.
  public static let ecdsaSignatureMessageX962SHA384 = SecKeyAlgorithm("algid:sign:ECDSA:message-X962:SHA384")
  /// ECDSA of a message with SHA-512, in DER.
  public static let ecdsaSignatureMessageX962SHA512 = SecKeyAlgorithm("algid:sign:ECDSA:message-X962:SHA512")
  /// ECDSA of a SHA-1 digest (20 bytes), with both numbers concatenated.
  public static let ecdsaSignatureDigestRFC4754SHA1 = SecKeyAlgorithm("algid:sign:ECDSA:digest-RFC4754:SHA1")
  /// ECDSA of a SHA-224 digest (28 bytes), with both numbers concatenated.
  public static let ecdsaSignatureDigestRFC4754SHA224 = SecKeyAlgorithm("algid:sign:ECDSA:digest-RFC4754:SHA224")
  /// ECDSA of a SHA-256 digest (32 bytes), with both numbers concatenated.
  public static let ecdsaSignatureDigestRFC4754SHA256 = SecKeyAlgorithm("algid:sign:ECDSA:digest-RFC4754:SHA256")
  /// ECDSA of a SHA-384 digest (48 bytes), with both numbers concatenated.
  public static let ecdsaSignatureDigestRFC4754SHA384 = SecKeyAlgorithm("algid:sign:ECDSA:digest-RFC4754:SHA384")
  /// ECDSA of a SHA-512 digest (64 bytes), with both numbers concatenated.
  public static let ecdsaSignatureDigestRFC4754SHA512 = SecKeyAlgorithm("algid:sign:ECDSA:digest-RFC4754:SHA512")
  /// ECDSA of a message with SHA-1, with both numbers concatenated.
  public static let ecdsaSignatureMessageRFC4754SHA1 = SecKeyAlgorithm("algid:sign:ECDSA:message-RFC4754:SHA1")
  /// ECDSA of a message with SHA-224, with both numbers concatenated.
  public static let ecdsaSignatureMessageRFC4754SHA224 = SecKeyAlgorithm("algid:sign:ECDSA:message-RFC4754:SHA224")
  /// ECDSA of a message with SHA-256, with both numbers concatenated.
  public static let ecdsaSignatureMessageRFC4754SHA256 = SecKeyAlgorithm("algid:sign:ECDSA:message-RFC4754:SHA256")
  /// ECDSA of a message with SHA-384, with both numbers concatenated.
  public static let ecdsaSignatureMessageRFC4754SHA384 = SecKeyAlgorithm("algid:sign:ECDSA:message-RFC4754:SHA384")
  /// ECDSA of a message with SHA-512, with both numbers concatenated.
  public static let ecdsaSignatureMessageRFC4754SHA512 = SecKeyAlgorithm("algid:sign:ECDSA:message-RFC4754:SHA512")
}
