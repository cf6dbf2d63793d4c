import Basics
internal import KeychainFormats

/// Removes the padding of RSAES-PKCS1-v1_5 without telling whether it was right.
///
/// An answer to that question decrypts messages (Bleichenbacher, 1998). Wrong padding gives bytes that only the key and
/// the ciphertext decide, as in Apple's `ccrsa_eme_pkcs1v15.c` (`ccrsa_eme_pkcs1v15_decode_safe`); which bytes differs
/// from Apple's.
enum PKCS1Padding {
  /// 0, 2, at least eight bytes that are not 0, and 0 (RFC 8017, 7.2.2).
  private static let minimumByteCount = 11

  /// - Parameters:
  ///   - block: What the key's operation made of the ciphertext, as long as the modulus.
  ///   - key: The private key's bytes.
  ///   - ciphertext: What the block was encrypted as.
  /// - Throws: `.mismatch` if the block is too short for any padding.
  static func removed(
    from block: SensitiveBytes, key: SensitiveBytes, ciphertext: [UInt8]
  ) throws(MaterialError) -> SensitiveBytes {
    guard block.count >= minimumByteCount else { throw KeyMaterial.notForThisKey }
    let limit = block.count - minimumByteCount
    // Made in any case, so that the time says nothing.
    let other = try X963KeyDerivation.derive(8 + limit, of: key, .sha256, sharedInfo: ciphertext)
    return block.withBytes { block in
      other.withBytes { other in
        let message = messageStart(in: block)
        let length = other.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) } % UInt64(limit + 1)
        let chosen =
          message.isRight ? block[message.start...] : other[(other.count - Int(length))...]
        return SensitiveBytes(copying: UnsafeRawBufferPointer(rebasing: chosen))
      }
    }
  }

  /// Looks at every byte, whatever it finds.
  private static func messageStart(in block: UnsafeRawBufferPointer) -> (isRight: Bool, start: Int) {
    var start = block.count
    for index in stride(from: block.count - 1, to: 1, by: -1) where block[index] == 0 { start = index + 1 }
    let isRight = (block[0] == 0) && (block[1] == 2) && start >= minimumByteCount
    let hasEnd = start < block.count || block[block.count - 1] == 0
    return (isRight && hasEnd, start)
  }
}
