import Basics

/// Decrypts any range of blocks in an encrypted file, without the blocks before it.
///
/// In CBC, the plaintext of a block depends only on its own and the preceding block's stored bytes. Not to be used from
/// two threads at once.
package final class FileSectionDecryptor {
  private let key: Secret
  private let context: CipherContext

  /// The size of a block, in bytes; offsets and lengths of sections are multiples of it.
  package static let blockSize = FileCipher.blockSize

  /// Creates a decryptor for sections of one file.
  ///
  /// - Parameter key: 32 bytes.
  package init(key: borrowing Secret) throws(DataProtectionError) {
    let count = key.count
    guard count == 32 else { throw DataProtectionError(.malformed, "a file key has 32 bytes, not \(count)") }
    context = try CipherContext(.aes256CBC, .decrypt)
    self.key = key.copy()
  }

  /// Decrypts complete blocks in place.
  ///
  /// - Parameters:
  ///   - section: The stored bytes of complete blocks.
  ///   - previous: The stored block before them, 16 bytes, or `nil` at the file's start.
  package func decrypt(
    _ section: UnsafeMutableRawBufferPointer, after previous: [UInt8]?
  ) throws(DataProtectionError) {
    guard section.count.isMultiple(of: Self.blockSize) else {
      throw DataProtectionError(.malformed, "a section of \(section.count) bytes does not consist of whole blocks")
    }
    try key.withBytes { (bytes) throws(DataProtectionError) in
      try context.begin(key: bytes, iv: previous ?? FileCipher.zeroVector)
    }
    try context.update(UnsafeRawBufferPointer(section), into: section)
  }
}
