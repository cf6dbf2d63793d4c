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
      try explained(part) { () throws(DataProtectionError) in try FileSectionDecryptor(key: key.secret) }
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
      let (size, end) = (RandomAccessDecryptor.blockByteCount, offset + buffer.count)
      guard decryptor != nil, !offset.isMultiple(of: size) || !end.isMultiple(of: size) else {
        try stored.read(at: offset, into: buffer)
        return try decrypt(buffer, at: offset)
      }
      let start = offset / size * size
      let plain = try bytes(start..<(end + size - 1) / size * size)
      plain.withUnsafeBytes { buffer.copyMemory(from: .init(rebasing: $0[(offset - start)...].prefix(buffer.count))) }
    }

    /// Returns the plaintext of a range.
    package func bytes(_ range: Range<Int>) throws(KeyhaulError) -> [UInt8] {
      try [UInt8](count: range.count) { (buffer) throws(KeyhaulError) in
        try read(at: range.lowerBound, into: buffer)
      }
    }

    /// Returns the size of the padding at the end of a range of blocks, or `nil` if the padding is invalid.
    package func paddingByteCount(endingAt end: Int) throws(KeyhaulError) -> Int? {
      let last = try bytes(end - RandomAccessDecryptor.blockByteCount..<end)
      let padding = Int(last.last ?? 0)
      let isPadding = (1...last.count).contains(padding) && last.suffix(padding).allSatisfy { $0 == UInt8(padding) }
      return isPadding ? padding : nil
    }

    private func decrypt(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(KeyhaulError) {
      guard let decryptor else { return }
      let size = RandomAccessDecryptor.blockByteCount
      let previous: [UInt8]? =
        offset == 0
        ? nil
        : try [UInt8](count: size) { (block) throws(KeyhaulError) in
          try stored.read(at: offset - size, into: block)
        }
      try explained(part) { () throws(DataProtectionError) in try decryptor.decrypt(buffer, after: previous) }
    }
  }
}
