package import Basics
package import KeychainFormats

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
  ) throws(BackupArchiveError) {
    collector = try StoredBytesCollector(.temporaryFile, system: system)
    self.maximumByteCount = maximumByteCount
  }

  /// - Throws: `.noTemporarySpace` where a temporary file cannot be made or is full, `.unwritable` for more than all items
  ///   together may have.
  package func append(
    _ kind: ItemKind, blob: [UInt8], persistentReference: [UInt8]?
  ) throws(BackupArchiveError) {
    let start = byteCount
    let end = start + blob.count + (persistentReference?.count ?? 0)
    guard end <= maximumByteCount else {
      throw BackupArchiveError(
        .unwritable, "the keychain's items have more than \(Amounts.grouped(Int64(maximumByteCount))) bytes")
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

  private func flush() throws(BackupArchiveError) {
    try pending.withRawBytes { (bytes) throws(BackupArchiveError) in try collector?.append(bytes) }
    pending.removeAll(keepingCapacity: true)
  }

  /// The keychain of all items. Nothing may follow.
  ///
  /// - Parameter keybagUUID: Of the bag that they are sealed for.
  /// - Throws: As `append` does; `.unwritable` for more items than a file may have.
  package func finish(keybagUUID: String?) throws(BackupArchiveError) -> SealedKeychain {
    try flush()
    guard let collector = collector.take() else {
      throw BackupArchiveError(.unwritable, "the items were already used")
    }
    let stored = try collector.finish()
    do throws(FormatError) {
      let writer = try KeychainFileWriter(KeychainBackupFile(keybagUUID: keybagUUID, entries: entries))
      return SealedKeychain(writer, reading: stored)
    } catch {
      throw BackupArchiveError(.unwritable, error.reason)
    }
  }
}
