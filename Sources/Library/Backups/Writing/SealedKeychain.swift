package import Basics
package import KeychainFormats

/// The encrypted keychain of a new backup: a complete file, or items that are written as a file later.
package struct SealedKeychain: Sendable {
  private let form: Form

  private enum Form {
    /// The complete file.
    case file([UInt8])
    /// Items at positions in stored bytes.
    case items(KeychainFileWriter, SpooledData)
  }

  /// Creates a keychain from a file.
  ///
  /// - Parameter file: A property list with items encrypted for the backup's keybag.
  package init(_ file: [UInt8]) { form = .file(file) }

  init(_ writer: KeychainFileWriter, reading stored: SpooledData) { form = .items(writer, stored) }

  /// Whether the items are in a temporary file.
  package var isInFile: Bool {
    switch form {
    case .file: false
    case .items(_, let stored): stored.isInFile
    }
  }

  /// Returns the file in memory.
  ///
  /// - Throws: The errors of writing it.
  package func bytes() throws(KeyhaulError) -> [UInt8] {
    if case .file(let bytes) = form { return bytes }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(minimumByteCount)
    try forEachChunk { bytes.append(contentsOf: $0) }
    return bytes
  }

  /// The minimum size of the file.
  var minimumByteCount: Int {
    switch form {
    case .file(let bytes): bytes.count
    case .items(_, let stored): stored.byteCount
    }
  }

  /// Passes the file's bytes to a closure in order.
  ///
  /// - Throws: `.unreadable` if the temporary file cannot be read.
  func forEachChunk(
    _ body: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    switch form {
    case .file(let bytes): try bytes.withRawBytes(body)
    case .items(let writer, let stored):
      var reader = EntryReader(stored: stored)
      try writer.write(reading: { (entry) throws(KeyhaulError) in try reader.read(entry) }, to: body)
    }
  }

  /// A reader of adjacent entries with read-ahead.
  private struct EntryReader {
    let stored: SpooledData
    private var window: [UInt8] = []
    private var windowStart = 0
    private static let windowByteCount = 1 << 18

    init(stored: SpooledData) { self.stored = stored }

    /// Returns an entry with its bytes.
    mutating func read(_ entry: KeychainBackupFile.Entry) throws(KeyhaulError) -> KeychainBackupFile.Entry {
      let ranges = entry.ranges
      if let first = ranges.first, let last = ranges.last,
        first.lowerBound < windowStart || last.upperBound > windowStart + window.count
      {
        windowStart = first.lowerBound
        let count = max(last.upperBound - windowStart, min(Self.windowByteCount, stored.byteCount - windowStart))
        window = try [UInt8](count: count) { (buffer) throws(KeyhaulError) in
          try stored.read(at: windowStart, into: buffer)
        }
      }
      return KeychainBackupFile.Entry(entry, in: window, beginningAt: windowStart)
    }
  }
}

/// Collects the encrypted items of a keychain with their positions. Their bytes are written to a temporary file if
/// there are many. Not thread-safe.
package final class SealedItemSpool {
  private static let chunkByteCount = 1 << 18

  private var builder: SpooledDataBuilder?
  private var entries: [KeychainBackupFile.Entry] = []
  /// Bytes that were not passed to the builder yet.
  private var pending: [UInt8] = []
  private var byteCount = 0
  private let maximumByteCount: Int

  package init(
    system: FileSystem, maximumByteCount: Int = KeychainBackupFile.Entry.maximumSourceByteCount
  ) throws(KeyhaulError) {
    builder = try SpooledDataBuilder(.temporaryFile, system: system)
    self.maximumByteCount = maximumByteCount
  }

  /// Appends an item.
  ///
  /// - Throws: `.noTemporarySpace` if a temporary file cannot be created or is full, `.unwritable` if the items exceed
  ///   the limit.
  package func append(
    _ kind: ItemKind, blob: [UInt8], persistentReference: [UInt8]?
  ) throws(KeyhaulError) {
    let start = byteCount
    let blobEnd = start + blob.count
    let end = blobEnd + (persistentReference?.count ?? 0)
    guard end <= maximumByteCount else {
      throw KeyhaulError(
        .unwritable, "the keychain's items have more than \(HumanReadable.grouped(Int64(maximumByteCount))) bytes")
    }
    pending += blob
    if let persistentReference { pending += persistentReference }
    byteCount = end
    entries.append(
      .init(
        kind: kind, in: [], blob: start..<blobEnd,
        persistentReference: persistentReference.map { _ in blobEnd..<end }))
    if pending.count >= Self.chunkByteCount { try flush() }
  }

  private func flush() throws(KeyhaulError) {
    try pending.withRawBytes { (bytes) throws(KeyhaulError) in try builder?.append(bytes) }
    pending.removeAll(keepingCapacity: true)
  }

  /// Returns the keychain with all items. Nothing may be appended afterwards.
  ///
  /// - Parameter keybagUUID: The identifier of the keybag.
  /// - Throws: The errors of `append`, or `.unwritable` if a file cannot contain that many items.
  package func finish(keybagUUID: String?) throws(KeyhaulError) -> SealedKeychain {
    try flush()
    guard let builder = builder.take() else {
      throw KeyhaulError(.unwritable, "the items were already used")
    }
    let stored = try builder.finish()
    do throws(FormatError) {
      let writer = try KeychainFileWriter(KeychainBackupFile(keybagUUID: keybagUUID, entries: entries))
      return SealedKeychain(writer, reading: stored)
    } catch {
      throw KeyhaulError(.unwritable, error.reason)
    }
  }
}
