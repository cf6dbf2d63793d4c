import BackupArchive
import DataProtection
import KeychainFormats

/// The archive's private copy of a keychain file, as the backup has it, and the key of what is in it.
final class KeychainSource: Sendable {
  private let stored: StoredBytes
  private let key: HeldKey?

  /// A key with an owner that can be absent.
  private final class HeldKey: Sendable {
    let secret: Secret

    init(_ secret: consuming Secret) { self.secret = secret }
  }

  private static let part = "the keychain file"

  /// - Parameter key: `nil` where the file is in clear.
  init(_ stored: StoredBytes, key: consuming Secret?) {
    self.stored = stored
    switch consume key {
    case .some(let key): self.key = HeldKey(key)
    case .none: self.key = nil
    }
  }

  /// For one thread; `nil` where the file is in clear.
  func decryptor() throws(BackupArchiveError) -> FileSectionDecryptor? {
    guard let key else { return nil }
    return try explained { () throws(DataProtectionError) in try FileSectionDecryptor(key: key.secret) }
  }

  /// The length of the plain file; `nil` for one that does not end in its padding.
  func plainByteCount() throws(BackupArchiveError) -> Int? {
    guard let key else { return stored.byteCount }
    let size = FileSectionDecryptor.blockSize
    guard stored.byteCount >= 2 * size, stored.byteCount.isMultiple(of: size) else { return nil }
    var ending = try explained { () throws(DataProtectionError) in
      FileEnding(of: try FileDecryptor(key: key.secret))
    }
    let end = try [UInt8](count: 2 * size) { (buffer) throws(BackupArchiveError) in
      try stored.read(at: stored.byteCount - 2 * size, into: buffer)
    }
    end.withUnsafeBytes { ending.pass($0) }
    let last = try explained { () throws(DataProtectionError) in try ending.finish() }
    return last.hasValidPadding ? stored.byteCount - 2 * size + Int(last.plainByteCount) : nil
  }

  /// The bytes of the plain file in a range, all of which it has.
  func bytes(_ range: Range<Int>, with decryptor: FileSectionDecryptor?) throws(BackupArchiveError) -> [UInt8] {
    guard let decryptor else {
      return try [UInt8](count: range.count) { (buffer) throws(BackupArchiveError) in
        try stored.read(at: range.lowerBound, into: buffer)
      }
    }
    let size = FileSectionDecryptor.blockSize
    let (first, end) = (range.lowerBound / size * size, (range.upperBound + size - 1) / size * size)
    let before = first == 0 ? 0 : size
    var bytes = try [UInt8](count: before + end - first) { (buffer) throws(BackupArchiveError) in
      try stored.read(at: first - before, into: buffer)
    }
    let previous = before == 0 ? nil : Array(bytes[..<size])
    try explained { () throws(DataProtectionError) in
      try bytes.withMutableRawBytes { (buffer) throws(DataProtectionError) in
        try decryptor.decrypt(UnsafeMutableRawBufferPointer(rebasing: buffer[before...]), after: previous)
      }
    }
    let start = before + range.lowerBound - first
    return Array(bytes[start..<start + range.count])
  }

  private func explained<Value: ~Copyable>(
    _ body: () throws(DataProtectionError) -> Value
  ) throws(BackupArchiveError) -> Value {
    do throws(DataProtectionError) { return try body() } catch { throw BackupArchiveError(error, in: Self.part) }
  }
}
