import Basics

/// The last blocks of an encrypted file, which are enough to check its padding. In CBC, a block can be decrypted with
/// only the one before it.
package struct FileEnding: ~Copyable {
  private static let retainedByteCount = 2 * FileCipher.blockSize
  private let decryptor: FileDecryptor
  private var lastBytes: [UInt8] = []
  private var byteCount: Int64 = 0

  /// Creates the state at the start of a file.
  ///
  /// - Parameter decryptor: A new decryptor with the file's key.
  package init(of decryptor: FileDecryptor) {
    self.decryptor = decryptor
    lastBytes.reserveCapacity(2 * Self.retainedByteCount)
  }

  /// Processes the next stored bytes, of any number.
  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    byteCount += Int64(bytes.count)
    lastBytes.append(contentsOf: bytes.suffix(Self.retainedByteCount))
    if lastBytes.count > Self.retainedByteCount { lastBytes.removeFirst(lastBytes.count - Self.retainedByteCount) }
  }

  /// Returns the size of the plaintext, without valid padding, and whether the padding is valid.
  package func finish() throws(DataProtectionError) -> (plainByteCount: Int64, hasValidPadding: Bool) {
    let blockSize = Int64(FileCipher.blockSize)
    guard byteCount > 0, byteCount % blockSize == 0 else { return (byteCount / blockSize * blockSize, false) }
    let plainByteCount = try lastBytes.withRawBytes { (bytes) throws(DataProtectionError) in
      try decryptor.plain(of: bytes).count
    }
    let ending = try decryptor.finish()
    let paddingByteCount = lastBytes.count - plainByteCount - ending.bytes.count
    return (byteCount - Int64(paddingByteCount), ending.hasValidPadding)
  }
}
