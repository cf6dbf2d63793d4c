import Basics
import KeychainFormats

/// The encryption of files and the manifest database in backups: AES-256-CBC, zero IV, PKCS#7 padding, no integrity
/// check.
///
/// Changed bits are not detected here. Source: Apple Platform Security, "Keychain and file backup"; third-party readers
/// of backups.
package enum FileCipher {
  static let blockSize = 16
  private static let chunkByteCount = 262_144
  static let zeroVector = [UInt8](repeating: 0, count: blockSize)

  /// The result of a decryption.
  package struct Decrypted: Sendable, Equatable {
    /// The plaintext without its padding, or all of it if the padding is invalid.
    package var bytes: [UInt8]
    /// Whether the padding is valid. Otherwise the file is damaged, was encrypted with another key, or was not padded.
    package var hasValidPadding: Bool
  }

  /// Returns the number of padding bytes, or `nil` if the padding is invalid. Each padding byte must contain this number
  /// (PKCS#7).
  static func paddingCount(of plaintext: some BidirectionalCollection<UInt8>) -> Int? {
    let paddingCount = Int(plaintext.last ?? 0)
    guard (1...FileCipher.blockSize).contains(paddingCount), paddingCount <= plaintext.count,
      plaintext.suffix(paddingCount).allSatisfy({ $0 == UInt8(paddingCount) })
    else { return nil }
    return paddingCount
  }

  /// Encrypts and pads a complete file.
  ///
  /// - Parameters:
  ///   - bytes: The plaintext, of any length.
  ///   - key: 32 bytes.
  package static func encrypt(_ bytes: [UInt8], key: borrowing Secret) throws(DataProtectionError) -> [UInt8] {
    let encryptor = try FileEncryptor(key: key)
    var result = try encryptor.update(bytes)
    result.append(contentsOf: try encryptor.finish())
    return result
  }

  /// Decrypts a complete file and removes its padding.
  ///
  /// - Throws: `.malformed` if the length is zero or not a multiple of 16.
  package static func decrypt(_ bytes: [UInt8], key: borrowing Secret) throws(DataProtectionError) -> Decrypted {
    let decryptor = try FileDecryptor(key: key)
    var result: [UInt8] = []
    result.reserveCapacity(bytes.count)
    // Decrypted in chunks, to avoid a third copy of a large keychain.
    try bytes.withRawBytes { (stored) throws(DataProtectionError) in
      for start in stride(from: 0, to: stored.count, by: chunkByteCount) {
        let chunk = stored[start..<min(start + chunkByteCount, stored.count)]
        result.append(contentsOf: try decryptor.plain(of: UnsafeRawBufferPointer(rebasing: chunk)))
      }
    }
    let ending = try decryptor.finish()
    result.append(contentsOf: ending.bytes)
    return Decrypted(bytes: result, hasValidPadding: ending.hasValidPadding)
  }

  /// Returns the encrypted size of a file with `count` bytes, or `nil` if it does not fit into 64 bits.
  package static func encryptedSize(of count: UInt64) -> UInt64? {
    let (blockCount, overflow) = (count / UInt64(blockSize)).addingReportingOverflow(1)
    let (byteCount, multiplicationOverflow) = blockCount.multipliedReportingOverflow(by: UInt64(blockSize))
    return overflow || multiplicationOverflow ? nil : byteCount
  }
}

/// Encrypts a file in chunks of any size. Not to be used from two threads at once.
package final class FileEncryptor {
  private let blocks: BlockStream

  /// Creates an encryptor at the start of a file.
  ///
  /// - Parameter key: 32 bytes.
  package init(key: borrowing Secret) throws(DataProtectionError) { blocks = try BlockStream(.encrypt, key: key) }

  /// Encrypts the next bytes, and returns the ciphertext of the blocks that are complete now.
  package func update(_ bytes: UnsafeRawBufferPointer) throws(DataProtectionError) -> [UInt8] {
    try blocks.transform(bytes, holdingBackLastBlock: false)
  }

  /// Encrypts the next bytes, and returns the ciphertext of the blocks that are complete now.
  package func update(_ bytes: [UInt8]) throws(DataProtectionError) -> [UInt8] {
    try bytes.withRawBytes { (buffer) throws(DataProtectionError) in try update(buffer) }
  }

  /// Returns the last block with its padding. No further call is allowed.
  package func finish() throws(DataProtectionError) -> [UInt8] {
    let paddingCount = FileCipher.blockSize - blocks.pendingCount
    return try update([UInt8](repeating: UInt8(paddingCount), count: paddingCount))
  }
}

