package import Basics
package import KeychainCrypto
import KeychainFormats

/// The plaintext of any section of a stored file, decrypted when it is read.
package final class RandomAccessDecryptor: Sendable {
  private let stored: SpooledData
  private let key: SecretBox?
  /// The name of the file in errors.
  private let part: String

  /// The alignment of sections for efficient reads.
  package static let blockByteCount = FileSectionDecryptor.blockSize

  /// Creates a decryptor of a stored file.
  ///
  /// - Parameters:
  ///   - key: The key of 32 bytes, or `nil` if the file is not encrypted.
  ///   - part: The name of the file in errors, such as "the keychain file".
  package init(of stored: SpooledData, key: consuming Secret?, called part: String) {
    self.stored = stored
    self.part = part
    switch consume key {
    case .some(let key): self.key = SecretBox(key)
    case .none: self.key = nil
    }
  }

  /// Creates a reader for one thread.
  package func reader() throws(KeyhaulError) -> Reader {
    let decryptor = try key.map { (key) throws(KeyhaulError) in
      try translatingErrors(in: part) { () throws(DataProtectionError) in try FileSectionDecryptor(key: key.secret) }
    }
    return Reader(stored: stored, decryptor: decryptor, part: part)
  }

  /// A reader of sections for one thread.
  package struct Reader {
    package let stored: SpooledData
    fileprivate let decryptor: FileSectionDecryptor?
    fileprivate let part: String

    /// Whether the stored file is encrypted.
    package var isEncrypted: Bool { decryptor != nil }

    /// Fills the buffer with the plaintext from an offset. The section must exist.
    package func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(KeyhaulError) {
      guard !buffer.isEmpty else { return }
      let blockSize = RandomAccessDecryptor.blockByteCount
      let end = offset + buffer.count
      let isAligned = offset.isMultiple(of: blockSize) && end.isMultiple(of: blockSize)
      guard isEncrypted, !isAligned else {
        try stored.read(at: offset, into: buffer)
        return try decrypt(buffer, at: offset)
      }
      let alignedStart = offset / blockSize * blockSize
      let alignedEnd = (end + blockSize - 1) / blockSize * blockSize
      let blocks = try bytes(alignedStart..<alignedEnd)
      blocks.withUnsafeBytes { blocks in
        buffer.copyMemory(from: .init(rebasing: blocks[(offset - alignedStart)...].prefix(buffer.count)))
      }
    }

    /// Returns the plaintext of a range.
    package func bytes(_ range: Range<Int>) throws(KeyhaulError) -> [UInt8] {
      try [UInt8](count: range.count) { (buffer) throws(KeyhaulError) in
        try read(at: range.lowerBound, into: buffer)
      }
    }

    /// Returns the size of the padding in the block that ends at an offset, or `nil` if the padding is invalid.
    package func paddingByteCount(endingAt end: Int) throws(KeyhaulError) -> Int? {
      let lastBlock = try bytes(end - RandomAccessDecryptor.blockByteCount..<end)
      // Each byte of the padding is its length.
      let padding = Int(lastBlock.last ?? 0)
      guard (1...lastBlock.count).contains(padding) else { return nil }
      return lastBlock.suffix(padding).allSatisfy { $0 == UInt8(padding) } ? padding : nil
    }

    /// Decrypts whole blocks in place. In CBC mode, this requires the stored block before them.
    private func decrypt(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(KeyhaulError) {
      guard let decryptor else { return }
      var previousBlock: [UInt8]?
      if offset > 0 {
        let blockSize = RandomAccessDecryptor.blockByteCount
        previousBlock = try [UInt8](count: blockSize) { (block) throws(KeyhaulError) in
          try stored.read(at: offset - blockSize, into: block)
        }
      }
      try translatingErrors(in: part) { () throws(DataProtectionError) in
        try decryptor.decrypt(buffer, after: previousBlock)
      }
    }
  }
}
