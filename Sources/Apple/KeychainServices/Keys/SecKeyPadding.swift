// swift-format-ignore-file: AlwaysUseLowerCamelCase

import Foundation

/// A padding of Apple's older calls. `[]` adds none.
///
/// Source: Apple `SecKey.h`.
public struct SecPadding: OptionSet, Sendable {
  /// Apple's number for the padding.
  public let rawValue: UInt32

  /// Creates a padding from its number.
  public init(rawValue: UInt32) { self.rawValue = rawValue }

  /// PKCS#1 v1.5. An RSA signature does not contain the digest's identifier.
  public static let PKCS1 = SecPadding(rawValue: 1)
  /// OAEP with SHA-1, only for encryption.
  public static let OAEP = SecPadding(rawValue: 2)
  /// The numbers of an ECDSA signature, concatenated.
  public static let sigRaw = SecPadding(rawValue: 0x4000)
  /// PKCS#1 v1.5 with MD2, which no key supports.
  public static let PKCS1MD2 = SecPadding(rawValue: 0x8000)
  /// PKCS#1 v1.5 with MD5, which no key supports.
  public static let PKCS1MD5 = SecPadding(rawValue: 0x8001)
  /// PKCS#1 v1.5 of a SHA-1 digest.
  public static let PKCS1SHA1 = SecPadding(rawValue: 0x8002)
  /// PKCS#1 v1.5 of a SHA-224 digest.
  public static let PKCS1SHA224 = SecPadding(rawValue: 0x8003)
  /// PKCS#1 v1.5 of a SHA-256 digest.
  public static let PKCS1SHA256 = SecPadding(rawValue: 0x8004)
  /// PKCS#1 v1.5 of a SHA-384 digest.
  public static let PKCS1SHA384 = SecPadding(rawValue: 0x8005)
  /// PKCS#1 v1.5 of a SHA-512 digest.
  public static let PKCS1SHA512 = SecPadding(rawValue: 0x8006)
}

/// Signs a digest with a private key. Deprecated by Apple since iOS 15.
///
/// - Parameters:
///   - key: The private key.
///   - padding: The padding. It may also determine the digest's algorithm.
///   - dataToSign: The digest.
///   - dataToSignLen: The number of bytes in the digest.
///   - sig: Receives the signature.
///   - sigLen: The size of `sig`; receives the signature's length.
/// - Returns: `errSecSuccess`; `errSecParam` if the key does not support the padding, the digest has the wrong length
///   or `sig` is too small.
public func SecKeyRawSign(
  _ key: SecKey, _ padding: SecPadding, _ dataToSign: UnsafePointer<UInt8>, _ dataToSignLen: Int,
  _ sig: UnsafeMutablePointer<UInt8>, _ sigLen: UnsafeMutablePointer<Int>
) -> OSStatus {
  guard let algorithm = key.signatureAlgorithm(padding, dataToSignLen) else { return errSecParam }
  return fill(sig, sigLen) { SecKeyCreateSignature(key, algorithm, data(dataToSign, dataToSignLen), $0) as Data? }
}

/// Verifies a signature of a digest with a public key. Deprecated by Apple since iOS 15.
///
/// - Parameters:
///   - key: The public key.
///   - padding: The padding of the signature.
///   - signedData: The digest.
///   - signedDataLen: The number of bytes in the digest.
///   - sig: The signature.
///   - sigLen: The number of bytes in the signature.
/// - Returns: `errSecSuccess`; `errSSLCrypto` if the signature does not match, `errSecParam` if the key does not
///   support the padding.
public func SecKeyRawVerify(
  _ key: SecKey, _ padding: SecPadding, _ signedData: UnsafePointer<UInt8>, _ signedDataLen: Int,
  _ sig: UnsafePointer<UInt8>, _ sigLen: Int
) -> OSStatus {
  guard let algorithm = key.signatureAlgorithm(padding, signedDataLen) else { return errSecParam }
  return status {
    SecKeyVerifySignature(key, algorithm, data(signedData, signedDataLen), data(sig, sigLen), $0) ? true : nil
  }
}

/// Encrypts data with a public RSA key. Deprecated by Apple since iOS 15.
///
/// - Parameters:
///   - key: The public key.
///   - padding: No padding, PKCS#1 or OAEP.
///   - plainText: The data.
///   - plainTextLen: The number of bytes in the data.
///   - cipherText: Receives the encrypted data.
///   - cipherTextLen: The size of `cipherText`; receives the length.
/// - Returns: `errSecSuccess`; `errSecParam` if the key does not support the padding, there is too much data or
///   `cipherText` is too small.
public func SecKeyEncrypt(
  _ key: SecKey, _ padding: SecPadding, _ plainText: UnsafePointer<UInt8>, _ plainTextLen: Int,
  _ cipherText: UnsafeMutablePointer<UInt8>, _ cipherTextLen: UnsafeMutablePointer<Int>
) -> OSStatus {
  guard let algorithm = key.encryptionAlgorithm(padding) else { return errSecParam }
  return fill(cipherText, cipherTextLen) {
    SecKeyCreateEncryptedData(key, algorithm, data(plainText, plainTextLen), $0) as Data?
  }
}