/// Decrypts a file in chunks of any size. Not to be used from two threads at once.
package final class FileDecryptor {
  private let blocks: BlockStream

  /// Creates a decryptor at the start of a file.
  ///
  /// - Parameter key: 32 bytes.
  package init(key: borrowing Secret) throws(DataProtectionError) { blocks = try BlockStream(.decrypt, key: key) }

  /// Decrypts the next bytes, and returns the plaintext of the blocks that are complete now, except the last block, which
  /// is kept for the next call.
  package func update(_ bytes: UnsafeRawBufferPointer) throws(DataProtectionError) -> [UInt8] {
    try blocks.transform(bytes, holdingBackLastBlock: true)
  }

  /// Decrypts the next bytes, and returns the plaintext of the blocks that are complete now, except the last block.
  package func update(_ bytes: [UInt8]) throws(DataProtectionError) -> [UInt8] {
    try bytes.withRawBytes { (buffer) throws(DataProtectionError) in try update(buffer) }
  }

  /// Decrypts the next bytes like `update(_:)`, but returns the plaintext in the decryptor's own memory, to avoid
  /// allocations. It is valid until the next call.
  package func plain(of bytes: UnsafeRawBufferPointer) throws(DataProtectionError) -> UnsafeRawBufferPointer {
    try blocks.transformed(bytes, holdingBackLastBlock: true)
  }

  /// Returns the remaining plaintext, and whether it ended with valid padding.
  ///
  /// - Throws: `.malformed` if the length of the file is zero or not a multiple of 16.
  package func finish() throws(DataProtectionError) -> FileCipher.Decrypted {
    guard blocks.pendingCount == FileCipher.blockSize else {
      throw DataProtectionError(.malformed, "its length is zero or not a multiple of \(FileCipher.blockSize) bytes")
    }
    var block = try blocks.transform(UnsafeRawBufferPointer(start: nil, count: 0), holdingBackLastBlock: false)
    let paddingCount = FileCipher.paddingCount(of: block)
    block.removeLast(paddingCount ?? 0)
    return FileCipher.Decrypted(bytes: block, hasValidPadding: paddingCount != nil)
  }
}

/// Splits a stream into complete blocks for the cipher and keeps the remaining bytes until the next call.
private final class BlockStream {
  private let context: CipherContext
  private var pending: [UInt8] = []
  /// The memory for the result of `transformed`.
  private var result = UnsafeMutableRawBufferPointer(start: nil, count: 0)

  deinit { result.deallocate() }

  var pendingCount: Int { pending.count }

  init(_ direction: CipherContext.Direction, key: borrowing Secret) throws(DataProtectionError) {
    let count = key.count
    guard count == 32 else { throw DataProtectionError(.malformed, "a file key has 32 bytes, not \(count)") }
    let context = try CipherContext(.aes256CBC, direction)
    try key.withBytes { (bytes) throws(DataProtectionError) in
      try context.begin(key: bytes, iv: FileCipher.zeroVector)
    }
    self.context = context
  }

  func transform(
    _ bytes: UnsafeRawBufferPointer, holdingBackLastBlock: Bool
  ) throws(DataProtectionError) -> [UInt8] {
    let readyByteCount = readyByteCount(with: bytes, holdingBackLastBlock)
    return try [UInt8](count: readyByteCount) { (output) throws(DataProtectionError) in
      try transform(bytes, into: output)
    }
  }

