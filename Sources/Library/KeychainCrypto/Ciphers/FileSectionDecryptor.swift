/// Decrypts any run of blocks out of an encrypted file, without what comes before it.
///
/// In CBC a block's plain form follows from its own and the preceding block's stored bytes. Not to be used from two
/// threads at once.
package final class FileSectionDecryptor {
  private let key: Secret
  private let context: CipherContext

  /// Bytes of a block; offsets and lengths of sections are multiples of it.
  package static let blockSize = FileCipher.blockSize

  /// Creates a decryptor of any sections of one file.
  ///
  /// - Parameter key: 32 bytes.
  package init(key: borrowing Secret) throws(DataProtectionError) {
    let count = key.count
    guard count == 32 else { throw DataProtectionError(.malformed, "a file key has 32 bytes, not \(count)") }
    context = try CipherContext(.aes256CBC, .decrypt)
    self.key = key.copy()
  }

  /// Decrypts in place.
  ///
  /// - Parameters:
  ///   - section: Whole blocks as they are stored.
  ///   - previous: The stored block before them, 16 bytes; `nil` at the file's start.
  package func decrypt(
    _ section: UnsafeMutableRawBufferPointer, after previous: [UInt8]?
  ) throws(DataProtectionError) {
    guard section.count.isMultiple(of: Self.blockSize) else {
      throw DataProtectionError(.malformed, "a section of \(section.count) bytes is not whole blocks")
    }
    try key.withBytes { (bytes) throws(DataProtectionError) in
      try context.begin(key: bytes, iv: previous ?? FileCipher.zeroVector)
    }
    try context.update(UnsafeRawBufferPointer(section), into: section)
  }
}
