// swift-format-ignore-file: AlwaysUseLowerCamelCase

import Basics
public import Foundation
import KeychainCrypto
import KeychainFormats
import VirtualDevice

/// Signs a message or a digest with a private key.
///
/// - Parameters:
///   - key: A private key.
///   - algorithm: The scheme, and of what a signature is made.
///   - dataToSign: What the algorithm's name says: a message, or a digest of its length.
///   - error: Receives `errSecParam` where the key or the data is not for this algorithm.
/// - Returns: `nil` if there is an error.
public func SecKeyCreateSignature(
  _ key: SecKey, _ algorithm: SecKeyAlgorithm, _ dataToSign: CFData,
  _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> CFData? {
  reporting(to: error) { () throws(SecItemError) in
    let (material, scheme, digest) = try signing(key, algorithm, .sign, dataToSign)
    let signature = try working { () throws(CertificateError) in try material.signature(of: digest, scheme) }
    return NSData(data: Data(signature))
  }
}

/// Whether a signature is that of a message or a digest.
///
/// - Parameters:
///   - key: The public key of the one that signed.
///   - algorithm: The scheme, and of what the signature was made.
///   - signedData: What the algorithm's name says: a message, or a digest of its length.
///   - signature: As `SecKeyCreateSignature` gives it.
///   - error: Receives `errSecVerifyFailed` where the signature is another one, `errSecParam` where the key or the data is
///     not for this algorithm.
public func SecKeyVerifySignature(
  _ key: SecKey, _ algorithm: SecKeyAlgorithm, _ signedData: CFData, _ signature: CFData,
  _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> Bool {
  reporting(to: error) { () throws(SecItemError) in
    let (material, scheme, digest) = try signing(key, algorithm, .verify, signedData)
    let isRight = try working { () throws(CertificateError) in
      try material.verifies(Array(Data(referencing: signature)), of: digest, scheme)
    }
    guard isRight else { throw SecItemError(.verifyFailed, "the signature does not match the data") }
    return true
  } ?? false
}

/// Encrypts bytes with a public key.
///
/// - Parameters:
///   - key: A public key.
///   - algorithm: The scheme.
///   - plaintext: The bytes.
///   - error: Receives `errSecParam` where the key is not for this algorithm, or the bytes are more than it takes.
/// - Returns: `nil` if there is an error.
public func SecKeyCreateEncryptedData(
  _ key: SecKey, _ algorithm: SecKeyAlgorithm, _ plaintext: CFData,
  _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> CFData? {
  reporting(to: error) { () throws(SecItemError) in
    let (material, scheme) = try encrypting(key, algorithm, .encrypt)
    let bytes = SensitiveBytes(copying: Array(Data(referencing: plaintext)))
    return NSData(data: Data(try working { () throws(CertificateError) in try material.encrypt(bytes, scheme) }))
  }
}

/// Decrypts with a private key what was encrypted for its public one.
///
/// - Parameters:
///   - key: A private key.
///   - algorithm: The scheme.
///   - ciphertext: As `SecKeyCreateEncryptedData` gives it.
///   - error: Receives `errSecParam` if the key is not for this algorithm or the bytes are not what it encrypts. PKCS#1
///     v1.5 does not report the latter: other bytes come out, as in Apple's current `SecKeyAdaptors.m`.
/// - Returns: `nil` if there is an error.
public func SecKeyCreateDecryptedData(
  _ key: SecKey, _ algorithm: SecKeyAlgorithm, _ ciphertext: CFData,
  _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> CFData? {
  reporting(to: error) { () throws(SecItemError) in
    let (material, scheme) = try encrypting(key, algorithm, .decrypt)
    let plaintext = try working { () throws(CertificateError) in
      try material.decrypt(Array(Data(referencing: ciphertext)), scheme)
    }
    return plaintext.withBytes { NSData(data: Data($0)) }
  }
}

/// Agrees on a secret with the holder of another key on the same curve.
///
/// - Parameters:
///   - privateKey: One's own key.
///   - algorithm: The agreement, and the digest of the derivation where a key is derived.
///   - publicKey: The other's key.
///   - parameters: For the algorithms that derive a key: `SecKeyKeyExchangeParameter.requestedSize`, a number of bytes, and
///     `.sharedInfo`, data or nothing.
///   - error: Receives `errSecParam` where the keys are not for this algorithm, or no size is asked for.
/// - Returns: `nil` if there is an error.
public func SecKeyCopyKeyExchangeResult(
  _ privateKey: SecKey, _ algorithm: SecKeyAlgorithm, _ publicKey: SecKey, _ parameters: CFDictionary,
  _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> CFData? {
  reporting(to: error) { () throws(SecItemError) in
    let (material, plan) = try privateKey.plan(algorithm, .keyExchange)
    guard case .exchange(let digest) = plan else { throw unsupported(algorithm) }
    let other = try publicKey.material()
    let secret = try working { () throws(CertificateError) in try material.sharedSecret(with: other) }
    guard let digest else { return secret.withBytes { NSData(data: Data($0)) } }
    let named = try SecItemQuery(parameters)
    guard let size = named["requestedSize"]?.numberValue.flatMap({ Int(exactly: $0) }) else {
      throw SecItemError(.parameter, "requestedSize, the number of bytes to derive, is missing")
    }
    let info = named["sharedInfo"]?.dataValue ?? []
    let derived = try working { () throws(CertificateError) in
      try X963KeyDerivation.derive(size, of: secret, digest, sharedInfo: info)
    }
    return derived.withBytes { NSData(data: Data($0)) }
  }
}

/// Whether a key does an operation with an algorithm.
///
/// - Returns: `false` also for an algorithm of a name that Apple's constants do not have, and for those with MD5.
public func SecKeyIsAlgorithmSupported(
  _ key: SecKey, _ operation: SecKeyOperationType, _ algorithm: SecKeyAlgorithm
) -> Bool {
  (try? key.supportedPlan(algorithm, operation)) != nil
}

extension SecKey {
  fileprivate func plan(
    _ algorithm: SecKeyAlgorithm, _ operation: SecKeyOperationType
  ) throws(SecItemError) -> (KeyMaterial, KeyAlgorithmPlan) {
    let plan = try supportedPlan(algorithm, operation)
    return (try material(for: operation), plan)
  }

  /// What an algorithm asks for, where the key does it; nobody is asked for that.
  fileprivate func supportedPlan(
    _ algorithm: SecKeyAlgorithm, _ operation: SecKeyOperationType
  ) throws(SecItemError) -> KeyAlgorithmPlan {
    let shown: KeyMaterial
    if let onToken = try publicOnToken { shown = onToken } else { shown = try material() }
    guard let plan = KeyAlgorithmPlan(algorithm), let role,
      plan.isSupported(by: shown, role: role, for: operation)
    else { throw unsupported(algorithm) }
    return plan
  }
}

private func unsupported(_ algorithm: SecKeyAlgorithm) -> SecItemError {
  SecItemError(.parameter, "the key does not support \(UntrustedText.quoted(algorithm.name)) for this operation")
}

/// The key, what it does, and the digest that it does it with.
private func signing(
  _ key: SecKey, _ algorithm: SecKeyAlgorithm, _ operation: SecKeyOperationType, _ data: CFData
) throws(SecItemError) -> (KeyMaterial, SignatureScheme, [UInt8]) {
  let (material, plan) = try key.plan(algorithm, operation)
  guard case .signature(let scheme, let input) = plan else { throw unsupported(algorithm) }
  let bytes = Array(Data(referencing: data))
  switch input {
  case .message(let digest):
    return (material, scheme, try working { () throws(CertificateError) in try digest.digest(of: bytes) })
  case .digest(let digest):
    guard digest.map({ $0.size == bytes.count }) ?? true else {
      throw SecItemError(.parameter, "the algorithm does not accept a digest of \(bytes.count) bytes")
    }
    return (material, scheme, bytes)
  }
}

private func encrypting(
  _ key: SecKey, _ algorithm: SecKeyAlgorithm, _ operation: SecKeyOperationType
) throws(SecItemError) -> (KeyMaterial, KeyEncryption) {
  let (material, plan) = try key.plan(algorithm, operation)
  guard case .encryption(let scheme) = plan else { throw unsupported(algorithm) }
  return (material, scheme)
}

private func working<Value>(_ body: () throws(CertificateError) -> Value) throws(SecItemError) -> Value {
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
