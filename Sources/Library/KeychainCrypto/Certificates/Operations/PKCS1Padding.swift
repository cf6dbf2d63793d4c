import Basics
internal import KeychainFormats

/// Removes the padding of RSAES-PKCS1-v1_5 without revealing whether it was valid.
///
/// Revealing that would allow an attacker to decrypt messages (Bleichenbacher, 1998). Invalid padding results in bytes
/// that depend only on the key and the ciphertext, as in Apple's `ccrsa_eme_pkcs1v15.c` (`ccrsa_eme_pkcs1v15_decode_safe`).
/// The bytes themselves differ from Apple's.
enum PKCS1Padding {
  /// The fewest bytes of padding: 0, 2, at least eight nonzero bytes, and 0 (RFC 8017, 7.2.2).
  static let minimumByteCount = 11

  /// Returns the message in a block, or substitute bytes if the padding is invalid.
  ///
  /// - Parameters:
  ///   - block: The decrypted block, as long as the modulus.
  ///   - key: The private key's bytes.
  ///   - ciphertext: The ciphertext of the block.
  /// - Throws: `.mismatch` if the block is too short for any padding.
  static func removed(
    from block: SensitiveBytes, key: SensitiveBytes, ciphertext: [UInt8]
  ) throws(CertificateError) -> SensitiveBytes {
    guard block.count >= minimumByteCount else { throw KeyMaterial.notForThisKey }
    let maximumMessageCount = block.count - minimumByteCount
    // 8 bytes for the length of the substitute, then its bytes. They are derived even if the padding is valid, so that
    // the time reveals nothing.
    let derived = try X963KeyDerivation.derive(8 + maximumMessageCount, of: key, .sha256, sharedInfo: ciphertext)
    return block.withBytes { block in
      derived.withBytes { derived in
        let message = messageStart(in: block)
        let substituteCount = Int(bigEndianInteger(derived.prefix(8)) % UInt64(maximumMessageCount + 1))
        let result = message.isValid ? block[message.start...] : derived[(derived.count - substituteCount)...]
        return SensitiveBytes(copying: UnsafeRawBufferPointer(rebasing: result))
      }
    }
  }

  /// Returns where the message starts, after the first zero byte behind the leading 0 and 2, and whether the padding is
  /// valid. Reads every byte, independently of their values.
  private static func messageStart(in block: UnsafeRawBufferPointer) -> (isValid: Bool, start: Int) {
    var start = block.count
    for index in stride(from: block.count - 1, to: 1, by: -1) where block[index] == 0 { start = index + 1 }
    let isValidUpToMessage = (block[0] == 0) && (block[1] == 2) && start >= minimumByteCount
    let hasZeroBeforeMessage = start < block.count || block[block.count - 1] == 0
    return (isValidUpToMessage && hasZeroBeforeMessage, start)
  }
}
