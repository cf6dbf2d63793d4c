package import Basics
package import KeychainFormats

/// The keychain of a backup that is about to be written, its items sealed: the file itself, or items that lie outside of
/// memory until it is written.
package struct SealedKeychain: Sendable {
  private let form: Form

  private enum Form {
    case file([UInt8])
    /// Of entries that have their places in the bytes.
    case items(KeychainFileWriter, StoredBytes)
  }

  /// Takes a keychain file as it is.
  ///
  /// - Parameter file: A property list, its items sealed under the backup's keybag.
  package init(_ file: [UInt8]) { form = .file(file) }

  init(_ writer: KeychainFileWriter, reading stored: StoredBytes) { form = .items(writer, stored) }

  /// Whether its items lie in a temporary file.
  package var isInFile: Bool {
    switch form {
    case .file: false
    case .items(_, let stored): stored.isInFile
    }
  }

  /// The file, in memory.
  ///
  /// - Throws: As writing it does.
  package func bytes() throws(KeyhaulError) -> [UInt8] {
    if case .file(let bytes) = form { return bytes }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(leastByteCount)
    try forEachPortion { bytes.append(contentsOf: $0) }
    return bytes
  }

  /// How many bytes the file has at least.
  var leastByteCount: Int {
    switch form {
    case .file(let bytes): bytes.count
    case .items(_, let stored): stored.byteCount
    }
  }

  /// Lends the file's bytes in their order.
  ///
  /// - Throws: `.unreadable` where a temporary file is not given back.
  func forEachPortion(
    _ body: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    switch form {
    case .file(let bytes): try bytes.withRawBytes(body)
    case .items(let writer, let stored):
      var reader = EntryReader(stored: stored)
      try writer.write(reading: { (place) throws(KeyhaulError) in try reader.entry(at: place) }, to: body)
    }
  }

  /// Reads entries that lie one behind the other, many at once.
  private struct EntryReader {
    let stored: StoredBytes
    private var window: [UInt8] = []
    private var start = 0
    private static let windowByteCount = 1 << 18

    init(stored: StoredBytes) { self.stored = stored }

    mutating func entry(at place: KeychainBackupFile.Entry) throws(KeyhaulError) -> KeychainBackupFile.Entry {
      let ranges = place.ranges
      if let first = ranges.first, let last = ranges.last,
        first.lowerBound < start || last.upperBound > start + window.count
      {
        start = first.lowerBound
        let count = max(last.upperBound - start, min(Self.windowByteCount, stored.byteCount - start))
        window = try [UInt8](count: count) { (buffer) throws(KeyhaulError) in
          try stored.read(at: start, into: buffer)
        }
      }
      return KeychainBackupFile.Entry(place, in: window, beginningAt: start)
    }
  }
}

/// Takes the items of a keychain as they are sealed, and keeps where each of them lies: their bytes go into a temporary file
/// where they are many. For one thread.
package final class SealedItemSpool {
  private static let portionByteCount = 1 << 18

  private var collector: StoredBytesCollector?
  private var entries: [KeychainBackupFile.Entry] = []
  /// What the collector was not given yet.
  private var pending: [UInt8] = []
  private var byteCount = 0
  private let maximumByteCount: Int

  package init(
    system: FileSystem, maximumByteCount: Int = KeychainBackupFile.Entry.maximumSourceByteCount
  ) throws(KeyhaulError) {
    collector = try StoredBytesCollector(.temporaryFile, system: system)
    self.maximumByteCount = maximumByteCount
  }

  /// - Throws: `.noTemporarySpace` where a temporary file cannot be made or is full, `.unwritable` for more than all items
  ///   together may have.
  package func append(
    _ kind: ItemKind, blob: [UInt8], persistentReference: [UInt8]?
  ) throws(KeyhaulError) {
    let start = byteCount
    let end = start + blob.count + (persistentReference?.count ?? 0)
    guard end <= maximumByteCount else {
      throw KeyhaulError(
        .unwritable, "the keychain's items have more than \(HumanReadable.grouped(Int64(maximumByteCount))) bytes")
    }
    pending += blob
    if let persistentReference { pending += persistentReference }
    byteCount = end
    let boundary = start + blob.count
    entries.append(
      .init(
        kind: kind, in: [], blob: start..<boundary,
        persistentReference: persistentReference.map { _ in boundary..<end }))
    if pending.count >= Self.portionByteCount { try flush() }
  }

  private func flush() throws(KeyhaulError) {
    try pending.withRawBytes { (bytes) throws(KeyhaulError) in try collector?.append(bytes) }
    pending.removeAll(keepingCapacity: true)
  }

  /// The keychain of all items. Nothing may follow.
  ///
  /// - Parameter keybagUUID: Of the bag that they are sealed for.
  /// - Throws: As `append` does; `.unwritable` for more items than a file may have.
  package func finish(keybagUUID: String?) throws(KeyhaulError) -> SealedKeychain {
    try flush()
    guard let collector = collector.take() else {
      throw KeyhaulError(.unwritable, "the items were already used")
    }
    let stored = try collector.finish()
    do throws(FormatError) {
      let writer = try KeychainFileWriter(KeychainBackupFile(keybagUUID: keybagUUID, entries: entries))
      return SealedKeychain(writer, reading: stored)
    } catch {
      throw KeyhaulError(.unwritable, error.reason)
    }
  }
}