/// Decrypts data with a private RSA key. Deprecated by Apple since iOS 15.
///
/// - Parameters:
///   - key: The private key.
///   - padding: No padding, PKCS#1 or OAEP. Without padding, leading zeros are removed.
///   - cipherText: The encrypted data.
///   - cipherTextLen: The number of bytes in the encrypted data.
///   - plainText: Receives the data.
///   - plainTextLen: The size of `plainText`; receives the length.
/// - Returns: `errSecSuccess`; `errSecParam` if the key does not support the padding, the data was not encrypted with
///   it or `plainText` is too small.
public func SecKeyDecrypt(
  _ key: SecKey, _ padding: SecPadding, _ cipherText: UnsafePointer<UInt8>, _ cipherTextLen: Int,
  _ plainText: UnsafeMutablePointer<UInt8>, _ plainTextLen: UnsafeMutablePointer<Int>
) -> OSStatus {
  guard let algorithm = key.encryptionAlgorithm(padding) else { return errSecParam }
  return fill(plainText, plainTextLen) {
    let plaintext = SecKeyCreateDecryptedData(key, algorithm, data(cipherText, cipherTextLen), $0) as Data?
    return padding.isEmpty ? plaintext.map { Data($0.drop { $0 == 0 }) } : plaintext
  }
}

/// Source: Apple `SecKey.m` (`SecKeyGetSignatureAlgorithmForPadding`, `SecKeyGetEncryptionAlgorithmForPadding`).
extension SecKey {
  fileprivate func signatureAlgorithm(_ padding: SecPadding, _ byteCount: Int) -> SecKeyAlgorithm? {
    guard isRSA else { return Self.curveAlgorithm(padding, byteCount) }
    return switch padding {
    case []: .rsaSignatureRaw
    case .PKCS1: .rsaSignatureDigestPKCS1v15Raw
    case .PKCS1SHA1: .rsaSignatureDigestPKCS1v15SHA1
    case .PKCS1SHA224: .rsaSignatureDigestPKCS1v15SHA224
    case .PKCS1SHA256: .rsaSignatureDigestPKCS1v15SHA256
    case .PKCS1SHA384: .rsaSignatureDigestPKCS1v15SHA384
    case .PKCS1SHA512: .rsaSignatureDigestPKCS1v15SHA512
    default: nil
    }
  }

  /// Returns the algorithm for a curve. Any padding except `sigRaw` results in a signature in DER. With PKCS#1, the
  /// number of bytes determines the digest algorithm.
  private static func curveAlgorithm(_ padding: SecPadding, _ byteCount: Int) -> SecKeyAlgorithm {
    guard padding != .sigRaw else { return .ecdsaSignatureRFC4754 }
    return switch (padding, byteCount) {
    case (.PKCS1, 20): .ecdsaSignatureDigestX962SHA1
    case (.PKCS1, 28): .ecdsaSignatureDigestX962SHA224
    case (.PKCS1, 32): .ecdsaSignatureDigestX962SHA256
    case (.PKCS1, 48): .ecdsaSignatureDigestX962SHA384
    case (.PKCS1, 64): .ecdsaSignatureDigestX962SHA512
    default: .ecdsaSignatureDigestX962
    }
  }

  fileprivate func encryptionAlgorithm(_ padding: SecPadding) -> SecKeyAlgorithm? {
    guard isRSA else { return nil }
    return switch padding {
    case []: .rsaEncryptionRaw
    case .PKCS1: .rsaEncryptionPKCS1
    case .OAEP: .rsaEncryptionOAEPSHA1
    default: nil
    }
  }
}

/// The status of Secure Transport for a signature that does not match.
public let errSSLCrypto: OSStatus = -9809

private func data(_ bytes: UnsafePointer<UInt8>, _ count: Int) -> CFData {
  NSData(data: Data(UnsafeBufferPointer(start: bytes, count: max(count, 0))))
}

/// Makes a call and returns the status. The call returns `nil` after it has reported an error.
///
/// Source: Apple `SecKey.m` (`SecKeyPerformLegacyOperation`).
private func status(_ call: (UnsafeMutablePointer<Unmanaged<CFError>?>) -> Bool?) -> OSStatus {
  var error: Unmanaged<CFError>?
  if call(&error) != nil { return errSecSuccess }
  let code = error.flatMap { OSStatus(exactly: CFErrorGetCode($0.takeRetainedValue())) } ?? errSecInternalError
  return code == errSecVerifyFailed ? errSSLCrypto : code
}

/// Copies the result of a call to the caller's memory, and returns the status.
///
/// - Parameters:
///   - target: The caller's memory.
///   - length: The size of the memory; receives the result's length.
///   - call: Returns the result, or `nil` after it has reported an error.
private func fill(
  _ target: UnsafeMutablePointer<UInt8>, _ length: UnsafeMutablePointer<Int>,
  _ call: (UnsafeMutablePointer<Unmanaged<CFError>?>) -> Data?
) -> OSStatus {
  var result: Data?
  let code = status { error in
    result = call(error)
    return result == nil ? nil : true
  }
  guard code == errSecSuccess, let result else { return code }
  guard result.count <= length.pointee else { return errSecParam }
  result.copyBytes(to: target, count: result.count)
  length.pointee = result.count
  return errSecSuccess
}