  /// Returns the transformed bytes in memory of the stream, which is valid until the next call.
  func transformed(
    _ bytes: UnsafeRawBufferPointer, holdingBackLastBlock: Bool
  ) throws(DataProtectionError) -> UnsafeRawBufferPointer {
    let readyByteCount = readyByteCount(with: bytes, holdingBackLastBlock)
    if result.count < readyByteCount {
      result.deallocate()
      result = .allocate(byteCount: readyByteCount, alignment: 16)
    }
    let output = UnsafeMutableRawBufferPointer(rebasing: result[..<readyByteCount])
    try transform(bytes, into: output)
    return UnsafeRawBufferPointer(output)
  }

  /// Returns the number of pending and new bytes that can be transformed now.
  private func readyByteCount(with bytes: UnsafeRawBufferPointer, _ holdsBackLastBlock: Bool) -> Int {
    let totalCount = pending.count + bytes.count
    let blocksByteCount = totalCount / FileCipher.blockSize * FileCipher.blockSize
    let isLastBlockComplete = blocksByteCount == totalCount && blocksByteCount > 0
    return holdsBackLastBlock && isLastBlockComplete ? blocksByteCount - FileCipher.blockSize : blocksByteCount
  }

  private func transform(
    _ bytes: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) throws(DataProtectionError) {
    guard !output.isEmpty else { return pending.append(contentsOf: bytes) }
    // The pending bytes, at most one block, come first.
    let firstByteCount = pending.isEmpty ? 0 : FileCipher.blockSize
    let missingByteCount = max(0, firstByteCount - pending.count)
    let remainingRange = missingByteCount..<(missingByteCount + output.count - firstByteCount)
    pending.append(contentsOf: bytes[..<missingByteCount])
    try pending.withRawBytes { (block) throws(DataProtectionError) in
      try context.update(block, into: UnsafeMutableRawBufferPointer(rebasing: output[..<firstByteCount]))
    }
    try context.update(
      UnsafeRawBufferPointer(rebasing: bytes[remainingRange]),
      into: UnsafeMutableRawBufferPointer(rebasing: output[firstByteCount...]))
    pending.removeAll(keepingCapacity: true)
    pending.append(contentsOf: bytes[remainingRange.upperBound...])
  }
}

/// The last two blocks of an encrypted file, which are enough to check its padding. In CBC, decrypting a block requires
/// no other block than the preceding one.
package struct FileEnding: ~Copyable {
  private static let retainedByteCount = 2 * FileCipher.blockSize
  private let decryptor: FileDecryptor
  private var lastBytes: [UInt8] = []
  private var byteCount: Int64 = 0

  /// Creates the state at the start of a file.
  ///
  /// - Parameter decryptor: A new decryptor with the file's key.
  package init(decryptor: FileDecryptor) {
    self.decryptor = decryptor
    lastBytes.reserveCapacity(2 * Self.retainedByteCount)
  }

  /// Processes any number of stored bytes.
  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    byteCount += Int64(bytes.count)
    lastBytes.append(contentsOf: bytes.suffix(Self.retainedByteCount))
    if lastBytes.count > Self.retainedByteCount { lastBytes.removeFirst(lastBytes.count - Self.retainedByteCount) }
  }

  /// Returns the size of the plaintext, and whether its padding is valid. The size includes invalid padding, but not an
  /// incomplete block at the end.
  package func finish() throws(DataProtectionError) -> (plainByteCount: Int64, hasValidPadding: Bool) {
    let blockSize = Int64(FileCipher.blockSize)
    guard byteCount > 0, byteCount % blockSize == 0 else { return (byteCount / blockSize * blockSize, false) }
    let byteCountBeforeLastBlock = try lastBytes.withRawBytes { (bytes) throws(DataProtectionError) in
      try decryptor.plain(of: bytes).count
    }
    let ending = try decryptor.finish()
    let paddingByteCount = lastBytes.count - byteCountBeforeLastBlock - ending.bytes.count
    return (byteCount - Int64(paddingByteCount), ending.hasValidPadding)
  }
}

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
  ///   - previous: The stored block before the section, 16 bytes, or `nil` at the file's start.
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
