package import Basics
package import KeychainCrypto
import KeychainFormats

/// Any section of a stored part in plain: as it is stored, or decrypted where it is read.
package final class StoredSections: Sendable {
  private let stored: StoredBytes
  private let key: SecretBox?
  /// What errors call it.
  private let part: String

  /// Sections begin and end at multiples of this where nothing is to be read twice.
  package static let blockByteCount = FileSectionDecryptor.blockSize

  /// - Parameters:
  ///   - key: 32 bytes; `nil` for a part that is stored in clear.
  ///   - part: "the keychain file".
  package init(of stored: StoredBytes, key: consuming Secret?, called part: String) {
    self.stored = stored
    self.part = part
    switch consume key {
    case .some(let key): self.key = SecretBox(key)
    case .none: self.key = nil
    }
  }

  /// Reads for one thread.
  package func reader() throws(KeyhaulError) -> Reader {
    let decryptor = try key.map { (key) throws(KeyhaulError) in
      try explained(part) { () throws(DataProtectionError) in try FileSectionDecryptor(key: key.secret) }
    }
    return Reader(stored: stored, decryptor: decryptor, part: part)
  }

  /// Reads sections, for one thread.
  package struct Reader {
    package let stored: StoredBytes
    fileprivate let decryptor: FileSectionDecryptor?
    fileprivate let part: String

    /// Whether what is stored is encrypted.
    package var isEncrypted: Bool { decryptor != nil }

    /// Fills the whole buffer with the plain bytes from `offset` on, all of which are there.
    package func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(KeyhaulError) {
      guard !buffer.isEmpty else { return }
      let (size, end) = (StoredSections.blockByteCount, offset + buffer.count)
      guard decryptor != nil, !offset.isMultiple(of: size) || !end.isMultiple(of: size) else {
        try stored.read(at: offset, into: buffer)
        return try decrypt(buffer, at: offset)
      }
      let start = offset / size * size
      let plain = try bytes(start..<(end + size - 1) / size * size)
      plain.withUnsafeBytes { buffer.copyMemory(from: .init(rebasing: $0[(offset - start)...].prefix(buffer.count))) }
    }

    /// The plain bytes of a range.
    package func bytes(_ range: Range<Int>) throws(KeyhaulError) -> [UInt8] {
      try [UInt8](count: range.count) { (buffer) throws(KeyhaulError) in
        try read(at: range.lowerBound, into: buffer)
      }
    }

    /// Returns the byte count of the padding at the end of a run of whole blocks; `nil` if the padding is not valid.
    package func paddingByteCount(endingAt end: Int) throws(KeyhaulError) -> Int? {
      let last = try bytes(end - StoredSections.blockByteCount..<end)
      let padding = Int(last.last ?? 0)
      let isPadding = (1...last.count).contains(padding) && last.suffix(padding).allSatisfy { $0 == UInt8(padding) }
      return isPadding ? padding : nil
    }

    private func decrypt(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(KeyhaulError) {
      guard let decryptor else { return }
      let size = StoredSections.blockByteCount
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
