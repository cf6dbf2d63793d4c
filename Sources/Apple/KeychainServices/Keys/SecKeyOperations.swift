// swift-format-ignore-file: AlwaysUseLowerCamelCase

import Basics
public import Foundation
import KeychainCrypto
import KeychainFormats
import VirtualDevice

/// Signs a message or a digest with a private key.
///
/// - Parameters:
///   - key: The private key.
///   - algorithm: The algorithm, which accepts either messages or digests.
///   - dataToSign: The message, or a digest of the length that the algorithm requires.
///   - error: Receives `errSecParam` if the key or the data is not valid for the algorithm.
/// - Returns: The signature, or `nil` if there is an error.
public func SecKeyCreateSignature(
  _ key: SecKey, _ algorithm: SecKeyAlgorithm, _ dataToSign: CFData,
  _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> CFData? {
  translatingErrors(to: error) { () throws(SecItemError) in
    let (material, scheme, digest) = try signatureInput(key, algorithm, .sign, dataToSign)
    let signature = try translatingCertificateErrors { () throws(CertificateError) in
      try material.signature(of: digest, scheme)
    }
    return NSData(data: Data(signature))
  }
}

/// Verifies the signature of a message or a digest.
///
/// - Parameters:
///   - key: The signer's public key.
///   - algorithm: The algorithm of the signature.
///   - signedData: The message, or a digest of the length that the algorithm requires.
///   - signature: The signature, in the format of `SecKeyCreateSignature`.
///   - error: Receives `errSecVerifyFailed` if the signature does not match, or `errSecParam` if the key or the data is
///     not valid for the algorithm.
/// - Returns: Whether the signature matches.
public func SecKeyVerifySignature(
  _ key: SecKey, _ algorithm: SecKeyAlgorithm, _ signedData: CFData, _ signature: CFData,
  _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> Bool {
  translatingErrors(to: error) { () throws(SecItemError) in
    let (material, scheme, digest) = try signatureInput(key, algorithm, .verify, signedData)
    let isValid = try translatingCertificateErrors { () throws(CertificateError) in
      try material.verifies(Array(Data(referencing: signature)), of: digest, scheme)
    }
    guard isValid else { throw SecItemError(.verifyFailed, "the signature does not match the data") }
    return true
  } ?? false
}

/// Encrypts data with a public key.
///
/// - Parameters:
///   - key: The public key.
///   - algorithm: The algorithm, which may limit the size of the data.
///   - plaintext: The data to encrypt.
///   - error: Receives `errSecParam` if the key is not valid for the algorithm, or there is too much data.
/// - Returns: The encrypted data, or `nil` if there is an error.
public func SecKeyCreateEncryptedData(
  _ key: SecKey, _ algorithm: SecKeyAlgorithm, _ plaintext: CFData,
  _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> CFData? {
  translatingErrors(to: error) { () throws(SecItemError) in
    let (material, scheme) = try encryptionKey(key, algorithm, .encrypt)
    let bytes = SensitiveBytes(copying: Array(Data(referencing: plaintext)))
    return NSData(
      data: Data(
        try translatingCertificateErrors { () throws(CertificateError) in try material.encrypt(bytes, scheme) }))
  }
}

/// Decrypts data with a private key.
///
/// - Parameters:
///   - key: The private key.
///   - algorithm: The algorithm with which the data was encrypted.
///   - ciphertext: The encrypted data, in the format of `SecKeyCreateEncryptedData`.
///   - error: Receives `errSecParam` if the key is not valid for the algorithm or the data was not encrypted for it.
///     With PKCS#1 v1.5, data that was not encrypted for the key is not an error: the call returns unrelated data, as
///     in Apple's current `SecKeyAdaptors.m`.
/// - Returns: The decrypted data, or `nil` if there is an error.
public func SecKeyCreateDecryptedData(
  _ key: SecKey, _ algorithm: SecKeyAlgorithm, _ ciphertext: CFData,
  _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> CFData? {
  translatingErrors(to: error) { () throws(SecItemError) in
    let (material, scheme) = try encryptionKey(key, algorithm, .decrypt)
    let plaintext = try translatingCertificateErrors { () throws(CertificateError) in
      try material.decrypt(Array(Data(referencing: ciphertext)), scheme)
    }
    return plaintext.withBytes { NSData(data: Data($0)) }
  }
}

/// Derives a shared secret with the owner of another key on the same curve.
///
/// - Parameters:
///   - privateKey: The private key.
///   - algorithm: The algorithm. If it derives a key, it also names the digest.
///   - publicKey: The other side's public key.
///   - parameters: For algorithms that derive a key: `SecKeyKeyExchangeParameter.requestedSize` (the number of bytes)
///     and, optionally, `.sharedInfo` (data).
///   - error: Receives `errSecParam` if the keys are not valid for the algorithm, or no size is given.
/// - Returns: The shared secret or derived key, or `nil` if there is an error.
public func SecKeyCopyKeyExchangeResult(
  _ privateKey: SecKey, _ algorithm: SecKeyAlgorithm, _ publicKey: SecKey, _ parameters: CFDictionary,
  _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> CFData? {
  translatingErrors(to: error) { () throws(SecItemError) in
    let (material, resolved) = try privateKey.resolvedAlgorithm(algorithm, .keyExchange)
    guard case .exchange(let digest) = resolved else { throw unsupported(algorithm) }
    let publicMaterial = try publicKey.material()
    let secret = try translatingCertificateErrors { () throws(CertificateError) in
      try material.sharedSecret(with: publicMaterial)
    }
    guard let digest else { return secret.withBytes { NSData(data: Data($0)) } }
    let values = try SecItemQuery(parameters)
    guard let size = values["requestedSize"]?.numberValue.flatMap({ Int(exactly: $0) }) else {
      throw SecItemError(.parameter, "requestedSize, the number of bytes to derive, is missing")
    }
    let info = values["sharedInfo"]?.dataValue ?? []
    let derived = try translatingCertificateErrors { () throws(CertificateError) in
      try X963KeyDerivation.derive(size, of: secret, digest, sharedInfo: info)
    }
    return derived.withBytes { NSData(data: Data($0)) }
  }
}

/// Returns whether a key supports an operation with an algorithm.
///
/// - Returns: Whether it does. It is `false` for algorithms with MD5, and for names that are not Apple's constants.
public func SecKeyIsAlgorithmSupported(
  _ key: SecKey, _ operation: SecKeyOperationType, _ algorithm: SecKeyAlgorithm
) -> Bool {
  (try? key.supportedAlgorithm(algorithm, operation)) != nil
}

extension SecKey {
  fileprivate func resolvedAlgorithm(
    _ algorithm: SecKeyAlgorithm, _ operation: SecKeyOperationType
  ) throws(SecItemError) -> (material: KeyMaterial, resolved: ResolvedKeyAlgorithm) {
    let resolved = try supportedAlgorithm(algorithm, operation)
    return (try material(for: operation), resolved)
  }

  /// Returns the parsed algorithm if the key supports it. This requires no authentication.
  fileprivate func supportedAlgorithm(
    _ algorithm: SecKeyAlgorithm, _ operation: SecKeyOperationType
  ) throws(SecItemError) -> ResolvedKeyAlgorithm {
    let keyMaterial: KeyMaterial
    if let tokenPublicKey = try tokenPublicKey { keyMaterial = tokenPublicKey } else { keyMaterial = try material() }
    guard let resolved = ResolvedKeyAlgorithm(algorithm), let role,
      resolved.isSupported(by: keyMaterial, role: role, for: operation)
    else { throw unsupported(algorithm) }
    return resolved
  }
}

private func unsupported(_ algorithm: SecKeyAlgorithm) -> SecItemError {
  SecItemError(.parameter, "the key does not support \(UntrustedText.quoted(algorithm.name)) for this operation")
}

/// Returns the key, the scheme and the digest for a signature.
private func signatureInput(
  _ key: SecKey, _ algorithm: SecKeyAlgorithm, _ operation: SecKeyOperationType, _ data: CFData
) throws(SecItemError) -> (material: KeyMaterial, scheme: SignatureScheme, digest: [UInt8]) {
  let (material, resolved) = try key.resolvedAlgorithm(algorithm, operation)
  guard case .signature(let scheme, let input) = resolved else { throw unsupported(algorithm) }
  let bytes = Array(Data(referencing: data))
  switch input {
  case .message(let keyDigest):
    return (
      material, scheme,
      try translatingCertificateErrors { () throws(CertificateError) in try keyDigest.digest(of: bytes) }
    )
  case .digest(let keyDigest):
    guard keyDigest.map({ $0.size == bytes.count }) ?? true else {
      throw SecItemError(.parameter, "the algorithm does not accept a digest of \(bytes.count) bytes")
    }
    return (material, scheme, bytes)
  }
}

/// Returns the key and the scheme for encryption or decryption.
private func encryptionKey(
  _ key: SecKey, _ algorithm: SecKeyAlgorithm, _ operation: SecKeyOperationType
) throws(SecItemError) -> (material: KeyMaterial, scheme: KeyEncryption) {
  let (material, resolved) = try key.resolvedAlgorithm(algorithm, operation)
  guard case .encryption(let scheme) = resolved else { throw unsupported(algorithm) }
  return (material, scheme)
}

private func translatingCertificateErrors<Value>(_ body: () throws(CertificateError) -> Value) throws(SecItemError)
  -> Value
{
  do throws(CertificateError) {
    return try body()
  } catch {
    switch error.code {
    case .failed: throw SecItemError(.internalError, error.reason)
    case .mismatch, .malformed, .encrypted, .wrongPassword, .unexpectedKind, .unsupported, .overLimit:
      throw SecItemError(.parameter, error.reason)
    }
  }
}
