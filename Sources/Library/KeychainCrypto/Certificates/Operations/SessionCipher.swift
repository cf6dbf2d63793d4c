import Basics
import KeychainFormats

/// AES-GCM as in Apple's hybrid encryption: an initialization vector of 16 bytes, zero or derived, and a tag of 16
/// bytes after the ciphertext.
///
/// Source: Apple `SecKey.h`, `SecKeyAdaptors.m`.
struct SessionCipher {
  private static let vectorSize = 16

  private let key: SensitiveBytes
  private let vector: [UInt8]
  private let authenticatedData: [UInt8]

  /// Creates a cipher for a random key that is used only once, with a zero vector.
  init(_ key: SensitiveBytes, authenticating publicKey: [UInt8]) {
    self.key = key
    vector = [UInt8](repeating: 0, count: Self.vectorSize)
    authenticatedData = publicKey
  }

  /// Creates a cipher for a shared secret.
  ///
  /// - Parameters:
  ///   - secret: The shared secret.
  ///   - keySize: The size of the AES key, in bytes.
  ///   - digest: The digest for the derivation.
  ///   - publicKey: The ephemeral public key, which is the shared information of the derivation.
  ///   - derivesVector: Whether the vector is derived too. Otherwise it is zero.
  init(
    _ secret: SensitiveBytes, keySize: Int, digest: KeyDigest, publicKey: [UInt8], derivesVector: Bool
  ) throws(CertificateError) {
    let derived = try X963KeyDerivation.derive(
      keySize + (derivesVector ? Self.vectorSize : 0), of: secret, digest, sharedInfo: publicKey)
    (key, vector) = derived.withBytes { bytes in
      (
        SensitiveBytes(copying: UnsafeRawBufferPointer(rebasing: bytes.prefix(keySize))),
        derivesVector ? Array(bytes.dropFirst(keySize)) : [UInt8](repeating: 0, count: Self.vectorSize)
      )
    }
    authenticatedData = []
  }

  /// Returns the ciphertext followed by the tag.
  func seal(_ plaintext: SensitiveBytes) throws(CertificateError) -> [UInt8] {
    try convertingErrors { () throws(DataProtectionError) in
      let context = try begin(.encrypt)
      let sealed = try SensitiveBytes(count: plaintext.count) { (target) throws(DataProtectionError) in
        try plaintext.withBytes { (bytes) throws(DataProtectionError) in try context.update(bytes, into: target) }
      }
      return sealed.withBytes { Array($0) } + (try context.finishWithTag())
    }
  }

  /// Returns the plaintext.
  ///
  /// - Throws: `.mismatch` if the tag does not match.
  func open(_ sealed: ArraySlice<UInt8>) throws(CertificateError) -> SensitiveBytes {
    guard sealed.count >= CipherContext.tagSize else { throw KeyMaterial.notForThisKey }
    let (ciphertext, tag) = (Array(sealed.dropLast(CipherContext.tagSize)), Array(sealed.suffix(CipherContext.tagSize)))
    let plaintext: SensitiveBytes? = try convertingErrors { () throws(DataProtectionError) in
      let context = try begin(.decrypt)
      let output = try SensitiveBytes(count: ciphertext.count) { (target) throws(DataProtectionError) in
        try ciphertext.withRawBytes { (bytes) throws(DataProtectionError) in try context.update(bytes, into: target) }
      }
      return try context.finish(verifying: tag) ? output : nil
    }
    guard let plaintext else { throw KeyMaterial.notForThisKey }
    return plaintext
  }

  private func begin(_ direction: CipherContext.Direction) throws(DataProtectionError) -> CipherContext {
    let context = try CipherContext(key.count == 16 ? .aes128GCM : .aes256GCM, direction)
    try key.withBytes { (bytes) throws(DataProtectionError) in try context.begin(key: bytes, longNonce: vector) }
    try authenticatedData.withRawBytes { (bytes) throws(DataProtectionError) in try context.authenticate(bytes) }
    return context
  }

  private func convertingErrors<Value>(
    _ body: () throws(DataProtectionError) -> Value
  ) throws(CertificateError) -> Value {
    do throws(DataProtectionError) { return try body() } catch { throw CertificateError(error) }
  }
}
